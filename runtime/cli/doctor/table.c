// SPDX-License-Identifier: BSD-3-Clause
// Every check: also the text of docs/doctor.md.
#include "doctor/check.h"

#define LOOK(name)         .look = gpsh_check_##name
#define LOOK_AT_ROCE(name) .need = GPSH_NEEDS_ROCE_PORT, .each = GPSH_EACH_ROCE_PORT, LOOK(name)

const struct gpsh_check gpsh_checks[] = {
    // ---- GPUs ----
    {"driver", "NVIDIA's kernel driver", "/proc/driver/nvidia/version and the GPUs on the PCI bus",
     "Without its driver, 515 or newer, a GPU is not used: heaps are host memory and kernels run "
     "on CPU threads.",
     "sudo modprobe nvidia; if it is not installed, install the distribution's NVIDIA driver",
     .need = GPSH_NEEDS_GPU, LOOK(driver)},
    {"cuda", "CUDA's library",
     "libcuda.so.1, its version beside the kernel driver's, and the GPUs that it gives this "
     "process",
     "Programs get no GPU. The library and the kernel driver have to be of the same version; "
     "CUDA_VISIBLE_DEVICES may hide GPUs.",
     "nvidia-smi; reboot after an update of the driver; in a container: --gpus all", LOOK(cuda)},
    {"gpu-files", "Files of the GPUs", "/dev/nvidiactl, /dev/nvidia-uvm and /dev/nvidia0, 1, ...",
     "The driver is opened through these files. Where one is missing or closed to this user, CUDA "
     "finds no GPU.",
     "sudo nvidia-modprobe -u -c 0", .need = GPSH_NEEDS_GPU, LOOK(gpu_files)},
    {"fabric-manager", "NVIDIA's fabric manager",
     "NVSwitches on the PCI bus and the process nv-fabricmanager",
     "GPUs behind NVSwitches cannot be used until the fabric manager has set the switches up: "
     "cuInit fails with \"system not yet initialized\".",
     "sudo systemctl enable --now nvidia-fabricmanager (of the driver's version)",
     .need = GPSH_NEEDS_SWITCH, LOOK(fabric_manager)},
    {"gpudirect", "GPUDirect RDMA",
     "the kernel module nvidia-peermem, and what dma-buf needs: Linux 5.12 and the open kernel "
     "driver",
     "NICs cannot reach GPU memory. Data is staged through pinned host memory, which is slower.",
     "sudo modprobe nvidia-peermem, or install the driver's open kernel modules",
     .need = GPSH_NEEDS_GPU, LOOK(gpudirect)},
    {"bar1", "The window into GPU memory", "the largest base address register of each GPU",
     "NICs and other GPUs reach GPU memory through this window. A heap that does not fit in cannot "
     "be registered.",
     "turn on \"Above 4G decoding\" and resizable BAR in the firmware setup, or lower "
     "GPUSHMEM_HEAP_SIZE",
     .need = GPSH_NEEDS_GPU, .each = GPSH_EACH_GPU, LOOK(bar1)},
    // ---- NICs ----
    {"verbs", "Verbs devices", "/sys/class/infiniband and the NICs on the PCI bus",
     "There is no RDMA NIC, or its driver is not loaded: PEs of other nodes are reached by the "
     "transport ofi, which is slower over TCP, or not at all where libfabric is missing.",
     "sudo modprobe -a mlx5_ib ib_uverbs (or the driver of that NIC); apt install rdma-core",
     LOOK(verbs)},
    {"libfabric", "Libfabric's providers",
     "libfabric.so.1, the provider that the transport ofi takes and what that can do",
     "Hosts without RDMA NICs of one kind, which reach each other by the transport ofi, do not.",
     "apt install libfabric1; fi_info lists the providers; unset GPUSHMEM_OFI_PROVIDER and "
     "GPUSHMEM_OFI_DOMAIN",
     LOOK(libfabric)},
    {"uverbs", "Files of the NICs", "/dev/infiniband/uverbs0, 1, ...",
     "Programs post to a NIC through these files. Without them the transport verbs finds no usable "
     "device.",
     "sudo modprobe ib_uverbs; ls -l /dev/infiniband", .need = GPSH_NEEDS_PORT, LOOK(uverbs)},
    {"port", "State of the ports", "the state of each port in /sys/class/infiniband",
     "No data passes a port that is not active.",
     "ibstat; sudo ip link set dev INTERFACE up (RoCE); look at cable and switch",
     .need = GPSH_NEEDS_SEEN_PORT, .each = GPSH_EACH_PORT, LOOK(port)},
    {"rate", "Rate of the ports", "the rate and the lanes of each active port",
     "A port that is slower than its like has a bad cable or is set up differently. A port of less "
     "than half the best rate is left out by the library.",
     "ibstat; ethtool INTERFACE; change the cable; look at the switch's settings",
     .need = GPSH_NEEDS_SEEN_PORT, .each = GPSH_EACH_ACTIVE_PORT, LOOK(rate)},
    {"mtu", "Packets of RoCE", "the MTU of the interface of each active RoCE port",
     "RoCE packets carry 4,096 bytes if the interface takes them, else 1,024 or fewer, which costs "
     "bandwidth and messages per second.",
     "sudo ip link set dev INTERFACE mtu 9000, here, on the other hosts and on the switch",
     LOOK_AT_ROCE(mtu)},
    {"gid", "Addresses of RoCE", "the GID table of each active RoCE port",
     "RoCE v2 addresses come from the IP addresses of the interface. Without one a queue pair "
     "cannot be connected; version 1 does not pass routers.",
     "sudo ip addr add ADDRESS/24 dev INTERFACE", LOOK_AT_ROCE(gid)},
    {"namespace", "Network namespace of RoCE",
     "whether the interfaces of the GID table are in this network namespace",
     "Addresses of another namespace cannot be used from here: typical of containers with a "
     "network of their own.",
     "start the container with --network host, or move the device: rdma dev set DEVICE netns NAME",
     LOOK_AT_ROCE(namespace)},
    {"pfc", "Priority flow control",
     "/sys/class/net/INTERFACE/qos/pfc of RoCE ports, which NVIDIA's own driver package has",
     "A switch with a full buffer drops packets of RoCE, and each loss costs a timeout or a "
     "retransmission.",
     "sudo mlnx_qos -i INTERFACE --trust dscp --pfc 0,0,0,1,0,0,0,0, and the same on the switch",
     LOOK_AT_ROCE(pfc)},
    {"ecn", "Congestion control",
     "/sys/class/net/INTERFACE/ecn of RoCE ports, and the count of marked packets",
     "Senders do not slow down where many send to one, so buffers fill and flow control stops "
     "others, too.",
     "echo 1 | sudo tee /sys/class/net/INTERFACE/ecn/roce_{np,rp}/enable/3", LOOK_AT_ROCE(ecn)},
    {"loss", "Lost packets",
     "the NICs' counts of gaps in sequence and of timeouts, against those of packets",
     "Packets were lost since the driver was loaded: a bad cable, or RoCE without flow control.",
     "watch grep . /sys/class/infiniband/*/ports/1/hw_counters/packet_seq_err while the job runs; "
     "see the checks pfc, ecn and rate",
     .varies = true, .need = GPSH_NEEDS_ACTIVE_PORT, .each = GPSH_EACH_ACTIVE_PORT, LOOK(loss)},
    {"routing", "Adaptive routing",
     "the count of packets that came out of turn, and GPUSHMEM_VERBS_ORDER",
     "Where packets take different ways, a signal could overtake its data unless the library reads "
     "in between, which GPUSHMEM_VERBS_ORDER=queue forbids.",
     "unset GPUSHMEM_VERBS_ORDER", .varies = true, .need = GPSH_NEEDS_ACTIVE_PORT, LOOK(routing)},
    // ---- Between GPU and NIC ----
    {"distance", "From GPU to NIC", "where GPUs and NICs are on the PCI buses, by hwloc",
     "The NIC that is nearest to a GPU is on the other socket. Its traffic crosses the link "
     "between them, which is slower.",
     "gpushmem topo; move the NIC to a slot of the GPU's socket, or set "
     "GPUSHMEM_GPUDIRECT_DISTANCE=node to stage large transfers",
     .need = GPSH_NEEDS_BOTH, LOOK(distance)},
    {"kernel-posts", "Kernels that post to the NIC",
     "mlx5 NICs, libmlx5.so.1, what GPUDirect RDMA needs, and whether the driver maps a NIC's "
     "doorbell for kernels",
     "GPUSHMEM_DEVICE_POST=nic has no effect: a proxy thread posts what kernels do; or a thread "
     "rings for them. Either takes longer.",
     "unset GPUSHMEM_DEVICE_POST", .need = GPSH_NEEDS_BOTH, LOOK(kernel_posts)},
    {"acs", "PCIe access control",
     "the ACS registers of the bridges between GPUs and NICs (root only)",
     "A switch sends what GPU and NIC tell each other up to the root complex and back, which takes "
     "half of the bandwidth or more.",
     "sudo gpushmem doctor acs tells; sudo setpci -s BRIDGE ECAP_ACS+6.w=0000 turns it off",
     .need = GPSH_NEEDS_BOTH, LOOK(acs)},
    {"iommu", "IOMMU", "the IOMMU groups of GPUs and NICs",
     "Each access between devices is translated by the IOMMU, in the root complex, which costs "
     "bandwidth; and nvidia-peermem may fail.",
     "iommu=pt on the kernel's command line (iommu.passthrough=1 on Arm), then reboot",
     .need = GPSH_NEEDS_BOTH, .each = GPSH_EACH_DEVICE, LOOK(iommu)},
    {"relaxed-order", "Relaxed ordering", "the PCIe control register of each NIC (root only)",
     "The NIC's writes wait for each other in the PCIe fabric, which costs bandwidth to GPUs and "
     "on machines of several sockets.",
     "sudo gpushmem doctor relaxed-order tells; mlxconfig -d DEVICE set PCI_WR_ORDERING=1",
     .need = GPSH_NEEDS_NIC, .each = GPSH_EACH_NIC, LOOK(relaxed)},
    {"pcie-link", "PCIe links", "lanes and speed of GPUs and NICs, now and at most",
     "A device runs slower than it could: a slot with fewer lanes, a riser, or a bad contact.",
     "sudo lspci -vv -s ADDRESS | grep -E 'LnkCap|LnkSta'; put the card into another slot",
     .need = GPSH_NEEDS_DEVICE, .each = GPSH_EACH_DEVICE, LOOK(link)},
    // ---- This process ----
    {"memlock", "Memory that may be locked", "the limit of locked memory in /proc/self/limits",
     "Registering the heap with a NIC fails with \"Cannot allocate memory\".",
     "ulimit -l unlimited; for good: a line \"* - memlock unlimited\" in "
     "/etc/security/limits.conf, LimitMEMLOCK=infinity in slurmd's unit",
     LOOK(memlock)},
    {"open-files", "Open files", "the limit of open files in /proc/self/limits",
     "Heaps of the node's PEs, sockets of the bootstrap and completion channels are files: large "
     "jobs run out of them.",
     "ulimit -n 65536", LOOK(files)},
    {"shm", "/dev/shm", "/proc/mounts, and the size of /dev/shm",
     "The library's own heaps do not lie there, but MPI, NCCL and PMIx servers keep their shared "
     "memory there and die with a bus error when it is full.",
     "sudo mount -t tmpfs tmpfs /dev/shm; or a larger one: -o remount,size=50%", LOOK(shm)},
    {"memory", "Memory for heaps", "the control group's memory.max and /proc/meminfo",
     "A PE that fills its heap is killed by the kernel, without a word of its own.",
     "ask the batch system for more memory (sbatch --mem), or lower GPUSHMEM_HEAP_SIZE",
     .varies = true, LOOK(memory)},
    {"huge-pages", "Huge pages",
     "the free huge pages, if GPUSHMEM_HUGE_PAGES asks for reserved ones",
     "The heap cannot be made of pages of that size.",
     "echo N | sudo tee /proc/sys/vm/nr_hugepages, or unset GPUSHMEM_HUGE_PAGES", .varies = true,
     LOOK(huge_pages)},
    {"cpus", "Processors",
     "the processors that this process may use, and the control group's cpu.max",
     "A proxy thread polls beside the program: with one processor for both, each waits for the "
     "other's time slice.",
     "srun --cpus-per-task=2, gpushmem run --bind none, or docker --cpus 2", LOOK(cpus)},
    {"rdma-limit", "Limit of NIC resources", "the control group's rdma.max",
     "Queue pairs or registered memory run out, and connections fail with \"Resource temporarily "
     "unavailable\".",
     "raise rdma.max of the control group, as root", .need = GPSH_NEEDS_PORT, LOOK(rdma_limit)},
    {"container", "Containers", "the marks of containers, and what they lack of the machine",
     "The container does not have the devices that the machine has.",
     "docker run --gpus all --device=/dev/infiniband --network host --ipc=host --cap-add IPC_LOCK "
     "--ulimit memlock=-1",
     LOOK(container)},
    // ---- The job ----
    {"settings", "Settings", "the GPUSHMEM_* variables and the settings files",
     "gpushmem_init fails with the same sentence, or ignores the setting.",
     "gpushmem info lists what is allowed", LOOK(settings)},
    {"launcher", "The launcher", "the variables that launchers set",
     "gpushmem_init fails: the processes cannot find each other.",
     "gpushmem run, prterun, mpirun of Open MPI, or srun --mpi=pmix", LOOK(launcher)},
    {"pmix", "The PMIx server",
     "the PMIX_* variables, whether the server's port is open, and whether any interface has an "
     "address",
     "gpushmem_init fails, since the launcher that started this process cannot be asked who else "
     "is there.",
     "start the job again; to run without a launcher: GPUSHMEM_BOOTSTRAP=single PROGRAM",
     .varies = true, LOOK(pmix)},
    {"self-test", "Writing through the NIC",
     "a heap on the GPU, or in host memory, that is registered, written through the NIC in "
     "loop-back and read back",
     "What the library needs does not work here, whatever the other checks say.",
     "see the checks above, and GPUSHMEM_LOG_LEVEL=info gpushmem info --peers", .varies = true,
     LOOK(self_test)},
    {0},
};
