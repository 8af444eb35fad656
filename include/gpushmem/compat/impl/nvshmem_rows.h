// SPDX-License-Identifier: BSD-3-Clause
// NVSHMEM's functions of the host, as rows, for nvshmem.h and libnvshmem_host, which define what
// becomes of a row. No include guard.
//   GPSH_NVS_ROW(RETURN, NAME, PARAMETERS, BODY)              of the host alone
//   GPSH_NVS_BOTH(RETURN, NAME, PARAMETERS, ARGUMENTS, BODY)  kernels have the name, too: there it
//                                                            calls gpsh_dev_NAME ARGUMENTS
//   GPSH_NVS_LONG(...)                                       the same, of what takes so long that
//                                                            one call more does not matter
// clang-format off

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
// A row that calls gpushmem_AS with the arguments of one form of gpushmem/impl/signatures.h, which
// has dest and source of the type by which gpushmem moves the elements.
#define GPSH_NVS_ARGUMENTS(FORM, CTYPE) \
    GPSH_A_##FORM((CTYPE *)dest, (const CTYPE *)source, GPSH_NVS_OP(sig_op))
// A value as that type, and back.
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
GPSH_NVS_BOTH(void, nvshmemx_vendor_get_version_info, (int *major, int *minor, int *patch),
             (major, minor, patch), {
    if (major)
        *major = NVSHMEM_VENDOR_MAJOR_VERSION;
    if (minor)
        *minor = NVSHMEM_VENDOR_MINOR_VERSION;
    if (patch)
        *patch = NVSHMEM_VENDOR_PATCH_VERSION;
})
GPSH_NVS_BOTH(void, nvshmem_info_get_version, (int *major, int *minor), (major, minor), {
    if (major)
        *major = NVSHMEM_MAJOR_VERSION;
    if (minor)
        *minor = NVSHMEM_MINOR_VERSION;
})
GPSH_NVS_BOTH(void, nvshmem_info_get_name, (char *name), (name), {
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
            GPSH_NVS_STATUS_FIRST(gpushmem_buffer_register(addr, length)))
GPSH_NVS_ROW(int, nvshmemx_buffer_unregister, (void *addr),
            GPSH_NVS_STATUS(gpushmem_buffer_unregister(addr)))
GPSH_NVS_ROW(void, nvshmemx_buffer_unregister_all, (void),
            GPSH_NVS_CHECK(gpushmem_nvshmem_unregister_all()))
GPSH_NVS_ROW(void *, nvshmemx_buffer_register_symmetric, (void *buf_ptr, size_t size, int flags), {
    (void)flags;
    GPSH_NVS_BLOCK_FIRST(gpushmem_buffer_register_symmetric(buf_ptr, size))
})
// Every symmetric address is in the heap, which has its place: the one asked for is a wish.
GPSH_NVS_ROW(void *, nvshmemx_buffer_register_symmetric_at_preferred_address,
            (void *buf_ptr, void *preferred_address, size_t size, int flags), {
    (void)preferred_address;
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
// A team of the PEs that call it with one id, wherever they are: `npes` of them, this one with the
// number pe_idx_in_team.
GPSH_NVS_ROW(int, nvshmemx_team_get_uniqueid, (nvshmemx_team_uniqueid_t *uniqueid),
            GPSH_NVS_STATUS_FIRST(gpushmem_nvshmem_team_uniqueid(uniqueid)))
GPSH_NVS_ROW(int, nvshmemx_team_init,
            (nvshmem_team_t *team, nvshmem_team_config_t *config, long config_mask, int npes,
             int pe_idx_in_team),
            GPSH_NVS_STATUS_FIRST(gpushmem_nvshmem_team_init(team, config, config_mask, npes,
                                                            pe_idx_in_team)))
GPSH_NVS_ROW(void, nvshmem_team_destroy, (nvshmem_team_t team),
            GPSH_NVS_CHECK(gpushmem_team_destroy(team)))

// ---- Remote memory access ----

#define GPSH_NVS_MOVE_AS(NAME, AS, FORM, TYPE, CTYPE) \
    GPSH_NVS_BOTH(void, nvshmem_##NAME, (GPSH_P_##FORM(TYPE, int)), \
                 (GPSH_A_##FORM(dest, source, sig_op)), \
                 GPSH_NVS_CHECK(gpushmem_##AS(GPSH_NVS_ARGUMENTS(FORM, CTYPE))))
#define GPSH_NVS_MOVE(VERB, REST, FORM, NAME, TYPE, AS, CTYPE) \
    GPSH_NVS_MOVE_AS(NAME##_##VERB##REST, AS##_##VERB##REST, FORM, TYPE, CTYPE)
#define GPSH_NVS_ROWS(NAME, TYPE, AS, CTYPE) \
    GPSH_MOVES(GPSH_NVS_MOVE, NAME, TYPE, AS, CTYPE) \
    GPSH_STRIDED_MOVES(GPSH_NVS_MOVE, NAME, TYPE, AS, CTYPE) \
    GPSH_NVS_BOTH(void, nvshmem_##NAME##_p, (TYPE *dest, const TYPE value, int pe), \
                 (dest, value, pe), { \
        GPSH_NVS_INTO(CTYPE, bits, value) \
        gpushmem_nvshmem_lost(gpushmem_##AS##_p((CTYPE *)dest, bits, pe)); \
    }) \
    GPSH_NVS_BOTH(TYPE, nvshmem_##NAME##_g, (const TYPE *source, int pe), (source, pe), { \
        CTYPE bits = gpushmem_##AS##_g((const CTYPE *)source, pe); \
        GPSH_NVS_INTO(TYPE, value, bits) \
        return value; \
    })
GPSH_NVS_RMA_TYPES(GPSH_NVS_ROWS)
#undef GPSH_NVS_ROWS
#undef GPSH_NVS_MOVE

// By the bits of an element, and by bytes.
#define GPSH_NVS_MOVE(VERB, REST, FORM, BITS) \
    GPSH_NVS_MOVE_AS(VERB##BITS##REST, VERB##BITS##REST, FORM, void, void)
#define GPSH_NVS_ROWS(BITS) \
    GPSH_MOVES(GPSH_NVS_MOVE, BITS) \
    GPSH_STRIDED_MOVES(GPSH_NVS_MOVE, BITS)
GPUSHMEM_RMA_SIZES(GPSH_NVS_ROWS)
#undef GPSH_NVS_ROWS
GPSH_MOVES(GPSH_NVS_MOVE, mem)
#undef GPSH_NVS_MOVE
#undef GPSH_NVS_MOVE_AS

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

// A signal word of this PE that counted writes have raised: 0 again, for the next round.
GPSH_NVS_BOTH(void, nvshmemx_signal_counted_reset, (uint64_t *sig_addr), (sig_addr),
             GPSH_NVS_CHECK(gpushmem_uint64_atomic_set(sig_addr, 0, gpushmem_my_pe())))

// ---- Atomics ----

#define GPSH_NVS_FETCH(OP, FORM, NUMBER, NAME, TYPE) \
    GPSH_NVS_BOTH(TYPE, nvshmem_##NAME##_atomic_##OP, (GPSH_P_##FORM(TYPE, )), \
                 (GPSH_A_##FORM(dest, source, )), { \
        TYPE before = 0; \
        gpushmem_nvshmem_lost(gpushmem_##NAME##_atomic_##OP##_status( \
            GPSH_A_##FORM(dest, source, ), &before)); \
        return before; \
    })
#define GPSH_NVS_UPDATE(OP, FORM, NUMBER, NAME, TYPE) \
    GPSH_NVS_BOTH(void, nvshmem_##NAME##_atomic_##OP, (GPSH_P_##FORM(TYPE, )), \
                 (GPSH_A_##FORM(dest, source, )), \
                 GPSH_NVS_CHECK(gpushmem_##NAME##_atomic_##OP(GPSH_A_##FORM(dest, source, ))))
#define GPSH_NVS_ROWS(NAME, TYPE, AS, CTYPE) \
    GPSH_EXTENDED_ATOMICS(GPSH_NVS_FETCH, GPSH_NVS_UPDATE, NAME, TYPE)
GPSH_NVS_AMO_EXTENDED_TYPES(GPSH_NVS_ROWS)
#undef GPSH_NVS_ROWS
#define GPSH_NVS_ROWS(NAME, TYPE, AS, CTYPE) \
    GPSH_ATOMICS(GPSH_NVS_FETCH, GPSH_NVS_UPDATE, NAME, TYPE)
GPSH_NVS_AMO_TYPES(GPSH_NVS_ROWS)
#undef GPSH_NVS_ROWS
#define GPSH_NVS_ROWS(NAME, TYPE, AS, CTYPE) \
    GPSH_BITWISE_ATOMICS(GPSH_NVS_FETCH, GPSH_NVS_UPDATE, NAME, TYPE)
GPSH_NVS_AMO_BITWISE_TYPES(GPSH_NVS_ROWS)
#undef GPSH_NVS_ROWS
#undef GPSH_NVS_UPDATE
#undef GPSH_NVS_FETCH

// Sums of floating point values: no transport adds them, so the word is compared and swapped until
// nobody came between.
#define GPSH_NVS_ROWS(NAME, TYPE, NUMBER) \
    GPSH_NVS_BOTH(TYPE, nvshmemx_##NAME##_atomic_fetch_add, (TYPE *dest, TYPE value, int pe), \
                 (dest, value, pe), { \
        TYPE before = value; \
        gpushmem_nvshmem_lost(gpushmem_nvshmem_float_add("nvshmemx_" #NAME "_atomic_fetch_add", \
                                                         NUMBER, dest, &value, pe, &before)); \
        return before; \
    }) \
    GPSH_NVS_BOTH(void, nvshmemx_##NAME##_atomic_add, (TYPE *dest, TYPE value, int pe), \
                 (dest, value, pe), { \
        TYPE before = value; \
        gpushmem_nvshmem_lost(gpushmem_nvshmem_float_add("nvshmemx_" #NAME "_atomic_add", \
                                                         NUMBER, dest, &value, pe, &before)); \
    })
GPSH_NVS_ROWS(half, gpsh_nvshmem_half, 2)
GPSH_NVS_ROWS(float, float, 4)
GPSH_NVS_ROWS(double, double, 8)
#undef GPSH_NVS_ROWS

// ---- Waiting for words of this PE ----

#define GPSH_NVS_WORDS(RESULT, NAME, FORM, TYPE, VALUE, ...) \
    GPSH_NVS_LONG(RESULT, nvshmem_##NAME, (GPSH_P_##FORM(TYPE *ivars, int, VALUE)), \
                 (GPSH_A_##FORM(ivars, cmp, cmp_value)), __VA_ARGS__)
#define GPSH_NVS_WORDS_OF(FORM) GPSH_A_##FORM(ivars, GPSH_NVS_CMP(cmp), cmp_value)
// What _any and _some return is written by the form with a status.
#define GPSH_NVS_COUNTED(NAME, FORM, TYPE, VALUE, NONE) \
    GPSH_NVS_WORDS(size_t, NAME, FORM, TYPE, VALUE, { \
        size_t result = NONE; \
        gpushmem_nvshmem_lost(gpushmem_##NAME##_status(GPSH_NVS_WORDS_OF(FORM), &result)); \
        return result; \
    })
#define GPSH_NVS_SET_OF(NAME, TYPE, VECTOR, VALUE) \
    GPSH_NVS_WORDS(void, NAME##_wait_until_all##VECTOR, ALL, TYPE, VALUE, \
                  GPSH_NVS_CHECK( \
                      gpushmem_##NAME##_wait_until_all##VECTOR(GPSH_NVS_WORDS_OF(ALL)))) \
    GPSH_NVS_COUNTED(NAME##_wait_until_any##VECTOR, ALL, TYPE, VALUE, SIZE_MAX) \
    GPSH_NVS_COUNTED(NAME##_wait_until_some##VECTOR, SOME, TYPE, VALUE, 0) \
    GPSH_NVS_WORDS(int, NAME##_test_all##VECTOR, ALL, TYPE, VALUE, { \
        int all = gpushmem_##NAME##_test_all##VECTOR(GPSH_NVS_WORDS_OF(ALL)); \
        gpushmem_nvshmem_lost(all); \
        return all > 0; \
    }) \
    GPSH_NVS_COUNTED(NAME##_test_any##VECTOR, ALL, TYPE, VALUE, SIZE_MAX) \
    GPSH_NVS_COUNTED(NAME##_test_some##VECTOR, SOME, TYPE, VALUE, 0)
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
#undef GPSH_NVS_COUNTED
#undef GPSH_NVS_WORDS_OF
#undef GPSH_NVS_WORDS

// ---- Order, synchronisation ----

GPSH_NVS_BOTH(void, nvshmem_fence, (void), (), GPSH_NVS_CHECK(gpushmem_fence()))
GPSH_NVS_BOTH(void, nvshmem_quiet, (void), (), GPSH_NVS_CHECK(gpushmem_quiet()))
// Sources of nonblocking puts may be written again.
GPSH_NVS_BOTH(void, nvshmemx_flush, (void), (), GPSH_NVS_CHECK(gpushmem_quiet()))
// A thread says that it makes many nonblocking calls: their doorbells are shared in any case, so
// nothing changes but what is_active says.
GPSH_NVS_ROW(int, nvshmemx_region_start, (unsigned int hints), {
    (void)hints;
    return gpushmem_nvshmem_check(gpushmem_nvshmem_region(1));
})
GPSH_NVS_ROW(int, nvshmemx_region_stop, (void),
            GPSH_NVS_STATUS(gpushmem_nvshmem_region(-1)))
GPSH_NVS_BOTH(int, nvshmemx_region_is_active, (void), (),
             { return gpushmem_nvshmem_region(0) > 0; })
GPSH_NVS_BOTH(void, nvshmem_barrier_all, (void), (), GPSH_NVS_CHECK_FIRST(gpushmem_barrier_all()))
GPSH_NVS_BOTH(void, nvshmem_sync_all, (void), (), GPSH_NVS_CHECK_FIRST(gpushmem_sync_all()))
GPSH_NVS_LONG(int, nvshmem_barrier, (nvshmem_team_t team), (team),
             GPSH_NVS_STATUS_FIRST(gpushmem_barrier(team)))
GPSH_NVS_BOTH(int, nvshmem_sync, (nvshmem_team_t team), (team),
             GPSH_NVS_STATUS_FIRST(gpushmem_team_sync(team)))
GPSH_NVS_BOTH(int, nvshmem_team_sync, (nvshmem_team_t team), (team),
             GPSH_NVS_STATUS_FIRST(gpushmem_team_sync(team)))

// ---- Collectives ----

#define GPSH_NVS_COLL_AS(NAME, AS, FORM, TYPE, CTYPE) \
    GPSH_NVS_LONG(int, nvshmem_##NAME, (nvshmem_team_t team, GPSH_P_##FORM(TYPE, )), \
                 (team, GPSH_A_##FORM(dest, source, )), \
                 GPSH_NVS_STATUS(gpushmem_##AS(team, GPSH_NVS_ARGUMENTS(FORM, CTYPE))))
#define GPSH_NVS_COLL(OP, KIND, FORM, NAME, TYPE, AS, CTYPE) \
    GPSH_NVS_COLL_AS(NAME##_##OP, AS##_##OP, FORM, TYPE, CTYPE)
#define GPSH_NVS_COLL_MEM(OP, KIND, FORM, UNUSED) \
    GPSH_NVS_COLL_AS(OP##mem, OP##mem, FORM, void, void)
#define GPSH_NVS_FOLD(OP, NUMBER, NAME, TYPE, AS, CTYPE) \
    GPSH_NVS_COLL(OP##_reduce, REDUCE, PART, NAME, TYPE, AS, CTYPE) \
    GPSH_NVS_COLL(OP##_reducescatter, REDUCESCATTER, PART, NAME, TYPE, AS, CTYPE)
// The rows, once with GPSH_NVS_COLL_AS of the host and once with that of streams.
#define GPSH_NVS_COLL_MOVES(NAME, TYPE, AS, CTYPE) \
    GPSH_COLL_MOVES_OF_NVSHMEM(GPSH_NVS_COLL, NAME, TYPE, AS, CTYPE)
#define GPSH_NVS_FOLDS(NAME, TYPE, AS, CTYPE) \
    GPSH_FOLDS_OF_ORDER(GPSH_NVS_FOLD, NAME, TYPE, AS, CTYPE) \
    GPSH_FOLDS_OF_SUMS(GPSH_NVS_FOLD, NAME, TYPE, AS, CTYPE)
#define GPSH_NVS_FOLDS_OF_BITS(NAME, TYPE, AS, CTYPE) \
    GPSH_FOLDS_OF_BITS(GPSH_NVS_FOLD, NAME, TYPE, AS, CTYPE)
GPSH_NVS_RMA_TYPES(GPSH_NVS_COLL_MOVES)
GPSH_COLL_MOVES_OF_NVSHMEM(GPSH_NVS_COLL_MEM, )
GPSH_NVS_REDUCE_TYPES(GPSH_NVS_FOLDS)
GPSH_NVS_INTEGER_TYPES(GPSH_NVS_FOLDS_OF_BITS)
#undef GPSH_NVS_COLL_AS

// ---- On streams ----

#define GPSH_NVS_MOVE_AS(NAME, AS, FORM, TYPE, CTYPE) \
    GPSH_NVS_ROW(void, nvshmemx_##NAME##_on_stream, \
                (GPSH_P_##FORM(TYPE, int), cudaStream_t stream), \
                GPSH_NVS_CHECK(gpushmem_##AS##_on_stream(GPSH_NVS_ARGUMENTS(FORM, CTYPE), stream)))
// PUT and GET with what is behind the verb: none of them waits, so the _nbi forms are the others.
#define GPSH_NVS_MOVES(PUT, GET, AS_PUT, AS_GET, TYPE, CTYPE) \
    GPSH_NVS_MOVE_AS(PUT, AS_PUT, MOVE, TYPE, CTYPE) \
    GPSH_NVS_MOVE_AS(GET, AS_GET, MOVE, TYPE, CTYPE) \
    GPSH_NVS_MOVE_AS(PUT##_nbi, AS_PUT, MOVE, TYPE, CTYPE) \
    GPSH_NVS_MOVE_AS(GET##_nbi, AS_GET, MOVE, TYPE, CTYPE) \
    GPSH_NVS_MOVE_AS(PUT##_signal, AS_PUT##_signal, SIGNAL, TYPE, CTYPE) \
    GPSH_NVS_MOVE_AS(PUT##_signal_nbi, AS_PUT##_signal, SIGNAL, TYPE, CTYPE)
#define GPSH_NVS_ROWS(NAME, TYPE, AS, CTYPE) \
    GPSH_NVS_MOVES(NAME##_put, NAME##_get, AS##_put, AS##_get, TYPE, CTYPE) \
    GPSH_NVS_MOVE_AS(NAME##_iput, AS##_iput, STRIDED, TYPE, CTYPE) \
    GPSH_NVS_MOVE_AS(NAME##_iget, AS##_iget, STRIDED, TYPE, CTYPE) \
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
    })
GPSH_NVS_RMA_TYPES(GPSH_NVS_ROWS)
#undef GPSH_NVS_ROWS

#define GPSH_NVS_ROWS(BITS) \
    GPSH_NVS_MOVES(put##BITS, get##BITS, put##BITS, get##BITS, void, void) \
    GPSH_NVS_MOVE_AS(iput##BITS, iput##BITS, STRIDED, void, void) \
    GPSH_NVS_MOVE_AS(iget##BITS, iget##BITS, STRIDED, void, void)
GPUSHMEM_RMA_SIZES(GPSH_NVS_ROWS)
#undef GPSH_NVS_ROWS
GPSH_NVS_MOVES(putmem, getmem, putmem, getmem, void, void)
#undef GPSH_NVS_MOVES
#undef GPSH_NVS_MOVE_AS

GPSH_NVS_ROW(void, nvshmemx_signal_op_on_stream,
            (uint64_t *sig_addr, uint64_t signal, int sig_op, int pe, cudaStream_t stream),
            GPSH_NVS_CHECK(gpushmem_signal_op_on_stream(sig_addr, signal, GPSH_NVS_OP(sig_op), pe,
                                                       stream)))
GPSH_NVS_ROW(void, nvshmemx_signal_wait_until_on_stream,
            (uint64_t *sig_addr, int cmp, uint64_t cmp_value, cudaStream_t stream),
            GPSH_NVS_CHECK(gpushmem_signal_wait_until_on_stream(sig_addr, GPSH_NVS_CMP(cmp),
                                                               cmp_value, stream)))
// Values to compare with, and which words to leave out, are read at the call.
#define GPSH_NVS_WAIT(NAME, WORDS, N, SKIP, VALUES, MANY, TYPE) \
    GPSH_NVS_CHECK(gpushmem_nvshmem_wait_on_stream( \
        "nvshmemx_" NAME "_on_stream", WORDS, N, SKIP, cmp, VALUES, MANY, \
        (TYPE)-1 < (TYPE)1 ? -(int)sizeof(TYPE) : (int)sizeof(TYPE), stream))
#define GPSH_NVS_ROWS(NAME, TYPE, AS, CTYPE) \
    GPSH_NVS_ROW(void, nvshmemx_##NAME##_wait_until_on_stream, \
                (TYPE *ivar, int cmp, TYPE cmp_value, cudaStream_t stream), \
                GPSH_NVS_WAIT(#NAME "_wait_until", ivar, 1, NULL, &cmp_value, 0, TYPE)) \
    GPSH_NVS_ROW(void, nvshmemx_##NAME##_wait_until_all_on_stream, \
                (TYPE *ivars, size_t nelems, const int *status, int cmp, TYPE cmp_value, \
                 cudaStream_t stream), \
                GPSH_NVS_WAIT(#NAME "_wait_until_all", ivars, nelems, status, &cmp_value, 0, \
                              TYPE)) \
    GPSH_NVS_ROW(void, nvshmemx_##NAME##_wait_until_all_vector_on_stream, \
                (TYPE *ivars, size_t nelems, const int *status, int cmp, TYPE *cmp_values, \
                 cudaStream_t stream), \
                GPSH_NVS_WAIT(#NAME "_wait_until_all_vector", ivars, nelems, status, cmp_values, \
                              1, TYPE))
GPSH_NVS_SYNC_TYPES(GPSH_NVS_ROWS)
#undef GPSH_NVS_ROWS
#undef GPSH_NVS_WAIT

GPSH_NVS_ROW(void, nvshmemx_quiet_on_stream, (cudaStream_t stream),
            GPSH_NVS_CHECK(gpushmem_quiet_on_stream(stream)))
GPSH_NVS_ROW(void, nvshmemx_flush_on_stream, (cudaStream_t stream),
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

#define GPSH_NVS_COLL_AS(NAME, AS, FORM, TYPE, CTYPE) \
    GPSH_NVS_ROW(int, nvshmemx_##NAME##_on_stream, \
                (nvshmem_team_t team, GPSH_P_##FORM(TYPE, ), cudaStream_t stream), \
                GPSH_NVS_STATUS(gpushmem_##AS##_on_stream(team, GPSH_NVS_ARGUMENTS(FORM, CTYPE), \
                                                         stream)))
GPSH_NVS_RMA_TYPES(GPSH_NVS_COLL_MOVES)
GPSH_COLL_MOVES_OF_NVSHMEM(GPSH_NVS_COLL_MEM, )
GPSH_NVS_REDUCE_TYPES(GPSH_NVS_FOLDS)
GPSH_NVS_INTEGER_TYPES(GPSH_NVS_FOLDS_OF_BITS)
#undef GPSH_NVS_FOLDS_OF_BITS
#undef GPSH_NVS_FOLDS
#undef GPSH_NVS_COLL_MOVES
#undef GPSH_NVS_FOLD
#undef GPSH_NVS_COLL_MEM
#undef GPSH_NVS_COLL
#undef GPSH_NVS_COLL_AS

#undef GPSH_NVS_ARGUMENTS
#undef GPSH_NVS_INTO
#undef GPSH_NVS_OP
#undef GPSH_NVS_CMP
#undef GPSH_NVS_BLOCK_FIRST
#undef GPSH_NVS_STATUS_FIRST
#undef GPSH_NVS_CHECK_FIRST
#undef GPSH_NVS_FIRST
#undef GPSH_NVS_STATUS
#undef GPSH_NVS_CHECK
