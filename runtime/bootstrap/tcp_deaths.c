// SPDX-License-Identifier: BSD-3-Clause
#include "bootstrap/tcp_deaths.h"

#include <stdio.h>
#include <stdlib.h>

#include "core/error.h"

int gpsh_tcp_deaths_open(struct gpsh_tcp_deaths *d, int n_pes)
{
    *d = (struct gpsh_tcp_deaths){
        .list = calloc((size_t)n_pes, sizeof *d->list), .n_pes = n_pes, .first = -1};
    return d->list ? 0 : gpsh_fail(GPUSHMEM_ERR_NO_MEMORY, "no memory for a list of %d PEs", n_pes);
}

void gpsh_tcp_deaths_close(struct gpsh_tcp_deaths *d)
{
    free(d->list);
    *d = (struct gpsh_tcp_deaths){.first = -1};
}

bool gpsh_tcp_deaths_note(struct gpsh_tcp_deaths *d, int pe, const char *reason)
{
    if (pe < 0 || pe >= d->n_pes || d->list[pe].died)
        return false;
    d->list[pe].died = true;
    snprintf(d->list[pe].reason, sizeof d->list[pe].reason, "%s", reason);
    if (d->first < 0)
        d->first = pe;
    d->noted++;
    d->untold++;
    return true;
}

int gpsh_tcp_deaths_take(struct gpsh_tcp_deaths *d)
{
    for (int pe = 0; d->untold && pe < d->n_pes; pe++) {
        if (!d->list[pe].died || d->list[pe].told)
            continue;
        d->list[pe].told = true;
        d->untold--;
        return pe;
    }
    return -1;
}

int gpsh_tcp_deaths_fail(const struct gpsh_tcp_deaths *d, const char *what)
{
    return d->first < 0 ? 0
                        : gpsh_fail(GPUSHMEM_ERR_PE_FAILED, "%s: PE %d has failed: %s", what,
                                    d->first, d->list[d->first].reason);
}
