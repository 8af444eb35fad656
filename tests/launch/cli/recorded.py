# SPDX-License-Identifier: BSD-3-Clause
"""Machines in the form in which lstopo records them: written down by hand after servers of the field, and made XML here.

A machine is a list of sockets, a socket a list of host bridges, and what is below one is a tree of gpu(), nic() and switch().
"""
from xml.sax.saxutils import quoteattr

ROOT_PORT, SWITCH = "0604 [8086:352a] [0000:0000] 00", "0604 [1000:c030] [0000:0000] 00"


def gpu(pci, name="H100"):
    return {"pci": pci, "type": "0302 [10de:2330] [0000:0000] a1", "name": name}


def nic(pci, device, ethernet=False, rate=400, state=4):
    return {"pci": pci, "type": "%s [15b3:1021] [0000:0000] 00" % ("0200" if ethernet else "0207"),
            "device": device, "rate": rate, "state": state}


def nvswitch(pci):
    return {"pci": pci, "type": "0680 [10de:22a3] [0000:0000] a1"}


def switch(pci, *ports):
    """The upstream bridge; each port has a bridge of its own."""
    return {"pci": pci, "ports": ports}


class Xml:
    def __init__(self):
        self.lines, self.index, self.of = [], 0, {}

    def open(self, kind, pci=None, **attributes):
        self.index += 1
        if pci:
            self.of[pci] = self.index
            attributes["pci_busid"] = pci
        self.lines.append("<object type=%s gp_index=\"%d\"%s>" % (quoteattr(kind), self.index, "".join(
            " %s=%s" % (key, quoteattr(str(value))) for key, value in attributes.items())))

    def close(self):
        self.lines.append("</object>")

    def info(self, name, value):
        self.lines.append("<info name=%s value=%s/>" % (quoteattr(name), quoteattr(str(value))))


def place(cpus, nodes):
    return {"cpuset": "0x%x" % cpus, "complete_cpuset": "0x%x" % cpus, "nodeset": "0x%x" % nodes,
            "complete_nodeset": "0x%x" % nodes}


def bus_of(pci):
    return int(pci[5:7], 16)


def device_write(xml, device):
    xml.open("PCIDev", device["pci"], pci_type=device["type"], pci_link_speed="63.0")
    if "name" in device:
        xml.info("PCIDevice", device["name"])
    if "device" in device:
        xml.open("OSDev", name=device["device"], osdev_type=3)
        xml.info("Port1State", device["state"])
        if device["rate"]:
            xml.info("Port1Rate", "%g Gb/s" % device["rate"])
        xml.close()
    xml.close()


def buses(tree):
    if "ports" not in tree:
        return [bus_of(tree["pci"])]
    return [bus_of(tree["pci"])] + [bus for port in tree["ports"] for bus in buses(port)]


def bridge_open(xml, pci, kind, depth, tree):
    xml.open("Bridge", pci, bridge_type="1-1", depth=depth, pci_type=kind, pci_link_speed="63.0",
             bridge_pci="%s:[%02x-%02x]" % (tree["pci"][:4], min(buses(tree)), max(buses(tree))))


def tree_write(xml, tree, depth):
    if "ports" not in tree:
        device_write(xml, tree)
        return
    bridge_open(xml, tree["pci"], SWITCH, depth, tree)
    for i, port in enumerate(tree["ports"]):
        bridge_open(xml, "%s:%02x:%02x.0" % (tree["pci"][:4], bus_of(tree["pci"]) + 1, i), SWITCH, depth + 1, port)
        tree_write(xml, port, depth + 2)
        xml.close()
    xml.close()


def host_bridge_write(xml, domain, bus, roots):
    all_buses = [bus] + [b for root in roots for b in buses(root)]
    xml.open("Bridge", bridge_type="0-1", depth=0, bridge_pci="%s:[%02x-%02x]" % (domain, bus, max(all_buses)))
    for i, root in enumerate(roots):
        bridge_open(xml, "%s:%02x:%02x.0" % (domain, bus, i + 1), ROOT_PORT, 1, root)
        tree_write(xml, root, 2)
        xml.close()
    xml.close()


def nvlinks_write(xml, links):
    """{(pci, pci): number} both ways, as hwloc has it: MB/s, and 25,000 for each link."""
    ends = sorted({end for pair in links for end in pair})
    values = [25000 * links.get((a, b), links.get((b, a), 0)) if a != b else 1000000 for a in ends for b in ends]
    indexes = " ".join("PCIDev:%d" % xml.of[end] for end in ends) + " "
    numbers = " ".join(map(str, values)) + " "
    return ["<distances2hetero name=\"NVLinkBandwidth\" nbobjs=\"%d\" kind=\"9\" indexing=\"gp\">" % len(ends),
            "<indexes length=\"%d\">%s</indexes>" % (len(indexes), indexes),
            "<u64values length=\"%d\">%s</u64values>" % (len(numbers), numbers), "</distances2hetero>"]


def machine_xml(sockets, links=None, cpus=2, gpu_memory=0):
    """Each socket has so many processors, one NUMA node, and so many nodes that are memory of GPUs."""
    xml, n = Xml(), len(sockets)
    per = 1 + gpu_memory
    everything = place((1 << cpus * n) - 1, (1 << per * n) - 1)
    xml.open("Machine", os_index=0, allowed_cpuset=everything["cpuset"], allowed_nodeset=everything["nodeset"], **everything)
    for s, bridges in enumerate(sockets):
        mine = ((1 << cpus) - 1) << cpus * s
        nodes = ((1 << per) - 1) << per * s
        xml.open("Package", os_index=s, **place(mine, nodes))
        for i in range(per):
            memory = {"subtype": "GPUMemory"} if i else {}
            xml.open("NUMANode", os_index=per * s + i, local_memory=1 << 37, **memory, **place(mine, 1 << (per * s + i)))
            xml.close()
        for c in range(cpus):
            pu = place(1 << (cpus * s + c), nodes)
            xml.open("Core", os_index=c, **pu)
            xml.open("PU", os_index=cpus * s + c, **pu)
            xml.close()
            xml.close()
        for domain, bus, roots in bridges:
            host_bridge_write(xml, domain, bus, roots)
        xml.close()
    xml.close()
    return "\n".join(["<?xml version=\"1.0\" encoding=\"UTF-8\"?>", "<!DOCTYPE topology SYSTEM \"hwloc2.dtd\">",
                      "<topology version=\"2.0\">"] + xml.lines + (nvlinks_write(xml, links) if links else []) +
                     ["</topology>"]) + "\n"


# Two GPUs with NVLink bridges between them, each at a root port of its own, and a NIC at a third one.
WORKSTATION = machine_xml([[("0000", 0x10, [gpu("0000:11:00.0", "A100"), gpu("0000:12:00.0", "A100"),
                                            nic("0000:13:00.0", "mlx5_0", True, 100)])]],
                          {("0000:11:00.0", "0000:12:00.0"): 12}, cpus=4)


def pod(bus, number):
    """A switch with a GPU and its NIC, below a host bridge of its own."""
    return ("0000", bus, [switch("0000:%02x:00.0" % (bus + 1), gpu("0000:%02x:00.0" % (bus + 3)),
                                 nic("0000:%02x:00.0" % (bus + 4), "mlx5_%d" % number))])


EIGHT_GPUS = ["0000:%02x:00.0" % (0x10 * i + 3) for i in range(8)]
SWITCHES = ["0000:%02x:00.0" % (0x81 + i) for i in range(4)]
# Eight GPUs, each on a switch with a NIC, and four NVSwitches; a storage NIC with Ethernet on the first socket.
EIGHT = machine_xml(
    [[pod(0x10 * i, i) for i in range(4)] + [("0000", 0x48, [nic("0000:49:00.0", "mlx5_8", True, 100)])],
     [pod(0x10 * i, i) for i in range(4, 8)] + [("0000", 0x80, [nvswitch(pci) for pci in SWITCHES])]],
    {(a, b): 5 if i < 2 else 4 for a in EIGHT_GPUS for i, b in enumerate(SWITCHES)}, cpus=8)

# A superchip: the GPU has its own PCIe domain, and its memory is a NUMA node.
GRACE_HOPPER = machine_xml([[("0009", 0x00, [gpu("0009:01:00.0", "GH200 480GB")]),
                             ("0000", 0x00, [nic("0000:01:00.0", "mlx5_0")]),
                             ("0002", 0x00, [nic("0002:01:00.0", "mlx5_1", True, 200, 1)])]], cpus=8, gpu_memory=1)
MACHINES = {"workstation": WORKSTATION, "eight": EIGHT, "grace": GRACE_HOPPER}

if __name__ == "__main__":
    import sys
    print(MACHINES[sys.argv[1]], end="")
