// SPDX-License-Identifier: BSD-3-Clause
// gpushmem_ctx_*: making and ending contexts.
#include <stdlib.h>
#include <string.h>

#include "api/argument.h"
#include "comm/contexts.h"
#include "gpushmem/device_abi.h"

// The context of a handle, in a job that is there.
static int find_context(const char *function, gpushmem_ctx_t handle, struct gpsh_context **ctx)
{
    int status = gpsh_check_ready(function);
    return status < 0 ? status : gpsh_check_context(function, handle, ctx);
}

int gpushmem_ctx_create(long options, gpushmem_ctx_t *out)
{
    const long known = GPUSHMEM_CTX_SERIALIZED | GPUSHMEM_CTX_PRIVATE | GPUSHMEM_CTX_NOSTORE;
    int status = gpsh_check_ready(__func__);
    if (status < 0)
        return status;
    if (out == NULL)
        return gpsh_fail(GPUSHMEM_ERR_INVALID,
                         "%s: `ctx` is NULL; pass the address of a gpushmem_ctx_t", __func__);
    if ((options & ~known) != 0)
        return gpsh_fail(GPUSHMEM_ERR_INVALID,
                         "%s: unknown option bits in %#lx; or together enum gpushmem_ctx_option",
                         __func__, options);
    struct gpsh_context *ctx;
    status = gpsh_contexts_create(options, &ctx);
    if (status < 0)
        return gpsh_fail_in(status, __func__);
    *out = (gpushmem_ctx_t)(void *)ctx;
    return 0;
}

int gpushmem_team_create_ctx(gpushmem_team_t handle, long options, gpushmem_ctx_t *out)
{
    struct gpsh_team *team;
    gpushmem_ctx_t created;
    int status = gpsh_check_team(__func__, handle, &team);
    if (status < 0)
        return status;
    int *pes = malloc((size_t)team->n * sizeof *pes);
    if (pes == NULL)
        return gpsh_fail(GPUSHMEM_ERR_NO_MEMORY, "%s: no host memory for %d ranks", __func__,
                         team->n);
    status = gpushmem_ctx_create(options, out ? &created : NULL);
    if (status < 0) {
        free(pes);
        return status;
    }
    memcpy(pes, team->pes, (size_t)team->n * sizeof *pes);
    struct gpsh_context *ctx = gpsh_context_of(created);
    ctx->team = handle;
    ctx->team_n = team->n;
    ctx->team_pes = pes;
    *out = created;
    return 0;
}

int gpushmem_ctx_get_team(gpushmem_ctx_t handle, gpushmem_team_t *out)
{
    struct gpsh_context *ctx;
    int status = find_context(__func__, handle, &ctx);
    if (out != NULL)
        *out = GPUSHMEM_TEAM_INVALID;
    if (status < 0)
        return status;
    if (out == NULL)
        return gpsh_fail(GPUSHMEM_ERR_INVALID, "%s: no place for the team (NULL)", __func__);
    *out = ctx->team_pes ? ctx->team : GPUSHMEM_TEAM_WORLD;
    return 0;
}

int gpushmem_ctx_destroy(gpushmem_ctx_t handle)
{
    int status = gpsh_check_ready(__func__);
    if (status < 0 || handle == GPUSHMEM_CTX_INVALID)
        return status;
    if (handle == GPUSHMEM_CTX_DEFAULT)
        return gpsh_fail(GPUSHMEM_ERR_INVALID,
                         "%s: the default context lives until gpushmem_finalize", __func__);
    return gpsh_contexts_destroy(gpsh_context_of(handle));
}

int gpushmem_ctx_device(gpushmem_ctx_t handle, struct gpushmem_dev_ctx *out)
{
    struct gpsh_context *ctx;
    int status = find_context(__func__, handle, &ctx);
    if (status < 0)
        return status;
    if (out == NULL)
        return gpsh_fail(GPUSHMEM_ERR_INVALID,
                         "%s: `out` is NULL; pass the address of a struct gpushmem_dev_ctx",
                         __func__);
    if (handle == GPUSHMEM_CTX_DEFAULT) {
        *out = (struct gpushmem_dev_ctx){0};
        return 0;
    }
    status = gpsh_contexts_device(ctx, out);
    if (status < 0)
        return gpsh_fail_in(status, __func__);
    out->team = ctx->team_pes ? ctx->team : GPUSHMEM_TEAM_WORLD;
    return 0;
}

int gpushmem_ctx_get_options(gpushmem_ctx_t handle, long *options)
{
    struct gpsh_context *ctx;
    int status = find_context(__func__, handle, &ctx);
    if (status < 0)
        return status;
    if (options == NULL)
        return gpsh_fail(GPUSHMEM_ERR_INVALID, "%s: no place for the options (NULL)", __func__);
    *options = (long)ctx->options;
    return 0;
}

// Nothing here batches operations so that it would have to be told: doorbells are rung for many at
// once whenever many come.
int gpushmem_ctx_session_start(gpushmem_ctx_t ctx, long options,
                               const struct gpushmem_ctx_session_config *config, long config_mask)
{
    struct gpsh_context *unused;
    int status = gpsh_check_ready(__func__);
    if (status == 0)
        status = gpsh_check_context(__func__, ctx, &unused);
    if (status < 0)
        return status;
    if (options & ~(long)GPUSHMEM_CTX_SESSION_BATCH)
        return gpsh_fail(GPUSHMEM_ERR_INVALID,
                         "%s: options %#lx have unknown bits; known is GPUSHMEM_CTX_SESSION_BATCH "
                         "(%d)",
                         __func__, options, GPUSHMEM_CTX_SESSION_BATCH);
    if (config_mask & ~(long)GPUSHMEM_CTX_SESSION_TOTAL_OPS)
        return gpsh_fail(GPUSHMEM_ERR_INVALID,
                         "%s: the mask %#lx has unknown bits; known is "
                         "GPUSHMEM_CTX_SESSION_TOTAL_OPS (%d)",
                         __func__, config_mask, GPUSHMEM_CTX_SESSION_TOTAL_OPS);
    if (config_mask != 0 && config == NULL)
        return gpsh_fail(GPUSHMEM_ERR_INVALID,
                         "%s: the mask %#lx names fields of a configuration that is NULL", __func__,
                         config_mask);
    return 0;
}

int gpushmem_ctx_session_stop(gpushmem_ctx_t ctx)
{
    struct gpsh_context *unused;
    int status = gpsh_check_ready(__func__);
    return status < 0 ? status : gpsh_check_context(__func__, ctx, &unused);
}
