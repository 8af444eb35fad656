// SPDX-License-Identifier: BSD-3-Clause
// What a proxy thread is at, for a person whose job hangs: a line per ring with something under
// way, on SIGUSR1.
#include <stdio.h>

#include "proxy/proxy.h"

enum { LINE_BYTES = 256 };

static const char *name_of(uint8_t opcode)
{
    static const char *const names[GPUSHMEM_CMD_LAST + 1] = {
        [GPUSHMEM_CMD_NOP] = "empty command",
        [GPUSHMEM_CMD_PUT] = "put",
        [GPUSHMEM_CMD_PUT_INLINE] = "p",
        [GPUSHMEM_CMD_GET] = "get",
        [GPUSHMEM_CMD_AMO] = "atomic",
        [GPUSHMEM_CMD_PUT_SIGNAL] = "put_signal",
        [GPUSHMEM_CMD_IPUT] = "iput",
        [GPUSHMEM_CMD_IGET] = "iget",
        [GPUSHMEM_CMD_FENCE] = "fence",
        [GPUSHMEM_CMD_QUIET_PE] = "quiet",
        [GPUSHMEM_CMD_PUT_SIGNAL_INLINE] = "put_signal",
        [GPUSHMEM_CMD_CONTEXT_CLAIM] = "ctx_create",
        [GPUSHMEM_CMD_CONTEXT_FREE] = "ctx_destroy",
    };
    return opcode <= GPUSHMEM_CMD_LAST && names[opcode] ? names[opcode] : "command";
}

static void target_of(int pe, char *text, size_t bytes)
{
    if (pe < 0)
        snprintf(text, bytes, "all PEs");
    else
        snprintf(text, bytes, "PE %d", pe);
}

bool gpsh_proxy_describe(const struct gpsh_proxy_ring *ring, char *line, size_t bytes)
{
    const struct gpsh_inflight *oldest = gpsh_ring_entry(ring, ring->retired);
    char target[24];
    if (ring->closed) {
        snprintf(line, bytes, "ring %u: closed because of an error, is read no more",
                 ring->shared.number);
    } else if (ring->retired < ring->parsed) {
        target_of(oldest->pe, target, sizeof target);
        snprintf(line, bytes,
                 "ring %u: commands read: %llu, complete: %llu; the oldest under way is a %s "
                 "towards %s%s",
                 ring->shared.number, (unsigned long long)ring->parsed,
                 (unsigned long long)ring->retired, name_of(oldest->opcode), target,
                 ring->busy ? "; the next one waits" : "");
    } else if (ring->busy) {
        target_of(ring->current.pe, target, sizeof target);
        snprintf(line, bytes,
                 "ring %u: commands complete: %llu; a %s towards %s waits for room or for order",
                 ring->shared.number, (unsigned long long)ring->retired,
                 name_of(ring->current.opcode), target);
    } else {
        return false;
    }
    return true;
}

void gpsh_proxy_report(const struct gpsh_proxy_thread *thread)
{
    char line[LINE_BYTES];
    bool any = false;
    for (int i = 0; i < thread->n_rings; i++) {
        if (!gpsh_proxy_describe(thread->rings[i], line, sizeof line))
            continue;
        any = true;
        GPSH_LOG(WARN, "proxy", "SIGUSR1: %s", line);
    }
    if (!any)
        GPSH_LOG(WARN, "proxy",
                 "SIGUSR1: proxy thread %td: no command of a kernel is under way in its %d rings",
                 thread - thread->proxy->threads, thread->n_rings);
}
