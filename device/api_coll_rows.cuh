// SPDX-License-Identifier: BSD-3-Clause
// The collectives of kernels as rows, for the scopes that GPSH_SCOPES has: included once for each
// set of them, so there is no guard.

#define GPSH_API_MEET(SUFFIX, SCOPE, UNUSED)                                                       \
    GPSH_API(int, gpushmem_dev_team_sync##SUFFIX, (gpushmem_team_t team), (team),                  \
             return gpsh_dev_team_meet<SCOPE>(dev, team, false))                                   \
    GPSH_API(int, gpushmem_dev_barrier##SUFFIX, (gpushmem_team_t team), (team),                    \
             return gpsh_dev_team_meet<SCOPE>(dev, team, true))
GPSH_SCOPES(GPSH_API_MEET, )
#undef GPSH_API_MEET

#define GPSH_API_COPY(SUFFIX, SCOPE, NAME, KIND, FORM, TYPE, WIDTH)                                \
    GPSH_API(int, gpushmem_dev_##NAME##SUFFIX, (gpushmem_team_t team, GPSH_P_##FORM(TYPE, )),      \
             (team, GPSH_A_##FORM(dest, source, )),                                                \
             return GPSH_DO_##FORM(SCOPE, dev, KIND, WIDTH))
#define GPSH_API_COPY_MEM(NAME, KIND, FORM, UNUSED)                                                \
    GPSH_SCOPES(GPSH_API_COPY, NAME##mem, KIND, FORM, void, 1)
#define GPSH_API_COPY_OF(NAME, KIND, FORM, PREFIX, TYPE)                                           \
    GPSH_SCOPES(GPSH_API_COPY, PREFIX##_##NAME, KIND, FORM, TYPE, sizeof(TYPE))
#define GPSH_API_TYPE(NAME, TYPE) GPSH_COLL_MOVES(GPSH_API_COPY_OF, NAME, TYPE)
GPSH_COLL_MOVES(GPSH_API_COPY_MEM, )
GPUSHMEM_RMA_TYPES(GPSH_API_TYPE)
#undef GPSH_API_TYPE
#undef GPSH_API_COPY_OF
#undef GPSH_API_COPY_MEM
#undef GPSH_API_COPY

#define GPSH_API_FOLD(SUFFIX, SCOPE, NAME, KIND, TYPE, NUMBER, FOLD)                               \
    GPSH_API(int, gpushmem_dev_##NAME##SUFFIX, (gpushmem_team_t team, GPSH_P_PART(TYPE, )),        \
             (team, GPSH_A_PART(dest, source, )),                                                  \
             return GPSH_DO_FOLD(SCOPE, dev, KIND, gpsh_dev_size<TYPE>, NUMBER, FOLD))
#define GPSH_API_FOLD_OF(OP, KIND, FOLD, NAME, TYPE, NUMBER)                                       \
    GPSH_SCOPES(GPSH_API_FOLD, NAME##_##OP, KIND, TYPE, NUMBER, FOLD)
#define GPSH_API_SUMS(NAME, TYPE, NUMBER) GPSH_COLLS_OF_SUMS(GPSH_API_FOLD_OF, NAME, TYPE, NUMBER)
#define GPSH_API_NUMBERS(NAME, TYPE, NUMBER)                                                       \
    GPSH_COLLS_OF_ORDER(GPSH_API_FOLD_OF, NAME, TYPE, NUMBER)                                      \
    GPSH_API_SUMS(NAME, TYPE, NUMBER)
#define GPSH_API_BITS(NAME, TYPE, NUMBER) GPSH_COLLS_OF_BITS(GPSH_API_FOLD_OF, NAME, TYPE, NUMBER)
GPUSHMEM_COLL_NUMBERS(GPSH_API_NUMBERS)
GPUSHMEM_COLL_COMPLEX(GPSH_API_SUMS)
GPUSHMEM_COLL_INTEGERS(GPSH_API_BITS)
#undef GPSH_API_BITS
#undef GPSH_API_NUMBERS
#undef GPSH_API_SUMS
#undef GPSH_API_FOLD_OF
GPSH_SCOPES(GPSH_API_FOLD, double2_maxloc_reduce, REDUCE, gpushmem_double2, GPUSHMEM_COLL_COMPLEXD,
            MAX)
#undef GPSH_API_FOLD
