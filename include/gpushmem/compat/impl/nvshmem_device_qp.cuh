// SPDX-License-Identifier: BSD-3-Clause
// NVSHMEM's functions of queue pairs: a queue pair is a context here (docs/design/kernels.md). Its
// handle is the context's number, so NVSHMEMX_QP_DEFAULT is the default context. Included by
// nvshmem_device.cuh.
// clang-format off

// The handle whose rings serve the queue pair: its own, or, for DEFAULT, ANY and what is none,
// those of all.
GPSH_DEV const struct gpushmem_dev &gpsh_dev_nvshmem_qp(nvshmemx_qp_handle_t qp)
{
    const unsigned index = (unsigned)qp - (NVSHMEMX_QP_DEFAULT + 1);
    return index < GPSH_NV.n_contexts ? GPSH_NV.contexts[index].dev : *GPSH_NV.self;
}

#define GPSH_NV_QP_MOVE(PREFIX, SUFFIX, SCOPE, NAME, DO, FORM, TYPE) \
    GPSH_NV_FUNCTION(void, nvshmemx_qp_##NAME##SUFFIX, \
                     (GPSH_P_##FORM(TYPE, int), nvshmemx_qp_handle_t qp_index), { \
        GPSH_DO_##DO(SCOPE, GPSH_NV, gpsh_dev_nvshmem_qp(qp_index), sizeof(TYPE)); \
    })
#define GPSH_NV_QP_TYPED(VERB, REST, FORM, NAME, TYPE) \
    GPSH_NV_ALL_SCOPES(GPSH_NV_QP_MOVE, NAME##_##VERB##REST, VERB##REST, FORM, TYPE)
#define GPSH_NV_ROWS(NAME, TYPE, AS, CTYPE) \
    GPSH_NV_FUNCTION(void, nvshmemx_qp_##NAME##_p, \
                     (TYPE *dest, const TYPE value, int pe, nvshmemx_qp_handle_t qp_index), { \
        gpsh_dev_put_value(GPSH_NV, gpsh_dev_nvshmem_qp(qp_index), dest, gpsh_dev_to_bits(value), \
                           sizeof value, pe); \
    }) \
    GPSH_NV_FUNCTION(TYPE, nvshmemx_qp_##NAME##_g, \
                     (const TYPE *source, int pe, nvshmemx_qp_handle_t qp_index), { \
        return gpsh_dev_from_bits<TYPE>(gpsh_dev_get_value( \
            GPSH_NV, gpsh_dev_nvshmem_qp(qp_index), source, sizeof *source, pe)); \
    }) \
    GPSH_MOVES(GPSH_NV_QP_TYPED, NAME, TYPE)
GPSH_NVS_RMA_TYPES(GPSH_NV_ROWS)
#undef GPSH_NV_ROWS
#undef GPSH_NV_QP_TYPED
#undef GPSH_NV_QP_MOVE

GPSH_NV_FUNCTION(void, nvshmemx_qp_signal_op,
                 (uint64_t *sig_addr, uint64_t signal, int sig_op, int pe,
                  nvshmemx_qp_handle_t qp_index), {
    gpsh_dev_signal(GPSH_NV, gpsh_dev_nvshmem_qp(qp_index), sig_addr, signal, sig_op, pe);
})

// Order and completion of several queue pairs, towards one PE or all. Order towards one is order
// towards all here.
GPSH_DEV_CALL void gpsh_dev_nvshmem_qp_fence(const nvshmemx_qp_handle_t *qps, int num_qps)
{
    gpsh_dev_fence_sys();
    for (int i = 0; i < num_qps; i++) {
        bool all = qps[i] == NVSHMEMX_QP_ALL;
        gpsh_dev_fence_rings(GPSH_NV, gpsh_dev_nvshmem_qp(qps[i]));
        for (unsigned k = 0; all && k < GPSH_NV.n_contexts; k++)
            if (gpsh_dev_load32_relaxed_gpu(&GPSH_NV.contexts[k].tag))
                gpsh_dev_fence_rings(GPSH_NV, GPSH_NV.contexts[k].dev);
    }
}

GPSH_DEV void gpsh_dev_nvshmem_qp_quiet_via(const struct gpushmem_dev &via, int pe)
{
    if (pe >= 0 && pe < GPSH_NV.n_pes)
        gpsh_dev_pe_quiet(GPSH_NV, via, pe);
    else
        gpsh_dev_quiet(GPSH_NV, via);
}

GPSH_DEV_CALL void gpsh_dev_nvshmem_qp_quiet(int pe, const nvshmemx_qp_handle_t *qps, int num_qps)
{
    for (int i = 0; i < num_qps; i++) {
        bool all = qps[i] == NVSHMEMX_QP_ALL;
        gpsh_dev_nvshmem_qp_quiet_via(gpsh_dev_nvshmem_qp(qps[i]), pe);
        for (unsigned k = 0; all && k < GPSH_NV.n_contexts; k++)
            if (gpsh_dev_load32_relaxed_gpu(&GPSH_NV.contexts[k].tag))
                gpsh_dev_nvshmem_qp_quiet_via(GPSH_NV.contexts[k].dev, pe);
    }
}

#define GPSH_NV_QP_ORDER(PREFIX, SUFFIX, SCOPE, UNUSED) \
    GPSH_NV_FUNCTION(void, nvshmemx_qp_fence##SUFFIX, \
                     (int pe, const nvshmemx_qp_handle_t *qp_handle, int num_qps), { \
        SCOPE::sync(); \
        if (SCOPE::rank() == 0) \
            gpsh_dev_nvshmem_qp_fence(qp_handle, num_qps); \
        SCOPE::sync(); \
    }) \
    GPSH_NV_FUNCTION(void, nvshmemx_qp_quiet##SUFFIX, \
                     (int pe, const nvshmemx_qp_handle_t *qp_handle, int num_qps), { \
        SCOPE::sync(); \
        if (SCOPE::rank() == 0) \
            gpsh_dev_nvshmem_qp_quiet(pe, qp_handle, num_qps); \
        SCOPE::sync(); \
    })
GPSH_NV_ALL_SCOPES(GPSH_NV_QP_ORDER, )
#undef GPSH_NV_QP_ORDER
// clang-format on
