// SPDX-License-Identifier: BSD-3-Clause
// NVSHMEM's atomics, signals, waits and tests in kernels, each function of each type: a PE changes
// words of its right neighbour's, where nobody else does, and compares what it gets.
#include "../log_lines.h"
#include "nvshmem_check.cuh"

enum { WORDS = 4 };

// ---- Atomics ----

#define SAME(what, value) EXPECT(errors, (what) == (decltype(what))(value))

#define EXTENDED(NAME, TYPE, AS, CTYPE)                                                            \
    static __device__ void extended_##NAME(TYPE *word, int pe, int *errors)                        \
    {                                                                                              \
        nvshmem_##NAME##_atomic_set(word, (TYPE)5, pe);                                            \
        nvshmem_quiet();                                                                           \
        SAME(nvshmem_##NAME##_atomic_fetch(word, pe), 5);                                          \
        SAME(nvshmem_##NAME##_atomic_swap(word, (TYPE)7, pe), 5);                                  \
        SAME(nvshmem_##NAME##_atomic_compare_swap(word, (TYPE)7, (TYPE)9, pe), 7);                 \
        SAME(nvshmem_##NAME##_atomic_compare_swap(word, (TYPE)7, (TYPE)1, pe), 9);                 \
        nvshmem_##NAME##_atomic_add(word, (TYPE)3, pe);                                            \
        nvshmem_quiet();                                                                           \
        SAME(nvshmem_##NAME##_atomic_fetch_add(word, (TYPE)1, pe), 12);                            \
        SAME(nvshmem_##NAME##_g(word, pe), 13);                                                    \
        nvshmemx_##NAME##_signal(word, (TYPE)13, pe);                                              \
        nvshmem_quiet();                                                                           \
        SAME(nvshmem_##NAME##_atomic_fetch(word, pe), 13);                                         \
    }
GPSH_NVS_AMO_EXTENDED_TYPES(EXTENDED)
#define INTEGER(NAME, TYPE, AS, CTYPE)                                                             \
    static __device__ void integer_##NAME(TYPE *word, int pe, int *errors)                         \
    {                                                                                              \
        nvshmem_##NAME##_atomic_inc(word, pe);                                                     \
        nvshmem_quiet();                                                                           \
        SAME(nvshmem_##NAME##_atomic_fetch_inc(word, pe), 14);                                     \
        SAME(nvshmem_##NAME##_atomic_fetch(word, pe), 15);                                         \
    }
GPSH_NVS_AMO_TYPES(INTEGER)
#define BITS(NAME, TYPE, AS, CTYPE)                                                                \
    static __device__ void bits_##NAME(TYPE *word, int pe, int *errors)                            \
    {                                                                                              \
        SAME(nvshmem_##NAME##_atomic_fetch_and(word, (TYPE)14, pe), 15);                           \
        nvshmem_##NAME##_atomic_and(word, (TYPE)12, pe);                                           \
        nvshmem_quiet();                                                                           \
        SAME(nvshmem_##NAME##_atomic_fetch_or(word, (TYPE)3, pe), 12);                             \
        nvshmem_##NAME##_atomic_or(word, (TYPE)16, pe);                                            \
        nvshmem_quiet();                                                                           \
        SAME(nvshmem_##NAME##_atomic_fetch_xor(word, (TYPE)1, pe), 31);                            \
        nvshmem_##NAME##_atomic_xor(word, (TYPE)2, pe);                                            \
        nvshmem_quiet();                                                                           \
        SAME(nvshmem_##NAME##_atomic_fetch(word, pe), 28);                                         \
    }
GPSH_NVS_AMO_BITWISE_TYPES(BITS)

__global__ void atomics(uint64_t *words, int pe, int *errors)
{
    uint64_t *at = words;
#define CALL_EXTENDED(NAME, TYPE, AS, CTYPE) extended_##NAME((TYPE *)at++, pe, errors);
    GPSH_NVS_AMO_EXTENDED_TYPES(CALL_EXTENDED)
    at = words + 2; // behind float and double
#define CALL_INTEGER(NAME, TYPE, AS, CTYPE) integer_##NAME((TYPE *)at++, pe, errors);
    GPSH_NVS_AMO_TYPES(CALL_INTEGER)
    at = words + 2 + 3;
    // the bitwise types in the order of AMO_TYPES, where int, long and longlong are left out
    bits_uint((unsigned *)at++, pe, errors);
    bits_ulong((unsigned long *)at++, pe, errors);
    bits_ulonglong((unsigned long long *)at++, pe, errors);
    bits_int32((int32_t *)at++, pe, errors);
    bits_int64((int64_t *)at++, pe, errors);
    bits_uint32((uint32_t *)at++, pe, errors);
    bits_uint64((uint64_t *)at++, pe, errors);
}

// All PEs add to one word: none is lost.
__global__ void crowd(float *sum, double *other, int rounds)
{
    for (int i = 0; i < rounds; i++) {
        nvshmem_float_atomic_add(sum, 1, 0);
        nvshmem_double_atomic_fetch_add(other, 0.5, 0);
    }
}

// What came with 3.7 and 3.8: sums of floating point values, regions, shared memory that is given.
__global__ void recent(double *sum, int pe, int *errors)
{
    GPUSHMEM_SHARED(char, room, 128);
    float *single = (float *)(sum + 1);
    gpsh_nvshmem_half *upper = (gpsh_nvshmem_half *)(sum + 2) + 1;
    nvshmemx_double_atomic_add(sum, 0.25, pe);
    EXPECT(errors, nvshmemx_float_atomic_fetch_add(single, 2, pe) >= 0);
    gpsh_nvshmem_half one = gpsh_dev_from_bits<gpsh_nvshmem_half>((uint16_t)0x3c00);
    nvshmemx_half_atomic_fetch_add(upper, one, pe);
    nvshmemx_half_atomic_add(upper, one, pe);
    nvshmemx_region_start_block(0);
    EXPECT(errors, nvshmemx_region_is_active());
    nvshmemx_region_stop_block();
    EXPECT(errors, !nvshmemx_region_is_active());
    EXPECT(errors, nvshmemx_ask_smem(NVSHMEMX_SMEM_MINIMUM) == 0);
    nvshmemx_give_smem(room, 128);
    nvshmemx_release_smem();
    char name[NVSHMEM_MAX_NAME_LEN];
    int major = 0, minor = 0;
    nvshmem_info_get_name(name);
    nvshmem_info_get_version(&major, &minor);
    EXPECT(errors, name[0] == 'g' && name[1] == 'p' && major == 1 && minor == 3);
}

// ---- Waits and tests ----

// The left neighbour puts 10, 11, 12 and 13 into vars. A wait sees what is there already, or what
// comes; a test comes after.
#define WAITS(NAME, TYPE, AS, CTYPE)                                                               \
    static __device__ void waits_##NAME(TYPE *vars, int pe, int *errors)                           \
    {                                                                                              \
        TYPE each[WORDS] = {10, 11, 12, 13}, none[WORDS] = {1, 1, 1, 1};                           \
        const int left_out[WORDS] = {0, 1, 0, 0};                                                  \
        size_t found[WORDS];                                                                       \
        for (int i = 0; i < WORDS; i++)                                                            \
            nvshmem_##NAME##_p(vars + i, each[i], pe);                                             \
        nvshmem_##NAME##_wait_until(vars, NVSHMEM_CMP_EQ, 10);                                     \
        nvshmem_##NAME##_wait_until_all(vars, WORDS, NULL, NVSHMEM_CMP_GE, 10);                    \
        nvshmem_##NAME##_wait_until_all_vector(vars, WORDS, left_out, NVSHMEM_CMP_EQ, each);       \
        SAME(nvshmem_##NAME##_wait_until_any(vars, WORDS, NULL, NVSHMEM_CMP_GT, 12), 3);           \
        SAME(nvshmem_##NAME##_wait_until_some(vars, WORDS, found, left_out, NVSHMEM_CMP_LE, 12),   \
             2);                                                                                   \
        EXPECT(errors, found[0] == 0 && found[1] == 2);                                            \
        SAME(nvshmem_##NAME##_wait_until_some_vector(vars, WORDS, found, NULL, NVSHMEM_CMP_EQ,     \
                                                     each),                                        \
             4);                                                                                   \
        EXPECT(errors, nvshmem_##NAME##_wait_until_any_vector(vars, WORDS, NULL, NVSHMEM_CMP_EQ,   \
                                                              each) < WORDS);                      \
        SAME(nvshmem_##NAME##_test(vars, NVSHMEM_CMP_NE, 10), 0);                                  \
        SAME(nvshmem_##NAME##_test(vars, NVSHMEM_CMP_LT, 11), 1);                                  \
        SAME(nvshmem_##NAME##_test_all(vars, WORDS, NULL, NVSHMEM_CMP_GE, 11), 0);                 \
        SAME(nvshmem_##NAME##_test_all(vars, WORDS, NULL, NVSHMEM_CMP_GE, 10), 1);                 \
        SAME(nvshmem_##NAME##_test_any(vars, WORDS, NULL, NVSHMEM_CMP_EQ, 12), 2);                 \
        EXPECT(errors,                                                                             \
               nvshmem_##NAME##_test_any(vars, WORDS, NULL, NVSHMEM_CMP_EQ, 9) == (size_t)-1);     \
        SAME(nvshmem_##NAME##_test_some(vars, WORDS, found, left_out, NVSHMEM_CMP_GT, 10), 2);     \
        EXPECT(errors, found[0] == 2 && found[1] == 3);                                            \
        SAME(nvshmem_##NAME##_test_all_vector(vars, WORDS, NULL, NVSHMEM_CMP_EQ, each), 1);        \
        SAME(nvshmem_##NAME##_test_all_vector(vars, WORDS, NULL, NVSHMEM_CMP_EQ, none), 0);        \
        EXPECT(errors, nvshmem_##NAME##_test_any_vector(vars, WORDS, NULL, NVSHMEM_CMP_LT,         \
                                                        none) == (size_t)-1);                      \
        SAME(                                                                                      \
            nvshmem_##NAME##_test_some_vector(vars, WORDS, found, left_out, NVSHMEM_CMP_EQ, each), \
            3);                                                                                    \
    }
GPSH_NVS_SYNC_TYPES(WAITS)

__global__ void waits(uint64_t *words, int pe, int *errors)
{
    uint64_t *at = words;
#define CALL_WAITS(NAME, TYPE, AS, CTYPE)                                                          \
    waits_##NAME((TYPE *)at, pe, errors);                                                          \
    at += WORDS;
    GPSH_NVS_SYNC_TYPES(CALL_WAITS)
}

// ---- Signals, this PE, addresses ----

__global__ void signals(uint64_t *word, int pe, int *errors)
{
    nvshmemx_signal_op(word, 4, NVSHMEM_SIGNAL_SET, pe);
    nvshmem_fence();
    nvshmemx_signal_op(word, 3, NVSHMEM_SIGNAL_ADD, pe);
    nvshmemx_qp_signal_op(word, 2, NVSHMEM_SIGNAL_ADD, pe, NVSHMEMX_QP_DEFAULT);
    SAME(nvshmem_signal_wait_until(word, NVSHMEM_CMP_EQ, 9), 9);
    SAME(nvshmem_signal_fetch(word), 9);
}

// What host and kernels have under one name can be called from what is both.
static __host__ __device__ int right(void)
{
    return (nvshmem_my_pe() + 1) % nvshmem_n_pes();
}

__global__ void places(int *word, int pe, int *errors)
{
    EXPECT(errors, right() == pe);
    EXPECT(errors, nvshmem_ptr(word, nvshmem_my_pe()) == word);
    EXPECT(errors, nvshmem_ptr(word, nvshmem_n_pes()) == NULL);
    EXPECT(errors, nvshmemx_mc_ptr(NVSHMEM_TEAM_WORLD, word) == NULL);
    EXPECT(errors, nvshmem_team_my_pe(NVSHMEM_TEAM_WORLD) == nvshmem_my_pe());
    EXPECT(errors, nvshmem_team_n_pes(NVSHMEMX_TEAM_NODE) == nvshmem_n_pes());
    EXPECT(errors, nvshmem_team_my_pe(NVSHMEM_TEAM_INVALID) == -1);
    EXPECT(errors, nvshmem_team_n_pes(1000) == -1);
    EXPECT(errors, nvshmem_team_translate_pe(NVSHMEM_TEAM_WORLD, pe, NVSHMEMX_TEAM_NODE) == pe);
    EXPECT(errors,
           nvshmem_team_translate_pe(NVSHMEM_TEAM_WORLD, pe, NVSHMEMX_TEAM_SAME_MYPE_NODE) ==
               (pe == nvshmem_my_pe() ? 0 : -1));
    EXPECT(errors, nvshmem_team_translate_pe(NVSHMEM_TEAM_WORLD, -1, NVSHMEM_TEAM_WORLD) == -1);
}

__global__ void put_nowhere(int *done, int nowhere)
{
    nvshmem_int_p(done, 2, nowhere);
    nvshmem_int_atomic_set(done, 1, nvshmem_my_pe());
}

// What a kernel cannot tell, quiet, which returns nothing, tells once.
static void fail_in_kernel(int *done, int nowhere)
{
    char text[16];
    snprintf(text, sizeof text, "PE %d", nowhere);
#if defined(__CUDACC__)
    put_nowhere<<<1, 1>>>(done, nowhere);
    CHECK(cudaDeviceSynchronize() == cudaSuccess);
#else
    CHECK_OK(GPUSHMEM_LAUNCH(put_nowhere, 1, 1, NULL, done, nowhere));
#endif
    nvshmem_int_wait_until(done, NVSHMEM_CMP_EQ, 1);
    for (int i = 0; i < 3; i++)
        nvshmem_quiet();
    CHECK(lines_with(text) == 1);
#if !defined(__CUDACC__)
    CHECK_OK(gpushmem_launch_wait(NULL));
#endif
}

int main(void)
{
    log_begin();
    nv_begin();
    int me = nvshmem_my_pe(), n = nvshmem_n_pes(), pe = right();
    int *errors = check_errors_begin();
    uint64_t *words = (uint64_t *)nvshmem_calloc(128, sizeof *words);
    nvshmem_barrier_all();
    NV_RUN(atomics, 1, 1, words, pe, errors);
    NV_RUN(waits, 1, 1, words + 32, pe, errors);
    NV_RUN(signals, 1, 1, words + 100, pe, errors);
    NV_RUN(places, 1, 1, (int *)words, pe, errors);
    const int rounds = 20;
    NV_RUN(crowd, 1, 2, (float *)(words + 104), (double *)(words + 106), rounds);
    nvshmem_barrier_all();
    if (me == 0) {
        CHECK(check_read((float *)(words + 104)) == (float)(2 * rounds * n));
        CHECK(check_read((double *)(words + 106)) == rounds * n);
    }
    NV_RUN(recent, 1, 32, (double *)(words + 108), pe, errors);
    nvshmem_barrier_all();
    CHECK(check_read((double *)(words + 108)) == 32 * 0.25);
    CHECK(check_read((float *)(words + 109)) == 64);
    CHECK(check_read((uint16_t *)(words + 110) + 1) == 0x5400); // 64
    CHECK(check_read((uint16_t *)(words + 110)) == 0);
    nvshmem_barrier_all();
    fail_in_kernel((int *)(words + 120), n + 50);
    check_errors_end(__FILE__, errors);
    return nv_end("nvshmem_words");
}
