// SPDX-License-Identifier: BSD-3-Clause
// What a proxy thread is at, for a person whose job hangs: a line per ring with something under
// way, on SIGUSR1.
#include <stdio.h>

#include "gpushmem/device_host.h"
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
        [GPUSHMEM_CMD_NIC_QUEUE] = "a request for a queue",
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

static void add(const struct gpsh_proxy_clock *clock, struct gpushmem_proxy_times *out)
{
    uint64_t total_ns = gpsh_clock_ns() - clock->began_ns, span = gpsh_ticks() - clock->began_ticks,
             busy_ns = 0;
    uint64_t ns[GPSH_STAGES];
    for (int i = 0; i < GPSH_STAGES; i++) {
        uint64_t ticks = __atomic_load_n(&clock->ticks[i], __ATOMIC_RELAXED);
        ns[i] = span ? (uint64_t)((double)ticks * (double)total_ns / (double)span) : 0;
        busy_ns += ns[i];
    }
    out->total_ns += total_ns;
    out->parse_ns += ns[GPSH_STAGE_PARSE];
    out->post_ns += ns[GPSH_STAGE_POST];
    out->doorbell_ns += ns[GPSH_STAGE_DOORBELL];
    out->poll_ns += ns[GPSH_STAGE_POLL];
    out->retire_ns += ns[GPSH_STAGE_RETIRE];
    out->idle_ns += total_ns > busy_ns ? total_ns - busy_ns : 0;
}

void gpsh_proxy_times_read(const struct gpsh_proxy *proxy, struct gpushmem_proxy_times *out)
{
    *out = (struct gpushmem_proxy_times){0};
    for (int i = 0; i < proxy->n_threads; i++)
        add(&proxy->threads[i].clock, out);
}

static double percent(uint64_t part, uint64_t total)
{
    return total ? 100.0 * (double)part / (double)total : 0;
}

static uint64_t count_commands(const struct gpsh_proxy_thread *thread)
{
    uint64_t n = 0;
    for (int i = 0; i < thread->n_rings; i++)
        n += __atomic_load_n(&thread->rings[i]->counters->commands, __ATOMIC_RELAXED);
    return n;
}

void gpsh_proxy_times_print(const struct gpsh_proxy *proxy, int my_pe)
{
    for (int i = 0; i < proxy->n_threads; i++) {
        struct gpushmem_proxy_times t = {0};
        add(&proxy->threads[i].clock, &t);
        uint64_t commands = count_commands(&proxy->threads[i]), busy_ns = t.total_ns - t.idle_ns;
        fprintf(stderr,
                "gpushmem[%d] stats: proxy thread %d, %.3f s: parse %.1f %%, post %.1f %%, "
                "doorbell %.1f %%, poll %.1f %%, "
                "retire %.1f %%, idle %.1f %%; %.0f ns per command\n",
                my_pe, i, (double)t.total_ns / 1e9, percent(t.parse_ns, t.total_ns),
                percent(t.post_ns, t.total_ns), percent(t.doorbell_ns, t.total_ns),
                percent(t.poll_ns, t.total_ns), percent(t.retire_ns, t.total_ns),
                percent(t.idle_ns, t.total_ns), commands ? (double)busy_ns / (double)commands : 0);
    }
}
