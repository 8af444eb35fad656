// SPDX-License-Identifier: BSD-3-Clause
// The address space of a heap is taken at init, here and where peers map it, so a larger heap is a
// longer file; one in GPU memory gets a further allocation, which goes to the node's PEs as a
// descriptor. NICs need a key for what was added: each PE leaves its own in its control region, and
// reads the others' once all have met.
#include "api/growth.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bootstrap/fd_exchange.h"
#include "comm/context.h"
#include "comm/sync.h"
#include "connect/net.h"
#include "job/job.h"
#include "memory/control.h"
#include "memory/gpu_region.h"
#include "memory/heap.h"
#include "memory/regions.h"
#include "proxy/device_side.h"

// By which the node's PEs take what is added to heaps in GPU memory.
static struct gpsh_fd_exchange exchange = {.socket = -1};
static uint64_t growths; // tried so far

void gpsh_heap_growth_init(void)
{
    growths = 0;
}

bool gpsh_heap_may_grow(void)
{
    return gpsh_regions_heap_max() > gpsh_heap_bytes();
}

// Twice as much, or what is needed: so there are few pieces. 0: the limit is reached.
static uint64_t bytes_to_add(uint64_t need)
{
    uint64_t unit = 2 << 20, page = gpsh_regions_page_bytes(GPSH_HEAP);
    unit = page > unit ? page : unit;
    uint64_t max = gpsh_regions_heap_max(), now = gpsh_heap_bytes();
    uint64_t room = (max - now) / unit * unit;
    if (max < now || need > room)
        return 0;
    need = (need + unit - 1) / unit * unit;
    uint64_t more = need > now ? need : now / unit * unit;
    return more < room && more ? more : room;
}

static struct gpsh_transport *extending(void)
{
    for (int i = 0; i < gpsh_net()->n_transports; i++)
        if (gpsh_net()->transports[i]->ops->extend)
            return gpsh_net()->transports[i];
    return NULL;
}

// This PE's part. `buffer`: memory of the program, or NULL.
static int grow_here(uint64_t more, const void *buffer, struct gpsh_growth *mine)
{
    struct gpsh_transport *t = extending();
    if (!more)
        return gpsh_fail(GPUSHMEM_ERR_NO_MEMORY,
                         "it may have %" PRIu64 " bytes in all; raise GPUSHMEM_HEAP_SIZE or "
                         "GPUSHMEM_HEAP_MAX",
                         gpsh_regions_heap_max() - gpsh_heap()->first_bytes +
                             gpsh_heap()->user_bytes);
    int status = buffer ? gpsh_regions_heap_adopt(buffer, more)
                        : gpsh_regions_heap_resize(gpsh_heap_bytes() + more);
    if (status || !t)
        return status;
    struct gpsh_region chunk = gpsh_regions_added();
    status = t->ops->extend(t, &chunk, mine->keys);
    if (status) {
        char why[256];
        snprintf(why, sizeof why, "%s", gpsh_last_error());
        (void)gpsh_regions_heap_resize(gpsh_heap_bytes());
        gpsh_fail(status, "%s", why);
    }
    return status;
}

static void undo_here(void)
{
    struct gpsh_transport *t = extending();
    if (t)
        t->ops->retract(t);
    (void)gpsh_regions_heap_resize(gpsh_heap_bytes());
}

// Also ready to take what the node's PEs add.
static int prepare_here(uint64_t more, const void *buffer, struct gpsh_growth *mine)
{
    int status = grow_here(more, buffer, mine);
    if (status || !gpsh_heap()->device)
        return status;
    status = gpsh_fd_exchange_open(&exchange, gpsh_job()->boot, gpsh_job()->generation);
    if (status)
        undo_here();
    else
        snprintf(mine->why, sizeof mine->why, "%s", exchange.path);
    return status;
}

static int read_growth(int pe, struct gpsh_growth *theirs)
{
    return gpsh_control_read(pe,
                             offsetof(struct gpsh_control, growth) + growths % 2 * sizeof *theirs,
                             theirs, sizeof *theirs);
}

// What the program has called for.
struct asked {
    const char *function;
    uint64_t bytes;     // of the block
    const void *buffer; // memory of the program, or NULL
};

static int judge(const struct asked *asked, int pe, const struct gpsh_growth *mine,
                 const struct gpsh_growth *theirs)
{
    const char *function = asked->function;
    if (theirs->status < 0 && asked->buffer)
        return gpsh_fail((int)theirs->status,
                         "%s: the buffer of PE %d in GPU memory cannot become symmetric: %.*s",
                         function, pe, (int)sizeof theirs->why, theirs->why);
    if (theirs->status < 0)
        return gpsh_fail((int)theirs->status,
                         "%s: no block of %" PRIu64
                         " bytes is free, and the heap of PE %d cannot grow: %.*s",
                         function, asked->bytes, pe, (int)sizeof theirs->why, theirs->why);
    if (theirs->number != mine->number || theirs->bytes != mine->bytes)
        return gpsh_fail(GPUSHMEM_ERR_NO_MEMORY,
                         "%s: the heap of PE %d would grow by %" PRIu64 " bytes and that of PE %d "
                         "by %" PRIu64 ": give all PEs the same GPUSHMEM_HEAP_MAX",
                         function, pe, theirs->bytes, gpsh_job()->my_pe, mine->bytes);
    return 0;
}

// PE 0 first, so that all say the same. A PE that has not grown has no place for keys.
static int learn_of_all(const struct asked *asked, const struct gpsh_growth *mine)
{
    struct gpsh_transport *t = extending();
    struct gpsh_growth theirs;
    int status = 0;
    for (int pe = 0; pe < gpsh_job()->n_pes && !status; pe++) {
        status = read_growth(pe, &theirs);
        if (!status)
            status = judge(asked, pe, mine, &theirs);
        if (!status && t && !mine->status)
            status = t->ops->extended(t, pe, theirs.keys);
    }
    return status;
}

static int map(void *arg, int index, const struct gpsh_fd_set *fds)
{
    (void)arg;
    return gpsh_gpu_region_map_last(gpsh_job()->boot->node_pes[index], fds->fds[0]);
}

// Of heaps in GPU memory: the node's PEs map what each of them has added.
static int map_node(void)
{
    const struct gpsh_bootstrap *boot = gpsh_job()->boot;
    const struct gpsh_fd_set mine = {.fds = {gpsh_gpu_region_last_fd()}, .count = 1};
    int n = boot->node_n_pes, status = 0;
    struct gpsh_growth *theirs = calloc((size_t)n, sizeof *theirs);
    const char **where = calloc((size_t)n, sizeof *where);
    if (!theirs || !where)
        status = gpsh_fail(GPUSHMEM_ERR_NO_MEMORY, "no memory for %d PEs of this node", n);
    for (int i = 0; i < n && !status; i++) {
        status = read_growth(boot->node_pes[i], &theirs[i]);
        where[i] = theirs[i].why;
    }
    if (!status)
        status = gpsh_fd_exchange_run(&exchange, boot->my_pe, boot->node_pes, where, n, &mine, map,
                                      NULL, gpsh_fd_exchange_ms(boot));
    free(where);
    free(theirs);
    return status;
}

int gpsh_heap_grow(const char *function, enum gpsh_collective_kind kind, uint64_t a, uint64_t b,
                   uint64_t bytes, uint64_t need, const void *buffer)
{
    const struct asked asked = {.function = function, .bytes = bytes, .buffer = buffer};
    const uint64_t more = buffer ? bytes : bytes_to_add(need);
    struct gpsh_growth *mine = &gpsh_heap()->control->growth[++growths % 2];
    *mine = (struct gpsh_growth){.number = growths, .bytes = more};
    int here = prepare_here(more, buffer, mine);
    mine->status = here;
    if (here)
        snprintf(mine->why, sizeof mine->why, "%.*s", (int)sizeof mine->why - 1, gpsh_last_error());
    int status = gpsh_barrier_at(kind, a, b, GPSH_NO_BLOCK, function);
    if (status == GPUSHMEM_ERR_ASYMMETRY)
        growths--; // as on PEs that are in another call
    if (!status)
        status = learn_of_all(&asked, mine);
    if (!status && gpsh_heap()->device)
        status = gpsh_barrier_agree(function, kind, a, b, map_node());
    gpsh_fd_exchange_close(&exchange);
    if (status && !here)
        undo_here();
    if (status)
        return status;
    gpsh_heap_has_grown(more);
    gpsh_device_side_heap_grown();
    GPSH_LOG(INFO, "heap", "%" PRIu64 " bytes more, %" PRIu64 " in all", more, gpsh_heap_bytes());
    return 0;
}

void gpsh_heap_adopted_ends(const void *symmetric)
{
    struct gpsh_transport *t = extending();
    if (t)
        (void)t->ops->buffer_unregister(t, symmetric);
}
