// SPDX-License-Identifier: BSD-3-Clause
// Checks of what this process may use.
#define _GNU_SOURCE // cpu_set_t
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>

#include "core/number_list.h"
#include "doctor/check.h"

enum {
    MIB = 1 << 20,
    BESIDE_HEAP = 64 * MIB, // queues, bounce buffers, the teams' scratch memory
    FEWEST_FILES = 1024,
    SMALL_SHM = 64 * MIB, // what docker gives
    CAP_IPC_LOCK_BIT = 14,
    FEWEST_RDMA_OBJECTS = 64,
};

static long long memory_needed(const struct gpsh_host *host)
{
    return gpsh_environment_heap(host) + BESIDE_HEAP;
}

static bool may_lock_anything(const struct gpsh_host *host)
{
    char set[32];
    return gpsh_host_field(host, "proc/self/status", "CapEff", set, sizeof set) &&
           strtoull(set, NULL, 16) >> CAP_IPC_LOCK_BIT & 1;
}

GPSH_CHECK_FUNCTION(memlock)
{
    char limit[32], *end;
    if (!host->ports.n) {
        gpsh_found(finding, GPSH_NOT_APPLICABLE, "no verbs device to register memory with");
        return;
    }
    if (!gpsh_host_field(host, "proc/self/limits", "Max locked memory", limit, sizeof limit)) {
        gpsh_found(finding, GPSH_CANNOT_TELL, "/proc/self/limits says nothing of locked memory");
        return;
    }
    long long bytes = strtoll(limit, &end, 10);
    if (!strcmp(limit, "unlimited"))
        gpsh_found(finding, GPSH_OK, "unlimited");
    else if (may_lock_anything(host))
        gpsh_found(finding, GPSH_OK, "%s bytes, which CAP_IPC_LOCK lifts", limit);
    else if (end == limit || *end)
        gpsh_found(finding, GPSH_CANNOT_TELL, "/proc/self/limits says '%s'", limit);
    else if (bytes < memory_needed(host)) {
        gpsh_found(finding, GPSH_PROBLEM,
                   "this process may lock %lld KiB; a heap of %lld MiB takes %lld MiB",
                   bytes / 1024, gpsh_environment_heap(host) / MIB, memory_needed(host) / MIB);
        if (gpsh_environment_container(host))
            gpsh_mend(finding, "start the container with --ulimit memlock=-1");
    } else
        gpsh_found(finding, GPSH_OK, "%lld MiB", bytes / MIB);
}

GPSH_CHECK_FUNCTION(files)
{
    char limit[32];
    if (!gpsh_host_field(host, "proc/self/limits", "Max open files", limit, sizeof limit))
        gpsh_found(finding, GPSH_CANNOT_TELL, "/proc/self/limits says nothing of open files");
    else if (strcmp(limit, "unlimited") != 0 && atoll(limit) < FEWEST_FILES)
        gpsh_found(finding, GPSH_PROBLEM, "this process may have %s files open", limit);
    else
        gpsh_found(finding, GPSH_OK, "%s", limit);
}

// ---- Memory ----

// "size=65536k" among the options of a mount. 0: none, so half of the machine's memory.
static long long mounted_size(const char *options)
{
    const char *at = strstr(options, "size=");
    if (!at)
        return 0;
    char *end;
    long long n = strtoll(at + 5, &end, 10);
    return *end == 'k' ? n * 1024 : *end == 'm' ? n * MIB : *end == 'g' ? n * 1024 * MIB : n;
}

GPSH_CHECK_FUNCTION(shm)
{
    static char mounts[1 << 16];
    struct statvfs fs;
    int n = gpsh_host_read(host, mounts, sizeof mounts, "proc/mounts");
    const char *line = n > 0 ? strstr(mounts, " /dev/shm ") : NULL;
    if (n < 0) {
        gpsh_found(finding, GPSH_CANNOT_TELL, "/proc/mounts cannot be read (%s)", strerror(-n));
        return;
    }
    if (!line) {
        gpsh_found(finding, GPSH_PROBLEM, "nothing is mounted on /dev/shm");
        return;
    }
    char options[512];
    snprintf(options, sizeof options, "%.*s", (int)strcspn(line, "\n"), line);
    long long bytes = mounted_size(options);
    if (host->live && !statvfs("/dev/shm", &fs))
        bytes = (fs.f_blocks * fs.f_frsize);
    if (bytes && bytes <= SMALL_SHM)
        gpsh_found(finding, GPSH_PROBLEM, "/dev/shm has %lld MiB", bytes / MIB);
    else if (bytes)
        gpsh_found(finding, GPSH_OK, "%lld MiB", bytes / MIB);
    else
        gpsh_found(finding, GPSH_OK, "half of the machine's memory");
    if (finding->result == GPSH_PROBLEM && gpsh_environment_container(host))
        gpsh_mend(finding, "start the container with --shm-size=8g, or --ipc=host");
}

GPSH_CHECK_FUNCTION(memory)
{
    char text[4096], number[32];
    long long needed = memory_needed(host), most;
    if (gpsh_environment_cgroup(host, "memory.max", text, sizeof text) > 0 &&
        strcmp(text, "max") != 0 && (most = strtoll(text, NULL, 10)) < needed) {
        gpsh_found(finding, GPSH_PROBLEM,
                   "the control group gives this job %lld MiB on this node; one PE takes %lld",
                   most / MIB, needed / MIB);
        return;
    }
    if (!gpsh_host_field(host, "proc/meminfo", "MemAvailable", number, sizeof number))
        gpsh_found(finding, GPSH_CANNOT_TELL, "/proc/meminfo does not say what is available");
    else if (strtoll(number, NULL, 10) * 1024 < needed)
        gpsh_found(finding, GPSH_PROBLEM, "%lld MiB are available on this node; one PE takes %lld",
                   strtoll(number, NULL, 10) / 1024, needed / MIB);
    else
        gpsh_found(finding, GPSH_OK, "%lld MiB are available", strtoll(number, NULL, 10) / 1024);
}

GPSH_CHECK_FUNCTION(huge_pages)
{
    char kind[16];
    gpsh_environment_setting(host, "GPUSHMEM_HUGE_PAGES", kind, sizeof kind);
    long long kib = !strcmp(kind, "2m") ? 2048 : !strcmp(kind, "1g") ? 1 << 20 : 0, pages;
    if (!kib)
        gpsh_found(finding, GPSH_NOT_APPLICABLE, "GPUSHMEM_HUGE_PAGES asks for no reserved ones");
    else if (gpsh_host_number(host, &pages,
                              "sys/kernel/mm/hugepages/hugepages-%lldkB/free_hugepages", kib))
        gpsh_found(finding, GPSH_CANNOT_TELL, "/sys/kernel/mm/hugepages does not say");
    else if (pages * kib * 1024 < gpsh_environment_heap(host)) {
        gpsh_found(finding, GPSH_PROBLEM, "%lld pages of %s are free, a heap is %lld MiB", pages,
                   kind, gpsh_environment_heap(host) / MIB);
        gpsh_mend(finding,
                  "echo %lld | sudo tee "
                  "/sys/kernel/mm/hugepages/hugepages-%lldkB/nr_hugepages",
                  gpsh_environment_heap(host) / 1024 / kib + 1, kib);
    } else
        gpsh_found(finding, GPSH_OK, "%lld pages of %s are free", pages, kind);
}

// ---- Processors ----

GPSH_CHECK_FUNCTION(cpus)
{
    char text[8192], list[256];
    const char *rest = list;
    long long quota, period;
    double n = 0;
    if (!gpsh_host_field(host, "proc/self/status", "Cpus_allowed_list", list, sizeof list)) {
        gpsh_found(finding, GPSH_CANNOT_TELL, "/proc/self/status does not say");
        return;
    }
    for (long first, last; gpsh_number_list_next(&rest, &first, &last);)
        n += (double)(last - first + 1);
    if (gpsh_environment_cgroup(host, "cpu.max", text, sizeof text) > 0 &&
        sscanf(text, "%lld %lld", &quota, &period) == 2 && period > 0 &&
        (double)quota / (double)period < n)
        n = (double)quota / (double)period;
    gpsh_found(finding, n >= 2 ? GPSH_OK : GPSH_PROBLEM, "this process may use %g processor%s", n,
               n == 1 ? "" : "s");
}

GPSH_CHECK_FUNCTION(rdma_limit)
{
    char text[4096];
    // "mlx5_0 hca_handle=2 hca_object=2000"
    if (gpsh_environment_cgroup(host, "rdma.max", text, sizeof text) < 0)
        text[0] = '\0';
    for (const char *at = text; (at = strstr(at, "hca_object=")); at++) {
        const char *value = at + strlen("hca_object=");
        if (*value >= '0' && *value <= '9' && atoll(value) < FEWEST_RDMA_OBJECTS)
            gpsh_found(finding, GPSH_PROBLEM,
                       "the control group gives this job %lld queues and pieces of memory of a NIC",
                       atoll(value));
    }
    gpsh_found(finding, GPSH_OK, "the control group sets no small limit");
}

// ---- Containers ----

GPSH_CHECK_FUNCTION(container)
{
    const char *kind = gpsh_environment_container(host);
    if (!kind) {
        gpsh_found(finding, GPSH_NOT_APPLICABLE, "not in a container");
        return;
    }
    if (host->gpus.n && gpsh_host_access(host, 0, "dev/nvidiactl"))
        gpsh_found(finding, GPSH_PROBLEM, "the machine has GPUs, and this container (%s) has none",
                   kind);
    if (host->ports.n && gpsh_host_access(host, 0, "dev/infiniband"))
        gpsh_found(finding, GPSH_PROBLEM,
                   "the machine has RDMA NICs, and this container (%s) has no /dev/infiniband",
                   kind);
    gpsh_found(finding, GPSH_OK, "in a container (%s)", kind);
}
