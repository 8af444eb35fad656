// SPDX-License-Identifier: BSD-3-Clause
// The files of the machine that `gpushmem doctor` looks at, below a root: "/", or a directory that
// holds a copy of another machine's /sys, /proc, /dev and so on. Checks ask the machine for nothing
// else, unless `live` says that it is this one.
#ifndef GPSH_DOCTOR_HOST_H
#define GPSH_DOCTOR_HOST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { GPSH_HOST_NAME_BYTES = 64, GPSH_HOST_NAMES = 4096 };

// ---- Devices, as sysfs shows them ----

enum { GPSH_PCI_BYTES = 32, GPSH_PCI_MOST = 64, GPSH_PCI_PATH = 16 };

struct gpsh_pci {
    char address[GPSH_PCI_BYTES];
    unsigned vendor, class_code; // the class with its subclass: 0x0302
};

struct gpsh_pcis {
    int n;
    struct gpsh_pci device[GPSH_PCI_MOST];
};

enum { GPSH_PORTS_MOST = 64 };

struct gpsh_port {
    char name[GPSH_HOST_NAME_BYTES + 12];   // "mlx5_0:1"
    char folder[GPSH_HOST_NAME_BYTES + 40]; // "sys/class/infiniband/mlx5_0/ports/1"
    char interface[GPSH_HOST_NAME_BYTES];   // of the network; "" if there is none, or not here
    char state[32];                         // "ACTIVE"; "" if it cannot be read
    bool active, ethernet;
    double gbps; // 0: not known
    int lanes;   // 0: not known
};

struct gpsh_ports {
    int status; // 0, or -errno: /sys/class/infiniband is not there or not to be read
    int n, n_active, n_ethernet; // the last one counts active ports
    struct gpsh_port port[GPSH_PORTS_MOST];
};

struct gpsh_host {
    const char *root; // "" for "/"
    bool live;
    int bus_status;            // 0, or -errno: the PCI bus cannot be read
    struct gpsh_pcis gpus;     // NVIDIA's
    struct gpsh_pcis nics;     // with a verbs device, or such that could have one
    struct gpsh_pcis switches; // bridges of NVLink
    struct gpsh_ports ports;   // of verbs devices
};

// Reads what stands in the struct after `live`.
void gpsh_host_devices(struct gpsh_host *host);

// ---- Files ----

// Paths are formats, without a slash at the beginning.
#define GPSH_HOST_PATH(n) __attribute__((format(printf, n, n + 1)))

// Reads a file as text, without white space at its end. The length, or -errno. A longer file is
// cut.
int gpsh_host_read(const struct gpsh_host *host, char *text, size_t bytes, const char *path, ...)
    GPSH_HOST_PATH(4);
// The same without changes to the content: white space and zeros stay.
int gpsh_host_read_raw(const struct gpsh_host *host, void *data, size_t bytes, const char *path,
                       ...) GPSH_HOST_PATH(4);
// A whole number, decimal or with 0x: 0, -errno, or -EINVAL if the file holds something else.
int gpsh_host_number(const struct gpsh_host *host, long long *number, const char *path, ...)
    GPSH_HOST_PATH(3);
// 0 if it exists and may be used so (R_OK | W_OK), or -errno.
int gpsh_host_access(const struct gpsh_host *host, int mode, const char *path, ...)
    GPSH_HOST_PATH(3);
// What a symbolic link holds.
int gpsh_host_link(const struct gpsh_host *host, char *target, size_t bytes, const char *path, ...)
    GPSH_HOST_PATH(4);

// Where a library of that name leads to, in the usual folders: "libcuda.so.580.65.06"; "" if it is
// no link. False: it is in none of them.
bool gpsh_host_library(const struct gpsh_host *host, const char *name, char *target, size_t bytes);

struct gpsh_names {
    int n;
    char name[GPSH_HOST_NAMES][GPSH_HOST_NAME_BYTES]; // sorted, digits by their value
};
// What a directory holds: 0 or -errno. Names that are longer are left out.
int gpsh_host_list(const struct gpsh_host *host, struct gpsh_names *names, const char *path, ...)
    GPSH_HOST_PATH(3);

// Whether a process of this name runs. The kernel keeps 15 characters of it.
bool gpsh_host_runs(const struct gpsh_host *host, const char *name);

// A variable of the environment that the doctor was started with. False if it is not set.
bool gpsh_host_variable(const struct gpsh_host *host, const char *name, char *value, size_t bytes);
// All of them, like environ.
char *const *gpsh_host_environment(const struct gpsh_host *host);

// ---- PCI devices ----

// The bridges above a device, the outermost first, and its own address last; how many.
int gpsh_pci_path(const struct gpsh_host *host, const char *address,
                  char path[GPSH_PCI_PATH][GPSH_PCI_BYTES]);

// Its configuration space. A plain user gets the first 64 bytes. How many, or -errno.
enum { GPSH_PCI_CONFIG = 4096 };
int gpsh_pci_config(const struct gpsh_host *host, const char *address,
                    unsigned char config[GPSH_PCI_CONFIG]);
// The offset of a capability, or of an extended one; 0: none, -1: not to be read by this user.
int gpsh_pci_capability(const unsigned char *config, int bytes, unsigned id);
int gpsh_pci_extended(const unsigned char *config, int bytes, unsigned id);

// ---- The process and what it runs in ----

// "docker", "podman", ... or NULL outside containers.
const char *gpsh_environment_container(const struct gpsh_host *host);

// Bytes of GPUSHMEM_HEAP_SIZE, or its default.
long long gpsh_environment_heap(const struct gpsh_host *host);

// A variable, or what settings files say for it: the value, or "" if nobody has given one.
const char *gpsh_environment_setting(const struct gpsh_host *host, const char *name, char *value,
                                     size_t bytes);

// A file of this process's control group, "memory.max": 0, -errno or -ENOENT without such a group.
int gpsh_environment_cgroup(const struct gpsh_host *host, const char *file, char *text,
                            size_t bytes);

// The word after "Name:" in a file like /proc/self/status; false if there is none.
bool gpsh_host_field(const struct gpsh_host *host, const char *path, const char *name, char *value,
                     size_t bytes);

#endif
