// SPDX-License-Identifier: BSD-3-Clause
#include "proxy/proxy_times.h"

#include <stdio.h>

#include "gpushmem/device_host.h"
#include "proxy/proxy.h"

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
