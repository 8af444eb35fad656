// SPDX-License-Identifier: BSD-3-Clause
// Completions of a queue that kernels post to, as the host reads them: in host memory, or in a
// GPU's by way of its driver. It consumes none: kernels do. docs/design/nic_posts.md.
#ifndef GPSH_KERNEL_COMPLETIONS_H
#define GPSH_KERNEL_COMPLETIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "gpu/device_memory.h"
#include "gpushmem/device_abi.h"
#include "transport/transport.h"

enum {
    GPSH_CQE_BYTES = 64,            // that have a meaning: the last ones of each completion
    GPSH_CQE_COUNT_MASK = 0xffffff, // of the numbers of completions that the NIC knows
};

// By one thread at a time.
struct gpsh_completions {
    const struct gpsh_device_memory *memory;
    char *cqes; // host memory, for those of a GPU that were read at once
};

// GPUSHMEM_ERR_NO_MEMORY without a sentence. close: legal after it, and twice.
int gpsh_completions_open(struct gpsh_completions *c, const struct gpsh_device_memory *memory);
void gpsh_completions_close(struct gpsh_completions *c);

// Whether the processor reads the queue by way of the driver only.
bool gpsh_completions_are_far(const struct gpsh_completions *c,
                              const struct gpsh_kernel_queue *queue);

// A request that failed: its position, and why in the NIC's words.
struct gpsh_failed_request {
    uint64_t position;
    uint32_t syndrome, vendor;
};

// Looks at what kernels had not consumed when `seen` was read of the queue: whether all requests
// below `end` are complete (1), not yet (0), or one failed (-1, and which).
int gpsh_completions_reach(const struct gpsh_completions *c, const struct gpsh_kernel_queue *queue,
                           const struct gpushmem_nic_queue *seen, uint64_t end,
                           struct gpsh_failed_request *failed);

// Whether the completions from number `consumed` on, modulo 2^24, end in an error. It may be wrong,
// as kernels go on meanwhile. *looked: below which number none has to be looked at again.
bool gpsh_completions_show_error(const struct gpsh_completions *c,
                                 const struct gpsh_kernel_queue *queue, uint32_t consumed,
                                 uint32_t *looked);

#endif
