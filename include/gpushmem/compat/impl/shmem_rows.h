// SPDX-License-Identifier: BSD-3-Clause
// Every function of OpenSHMEM 1.6 as a row GPSHM_ROW(RETURN, NAME, PARAMETERS, BODY), for shmem.h,
// pshmem.h and libshmem, each of which defines what becomes of a row. No include guard.
// clang-format off

#define GPSHM_CHECK(CALL) { gpushmem_shmem_lost(CALL); }
#define GPSHM_STATUS(CALL) { return gpushmem_shmem_check(CALL); }
#define GPSHM_TEAM(team) gpushmem_team_of_shmem(team)
#define GPSHM_CMP(cmp) ((enum gpushmem_cmp)(cmp))
#define GPSHM_OP(op) ((enum gpushmem_signal_op)(op))

// Rows in two forms, with and without a context.
// Nothing is returned: gpushmem_NAME does it.
#define GPSHM_VOID(NAME, ARGUMENTS, ...) GPSHM_VOID_AS(NAME, NAME, ARGUMENTS, __VA_ARGS__)
// gpushmem_AS does it.
#define GPSHM_VOID_AS(NAME, AS, ARGUMENTS, ...) \
    GPSHM_ROW(void, shmem_##NAME, (__VA_ARGS__), GPSHM_CHECK(gpushmem_##AS ARGUMENTS)) \
    GPSHM_ROW(void, shmem_ctx_##NAME, (shmem_ctx_t ctx, __VA_ARGS__), \
              GPSHM_CHECK(gpushmem_ctx_##AS(ctx, GPSH_LIST ARGUMENTS)))
// The previous value is returned: gpushmem_NAME_status writes it.
#define GPSHM_FETCH(TYPE, NAME, ARGUMENTS, ...) \
    GPSHM_ROW(TYPE, shmem_##NAME, (__VA_ARGS__), { \
        TYPE before = 0; \
        gpushmem_shmem_lost(gpushmem_##NAME##_status(GPSH_LIST ARGUMENTS, &before)); \
        return before; \
    }) \
    GPSHM_ROW(TYPE, shmem_ctx_##NAME, (shmem_ctx_t ctx, __VA_ARGS__), { \
        TYPE before = 0; \
        gpushmem_shmem_lost(gpushmem_ctx_##NAME##_status(ctx, GPSH_LIST ARGUMENTS, &before)); \
        return before; \
    })

// ---- Lifecycle ----

GPSHM_ROW(void, shmem_init, (void), { gpushmem_shmem_init(SHMEM_THREAD_SINGLE, NULL); })
GPSHM_ROW(int, shmem_init_thread, (int requested, int *provided),
          { return gpushmem_shmem_init(requested, provided); })
GPSHM_ROW(void, shmem_query_thread, (int *provided), GPSHM_CHECK(gpushmem_query_thread(provided)))
GPSHM_ROW(void, shmem_finalize, (void), GPSHM_CHECK(gpushmem_finalize()))
GPSHM_ROW(void, shmem_global_exit, (int status), { gpushmem_global_exit(status); })
GPSHM_ROW(int, shmem_my_pe, (void), { return gpushmem_my_pe(); })
GPSHM_ROW(int, shmem_n_pes, (void), { return gpushmem_n_pes(); })
GPSHM_ROW(int, shmem_pe_accessible, (int pe), { return gpushmem_pe_accessible(pe); })
GPSHM_ROW(int, shmem_addr_accessible, (const void *addr, int pe),
          { return gpushmem_addr_accessible(addr, pe); })
GPSHM_ROW(void *, shmem_ptr, (const void *dest, int pe),
          { return gpushmem_shmem_block(gpushmem_ptr(dest, pe)); })
GPSHM_ROW(void, shmem_query_initialized, (int *initialized), {
    if (initialized)
        *initialized = gpushmem_initialized();
})
GPSHM_ROW(void *, shmem_team_ptr, (shmem_team_t team, const void *dest, int pe), {
    if (team == SHMEM_TEAM_INVALID)
        return NULL;
    return gpushmem_shmem_block(gpushmem_team_ptr(GPSHM_TEAM(team), dest, pe));
})
GPSHM_ROW(void, shmem_info_get_version, (int *major, int *minor), {
    if (major)
        *major = SHMEM_MAJOR_VERSION;
    if (minor)
        *minor = SHMEM_MINOR_VERSION;
})
GPSHM_ROW(void, shmem_info_get_name, (char *name), {
    if (name)
        __builtin_memcpy(name, SHMEM_VENDOR_STRING, sizeof SHMEM_VENDOR_STRING);
})

// For tools that look at calls; the library has nothing to control.
GPSHM_ROW(void, shmem_pcontrol, (int level, ...), { (void)level; })

// ---- Memory ----

GPSHM_ROW(void *, shmem_malloc, (size_t size),
          { return gpushmem_shmem_block(gpushmem_malloc(size)); })
GPSHM_ROW(void *, shmem_calloc, (size_t count, size_t size),
          { return gpushmem_shmem_block(gpushmem_calloc(count, size)); })
GPSHM_ROW(void *, shmem_align, (size_t alignment, size_t size),
          { return gpushmem_shmem_block(gpushmem_align(alignment, size)); })
GPSHM_ROW(void *, shmem_realloc, (void *ptr, size_t size),
          { return gpushmem_shmem_block(gpushmem_realloc(ptr, size)); })
GPSHM_ROW(void *, shmem_malloc_with_hints, (size_t size, long hints), {
    // Hints that are not known have no effect.
    const long known = SHMEM_MALLOC_ATOMICS_REMOTE | SHMEM_MALLOC_SIGNAL_REMOTE;
    return gpushmem_shmem_block(gpushmem_malloc_with_hints(size, hints & known));
})
GPSHM_ROW(void, shmem_free, (void *ptr), GPSHM_CHECK(gpushmem_free(ptr)))

// ---- Teams and contexts ----

// What the standard says of SHMEM_TEAM_INVALID is no error to report.
GPSHM_ROW(int, shmem_team_my_pe, (shmem_team_t team),
          GPSHM_STATUS(gpushmem_team_my_pe(GPSHM_TEAM(team))))
GPSHM_ROW(int, shmem_team_n_pes, (shmem_team_t team),
          GPSHM_STATUS(gpushmem_team_n_pes(GPSHM_TEAM(team))))
GPSHM_ROW(int, shmem_team_get_config,
          (shmem_team_t team, long config_mask, shmem_team_config_t *config), {
    struct gpushmem_team_config wide;
    if (team == SHMEM_TEAM_INVALID)
        return -1;
    int status = gpushmem_shmem_check(
        gpushmem_team_get_config(GPSHM_TEAM(team), config_mask, config ? &wide : NULL));
    if (status == 0 && config_mask & SHMEM_TEAM_NUM_CONTEXTS)
        config->num_contexts = wide.num_contexts;
    return status;
})
GPSHM_ROW(int, shmem_team_translate_pe,
          (shmem_team_t src_team, int src_pe, shmem_team_t dest_team), {
    if (src_team == SHMEM_TEAM_INVALID || dest_team == SHMEM_TEAM_INVALID)
        return -1;
    return gpushmem_shmem_check(
        gpushmem_team_translate_pe(GPSHM_TEAM(src_team), src_pe, GPSHM_TEAM(dest_team)));
})
#define GPSHM_CONFIG(WIDE, CONFIG, MASK) \
    struct gpushmem_team_config WIDE; \
    __builtin_memset(&WIDE, 0, sizeof WIDE); \
    if (CONFIG && (MASK) & SHMEM_TEAM_NUM_CONTEXTS) \
        WIDE.num_contexts = (CONFIG)->num_contexts
GPSHM_ROW(int, shmem_team_split_strided,
          (shmem_team_t parent_team, int start, int stride, int size,
           const shmem_team_config_t *config, long config_mask, shmem_team_t *new_team), {
    GPSHM_CONFIG(wide, config, config_mask);
    gpushmem_team_t made = GPUSHMEM_TEAM_INVALID;
    int status = -1;
    if (parent_team != SHMEM_TEAM_INVALID)
        status = gpushmem_shmem_check(gpushmem_team_split_strided(
            GPSHM_TEAM(parent_team), start, stride, size, config ? &wide : NULL, config_mask,
            new_team ? &made : NULL));
    if (new_team)
        *new_team = gpushmem_team_as_shmem(made);
    return status;
})
GPSHM_ROW(int, shmem_team_split_2d,
          (shmem_team_t parent_team, int xrange, const shmem_team_config_t *xaxis_config,
           long xaxis_mask, shmem_team_t *xaxis_team, const shmem_team_config_t *yaxis_config,
           long yaxis_mask, shmem_team_t *yaxis_team), {
    GPSHM_CONFIG(x, xaxis_config, xaxis_mask);
    GPSHM_CONFIG(y, yaxis_config, yaxis_mask);
    gpushmem_team_t row = GPUSHMEM_TEAM_INVALID;
    gpushmem_team_t column = GPUSHMEM_TEAM_INVALID;
    int status = -1;
    if (parent_team != SHMEM_TEAM_INVALID)
        status = gpushmem_shmem_check(gpushmem_team_split_2d(
            GPSHM_TEAM(parent_team), xrange, xaxis_config ? &x : NULL, xaxis_mask,
            xaxis_team ? &row : NULL, yaxis_config ? &y : NULL, yaxis_mask,
            yaxis_team ? &column : NULL));
    if (xaxis_team)
        *xaxis_team = gpushmem_team_as_shmem(row);
    if (yaxis_team)
        *yaxis_team = gpushmem_team_as_shmem(column);
    return status;
})
#undef GPSHM_CONFIG
GPSHM_ROW(void, shmem_team_destroy, (shmem_team_t team), {
    if (team != SHMEM_TEAM_INVALID)
        gpushmem_shmem_lost(gpushmem_team_destroy(GPSHM_TEAM(team)));
})
GPSHM_ROW(int, shmem_team_sync, (shmem_team_t team),
          GPSHM_STATUS(gpushmem_team_sync(GPSHM_TEAM(team))))
GPSHM_ROW(int, shmem_ctx_create, (long options, shmem_ctx_t *ctx), {
    int status = gpushmem_shmem_check(gpushmem_ctx_create(options, ctx));
    if (status && ctx)
        *ctx = SHMEM_CTX_INVALID;
    return status;
})
GPSHM_ROW(int, shmem_team_create_ctx, (shmem_team_t team, long options, shmem_ctx_t *ctx), {
    if (team == SHMEM_TEAM_INVALID)
        return -1;
    int status = gpushmem_shmem_check(gpushmem_team_create_ctx(GPSHM_TEAM(team), options, ctx));
    if (status && ctx)
        *ctx = SHMEM_CTX_INVALID;
    return status;
})
GPSHM_ROW(void, shmem_ctx_destroy, (shmem_ctx_t ctx), GPSHM_CHECK(gpushmem_ctx_destroy(ctx)))
GPSHM_ROW(int, shmem_ctx_get_team, (shmem_ctx_t ctx, shmem_team_t *team), {
    if (ctx == SHMEM_CTX_INVALID && team) {
        *team = SHMEM_TEAM_INVALID;
        return -1;
    }
    gpushmem_team_t of_ctx = GPUSHMEM_TEAM_INVALID;
    int status = gpushmem_shmem_check(gpushmem_ctx_get_team(ctx, team ? &of_ctx : NULL));
    if (team)
        *team = gpushmem_team_as_shmem(of_ctx);
    return status;
})
// Options and mask bits that are not known have no effect, and neither has an invalid context.
GPSHM_ROW(void, shmem_ctx_session_start,
          (shmem_ctx_t ctx, long options, const shmem_ctx_session_config_t *config,
           long config_mask), {
    if (ctx != SHMEM_CTX_INVALID)
        gpushmem_shmem_lost(gpushmem_ctx_session_start(
            ctx, options & SHMEM_CTX_SESSION_BATCH, config,
            config ? config_mask & SHMEM_CTX_SESSION_TOTAL_OPS : 0));
})
GPSHM_ROW(void, shmem_ctx_session_stop, (shmem_ctx_t ctx), {
    if (ctx != SHMEM_CTX_INVALID)
        gpushmem_shmem_lost(gpushmem_ctx_session_stop(ctx));
})

// ---- Remote memory access ----

// Those of gpushmem/impl/signatures.h: gpushmem_AS does what shmem_NAME is to do.
#define GPSHM_MOVE_AS(NAME, AS, FORM, TYPE) \
    GPSHM_VOID_AS(NAME, AS, (GPSH_A_##FORM(dest, source, GPSHM_OP(sig_op))), \
                  GPSH_P_##FORM(TYPE, int))
#define GPSHM_MOVE(VERB, REST, FORM, PREFIX, TYPE) \
    GPSHM_MOVE_AS(PREFIX##_##VERB##REST, PREFIX##_##VERB##REST, FORM, TYPE)
#define GPSHM_ROWS(NAME, TYPE) \
    GPSH_MOVES(GPSHM_MOVE, NAME, TYPE) \
    GPSH_STRIDED_MOVES(GPSHM_MOVE, NAME, TYPE) \
    GPSH_BLOCKED_MOVES(GPSHM_MOVE, NAME, TYPE) \
    GPSHM_MOVE_AS(NAME##_p, NAME##_p, VALUE, TYPE) \
    GPSHM_ROW(TYPE, shmem_##NAME##_g, (const TYPE *source, int pe), \
              { return gpushmem_##NAME##_g(source, pe); }) \
    GPSHM_ROW(TYPE, shmem_ctx_##NAME##_g, (shmem_ctx_t ctx, const TYPE *source, int pe), \
              { return gpushmem_ctx_##NAME##_g(ctx, source, pe); })
GPSHM_RMA_TYPES(GPSHM_ROWS)
#undef GPSHM_ROWS
#undef GPSHM_MOVE

// long double: 128 bits, of which some hold nothing.
#define GPSHM_MOVE(VERB, REST, FORM, UNUSED) \
    GPSHM_MOVE_AS(longdouble_##VERB##REST, VERB##128##REST, FORM, long double)
GPSH_MOVES(GPSHM_MOVE, )
GPSH_STRIDED_MOVES(GPSHM_MOVE, )
GPSH_BLOCKED_MOVES(GPSHM_MOVE, )
#undef GPSHM_MOVE
GPSHM_VOID_AS(longdouble_p, put128, (dest, &value, 1, pe),
              long double *dest, long double value, int pe)
GPSHM_ROW(long double, shmem_longdouble_g, (const long double *source, int pe), {
    long double value = 0;
    gpushmem_shmem_lost(gpushmem_get128(&value, source, 1, pe));
    return value;
})
GPSHM_ROW(long double, shmem_ctx_longdouble_g,
          (shmem_ctx_t ctx, const long double *source, int pe), {
    long double value = 0;
    gpushmem_shmem_lost(gpushmem_ctx_get128(ctx, &value, source, 1, pe));
    return value;
})

// By the bits of an element, and by bytes.
#define GPSHM_MOVE(VERB, REST, FORM, BITS) \
    GPSHM_MOVE_AS(VERB##BITS##REST, VERB##BITS##REST, FORM, void)
#define GPSHM_ROWS(BITS) \
    GPSH_MOVES(GPSHM_MOVE, BITS) \
    GPSH_STRIDED_MOVES(GPSHM_MOVE, BITS) \
    GPSH_BLOCKED_MOVES(GPSHM_MOVE, BITS)
GPUSHMEM_RMA_SIZES(GPSHM_ROWS)
#undef GPSHM_ROWS
GPSH_MOVES(GPSHM_MOVE, mem)
#undef GPSHM_MOVE
#undef GPSHM_MOVE_AS

GPSHM_VOID(signal_set, (sig_addr, signal, pe), uint64_t *sig_addr, uint64_t signal, int pe)
GPSHM_VOID(signal_add, (sig_addr, signal, pe), uint64_t *sig_addr, uint64_t signal, int pe)
GPSHM_ROW(uint64_t, shmem_signal_fetch, (const uint64_t *sig_addr), {
    uint64_t value = 0;
    gpushmem_shmem_lost(gpushmem_signal_fetch_status(sig_addr, &value));
    return value;
})
GPSHM_ROW(uint64_t, shmem_signal_wait_until, (uint64_t *sig_addr, int cmp, uint64_t cmp_value), {
    uint64_t seen = 0;
    gpushmem_shmem_lost(
        gpushmem_signal_wait_until_status(sig_addr, GPSHM_CMP(cmp), cmp_value, &seen));
    return seen;
})

// ---- Atomics ----

#define GPSHM_ATOMIC_FETCH(OP, FORM, NUMBER, NAME, TYPE) \
    GPSHM_FETCH(TYPE, NAME##_atomic_##OP, (GPSH_A_##FORM(dest, source, )), GPSH_P_##FORM(TYPE, )) \
    GPSHM_VOID(NAME##_atomic_##OP##_nbi, (fetch, GPSH_A_##FORM(dest, source, )), \
               TYPE *fetch, GPSH_P_##FORM(TYPE, ))
#define GPSHM_ATOMIC(OP, FORM, NUMBER, NAME, TYPE) \
    GPSHM_VOID(NAME##_atomic_##OP, (GPSH_A_##FORM(dest, source, )), GPSH_P_##FORM(TYPE, ))
#define GPSHM_ROWS(NAME, TYPE) GPSH_EXTENDED_ATOMICS(GPSHM_ATOMIC_FETCH, GPSHM_ATOMIC, NAME, TYPE)
GPUSHMEM_AMO_EXTENDED_TYPES(GPSHM_ROWS)
#undef GPSHM_ROWS
#define GPSHM_ROWS(NAME, TYPE) GPSH_ATOMICS(GPSHM_ATOMIC_FETCH, GPSHM_ATOMIC, NAME, TYPE)
GPUSHMEM_AMO_TYPES(GPSHM_ROWS)
#undef GPSHM_ROWS
#define GPSHM_ROWS(NAME, TYPE) GPSH_BITWISE_ATOMICS(GPSHM_ATOMIC_FETCH, GPSHM_ATOMIC, NAME, TYPE)
GPUSHMEM_AMO_BITWISE_TYPES(GPSHM_ROWS)
#undef GPSHM_ROWS
#undef GPSHM_ATOMIC
#undef GPSHM_ATOMIC_FETCH

// ---- Waiting for words of this PE ----
// OpenSHMEM 1.3 has volatile here, later versions have not: both may be passed.

#define GPSHM_WORDS_OF(FORM, TYPE, VALUE) (GPSH_P_##FORM(volatile TYPE *ivars, int, VALUE))
#define GPSHM_ARGUMENTS(FORM) GPSH_A_##FORM(ivars, GPSHM_CMP(cmp), cmp_value)
// What _any and _some return is written by the form with a status.
#define GPSHM_COUNTED(NAME, FORM, TYPE, VALUE, NONE) \
    GPSHM_ROW(size_t, shmem_##NAME, GPSHM_WORDS_OF(FORM, TYPE, VALUE), { \
        size_t result = NONE; \
        gpushmem_shmem_lost(gpushmem_##NAME##_status(GPSHM_ARGUMENTS(FORM), &result)); \
        return result; \
    })
#define GPSHM_SET_OF(NAME, TYPE, VECTOR, VALUE) \
    GPSHM_ROW(void, shmem_##NAME##_wait_until_all##VECTOR, GPSHM_WORDS_OF(ALL, TYPE, VALUE), \
              GPSHM_CHECK(gpushmem_##NAME##_wait_until_all##VECTOR(GPSHM_ARGUMENTS(ALL)))) \
    GPSHM_COUNTED(NAME##_wait_until_any##VECTOR, ALL, TYPE, VALUE, SIZE_MAX) \
    GPSHM_COUNTED(NAME##_wait_until_some##VECTOR, SOME, TYPE, VALUE, 0) \
    GPSHM_ROW(int, shmem_##NAME##_test_all##VECTOR, GPSHM_WORDS_OF(ALL, TYPE, VALUE), { \
        return gpushmem_shmem_lost(gpushmem_##NAME##_test_all##VECTOR(GPSHM_ARGUMENTS(ALL))) > 0; \
    }) \
    GPSHM_COUNTED(NAME##_test_any##VECTOR, ALL, TYPE, VALUE, SIZE_MAX) \
    GPSHM_COUNTED(NAME##_test_some##VECTOR, SOME, TYPE, VALUE, 0)
#define GPSHM_ROWS(NAME, TYPE) \
    GPSHM_ROW(void, shmem_##NAME##_wait_until, (volatile TYPE *ivar, int cmp, TYPE cmp_value), \
              GPSHM_CHECK(gpushmem_##NAME##_wait_until(ivar, GPSHM_CMP(cmp), cmp_value))) \
    GPSHM_ROW(int, shmem_##NAME##_test, (volatile TYPE *ivar, int cmp, TYPE cmp_value), { \
        return gpushmem_shmem_lost( \
            gpushmem_##NAME##_test(ivar, GPSHM_CMP(cmp), cmp_value)) > 0; \
    }) \
    GPSHM_SET_OF(NAME, TYPE, , TYPE cmp_value) \
    GPSHM_SET_OF(NAME, TYPE, _vector, const TYPE *cmp_value)
GPUSHMEM_SYNC_TYPES(GPSHM_ROWS)
#undef GPSHM_ROWS
#undef GPSHM_SET_OF
#undef GPSHM_COUNTED
#undef GPSHM_ARGUMENTS
#undef GPSHM_WORDS_OF

// ---- Ordering, barriers, locks ----

GPSHM_ROW(void, shmem_fence, (void), GPSHM_CHECK(gpushmem_fence()))
GPSHM_ROW(void, shmem_ctx_fence, (shmem_ctx_t ctx), GPSHM_CHECK(gpushmem_ctx_fence(ctx)))
GPSHM_ROW(void, shmem_quiet, (void), GPSHM_CHECK(gpushmem_quiet()))
GPSHM_ROW(void, shmem_ctx_quiet, (shmem_ctx_t ctx), GPSHM_CHECK(gpushmem_ctx_quiet(ctx)))
GPSHM_ROW(void, shmem_pe_quiet, (const int *target_pes, size_t npes),
          GPSHM_CHECK(gpushmem_pe_quiet(target_pes, npes)))
GPSHM_ROW(void, shmem_ctx_pe_quiet, (shmem_ctx_t ctx, const int *target_pes, size_t npes),
          GPSHM_CHECK(gpushmem_ctx_pe_quiet(ctx, target_pes, npes)))
GPSHM_ROW(void, shmem_barrier_all, (void), GPSHM_CHECK(gpushmem_barrier_all()))
GPSHM_ROW(void, shmem_sync_all, (void), GPSHM_CHECK(gpushmem_sync_all()))
GPSHM_ROW(void, shmem_set_lock, (volatile long *lock), GPSHM_CHECK(gpushmem_set_lock((long *)lock)))
GPSHM_ROW(void, shmem_clear_lock, (volatile long *lock),
          GPSHM_CHECK(gpushmem_clear_lock((long *)lock)))
GPSHM_ROW(int, shmem_test_lock, (volatile long *lock),
          GPSHM_STATUS(gpushmem_test_lock((long *)lock)))

// ---- Collectives of teams ----

#define GPSHM_COLLECTIVE(NAME, AS, FORM, TYPE) \
    GPSHM_ROW(int, shmem_##NAME, (shmem_team_t team, GPSH_P_##FORM(TYPE, )), \
              GPSHM_STATUS(gpushmem_##AS(GPSHM_TEAM(team), GPSH_A_##FORM(dest, source, ))))
#define GPSHM_COLL_MOVE(OP, KIND, FORM, NAME, TYPE) \
    GPSHM_COLLECTIVE(NAME##_##OP, NAME##_##OP, FORM, TYPE)
#define GPSHM_ROWS(NAME, TYPE) GPSH_COLL_MOVES(GPSHM_COLL_MOVE, NAME, TYPE)
GPSHM_RMA_TYPES(GPSHM_ROWS)
#undef GPSHM_ROWS
#undef GPSHM_COLL_MOVE
#define GPSHM_COLL_MEM(OP, KIND, FORM, UNUSED) GPSHM_COLLECTIVE(OP##mem, OP##mem, FORM, void)
GPSH_COLL_MOVES(GPSHM_COLL_MEM, )
#undef GPSHM_COLL_MEM

// long double: as so many bytes.
#define GPSHM_COLL_LONG(OP, ROOT, ...) \
    GPSHM_ROW(int, shmem_longdouble_##OP, \
              (shmem_team_t team, long double *dest, const long double *source, __VA_ARGS__), \
              GPSHM_STATUS(gpushmem_##OP##mem(GPSHM_TEAM(team), dest, source, \
                                              gpushmem_shmem_bytes(nelems, sizeof(long double)) \
                                              GPSH_LIST ROOT)))
GPSHM_COLL_LONG(broadcast, (, root), size_t nelems, int root)
GPSHM_COLL_LONG(collect, (), size_t nelems)
GPSHM_COLL_LONG(fcollect, (), size_t nelems)
GPSHM_COLL_LONG(alltoall, (), size_t nelems)
#undef GPSHM_COLL_LONG
// The first halves of all elements, then the second ones.
GPSHM_ROW(int, shmem_longdouble_alltoalls,
          (shmem_team_t team, long double *dest, const long double *source, ptrdiff_t dst,
           ptrdiff_t sst, size_t nelems), {
    uint64_t *to = (uint64_t *)(void *)dest;
    const uint64_t *from = (const uint64_t *)(const void *)source;
    const gpushmem_team_t number = GPSHM_TEAM(team);
    int status = gpushmem_uint64_alltoalls(number, to, from, 2 * dst, 2 * sst, nelems);
    if (status == 0)
        status = gpushmem_uint64_alltoalls(number, to + 1, from + 1, 2 * dst, 2 * sst, nelems);
    return gpushmem_shmem_check(status);
})

#define GPSHM_REDUCE(FOLD, NUMBER, NAME, TYPE) \
    GPSHM_COLLECTIVE(NAME##_##FOLD##_reduce, NAME##_##FOLD##_reduce, PART, TYPE)
#define GPSHM_ROWS(NAME, TYPE) GPSH_FOLDS_OF_BITS(GPSHM_REDUCE, NAME, TYPE)
GPUSHMEM_INTEGER_TYPES(GPSHM_ROWS)
#undef GPSHM_ROWS
#define GPSHM_ROWS(NAME, TYPE) GPSH_FOLDS_OF_ORDER(GPSHM_REDUCE, NAME, TYPE)
GPSHM_ORDERED_TYPES(GPSHM_ROWS)
#undef GPSHM_ROWS
#define GPSHM_ROWS(NAME, TYPE) \
    GPSH_FOLDS_OF_SUMS(GPSHM_REDUCE, NAME, TYPE) \
    GPSHM_COLLECTIVE(NAME##_sum_inscan, NAME##_sum_inscan, PART, TYPE) \
    GPSHM_COLLECTIVE(NAME##_sum_exscan, NAME##_sum_exscan, PART, TYPE)
GPSHM_ARITHMETIC_TYPES(GPSHM_ROWS)
#undef GPSHM_ROWS
#undef GPSHM_REDUCE
#undef GPSHM_COLLECTIVE

// ---- Deprecated: names of the first versions ----

GPSHM_ROW(void, start_pes, (int npes), {
    (void)npes;
    gpushmem_shmem_start();
})
GPSHM_ROW(int, _my_pe, (void), { return gpushmem_my_pe(); })
GPSHM_ROW(int, _num_pes, (void), { return gpushmem_n_pes(); })
GPSHM_ROW(void *, shmalloc, (size_t size), { return gpushmem_shmem_block(gpushmem_malloc(size)); })
GPSHM_ROW(void *, shrealloc, (void *ptr, size_t size),
          { return gpushmem_shmem_block(gpushmem_realloc(ptr, size)); })
GPSHM_ROW(void *, shmemalign, (size_t alignment, size_t size),
          { return gpushmem_shmem_block(gpushmem_align(alignment, size)); })
GPSHM_ROW(void, shfree, (void *ptr), GPSHM_CHECK(gpushmem_free(ptr)))

// Caches are coherent.
GPSHM_ROW(void, shmem_clear_cache_inv, (void), {})
GPSHM_ROW(void, shmem_set_cache_inv, (void), {})
GPSHM_ROW(void, shmem_clear_cache_line_inv, (void *dest), { (void)dest; })
GPSHM_ROW(void, shmem_set_cache_line_inv, (void *dest), { (void)dest; })
GPSHM_ROW(void, shmem_udcflush, (void), {})
GPSHM_ROW(void, shmem_udcflush_line, (void *dest), { (void)dest; })

#define GPSHM_OLD(TYPE, NAME, AS, ARGUMENTS, ...) \
    GPSHM_ROW(TYPE, shmem_##NAME, (__VA_ARGS__), { \
        TYPE before = 0; \
        gpushmem_shmem_lost(gpushmem_##AS##_status(GPSH_LIST ARGUMENTS, &before)); \
        return before; \
    })
#define GPSHM_ROWS(NAME, TYPE) \
    GPSHM_OLD(TYPE, NAME##_fetch, NAME##_atomic_fetch, (source, pe), const TYPE *source, int pe) \
    GPSHM_OLD(TYPE, NAME##_swap, NAME##_atomic_swap, (dest, value, pe), \
              TYPE *dest, TYPE value, int pe) \
    GPSHM_ROW(void, shmem_##NAME##_set, (TYPE *dest, TYPE value, int pe), \
              GPSHM_CHECK(gpushmem_##NAME##_atomic_set(dest, value, pe)))
GPUSHMEM_AMO_EXTENDED_TYPES(GPSHM_ROWS)
#undef GPSHM_ROWS
#define GPSHM_ROWS(NAME, TYPE) \
    GPSHM_OLD(TYPE, NAME##_cswap, NAME##_atomic_compare_swap, (dest, cond, value, pe), \
              TYPE *dest, TYPE cond, TYPE value, int pe) \
    GPSHM_OLD(TYPE, NAME##_finc, NAME##_atomic_fetch_inc, (dest, pe), TYPE *dest, int pe) \
    GPSHM_OLD(TYPE, NAME##_fadd, NAME##_atomic_fetch_add, (dest, value, pe), \
              TYPE *dest, TYPE value, int pe) \
    GPSHM_ROW(void, shmem_##NAME##_inc, (TYPE *dest, int pe), \
              GPSHM_CHECK(gpushmem_##NAME##_atomic_inc(dest, pe))) \
    GPSHM_ROW(void, shmem_##NAME##_add, (TYPE *dest, TYPE value, int pe), \
              GPSHM_CHECK(gpushmem_##NAME##_atomic_add(dest, value, pe)))
GPUSHMEM_AMO_TYPES(GPSHM_ROWS)
#undef GPSHM_ROWS
#undef GPSHM_OLD

#define GPSHM_ROWS(NAME, TYPE) \
    GPSHM_ROW(void, shmem_##NAME##_wait, (volatile TYPE *ivar, TYPE cmp_value), \
              GPSHM_CHECK(gpushmem_##NAME##_wait_until(ivar, GPUSHMEM_CMP_NE, cmp_value)))
GPSHM_OLD_BITWISE_TYPES(GPSHM_ROWS)
#undef GPSHM_ROWS
GPSHM_ROW(void, shmem_wait, (volatile long *ivar, long cmp_value),
          GPSHM_CHECK(gpushmem_long_wait_until(ivar, GPUSHMEM_CMP_NE, cmp_value)))
GPSHM_ROW(void, shmem_wait_until, (volatile long *ivar, int cmp, long cmp_value),
          GPSHM_CHECK(gpushmem_long_wait_until(ivar, GPSHM_CMP(cmp), cmp_value)))

// ---- Deprecated: collectives of active sets ----

#define GPSHM_SET int PE_start, int logPE_stride, int PE_size
#define GPSHM_ON_SET(CALL) { \
        const gpushmem_team_t team = \
            gpushmem_shmem_active_set(PE_start, logPE_stride, PE_size, pSync); \
        if (team != GPUSHMEM_TEAM_INVALID) \
            gpushmem_shmem_lost(CALL); \
    }
GPSHM_ROW(void, shmem_barrier, (GPSHM_SET, long *pSync), GPSHM_ON_SET(gpushmem_barrier(team)))
GPSHM_ROW(void, shmem_sync, (GPSHM_SET, long *pSync), GPSHM_ON_SET(gpushmem_team_sync(team)))

#define GPSHM_BYTES(BITS) gpushmem_shmem_bytes(nelems, BITS / 8)
#define GPSHM_ROWS(BITS) \
    GPSHM_ROW(void, shmem_broadcast##BITS, \
              (void *dest, const void *source, size_t nelems, int PE_root, GPSHM_SET, \
               long *pSync), \
              GPSHM_ON_SET(gpushmem_shmem_broadcast(team, dest, source, GPSHM_BYTES(BITS), \
                                                    PE_root))) \
    GPSHM_ROW(void, shmem_collect##BITS, \
              (void *dest, const void *source, size_t nelems, GPSHM_SET, long *pSync), \
              GPSHM_ON_SET(gpushmem_collectmem(team, dest, source, GPSHM_BYTES(BITS)))) \
    GPSHM_ROW(void, shmem_fcollect##BITS, \
              (void *dest, const void *source, size_t nelems, GPSHM_SET, long *pSync), \
              GPSHM_ON_SET(gpushmem_fcollectmem(team, dest, source, GPSHM_BYTES(BITS)))) \
    GPSHM_ROW(void, shmem_alltoall##BITS, \
              (void *dest, const void *source, size_t nelems, GPSHM_SET, long *pSync), \
              GPSHM_ON_SET(gpushmem_alltoallmem(team, dest, source, GPSHM_BYTES(BITS)))) \
    GPSHM_ROW(void, shmem_alltoalls##BITS, \
              (void *dest, const void *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, \
               GPSHM_SET, long *pSync), \
              GPSHM_ON_SET(gpushmem_uint##BITS##_alltoalls(team, (uint##BITS##_t *)dest, \
                                                           (const uint##BITS##_t *)source, dst, \
                                                           sst, nelems)))
GPSHM_ROWS(32)
GPSHM_ROWS(64)
#undef GPSHM_ROWS
#undef GPSHM_BYTES

#define GPSHM_TO_ALL(OP, NUMBER, NAME, TYPE) \
    GPSHM_ROW(void, shmem_##NAME##_##OP##_to_all, \
              (TYPE *dest, const TYPE *source, int nreduce, GPSHM_SET, TYPE *pWrk, long *pSync), { \
        (void)pWrk; \
        GPSHM_ON_SET(gpushmem_##NAME##_##OP##_reduce(team, dest, source, (size_t)nreduce)) \
    })
#define GPSHM_ROWS(NAME, TYPE) GPSH_FOLDS_OF_BITS(GPSHM_TO_ALL, NAME, TYPE)
GPSHM_OLD_BITWISE_TYPES(GPSHM_ROWS)
#undef GPSHM_ROWS
#define GPSHM_ROWS(NAME, TYPE) GPSH_FOLDS_OF_ORDER(GPSHM_TO_ALL, NAME, TYPE)
GPSHM_OLD_ORDERED_TYPES(GPSHM_ROWS)
#undef GPSHM_ROWS
#define GPSHM_ROWS(NAME, TYPE) GPSH_FOLDS_OF_SUMS(GPSHM_TO_ALL, NAME, TYPE)
GPSHM_OLD_ARITHMETIC_TYPES(GPSHM_ROWS)
#undef GPSHM_ROWS
#undef GPSHM_TO_ALL
#undef GPSHM_ON_SET
#undef GPSHM_SET

#undef GPSHM_FETCH
#undef GPSHM_VOID_AS
#undef GPSHM_VOID
#undef GPSHM_OP
#undef GPSHM_CMP
#undef GPSHM_TEAM
#undef GPSHM_STATUS
#undef GPSHM_CHECK
