// SPDX-License-Identifier: BSD-3-Clause
// Atomics in kernels: each operation and type by value, and exact sums with all threads of all PEs
// on one word.
#include "kernel_check.cuh"

// A word of this type on the right neighbour, which only this PE works on; nothing beside it
// changes.
#define DEFINE_EXTENDED(NAME, TYPE)                                                                \
    __global__ void extended_##NAME(char *memory, int *errors)                                     \
    {                                                                                              \
        int right = (gpushmem_dev_my_pe() + 1) % gpushmem_dev_n_pes();                             \
        TYPE *word = (TYPE *)memory + 1;                                                           \
        for (int i = 0; i < 3; i++)                                                                \
            gpushmem_dev_##NAME##_p((TYPE *)memory + i, (TYPE)(70 + i), right);                    \
        gpushmem_dev_quiet();                                                                      \
        EXPECT(errors, gpushmem_dev_##NAME##_atomic_fetch(word, right) == (TYPE)71);               \
        gpushmem_dev_##NAME##_atomic_set(word, (TYPE)-5, right);                                   \
        gpushmem_dev_quiet();                                                                      \
        EXPECT(errors, gpushmem_dev_##NAME##_atomic_swap(word, (TYPE)9, right) == (TYPE)-5);       \
        EXPECT(errors, gpushmem_dev_##NAME##_g(word, right) == (TYPE)9);                           \
        EXPECT(errors, gpushmem_dev_##NAME##_g(word - 1, right) == (TYPE)70);                      \
        EXPECT(errors, gpushmem_dev_##NAME##_g(word + 1, right) == (TYPE)72);                      \
    }
GPUSHMEM_AMO_EXTENDED_TYPES(DEFINE_EXTENDED)

#define DEFINE_ARITHMETIC(NAME, TYPE)                                                              \
    __global__ void arithmetic_##NAME(char *memory, int *errors)                                   \
    {                                                                                              \
        int right = (gpushmem_dev_my_pe() + 1) % gpushmem_dev_n_pes();                             \
        TYPE *word = (TYPE *)memory + 1;                                                           \
        gpushmem_dev_##NAME##_atomic_set(word, (TYPE)-2, right);                                   \
        gpushmem_dev_quiet();                                                                      \
        EXPECT(errors, gpushmem_dev_##NAME##_atomic_fetch_add(word, (TYPE)5, right) == (TYPE)-2);  \
        EXPECT(errors, gpushmem_dev_##NAME##_atomic_fetch_inc(word, right) == (TYPE)3);            \
        gpushmem_dev_##NAME##_atomic_add(word, (TYPE)-3, right);                                   \
        gpushmem_dev_##NAME##_atomic_inc(word, right);                                             \
        gpushmem_dev_quiet();                                                                      \
        EXPECT(errors, gpushmem_dev_##NAME##_atomic_compare_swap(word, (TYPE)7, (TYPE)8, right) == \
                           (TYPE)2);                                                               \
        EXPECT(errors, gpushmem_dev_##NAME##_atomic_compare_swap(word, (TYPE)2, (TYPE)8, right) == \
                           (TYPE)2);                                                               \
        EXPECT(errors, gpushmem_dev_##NAME##_g(word, right) == (TYPE)8);                           \
    }
GPUSHMEM_AMO_TYPES(DEFINE_ARITHMETIC)

#define DEFINE_BITWISE(NAME, TYPE)                                                                 \
    __global__ void bitwise_##NAME(char *memory, int *errors)                                      \
    {                                                                                              \
        int right = (gpushmem_dev_my_pe() + 1) % gpushmem_dev_n_pes();                             \
        TYPE *word = (TYPE *)memory + 1;                                                           \
        gpushmem_dev_##NAME##_atomic_set(word, (TYPE)0xff00, right);                               \
        gpushmem_dev_quiet();                                                                      \
        EXPECT(errors,                                                                             \
               gpushmem_dev_##NAME##_atomic_fetch_and(word, (TYPE)0x0ff0, right) == (TYPE)0xff00); \
        EXPECT(errors,                                                                             \
               gpushmem_dev_##NAME##_atomic_fetch_or(word, (TYPE)0x000f, right) == (TYPE)0x0f00);  \
        EXPECT(errors,                                                                             \
               gpushmem_dev_##NAME##_atomic_fetch_xor(word, (TYPE)0xffff, right) == (TYPE)0x0f0f); \
        gpushmem_dev_##NAME##_atomic_and(word, (TYPE)0xff00, right);                               \
        gpushmem_dev_##NAME##_atomic_or(word, (TYPE)0x0001, right);                                \
        gpushmem_dev_##NAME##_atomic_xor(word, (TYPE)0x1001, right);                               \
        gpushmem_dev_quiet();                                                                      \
        EXPECT(errors, gpushmem_dev_##NAME##_g(word, right) == (TYPE)0xe000);                      \
    }
GPUSHMEM_AMO_BITWISE_TYPES(DEFINE_BITWISE)

// All threads of all PEs on words of PE 0.
__global__ void hammer(uint64_t *sum64, uint32_t *sum32, uint64_t *tickets, int rounds, int *errors)
{
    for (int i = 0; i < rounds; i++) {
        gpushmem_dev_uint64_atomic_add(sum64, 3, 0);
        gpushmem_dev_uint32_atomic_inc(sum32, 0);
        uint64_t ticket = gpushmem_dev_uint64_atomic_fetch_inc(&tickets[0], 0);
        // Every ticket is drawn once: its bit is flipped from 0 to 1.
        uint64_t bit = (uint64_t)1 << (ticket % 64);
        uint64_t old = gpushmem_dev_uint64_atomic_fetch_xor(&tickets[1 + ticket / 64], bit, 0);
        EXPECT(errors, !(old & bit));
    }
    gpushmem_dev_quiet();
}

// usage: device_amo [rounds of the hammer]
int main(int argc, char **argv)
{
    int me = check_begin(), n = gpushmem_n_pes(), rounds = argc > 1 ? atoi(argv[1]) : 40;
    enum { BLOCKS = 3, THREADS = 24 };
    char *memory = (char *)gpushmem_calloc(1, 64);
    int *errors = check_errors_begin();
#define RUN_EXTENDED(NAME, TYPE)   RUN(extended_##NAME, 1, 1, memory, errors);
#define RUN_ARITHMETIC(NAME, TYPE) RUN(arithmetic_##NAME, 1, 1, memory, errors);
#define RUN_BITWISE(NAME, TYPE)    RUN(bitwise_##NAME, 1, 1, memory, errors);
    GPUSHMEM_AMO_EXTENDED_TYPES(RUN_EXTENDED)
    GPUSHMEM_AMO_TYPES(RUN_ARITHMETIC)
    GPUSHMEM_AMO_BITWISE_TYPES(RUN_BITWISE)
    uint64_t total = (uint64_t)n * BLOCKS * THREADS * (uint64_t)rounds;
    uint64_t *sum64 = (uint64_t *)gpushmem_calloc(1, 8);
    uint32_t *sum32 = (uint32_t *)gpushmem_calloc(2, 4);
    uint64_t *tickets = (uint64_t *)gpushmem_calloc(2 + total / 64, 8);
    RUN(hammer, BLOCKS, THREADS, sum64, sum32, tickets, rounds, errors);
    CHECK_OK(gpushmem_barrier_all());
    if (me == 0) {
        CHECK(check_read(sum64) == 3 * total);
        CHECK(check_read(&sum32[0]) == total && check_read(&sum32[1]) == 0);
        CHECK(check_read(&tickets[0]) == total);
        for (uint64_t i = 0; i < total; i++)
            CHECK(check_read(&tickets[1 + i / 64]) >> (i % 64) & 1);
    }
    gpushmem_free(tickets);
    gpushmem_free(sum32);
    gpushmem_free(sum64);
    check_errors_end(__FILE__, errors);
    gpushmem_free(memory);
    return check_end("amo");
}
