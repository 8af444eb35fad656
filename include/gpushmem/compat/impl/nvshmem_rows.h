// SPDX-License-Identifier: BSD-3-Clause
// NVSHMEM's functions of the host, as rows, for nvshmem.h and libnvshmem_host, which define what
// becomes of a row. No include guard.
//   NVSHMEM_ROW(RETURN, NAME, PARAMETERS, BODY)              of the host alone
//   NVSHMEM_BOTH(RETURN, NAME, PARAMETERS, ARGUMENTS, BODY)  kernels have the name, too: there it
//                                                            calls gpsh_dev_NAME ARGUMENTS
// clang-format off

#define NVSHMEM_LIST(...) __VA_ARGS__
#define NVSHMEM_CHECK(...) { gpushmem_nvshmem_check(__VA_ARGS__); }
#define NVSHMEM_STATUS(...) { return gpushmem_nvshmem_check(__VA_ARGS__); }
// Collective: may be what completes an init before cudaSetDevice.
#define NVSHMEM_FIRST(CALL) \
    int status = CALL; \
    if (status < 0 && gpushmem_nvshmem_complete(status)) \
        status = CALL;
#define NVSHMEM_CHECK_FIRST(CALL) { NVSHMEM_FIRST(CALL) gpushmem_nvshmem_check(status); }
#define NVSHMEM_STATUS_FIRST(CALL) { NVSHMEM_FIRST(CALL) return gpushmem_nvshmem_check(status); }
#define NVSHMEM_BLOCK_FIRST(CALL) { \
        void *block = CALL; \
        if (!block && gpushmem_nvshmem_complete(gpushmem_last_error_code())) \
            block = CALL; \
        return gpushmem_nvshmem_block(block); \
    }
#define NVSHMEM_CMP(cmp) ((enum gpushmem_cmp)(cmp))
#define NVSHMEM_OP(op) ((enum gpushmem_signal_op)(op))
// A value as the type by which gpushmem moves it, and back.
#define NVSHMEM_INTO(CTYPE, name, value) \
    CTYPE name; \
    __builtin_memcpy((void *)&name, (const void *)&value, sizeof name);

// ---- Lifecycle ----

NVSHMEM_ROW(void, nvshmem_init, (void),
            { (void)gpushmem_nvshmem_init(NVSHMEM_THREAD_SINGLE, NULL); })
NVSHMEM_ROW(int, nvshmem_init_thread, (int requested, int *provided),
            { return gpushmem_nvshmem_init(requested, provided); })
NVSHMEM_ROW(void, nvshmem_query_thread, (int *provided),
            { gpushmem_nvshmem_query_thread(provided); })
NVSHMEM_ROW(void, nvshmem_finalize, (void), { (void)gpushmem_nvshmem_finalize(); })
NVSHMEM_ROW(void, nvshmem_global_exit, (int status), { gpushmem_global_exit(status); })
NVSHMEM_ROW(int, nvshmemx_init_attr, (unsigned int flags, nvshmemx_init_attr_t *attr),
            { return gpushmem_nvshmem_init_attr(flags, attr); })
NVSHMEM_ROW(int, nvshmemx_hostlib_init_attr, (unsigned int flags, nvshmemx_init_attr_t *attr),
            { return gpushmem_nvshmem_init_attr(flags, attr); })
NVSHMEM_ROW(void, nvshmemx_hostlib_finalize, (void), { (void)gpushmem_nvshmem_finalize(); })
NVSHMEM_ROW(int, nvshmemx_init_status, (void), { return gpushmem_nvshmem_init_status(); })
NVSHMEM_ROW(int, nvshmemx_get_uniqueid, (nvshmemx_uniqueid_t *id),
            { return gpushmem_nvshmem_get_uniqueid(id); })
NVSHMEM_ROW(int, nvshmemx_set_attr_uniqueid_args,
            (const int myrank, const int nranks, const nvshmemx_uniqueid_t *id,
             nvshmemx_init_attr_t *attr),
            { return gpushmem_nvshmem_set_uniqueid(myrank, nranks, id, attr); })
NVSHMEM_ROW(int, nvshmemx_set_attr_mpi_comm_args, (void *mpi_comm, nvshmemx_init_attr_t *attr),
            { return gpushmem_nvshmem_set_mpi_comm(mpi_comm, attr); })
NVSHMEM_ROW(void, nvshmemx_vendor_get_version_info, (int *major, int *minor, int *patch), {
    if (major)
        *major = NVSHMEM_VENDOR_MAJOR_VERSION;
    if (minor)
        *minor = NVSHMEM_VENDOR_MINOR_VERSION;
    if (patch)
        *patch = NVSHMEM_VENDOR_PATCH_VERSION;
})
NVSHMEM_ROW(void, nvshmem_info_get_version, (int *major, int *minor), {
    if (major)
        *major = NVSHMEM_MAJOR_VERSION;
    if (minor)
        *minor = NVSHMEM_MINOR_VERSION;
})
NVSHMEM_ROW(void, nvshmem_info_get_name, (char *name), {
    if (name)
        __builtin_memcpy(name, NVSHMEM_VENDOR_STRING, sizeof NVSHMEM_VENDOR_STRING);
})
// Modules (CUmodule, CUlibrary) that a program loads itself, by their handles of the driver.
NVSHMEM_ROW(int, nvshmemx_cumodule_init, (gpsh_nvshmem_module module),
            { return gpushmem_nvshmem_module_init(module); })
NVSHMEM_ROW(int, nvshmemx_cumodule_finalize, (gpsh_nvshmem_module module),
            { return gpushmem_nvshmem_module_finalize(module); })
NVSHMEM_ROW(int, nvshmemx_culibrary_init, (gpsh_nvshmem_library library),
            { return gpushmem_nvshmem_library_init(library); })
NVSHMEM_ROW(int, nvshmemx_culibrary_finalize, (gpsh_nvshmem_library library),
            { return gpushmem_nvshmem_library_finalize(library); })

// Before the first collective call after an init without GPU the library knows these already.
NVSHMEM_BOTH(int, nvshmem_my_pe, (void), (), {
    int pe = gpushmem_my_pe();
    return __builtin_expect(pe < 0, 0) ? gpushmem_nvshmem_early_pe(NVSHMEM_TEAM_WORLD) : pe;
})
NVSHMEM_BOTH(int, nvshmem_n_pes, (void), (), {
    int n = gpushmem_n_pes();
    return __builtin_expect(n < 0, 0) ? gpushmem_nvshmem_early_n(NVSHMEM_TEAM_WORLD) : n;
})

// ---- Memory ----

NVSHMEM_ROW(void *, nvshmem_malloc, (size_t size), NVSHMEM_BLOCK_FIRST(gpushmem_malloc(size)))
NVSHMEM_ROW(void *, nvshmem_calloc, (size_t count, size_t size),
            NVSHMEM_BLOCK_FIRST(gpushmem_calloc(count, size)))
NVSHMEM_ROW(void *, nvshmem_align, (size_t alignment, size_t size),
            NVSHMEM_BLOCK_FIRST(gpushmem_align(alignment, size)))
NVSHMEM_ROW(void, nvshmem_free, (void *ptr), NVSHMEM_CHECK(gpushmem_free(ptr)))
NVSHMEM_BOTH(void *, nvshmem_ptr, (const void *dest, int pe), (dest, pe),
             { return gpushmem_nvshmem_block(gpushmem_ptr(dest, pe)); })
// There are no multicast addresses.
NVSHMEM_BOTH(void *, nvshmemx_mc_ptr, (nvshmem_team_t team, const void *ptr), (team, ptr), {
    (void)team;
    (void)ptr;
    return NULL;
})
NVSHMEM_ROW(int, nvshmemx_buffer_register, (void *addr, size_t length),
            NVSHMEM_STATUS_FIRST(gpushmem_nvshmem_register(addr, length)))
NVSHMEM_ROW(int, nvshmemx_buffer_unregister, (void *addr),
            NVSHMEM_STATUS(gpushmem_nvshmem_unregister(addr)))
NVSHMEM_ROW(void, nvshmemx_buffer_unregister_all, (void),
            NVSHMEM_CHECK(gpushmem_nvshmem_unregister_all()))
NVSHMEM_ROW(void *, nvshmemx_buffer_register_symmetric, (void *buf_ptr, size_t size, int flags), {
    (void)flags;
    NVSHMEM_BLOCK_FIRST(gpushmem_buffer_register_symmetric(buf_ptr, size))
})
NVSHMEM_ROW(int, nvshmemx_buffer_unregister_symmetric, (void *mmap_ptr, size_t size), {
    (void)size;
    return gpushmem_nvshmem_check(gpushmem_buffer_unregister_symmetric(mmap_ptr));
})

NVSHMEM_ROW(int, nvshmemx_qp_create, (int num_qps, nvshmemx_qp_handle_t **out_qp_array),
            NVSHMEM_STATUS_FIRST(gpushmem_nvshmem_qp_create(num_qps, out_qp_array)))

// ---- Teams ----

NVSHMEM_BOTH(int, nvshmem_team_my_pe, (nvshmem_team_t team), (team), {
    int pe = gpushmem_team_my_pe(team);
    return __builtin_expect(pe < 0, 0) ? gpushmem_nvshmem_early_pe(team) : pe;
})
NVSHMEM_BOTH(int, nvshmem_team_n_pes, (nvshmem_team_t team), (team), {
    int n = gpushmem_team_n_pes(team);
    return __builtin_expect(n < 0, 0) ? gpushmem_nvshmem_early_n(team) : n;
})
NVSHMEM_ROW(int, nvshmem_team_get_config, (nvshmem_team_t team, nvshmem_team_config_t *config),
            { return gpushmem_nvshmem_team_config(team, config); })
NVSHMEM_BOTH(int, nvshmem_team_translate_pe,
             (nvshmem_team_t src_team, int src_pe, nvshmem_team_t dest_team),
             (src_team, src_pe, dest_team),
             { return gpushmem_team_translate_pe(src_team, src_pe, dest_team); })
NVSHMEM_ROW(int, nvshmem_team_split_strided,
            (nvshmem_team_t parent_team, int PE_start, int PE_stride, int PE_size,
             const nvshmem_team_config_t *config, long config_mask, nvshmem_team_t *new_team),
            NVSHMEM_STATUS_FIRST(gpushmem_nvshmem_split(parent_team, PE_start, PE_stride, PE_size,
                                                        config, config_mask, new_team)))
NVSHMEM_ROW(int, nvshmem_team_split_2d,
            (nvshmem_team_t parent_team, int xrange, const nvshmem_team_config_t *xaxis_config,
             long xaxis_mask, nvshmem_team_t *xaxis_team,
             const nvshmem_team_config_t *yaxis_config, long yaxis_mask,
             nvshmem_team_t *yaxis_team),
            NVSHMEM_STATUS_FIRST(gpushmem_nvshmem_split_2d(parent_team, xrange, xaxis_config,
                                                           xaxis_mask, xaxis_team, yaxis_config,
                                                           yaxis_mask, yaxis_team)))
NVSHMEM_ROW(void, nvshmem_team_destroy, (nvshmem_team_t team),
            NVSHMEM_CHECK(gpushmem_team_destroy(team)))

// ---- Remote memory access ----

#define NVSHMEM_ROWS(NAME, TYPE, AS, CTYPE) \
    NVSHMEM_BOTH(void, nvshmem_##NAME##_put, \
                 (TYPE *dest, const TYPE *source, size_t nelems, int pe), \
                 (dest, source, nelems, pe), \
                 NVSHMEM_CHECK(gpushmem_##AS##_put((CTYPE *)dest, (const CTYPE *)source, nelems, \
                                                   pe))) \
    NVSHMEM_BOTH(void, nvshmem_##NAME##_get, \
                 (TYPE *dest, const TYPE *source, size_t nelems, int pe), \
                 (dest, source, nelems, pe), \
                 NVSHMEM_CHECK(gpushmem_##AS##_get((CTYPE *)dest, (const CTYPE *)source, nelems, \
                                                   pe))) \
    NVSHMEM_BOTH(void, nvshmem_##NAME##_put_nbi, \
                 (TYPE *dest, const TYPE *source, size_t nelems, int pe), \
                 (dest, source, nelems, pe), \
                 NVSHMEM_CHECK(gpushmem_##AS##_put_nbi((CTYPE *)dest, (const CTYPE *)source, \
                                                       nelems, pe))) \
    NVSHMEM_BOTH(void, nvshmem_##NAME##_get_nbi, \
                 (TYPE *dest, const TYPE *source, size_t nelems, int pe), \
                 (dest, source, nelems, pe), \
                 NVSHMEM_CHECK(gpushmem_##AS##_get_nbi((CTYPE *)dest, (const CTYPE *)source, \
                                                       nelems, pe))) \
    NVSHMEM_BOTH(void, nvshmem_##NAME##_p, (TYPE *dest, const TYPE value, int pe), \
                 (dest, value, pe), { \
        NVSHMEM_INTO(CTYPE, bits, value) \
        gpushmem_nvshmem_check(gpushmem_##AS##_p((CTYPE *)dest, bits, pe)); \
    }) \
    NVSHMEM_BOTH(TYPE, nvshmem_##NAME##_g, (const TYPE *source, int pe), (source, pe), { \
        CTYPE bits = gpushmem_##AS##_g((const CTYPE *)source, pe); \
        if (__builtin_memcmp(&bits, "\0\0\0\0\0\0\0", sizeof bits) == 0) \
            gpushmem_nvshmem_zero(); \
        NVSHMEM_INTO(TYPE, value, bits) \
        return value; \
    }) \
    NVSHMEM_BOTH(void, nvshmem_##NAME##_iput, \
                 (TYPE *dest, const TYPE *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, \
                  int pe), \
                 (dest, source, dst, sst, nelems, pe), \
                 NVSHMEM_CHECK(gpushmem_##AS##_iput((CTYPE *)dest, (const CTYPE *)source, dst, \
                                                    sst, nelems, pe))) \
    NVSHMEM_BOTH(void, nvshmem_##NAME##_iget, \
                 (TYPE *dest, const TYPE *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, \
                  int pe), \
                 (dest, source, dst, sst, nelems, pe), \
                 NVSHMEM_CHECK(gpushmem_##AS##_iget((CTYPE *)dest, (const CTYPE *)source, dst, \
                                                    sst, nelems, pe))) \
    NVSHMEM_BOTH(void, nvshmem_##NAME##_put_signal, \
                 (TYPE *dest, const TYPE *source, size_t nelems, uint64_t *sig_addr, \
                  uint64_t signal, int sig_op, int pe), \
                 (dest, source, nelems, sig_addr, signal, sig_op, pe), \
                 NVSHMEM_CHECK(gpushmem_##AS##_put_signal((CTYPE *)dest, (const CTYPE *)source, \
                                                          nelems, sig_addr, signal, \
                                                          NVSHMEM_OP(sig_op), pe))) \
    NVSHMEM_BOTH(void, nvshmem_##NAME##_put_signal_nbi, \
                 (TYPE *dest, const TYPE *source, size_t nelems, uint64_t *sig_addr, \
                  uint64_t signal, int sig_op, int pe), \
                 (dest, source, nelems, sig_addr, signal, sig_op, pe), \
                 NVSHMEM_CHECK(gpushmem_##AS##_put_signal_nbi( \
                     (CTYPE *)dest, (const CTYPE *)source, nelems, sig_addr, signal, \
                     NVSHMEM_OP(sig_op), pe)))
NVSHMEM_RMA_TYPES(NVSHMEM_ROWS)
#undef NVSHMEM_ROWS

// By the bits of an element, and by bytes.
#define NVSHMEM_UNTYPED(FORM) \
    NVSHMEM_BOTH(void, nvshmem_put##FORM, \
                 (void *dest, const void *source, size_t nelems, int pe), \
                 (dest, source, nelems, pe), \
                 NVSHMEM_CHECK(gpushmem_put##FORM(dest, source, nelems, pe))) \
    NVSHMEM_BOTH(void, nvshmem_get##FORM, \
                 (void *dest, const void *source, size_t nelems, int pe), \
                 (dest, source, nelems, pe), \
                 NVSHMEM_CHECK(gpushmem_get##FORM(dest, source, nelems, pe))) \
    NVSHMEM_BOTH(void, nvshmem_put##FORM##_nbi, \
                 (void *dest, const void *source, size_t nelems, int pe), \
                 (dest, source, nelems, pe), \
                 NVSHMEM_CHECK(gpushmem_put##FORM##_nbi(dest, source, nelems, pe))) \
    NVSHMEM_BOTH(void, nvshmem_get##FORM##_nbi, \
                 (void *dest, const void *source, size_t nelems, int pe), \
                 (dest, source, nelems, pe), \
                 NVSHMEM_CHECK(gpushmem_get##FORM##_nbi(dest, source, nelems, pe))) \
    NVSHMEM_BOTH(void, nvshmem_put##FORM##_signal, \
                 (void *dest, const void *source, size_t nelems, uint64_t *sig_addr, \
                  uint64_t signal, int sig_op, int pe), \
                 (dest, source, nelems, sig_addr, signal, sig_op, pe), \
                 NVSHMEM_CHECK(gpushmem_put##FORM##_signal(dest, source, nelems, sig_addr, \
                                                           signal, NVSHMEM_OP(sig_op), pe))) \
    NVSHMEM_BOTH(void, nvshmem_put##FORM##_signal_nbi, \
                 (void *dest, const void *source, size_t nelems, uint64_t *sig_addr, \
                  uint64_t signal, int sig_op, int pe), \
                 (dest, source, nelems, sig_addr, signal, sig_op, pe), \
                 NVSHMEM_CHECK(gpushmem_put##FORM##_signal_nbi(dest, source, nelems, sig_addr, \
                                                               signal, NVSHMEM_OP(sig_op), pe)))
#define NVSHMEM_ROWS(BITS) \
    NVSHMEM_UNTYPED(BITS) \
    NVSHMEM_BOTH(void, nvshmem_iput##BITS, \
                 (void *dest, const void *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, \
                  int pe), \
                 (dest, source, dst, sst, nelems, pe), \
                 NVSHMEM_CHECK(gpushmem_iput##BITS(dest, source, dst, sst, nelems, pe))) \
    NVSHMEM_BOTH(void, nvshmem_iget##BITS, \
                 (void *dest, const void *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, \
                  int pe), \
                 (dest, source, dst, sst, nelems, pe), \
                 NVSHMEM_CHECK(gpushmem_iget##BITS(dest, source, dst, sst, nelems, pe)))
GPUSHMEM_RMA_SIZES(NVSHMEM_ROWS)
#undef NVSHMEM_ROWS
NVSHMEM_UNTYPED(mem)
#undef NVSHMEM_UNTYPED

// ---- Signals ----

NVSHMEM_BOTH(void, nvshmemx_signal_op,
             (uint64_t *sig_addr, uint64_t signal, int sig_op, int pe),
             (sig_addr, signal, sig_op, pe),
             NVSHMEM_CHECK((gpushmem_signal_op)(sig_addr, signal, NVSHMEM_OP(sig_op), pe)))
NVSHMEM_BOTH(uint64_t, nvshmem_signal_fetch, (const uint64_t *sig_addr), (sig_addr), {
    uint64_t value = 0;
    gpushmem_nvshmem_check(gpushmem_signal_fetch_status(sig_addr, &value));
    return value;
})
NVSHMEM_BOTH(uint64_t, nvshmem_signal_wait_until,
             (uint64_t *sig_addr, int cmp, uint64_t cmp_value), (sig_addr, cmp, cmp_value), {
    uint64_t seen = 0;
    gpushmem_nvshmem_check(
        gpushmem_signal_wait_until_status(sig_addr, NVSHMEM_CMP(cmp), cmp_value, &seen));
    return seen;
})

// ---- Atomics ----

#define NVSHMEM_FETCH(TYPE, NAME, ARGUMENTS, ...) \
    NVSHMEM_BOTH(TYPE, nvshmem_##NAME, (__VA_ARGS__), ARGUMENTS, { \
        TYPE before = 0; \
        gpushmem_nvshmem_check(gpushmem_##NAME##_status(NVSHMEM_LIST ARGUMENTS, &before)); \
        return before; \
    })
#define NVSHMEM_UPDATE(NAME, ARGUMENTS, ...) \
    NVSHMEM_BOTH(void, nvshmem_##NAME, (__VA_ARGS__), ARGUMENTS, \
                 NVSHMEM_CHECK(gpushmem_##NAME ARGUMENTS))
#define NVSHMEM_ROWS(NAME, TYPE, AS, CTYPE) \
    NVSHMEM_FETCH(TYPE, NAME##_atomic_fetch, (source, pe), const TYPE *source, int pe) \
    NVSHMEM_UPDATE(NAME##_atomic_set, (dest, value, pe), TYPE *dest, TYPE value, int pe) \
    NVSHMEM_FETCH(TYPE, NAME##_atomic_swap, (dest, value, pe), TYPE *dest, TYPE value, int pe)
NVSHMEM_AMO_EXTENDED_TYPES(NVSHMEM_ROWS)
#undef NVSHMEM_ROWS
#define NVSHMEM_ROWS(NAME, TYPE, AS, CTYPE) \
    NVSHMEM_FETCH(TYPE, NAME##_atomic_compare_swap, (dest, cond, value, pe), \
                  TYPE *dest, TYPE cond, TYPE value, int pe) \
    NVSHMEM_FETCH(TYPE, NAME##_atomic_fetch_inc, (dest, pe), TYPE *dest, int pe) \
    NVSHMEM_UPDATE(NAME##_atomic_inc, (dest, pe), TYPE *dest, int pe) \
    NVSHMEM_FETCH(TYPE, NAME##_atomic_fetch_add, (dest, value, pe), TYPE *dest, TYPE value, \
                  int pe) \
    NVSHMEM_UPDATE(NAME##_atomic_add, (dest, value, pe), TYPE *dest, TYPE value, int pe)
NVSHMEM_AMO_TYPES(NVSHMEM_ROWS)
#undef NVSHMEM_ROWS
#define NVSHMEM_BITWISE(NAME, TYPE, OP) \
    NVSHMEM_FETCH(TYPE, NAME##_atomic_fetch_##OP, (dest, value, pe), TYPE *dest, TYPE value, \
                  int pe) \
    NVSHMEM_UPDATE(NAME##_atomic_##OP, (dest, value, pe), TYPE *dest, TYPE value, int pe)
#define NVSHMEM_ROWS(NAME, TYPE, AS, CTYPE) \
    NVSHMEM_BITWISE(NAME, TYPE, and) \
    NVSHMEM_BITWISE(NAME, TYPE, or) \
    NVSHMEM_BITWISE(NAME, TYPE, xor)
NVSHMEM_AMO_BITWISE_TYPES(NVSHMEM_ROWS)
#undef NVSHMEM_ROWS
#undef NVSHMEM_BITWISE
#undef NVSHMEM_UPDATE
#undef NVSHMEM_FETCH

// ---- Waiting for words of this PE ----

#define NVSHMEM_SET_OF(NAME, TYPE, VECTOR, VALUE) \
    NVSHMEM_BOTH(void, nvshmem_##NAME##_wait_until_all##VECTOR, \
                 (TYPE *ivars, size_t nelems, const int *status, int cmp, VALUE), \
                 (ivars, nelems, status, cmp, cmp_value), \
                 NVSHMEM_CHECK(gpushmem_##NAME##_wait_until_all##VECTOR( \
                     ivars, nelems, status, NVSHMEM_CMP(cmp), cmp_value))) \
    NVSHMEM_BOTH(size_t, nvshmem_##NAME##_wait_until_any##VECTOR, \
                 (TYPE *ivars, size_t nelems, const int *status, int cmp, VALUE), \
                 (ivars, nelems, status, cmp, cmp_value), { \
        size_t index = SIZE_MAX; \
        gpushmem_nvshmem_check(gpushmem_##NAME##_wait_until_any##VECTOR##_status( \
            ivars, nelems, status, NVSHMEM_CMP(cmp), cmp_value, &index)); \
        return index; \
    }) \
    NVSHMEM_BOTH(size_t, nvshmem_##NAME##_wait_until_some##VECTOR, \
                 (TYPE *ivars, size_t nelems, size_t *indices, const int *status, int cmp, \
                  VALUE), \
                 (ivars, nelems, indices, status, cmp, cmp_value), { \
        size_t count = 0; \
        gpushmem_nvshmem_check(gpushmem_##NAME##_wait_until_some##VECTOR##_status( \
            ivars, nelems, indices, status, NVSHMEM_CMP(cmp), cmp_value, &count)); \
        return count; \
    }) \
    NVSHMEM_BOTH(int, nvshmem_##NAME##_test_all##VECTOR, \
                 (TYPE *ivars, size_t nelems, const int *status, int cmp, VALUE), \
                 (ivars, nelems, status, cmp, cmp_value), { \
        int all = gpushmem_##NAME##_test_all##VECTOR(ivars, nelems, status, NVSHMEM_CMP(cmp), \
                                                     cmp_value); \
        gpushmem_nvshmem_check(all); \
        return all > 0; \
    }) \
    NVSHMEM_BOTH(size_t, nvshmem_##NAME##_test_any##VECTOR, \
                 (TYPE *ivars, size_t nelems, const int *status, int cmp, VALUE), \
                 (ivars, nelems, status, cmp, cmp_value), { \
        size_t index = SIZE_MAX; \
        gpushmem_nvshmem_check(gpushmem_##NAME##_test_any##VECTOR##_status( \
            ivars, nelems, status, NVSHMEM_CMP(cmp), cmp_value, &index)); \
        return index; \
    }) \
    NVSHMEM_BOTH(size_t, nvshmem_##NAME##_test_some##VECTOR, \
                 (TYPE *ivars, size_t nelems, size_t *indices, const int *status, int cmp, \
                  VALUE), \
                 (ivars, nelems, indices, status, cmp, cmp_value), { \
        size_t count = 0; \
        gpushmem_nvshmem_check(gpushmem_##NAME##_test_some##VECTOR##_status( \
            ivars, nelems, indices, status, NVSHMEM_CMP(cmp), cmp_value, &count)); \
        return count; \
    })
#define NVSHMEM_ROWS(NAME, TYPE, AS, CTYPE) \
    NVSHMEM_BOTH(void, nvshmem_##NAME##_wait_until, (TYPE *ivar, int cmp, TYPE cmp_value), \
                 (ivar, cmp, cmp_value), \
                 NVSHMEM_CHECK(gpushmem_##NAME##_wait_until(ivar, NVSHMEM_CMP(cmp), cmp_value))) \
    NVSHMEM_BOTH(int, nvshmem_##NAME##_test, (TYPE *ivar, int cmp, TYPE cmp_value), \
                 (ivar, cmp, cmp_value), { \
        int is = gpushmem_##NAME##_test(ivar, NVSHMEM_CMP(cmp), cmp_value); \
        gpushmem_nvshmem_check(is); \
        return is > 0; \
    }) \
    NVSHMEM_SET_OF(NAME, TYPE, , TYPE cmp_value) \
    NVSHMEM_SET_OF(NAME, TYPE, _vector, TYPE *cmp_value)
NVSHMEM_SYNC_TYPES(NVSHMEM_ROWS)
#undef NVSHMEM_ROWS
#undef NVSHMEM_SET_OF

// ---- Order, synchronisation ----

NVSHMEM_BOTH(void, nvshmem_fence, (void), (), NVSHMEM_CHECK(gpushmem_fence()))
NVSHMEM_BOTH(void, nvshmem_quiet, (void), (), NVSHMEM_CHECK(gpushmem_quiet()))
NVSHMEM_BOTH(void, nvshmem_barrier_all, (void), (), NVSHMEM_CHECK_FIRST(gpushmem_barrier_all()))
NVSHMEM_BOTH(void, nvshmem_sync_all, (void), (), NVSHMEM_CHECK_FIRST(gpushmem_sync_all()))
NVSHMEM_BOTH(int, nvshmem_barrier, (nvshmem_team_t team), (team),
             NVSHMEM_STATUS_FIRST(gpushmem_barrier(team)))
NVSHMEM_BOTH(int, nvshmem_sync, (nvshmem_team_t team), (team),
             NVSHMEM_STATUS_FIRST(gpushmem_team_sync(team)))
NVSHMEM_BOTH(int, nvshmem_team_sync, (nvshmem_team_t team), (team),
             NVSHMEM_STATUS_FIRST(gpushmem_team_sync(team)))

// ---- Collectives ----

#define NVSHMEM_ROWS(NAME, TYPE, AS, CTYPE) \
    NVSHMEM_BOTH(int, nvshmem_##NAME##_broadcast, \
                 (nvshmem_team_t team, TYPE *dest, const TYPE *source, size_t nelems, \
                  int PE_root), \
                 (team, dest, source, nelems, PE_root), \
                 NVSHMEM_STATUS(gpushmem_##AS##_broadcast(team, (CTYPE *)dest, \
                                                          (const CTYPE *)source, nelems, \
                                                          PE_root))) \
    NVSHMEM_BOTH(int, nvshmem_##NAME##_fcollect, \
                 (nvshmem_team_t team, TYPE *dest, const TYPE *source, size_t nelems), \
                 (team, dest, source, nelems), \
                 NVSHMEM_STATUS(gpushmem_##AS##_fcollect(team, (CTYPE *)dest, \
                                                         (const CTYPE *)source, nelems))) \
    NVSHMEM_BOTH(int, nvshmem_##NAME##_alltoall, \
                 (nvshmem_team_t team, TYPE *dest, const TYPE *source, size_t nelems), \
                 (team, dest, source, nelems), \
                 NVSHMEM_STATUS(gpushmem_##AS##_alltoall(team, (CTYPE *)dest, \
                                                         (const CTYPE *)source, nelems)))
NVSHMEM_RMA_TYPES(NVSHMEM_ROWS)
#undef NVSHMEM_ROWS
NVSHMEM_BOTH(int, nvshmem_broadcastmem,
             (nvshmem_team_t team, void *dest, const void *source, size_t nelems, int PE_root),
             (team, dest, source, nelems, PE_root),
             NVSHMEM_STATUS(gpushmem_broadcastmem(team, dest, source, nelems, PE_root)))
NVSHMEM_BOTH(int, nvshmem_fcollectmem,
             (nvshmem_team_t team, void *dest, const void *source, size_t nelems),
             (team, dest, source, nelems),
             NVSHMEM_STATUS(gpushmem_fcollectmem(team, dest, source, nelems)))
NVSHMEM_BOTH(int, nvshmem_alltoallmem,
             (nvshmem_team_t team, void *dest, const void *source, size_t nelems),
             (team, dest, source, nelems),
             NVSHMEM_STATUS(gpushmem_alltoallmem(team, dest, source, nelems)))

#define NVSHMEM_FOLD(NAME, TYPE, AS, CTYPE, OP) \
    NVSHMEM_BOTH(int, nvshmem_##NAME##_##OP##_reduce, \
                 (nvshmem_team_t team, TYPE *dest, const TYPE *source, size_t nreduce), \
                 (team, dest, source, nreduce), \
                 NVSHMEM_STATUS(gpushmem_##AS##_##OP##_reduce(team, (CTYPE *)dest, \
                                                              (const CTYPE *)source, nreduce))) \
    NVSHMEM_BOTH(int, nvshmem_##NAME##_##OP##_reducescatter, \
                 (nvshmem_team_t team, TYPE *dest, const TYPE *source, size_t nreduce), \
                 (team, dest, source, nreduce), \
                 NVSHMEM_STATUS(gpushmem_##AS##_##OP##_reducescatter( \
                     team, (CTYPE *)dest, (const CTYPE *)source, nreduce)))
#define NVSHMEM_FOLDS_OF_BITS(NAME, TYPE, AS, CTYPE) \
    NVSHMEM_FOLD(NAME, TYPE, AS, CTYPE, and) \
    NVSHMEM_FOLD(NAME, TYPE, AS, CTYPE, or) \
    NVSHMEM_FOLD(NAME, TYPE, AS, CTYPE, xor)
#define NVSHMEM_FOLDS(NAME, TYPE, AS, CTYPE) \
    NVSHMEM_FOLD(NAME, TYPE, AS, CTYPE, min) \
    NVSHMEM_FOLD(NAME, TYPE, AS, CTYPE, max) \
    NVSHMEM_FOLD(NAME, TYPE, AS, CTYPE, sum) \
    NVSHMEM_FOLD(NAME, TYPE, AS, CTYPE, prod)
NVSHMEM_REDUCE_TYPES(NVSHMEM_FOLDS)
NVSHMEM_INTEGER_TYPES(NVSHMEM_FOLDS_OF_BITS)
#undef NVSHMEM_FOLD

// ---- On streams ----

#define NVSHMEM_ROWS(NAME, TYPE, AS, CTYPE) \
    NVSHMEM_ROW(void, nvshmemx_##NAME##_put_on_stream, \
                (TYPE *dest, const TYPE *source, size_t nelems, int pe, cudaStream_t stream), \
                NVSHMEM_CHECK(gpushmem_##AS##_put_on_stream((CTYPE *)dest, \
                                                            (const CTYPE *)source, nelems, pe, \
                                                            stream))) \
    NVSHMEM_ROW(void, nvshmemx_##NAME##_get_on_stream, \
                (TYPE *dest, const TYPE *source, size_t nelems, int pe, cudaStream_t stream), \
                NVSHMEM_CHECK(gpushmem_##AS##_get_on_stream((CTYPE *)dest, \
                                                            (const CTYPE *)source, nelems, pe, \
                                                            stream))) \
    NVSHMEM_ROW(void, nvshmemx_##NAME##_put_nbi_on_stream, \
                (TYPE *dest, const TYPE *source, size_t nelems, int pe, cudaStream_t stream), \
                NVSHMEM_CHECK(gpushmem_##AS##_put_on_stream((CTYPE *)dest, \
                                                            (const CTYPE *)source, nelems, pe, \
                                                            stream))) \
    NVSHMEM_ROW(void, nvshmemx_##NAME##_get_nbi_on_stream, \
                (TYPE *dest, const TYPE *source, size_t nelems, int pe, cudaStream_t stream), \
                NVSHMEM_CHECK(gpushmem_##AS##_get_on_stream((CTYPE *)dest, \
                                                            (const CTYPE *)source, nelems, pe, \
                                                            stream))) \
    NVSHMEM_ROW(void, nvshmemx_##NAME##_put_signal_on_stream, \
                (TYPE *dest, const TYPE *source, size_t nelems, uint64_t *sig_addr, \
                 uint64_t signal, int sig_op, int pe, cudaStream_t stream), \
                NVSHMEM_CHECK(gpushmem_##AS##_put_signal_on_stream( \
                    (CTYPE *)dest, (const CTYPE *)source, nelems, sig_addr, signal, \
                    NVSHMEM_OP(sig_op), pe, stream))) \
    NVSHMEM_ROW(void, nvshmemx_##NAME##_put_signal_nbi_on_stream, \
                (TYPE *dest, const TYPE *source, size_t nelems, uint64_t *sig_addr, \
                 uint64_t signal, int sig_op, int pe, cudaStream_t stream), \
                NVSHMEM_CHECK(gpushmem_##AS##_put_signal_on_stream( \
                    (CTYPE *)dest, (const CTYPE *)source, nelems, sig_addr, signal, \
                    NVSHMEM_OP(sig_op), pe, stream))) \
    NVSHMEM_ROW(void, nvshmemx_##NAME##_p_on_stream, \
                (TYPE *dest, const TYPE value, int pe, cudaStream_t stream), { \
        NVSHMEM_INTO(CTYPE, bits, value) \
        gpushmem_nvshmem_check(gpushmem_##AS##_p_on_stream((CTYPE *)dest, bits, pe, stream)); \
    }) \
    NVSHMEM_ROW(TYPE, nvshmemx_##NAME##_g_on_stream, \
                (const TYPE *source, int pe, cudaStream_t stream), { \
        CTYPE bits; \
        gpushmem_nvshmem_fetch("nvshmemx_" #NAME "_g_on_stream", &bits, source, sizeof bits, pe, \
                               stream); \
        NVSHMEM_INTO(TYPE, value, bits) \
        return value; \
    }) \
    NVSHMEM_ROW(void, nvshmemx_##NAME##_iput_on_stream, \
                (TYPE *dest, const TYPE *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, \
                 int pe, cudaStream_t stream), \
                NVSHMEM_CHECK(gpushmem_##AS##_iput_on_stream( \
                    (CTYPE *)dest, (const CTYPE *)source, dst, sst, nelems, pe, stream))) \
    NVSHMEM_ROW(void, nvshmemx_##NAME##_iget_on_stream, \
                (TYPE *dest, const TYPE *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, \
                 int pe, cudaStream_t stream), \
                NVSHMEM_CHECK(gpushmem_##AS##_iget_on_stream( \
                    (CTYPE *)dest, (const CTYPE *)source, dst, sst, nelems, pe, stream))) \
    NVSHMEM_ROW(int, nvshmemx_##NAME##_broadcast_on_stream, \
                (nvshmem_team_t team, TYPE *dest, const TYPE *source, size_t nelems, \
                 int PE_root, cudaStream_t stream), \
                NVSHMEM_STATUS(gpushmem_##AS##_broadcast_on_stream( \
                    team, (CTYPE *)dest, (const CTYPE *)source, nelems, PE_root, stream))) \
    NVSHMEM_ROW(int, nvshmemx_##NAME##_fcollect_on_stream, \
                (nvshmem_team_t team, TYPE *dest, const TYPE *source, size_t nelems, \
                 cudaStream_t stream), \
                NVSHMEM_STATUS(gpushmem_##AS##_fcollect_on_stream( \
                    team, (CTYPE *)dest, (const CTYPE *)source, nelems, stream))) \
    NVSHMEM_ROW(int, nvshmemx_##NAME##_alltoall_on_stream, \
                (nvshmem_team_t team, TYPE *dest, const TYPE *source, size_t nelems, \
                 cudaStream_t stream), \
                NVSHMEM_STATUS(gpushmem_##AS##_alltoall_on_stream( \
                    team, (CTYPE *)dest, (const CTYPE *)source, nelems, stream)))
NVSHMEM_RMA_TYPES(NVSHMEM_ROWS)
#undef NVSHMEM_ROWS

#define NVSHMEM_UNTYPED(FORM) \
    NVSHMEM_ROW(void, nvshmemx_put##FORM##_on_stream, \
                (void *dest, const void *source, size_t nelems, int pe, cudaStream_t stream), \
                NVSHMEM_CHECK(gpushmem_put##FORM##_on_stream(dest, source, nelems, pe, stream))) \
    NVSHMEM_ROW(void, nvshmemx_get##FORM##_on_stream, \
                (void *dest, const void *source, size_t nelems, int pe, cudaStream_t stream), \
                NVSHMEM_CHECK(gpushmem_get##FORM##_on_stream(dest, source, nelems, pe, stream))) \
    NVSHMEM_ROW(void, nvshmemx_put##FORM##_nbi_on_stream, \
                (void *dest, const void *source, size_t nelems, int pe, cudaStream_t stream), \
                NVSHMEM_CHECK(gpushmem_put##FORM##_on_stream(dest, source, nelems, pe, stream))) \
    NVSHMEM_ROW(void, nvshmemx_get##FORM##_nbi_on_stream, \
                (void *dest, const void *source, size_t nelems, int pe, cudaStream_t stream), \
                NVSHMEM_CHECK(gpushmem_get##FORM##_on_stream(dest, source, nelems, pe, stream))) \
    NVSHMEM_ROW(void, nvshmemx_put##FORM##_signal_on_stream, \
                (void *dest, const void *source, size_t nelems, uint64_t *sig_addr, \
                 uint64_t signal, int sig_op, int pe, cudaStream_t stream), \
                NVSHMEM_CHECK(gpushmem_put##FORM##_signal_on_stream( \
                    dest, source, nelems, sig_addr, signal, NVSHMEM_OP(sig_op), pe, stream))) \
    NVSHMEM_ROW(void, nvshmemx_put##FORM##_signal_nbi_on_stream, \
                (void *dest, const void *source, size_t nelems, uint64_t *sig_addr, \
                 uint64_t signal, int sig_op, int pe, cudaStream_t stream), \
                NVSHMEM_CHECK(gpushmem_put##FORM##_signal_on_stream( \
                    dest, source, nelems, sig_addr, signal, NVSHMEM_OP(sig_op), pe, stream)))
GPUSHMEM_RMA_SIZES(NVSHMEM_UNTYPED)
NVSHMEM_UNTYPED(mem)
#undef NVSHMEM_UNTYPED

#define NVSHMEM_STRIDED(BITS) \
    NVSHMEM_ROW(void, nvshmemx_iput##BITS##_on_stream, \
                (void *dest, const void *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, \
                 int pe, cudaStream_t stream), \
                NVSHMEM_CHECK(gpushmem_iput##BITS##_on_stream(dest, source, dst, sst, nelems, pe, \
                                                              stream))) \
    NVSHMEM_ROW(void, nvshmemx_iget##BITS##_on_stream, \
                (void *dest, const void *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, \
                 int pe, cudaStream_t stream), \
                NVSHMEM_CHECK(gpushmem_iget##BITS##_on_stream(dest, source, dst, sst, nelems, pe, \
                                                              stream)))
GPUSHMEM_RMA_SIZES(NVSHMEM_STRIDED)
#undef NVSHMEM_STRIDED

NVSHMEM_ROW(void, nvshmemx_signal_op_on_stream,
            (uint64_t *sig_addr, uint64_t signal, int sig_op, int pe, cudaStream_t stream),
            NVSHMEM_CHECK(gpushmem_signal_op_on_stream(sig_addr, signal, NVSHMEM_OP(sig_op), pe,
                                                       stream)))
NVSHMEM_ROW(void, nvshmemx_signal_wait_until_on_stream,
            (uint64_t *sig_addr, int cmp, uint64_t cmp_value, cudaStream_t stream),
            NVSHMEM_CHECK(gpushmem_signal_wait_until_on_stream(sig_addr, NVSHMEM_CMP(cmp),
                                                               cmp_value, stream)))
// Of the words that a stream can wait for.
#define NVSHMEM_ROWS(NAME, TYPE) \
    NVSHMEM_ROW(void, nvshmemx_##NAME##_wait_until_on_stream, \
                (TYPE *ivar, int cmp, TYPE cmp_value, cudaStream_t stream), \
                NVSHMEM_CHECK(gpushmem_signal_wait_until_on_stream( \
                    (uint64_t *)ivar, NVSHMEM_CMP(cmp), (uint64_t)cmp_value, stream)))
NVSHMEM_ROWS(uint64, uint64_t)
NVSHMEM_ROWS(ulong, unsigned long)
NVSHMEM_ROWS(ulonglong, unsigned long long)
NVSHMEM_ROWS(size, size_t)
#undef NVSHMEM_ROWS

NVSHMEM_ROW(void, nvshmemx_quiet_on_stream, (cudaStream_t stream),
            NVSHMEM_CHECK(gpushmem_quiet_on_stream(stream)))
NVSHMEM_ROW(void, nvshmemx_barrier_all_on_stream, (cudaStream_t stream),
            NVSHMEM_CHECK_FIRST(gpushmem_barrier_all_on_stream(stream)))
NVSHMEM_ROW(void, nvshmemx_sync_all_on_stream, (cudaStream_t stream),
            NVSHMEM_CHECK_FIRST(gpushmem_sync_all_on_stream(stream)))
NVSHMEM_ROW(int, nvshmemx_barrier_on_stream, (nvshmem_team_t team, cudaStream_t stream),
            NVSHMEM_STATUS_FIRST(gpushmem_barrier_on_stream(team, stream)))
NVSHMEM_ROW(int, nvshmemx_sync_on_stream, (nvshmem_team_t team, cudaStream_t stream),
            NVSHMEM_STATUS_FIRST(gpushmem_team_sync_on_stream(team, stream)))
NVSHMEM_ROW(int, nvshmemx_team_sync_on_stream, (nvshmem_team_t team, cudaStream_t stream),
            NVSHMEM_STATUS_FIRST(gpushmem_team_sync_on_stream(team, stream)))

NVSHMEM_ROW(int, nvshmemx_broadcastmem_on_stream,
            (nvshmem_team_t team, void *dest, const void *source, size_t nelems, int PE_root,
             cudaStream_t stream),
            NVSHMEM_STATUS(gpushmem_broadcastmem_on_stream(team, dest, source, nelems, PE_root,
                                                           stream)))
NVSHMEM_ROW(int, nvshmemx_fcollectmem_on_stream,
            (nvshmem_team_t team, void *dest, const void *source, size_t nelems,
             cudaStream_t stream),
            NVSHMEM_STATUS(gpushmem_fcollectmem_on_stream(team, dest, source, nelems, stream)))
NVSHMEM_ROW(int, nvshmemx_alltoallmem_on_stream,
            (nvshmem_team_t team, void *dest, const void *source, size_t nelems,
             cudaStream_t stream),
            NVSHMEM_STATUS(gpushmem_alltoallmem_on_stream(team, dest, source, nelems, stream)))

#define NVSHMEM_FOLD(NAME, TYPE, AS, CTYPE, OP) \
    NVSHMEM_ROW(int, nvshmemx_##NAME##_##OP##_reduce_on_stream, \
                (nvshmem_team_t team, TYPE *dest, const TYPE *source, size_t nreduce, \
                 cudaStream_t stream), \
                NVSHMEM_STATUS(gpushmem_##AS##_##OP##_reduce_on_stream( \
                    team, (CTYPE *)dest, (const CTYPE *)source, nreduce, stream))) \
    NVSHMEM_ROW(int, nvshmemx_##NAME##_##OP##_reducescatter_on_stream, \
                (nvshmem_team_t team, TYPE *dest, const TYPE *source, size_t nreduce, \
                 cudaStream_t stream), \
                NVSHMEM_STATUS(gpushmem_##AS##_##OP##_reducescatter_on_stream( \
                    team, (CTYPE *)dest, (const CTYPE *)source, nreduce, stream)))
NVSHMEM_REDUCE_TYPES(NVSHMEM_FOLDS)
NVSHMEM_INTEGER_TYPES(NVSHMEM_FOLDS_OF_BITS)
#undef NVSHMEM_FOLD
#undef NVSHMEM_FOLDS
#undef NVSHMEM_FOLDS_OF_BITS

#undef NVSHMEM_INTO
#undef NVSHMEM_OP
#undef NVSHMEM_CMP
#undef NVSHMEM_BLOCK_FIRST
#undef NVSHMEM_STATUS_FIRST
#undef NVSHMEM_CHECK_FIRST
#undef NVSHMEM_FIRST
#undef NVSHMEM_STATUS
#undef NVSHMEM_CHECK
#undef NVSHMEM_LIST
