// SPDX-License-Identifier: BSD-3-Clause
// Teams, queue pairs and buffers of NVSHMEM programs, whose structs and functions differ from
// gpushmem's.
#include <stdlib.h>

#include "api/compat.h"
#include "core/error.h"
#include "gpushmem/compat/impl/nvshmem_calls.h"
#include "gpushmem/device_abi.h"
#include "job/job.h"
#include "memory/local_memory.h"

// ---- Teams ----

// Programs leave num_contexts at INT_MAX or at what was there: only with the mask it is meant.
static struct gpushmem_team_config config_of(const nvshmem_team_config_t *config, long mask)
{
    struct gpushmem_team_config ours = {.num_contexts = 0};
    if (config && mask & NVSHMEM_TEAM_NUM_CONTEXTS)
        ours.num_contexts = config->num_contexts;
    return ours;
}

static long mask_of(const nvshmem_team_config_t *config, long mask)
{
    return config ? mask : 0;
}

int gpushmem_nvshmem_split(nvshmem_team_t parent, int start, int stride, int size,
                           const nvshmem_team_config_t *config, long config_mask,
                           nvshmem_team_t *new_team)
{
    const struct gpushmem_team_config ours = config_of(config, config_mask);
    return gpsh_team_split_apart(parent, start, stride, size, &ours, mask_of(config, config_mask),
                                 new_team);
}

int gpushmem_nvshmem_split_2d(nvshmem_team_t parent, int xrange,
                              const nvshmem_team_config_t *xaxis_config, long xaxis_mask,
                              nvshmem_team_t *xaxis_team, const nvshmem_team_config_t *yaxis_config,
                              long yaxis_mask, nvshmem_team_t *yaxis_team)
{
    const struct gpushmem_team_config x = config_of(xaxis_config, xaxis_mask);
    const struct gpushmem_team_config y = config_of(yaxis_config, yaxis_mask);
    return gpushmem_team_split_2d(parent, xrange, &x, mask_of(xaxis_config, xaxis_mask), xaxis_team,
                                  &y, mask_of(yaxis_config, yaxis_mask), yaxis_team);
}

int gpushmem_nvshmem_team_config(nvshmem_team_t team, nvshmem_team_config_t *config)
{
    struct gpushmem_team_config ours = {.num_contexts = 0};
    int status =
        config ? gpushmem_team_get_config(team, GPUSHMEM_TEAM_NUM_CONTEXTS, &ours)
               : gpsh_fail(GPUSHMEM_ERR_INVALID, "nvshmem_team_get_config: no place for it (NULL)");
    if (status)
        return gpushmem_nvshmem_check(status);
    *config = (nvshmem_team_config_t){.version = GPSH_NVSHMEM_VERSION_OF(nvshmem_team_config_t),
                                      .num_contexts = ours.num_contexts};
    return 0;
}

// ---- Registered buffers ----

int gpushmem_nvshmem_unregister_all(void)
{
    int first = 0;
    for (void *base; gpsh_job()->n_pes && (base = gpsh_local_any());) {
        int status = gpushmem_buffer_unregister(base);
        first = first ? first : status;
    }
    return first;
}

// ---- Queue pairs ----

// A context's number: where no ring is left for it, or none is needed, that is the default
// context's. They are kept until finalize, as NVSHMEM has no call that destroys one.
static int create_qp(nvshmemx_qp_handle_t *qp)
{
    gpushmem_ctx_t ctx;
    struct gpushmem_dev_ctx of_kernels;
    int status = gpushmem_ctx_create(GPUSHMEM_CTX_SHARED, &ctx);
    if (!status)
        status = gpushmem_ctx_device(ctx, &of_kernels);
    if (!status)
        *qp = NVSHMEMX_QP_DEFAULT + (nvshmemx_qp_handle_t)of_kernels.number;
    return status;
}

int gpushmem_nvshmem_qp_create(int n, nvshmemx_qp_handle_t **qps)
{
    if (n < 1 || !qps)
        return gpsh_fail(GPUSHMEM_ERR_INVALID,
                         "nvshmemx_qp_create: %d queue pairs to %p; ask for at least one, and pass "
                         "a place for the array",
                         n, (void *)qps);
    int status = gpsh_check_initialised("qp_create");
    if (status)
        return status;
    nvshmemx_qp_handle_t *made = calloc((size_t)n, sizeof *made);
    status = made ? 0 : gpsh_fail(GPUSHMEM_ERR_NO_MEMORY, "no memory for %d handles", n);
    for (int i = 0; i < n && !status; i++)
        status = create_qp(&made[i]);
    if (status)
        free(made);
    else
        *qps = made;
    return status;
}
