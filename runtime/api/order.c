// SPDX-License-Identifier: BSD-3-Clause
// gpushmem_fence, gpushmem_quiet and their forms for one context and for some PEs.
#include "api/argument.h"
#include "comm/context.h"
#include "comm/sync.h"
#include "core/config.h"
#include "core/cpu.h"
#include "gpushmem/device_host.h"
#include "job/job.h"
#include "proxy/device_side.h"

// 0, or a negative status, in which case there is nothing to do; *out is NULL for the invalid
// context.
static int begin(const char *function, gpushmem_ctx_t handle, struct gpsh_context **out)
{
    *out = handle == GPUSHMEM_CTX_INVALID ? NULL : gpsh_context_of(handle);
    if (GPSH_LIKELY(gpsh_heap()->quick_pes != 0))
        return 0;
    int status = gpsh_check_ready(function);
    return status == 0 && *out != NULL ? gpsh_check_no_stranger(function, *out) : status;
}

static inline int fence(const char *function, gpushmem_ctx_t handle)
{
    struct gpsh_context *ctx;
    int status = begin(function, handle, &ctx);
    return status == 0 && ctx != NULL ? gpsh_context_fence(ctx, GPSH_ALL_PES) : status;
}

// What kernels issued on the context.
static int quiet_of_kernels(const struct gpsh_context *ctx)
{
    if (GPSH_LIKELY(ctx == &gpsh_default_context))
        return gpsh_device_side_quiet(GPSH_CONTEXT_DEFAULT);
    return ctx->on_device ? gpsh_device_side_quiet((int)ctx->device.number) : 0;
}

static inline int quiet(const char *function, gpushmem_ctx_t handle)
{
    struct gpsh_context *ctx;
    int status = begin(function, handle, &ctx);
    if (status < 0 || ctx == NULL)
        return status;
    status = gpsh_context_quiet(ctx, GPSH_ALL_PES);
    int device = quiet_of_kernels(ctx);
    return status < 0 ? status : device;
}

static int pe_fence(const char *function, gpushmem_ctx_t handle, int pe)
{
    struct gpsh_context *ctx;
    int status = begin(function, handle, &ctx);
    if (status < 0 || ctx == NULL)
        return status;
    status = gpsh_check_pe(function, pe);
    return status < 0 ? status : gpsh_context_fence(ctx, pe);
}

static int pe_quiet(const char *function, gpushmem_ctx_t handle, const int *pes, size_t n)
{
    struct gpsh_context *ctx;
    int status = begin(function, handle, &ctx);
    if (status < 0 || ctx == NULL)
        return status;
    if (n != 0 && pes == NULL)
        return gpsh_fail(GPUSHMEM_ERR_INVALID, "%s: the list of %zu PEs is NULL", function, n);
    for (size_t i = 0; i < n; ++i) {
        int pe = gpsh_rank_pe(handle, pes[i]);
        if (pe < 0 || pe >= gpsh_job()->n_pes)
            return gpsh_check_pe(function, pe);
    }
    for (size_t i = 0; i < n; ++i) {
        int quieted = gpsh_context_quiet(ctx, gpsh_rank_pe(handle, pes[i]));
        if (status == 0)
            status = quieted;
    }
    // What kernels issued is counted per ring, not per PE.
    int device = n != 0 ? quiet_of_kernels(ctx) : 0;
    return status < 0 ? status : device;
}

int gpushmem_fence(void)
{
    return fence(__func__, GPUSHMEM_CTX_DEFAULT);
}

int gpushmem_ctx_fence(gpushmem_ctx_t ctx)
{
    return fence(__func__, ctx);
}

int gpushmem_pe_fence(int pe)
{
    return pe_fence(__func__, GPUSHMEM_CTX_DEFAULT, pe);
}

int gpushmem_ctx_pe_fence(gpushmem_ctx_t ctx, int pe)
{
    return pe_fence(__func__, ctx, gpsh_rank_pe(ctx, pe));
}

int gpushmem_quiet(void)
{
    return quiet(__func__, GPUSHMEM_CTX_DEFAULT);
}

int gpushmem_ctx_quiet(gpushmem_ctx_t ctx)
{
    return quiet(__func__, ctx);
}

int gpushmem_pe_quiet(const int *pes, size_t npes)
{
    return pe_quiet(__func__, GPUSHMEM_CTX_DEFAULT, pes, npes);
}

int gpushmem_ctx_pe_quiet(gpushmem_ctx_t ctx, const int *pes, size_t npes)
{
    return pe_quiet(__func__, ctx, pes, npes);
}

int gpushmem_sync_all(void)
{
    int status = gpsh_check_ready(__func__);
    return status < 0 ? status : gpsh_sync_as(GPSH_CALL_SYNC_ALL, 0, 0, __func__);
}

int gpushmem_barrier_all(void)
{
    int status = gpsh_check_ready(__func__);
    return status < 0 ? status : gpsh_barrier_as(GPSH_CALL_BARRIER_ALL, 0, 0, __func__);
}

int gpushmem_launch_compare(const struct gpushmem_launch_shape *shape)
{
    const unsigned *grid = shape->grid, *block = shape->block;
    int status = gpsh_check_ready("gpushmem_launch_collective");
    if (status < 0 || !gpsh_settings()->check)
        return status;
    return gpsh_sync_as(
        GPSH_CALL_LAUNCH, (uint64_t)grid[2] << 48 | (uint64_t)grid[1] << 32 | grid[0],
        (uint64_t)shape->shared_bytes << 32 | (uint64_t)block[2] << 24 | block[1] << 12 | block[0],
        "GPUSHMEM_LAUNCH_COLLECTIVE");
}
