// SPDX-License-Identifier: BSD-3-Clause
#include "proxy/kernel_completions.h"

#include <stddef.h>

#include "gpushmem/gpushmem.h"

enum {
    CQE_ERROR = 13,
    CQE_INVALID = 15,
    WINDOW = 64, // completions that are read of a GPU's memory at once
};

// Those: entries [first, +n) of the queue.
struct window {
    uint32_t first, n;
};

int gpsh_completions_open(struct gpsh_completions *c, const struct gpsh_device_memory *memory)
{
    c->memory = memory;
    c->cqes = memory->host_alloc((size_t)WINDOW * GPSH_CQE_BYTES);
    return c->cqes ? 0 : GPUSHMEM_ERR_NO_MEMORY;
}

void gpsh_completions_close(struct gpsh_completions *c)
{
    if (c->cqes)
        c->memory->host_free(c->cqes, (size_t)WINDOW * GPSH_CQE_BYTES);
    c->cqes = NULL;
}

bool gpsh_completions_are_far(const struct gpsh_completions *c,
                              const struct gpsh_kernel_queue *queue)
{
    return queue->near_gpu && c->memory->device_read;
}

// The part of completion `number` that has a meaning. NULL: it cannot be read.
static const char *cqe_at(const struct gpsh_completions *c, const struct gpsh_kernel_queue *queue,
                          uint32_t number, struct window *window)
{
    uint32_t entry = number & (queue->cqes - 1), left = queue->cqes - entry;
    const char *at = (const char *)queue->cq + (size_t)entry * queue->cqe_bytes;
    if (!gpsh_completions_are_far(c, queue))
        return at + (queue->cqe_bytes - GPSH_CQE_BYTES);
    if (entry - window->first >= window->n) {
        *window = (struct window){entry, left < WINDOW ? left : WINDOW};
        if (c->memory->device_read(c->cqes, at, (size_t)window->n * GPSH_CQE_BYTES))
            window->n = 0;
    }
    return window->n ? c->cqes + (size_t)(entry - window->first) * GPSH_CQE_BYTES : NULL;
}

static uint64_t word_of(const char *cqe, int at, int order)
{
    return __atomic_load_n((const uint64_t *)(const void *)(cqe + at), order);
}

// The last word of completion `number`, or one of a completion that is not there: the NIC writes it
// last.
static uint64_t completion_at(const struct gpsh_completions *c,
                              const struct gpsh_kernel_queue *queue, uint32_t number,
                              struct window *window, const char **cqe)
{
    const uint64_t none = (uint64_t)CQE_INVALID << 60;
    *cqe = cqe_at(c, queue, number, window);
    if (!*cqe)
        return none;
    uint64_t last = word_of(*cqe, 56, __ATOMIC_ACQUIRE);
    return (last >> 56 & 1) == (number >> __builtin_ctz(queue->cqes) & 1) ? last : none;
}

int gpsh_completions_reach(const struct gpsh_completions *c, const struct gpsh_kernel_queue *queue,
                           const struct gpushmem_nic_queue *seen, uint64_t end,
                           struct gpsh_failed_request *failed)
{
    struct window window = {0, 0};
    uint64_t done = gpushmem_nic_polled_done(seen->polled, seen->done);
    for (uint32_t next = (uint32_t)seen->polled; done < end; next++) {
        const char *cqe;
        uint64_t last = completion_at(c, queue, next, &window, &cqe);
        if (last >> 60 == CQE_INVALID)
            return 0;
        uint16_t counter = __builtin_bswap16((uint16_t)(last >> 32));
        uint16_t further = (uint16_t)(counter - (uint16_t)done);
        if (last >> 60 == CQE_ERROR) {
            uint64_t why = word_of(cqe, 48, __ATOMIC_RELAXED);
            *failed = (struct gpsh_failed_request){done + further, (uint32_t)(why >> 56),
                                                   (uint32_t)(why >> 48 & 0xff)};
            return -1;
        }
        if (further < queue->depth) // else a kernel has counted it meanwhile
            done += further + 1u;
    }
    return 1;
}

bool gpsh_completions_show_error(const struct gpsh_completions *c,
                                 const struct gpsh_kernel_queue *queue, uint32_t consumed,
                                 uint32_t *looked)
{
    struct window window = {0, 0};
    uint32_t next = consumed, end = next + queue->cqes;
    uint64_t last = 0;
    const char *cqe;
    if (((*looked - next) & GPSH_CQE_COUNT_MASK) < queue->cqes)
        next += (*looked - next) & GPSH_CQE_COUNT_MASK;
    for (; next != end && last >> 60 != CQE_INVALID; next++) {
        last = completion_at(c, queue, next, &window, &cqe);
        if (last >> 60 == CQE_ERROR)
            return true;
    }
    *looked = last >> 60 == CQE_INVALID ? next - 1 : next;
    return false;
}
