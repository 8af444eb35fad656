// SPDX-License-Identifier: BSD-3-Clause
#include "api/handover.h"

#include <stdio.h>

#include "bootstrap/fd_exchange.h"
#include "job/job.h"
#include "memory/regions.h"

static struct gpsh_fd_exchange exchange = {.socket = -1};

int gpsh_handover_open(char *where, size_t bytes)
{
    int status = gpsh_fd_exchange_open(&exchange, gpsh_job()->boot, gpsh_job()->generation);
    if (!status)
        snprintf(where, bytes, "%s", exchange.path);
    return status;
}

static int map(void *arg, int index, const struct gpsh_fd_set *fds)
{
    (void)arg;
    return gpsh_regions_map_added(gpsh_job()->boot->node_pes[index], fds);
}

int gpsh_handover_run(const char *const *where)
{
    const struct gpsh_fd_set mine = gpsh_regions_added_fds();
    return gpsh_fd_exchange_run(&exchange, gpsh_job()->my_pe, gpsh_job()->boot->node_pes, where,
                                gpsh_job()->boot->node_n_pes, &mine, map, NULL,
                                GPSH_FD_EXCHANGE_MS);
}

void gpsh_handover_close(void)
{
    gpsh_fd_exchange_close(&exchange);
}
