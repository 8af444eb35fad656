// SPDX-License-Identifier: BSD-3-Clause
// The queues that kernels post to, as the host keeps them: kernel_queues.c makes them, and
// kernel_requests.c looks at what kernels have posted there.
#ifndef GPSH_KERNEL_LANE_H
#define GPSH_KERNEL_LANE_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/thread.h"
#include "gpu/device_memory.h"
#include "gpushmem/device_abi.h"
#include "job/job.h"
#include "proxy/handle.h"
#include "proxy/kernel_completions.h"
#include "transport/transport.h"

// What the host knows of a queue.
struct gpsh_known_queue {
    struct gpsh_kernel_queue queue;
    uint64_t *marks; // device memory
    bool told;
    bool waits; // for the thread that maps it
    bool over;  // it has failed, which kernels know
    bool heard; // it has failed, which the program was told
    // completions below this, modulo 2^24, were looked at for failures
    uint32_t looked;
};

struct gpsh_kernel_lane {
    pthread_mutex_t lock;
    const struct gpsh_device_memory *memory;
    // A table for each context, the default one's first, in device memory; NULL: kernels post to no
    // NIC. A queue's number counts the PEs of all tables.
    char *tables;
    size_t table_bytes;
    int n_tables;
    struct gpsh_known_queue *known;  // [n_tables * n_pes]
    uint32_t *n_used_of;             // [n_tables] queues of that table that have ever been up
    struct gpushmem_nic_queue *copy; // as one was read last, host memory
    struct gpsh_completions completions;
    uint32_t turn;                 // which queue is looked at first
    uint32_t *used, n_used;        // [n_used] queues that have ever been up
    uint32_t n_waiting;            // queues that wait for the watcher
    struct gpsh_handle_host *host; // where answers land
    bool said;                     // why some PE's queue cannot be had
    bool asked;                    // for any queue
    bool host_rings;               // for kernels, of some queue
    // Finds failures, and maps queues into a GPU, whose driver may have to wait for kernels.
    struct gpsh_thread watcher;
    pthread_cond_t wake;
    bool stop;
    void **mapped; // [n_mapped]
    size_t n_mapped;
};

static inline size_t gpsh_lane_n_queues(const struct gpsh_kernel_lane *lane)
{
    return (size_t)lane->n_tables * (size_t)gpsh_job()->n_pes;
}

static inline int gpsh_lane_pe_of(uint32_t number)
{
    return (int)(number % (uint32_t)gpsh_job()->n_pes);
}

// Which context's; 0: the default one.
static inline int gpsh_lane_table_of(uint32_t number)
{
    return (int)(number / (uint32_t)gpsh_job()->n_pes);
}

// In device memory.
static inline struct gpushmem_nic *gpsh_lane_table(const struct gpsh_kernel_lane *lane, int table)
{
    return (struct gpushmem_nic *)(void *)(lane->tables + (size_t)table * lane->table_bytes);
}

// In device memory.
static inline struct gpushmem_nic_queue *gpsh_lane_queue(const struct gpsh_kernel_lane *lane,
                                                         uint32_t number)
{
    return &gpushmem_nic_queues(
        gpsh_lane_table(lane, gpsh_lane_table_of(number)))[gpsh_lane_pe_of(number)];
}

// A word of a table, which kernels may look at meanwhile.
static inline void gpsh_lane_write_word(const struct gpsh_kernel_lane *lane, uint32_t *to,
                                        uint32_t value)
{
    if (lane->memory->cpu_threads)
        __atomic_store_n(to, value, __ATOMIC_RELEASE);
    else
        lane->memory->device_write(to, &value, sizeof value);
}

#endif
