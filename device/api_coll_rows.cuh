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

// Names with `mem` and those of a type differ where the type is: PREFIX and SUFFIX around the
// operation's name.
#define GPSH_API_COPIES(SUFFIX, SCOPE, PREFIX, MEM, TYPE, WIDTH)                                   \
    GPSH_API(int, PREFIX##broadcast##MEM##SUFFIX,                                                  \
             (gpushmem_team_t team, TYPE * dest, const TYPE *source, size_t nelems, int root),     \
             (team, dest, source, nelems, root),                                                   \
             return gpsh_dev_collective<SCOPE>(dev, GPUSHMEM_COLL_BROADCAST, team, dest, source,   \
                                               nelems, WIDTH, root))                               \
    GPSH_API(int, PREFIX##collect##MEM##SUFFIX,                                                    \
             (gpushmem_team_t team, TYPE * dest, const TYPE *source, size_t nelems),               \
             (team, dest, source, nelems),                                                         \
             return gpsh_dev_collective<SCOPE>(dev, GPUSHMEM_COLL_COLLECT, team, dest, source,     \
                                               nelems, WIDTH))                                     \
    GPSH_API(int, PREFIX##fcollect##MEM##SUFFIX,                                                   \
             (gpushmem_team_t team, TYPE * dest, const TYPE *source, size_t nelems),               \
             (team, dest, source, nelems),                                                         \
             return gpsh_dev_collective<SCOPE>(dev, GPUSHMEM_COLL_FCOLLECT, team, dest, source,    \
                                               nelems, WIDTH))                                     \
    GPSH_API(int, PREFIX##alltoall##MEM##SUFFIX,                                                   \
             (gpushmem_team_t team, TYPE * dest, const TYPE *source, size_t nelems),               \
             (team, dest, source, nelems),                                                         \
             return gpsh_dev_collective<SCOPE>(dev, GPUSHMEM_COLL_ALLTOALL, team, dest, source,    \
                                               nelems, WIDTH))                                     \
    GPSH_API(int, PREFIX##alltoalls##MEM##SUFFIX,                                                  \
             (gpushmem_team_t team, TYPE * dest, const TYPE *source, ptrdiff_t dst, ptrdiff_t sst, \
              size_t nelems),                                                                      \
             (team, dest, source, dst, sst, nelems),                                               \
             return gpsh_dev_collective_strided<SCOPE>(dev, team, dest, source, dst, sst, nelems,  \
                                                       WIDTH))

GPSH_SCOPES(GPSH_API_COPIES, gpushmem_dev_, mem, void, 1)
#define GPSH_API_TYPE(NAME, TYPE)                                                                  \
    GPSH_SCOPES(GPSH_API_COPIES, gpushmem_dev_##NAME##_, , TYPE, sizeof(TYPE))
GPUSHMEM_RMA_TYPES(GPSH_API_TYPE)
#undef GPSH_API_TYPE
#undef GPSH_API_COPIES

#define GPSH_API_FOLD(SUFFIX, SCOPE, NAME, KIND, TYPE, NUMBER, FOLD)                               \
    GPSH_API(int, NAME##SUFFIX,                                                                    \
             (gpushmem_team_t team, TYPE * dest, const TYPE *source, size_t nelems),               \
             (team, dest, source, nelems),                                                         \
             return gpsh_dev_collective_fold<SCOPE>(dev, KIND, team, dest, source, nelems,         \
                                                    sizeof(TYPE), NUMBER, FOLD))
#define GPSH_API_REDUCE(NAME, TYPE, NUMBER, WORD, FOLD, UNUSED)                                    \
    GPSH_SCOPES(GPSH_API_FOLD, gpushmem_dev_##NAME##_##WORD##_reduce, GPUSHMEM_COLL_REDUCE, TYPE,  \
                NUMBER, FOLD)                                                                      \
    GPSH_SCOPES(GPSH_API_FOLD, gpushmem_dev_##NAME##_##WORD##_reducescatter,                       \
                GPUSHMEM_COLL_REDUCESCATTER, TYPE, NUMBER, FOLD)
#define GPSH_API_SCANS(NAME, TYPE, NUMBER)                                                         \
    GPSH_SCOPES(GPSH_API_FOLD, gpushmem_dev_##NAME##_sum_inscan, GPUSHMEM_COLL_INSCAN, TYPE,       \
                NUMBER, GPUSHMEM_COLL_SUM)                                                         \
    GPSH_SCOPES(GPSH_API_FOLD, gpushmem_dev_##NAME##_sum_exscan, GPUSHMEM_COLL_EXSCAN, TYPE,       \
                NUMBER, GPUSHMEM_COLL_SUM)
#define GPSH_API_ALL(NAME, TYPE, NUMBER)                                                           \
    GPSH_COLL_FOLDS_OF_ALL(GPSH_API_REDUCE, NAME, TYPE, NUMBER, )                                  \
    GPSH_API_SCANS(NAME, TYPE, NUMBER)
#define GPSH_API_COMPLEX(NAME, TYPE, NUMBER)                                                       \
    GPSH_COLL_FOLDS_OF_SUMS(GPSH_API_REDUCE, NAME, TYPE, NUMBER, )                                 \
    GPSH_API_SCANS(NAME, TYPE, NUMBER)
#define GPSH_API_BITS(NAME, TYPE, NUMBER)                                                          \
    GPSH_COLL_FOLDS_OF_BITS(GPSH_API_REDUCE, NAME, TYPE, NUMBER, )
GPUSHMEM_COLL_NUMBERS(GPSH_API_ALL)
GPUSHMEM_COLL_COMPLEX(GPSH_API_COMPLEX)
GPUSHMEM_COLL_INTEGERS(GPSH_API_BITS)
#undef GPSH_API_ALL
#undef GPSH_API_COMPLEX
#undef GPSH_API_SCANS
#undef GPSH_API_BITS
#undef GPSH_API_REDUCE
#undef GPSH_API_FOLD
