// SPDX-License-Identifier: BSD-3-Clause
// What a program asks about its job, and how it ends it.
#define _GNU_SOURCE // fflush_unlocked
#include "job/job.h"

#include <poll.h>
#include <stdio.h>
#include <unistd.h>

#include "api/argument.h"
#include "connect/atomics.h"
#include "connect/net.h"
#include "connect/peers.h"
#include "core/sized.h"
#include "gpushmem/gpushmem.h"
#include "proxy/device_side.h"

int gpushmem_initialized(void)
{
    return gpsh_job()->n_pes > 0;
}

int gpushmem_query_thread(int *provided)
{
    int status = gpsh_check_initialised("query_thread");
    if (!status && provided)
        *provided = gpsh_job()->thread_level;
    return status;
}

// Queries keep the thread's last error: programs ask for the PE number to print one.
int gpushmem_my_pe(void)
{
    return gpsh_job()->n_pes ? gpsh_job()->my_pe : GPUSHMEM_ERR_STATE;
}

int gpushmem_n_pes(void)
{
    return gpsh_job()->n_pes ? gpsh_job()->n_pes : GPUSHMEM_ERR_STATE;
}

int gpushmem_node_my_pe(void)
{
    return gpsh_job()->n_pes ? gpsh_job()->boot->node_my_pe : GPUSHMEM_ERR_STATE;
}

int gpushmem_node_n_pes(void)
{
    return gpsh_job()->n_pes ? gpsh_job()->boot->node_n_pes : GPUSHMEM_ERR_STATE;
}

int gpushmem_peer_info_sized(int pe, struct gpushmem_peer_info *out, size_t size)
{
    enum { FIRST_VERSION = 280 };
    int status = gpsh_check_pe_number("gpushmem_peer_info", pe);
    if (status)
        return status;
    const struct gpsh_peer *peer = &gpsh_job()->peers[pe];
    struct gpushmem_peer_info info = {
        .transport = gpsh_net()->transports[peer->data]->ops->name,
        .atomics = gpsh_atomics_agent(pe),
        .same_node = peer->same_node,
        .device_direct = gpsh_device_side_direct(pe) != NULL,
    };
    gpsh_peer_explain(pe, info.description, sizeof info.description);
    return gpsh_sized_fill("gpushmem_peer_info", out, size, &info, sizeof info, FIRST_VERSION);
}

// The launcher ends this PE too, perhaps before it has written what the program printed last. So
// that is written first, unless it might block: another thread holds the stream, or a pipe is full.
static void exit_write_stdout(void)
{
    struct pollfd out = {.fd = fileno(stdout), .events = POLLOUT};
    if (ftrylockfile(stdout))
        return;
    if (poll(&out, 1, 0) == 1 && out.revents == POLLOUT)
        fflush_unlocked(stdout);
    funlockfile(stdout);
}

void gpushmem_global_exit(int status)
{
    char why[64];
    exit_write_stdout();
    snprintf(why, sizeof why, "gpushmem_global_exit(%d)", status);
    if (gpsh_job()->n_pes)
        gpsh_bootstrap_abort(gpsh_job()->boot, status, why);
    fflush(NULL);
    _exit(status);
}
