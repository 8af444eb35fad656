// SPDX-License-Identifier: BSD-3-Clause
// What the functions of nvshmem.h call in libgpushmem beside its own functions. Programs need not.
#ifndef GPUSHMEM_COMPAT_IMPL_NVSHMEM_CALLS_H
#define GPUSHMEM_COMPAT_IMPL_NVSHMEM_CALLS_H

#include "gpushmem/compat/impl/nvshmem_types.h"
#include "gpushmem/impl/signatures.h"

// CUmodule and CUlibrary, as the driver's header declares them.
typedef struct CUmod_st *gpsh_nvshmem_module;
typedef struct CUlib_st *gpsh_nvshmem_library;

// nvcc compiles kernels without any of this.
#if !defined(__CUDA_ARCH__)
#if !defined(GPUSHMEM_NVSHMEM_LIBRARY)
#define GPSH_HOST_FUNCTIONS_ALONE
#endif
#include "gpushmem/gpushmem.h"
#undef GPSH_HOST_FUNCTIONS_ALONE

#ifdef __cplusplus
extern "C" {
#endif

// Functions that return int return an enum nvshmemx_status, and have logged what went wrong, unless
// they are said to return a negative status, which a caller reports with gpushmem_nvshmem_check.

// Join and leave. NVSHMEM_* variables are obeyed; settings of gpushmem that are in the environment
// take precedence. The PE's numbers are known after init. Where the library would have to choose a
// GPU, because the program has not, it comes to the rest with the first collective call. provided:
// NULL in functions that return nothing.
GPUSHMEM_API int gpushmem_nvshmem_init(int requested, int *provided);
GPUSHMEM_API int gpushmem_nvshmem_init_attr(unsigned int flags, const nvshmemx_init_attr_t *attr);
GPUSHMEM_API int gpushmem_nvshmem_finalize(void);
GPUSHMEM_API int gpushmem_nvshmem_init_status(void);
GPUSHMEM_API void gpushmem_nvshmem_query_thread(int *provided);
GPUSHMEM_API int gpushmem_nvshmem_get_uniqueid(nvshmemx_uniqueid_t *id);
GPUSHMEM_API int gpushmem_nvshmem_set_uniqueid(int rank, int n, const nvshmemx_uniqueid_t *id,
                                               nvshmemx_init_attr_t *attr);
GPUSHMEM_API int gpushmem_nvshmem_set_mpi_comm(void *mpi_comm, nvshmemx_init_attr_t *attr);

// A call has failed with `status`: 1 if that was because init is not complete, and it is now.
GPUSHMEM_API int gpushmem_nvshmem_complete(int status);
// Number and size in a team, also while init is not complete; -1: not known, or no member.
GPUSHMEM_API int gpushmem_nvshmem_early_pe(nvshmem_team_t team);
GPUSHMEM_API int gpushmem_nvshmem_early_n(nvshmem_team_t team);

// Logs this thread's last failure, one of each kind, forgets it, and returns its enum
// nvshmemx_status. void: of a call that cannot return that it failed, for which GPUSHMEM_ON_ERROR
// holds. zero: the first if there is a failure, for results that may be NULL without one.
GPUSHMEM_API int gpushmem_nvshmem_failed(int status) __attribute__((cold));
GPUSHMEM_API int gpushmem_nvshmem_void_failed(int status) __attribute__((cold));
GPUSHMEM_API void gpushmem_nvshmem_zero(void);

// The value of nvshmemx_TYPE_g_on_stream, `function`: waits until what is in the stream has ended,
// and fetches then. All bits 0 if that fails, which is logged.
GPUSHMEM_API void gpushmem_nvshmem_fetch(const char *function, void *value, const void *source,
                                         size_t bytes, int pe, cudaStream_t stream);

// Each unit with kernels names the function that gives them the handle, until it is unloaded. It is
// called when there is a new handle: at the end of init, and before what launches.
GPUSHMEM_API void gpushmem_nvshmem_attach_by(int (*attach)(void));
GPUSHMEM_API void gpushmem_nvshmem_attach_no_more(int (*attach)(void));
// Calls them now. A negative status.
GPUSHMEM_API int gpushmem_nvshmem_attach(void);

// Logs that a call came from a program that was compiled with another NVSHMEM's device library,
// whose kernels and state are not gpushmem's. `function` is what it called. An enum
// nvshmemx_status.
GPUSHMEM_API int gpushmem_nvshmem_foreign(const char *function);

// Before a launch: completes init, gives the units the handle. An enum nvshmemx_status.
GPUSHMEM_API int gpushmem_nvshmem_launch_begin(void);
// Logs that the launch failed with this cudaError_t, 0: that CUDA's runtime is not in the process.
GPUSHMEM_API int gpushmem_nvshmem_launch_failed(int error);

// Kernels of modules that the program loads itself.
GPUSHMEM_API int gpushmem_nvshmem_module_init(gpsh_nvshmem_module module);
GPUSHMEM_API int gpushmem_nvshmem_module_finalize(gpsh_nvshmem_module module);
GPUSHMEM_API int gpushmem_nvshmem_library_init(gpsh_nvshmem_library library);
GPUSHMEM_API int gpushmem_nvshmem_library_finalize(gpsh_nvshmem_library library);

// A negative status each.
GPUSHMEM_API int gpushmem_nvshmem_unregister_all(void);
// n contexts, as queue pairs that kernels use; *qps is the program's to free, after finalize.
GPUSHMEM_API int gpushmem_nvshmem_qp_create(int n, nvshmemx_qp_handle_t **qps);
GPUSHMEM_API int gpushmem_nvshmem_split(nvshmem_team_t parent, int start, int stride, int size,
                                        const nvshmem_team_config_t *config, long config_mask,
                                        nvshmem_team_t *new_team);
GPUSHMEM_API int gpushmem_nvshmem_split_2d(nvshmem_team_t parent, int xrange,
                                           const nvshmem_team_config_t *xaxis_config,
                                           long xaxis_mask, nvshmem_team_t *xaxis_team,
                                           const nvshmem_team_config_t *yaxis_config,
                                           long yaxis_mask, nvshmem_team_t *yaxis_team);
GPUSHMEM_API int gpushmem_nvshmem_team_config(nvshmem_team_t team, nvshmem_team_config_t *config);
GPUSHMEM_API int gpushmem_nvshmem_team_uniqueid(nvshmemx_team_uniqueid_t *id);
GPUSHMEM_API int gpushmem_nvshmem_team_init(nvshmem_team_t *team,
                                            const nvshmem_team_config_t *config, long config_mask,
                                            int n, int my_rank);

// The stream waits until each of words[0 .. nelems-1], integers of |size| bytes, signed where size
// is negative, compares with its value: values[i] if there are many, else values[0]. Words whose
// skip[i] is not 0 are left out (NULL: none). A negative status.
GPUSHMEM_API int gpushmem_nvshmem_wait_on_stream(const char *function, void *words, size_t nelems,
                                                 const int *skip, int cmp, const void *values,
                                                 int many_values, int size, cudaStream_t stream);
// *dest of `pe`, a floating point value of `size` bytes, grows by *value; *before is what it was. A
// negative status.
GPUSHMEM_API int gpushmem_nvshmem_float_add(const char *function, int size, void *dest,
                                            const void *value, int pe, void *before);
// A region of this thread begins (1) or ends (-1): how many it is in now; or a negative status.
GPUSHMEM_API int gpushmem_nvshmem_region(int change);

#ifdef __cplusplus
}
#endif

// Passes a result on, and reports it if it is negative.
static inline int gpushmem_nvshmem_check(int status)
{
    return __builtin_expect(status < 0, 0) ? gpushmem_nvshmem_failed(status) : status;
}

// The same of a call that does not return the status.
static inline int gpushmem_nvshmem_lost(int status)
{
    return __builtin_expect(status < 0, 0) ? gpushmem_nvshmem_void_failed(status) : status;
}

// Reports what is NULL on failure.
static inline void *gpushmem_nvshmem_block(void *block)
{
    if (__builtin_expect(block == NULL, 0))
        gpushmem_nvshmem_zero();
    return block;
}

#endif // __CUDA_ARCH__

#endif
