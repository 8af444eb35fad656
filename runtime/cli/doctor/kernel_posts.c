// SPDX-License-Identifier: BSD-3-Clause
// Whether kernels could post to the NIC by themselves here (GPUSHMEM_DEVICE_POST=nic).
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "doctor/check.h"

enum {
    MELLANOX = 0x15b3,
    RDMA_CORE_WITH_QUEUES = 43, // devx takes dma-bufs
};

static bool has_mlx5(const struct gpsh_host *host)
{
    for (int i = 0; i < host->nics.n; i++)
        if (host->nics.device[i].vendor == MELLANOX)
            return true;
    return false;
}

// Kernels ring by a store to the NIC's register, which the driver maps for root, and for others
// where its option says so. Without, a thread of the host rings for them.
static bool may_map_doorbells(const struct gpsh_host *host)
{
    char parameters[4096];
    if (host->live && geteuid() == 0)
        return true;
    return gpsh_host_read(host, parameters, sizeof parameters, "proc/driver/nvidia/params") > 0 &&
           strstr(parameters, "PeerMappingOverride=1");
}

// What is in the way, and what to do about it; NULL: nothing that can be seen from here.
static const char *obstacle_find(const struct gpsh_host *host, const char **mend)
{
    char target[256];
    *mend = NULL;
    if (!has_mlx5(host))
        return "no NIC is one of NVIDIA's (mlx5)";
    *mend = "apt install ibverbs-providers, which has libmlx5.so.1";
    if (!gpsh_host_library(host, "libmlx5.so.1", target, sizeof target))
        return "there is no libmlx5.so.1, which tells where a NIC's queues are";
    *mend = "see the check gpudirect";
    if (!gpsh_nics_reach_gpus(host))
        return "NICs cannot reach GPU memory";
    return NULL;
}

// Where their queues would be. "libmlx5.so.1.24.44.0" is of rdma-core 44.
static void describe_queues(const struct gpsh_host *host, char *text, size_t bytes)
{
    char target[256] = "";
    unsigned version = 0;
    gpsh_host_library(host, "libmlx5.so.1", target, sizeof target);
    bool told = sscanf(target, "libmlx5.so.1.%*u.%u", &version) == 1;
    if (told && version < RDMA_CORE_WITH_QUEUES)
        snprintf(text, bytes, "in host memory: libmlx5.so.1 of rdma-core %u is older than %d",
                 version, RDMA_CORE_WITH_QUEUES);
    else if (!gpsh_gpus_have_dmabuf(host))
        snprintf(text, bytes, "in host memory: the driver has no dma-buf of GPU memory");
    else
        snprintf(text, bytes, "in GPU memory");
}

static void tell_possible(const struct gpsh_host *host, struct gpsh_finding *finding, bool wanted)
{
    char where[128];
    describe_queues(host, where, sizeof where);
    if (may_map_doorbells(host)) {
        gpsh_found(finding, GPSH_OK,
                   "kernels could post to mlx5 NICs, as far as can be told without trying, by "
                   "queues %s",
                   where);
        return;
    }
    gpsh_found(finding, wanted ? GPSH_PROBLEM : GPSH_OK,
               "kernels could post to mlx5 NICs, by queues %s, but a thread of the host would ring "
               "for them: the driver does not map a NIC's registers for plain users "
               "(PeerMappingOverride)",
               where);
    if (wanted)
        gpsh_mend(finding, "options nvidia NVreg_RegistryDwords=\"PeerMappingOverride=1;\" in "
                           "/etc/modprobe.d, then reboot");
}

// Nobody has to: by default a proxy thread posts.
GPSH_CHECK_FUNCTION(kernel_posts)
{
    char post[32];
    const char *mend, *obstacle = obstacle_find(host, &mend);
    gpsh_environment_setting(host, "GPUSHMEM_DEVICE_POST", post, sizeof post);
    if (!obstacle)
        tell_possible(host, finding, !strcmp(post, "nic"));
    else if (strcmp(post, "nic") != 0)
        gpsh_found(finding, GPSH_NOT_APPLICABLE, "a proxy thread posts for kernels: %s", obstacle);
    else {
        gpsh_found(finding, GPSH_PROBLEM, "GPUSHMEM_DEVICE_POST=nic, and %s", obstacle);
        if (mend)
            gpsh_mend(finding, "%s", mend);
    }
}
