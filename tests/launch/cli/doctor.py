#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What `gpushmem doctor` says of machines that are none: one that is well, and one for each fault.

    GPUSHMEM=build/dev/bin/gpushmem doctor.py [Class[.test]]
"""
import json
import os
import shutil
import struct
import subprocess
import tempfile
import unittest

import machine

GPUSHMEM = os.environ.get("GPUSHMEM", "gpushmem")
NIC, NIC_IB = "sys/class/infiniband/mlx5_0/ports/1/", "sys/class/infiniband/mlx5_2/ports/1/"
PCI = "sys/bus/pci/devices/"


def doctor(*arguments, **environment):
    return subprocess.run([GPUSHMEM, "doctor", *arguments], capture_output=True, text=True,
                          env={k: v for k, v in dict(os.environ, **environment).items() if v is not None})


def variables(**more):
    return lambda m: m.environment(PATH="/usr/bin", **more)


def all_ports(m, name, text):
    for device in machine.DEVICES:
        m.write("sys/class/infiniband/%s/ports/1/%s" % (device, name), text)


def no_v2(m):
    for i in (1, 2):
        m.write(NIC + "gid_attrs/types/%d" % i, "IB/RoCE v1")


def no_gids(m):
    for i in range(3):
        m.write(NIC + "gids/%d" % i, ":".join(8 * ["0000"]))


def container(m):
    m.write(".dockerenv", "")
    m.remove("dev/infiniband")


def no_ecn(m):
    m.write("sys/class/net/ens1/ecn/roce_rp/enable/3", "0")


def far_nics(m):
    for i in (2, 3):
        m.remove(PCI + machine.NICS[i])
        m.remove("sys/class/infiniband/" + machine.DEVICES[i])
        m.remove("sys/class/infiniband_verbs/uverbs%d" % i)


def no_driver_of_nics(m):
    m.remove("sys/class/infiniband")
    m.remove("sys/class/infiniband_verbs")


def no_gpus(m):
    for address in machine.GPUS:
        m.remove(PCI + address)


def no_nics(m):
    no_driver_of_nics(m)
    for address in machine.NICS:
        m.remove(PCI + address)


def all_down(m):
    all_ports(m, "state", "1: DOWN")


def nics_of_others(m):
    for address in machine.NICS:
        m.write(PCI + address + "/vendor", "0x14e4")


def kernel_posts(change):
    return lambda m: (change(m), m.environment(PATH="/usr/bin", GPUSHMEM_DEVICE_POST="nic"))


# Each fault: the check that has to find it, what it has to say, and the change.
FAULTS = {
    "driver not loaded": ("driver", "is not loaded", lambda m: m.remove("proc/driver")),
    "nouveau": ("driver", "nouveau has them", lambda m: (m.remove("proc/driver"), m.write("sys/module/nouveau/refcnt", "1"))),
    "driver too old": ("driver", "470.57.02 is older than 515",
                       lambda m: (m.replace("proc/driver/nvidia/version", "580.65.06", "470.57.02"),
                                  m.link("usr/lib/x86_64-linux-gnu/libcuda.so.1", "libcuda.so.470.57.02"))),
    "library of another driver": ("cuda", "of driver 570.1.2, the kernel's is 580.65.06",
                                  lambda m: m.link("usr/lib/x86_64-linux-gnu/libcuda.so.1", "libcuda.so.570.1.2")),
    "no libcuda": ("cuda", "there is no libcuda.so.1", lambda m: m.remove("usr/lib/x86_64-linux-gnu/libcuda.so.1")),
    "no GPU where one is asked for": ("cuda", "no NVIDIA GPU on the PCI bus, and GPUSHMEM_HEAP_KIND=device wants one",
                                      lambda m: (no_gpus(m), m.environment(PATH="/usr/bin", GPUSHMEM_HEAP_KIND="device"))),
    "no nvidia-uvm": ("gpu-files", "/dev/nvidia-uvm is missing", lambda m: m.remove("dev/nvidia-uvm")),
    "no nvidia0": ("gpu-files", "/dev/nvidia0 and so on are missing",
                   lambda m: [m.remove("dev/nvidia%d" % i) for i in range(4)]),
    "no fabric manager": ("fabric-manager", "1 NVSwitches, and nv-fabricmanager does not run", lambda m: m.remove("proc/800")),
    "no gpudirect": ("gpudirect", "neither nvidia-peermem",
                     lambda m: (m.remove("sys/module"), m.write("proc/sys/kernel/osrelease", "5.4.0-100-generic"))),
    "gpudirect off": ("gpudirect", "GPUSHMEM_GPUDIRECT=never", variables(GPUSHMEM_GPUDIRECT="never")),
    "small window": ("bar1", "GPU 0000:13:00.0 shows 256 MiB",
                     lambda m: m.replace(PCI + "0000:13:00.0/resource", "0x0000081fffffffff", "0x000008000fffffff")),
    "no NIC where one is asked for": ("verbs", "no RDMA NIC on the PCI bus, and GPUSHMEM_TRANSPORTS=verbs allows nothing else",
                                      lambda m: (no_nics(m), m.environment(PATH="/usr/bin", GPUSHMEM_TRANSPORTS="verbs"))),
    "no verbs device": ("verbs", "the NIC at 0000:14:00.0 has no verbs device", no_driver_of_nics),
    "no ib_uverbs": ("uverbs", "ib_uverbs is not loaded", lambda m: m.remove("sys/class/infiniband_verbs")),
    "no uverbs1": ("uverbs", "/dev/infiniband/uverbs1: No such file", lambda m: m.remove("dev/infiniband/uverbs1")),
    "no subnet manager": ("port", "mlx5_2:1 is in state INIT: no subnet manager", lambda m: m.write(NIC_IB + "state", "2: INIT")),
    "all ports down": ("port", "mlx5_0:1 is DOWN", all_down),
    "one lane": ("rate", "mlx5_2:1 runs on 1 of 4 lanes, at 100 Gb/s", lambda m: m.write(NIC_IB + "rate", "100 Gb/sec (1X NDR)")),
    "slow port": ("rate", "mlx5_0:1 runs at 100 Gb/s, another port at 400",
                  lambda m: m.write(NIC + "rate", "100 Gb/sec (4X EDR)")),
    "small packets": ("mtu", "mlx5_0:1 is on ens1, whose MTU is 1500", lambda m: m.write("sys/class/net/ens1/mtu", "1500")),
    "no RoCE v2": ("gid", "mlx5_0:1 has RoCE v1 addresses only", no_v2),
    "no address": ("gid", "mlx5_0:1 has no address at all", no_gids),
    "wrong GID index": ("gid", "GPUSHMEM_VERBS_GID_INDEX=0 is no RoCE v2 address of mlx5_0:1",
                        variables(GPUSHMEM_VERBS_GID_INDEX="0")),
    "other namespace": ("namespace", "the addresses of mlx5_0:1 are on ens1, which is in another network namespace",
                        lambda m: m.remove("sys/class/net/ens1")),
    "no flow control": ("pfc", "priority flow control is off on ens1",
                        lambda m: m.write("sys/class/net/ens1/qos/pfc", "0,0,0,0,0,0,0,0")),
    "no congestion control": ("ecn", "congestion is not reacted to on ens1", no_ecn),
    "losses": ("loss", "mlx5_0:1: 70000 gaps and 0 timeouts", lambda m: m.write(NIC + "hw_counters/packet_seq_err", "70000")),
    "order given up": ("routing", "5 packets came out of turn, and GPUSHMEM_VERBS_ORDER=queue",
                       lambda m: (m.write(NIC + "hw_counters/out_of_sequence", "5"),
                                  m.environment(GPUSHMEM_VERBS_ORDER="queue"))),
    "NICs on the other socket": ("distance", "GPU 0000:93:00.0: the nearest NIC, 0000:14:00.0, is at SYS", far_nics),
    "kernels' doorbells": ("kernel-posts", "does not map a NIC's registers for plain users",
                           kernel_posts(lambda m: m.write("proc/driver/nvidia/params", 'RegistryDwords: ""'))),
    "no libfabric": ("libfabric", "there is no libfabric.so.1",
                     lambda m: (m.remove("usr/lib/x86_64-linux-gnu/libfabric.so.1"),
                                m.environment(PATH="/usr/bin", GPUSHMEM_TRANSPORTS="ofi"))),
    "no libmlx5": ("kernel-posts", "there is no libmlx5.so.1",
                   kernel_posts(lambda m: m.remove("usr/lib/x86_64-linux-gnu/libmlx5.so.1"))),
    "queues in host memory": ("kernel-posts", "by queues in host memory: libmlx5.so.1 of rdma-core 38 is older than 43",
                              kernel_posts(lambda m: (m.write("proc/driver/nvidia/params", 'RegistryDwords: ""'),
                                                      m.link("usr/lib/x86_64-linux-gnu/libmlx5.so.1", "libmlx5.so.1.22.38.0")))),
    "NICs of others": ("kernel-posts", "no NIC is one of NVIDIA's", kernel_posts(nics_of_others)),
    "ACS": ("acs", "bridge 0000:12:01.0 redirects", lambda m: m.register("0000:12:01.0", 0x106, 0x0c)),
    "translated": ("iommu", "0000:13:00.0 is behind an IOMMU that translates (DMA-FQ)",
                   lambda m: m.write("sys/kernel/iommu_groups/0/type", "DMA-FQ")),
    "strict order on PCIe": ("relaxed-order", "NIC 0000:14:00.0 may not reorder",
                             lambda m: m.register("0000:14:00.0", 0x68, 0)),
    "few lanes": ("pcie-link", "NIC 0000:14:00.0 has x8 of x16 lanes",
                  lambda m: m.write(PCI + "0000:14:00.0/current_link_width", "8")),
    "slow lanes": ("pcie-link", "NIC 0000:14:00.0 runs its lanes at 16 of 32 GT/s",
                   lambda m: m.write(PCI + "0000:14:00.0/current_link_speed", "16.0 GT/s PCIe")),
    "memlock": ("memlock", "this process may lock 64 KiB; a heap of 256 MiB takes 320 MiB",
                lambda m: m.replace("proc/self/limits", "Max locked memory         unlimited            unlimited ",
                                    "Max locked memory         65536                65536     ")),
    "few files": ("open-files", "may have 256 files open", lambda m: m.replace("proc/self/limits", "65536  ", "256    ")),
    "small shm": ("shm", "/dev/shm has 64 MiB", lambda m: m.replace("proc/mounts", "rw,nosuid,nodev", "rw,nosuid,size=65536k")),
    "no shm": ("shm", "nothing is mounted on /dev/shm", lambda m: m.write("proc/mounts", "sysfs /sys sysfs rw 0 0")),
    "memory of the group": ("memory", "gives this job 128 MiB on this node; one PE takes 320",
                            lambda m: m.write("sys/fs/cgroup/user.slice/job/memory.max", str(128 << 20))),
    "memory of the node": ("memory", "100 MiB are available",
                           lambda m: m.write("proc/meminfo", "MemAvailable:   102400 kB")),
    "no huge pages": ("huge-pages", "8 pages of 2m are free, a heap is 256 MiB",
                      lambda m: (m.environment(GPUSHMEM_HUGE_PAGES="2m"),
                                 m.write("sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages", "8"))),
    "one processor": ("cpus", "may use 1 processor", lambda m: m.replace("proc/self/status", "0-3", "2")),
    "half a processor": ("cpus", "may use 0.5 processors",
                         lambda m: m.write("sys/fs/cgroup/user.slice/job/cpu.max", "50000 100000")),
    "few queues": ("rdma-limit", "8 queues", lambda m: m.write("sys/fs/cgroup/user.slice/job/rdma.max",
                                                               "mlx5_0 hca_handle=2 hca_object=8")),
    "container without NICs": ("container", "this container (docker) has no /dev/infiniband", container),
    "bad setting": ("settings", "GPUSHMEM_HEAP_SIZE=lots is not a size", variables(GPUSHMEM_HEAP_SIZE="lots")),
    "misspelt settings": ("settings", "GPUSHMEM_HEAPSIZE: unknown setting, ignored; did you mean GPUSHMEM_HEAP_SIZE? "
                          "And 1 more like that", variables(GPUSHMEM_HEAPSIZE="1G", GPUSHMEM_HEPA_KIND="host")),
    "misspelt in a settings file": ("settings", "settings.conf:1: GPUSHMEM_RINGZ: unknown setting, ignored; "
                                    "did you mean GPUSHMEM_RINGS?",
                                    lambda m: m.write("etc/gpushmem/settings.conf", "GPUSHMEM_RINGZ = 2")),
    "bad settings file": ("settings", "etc/gpushmem/settings.conf:2: GPUSHMEM_HEAP_SIZE=lots is not a size",
                          lambda m: m.write("etc/gpushmem/settings.conf", "\nGPUSHMEM_HEAP_SIZE = lots")),
    "wrong GID index in a file": ("gid", "GPUSHMEM_VERBS_GID_INDEX=0 is no RoCE v2 address of mlx5_0:1",
                                  lambda m: m.write("etc/gpushmem/settings.conf", "GPUSHMEM_VERBS_GID_INDEX = 0")),
    "srun without PMIx": ("launcher", "srun started this process without PMIx", variables(SLURM_PROCID="1")),
    "MPICH": ("launcher", "a launcher without PMI-1", variables(PMI_RANK="1")),
    "server is gone": ("pmix", "no PMIx server listens on port 40321",
                       lambda m: m.replace("proc/net/tcp", ":9D81", ":9D82")),
    "no network": ("pmix", "no network interface has an address, not even lo",
                   lambda m: (m.environment(PATH="/usr/bin"), m.write("proc/net/fib_trie", b""))),
    "server is not named": ("pmix", "no PMIX_SERVER_URI says", variables(PMIX_NAMESPACE="a", PMIX_RANK="0")),
    "rank is no number": ("pmix", "PMIX_RANK is 'zero'", variables(PMIX_NAMESPACE="a", PMIX_RANK="zero")),
}

# What is malformed or cannot be read: the check must say that it cannot tell.
UNREADABLE = {
    "version is nonsense": ("driver", lambda m: m.write("proc/driver/nvidia/version", "what a driver")),
    "resource is nonsense": ("bar1", lambda m: m.write(PCI + "0000:13:00.0/resource", "zero one two")),
    "no resource": ("bar1", lambda m: m.remove(PCI + "0000:13:00.0/resource")),
    "no state": ("port", lambda m: m.remove(NIC + "state")),
    "rate is nonsense": ("rate", lambda m: m.write(NIC + "rate", "quick")),
    "mtu is nonsense": ("mtu", lambda m: m.write("sys/class/net/ens1/mtu", "large")),
    "pfc is not shown": ("pfc", lambda m: m.remove("sys/class/net/ens1/qos")),
    "pfc is nonsense": ("pfc", lambda m: m.write("sys/class/net/ens1/qos/pfc", "perhaps")),
    "ecn is not shown": ("ecn", lambda m: m.remove("sys/class/net/ens1/ecn")),
    "no counters": ("loss", lambda m: m.remove(NIC + "hw_counters")),
    "switches alone know": ("routing", variables(GPUSHMEM_VERBS_ORDER="queue")),
    "registers of a plain user": ("acs", lambda m: m.write(PCI + "0000:12:01.0/config", m.config["0000:12:01.0"][:64])),
    "registers of a NIC": ("relaxed-order", lambda m: m.write(PCI + "0000:14:00.0/config", m.config["0000:14:00.0"][:64])),
    "capabilities in a circle": ("relaxed-order", lambda m: (m.register("0000:14:00.0", 0x60, 0x05),
                                                             m.register("0000:14:00.0", 0x61, 0x60))),
    "virtual function": ("relaxed-order", lambda m: m.write(PCI + "0000:14:00.0/physfn/vendor", "0x15b3")),
    "no IOMMU type": ("iommu", lambda m: m.remove("sys/kernel/iommu_groups/0/type")),
    "a link without a width": ("pcie-link", lambda m: m.write(PCI + "0000:14:00.0/current_link_speed", "Unknown")),
    "an idle GPU": ("pcie-link", lambda m: m.write(PCI + "0000:13:00.0/current_link_speed", "2.5 GT/s PCIe")),
    "no limits": ("memlock", lambda m: m.remove("proc/self/limits")),
    "limits are nonsense": ("memlock", lambda m: m.write("proc/self/limits", "Max locked memory  some  some bytes")),
    "no mounts": ("shm", lambda m: m.remove("proc/mounts")),
    "no meminfo": ("memory", lambda m: m.remove("proc/meminfo")),
    "no status": ("cpus", lambda m: m.remove("proc/self/status")),
    "server has no port": ("pmix", variables(PMIX_NAMESPACE="a", PMIX_RANK="0", PMIX_SERVER_URI="usock")),
    "addresses are not shown": ("gid", lambda m: [m.folder(NIC + "gids/%d" % i) for i in range(3)]),
    "kinds of addresses are not shown": ("gid", lambda m: m.remove(NIC + "gid_attrs/types")),
    "one priority is not shown": ("ecn", lambda m: m.remove("sys/class/net/ens1/ecn/roce_rp/enable/3")),
    "no PCI bus for NICs": ("relaxed-order", lambda m: m.remove("sys/bus/pci")),
    "no PCI bus for links": ("pcie-link", lambda m: m.remove("sys/bus/pci")),
    "processes of others are hidden": ("fabric-manager", lambda m: (m.remove("proc/800"), m.remove("proc/1"))),
    "switches in a container": ("fabric-manager", lambda m: (m.remove("proc/800"), m.write(".dockerenv", ""))),
}


class Case(unittest.TestCase):
    """A healthy machine is made once; a test changes it, and it is mended afterwards."""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="doctor.", dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None)
        cls.root = cls.folder + "/root"
        cls.machine = machine.healthy(cls.root)
        cls.machine.mark()

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder)

    def tearDown(self):
        self.machine.undo()

    def made(self, change=None):
        self.machine.undo()
        if change:
            change(self.machine)
        return self.root

    def results(self, root, *arguments):
        done = doctor("--json", "--root", root, *arguments)
        self.assertEqual(done.stderr, "")
        report = json.loads(done.stdout)
        self.assertEqual(done.returncode, {"problem": 1, "cannot tell": 3}.get(report["worst"], 0))
        return {check["id"]: check for check in report["checks"]}


class Machines(Case):
    def test_healthy_machine_has_no_problem_and_no_doubt(self):
        found = self.results(self.made())
        self.assertEqual({i: c["saw"] for i, c in found.items() if c["result"] in ("problem", "cannot tell")}, {})
        applies = [i for i, c in found.items() if c["result"] == "ok"]
        self.assertEqual(sorted(set(found) - set(applies)), ["container", "huge-pages", "self-test"])

    def test_each_fault_is_found_by_its_check(self):
        for name, (check, words, change) in FAULTS.items():
            with self.subTest(name):
                found = self.results(self.made(change))
                self.assertEqual(found[check]["result"], "problem", found[check])
                self.assertIn(words, found[check]["saw"])
                self.assertTrue(found[check]["means"] and found[check]["mend"])

    def test_a_fault_is_a_problem_of_one_check(self):
        for name in ("memlock", "small packets", "ACS", "translated", "few lanes", "NICs on the other socket", "no address"):
            with self.subTest(name):
                check, _, change = FAULTS[name]
                found = self.results(self.made(change))
                self.assertEqual([i for i, c in found.items() if c["result"] == "problem"], [check])

    def test_what_cannot_be_read_is_said(self):
        for name, (check, change) in UNREADABLE.items():
            with self.subTest(name):
                found = self.results(self.made(change), check)
                self.assertEqual(list(found), [check])
                self.assertEqual(found[check]["result"], "cannot tell", found[check])

    def test_thousands_of_processes(self):
        def plant(m):
            m.remove("proc/800")
            for first in (2000, 8000):  # before and after it, whichever way a directory is listed
                if first == 8000:
                    m.write("proc/7000/comm", "nv-fabricmanage")
                for pid in range(first, first + 1100):
                    m.folder("proc/%d" % pid)
        self.assertEqual(self.results(self.made(plant), "fabric-manager")["fabric-manager"]["result"], "ok")

    def test_what_hwloc_says_is_not_printed(self):
        self.results(self.made(lambda m: m.remove("sys/devices/system/cpu")))  # which has no errors

    def test_machine_without_anything(self):
        empty = self.folder + "/empty"
        os.mkdir(empty)
        found = self.results(empty)
        self.assertEqual([i for i, c in found.items() if c["result"] == "problem"], [])
        self.assertEqual(found["driver"]["result"], "cannot tell")

    def test_laptop_without_gpu_and_nic(self):
        def strip(m):
            no_driver_of_nics(m)
            for address in machine.GPUS + machine.NICS + ("0000:98:00.0",):
                m.remove(PCI + address)
        found = self.results(self.made(strip))
        self.assertEqual({i: c["saw"] for i, c in found.items() if c["result"] in ("problem", "cannot tell")}, {})

    def test_files_that_are_something_else(self):
        def plant(m):
            for name in ("proc/self/limits", "proc/self/status", PCI + "0000:13:00.0/resource"):
                m.folder(name)
            m.pipe(NIC + "rate")
            m.write("proc/self/cgroup", "::::\n\n0:")
            m.write("proc/driver/nvidia/version", b"\xff\xfe\x00 580.65.06" + 5000 * b"x")
            m.write(PCI + "0000:14:00.0/config", b"")
            m.link(PCI + "0000:15:00.0/iommu_group", "x")
            m.write("sys/devices/system/cpu/online", "many")
            bridge = bytearray(m.config["0000:12:01.0"])
            struct.pack_into("<I", bridge, 0x100, 0xffc << 20 | 1 << 16 | 0x01)
            struct.pack_into("<I", bridge, 0xffc, 1 << 16 | 0x0d)  # ACS, whose registers would follow the last byte
            m.write(PCI + "0000:12:01.0/config", bridge)
        found = self.results(self.made(plant))
        for check in ("memlock", "cpus", "rate", "bar1", "iommu", "relaxed-order"):
            self.assertEqual(found[check]["result"], "cannot tell", found[check])

    def test_pipes_where_hwloc_reads(self):
        pipe = "sys/devices/virtual/pipe"
        for name in ("sys/devices/system/cpu/online", "sys/devices/system/node/online", "proc/cpuinfo", "proc/meminfo",
                     "proc/driver/nvidia/gpus/0000:13:00.0/numa_status", "run/udev/data/b8:0"):
            with self.subTest(name):
                found = self.results(self.made(lambda m, name=name: m.pipe(name)))["distance"]
                self.assertEqual(found["result"], "cannot tell", found)
                self.assertIn(name + " is a pipe or a device", str(found))
        found = self.results(self.made(lambda m: (m.pipe(pipe), m.link("proc/hwloc-nofile-info", m.path(pipe)))))
        self.assertEqual(found["distance"]["result"], "cannot tell", found)


class CommandLine(Case):
    def test_text(self):
        done = doctor("--root", self.made(FAULTS["memlock"][2]))
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stdout, r"problem +memlock +this process may lock 64 KiB")
        self.assertRegex(done.stdout, r"means: Registering the heap")
        self.assertRegex(done.stdout, r"do: ulimit -l unlimited")
        self.assertRegex(done.stdout, r"\n\d+ ok, 1 problem, 0 cannot be told, 3 do not apply here")
        self.assertNotIn("\033", done.stdout)
        self.assertLessEqual(max(map(len, done.stdout.splitlines())), 100)

    def test_what_a_machine_lacks(self):
        root = self.made(lambda m: (no_gpus(m), no_nics(m)))
        done = doctor("--root", root)
        self.assertIn("\nThis machine has no NVIDIA GPU on the PCI bus and no RDMA NIC on the PCI bus.\n", done.stdout)
        self.assertNotIn("not applicable", done.stdout)
        self.assertNotIn("This machine has", doctor("--root", self.made()).stdout)

    def test_named_check_that_does_not_apply(self):
        done = doctor("--root", self.made(no_nics), "verbs")
        self.assertEqual(done.returncode, 0)
        self.assertRegex(done.stdout, r"not applicable +verbs +no RDMA NIC on the PCI bus\n")
        self.assertNotIn("--all", done.stdout)

    def test_control_characters_of_files_are_not_printed(self):
        done = doctor("--all", "--root", self.made(lambda m: m.write(NIC + "state", "1: \033[2J\a")))
        self.assertNotRegex(done.stdout, "[\033\a]")
        self.assertIn(r"mlx5_0:1 is \x1b[2J\x07", done.stdout)

    def test_checks_by_name(self):
        self.made()
        self.assertEqual(list(self.results(self.root, "memlock", "port")), ["port", "memlock"])
        done = doctor("plague")
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertEqual(done.stderr, "gpushmem doctor: there is no check 'plague'; gpushmem doctor --all names them all\n")

    def test_root_that_is_none(self):
        for root in ("/nowhere", "/etc/passwd"):
            done = doctor("--root", root)
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertIn("--root '%s' is no directory" % root, done.stderr)

    def test_this_machine(self):
        done = doctor("--json")
        self.assertIn(done.returncode, (0, 1, 3))
        self.assertEqual(done.returncode, {"problem": 1, "cannot tell": 3}.get(json.loads(done.stdout)["worst"], 0))


class Document(unittest.TestCase):
    def test_is_current(self):
        with open(os.path.join(os.environ["SOURCE"], "docs/doctor.md"), encoding="utf-8") as file:
            self.assertEqual(file.read(), doctor("--markdown").stdout,
                             "run: gpushmem doctor --markdown > docs/doctor.md")


if __name__ == "__main__":
    unittest.main()
