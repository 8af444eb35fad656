// SPDX-License-Identifier: BSD-3-Clause
// Every function of OpenSHMEM 1.6 as a row SHMEM_ROW(RETURN, NAME, PARAMETERS, BODY), for shmem.h,
// pshmem.h and libshmem, each of which defines what becomes of a row. No include guard.
// clang-format off

#define SHMEM_LIST(...) __VA_ARGS__
#define SHMEM_CHECK(CALL) { gpushmem_shmem_check(CALL); }
#define SHMEM_STATUS(CALL) { return gpushmem_shmem_check(CALL); }
#define SHMEM_CMP(cmp) ((enum gpushmem_cmp)(cmp))
#define SHMEM_OP(op) ((enum gpushmem_signal_op)(op))

// Rows in two forms, with and without a context.
// Nothing is returned: gpushmem_NAME does it.
#define SHMEM_VOID(NAME, ARGUMENTS, ...) SHMEM_VOID_AS(NAME, NAME, ARGUMENTS, __VA_ARGS__)
// gpushmem_AS does it.
#define SHMEM_VOID_AS(NAME, AS, ARGUMENTS, ...) \
    SHMEM_ROW(void, shmem_##NAME, (__VA_ARGS__), SHMEM_CHECK(gpushmem_##AS ARGUMENTS)) \
    SHMEM_ROW(void, shmem_ctx_##NAME, (shmem_ctx_t ctx, __VA_ARGS__), \
              SHMEM_CHECK(gpushmem_ctx_##AS(ctx, SHMEM_LIST ARGUMENTS)))
// The previous value is returned: gpushmem_NAME_status writes it.
#define SHMEM_FETCH(TYPE, NAME, ARGUMENTS, ...) \
    SHMEM_ROW(TYPE, shmem_##NAME, (__VA_ARGS__), { \
        TYPE before = 0; \
        gpushmem_shmem_check(gpushmem_##NAME##_status(SHMEM_LIST ARGUMENTS, &before)); \
        return before; \
    }) \
    SHMEM_ROW(TYPE, shmem_ctx_##NAME, (shmem_ctx_t ctx, __VA_ARGS__), { \
        TYPE before = 0; \
        gpushmem_shmem_check(gpushmem_ctx_##NAME##_status(ctx, SHMEM_LIST ARGUMENTS, &before)); \
        return before; \
    })

// ---- Lifecycle ----

SHMEM_ROW(void, shmem_init, (void), { gpushmem_shmem_init(SHMEM_THREAD_SINGLE, NULL); })
SHMEM_ROW(int, shmem_init_thread, (int requested, int *provided),
          { return gpushmem_shmem_init(requested, provided); })
SHMEM_ROW(void, shmem_query_thread, (int *provided), SHMEM_CHECK(gpushmem_query_thread(provided)))
SHMEM_ROW(void, shmem_finalize, (void), SHMEM_CHECK(gpushmem_finalize()))
SHMEM_ROW(void, shmem_global_exit, (int status), { gpushmem_global_exit(status); })
SHMEM_ROW(int, shmem_my_pe, (void), { return gpushmem_my_pe(); })
SHMEM_ROW(int, shmem_n_pes, (void), { return gpushmem_n_pes(); })
SHMEM_ROW(int, shmem_pe_accessible, (int pe), { return gpushmem_pe_accessible(pe); })
SHMEM_ROW(int, shmem_addr_accessible, (const void *addr, int pe),
          { return gpushmem_addr_accessible(addr, pe); })
SHMEM_ROW(void *, shmem_ptr, (const void *dest, int pe),
          { return gpushmem_shmem_block(gpushmem_ptr(dest, pe)); })
SHMEM_ROW(void, shmem_query_initialized, (int *initialized), {
    if (initialized)
        *initialized = gpushmem_initialized();
})
SHMEM_ROW(void *, shmem_team_ptr, (shmem_team_t team, const void *dest, int pe), {
    if (team == SHMEM_TEAM_INVALID)
        return NULL;
    return gpushmem_shmem_block(gpushmem_team_ptr(team, dest, pe));
})
SHMEM_ROW(void, shmem_info_get_version, (int *major, int *minor), {
    if (major)
        *major = SHMEM_MAJOR_VERSION;
    if (minor)
        *minor = SHMEM_MINOR_VERSION;
})
SHMEM_ROW(void, shmem_info_get_name, (char *name), {
    if (name)
        __builtin_memcpy(name, SHMEM_VENDOR_STRING, sizeof SHMEM_VENDOR_STRING);
})

// For tools that look at calls; the library has nothing to control.
SHMEM_ROW(void, shmem_pcontrol, (int level, ...), { (void)level; })

// ---- Memory ----

SHMEM_ROW(void *, shmem_malloc, (size_t size),
          { return gpushmem_shmem_block(gpushmem_malloc(size)); })
SHMEM_ROW(void *, shmem_calloc, (size_t count, size_t size),
          { return gpushmem_shmem_block(gpushmem_calloc(count, size)); })
SHMEM_ROW(void *, shmem_align, (size_t alignment, size_t size),
          { return gpushmem_shmem_block(gpushmem_align(alignment, size)); })
SHMEM_ROW(void *, shmem_realloc, (void *ptr, size_t size),
          { return gpushmem_shmem_block(gpushmem_realloc(ptr, size)); })
SHMEM_ROW(void *, shmem_malloc_with_hints, (size_t size, long hints), {
    // Hints that are not known have no effect.
    const long known = SHMEM_MALLOC_ATOMICS_REMOTE | SHMEM_MALLOC_SIGNAL_REMOTE;
    return gpushmem_shmem_block(gpushmem_malloc_with_hints(size, hints & known));
})
SHMEM_ROW(void, shmem_free, (void *ptr), SHMEM_CHECK(gpushmem_free(ptr)))

// ---- Teams and contexts ----

SHMEM_ROW(int, shmem_team_my_pe, (shmem_team_t team), SHMEM_STATUS(gpushmem_team_my_pe(team)))
SHMEM_ROW(int, shmem_team_n_pes, (shmem_team_t team), SHMEM_STATUS(gpushmem_team_n_pes(team)))
SHMEM_ROW(int, shmem_team_get_config,
          (shmem_team_t team, long config_mask, shmem_team_config_t *config),
          SHMEM_STATUS(gpushmem_team_get_config(team, config_mask, config)))
SHMEM_ROW(int, shmem_team_translate_pe, (shmem_team_t src_team, int src_pe, shmem_team_t dest_team),
          SHMEM_STATUS(gpushmem_team_translate_pe(src_team, src_pe, dest_team)))
SHMEM_ROW(int, shmem_team_split_strided,
          (shmem_team_t parent_team, int start, int stride, int size,
           const shmem_team_config_t *config, long config_mask, shmem_team_t *new_team),
          SHMEM_STATUS(gpushmem_team_split_strided(parent_team, start, stride, size, config,
                                                   config_mask, new_team)))
SHMEM_ROW(int, shmem_team_split_2d,
          (shmem_team_t parent_team, int xrange, const shmem_team_config_t *xaxis_config,
           long xaxis_mask, shmem_team_t *xaxis_team, const shmem_team_config_t *yaxis_config,
           long yaxis_mask, shmem_team_t *yaxis_team),
          SHMEM_STATUS(gpushmem_team_split_2d(parent_team, xrange, xaxis_config, xaxis_mask,
                                              xaxis_team, yaxis_config, yaxis_mask, yaxis_team)))
SHMEM_ROW(void, shmem_team_destroy, (shmem_team_t team), SHMEM_CHECK(gpushmem_team_destroy(team)))
SHMEM_ROW(int, shmem_team_sync, (shmem_team_t team), SHMEM_STATUS(gpushmem_team_sync(team)))
SHMEM_ROW(int, shmem_ctx_create, (long options, shmem_ctx_t *ctx), {
    int status = gpushmem_shmem_check(gpushmem_ctx_create(options, ctx));
    if (status && ctx)
        *ctx = SHMEM_CTX_INVALID;
    return status;
})
SHMEM_ROW(int, shmem_team_create_ctx, (shmem_team_t team, long options, shmem_ctx_t *ctx), {
    if (team == SHMEM_TEAM_INVALID)
        return -1;
    int status = gpushmem_shmem_check(gpushmem_team_create_ctx(team, options, ctx));
    if (status && ctx)
        *ctx = SHMEM_CTX_INVALID;
    return status;
})
SHMEM_ROW(void, shmem_ctx_destroy, (shmem_ctx_t ctx), SHMEM_CHECK(gpushmem_ctx_destroy(ctx)))
SHMEM_ROW(int, shmem_ctx_get_team, (shmem_ctx_t ctx, shmem_team_t *team), {
    if (ctx == SHMEM_CTX_INVALID && team) {
        *team = SHMEM_TEAM_INVALID;
        return -1;
    }
    return gpushmem_shmem_check(gpushmem_ctx_get_team(ctx, team));
})
// Options and mask bits that are not known have no effect, and neither has an invalid context.
SHMEM_ROW(void, shmem_ctx_session_start,
          (shmem_ctx_t ctx, long options, const shmem_ctx_session_config_t *config,
           long config_mask), {
    if (ctx != SHMEM_CTX_INVALID)
        gpushmem_shmem_check(gpushmem_ctx_session_start(
            ctx, options & SHMEM_CTX_SESSION_BATCH, config,
            config ? config_mask & SHMEM_CTX_SESSION_TOTAL_OPS : 0));
})
SHMEM_ROW(void, shmem_ctx_session_stop, (shmem_ctx_t ctx), {
    if (ctx != SHMEM_CTX_INVALID)
        gpushmem_shmem_check(gpushmem_ctx_session_stop(ctx));
})

// ---- Remote memory access ----

#define SHMEM_ROWS(NAME, TYPE) \
    SHMEM_VOID(NAME##_put, (dest, source, nelems, pe), \
               TYPE *dest, const TYPE *source, size_t nelems, int pe) \
    SHMEM_VOID(NAME##_get, (dest, source, nelems, pe), \
               TYPE *dest, const TYPE *source, size_t nelems, int pe) \
    SHMEM_VOID(NAME##_put_nbi, (dest, source, nelems, pe), \
               TYPE *dest, const TYPE *source, size_t nelems, int pe) \
    SHMEM_VOID(NAME##_get_nbi, (dest, source, nelems, pe), \
               TYPE *dest, const TYPE *source, size_t nelems, int pe) \
    SHMEM_VOID(NAME##_p, (dest, value, pe), TYPE *dest, TYPE value, int pe) \
    SHMEM_ROW(TYPE, shmem_##NAME##_g, (const TYPE *source, int pe), { \
        TYPE value = gpushmem_##NAME##_g(source, pe); \
        if (value == 0) \
            gpushmem_shmem_zero(); \
        return value; \
    }) \
    SHMEM_ROW(TYPE, shmem_ctx_##NAME##_g, (shmem_ctx_t ctx, const TYPE *source, int pe), { \
        TYPE value = gpushmem_ctx_##NAME##_g(ctx, source, pe); \
        if (value == 0) \
            gpushmem_shmem_zero(); \
        return value; \
    }) \
    SHMEM_VOID(NAME##_iput, (dest, source, dst, sst, nelems, pe), \
               TYPE *dest, const TYPE *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, \
               int pe) \
    SHMEM_VOID(NAME##_iget, (dest, source, dst, sst, nelems, pe), \
               TYPE *dest, const TYPE *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, \
               int pe) \
    SHMEM_VOID(NAME##_ibput, (dest, source, dst, sst, bsize, nblocks, pe), \
               TYPE *dest, const TYPE *source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize, \
               size_t nblocks, int pe) \
    SHMEM_VOID(NAME##_ibget, (dest, source, dst, sst, bsize, nblocks, pe), \
               TYPE *dest, const TYPE *source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize, \
               size_t nblocks, int pe) \
    SHMEM_VOID(NAME##_put_signal, (dest, source, nelems, sig_addr, signal, SHMEM_OP(sig_op), pe), \
               TYPE *dest, const TYPE *source, size_t nelems, uint64_t *sig_addr, \
               uint64_t signal, int sig_op, int pe) \
    SHMEM_VOID(NAME##_put_signal_nbi, \
               (dest, source, nelems, sig_addr, signal, SHMEM_OP(sig_op), pe), \
               TYPE *dest, const TYPE *source, size_t nelems, uint64_t *sig_addr, \
               uint64_t signal, int sig_op, int pe)
SHMEM_RMA_TYPES(SHMEM_ROWS)
#undef SHMEM_ROWS

// long double: 128 bits, of which some hold nothing.
SHMEM_VOID_AS(longdouble_put, put128, (dest, source, nelems, pe),
              long double *dest, const long double *source, size_t nelems, int pe)
SHMEM_VOID_AS(longdouble_get, get128, (dest, source, nelems, pe),
              long double *dest, const long double *source, size_t nelems, int pe)
SHMEM_VOID_AS(longdouble_put_nbi, put128_nbi, (dest, source, nelems, pe),
              long double *dest, const long double *source, size_t nelems, int pe)
SHMEM_VOID_AS(longdouble_get_nbi, get128_nbi, (dest, source, nelems, pe),
              long double *dest, const long double *source, size_t nelems, int pe)
SHMEM_VOID_AS(longdouble_p, put128, (dest, &value, 1, pe),
              long double *dest, long double value, int pe)
SHMEM_ROW(long double, shmem_longdouble_g, (const long double *source, int pe), {
    long double value = 0;
    gpushmem_shmem_check(gpushmem_get128(&value, source, 1, pe));
    return value;
})
SHMEM_ROW(long double, shmem_ctx_longdouble_g,
          (shmem_ctx_t ctx, const long double *source, int pe), {
    long double value = 0;
    gpushmem_shmem_check(gpushmem_ctx_get128(ctx, &value, source, 1, pe));
    return value;
})
SHMEM_VOID_AS(longdouble_iput, iput128, (dest, source, dst, sst, nelems, pe),
              long double *dest, const long double *source, ptrdiff_t dst, ptrdiff_t sst,
              size_t nelems, int pe)
SHMEM_VOID_AS(longdouble_iget, iget128, (dest, source, dst, sst, nelems, pe),
              long double *dest, const long double *source, ptrdiff_t dst, ptrdiff_t sst,
              size_t nelems, int pe)
SHMEM_VOID_AS(longdouble_ibput, ibput128, (dest, source, dst, sst, bsize, nblocks, pe),
              long double *dest, const long double *source, ptrdiff_t dst, ptrdiff_t sst,
              size_t bsize, size_t nblocks, int pe)
SHMEM_VOID_AS(longdouble_ibget, ibget128, (dest, source, dst, sst, bsize, nblocks, pe),
              long double *dest, const long double *source, ptrdiff_t dst, ptrdiff_t sst,
              size_t bsize, size_t nblocks, int pe)
SHMEM_VOID_AS(longdouble_put_signal, put128_signal,
              (dest, source, nelems, sig_addr, signal, SHMEM_OP(sig_op), pe),
              long double *dest, const long double *source, size_t nelems, uint64_t *sig_addr,
              uint64_t signal, int sig_op, int pe)
SHMEM_VOID_AS(longdouble_put_signal_nbi, put128_signal_nbi,
              (dest, source, nelems, sig_addr, signal, SHMEM_OP(sig_op), pe),
              long double *dest, const long double *source, size_t nelems, uint64_t *sig_addr,
              uint64_t signal, int sig_op, int pe)

// By the bits of an element, and by bytes.
#define SHMEM_UNTYPED(FORM) \
    SHMEM_VOID(put##FORM, (dest, source, nelems, pe), \
               void *dest, const void *source, size_t nelems, int pe) \
    SHMEM_VOID(get##FORM, (dest, source, nelems, pe), \
               void *dest, const void *source, size_t nelems, int pe) \
    SHMEM_VOID(put##FORM##_nbi, (dest, source, nelems, pe), \
               void *dest, const void *source, size_t nelems, int pe) \
    SHMEM_VOID(get##FORM##_nbi, (dest, source, nelems, pe), \
               void *dest, const void *source, size_t nelems, int pe) \
    SHMEM_VOID(put##FORM##_signal, (dest, source, nelems, sig_addr, signal, SHMEM_OP(sig_op), pe), \
               void *dest, const void *source, size_t nelems, uint64_t *sig_addr, \
               uint64_t signal, int sig_op, int pe) \
    SHMEM_VOID(put##FORM##_signal_nbi, \
               (dest, source, nelems, sig_addr, signal, SHMEM_OP(sig_op), pe), \
               void *dest, const void *source, size_t nelems, uint64_t *sig_addr, \
               uint64_t signal, int sig_op, int pe)
#define SHMEM_ROWS(BITS) \
    SHMEM_UNTYPED(BITS) \
    SHMEM_VOID(iput##BITS, (dest, source, dst, sst, nelems, pe), \
               void *dest, const void *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, \
               int pe) \
    SHMEM_VOID(iget##BITS, (dest, source, dst, sst, nelems, pe), \
               void *dest, const void *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, \
               int pe) \
    SHMEM_VOID(ibput##BITS, (dest, source, dst, sst, bsize, nblocks, pe), \
               void *dest, const void *source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize, \
               size_t nblocks, int pe) \
    SHMEM_VOID(ibget##BITS, (dest, source, dst, sst, bsize, nblocks, pe), \
               void *dest, const void *source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize, \
               size_t nblocks, int pe)
GPUSHMEM_RMA_SIZES(SHMEM_ROWS)
#undef SHMEM_ROWS
SHMEM_UNTYPED(mem)
#undef SHMEM_UNTYPED

SHMEM_VOID(signal_set, (sig_addr, signal, pe), uint64_t *sig_addr, uint64_t signal, int pe)
SHMEM_VOID(signal_add, (sig_addr, signal, pe), uint64_t *sig_addr, uint64_t signal, int pe)
SHMEM_ROW(uint64_t, shmem_signal_fetch, (const uint64_t *sig_addr), {
    uint64_t value = 0;
    gpushmem_shmem_check(gpushmem_signal_fetch_status(sig_addr, &value));
    return value;
})
SHMEM_ROW(uint64_t, shmem_signal_wait_until, (uint64_t *sig_addr, int cmp, uint64_t cmp_value), {
    uint64_t seen = 0;
    gpushmem_shmem_check(
        gpushmem_signal_wait_until_status(sig_addr, SHMEM_CMP(cmp), cmp_value, &seen));
    return seen;
})

// ---- Atomics ----

#define SHMEM_ROWS(NAME, TYPE) \
    SHMEM_FETCH(TYPE, NAME##_atomic_fetch, (source, pe), const TYPE *source, int pe) \
    SHMEM_VOID(NAME##_atomic_set, (dest, value, pe), TYPE *dest, TYPE value, int pe) \
    SHMEM_FETCH(TYPE, NAME##_atomic_swap, (dest, value, pe), TYPE *dest, TYPE value, int pe) \
    SHMEM_VOID(NAME##_atomic_fetch_nbi, (fetch, source, pe), \
               TYPE *fetch, const TYPE *source, int pe) \
    SHMEM_VOID(NAME##_atomic_swap_nbi, (fetch, dest, value, pe), \
               TYPE *fetch, TYPE *dest, TYPE value, int pe)
GPUSHMEM_AMO_EXTENDED_TYPES(SHMEM_ROWS)
#undef SHMEM_ROWS

#define SHMEM_ROWS(NAME, TYPE) \
    SHMEM_FETCH(TYPE, NAME##_atomic_compare_swap, (dest, cond, value, pe), \
                TYPE *dest, TYPE cond, TYPE value, int pe) \
    SHMEM_FETCH(TYPE, NAME##_atomic_fetch_inc, (dest, pe), TYPE *dest, int pe) \
    SHMEM_VOID(NAME##_atomic_inc, (dest, pe), TYPE *dest, int pe) \
    SHMEM_FETCH(TYPE, NAME##_atomic_fetch_add, (dest, value, pe), TYPE *dest, TYPE value, int pe) \
    SHMEM_VOID(NAME##_atomic_add, (dest, value, pe), TYPE *dest, TYPE value, int pe) \
    SHMEM_VOID(NAME##_atomic_compare_swap_nbi, (fetch, dest, cond, value, pe), \
               TYPE *fetch, TYPE *dest, TYPE cond, TYPE value, int pe) \
    SHMEM_VOID(NAME##_atomic_fetch_inc_nbi, (fetch, dest, pe), TYPE *fetch, TYPE *dest, int pe) \
    SHMEM_VOID(NAME##_atomic_fetch_add_nbi, (fetch, dest, value, pe), \
               TYPE *fetch, TYPE *dest, TYPE value, int pe)
GPUSHMEM_AMO_TYPES(SHMEM_ROWS)
#undef SHMEM_ROWS

#define SHMEM_BITWISE(NAME, TYPE, OP) \
    SHMEM_FETCH(TYPE, NAME##_atomic_fetch_##OP, (dest, value, pe), TYPE *dest, TYPE value, int pe) \
    SHMEM_VOID(NAME##_atomic_##OP, (dest, value, pe), TYPE *dest, TYPE value, int pe) \
    SHMEM_VOID(NAME##_atomic_fetch_##OP##_nbi, (fetch, dest, value, pe), \
               TYPE *fetch, TYPE *dest, TYPE value, int pe)
#define SHMEM_ROWS(NAME, TYPE) \
    SHMEM_BITWISE(NAME, TYPE, and) \
    SHMEM_BITWISE(NAME, TYPE, or) \
    SHMEM_BITWISE(NAME, TYPE, xor)
GPUSHMEM_AMO_BITWISE_TYPES(SHMEM_ROWS)
#undef SHMEM_ROWS
#undef SHMEM_BITWISE

// ---- Waiting for words of this PE ----
// OpenSHMEM 1.3 has volatile here, later versions have not: both may be passed.

#define SHMEM_SET_OF(NAME, TYPE, VECTOR, VALUE) \
    SHMEM_ROW(void, shmem_##NAME##_wait_until_all##VECTOR, \
              (volatile TYPE *ivars, size_t nelems, const int *status, int cmp, VALUE), \
              SHMEM_CHECK(gpushmem_##NAME##_wait_until_all##VECTOR(ivars, nelems, status, \
                                                                   SHMEM_CMP(cmp), cmp_value))) \
    SHMEM_ROW(size_t, shmem_##NAME##_wait_until_any##VECTOR, \
              (volatile TYPE *ivars, size_t nelems, const int *status, int cmp, VALUE), { \
        size_t index = SIZE_MAX; \
        gpushmem_shmem_check(gpushmem_##NAME##_wait_until_any##VECTOR##_status( \
            ivars, nelems, status, SHMEM_CMP(cmp), cmp_value, &index)); \
        return index; \
    }) \
    SHMEM_ROW(size_t, shmem_##NAME##_wait_until_some##VECTOR, \
              (volatile TYPE *ivars, size_t nelems, size_t *indices, const int *status, int cmp, \
               VALUE), { \
        size_t count = 0; \
        gpushmem_shmem_check(gpushmem_##NAME##_wait_until_some##VECTOR##_status( \
            ivars, nelems, indices, status, SHMEM_CMP(cmp), cmp_value, &count)); \
        return count; \
    }) \
    SHMEM_ROW(int, shmem_##NAME##_test_all##VECTOR, \
              (volatile TYPE *ivars, size_t nelems, const int *status, int cmp, VALUE), { \
        return gpushmem_shmem_check(gpushmem_##NAME##_test_all##VECTOR( \
            ivars, nelems, status, SHMEM_CMP(cmp), cmp_value)) > 0; \
    }) \
    SHMEM_ROW(size_t, shmem_##NAME##_test_any##VECTOR, \
              (volatile TYPE *ivars, size_t nelems, const int *status, int cmp, VALUE), { \
        size_t index = SIZE_MAX; \
        gpushmem_shmem_check(gpushmem_##NAME##_test_any##VECTOR##_status( \
            ivars, nelems, status, SHMEM_CMP(cmp), cmp_value, &index)); \
        return index; \
    }) \
    SHMEM_ROW(size_t, shmem_##NAME##_test_some##VECTOR, \
              (volatile TYPE *ivars, size_t nelems, size_t *indices, const int *status, int cmp, \
               VALUE), { \
        size_t count = 0; \
        gpushmem_shmem_check(gpushmem_##NAME##_test_some##VECTOR##_status( \
            ivars, nelems, indices, status, SHMEM_CMP(cmp), cmp_value, &count)); \
        return count; \
    })
#define SHMEM_ROWS(NAME, TYPE) \
    SHMEM_ROW(void, shmem_##NAME##_wait_until, (volatile TYPE *ivar, int cmp, TYPE cmp_value), \
              SHMEM_CHECK(gpushmem_##NAME##_wait_until(ivar, SHMEM_CMP(cmp), cmp_value))) \
    SHMEM_ROW(int, shmem_##NAME##_test, (volatile TYPE *ivar, int cmp, TYPE cmp_value), { \
        return gpushmem_shmem_check( \
            gpushmem_##NAME##_test(ivar, SHMEM_CMP(cmp), cmp_value)) > 0; \
    }) \
    SHMEM_SET_OF(NAME, TYPE, , TYPE cmp_value) \
    SHMEM_SET_OF(NAME, TYPE, _vector, const TYPE *cmp_value)
GPUSHMEM_SYNC_TYPES(SHMEM_ROWS)
#undef SHMEM_ROWS
#undef SHMEM_SET_OF

// ---- Ordering, barriers, locks ----

SHMEM_ROW(void, shmem_fence, (void), SHMEM_CHECK(gpushmem_fence()))
SHMEM_ROW(void, shmem_ctx_fence, (shmem_ctx_t ctx), SHMEM_CHECK(gpushmem_ctx_fence(ctx)))
SHMEM_ROW(void, shmem_quiet, (void), SHMEM_CHECK(gpushmem_quiet()))
SHMEM_ROW(void, shmem_ctx_quiet, (shmem_ctx_t ctx), SHMEM_CHECK(gpushmem_ctx_quiet(ctx)))
SHMEM_ROW(void, shmem_pe_quiet, (const int *target_pes, size_t npes),
          SHMEM_CHECK(gpushmem_pe_quiet(target_pes, npes)))
SHMEM_ROW(void, shmem_ctx_pe_quiet, (shmem_ctx_t ctx, const int *target_pes, size_t npes),
          SHMEM_CHECK(gpushmem_ctx_pe_quiet(ctx, target_pes, npes)))
SHMEM_ROW(void, shmem_barrier_all, (void), SHMEM_CHECK(gpushmem_barrier_all()))
SHMEM_ROW(void, shmem_sync_all, (void), SHMEM_CHECK(gpushmem_sync_all()))
SHMEM_ROW(void, shmem_set_lock, (volatile long *lock), SHMEM_CHECK(gpushmem_set_lock((long *)lock)))
SHMEM_ROW(void, shmem_clear_lock, (volatile long *lock),
          SHMEM_CHECK(gpushmem_clear_lock((long *)lock)))
SHMEM_ROW(int, shmem_test_lock, (volatile long *lock),
          SHMEM_STATUS(gpushmem_test_lock((long *)lock)))

// ---- Collectives of teams ----

#define SHMEM_ROWS(NAME, TYPE) \
    SHMEM_ROW(int, shmem_##NAME##_broadcast, \
              (shmem_team_t team, TYPE *dest, const TYPE *source, size_t nelems, int PE_root), \
              SHMEM_STATUS(gpushmem_##NAME##_broadcast(team, dest, source, nelems, PE_root))) \
    SHMEM_ROW(int, shmem_##NAME##_collect, \
              (shmem_team_t team, TYPE *dest, const TYPE *source, size_t nelems), \
              SHMEM_STATUS(gpushmem_##NAME##_collect(team, dest, source, nelems))) \
    SHMEM_ROW(int, shmem_##NAME##_fcollect, \
              (shmem_team_t team, TYPE *dest, const TYPE *source, size_t nelems), \
              SHMEM_STATUS(gpushmem_##NAME##_fcollect(team, dest, source, nelems))) \
    SHMEM_ROW(int, shmem_##NAME##_alltoall, \
              (shmem_team_t team, TYPE *dest, const TYPE *source, size_t nelems), \
              SHMEM_STATUS(gpushmem_##NAME##_alltoall(team, dest, source, nelems))) \
    SHMEM_ROW(int, shmem_##NAME##_alltoalls, \
              (shmem_team_t team, TYPE *dest, const TYPE *source, ptrdiff_t dst, ptrdiff_t sst, \
               size_t nelems), \
              SHMEM_STATUS(gpushmem_##NAME##_alltoalls(team, dest, source, dst, sst, nelems)))
SHMEM_RMA_TYPES(SHMEM_ROWS)
#undef SHMEM_ROWS

#define SHMEM_BYTES (nelems * sizeof(long double))
SHMEM_ROW(int, shmem_longdouble_broadcast,
          (shmem_team_t team, long double *dest, const long double *source, size_t nelems,
           int PE_root),
          SHMEM_STATUS(gpushmem_broadcastmem(team, dest, source, SHMEM_BYTES, PE_root)))
SHMEM_ROW(int, shmem_longdouble_collect,
          (shmem_team_t team, long double *dest, const long double *source, size_t nelems),
          SHMEM_STATUS(gpushmem_collectmem(team, dest, source, SHMEM_BYTES)))
SHMEM_ROW(int, shmem_longdouble_fcollect,
          (shmem_team_t team, long double *dest, const long double *source, size_t nelems),
          SHMEM_STATUS(gpushmem_fcollectmem(team, dest, source, SHMEM_BYTES)))
SHMEM_ROW(int, shmem_longdouble_alltoall,
          (shmem_team_t team, long double *dest, const long double *source, size_t nelems),
          SHMEM_STATUS(gpushmem_alltoallmem(team, dest, source, SHMEM_BYTES)))
#undef SHMEM_BYTES
// The first halves of all elements, then the second ones.
SHMEM_ROW(int, shmem_longdouble_alltoalls,
          (shmem_team_t team, long double *dest, const long double *source, ptrdiff_t dst,
           ptrdiff_t sst, size_t nelems), {
    uint64_t *to = (uint64_t *)(void *)dest;
    const uint64_t *from = (const uint64_t *)(const void *)source;
    int status = gpushmem_uint64_alltoalls(team, to, from, 2 * dst, 2 * sst, nelems);
    if (status == 0)
        status = gpushmem_uint64_alltoalls(team, to + 1, from + 1, 2 * dst, 2 * sst, nelems);
    return gpushmem_shmem_check(status);
})

SHMEM_ROW(int, shmem_broadcastmem,
          (shmem_team_t team, void *dest, const void *source, size_t nelems, int PE_root),
          SHMEM_STATUS(gpushmem_broadcastmem(team, dest, source, nelems, PE_root)))
SHMEM_ROW(int, shmem_collectmem,
          (shmem_team_t team, void *dest, const void *source, size_t nelems),
          SHMEM_STATUS(gpushmem_collectmem(team, dest, source, nelems)))
SHMEM_ROW(int, shmem_fcollectmem,
          (shmem_team_t team, void *dest, const void *source, size_t nelems),
          SHMEM_STATUS(gpushmem_fcollectmem(team, dest, source, nelems)))
SHMEM_ROW(int, shmem_alltoallmem,
          (shmem_team_t team, void *dest, const void *source, size_t nelems),
          SHMEM_STATUS(gpushmem_alltoallmem(team, dest, source, nelems)))
SHMEM_ROW(int, shmem_alltoallsmem,
          (shmem_team_t team, void *dest, const void *source, ptrdiff_t dst, ptrdiff_t sst,
           size_t nelems),
          SHMEM_STATUS(gpushmem_alltoallsmem(team, dest, source, dst, sst, nelems)))

#define SHMEM_REDUCE(NAME, TYPE, OP) \
    SHMEM_ROW(int, shmem_##NAME##_##OP##_reduce, \
              (shmem_team_t team, TYPE *dest, const TYPE *source, size_t nreduce), \
              SHMEM_STATUS(gpushmem_##NAME##_##OP##_reduce(team, dest, source, nreduce)))
#define SHMEM_SCAN(NAME, TYPE, KIND) \
    SHMEM_ROW(int, shmem_##NAME##_sum_##KIND, \
              (shmem_team_t team, TYPE *dest, const TYPE *source, size_t nelems), \
              SHMEM_STATUS(gpushmem_##NAME##_sum_##KIND(team, dest, source, nelems)))
#define SHMEM_ROWS(NAME, TYPE) \
    SHMEM_REDUCE(NAME, TYPE, and) \
    SHMEM_REDUCE(NAME, TYPE, or) \
    SHMEM_REDUCE(NAME, TYPE, xor)
GPUSHMEM_INTEGER_TYPES(SHMEM_ROWS)
#undef SHMEM_ROWS
#define SHMEM_ROWS(NAME, TYPE) \
    SHMEM_REDUCE(NAME, TYPE, min) \
    SHMEM_REDUCE(NAME, TYPE, max)
SHMEM_ORDERED_TYPES(SHMEM_ROWS)
#undef SHMEM_ROWS
#define SHMEM_ROWS(NAME, TYPE) \
    SHMEM_REDUCE(NAME, TYPE, sum) \
    SHMEM_REDUCE(NAME, TYPE, prod) \
    SHMEM_SCAN(NAME, TYPE, inscan) \
    SHMEM_SCAN(NAME, TYPE, exscan)
SHMEM_ARITHMETIC_TYPES(SHMEM_ROWS)
#undef SHMEM_ROWS
#undef SHMEM_SCAN
#undef SHMEM_REDUCE

// ---- Deprecated: names of the first versions ----

SHMEM_ROW(void, start_pes, (int npes), {
    (void)npes;
    gpushmem_shmem_start();
})
SHMEM_ROW(int, _my_pe, (void), { return gpushmem_my_pe(); })
SHMEM_ROW(int, _num_pes, (void), { return gpushmem_n_pes(); })
SHMEM_ROW(void *, shmalloc, (size_t size), { return gpushmem_shmem_block(gpushmem_malloc(size)); })
SHMEM_ROW(void *, shrealloc, (void *ptr, size_t size),
          { return gpushmem_shmem_block(gpushmem_realloc(ptr, size)); })
SHMEM_ROW(void *, shmemalign, (size_t alignment, size_t size),
          { return gpushmem_shmem_block(gpushmem_align(alignment, size)); })
SHMEM_ROW(void, shfree, (void *ptr), SHMEM_CHECK(gpushmem_free(ptr)))

// Caches are coherent.
SHMEM_ROW(void, shmem_clear_cache_inv, (void), {})
SHMEM_ROW(void, shmem_set_cache_inv, (void), {})
SHMEM_ROW(void, shmem_clear_cache_line_inv, (void *dest), { (void)dest; })
SHMEM_ROW(void, shmem_set_cache_line_inv, (void *dest), { (void)dest; })
SHMEM_ROW(void, shmem_udcflush, (void), {})
SHMEM_ROW(void, shmem_udcflush_line, (void *dest), { (void)dest; })

#define SHMEM_OLD(TYPE, NAME, AS, ARGUMENTS, ...) \
    SHMEM_ROW(TYPE, shmem_##NAME, (__VA_ARGS__), { \
        TYPE before = 0; \
        gpushmem_shmem_check(gpushmem_##AS##_status(SHMEM_LIST ARGUMENTS, &before)); \
        return before; \
    })
#define SHMEM_ROWS(NAME, TYPE) \
    SHMEM_OLD(TYPE, NAME##_fetch, NAME##_atomic_fetch, (source, pe), const TYPE *source, int pe) \
    SHMEM_OLD(TYPE, NAME##_swap, NAME##_atomic_swap, (dest, value, pe), \
              TYPE *dest, TYPE value, int pe) \
    SHMEM_ROW(void, shmem_##NAME##_set, (TYPE *dest, TYPE value, int pe), \
              SHMEM_CHECK(gpushmem_##NAME##_atomic_set(dest, value, pe)))
GPUSHMEM_AMO_EXTENDED_TYPES(SHMEM_ROWS)
#undef SHMEM_ROWS
#define SHMEM_ROWS(NAME, TYPE) \
    SHMEM_OLD(TYPE, NAME##_cswap, NAME##_atomic_compare_swap, (dest, cond, value, pe), \
              TYPE *dest, TYPE cond, TYPE value, int pe) \
    SHMEM_OLD(TYPE, NAME##_finc, NAME##_atomic_fetch_inc, (dest, pe), TYPE *dest, int pe) \
    SHMEM_OLD(TYPE, NAME##_fadd, NAME##_atomic_fetch_add, (dest, value, pe), \
              TYPE *dest, TYPE value, int pe) \
    SHMEM_ROW(void, shmem_##NAME##_inc, (TYPE *dest, int pe), \
              SHMEM_CHECK(gpushmem_##NAME##_atomic_inc(dest, pe))) \
    SHMEM_ROW(void, shmem_##NAME##_add, (TYPE *dest, TYPE value, int pe), \
              SHMEM_CHECK(gpushmem_##NAME##_atomic_add(dest, value, pe)))
GPUSHMEM_AMO_TYPES(SHMEM_ROWS)
#undef SHMEM_ROWS
#undef SHMEM_OLD

#define SHMEM_ROWS(NAME, TYPE) \
    SHMEM_ROW(void, shmem_##NAME##_wait, (volatile TYPE *ivar, TYPE cmp_value), \
              SHMEM_CHECK(gpushmem_##NAME##_wait_until(ivar, GPUSHMEM_CMP_NE, cmp_value)))
SHMEM_OLD_BITWISE_TYPES(SHMEM_ROWS)
#undef SHMEM_ROWS
SHMEM_ROW(void, shmem_wait, (volatile long *ivar, long cmp_value),
          SHMEM_CHECK(gpushmem_long_wait_until(ivar, GPUSHMEM_CMP_NE, cmp_value)))
SHMEM_ROW(void, shmem_wait_until, (volatile long *ivar, int cmp, long cmp_value),
          SHMEM_CHECK(gpushmem_long_wait_until(ivar, SHMEM_CMP(cmp), cmp_value)))

// ---- Deprecated: collectives of active sets ----

#define SHMEM_SET int PE_start, int logPE_stride, int PE_size
#define SHMEM_ON_SET(CALL) { \
        const gpushmem_team_t team = \
            gpushmem_shmem_active_set(PE_start, logPE_stride, PE_size, pSync); \
        if (team != GPUSHMEM_TEAM_INVALID) \
            gpushmem_shmem_check(CALL); \
    }
SHMEM_ROW(void, shmem_barrier, (SHMEM_SET, long *pSync), SHMEM_ON_SET(gpushmem_barrier(team)))
SHMEM_ROW(void, shmem_sync, (SHMEM_SET, long *pSync), SHMEM_ON_SET(gpushmem_team_sync(team)))

#define SHMEM_ROWS(BITS) \
    SHMEM_ROW(void, shmem_broadcast##BITS, \
              (void *dest, const void *source, size_t nelems, int PE_root, SHMEM_SET, \
               long *pSync), \
              SHMEM_ON_SET(gpushmem_shmem_broadcast(team, dest, source, nelems * (BITS / 8), \
                                                    PE_root))) \
    SHMEM_ROW(void, shmem_collect##BITS, \
              (void *dest, const void *source, size_t nelems, SHMEM_SET, long *pSync), \
              SHMEM_ON_SET(gpushmem_collectmem(team, dest, source, nelems * (BITS / 8)))) \
    SHMEM_ROW(void, shmem_fcollect##BITS, \
              (void *dest, const void *source, size_t nelems, SHMEM_SET, long *pSync), \
              SHMEM_ON_SET(gpushmem_fcollectmem(team, dest, source, nelems * (BITS / 8)))) \
    SHMEM_ROW(void, shmem_alltoall##BITS, \
              (void *dest, const void *source, size_t nelems, SHMEM_SET, long *pSync), \
              SHMEM_ON_SET(gpushmem_alltoallmem(team, dest, source, nelems * (BITS / 8)))) \
    SHMEM_ROW(void, shmem_alltoalls##BITS, \
              (void *dest, const void *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, \
               SHMEM_SET, long *pSync), \
              SHMEM_ON_SET(gpushmem_uint##BITS##_alltoalls(team, (uint##BITS##_t *)dest, \
                                                           (const uint##BITS##_t *)source, dst, \
                                                           sst, nelems)))
SHMEM_ROWS(32)
SHMEM_ROWS(64)
#undef SHMEM_ROWS

#define SHMEM_TO_ALL(NAME, TYPE, OP) \
    SHMEM_ROW(void, shmem_##NAME##_##OP##_to_all, \
              (TYPE *dest, const TYPE *source, int nreduce, SHMEM_SET, TYPE *pWrk, long *pSync), { \
        (void)pWrk; \
        SHMEM_ON_SET(gpushmem_##NAME##_##OP##_reduce(team, dest, source, (size_t)nreduce)) \
    })
#define SHMEM_ROWS(NAME, TYPE) \
    SHMEM_TO_ALL(NAME, TYPE, and) \
    SHMEM_TO_ALL(NAME, TYPE, or) \
    SHMEM_TO_ALL(NAME, TYPE, xor)
SHMEM_OLD_BITWISE_TYPES(SHMEM_ROWS)
#undef SHMEM_ROWS
#define SHMEM_ROWS(NAME, TYPE) \
    SHMEM_TO_ALL(NAME, TYPE, min) \
    SHMEM_TO_ALL(NAME, TYPE, max)
SHMEM_OLD_ORDERED_TYPES(SHMEM_ROWS)
#undef SHMEM_ROWS
#define SHMEM_ROWS(NAME, TYPE) \
    SHMEM_TO_ALL(NAME, TYPE, sum) \
    SHMEM_TO_ALL(NAME, TYPE, prod)
SHMEM_OLD_ARITHMETIC_TYPES(SHMEM_ROWS)
#undef SHMEM_ROWS
#undef SHMEM_TO_ALL
#undef SHMEM_ON_SET
#undef SHMEM_SET

#undef SHMEM_FETCH
#undef SHMEM_VOID_AS
#undef SHMEM_VOID
#undef SHMEM_OP
#undef SHMEM_CMP
#undef SHMEM_STATUS
#undef SHMEM_CHECK
#undef SHMEM_LIST
