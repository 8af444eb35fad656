// SPDX-License-Identifier: BSD-3-Clause
// NVSHMEM's functions of the host, as rows, for nvshmem.h and libnvshmem_host, which define what
// becomes of a row. No include guard.
//   GPSH_NVS_ROW(RETURN, NAME, PARAMETERS, BODY)              of the host alone
//   GPSH_NVS_BOTH(RETURN, NAME, PARAMETERS, ARGUMENTS, BODY)  kernels have the name, too: there it
//                                                            calls gpsh_dev_NAME ARGUMENTS
// clang-format off

#define GPSH_NVS_LIST(...) __VA_ARGS__
#define GPSH_NVS_CHECK(...) { gpushmem_nvshmem_lost(__VA_ARGS__); }
#define GPSH_NVS_STATUS(...) { return gpushmem_nvshmem_check(__VA_ARGS__); }
// Collective: may be what completes an init before cudaSetDevice.
#define GPSH_NVS_FIRST(CALL) \
    int status = CALL; \
    if (status < 0 && gpushmem_nvshmem_complete(status)) \
        status = CALL;
#define GPSH_NVS_CHECK_FIRST(CALL) { GPSH_NVS_FIRST(CALL) gpushmem_nvshmem_lost(status); }
#define GPSH_NVS_STATUS_FIRST(CALL) { GPSH_NVS_FIRST(CALL) return gpushmem_nvshmem_check(status); }
#define GPSH_NVS_BLOCK_FIRST(CALL) { \
        void *block = CALL; \
        if (!block && gpushmem_nvshmem_complete(gpushmem_last_error_code())) \
            block = CALL; \
        return gpushmem_nvshmem_block(block); \
    }
#define GPSH_NVS_CMP(cmp) ((enum gpushmem_cmp)(cmp))
#define GPSH_NVS_OP(op) ((enum gpushmem_signal_op)(op))
// A value as the type by which gpushmem moves it, and back.
#define GPSH_NVS_INTO(CTYPE, name, value) \
    CTYPE name; \
    __builtin_memcpy((void *)&name, (const void *)&value, sizeof name);

// ---- Lifecycle ----

GPSH_NVS_ROW(void, nvshmem_init, (void),
            { (void)gpushmem_nvshmem_init(NVSHMEM_THREAD_SINGLE, NULL); })
GPSH_NVS_ROW(int, nvshmem_init_thread, (int requested, int *provided),
            { return gpushmem_nvshmem_init(requested, provided); })
GPSH_NVS_ROW(void, nvshmem_query_thread, (int *provided),
            { gpushmem_nvshmem_query_thread(provided); })
GPSH_NVS_ROW(void, nvshmem_finalize, (void), { (void)gpushmem_nvshmem_finalize(); })
GPSH_NVS_ROW(void, nvshmem_global_exit, (int status), { gpushmem_global_exit(status); })
GPSH_NVS_ROW(int, nvshmemx_init_attr, (unsigned int flags, nvshmemx_init_attr_t *attr),
            { return gpushmem_nvshmem_init_attr(flags, attr); })
GPSH_NVS_ROW(int, nvshmemx_hostlib_init_attr, (unsigned int flags, nvshmemx_init_attr_t *attr),
            { return gpushmem_nvshmem_init_attr(flags, attr); })
GPSH_NVS_ROW(void, nvshmemx_hostlib_finalize, (void), { (void)gpushmem_nvshmem_finalize(); })
GPSH_NVS_ROW(int, nvshmemx_init_status, (void), { return gpushmem_nvshmem_init_status(); })
GPSH_NVS_ROW(int, nvshmemx_get_uniqueid, (nvshmemx_uniqueid_t *id),
            { return gpushmem_nvshmem_get_uniqueid(id); })
GPSH_NVS_ROW(int, nvshmemx_set_attr_uniqueid_args,
            (const int myrank, const int nranks, const nvshmemx_uniqueid_t *id,
             nvshmemx_init_attr_t *attr),
            { return gpushmem_nvshmem_set_uniqueid(myrank, nranks, id, attr); })
GPSH_NVS_ROW(int, nvshmemx_set_attr_mpi_comm_args, (void *mpi_comm, nvshmemx_init_attr_t *attr),
            { return gpushmem_nvshmem_set_mpi_comm(mpi_comm, attr); })
GPSH_NVS_ROW(void, nvshmemx_vendor_get_version_info, (int *major, int *minor, int *patch), {
    if (major)
        *major = NVSHMEM_VENDOR_MAJOR_VERSION;
    if (minor)
        *minor = NVSHMEM_VENDOR_MINOR_VERSION;
    if (patch)
        *patch = NVSHMEM_VENDOR_PATCH_VERSION;
})
GPSH_NVS_ROW(void, nvshmem_info_get_version, (int *major, int *minor), {
    if (major)
        *major = NVSHMEM_MAJOR_VERSION;
    if (minor)
        *minor = NVSHMEM_MINOR_VERSION;
})
GPSH_NVS_ROW(void, nvshmem_info_get_name, (char *name), {
    if (name)
        __builtin_memcpy(name, NVSHMEM_VENDOR_STRING, sizeof NVSHMEM_VENDOR_STRING);
})
// Modules (CUmodule, CUlibrary) that a program loads itself, by their handles of the driver.
GPSH_NVS_ROW(int, nvshmemx_cumodule_init, (gpsh_nvshmem_module module),
            { return gpushmem_nvshmem_module_init(module); })
GPSH_NVS_ROW(int, nvshmemx_cumodule_finalize, (gpsh_nvshmem_module module),
            { return gpushmem_nvshmem_module_finalize(module); })
GPSH_NVS_ROW(int, nvshmemx_culibrary_init, (gpsh_nvshmem_library library),
            { return gpushmem_nvshmem_library_init(library); })
GPSH_NVS_ROW(int, nvshmemx_culibrary_finalize, (gpsh_nvshmem_library library),
            { return gpushmem_nvshmem_library_finalize(library); })

// Before the first collective call after an init without GPU the library knows these already.
GPSH_NVS_BOTH(int, nvshmem_my_pe, (void), (), {
    int pe = gpushmem_my_pe();
    return __builtin_expect(pe < 0, 0) ? gpushmem_nvshmem_early_pe(NVSHMEM_TEAM_WORLD) : pe;
})
GPSH_NVS_BOTH(int, nvshmem_n_pes, (void), (), {
    int n = gpushmem_n_pes();
    return __builtin_expect(n < 0, 0) ? gpushmem_nvshmem_early_n(NVSHMEM_TEAM_WORLD) : n;
})

// ---- Memory ----

GPSH_NVS_ROW(void *, nvshmem_malloc, (size_t size), GPSH_NVS_BLOCK_FIRST(gpushmem_malloc(size)))
GPSH_NVS_ROW(void *, nvshmem_calloc, (size_t count, size_t size),
            GPSH_NVS_BLOCK_FIRST(gpushmem_calloc(count, size)))
GPSH_NVS_ROW(void *, nvshmem_align, (size_t alignment, size_t size),
            GPSH_NVS_BLOCK_FIRST(gpushmem_align(alignment, size)))
GPSH_NVS_ROW(void, nvshmem_free, (void *ptr), GPSH_NVS_CHECK(gpushmem_free(ptr)))
GPSH_NVS_BOTH(void *, nvshmem_ptr, (const void *dest, int pe), (dest, pe),
             { return gpushmem_nvshmem_block(gpushmem_ptr(dest, pe)); })
// There are no multicast addresses.
GPSH_NVS_BOTH(void *, nvshmemx_mc_ptr, (nvshmem_team_t team, const void *ptr), (team, ptr), {
    (void)team;
    (void)ptr;
    return NULL;
})
GPSH_NVS_ROW(int, nvshmemx_buffer_register, (void *addr, size_t length),
            GPSH_NVS_STATUS_FIRST(gpushmem_nvshmem_register(addr, length)))
GPSH_NVS_ROW(int, nvshmemx_buffer_unregister, (void *addr),
            GPSH_NVS_STATUS(gpushmem_nvshmem_unregister(addr)))
GPSH_NVS_ROW(void, nvshmemx_buffer_unregister_all, (void),
            GPSH_NVS_CHECK(gpushmem_nvshmem_unregister_all()))
GPSH_NVS_ROW(void *, nvshmemx_buffer_register_symmetric, (void *buf_ptr, size_t size, int flags), {
    (void)flags;
    GPSH_NVS_BLOCK_FIRST(gpushmem_buffer_register_symmetric(buf_ptr, size))
})
GPSH_NVS_ROW(int, nvshmemx_buffer_unregister_symmetric, (void *mmap_ptr, size_t size), {
    (void)size;
    return gpushmem_nvshmem_check(gpushmem_buffer_unregister_symmetric(mmap_ptr));
})

GPSH_NVS_ROW(int, nvshmemx_qp_create, (int num_qps, nvshmemx_qp_handle_t **out_qp_array),
            GPSH_NVS_STATUS_FIRST(gpushmem_nvshmem_qp_create(num_qps, out_qp_array)))

// ---- Teams ----

GPSH_NVS_BOTH(int, nvshmem_team_my_pe, (nvshmem_team_t team), (team), {
    int pe = gpushmem_team_my_pe(team);
    return __builtin_expect(pe < 0, 0) ? gpushmem_nvshmem_early_pe(team) : pe;
})
GPSH_NVS_BOTH(int, nvshmem_team_n_pes, (nvshmem_team_t team), (team), {
    int n = gpushmem_team_n_pes(team);
    return __builtin_expect(n < 0, 0) ? gpushmem_nvshmem_early_n(team) : n;
})
GPSH_NVS_ROW(int, nvshmem_team_get_config, (nvshmem_team_t team, nvshmem_team_config_t *config),
            { return gpushmem_nvshmem_team_config(team, config); })
GPSH_NVS_BOTH(int, nvshmem_team_translate_pe,
             (nvshmem_team_t src_team, int src_pe, nvshmem_team_t dest_team),
             (src_team, src_pe, dest_team),
             { return gpushmem_team_translate_pe(src_team, src_pe, dest_team); })
GPSH_NVS_ROW(int, nvshmem_team_split_strided,
            (nvshmem_team_t parent_team, int PE_start, int PE_stride, int PE_size,
             const nvshmem_team_config_t *config, long config_mask, nvshmem_team_t *new_team),
            GPSH_NVS_STATUS_FIRST(gpushmem_nvshmem_split(parent_team, PE_start, PE_stride, PE_size,
                                                        config, config_mask, new_team)))
GPSH_NVS_ROW(int, nvshmem_team_split_2d,
            (nvshmem_team_t parent_team, int xrange, const nvshmem_team_config_t *xaxis_config,
             long xaxis_mask, nvshmem_team_t *xaxis_team,
             const nvshmem_team_config_t *yaxis_config, long yaxis_mask,
             nvshmem_team_t *yaxis_team),
            GPSH_NVS_STATUS_FIRST(gpushmem_nvshmem_split_2d(parent_team, xrange, xaxis_config,
                                                           xaxis_mask, xaxis_team, yaxis_config,
                                                           yaxis_mask, yaxis_team)))
GPSH_NVS_ROW(void, nvshmem_team_destroy, (nvshmem_team_t team),
            GPSH_NVS_CHECK(gpushmem_team_destroy(team)))

// ---- Remote memory access ----

#define GPSH_NVS_ROWS(NAME, TYPE, AS, CTYPE) \
    GPSH_NVS_BOTH(void, nvshmem_##NAME##_put, \
                 (TYPE *dest, const TYPE *source, size_t nelems, int pe), \
                 (dest, source, nelems, pe), \
                 GPSH_NVS_CHECK(gpushmem_##AS##_put((CTYPE *)dest, (const CTYPE *)source, nelems, \
                                                   pe))) \
    GPSH_NVS_BOTH(void, nvshmem_##NAME##_get, \
                 (TYPE *dest, const TYPE *source, size_t nelems, int pe), \
                 (dest, source, nelems, pe), \
                 GPSH_NVS_CHECK(gpushmem_##AS##_get((CTYPE *)dest, (const CTYPE *)source, nelems, \
                                                   pe))) \
    GPSH_NVS_BOTH(void, nvshmem_##NAME##_put_nbi, \
                 (TYPE *dest, const TYPE *source, size_t nelems, int pe), \
                 (dest, source, nelems, pe), \
                 GPSH_NVS_CHECK(gpushmem_##AS##_put_nbi((CTYPE *)dest, (const CTYPE *)source, \
                                                       nelems, pe))) \
    GPSH_NVS_BOTH(void, nvshmem_##NAME##_get_nbi, \
                 (TYPE *dest, const TYPE *source, size_t nelems, int pe), \
                 (dest, source, nelems, pe), \
                 GPSH_NVS_CHECK(gpushmem_##AS##_get_nbi((CTYPE *)dest, (const CTYPE *)source, \
                                                       nelems, pe))) \
    GPSH_NVS_BOTH(void, nvshmem_##NAME##_p, (TYPE *dest, const TYPE value, int pe), \
                 (dest, value, pe), { \
        GPSH_NVS_INTO(CTYPE, bits, value) \
        gpushmem_nvshmem_lost(gpushmem_##AS##_p((CTYPE *)dest, bits, pe)); \
    }) \
    GPSH_NVS_BOTH(TYPE, nvshmem_##NAME##_g, (const TYPE *source, int pe), (source, pe), { \
        CTYPE bits = gpushmem_##AS##_g((const CTYPE *)source, pe); \
        GPSH_NVS_INTO(TYPE, value, bits) \
        return value; \
    }) \
    GPSH_NVS_BOTH(void, nvshmem_##NAME##_iput, \
                 (TYPE *dest, const TYPE *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, \
                  int pe), \
                 (dest, source, dst, sst, nelems, pe), \
                 GPSH_NVS_CHECK(gpushmem_##AS##_iput((CTYPE *)dest, (const CTYPE *)source, dst, \
                                                    sst, nelems, pe))) \
    GPSH_NVS_BOTH(void, nvshmem_##NAME##_iget, \
                 (TYPE *dest, const TYPE *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, \
                  int pe), \
                 (dest, source, dst, sst, nelems, pe), \
                 GPSH_NVS_CHECK(gpushmem_##AS##_iget((CTYPE *)dest, (const CTYPE *)source, dst, \
                                                    sst, nelems, pe))) \
    GPSH_NVS_BOTH(void, nvshmem_##NAME##_put_signal, \
                 (TYPE *dest, const TYPE *source, size_t nelems, uint64_t *sig_addr, \
                  uint64_t signal, int sig_op, int pe), \
                 (dest, source, nelems, sig_addr, signal, sig_op, pe), \
                 GPSH_NVS_CHECK(gpushmem_##AS##_put_signal((CTYPE *)dest, (const CTYPE *)source, \
                                                          nelems, sig_addr, signal, \
                                                          GPSH_NVS_OP(sig_op), pe))) \
    GPSH_NVS_BOTH(void, nvshmem_##NAME##_put_signal_nbi, \
                 (TYPE *dest, const TYPE *source, size_t nelems, uint64_t *sig_addr, \
                  uint64_t signal, int sig_op, int pe), \
                 (dest, source, nelems, sig_addr, signal, sig_op, pe), \
                 GPSH_NVS_CHECK(gpushmem_##AS##_put_signal_nbi( \
                     (CTYPE *)dest, (const CTYPE *)source, nelems, sig_addr, signal, \
                     GPSH_NVS_OP(sig_op), pe)))
GPSH_NVS_RMA_TYPES(GPSH_NVS_ROWS)
#undef GPSH_NVS_ROWS

// By the bits of an element, and by bytes.
#define GPSH_NVS_UNTYPED(FORM) \
    GPSH_NVS_BOTH(void, nvshmem_put##FORM, \
                 (void *dest, const void *source, size_t nelems, int pe), \
                 (dest, source, nelems, pe), \
                 GPSH_NVS_CHECK(gpushmem_put##FORM(dest, source, nelems, pe))) \
    GPSH_NVS_BOTH(void, nvshmem_get##FORM, \
                 (void *dest, const void *source, size_t nelems, int pe), \
                 (dest, source, nelems, pe), \
                 GPSH_NVS_CHECK(gpushmem_get##FORM(dest, source, nelems, pe))) \
    GPSH_NVS_BOTH(void, nvshmem_put##FORM##_nbi, \
                 (void *dest, const void *source, size_t nelems, int pe), \
                 (dest, source, nelems, pe), \
                 GPSH_NVS_CHECK(gpushmem_put##FORM##_nbi(dest, source, nelems, pe))) \
    GPSH_NVS_BOTH(void, nvshmem_get##FORM##_nbi, \
                 (void *dest, const void *source, size_t nelems, int pe), \
                 (dest, source, nelems, pe), \
                 GPSH_NVS_CHECK(gpushmem_get##FORM##_nbi(dest, source, nelems, pe))) \
    GPSH_NVS_BOTH(void, nvshmem_put##FORM##_signal, \
                 (void *dest, const void *source, size_t nelems, uint64_t *sig_addr, \
                  uint64_t signal, int sig_op, int pe), \
                 (dest, source, nelems, sig_addr, signal, sig_op, pe), \
                 GPSH_NVS_CHECK(gpushmem_put##FORM##_signal(dest, source, nelems, sig_addr, \
                                                           signal, GPSH_NVS_OP(sig_op), pe))) \
    GPSH_NVS_BOTH(void, nvshmem_put##FORM##_signal_nbi, \
                 (void *dest, const void *source, size_t nelems, uint64_t *sig_addr, \
                  uint64_t signal, int sig_op, int pe), \
                 (dest, source, nelems, sig_addr, signal, sig_op, pe), \
                 GPSH_NVS_CHECK(gpushmem_put##FORM##_signal_nbi(dest, source, nelems, sig_addr, \
                                                               signal, GPSH_NVS_OP(sig_op), pe)))
#define GPSH_NVS_ROWS(BITS) \
    GPSH_NVS_UNTYPED(BITS) \
    GPSH_NVS_BOTH(void, nvshmem_iput##BITS, \
                 (void *dest, const void *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, \
                  int pe), \
                 (dest, source, dst, sst, nelems, pe), \
                 GPSH_NVS_CHECK(gpushmem_iput##BITS(dest, source, dst, sst, nelems, pe))) \
    GPSH_NVS_BOTH(void, nvshmem_iget##BITS, \
                 (void *dest, const void *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, \
                  int pe), \
                 (dest, source, dst, sst, nelems, pe), \
                 GPSH_NVS_CHECK(gpushmem_iget##BITS(dest, source, dst, sst, nelems, pe)))
GPUSHMEM_RMA_SIZES(GPSH_NVS_ROWS)
#undef GPSH_NVS_ROWS
GPSH_NVS_UNTYPED(mem)
#undef GPSH_NVS_UNTYPED

// ---- Signals ----

GPSH_NVS_BOTH(void, nvshmemx_signal_op,
             (uint64_t *sig_addr, uint64_t signal, int sig_op, int pe),
             (sig_addr, signal, sig_op, pe),
             GPSH_NVS_CHECK((gpushmem_signal_op)(sig_addr, signal, GPSH_NVS_OP(sig_op), pe)))
GPSH_NVS_BOTH(uint64_t, nvshmem_signal_fetch, (const uint64_t *sig_addr), (sig_addr), {
    uint64_t value = 0;
    gpushmem_nvshmem_lost(gpushmem_signal_fetch_status(sig_addr, &value));
    return value;
})
GPSH_NVS_BOTH(uint64_t, nvshmem_signal_wait_until,
             (uint64_t *sig_addr, int cmp, uint64_t cmp_value), (sig_addr, cmp, cmp_value), {
    uint64_t seen = 0;
    gpushmem_nvshmem_lost(
        gpushmem_signal_wait_until_status(sig_addr, GPSH_NVS_CMP(cmp), cmp_value, &seen));
    return seen;
})

// ---- Atomics ----

#define GPSH_NVS_FETCH(TYPE, NAME, ARGUMENTS, ...) \
    GPSH_NVS_BOTH(TYPE, nvshmem_##NAME, (__VA_ARGS__), ARGUMENTS, { \
        TYPE before = 0; \
        gpushmem_nvshmem_lost(gpushmem_##NAME##_status(GPSH_NVS_LIST ARGUMENTS, &before)); \
        return before; \
    })
#define GPSH_NVS_UPDATE(NAME, ARGUMENTS, ...) \
    GPSH_NVS_BOTH(void, nvshmem_##NAME, (__VA_ARGS__), ARGUMENTS, \
                 GPSH_NVS_CHECK(gpushmem_##NAME ARGUMENTS))
#define GPSH_NVS_ROWS(NAME, TYPE, AS, CTYPE) \
    GPSH_NVS_FETCH(TYPE, NAME##_atomic_fetch, (source, pe), const TYPE *source, int pe) \
    GPSH_NVS_UPDATE(NAME##_atomic_set, (dest, value, pe), TYPE *dest, TYPE value, int pe) \
    GPSH_NVS_FETCH(TYPE, NAME##_atomic_swap, (dest, value, pe), TYPE *dest, TYPE value, int pe)
GPSH_NVS_AMO_EXTENDED_TYPES(GPSH_NVS_ROWS)
#undef GPSH_NVS_ROWS
#define GPSH_NVS_ROWS(NAME, TYPE, AS, CTYPE) \
    GPSH_NVS_FETCH(TYPE, NAME##_atomic_compare_swap, (dest, cond, value, pe), \
                  TYPE *dest, TYPE cond, TYPE value, int pe) \
    GPSH_NVS_FETCH(TYPE, NAME##_atomic_fetch_inc, (dest, pe), TYPE *dest, int pe) \
    GPSH_NVS_UPDATE(NAME##_atomic_inc, (dest, pe), TYPE *dest, int pe) \
    GPSH_NVS_FETCH(TYPE, NAME##_atomic_fetch_add, (dest, value, pe), TYPE *dest, TYPE value, \
                  int pe) \
    GPSH_NVS_UPDATE(NAME##_atomic_add, (dest, value, pe), TYPE *dest, TYPE value, int pe)
GPSH_NVS_AMO_TYPES(GPSH_NVS_ROWS)
#undef GPSH_NVS_ROWS
#define GPSH_NVS_BITWISE(NAME, TYPE, OP) \
    GPSH_NVS_FETCH(TYPE, NAME##_atomic_fetch_##OP, (dest, value, pe), TYPE *dest, TYPE value, \
                  int pe) \
    GPSH_NVS_UPDATE(NAME##_atomic_##OP, (dest, value, pe), TYPE *dest, TYPE value, int pe)
#define GPSH_NVS_ROWS(NAME, TYPE, AS, CTYPE) \
    GPSH_NVS_BITWISE(NAME, TYPE, and) \
    GPSH_NVS_BITWISE(NAME, TYPE, or) \
    GPSH_NVS_BITWISE(NAME, TYPE, xor)
GPSH_NVS_AMO_BITWISE_TYPES(GPSH_NVS_ROWS)
#undef GPSH_NVS_ROWS
#undef GPSH_NVS_BITWISE
#undef GPSH_NVS_UPDATE
#undef GPSH_NVS_FETCH

// ---- Waiting for words of this PE ----

#define GPSH_NVS_SET_OF(NAME, TYPE, VECTOR, VALUE) \
    GPSH_NVS_BOTH(void, nvshmem_##NAME##_wait_until_all##VECTOR, \
                 (TYPE *ivars, size_t nelems, const int *status, int cmp, VALUE), \
                 (ivars, nelems, status, cmp, cmp_value), \
                 GPSH_NVS_CHECK(gpushmem_##NAME##_wait_until_all##VECTOR( \
                     ivars, nelems, status, GPSH_NVS_CMP(cmp), cmp_value))) \
    GPSH_NVS_BOTH(size_t, nvshmem_##NAME##_wait_until_any##VECTOR, \
                 (TYPE *ivars, size_t nelems, const int *status, int cmp, VALUE), \
                 (ivars, nelems, status, cmp, cmp_value), { \
        size_t index = SIZE_MAX; \
        gpushmem_nvshmem_lost(gpushmem_##NAME##_wait_until_any##VECTOR##_status( \
            ivars, nelems, status, GPSH_NVS_CMP(cmp), cmp_value, &index)); \
        return index; \
    }) \
    GPSH_NVS_BOTH(size_t, nvshmem_##NAME##_wait_until_some##VECTOR, \
                 (TYPE *ivars, size_t nelems, size_t *indices, const int *status, int cmp, \
                  VALUE), \
                 (ivars, nelems, indices, status, cmp, cmp_value), { \
        size_t count = 0; \
        gpushmem_nvshmem_lost(gpushmem_##NAME##_wait_until_some##VECTOR##_status( \
            ivars, nelems, indices, status, GPSH_NVS_CMP(cmp), cmp_value, &count)); \
        return count; \
    }) \
    GPSH_NVS_BOTH(int, nvshmem_##NAME##_test_all##VECTOR, \
                 (TYPE *ivars, size_t nelems, const int *status, int cmp, VALUE), \
                 (ivars, nelems, status, cmp, cmp_value), { \
        int all = gpushmem_##NAME##_test_all##VECTOR(ivars, nelems, status, GPSH_NVS_CMP(cmp), \
                                                     cmp_value); \
        gpushmem_nvshmem_lost(all); \
        return all > 0; \
    }) \
    GPSH_NVS_BOTH(size_t, nvshmem_##NAME##_test_any##VECTOR, \
                 (TYPE *ivars, size_t nelems, const int *status, int cmp, VALUE), \
                 (ivars, nelems, status, cmp, cmp_value), { \
        size_t index = SIZE_MAX; \
        gpushmem_nvshmem_lost(gpushmem_##NAME##_test_any##VECTOR##_status( \
            ivars, nelems, status, GPSH_NVS_CMP(cmp), cmp_value, &index)); \
        return index; \
    }) \
    GPSH_NVS_BOTH(size_t, nvshmem_##NAME##_test_some##VECTOR, \
                 (TYPE *ivars, size_t nelems, size_t *indices, const int *status, int cmp, \
                  VALUE), \
                 (ivars, nelems, indices, status, cmp, cmp_value), { \
        size_t count = 0; \
        gpushmem_nvshmem_lost(gpushmem_##NAME##_test_some##VECTOR##_status( \
            ivars, nelems, indices, status, GPSH_NVS_CMP(cmp), cmp_value, &count)); \
        return count; \
    })
#define GPSH_NVS_ROWS(NAME, TYPE, AS, CTYPE) \
    GPSH_NVS_BOTH(void, nvshmem_##NAME##_wait_until, (TYPE *ivar, int cmp, TYPE cmp_value), \
                 (ivar, cmp, cmp_value), \
                 GPSH_NVS_CHECK(gpushmem_##NAME##_wait_until(ivar, GPSH_NVS_CMP(cmp), cmp_value))) \
    GPSH_NVS_BOTH(int, nvshmem_##NAME##_test, (TYPE *ivar, int cmp, TYPE cmp_value), \
                 (ivar, cmp, cmp_value), { \
        int is = gpushmem_##NAME##_test(ivar, GPSH_NVS_CMP(cmp), cmp_value); \
        gpushmem_nvshmem_lost(is); \
        return is > 0; \
    }) \
    GPSH_NVS_SET_OF(NAME, TYPE, , TYPE cmp_value) \
    GPSH_NVS_SET_OF(NAME, TYPE, _vector, TYPE *cmp_value)
GPSH_NVS_SYNC_TYPES(GPSH_NVS_ROWS)
#undef GPSH_NVS_ROWS
#undef GPSH_NVS_SET_OF

// ---- Order, synchronisation ----

GPSH_NVS_BOTH(void, nvshmem_fence, (void), (), GPSH_NVS_CHECK(gpushmem_fence()))
GPSH_NVS_BOTH(void, nvshmem_quiet, (void), (), GPSH_NVS_CHECK(gpushmem_quiet()))
GPSH_NVS_BOTH(void, nvshmem_barrier_all, (void), (), GPSH_NVS_CHECK_FIRST(gpushmem_barrier_all()))
GPSH_NVS_BOTH(void, nvshmem_sync_all, (void), (), GPSH_NVS_CHECK_FIRST(gpushmem_sync_all()))
GPSH_NVS_BOTH(int, nvshmem_barrier, (nvshmem_team_t team), (team),
             GPSH_NVS_STATUS_FIRST(gpushmem_barrier(team)))
GPSH_NVS_BOTH(int, nvshmem_sync, (nvshmem_team_t team), (team),
             GPSH_NVS_STATUS_FIRST(gpushmem_team_sync(team)))
GPSH_NVS_BOTH(int, nvshmem_team_sync, (nvshmem_team_t team), (team),
             GPSH_NVS_STATUS_FIRST(gpushmem_team_sync(team)))

// ---- Collectives ----

#define GPSH_NVS_ROWS(NAME, TYPE, AS, CTYPE) \
    GPSH_NVS_BOTH(int, nvshmem_##NAME##_broadcast, \
                 (nvshmem_team_t team, TYPE *dest, const TYPE *source, size_t nelems, \
                  int PE_root), \
                 (team, dest, source, nelems, PE_root), \
                 GPSH_NVS_STATUS(gpushmem_##AS##_broadcast(team, (CTYPE *)dest, \
                                                          (const CTYPE *)source, nelems, \
                                                          PE_root))) \
    GPSH_NVS_BOTH(int, nvshmem_##NAME##_fcollect, \
                 (nvshmem_team_t team, TYPE *dest, const TYPE *source, size_t nelems), \
                 (team, dest, source, nelems), \
                 GPSH_NVS_STATUS(gpushmem_##AS##_fcollect(team, (CTYPE *)dest, \
                                                         (const CTYPE *)source, nelems))) \
    GPSH_NVS_BOTH(int, nvshmem_##NAME##_alltoall, \
                 (nvshmem_team_t team, TYPE *dest, const TYPE *source, size_t nelems), \
                 (team, dest, source, nelems), \
                 GPSH_NVS_STATUS(gpushmem_##AS##_alltoall(team, (CTYPE *)dest, \
                                                         (const CTYPE *)source, nelems)))
GPSH_NVS_RMA_TYPES(GPSH_NVS_ROWS)
#undef GPSH_NVS_ROWS
GPSH_NVS_BOTH(int, nvshmem_broadcastmem,
             (nvshmem_team_t team, void *dest, const void *source, size_t nelems, int PE_root),
             (team, dest, source, nelems, PE_root),
             GPSH_NVS_STATUS(gpushmem_broadcastmem(team, dest, source, nelems, PE_root)))
GPSH_NVS_BOTH(int, nvshmem_fcollectmem,
             (nvshmem_team_t team, void *dest, const void *source, size_t nelems),
             (team, dest, source, nelems),
             GPSH_NVS_STATUS(gpushmem_fcollectmem(team, dest, source, nelems)))
GPSH_NVS_BOTH(int, nvshmem_alltoallmem,
             (nvshmem_team_t team, void *dest, const void *source, size_t nelems),
             (team, dest, source, nelems),
             GPSH_NVS_STATUS(gpushmem_alltoallmem(team, dest, source, nelems)))

#define GPSH_NVS_FOLD(NAME, TYPE, AS, CTYPE, OP) \
    GPSH_NVS_BOTH(int, nvshmem_##NAME##_##OP##_reduce, \
                 (nvshmem_team_t team, TYPE *dest, const TYPE *source, size_t nreduce), \
                 (team, dest, source, nreduce), \
                 GPSH_NVS_STATUS(gpushmem_##AS##_##OP##_reduce(team, (CTYPE *)dest, \
                                                              (const CTYPE *)source, nreduce))) \
    GPSH_NVS_BOTH(int, nvshmem_##NAME##_##OP##_reducescatter, \
                 (nvshmem_team_t team, TYPE *dest, const TYPE *source, size_t nreduce), \
                 (team, dest, source, nreduce), \
                 GPSH_NVS_STATUS(gpushmem_##AS##_##OP##_reducescatter( \
                     team, (CTYPE *)dest, (const CTYPE *)source, nreduce)))
#define GPSH_NVS_FOLDS_OF_BITS(NAME, TYPE, AS, CTYPE) \
    GPSH_NVS_FOLD(NAME, TYPE, AS, CTYPE, and) \
    GPSH_NVS_FOLD(NAME, TYPE, AS, CTYPE, or) \
    GPSH_NVS_FOLD(NAME, TYPE, AS, CTYPE, xor)
#define GPSH_NVS_FOLDS(NAME, TYPE, AS, CTYPE) \
    GPSH_NVS_FOLD(NAME, TYPE, AS, CTYPE, min) \
    GPSH_NVS_FOLD(NAME, TYPE, AS, CTYPE, max) \
    GPSH_NVS_FOLD(NAME, TYPE, AS, CTYPE, sum) \
    GPSH_NVS_FOLD(NAME, TYPE, AS, CTYPE, prod)
GPSH_NVS_REDUCE_TYPES(GPSH_NVS_FOLDS)
GPSH_NVS_INTEGER_TYPES(GPSH_NVS_FOLDS_OF_BITS)
#undef GPSH_NVS_FOLD

// ---- On streams ----

#define GPSH_NVS_ROWS(NAME, TYPE, AS, CTYPE) \
    GPSH_NVS_ROW(void, nvshmemx_##NAME##_put_on_stream, \
                (TYPE *dest, const TYPE *source, size_t nelems, int pe, cudaStream_t stream), \
                GPSH_NVS_CHECK(gpushmem_##AS##_put_on_stream((CTYPE *)dest, \
                                                            (const CTYPE *)source, nelems, pe, \
                                                            stream))) \
    GPSH_NVS_ROW(void, nvshmemx_##NAME##_get_on_stream, \
                (TYPE *dest, const TYPE *source, size_t nelems, int pe, cudaStream_t stream), \
                GPSH_NVS_CHECK(gpushmem_##AS##_get_on_stream((CTYPE *)dest, \
                                                            (const CTYPE *)source, nelems, pe, \
                                                            stream))) \
    GPSH_NVS_ROW(void, nvshmemx_##NAME##_put_nbi_on_stream, \
                (TYPE *dest, const TYPE *source, size_t nelems, int pe, cudaStream_t stream), \
                GPSH_NVS_CHECK(gpushmem_##AS##_put_on_stream((CTYPE *)dest, \
                                                            (const CTYPE *)source, nelems, pe, \
                                                            stream))) \
    GPSH_NVS_ROW(void, nvshmemx_##NAME##_get_nbi_on_stream, \
                (TYPE *dest, const TYPE *source, size_t nelems, int pe, cudaStream_t stream), \
                GPSH_NVS_CHECK(gpushmem_##AS##_get_on_stream((CTYPE *)dest, \
                                                            (const CTYPE *)source, nelems, pe, \
                                                            stream))) \
    GPSH_NVS_ROW(void, nvshmemx_##NAME##_put_signal_on_stream, \
                (TYPE *dest, const TYPE *source, size_t nelems, uint64_t *sig_addr, \
                 uint64_t signal, int sig_op, int pe, cudaStream_t stream), \
                GPSH_NVS_CHECK(gpushmem_##AS##_put_signal_on_stream( \
                    (CTYPE *)dest, (const CTYPE *)source, nelems, sig_addr, signal, \
                    GPSH_NVS_OP(sig_op), pe, stream))) \
    GPSH_NVS_ROW(void, nvshmemx_##NAME##_put_signal_nbi_on_stream, \
                (TYPE *dest, const TYPE *source, size_t nelems, uint64_t *sig_addr, \
                 uint64_t signal, int sig_op, int pe, cudaStream_t stream), \
                GPSH_NVS_CHECK(gpushmem_##AS##_put_signal_on_stream( \
                    (CTYPE *)dest, (const CTYPE *)source, nelems, sig_addr, signal, \
                    GPSH_NVS_OP(sig_op), pe, stream))) \
    GPSH_NVS_ROW(void, nvshmemx_##NAME##_p_on_stream, \
                (TYPE *dest, const TYPE value, int pe, cudaStream_t stream), { \
        GPSH_NVS_INTO(CTYPE, bits, value) \
        gpushmem_nvshmem_lost(gpushmem_##AS##_p_on_stream((CTYPE *)dest, bits, pe, stream)); \
    }) \
    GPSH_NVS_ROW(TYPE, nvshmemx_##NAME##_g_on_stream, \
                (const TYPE *source, int pe, cudaStream_t stream), { \
        CTYPE bits; \
        gpushmem_nvshmem_fetch("nvshmemx_" #NAME "_g_on_stream", &bits, source, sizeof bits, pe, \
                               stream); \
        GPSH_NVS_INTO(TYPE, value, bits) \
        return value; \
    }) \
    GPSH_NVS_ROW(void, nvshmemx_##NAME##_iput_on_stream, \
                (TYPE *dest, const TYPE *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, \
                 int pe, cudaStream_t stream), \
                GPSH_NVS_CHECK(gpushmem_##AS##_iput_on_stream( \
                    (CTYPE *)dest, (const CTYPE *)source, dst, sst, nelems, pe, stream))) \
    GPSH_NVS_ROW(void, nvshmemx_##NAME##_iget_on_stream, \
                (TYPE *dest, const TYPE *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, \
                 int pe, cudaStream_t stream), \
                GPSH_NVS_CHECK(gpushmem_##AS##_iget_on_stream( \
                    (CTYPE *)dest, (const CTYPE *)source, dst, sst, nelems, pe, stream))) \
    GPSH_NVS_ROW(int, nvshmemx_##NAME##_broadcast_on_stream, \
                (nvshmem_team_t team, TYPE *dest, const TYPE *source, size_t nelems, \
                 int PE_root, cudaStream_t stream), \
                GPSH_NVS_STATUS(gpushmem_##AS##_broadcast_on_stream( \
                    team, (CTYPE *)dest, (const CTYPE *)source, nelems, PE_root, stream))) \
    GPSH_NVS_ROW(int, nvshmemx_##NAME##_fcollect_on_stream, \
                (nvshmem_team_t team, TYPE *dest, const TYPE *source, size_t nelems, \
                 cudaStream_t stream), \
                GPSH_NVS_STATUS(gpushmem_##AS##_fcollect_on_stream( \
                    team, (CTYPE *)dest, (const CTYPE *)source, nelems, stream))) \
    GPSH_NVS_ROW(int, nvshmemx_##NAME##_alltoall_on_stream, \
                (nvshmem_team_t team, TYPE *dest, const TYPE *source, size_t nelems, \
                 cudaStream_t stream), \
                GPSH_NVS_STATUS(gpushmem_##AS##_alltoall_on_stream( \
                    team, (CTYPE *)dest, (const CTYPE *)source, nelems, stream)))
GPSH_NVS_RMA_TYPES(GPSH_NVS_ROWS)
#undef GPSH_NVS_ROWS

#define GPSH_NVS_UNTYPED(FORM) \
    GPSH_NVS_ROW(void, nvshmemx_put##FORM##_on_stream, \
                (void *dest, const void *source, size_t nelems, int pe, cudaStream_t stream), \
                GPSH_NVS_CHECK(gpushmem_put##FORM##_on_stream(dest, source, nelems, pe, stream))) \
    GPSH_NVS_ROW(void, nvshmemx_get##FORM##_on_stream, \
                (void *dest, const void *source, size_t nelems, int pe, cudaStream_t stream), \
                GPSH_NVS_CHECK(gpushmem_get##FORM##_on_stream(dest, source, nelems, pe, stream))) \
    GPSH_NVS_ROW(void, nvshmemx_put##FORM##_nbi_on_stream, \
                (void *dest, const void *source, size_t nelems, int pe, cudaStream_t stream), \
                GPSH_NVS_CHECK(gpushmem_put##FORM##_on_stream(dest, source, nelems, pe, stream))) \
    GPSH_NVS_ROW(void, nvshmemx_get##FORM##_nbi_on_stream, \
                (void *dest, const void *source, size_t nelems, int pe, cudaStream_t stream), \
                GPSH_NVS_CHECK(gpushmem_get##FORM##_on_stream(dest, source, nelems, pe, stream))) \
    GPSH_NVS_ROW(void, nvshmemx_put##FORM##_signal_on_stream, \
                (void *dest, const void *source, size_t nelems, uint64_t *sig_addr, \
                 uint64_t signal, int sig_op, int pe, cudaStream_t stream), \
                GPSH_NVS_CHECK(gpushmem_put##FORM##_signal_on_stream( \
                    dest, source, nelems, sig_addr, signal, GPSH_NVS_OP(sig_op), pe, stream))) \
    GPSH_NVS_ROW(void, nvshmemx_put##FORM##_signal_nbi_on_stream, \
                (void *dest, const void *source, size_t nelems, uint64_t *sig_addr, \
                 uint64_t signal, int sig_op, int pe, cudaStream_t stream), \
                GPSH_NVS_CHECK(gpushmem_put##FORM##_signal_on_stream( \
                    dest, source, nelems, sig_addr, signal, GPSH_NVS_OP(sig_op), pe, stream)))
GPUSHMEM_RMA_SIZES(GPSH_NVS_UNTYPED)
GPSH_NVS_UNTYPED(mem)
#undef GPSH_NVS_UNTYPED

#define GPSH_NVS_STRIDED(BITS) \
    GPSH_NVS_ROW(void, nvshmemx_iput##BITS##_on_stream, \
                (void *dest, const void *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, \
                 int pe, cudaStream_t stream), \
                GPSH_NVS_CHECK(gpushmem_iput##BITS##_on_stream(dest, source, dst, sst, nelems, pe, \
                                                              stream))) \
    GPSH_NVS_ROW(void, nvshmemx_iget##BITS##_on_stream, \
                (void *dest, const void *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, \
                 int pe, cudaStream_t stream), \
                GPSH_NVS_CHECK(gpushmem_iget##BITS##_on_stream(dest, source, dst, sst, nelems, pe, \
                                                              stream)))
GPUSHMEM_RMA_SIZES(GPSH_NVS_STRIDED)
#undef GPSH_NVS_STRIDED

GPSH_NVS_ROW(void, nvshmemx_signal_op_on_stream,
            (uint64_t *sig_addr, uint64_t signal, int sig_op, int pe, cudaStream_t stream),
            GPSH_NVS_CHECK(gpushmem_signal_op_on_stream(sig_addr, signal, GPSH_NVS_OP(sig_op), pe,
                                                       stream)))
GPSH_NVS_ROW(void, nvshmemx_signal_wait_until_on_stream,
            (uint64_t *sig_addr, int cmp, uint64_t cmp_value, cudaStream_t stream),
            GPSH_NVS_CHECK(gpushmem_signal_wait_until_on_stream(sig_addr, GPSH_NVS_CMP(cmp),
                                                               cmp_value, stream)))
// Of the words that a stream can wait for.
#define GPSH_NVS_ROWS(NAME, TYPE) \
    GPSH_NVS_ROW(void, nvshmemx_##NAME##_wait_until_on_stream, \
                (TYPE *ivar, int cmp, TYPE cmp_value, cudaStream_t stream), \
                GPSH_NVS_CHECK(gpushmem_signal_wait_until_on_stream( \
                    (uint64_t *)ivar, GPSH_NVS_CMP(cmp), (uint64_t)cmp_value, stream)))
GPSH_NVS_ROWS(uint64, uint64_t)
GPSH_NVS_ROWS(ulong, unsigned long)
GPSH_NVS_ROWS(ulonglong, unsigned long long)
GPSH_NVS_ROWS(size, size_t)
#undef GPSH_NVS_ROWS

GPSH_NVS_ROW(void, nvshmemx_quiet_on_stream, (cudaStream_t stream),
            GPSH_NVS_CHECK(gpushmem_quiet_on_stream(stream)))
GPSH_NVS_ROW(void, nvshmemx_barrier_all_on_stream, (cudaStream_t stream),
            GPSH_NVS_CHECK_FIRST(gpushmem_barrier_all_on_stream(stream)))
GPSH_NVS_ROW(void, nvshmemx_sync_all_on_stream, (cudaStream_t stream),
            GPSH_NVS_CHECK_FIRST(gpushmem_sync_all_on_stream(stream)))
GPSH_NVS_ROW(int, nvshmemx_barrier_on_stream, (nvshmem_team_t team, cudaStream_t stream),
            GPSH_NVS_STATUS_FIRST(gpushmem_barrier_on_stream(team, stream)))
GPSH_NVS_ROW(int, nvshmemx_sync_on_stream, (nvshmem_team_t team, cudaStream_t stream),
            GPSH_NVS_STATUS_FIRST(gpushmem_team_sync_on_stream(team, stream)))
GPSH_NVS_ROW(int, nvshmemx_team_sync_on_stream, (nvshmem_team_t team, cudaStream_t stream),
            GPSH_NVS_STATUS_FIRST(gpushmem_team_sync_on_stream(team, stream)))

GPSH_NVS_ROW(int, nvshmemx_broadcastmem_on_stream,
            (nvshmem_team_t team, void *dest, const void *source, size_t nelems, int PE_root,
             cudaStream_t stream),
            GPSH_NVS_STATUS(gpushmem_broadcastmem_on_stream(team, dest, source, nelems, PE_root,
                                                           stream)))
GPSH_NVS_ROW(int, nvshmemx_fcollectmem_on_stream,
            (nvshmem_team_t team, void *dest, const void *source, size_t nelems,
             cudaStream_t stream),
            GPSH_NVS_STATUS(gpushmem_fcollectmem_on_stream(team, dest, source, nelems, stream)))
GPSH_NVS_ROW(int, nvshmemx_alltoallmem_on_stream,
            (nvshmem_team_t team, void *dest, const void *source, size_t nelems,
             cudaStream_t stream),
            GPSH_NVS_STATUS(gpushmem_alltoallmem_on_stream(team, dest, source, nelems, stream)))

#define GPSH_NVS_FOLD(NAME, TYPE, AS, CTYPE, OP) \
    GPSH_NVS_ROW(int, nvshmemx_##NAME##_##OP##_reduce_on_stream, \
                (nvshmem_team_t team, TYPE *dest, const TYPE *source, size_t nreduce, \
                 cudaStream_t stream), \
                GPSH_NVS_STATUS(gpushmem_##AS##_##OP##_reduce_on_stream( \
                    team, (CTYPE *)dest, (const CTYPE *)source, nreduce, stream))) \
    GPSH_NVS_ROW(int, nvshmemx_##NAME##_##OP##_reducescatter_on_stream, \
                (nvshmem_team_t team, TYPE *dest, const TYPE *source, size_t nreduce, \
                 cudaStream_t stream), \
                GPSH_NVS_STATUS(gpushmem_##AS##_##OP##_reducescatter_on_stream( \
                    team, (CTYPE *)dest, (const CTYPE *)source, nreduce, stream)))
GPSH_NVS_REDUCE_TYPES(GPSH_NVS_FOLDS)
GPSH_NVS_INTEGER_TYPES(GPSH_NVS_FOLDS_OF_BITS)
#undef GPSH_NVS_FOLD
#undef GPSH_NVS_FOLDS
#undef GPSH_NVS_FOLDS_OF_BITS

#undef GPSH_NVS_INTO
#undef GPSH_NVS_OP
#undef GPSH_NVS_CMP
#undef GPSH_NVS_BLOCK_FIRST
#undef GPSH_NVS_STATUS_FIRST
#undef GPSH_NVS_CHECK_FIRST
#undef GPSH_NVS_FIRST
#undef GPSH_NVS_STATUS
#undef GPSH_NVS_CHECK
#undef GPSH_NVS_LIST
