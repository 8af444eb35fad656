// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE // strtok_r
#include "connect/ways.h"

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "connect/net.h"
#include "core/config.h"
#include "gpu/gpu.h"
#include "gpu/gpu_heap.h"
#include "job/failure.h"
#include "job/job.h"
#include "memory/control.h"
#include "memory/heap.h"
#include "memory/regions.h"
#include "observe/board.h"
#include "progress/watch.h"

static char failures[400]; // sentences of transports that could not be opened

static void note_open_failure(const char *name)
{
    size_t used = strlen(failures);
    snprintf(failures + used, sizeof failures - used, "%s%s", used ? "; " : "", gpsh_last_error());
    GPSH_LOG(INFO, "peers", "transport %s is not available: %s", name, gpsh_last_error());
}

static void on_peer_failed(void *arg, int pe, int code, const char *why)
{
    (void)arg;
    if (code == GPUSHMEM_ERR_PE_FAILED)
        gpsh_peer_failed(pe, code, why);
    else
        gpsh_peer_unreachable(pe, why);
}

static void on_peer_cut_off(void *arg, int pe, const char *why)
{
    (void)arg;
    gpsh_peer_failed(pe, GPUSHMEM_ERR_TRANSPORT, why);
}

static bool is_lost(void *arg, int pe)
{
    (void)arg;
    return (unsigned)pe < (unsigned)gpsh_job()->n_pes &&
           atomic_load(&gpsh_job()->peers[pe].error) != 0;
}

static int pid_of(int pe)
{
    int pid = gpsh_job()->peers[pe].pid;
    return pid ? pid : gpsh_bootstrap_pid_of(gpsh_job()->boot, pe);
}

bool gpsh_peer_lives(int pe)
{
    int pid = pid_of(pe);
    if (pe == gpsh_job()->my_pe)
        return true;
    if (atomic_load(&gpsh_job()->peers[pe].error) == GPUSHMEM_ERR_PE_FAILED)
        return false;
    return pid ? gpsh_watch_is_living(pid) : gpsh_bootstrap_would_tell(gpsh_job()->boot, pe);
}

static bool lives(void *arg, int pe)
{
    (void)arg;
    return gpsh_peer_lives(pe);
}

static bool is_stopped(void *arg, int pe)
{
    (void)arg;
    int pid = pid_of(pe);
    return pid ? gpsh_watch_is_stopped(pid) : gpsh_bootstrap_is_mute(gpsh_job()->boot, pe);
}

// Opening a NIC costs time and pinned memory: it is left alone while an earlier choice reaches
// everybody, or other nodes.
static bool is_needed(const struct gpsh_ways *ways, const struct gpsh_transport_ops *ops)
{
    if (!(ops->caps & GPSH_CAP_REMOTE_NODE))
        return true;
    for (int i = 0; i < gpsh_net()->n_transports; i++)
        if (gpsh_net()->transports[i]->ops->caps & GPSH_CAP_REMOTE_NODE)
            return false;
    if (gpsh_job()->boot->node_n_pes < gpsh_job()->n_pes || ways->apart)
        return true;
    if (gpsh_settings()->amo_agent == GPSH_AGENT_NIC)
        return true;
    for (int i = 0; i < gpsh_net()->n_transports; i++)
        if (gpsh_net()->transports[i]->ops->caps & GPSH_CAP_MAPPED)
            return false;
    return !(gpsh_net()->n_transports && gpsh_job()->n_pes == 1);
}

static gpsh_kernel_queue_fn kernel_queue_told;

void gpsh_net_on_kernel_queue(gpsh_kernel_queue_fn told)
{
    kernel_queue_told = told;
}

static void on_kernel_queue(void *arg, int index, int pe, const struct gpsh_kernel_queue *queue,
                            const char *why)
{
    if (kernel_queue_told)
        kernel_queue_told(arg, index, pe, queue, why);
}

static int kernel_memory(void *arg, size_t bytes, struct gpsh_region *memory)
{
    bool device = gpsh_heap()->device;
    void *base = NULL;
    int fd = -1;
    int status = device ? gpsh_gpu_shared_alloc(bytes, &base, &fd)
                        : gpsh_host_shared_alloc(bytes, &base, &fd);
    (void)arg;
    if (!status)
        *memory = (struct gpsh_region){base, bytes, device ? GPSH_MEMORY_DEVICE : GPSH_MEMORY_HOST,
                                       fd, -1};
    return status;
}

static void kernel_memory_free(void *arg, struct gpsh_region *memory)
{
    (void)arg;
    if (memory->kind == GPSH_MEMORY_DEVICE)
        gpsh_gpu_shared_free(memory->base, memory->bytes, memory->dmabuf_fd);
    else
        gpsh_host_shared_free(memory->base, memory->bytes, memory->dmabuf_fd);
}

static int open_transport(const struct gpsh_transport_ops *ops)
{
    int kernels = ops->kernel_queue && gpsh_settings()->device_post != GPSH_DEVICE_POST_RING
                      ? 1 + (int)gpsh_settings()->contexts
                      : 0;
    struct gpsh_transport_env *env = &gpsh_net_state.envs[gpsh_net()->n_transports];
    *env = (struct gpsh_transport_env){.my_pe = gpsh_job()->my_pe,
                                       .n_pes = gpsh_job()->n_pes,
                                       .node_pe = gpsh_job()->boot->node_my_pe,
                                       .settings = gpsh_settings(),
                                       .copy = gpsh_regions_copy,
                                       .queues = gpsh_heap()->device ? &gpsh_gpu_queue_ops : NULL,
                                       .near_pci = gpsh_regions_pci(),
                                       .can_flush = gpsh_heap()->device && gpsh_gpu_can_flush(),
                                       .channels = gpsh_channel_count(gpsh_settings()) + kernels,
                                       .kernel_channels = kernels,
                                       .kernel_queue = on_kernel_queue,
                                       .kernel_memory = kernel_memory,
                                       .kernel_memory_free = kernel_memory_free,
                                       .locks = offsetof(struct gpsh_control, locks),
                                       .n_locks = GPSH_AMO_LOCKS,
                                       .notes = gpsh_control_entries(gpsh_job()->n_pes) -
                                                3 * (uint64_t)gpsh_job()->n_pes * sizeof(uint64_t),
                                       .peer_failed = on_peer_failed,
                                       .peer_cut_off = on_peer_cut_off,
                                       .peer_lives = lives,
                                       .peer_lost = is_lost,
                                       .peer_stopped = is_stopped};
    env->flows = gpsh_board_flows(gpsh_net()->n_transports, ops->name, &env->flow_stride);
    env->heap_room = gpsh_regions_heap_max();
    for (int r = 0; r < GPSH_REGIONS; r++) {
        env->regions[r] = gpsh_regions_get(r);
        env->mapped[r] = gpsh_heap()->mapped[r];
    }
    int status = ops->open(env, &gpsh_net_state.transports[gpsh_net()->n_transports]);
    if (status == GPUSHMEM_ERR_TRANSPORT || status == GPUSHMEM_ERR_UNSUPPORTED) {
        note_open_failure(ops->name);
        return 0;
    }
    if (status)
        return status;
    const struct gpsh_transport *opened = gpsh_net()->transports[gpsh_net_state.n_transports++];
    if (opened->static_refused[0])
        gpsh_regions_spare_static(opened->static_refused);
    return 0;
}

// What cmake has noted begins with the name: "ofi: libfabric was not found; ...".
static void note_not_built(const char *name)
{
    const char *why = strstr(GPSH_TRANSPORTS_SKIPPED, name);
    size_t length = why ? strcspn(why, ";") : strlen(name);
    gpsh_fail(GPUSHMEM_ERR_TRANSPORT, "this build has no transport %.*s", (int)length,
              why ? why : name);
    note_open_failure(name);
}

int gpsh_ways_open(struct gpsh_ways *ways, const char *names, bool all)
{
    char list[64];
    snprintf(list, sizeof list, "%s", names);
    ways->spared[0] = '\0';
    char *rest = NULL;
    for (char *name = strtok_r(list, ",", &rest); name; name = strtok_r(NULL, ",", &rest)) {
        const struct gpsh_transport_ops *ops = gpsh_transport_find(name);
        if (!ops) {
            note_not_built(name);
            continue;
        }
        if (gpsh_net()->n_transports == GPSH_MAX_TRANSPORTS)
            continue;
        if (!all && !is_needed(ways, ops)) {
            size_t used = strlen(ways->spared);
            snprintf(ways->spared + used, sizeof ways->spared - used, "%s%s", used ? "," : "",
                     name);
            continue;
        }
        int status = open_transport(ops);
        if (status)
            return status;
    }
    if (!gpsh_net()->n_transports)
        return gpsh_fail(GPUSHMEM_ERR_TRANSPORT,
                         "GPUSHMEM_TRANSPORTS=%s: none is available here (%s)",
                         gpsh_settings()->transports, failures);
    return 0;
}

const char *gpsh_ways_failures(void)
{
    return failures;
}

void gpsh_ways_begin(struct gpsh_ways *ways)
{
    *ways = (struct gpsh_ways){0};
    failures[0] = '\0';
}
