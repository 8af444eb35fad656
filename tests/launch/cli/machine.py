# SPDX-License-Identifier: BSD-3-Clause
"""Makes the files of a machine that is none: the parts of /sys, /proc, /dev and /usr that `gpushmem doctor` and hwloc read.

healthy(root) is a server of two sockets. On each a PCIe switch has two GPUs and two NICs; those of the first socket are RoCE,
those of the second InfiniBand. A fault is a small change of it. Run as a program it makes one: machine.py DIR.
"""
import os
import struct
import sys

GPUS = ("0000:13:00.0", "0000:15:00.0", "0000:93:00.0", "0000:95:00.0")
NICS = ("0000:14:00.0", "0000:16:00.0", "0000:94:00.0", "0000:96:00.0")
DEVICES = ("mlx5_0", "mlx5_1", "mlx5_2", "mlx5_3")
INTERFACES = ("ens1", "ens2", None, None)
SWITCH = 0x060400


class Machine:
    """Files below a root. What is changed after mark() is as it was before after undo()."""

    def __init__(self, root):
        self.root = root
        self.config = {}  # of PCI devices, as bytearrays
        self.journal = None
        self.saved = 0

    def mark(self):
        self.journal = []
        os.makedirs(self.root + ".saved", exist_ok=True)
        self.unchanged = {pci: bytes(data) for pci, data in self.config.items()}

    def undo(self):
        for undo, arguments in reversed(self.journal):
            undo(*arguments)
        self.journal = []
        self.config = {pci: bytearray(data) for pci, data in self.unchanged.items()}

    def path(self, name):
        return os.path.join(self.root, name)

    def _folder(self, path):
        if path and not os.path.isdir(path):
            self._folder(os.path.dirname(path))
            os.mkdir(path)
            if self.journal is not None:
                self.journal.append((os.rmdir, (path,)))

    def _away(self, path):
        """What is there goes, and comes back with undo()."""
        if not os.path.lexists(path):
            return
        if self.journal is None:
            os.unlink(path)
            return
        self.saved += 1
        kept = "%s.saved/%d" % (self.root, self.saved)
        os.rename(path, kept)
        self.journal.append((os.rename, (kept, path)))

    def _new(self, name):
        path = self.path(name)
        self._folder(os.path.dirname(path))
        self._away(path)
        if self.journal is not None:
            self.journal.append((os.unlink, (path,)))
        return path

    def write(self, name, text):
        with open(self._new(name), "wb") as file:
            file.write(text if isinstance(text, (bytes, bytearray)) else (text + "\n").encode())

    def link(self, name, target):
        os.symlink(target, self._new(name))

    def pipe(self, name):
        os.mkfifo(self._new(name))

    def folder(self, name):
        """An empty one in the place of whatever is there."""
        self._away(self.path(name))
        self._folder(self.path(name))

    def remove(self, name):
        self._away(self.path(name))

    def read(self, name):
        with open(self.path(name), encoding="utf-8") as file:
            return file.read()

    def replace(self, name, old, new):
        text = self.read(name)
        assert old in text, (name, old)
        self.write(name, text.replace(old, new).rstrip("\n"))

    def environment(self, **variables):
        self.write("proc/self/environ", b"".join(b"%s=%s\0" % (k.encode(), v.encode()) for k, v in variables.items()))

    def register(self, pci, offset, value):
        """Changes a byte of the configuration space."""
        self.config[pci][offset] = value
        self.write("sys/bus/pci/devices/%s/config" % pci, self.config[pci])


def configuration(vendor, device, class_code, buses=None):
    """4,096 bytes with the capability of PCI Express, relaxed ordering on, and ACS that redirects nothing."""
    data = bytearray(4096)
    struct.pack_into("<HH", data, 0, vendor, device)
    data[6] = 0x10  # a list of capabilities is there
    data[9:12] = class_code.to_bytes(3, "little")
    if buses:
        data[0x0e] = 1
        data[0x18:0x1b] = bytes(buses)
    data[0x34] = 0x60
    data[0x60], data[0x61] = 0x10, 0x00
    struct.pack_into("<H", data, 0x60 + 8, 0x0010)
    struct.pack_into("<I", data, 0x100, 0x000d | 1 << 16)
    return data


def pci(machine, address, folder, vendor, device, class_code, buses=None, node=0):
    path = "sys/devices/%s/%s" % (folder, address)
    machine.link("sys/bus/pci/devices/" + address, "../../../devices/%s/%s" % (folder, address))
    machine.config[address] = configuration(vendor, device, class_code, buses)
    for name, text in (("vendor", "0x%04x" % vendor), ("device", "0x%04x" % device), ("class", "0x%06x" % class_code),
                       ("revision", "0x00"), ("subsystem_vendor", "0x0000"), ("subsystem_device", "0x0000"),
                       ("numa_node", str(node)), ("current_link_width", "16"), ("max_link_width", "16"),
                       ("current_link_speed", "32.0 GT/s PCIe"), ("max_link_speed", "32.0 GT/s PCIe"),
                       ("local_cpus", "%x" % (3 << 2 * node)), ("local_cpulist", "%d-%d" % (2 * node, 2 * node + 1)),
                       ("resource", "\n".join(["0x00000000a0000000 0x00000000a0ffffff 0x0000000000040200",
                                               "0x0000080000000000 0x0000081fffffffff 0x000000000014220c"] +
                                              5 * ["0x0000000000000000 0x0000000000000000 0x0000000000000000"]))):
        machine.write(path + "/" + name, text)
    machine.write(path + "/config", machine.config[address])
    return folder + "/" + address


def socket(machine, number, bus):
    """A root port, a switch below it with four ports, and behind these GPU, NIC, GPU, NIC."""
    host = "pci0000:%02x" % bus
    port = pci(machine, "0000:%02x:01.0" % bus, host, 0x8086, 0x352a, SWITCH, (bus, bus + 1, bus + 6), number)
    upstream = pci(machine, "0000:%02x:00.0" % (bus + 1), port, 0x1000, 0xc030, SWITCH, (bus + 1, bus + 2, bus + 6), number)
    for i in range(4):
        below = bus + 3 + i
        down = pci(machine, "0000:%02x:%02x.0" % (bus + 2, i), upstream, 0x1000, 0xc030, SWITCH, (bus + 2, below, below), number)
        if i % 2 == 0:
            pci(machine, "0000:%02x:00.0" % below, down, 0x10de, 0x2330, 0x030200, node=number)
        else:
            pci(machine, "0000:%02x:00.0" % below, down, 0x15b3, 0x1021, 0x020000 if number == 0 else 0x020700, node=number)


def processors(machine):
    for cpu in range(4):
        topology = "sys/devices/system/cpu/cpu%d/topology/" % cpu
        for name, text in (("physical_package_id", cpu // 2), ("core_id", cpu % 2), ("core_cpus", "%x" % (1 << cpu)),
                           ("thread_siblings", "%x" % (1 << cpu)), ("package_cpus", "%x" % (3 << cpu // 2 * 2)),
                           ("core_siblings", "%x" % (3 << cpu // 2 * 2))):
            machine.write(topology + name, str(text))
    for name in ("online", "possible", "present"):
        machine.write("sys/devices/system/cpu/" + name, "0-3")
        machine.write("sys/devices/system/node/" + name, "0-1")
    for node in range(2):
        machine.write("sys/devices/system/node/node%d/cpumap" % node, "%x" % (3 << 2 * node))
        machine.write("sys/devices/system/node/node%d/meminfo" % node, "Node %d MemTotal: 134217728 kB" % node)
    machine.write("proc/cpuinfo", "\n".join("processor\t: %d\nphysical id\t: %d\ncore id\t: %d\n" % (c, c // 2, c % 2)
                                            for c in range(4)))


def nics(machine):
    for i, device in enumerate(DEVICES):
        target = os.readlink(machine.path("sys/bus/pci/devices/" + NICS[i]))
        machine.link("sys/class/infiniband/%s/device" % device, "../../../bus/pci/devices/" + NICS[i])
        machine.write("sys/%s/infiniband/%s/node_type" % (target.replace("../../../", ""), device), "1: CA")
        port = "sys/class/infiniband/%s/ports/1/" % device
        roce = INTERFACES[i] is not None
        for name, text in (("state", "4: ACTIVE"), ("phys_state", "5: LinkUp"), ("rate", "400 Gb/sec (4X NDR)"),
                           ("link_layer", "Ethernet" if roce else "InfiniBand"), ("counters/port_rcv_packets", "123456789"),
                           ("hw_counters/packet_seq_err", "3"), ("hw_counters/local_ack_timeout_err", "0"),
                           ("hw_counters/out_of_sequence", "0"), ("hw_counters/np_ecn_marked_roce_packets", "0")):
            machine.write(port + name, text)
        machine.write("sys/class/infiniband_verbs/uverbs%d/ibdev" % i, device)
        machine.write("dev/infiniband/uverbs%d" % i, "")
        if roce:
            interface(machine, port, INTERFACES[i], i)


def interface(machine, port, name, number):
    for index, (gid, kind) in enumerate((("fe80:0000:0000:0000:0a00:27ff:fe00:000%d" % number, "IB/RoCE v1"),
                                         ("fe80:0000:0000:0000:0a00:27ff:fe00:000%d" % number, "RoCE v2"),
                                         ("0000:0000:0000:0000:0000:ffff:0a01:000%d" % (number + 1), "RoCE v2"))):
        machine.write(port + "gids/%d" % index, gid)
        machine.write(port + "gid_attrs/types/%d" % index, kind)
        machine.write(port + "gid_attrs/ndevs/%d" % index, name)
    machine.write(port + "gids/3", ":".join(8 * ["0000"]))
    machine.write("sys/class/net/%s/mtu" % name, "9000")
    machine.write("sys/class/net/%s/qos/pfc" % name, "0,0,0,1,0,0,0,0")
    for priority in range(8):
        for side in ("roce_np", "roce_rp"):
            machine.write("sys/class/net/%s/ecn/%s/enable/%d" % (name, side, priority), "1" if priority == 3 else "0")


def process(machine):
    machine.write("proc/self/limits", "Limit                     Soft Limit           Hard Limit           Units\n"
                                      "Max open files            65536                1048576              files\n"
                                      "Max locked memory         unlimited            unlimited            bytes")
    machine.write("proc/self/status", "Name:\tgpushmem\nCapEff:\t0000000000000000\nCpus_allowed_list:\t0-3")
    machine.write("proc/self/cgroup", "0::/user.slice/job")
    for name, text in (("memory.max", "max"), ("cpu.max", "max 100000"), ("rdma.max", "mlx5_0 hca_handle=max hca_object=max")):
        machine.write("sys/fs/cgroup/user.slice/job/" + name, text)
    machine.write("proc/1/cgroup", "0::/init.scope")
    machine.write("proc/1/comm", "systemd")
    machine.write("proc/800/comm", "nv-fabricmanage")
    machine.write("proc/mounts", "sysfs /sys sysfs rw 0 0\ntmpfs /dev/shm tmpfs rw,nosuid,nodev 0 0")
    machine.write("proc/meminfo", "MemTotal:       268435456 kB\nMemAvailable:   134217728 kB")
    machine.write("proc/net/tcp", "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid\n"
                                  "   0: 0100007F:9D81 00000000:0000 0A 00000000:00000000 00:00000000 00000000  0")
    machine.environment(PATH="/usr/bin", PMIX_NAMESPACE="prterun.1", PMIX_RANK="0",
                        PMIX_SERVER_URI41="prterun.0;tcp4://127.0.0.1:40321")


def healthy(root):
    machine = Machine(root)
    processors(machine)
    socket(machine, 0, 0x10)
    socket(machine, 1, 0x90)
    pci(machine, "0000:98:00.0", "pci0000:98", 0x10de, 0x22a3, 0x068000, node=1)
    for group, address in enumerate(GPUS + NICS):
        machine.link("sys/bus/pci/devices/%s/iommu_group" % address, "../../../../kernel/iommu_groups/%d" % group)
        machine.write("sys/kernel/iommu_groups/%d/type" % group, "identity")
    nics(machine)
    process(machine)
    machine.write("proc/driver/nvidia/version", "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.65.06  Release Build\n"
                                                "GCC version:  gcc version 12.2.0")
    machine.write("proc/sys/kernel/osrelease", "6.1.0-28-amd64")
    machine.write("sys/module/nvidia_peermem/initstate", "live")
    machine.link("usr/lib/x86_64-linux-gnu/libcuda.so.1", "libcuda.so.580.65.06")
    machine.link("usr/lib/x86_64-linux-gnu/libmlx5.so.1", "libmlx5.so.1.24.44.0")
    machine.link("usr/lib/x86_64-linux-gnu/libfabric.so.1", "libfabric.so.1.20.0")
    machine.write("proc/driver/nvidia/params", 'EnableMSI: 1\nRegistryDwords: "PeerMappingOverride=1;"')
    for name in ("nvidiactl", "nvidia-uvm", "nvidia0", "nvidia1", "nvidia2", "nvidia3"):
        machine.write("dev/" + name, "")
    return machine


if __name__ == "__main__":
    healthy(sys.argv[1])
