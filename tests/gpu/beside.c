// SPDX-License-Identifier: BSD-3-Clause
// Data on GPUs, flags in static variables of the host program: what tells of the data is never seen
// before it.
#include <gpushmem/gpushmem.h>
#include <stdio.h>
#include <stdlib.h>

#define CHECK(x)                                                                                   \
    ((x) ? (void)0                                                                                 \
         : (fprintf(stderr, "PE %d: %s:%d: %s: %s\n", gpushmem_my_pe(), __FILE__, __LINE__, #x,    \
                    gpushmem_last_error()),                                                        \
            exit(1)))

enum { N = 3000, ROUNDS = 30 };

static long flag, many[N];
static uint64_t word, counter;

// Of this PE's own heap, which the processor may not reach.
static long element(const long *block, size_t i)
{
    long value = -1;
    CHECK(gpushmem_long_get(&value, &block[i], 1, gpushmem_my_pe()) == 0);
    return value;
}

static void round_of(long i, long *block, int next)
{
    static long source[N];
    int op = i % 2 ? GPUSHMEM_SIGNAL_ADD : GPUSHMEM_SIGNAL_SET;
    for (long k = 0; k < N; k++)
        source[k] = i * N + k;
    CHECK(gpushmem_long_put_signal(block, source, N, &word, i % 2 ? 1 : (uint64_t)i, op, next) ==
          0);
    CHECK(gpushmem_signal_wait_until(&word, GPUSHMEM_CMP_EQ, (uint64_t)i) == (uint64_t)i);
    CHECK(element(block, N - 1) == i * N + N - 1);
    CHECK(gpushmem_barrier_all() == 0);
    CHECK(gpushmem_long_put_nbi(block, source + 1, N - 1, next) == 0);
    CHECK(gpushmem_fence() == 0 && gpushmem_long_p(&flag, i, next) == 0);
    CHECK(gpushmem_long_wait_until(&flag, GPUSHMEM_CMP_EQ, i) == 0);
    CHECK(element(block, N - 2) == i * N + N - 1);
    CHECK(gpushmem_long_put(many, source, N, next) == 0);
    CHECK(gpushmem_uint64_atomic_inc(&counter, 0) == 0);
    CHECK(gpushmem_barrier_all() == 0 && many[N - 1] == i * N + N - 1);
}

int main(void)
{
    CHECK(gpushmem_init() == 0);
    int next = (gpushmem_my_pe() + 1) % gpushmem_n_pes();
    long *block = gpushmem_malloc(N * sizeof *block);
    CHECK(block);
    for (long i = 1; i <= ROUNDS; i++)
        round_of(i, block, next);
    CHECK(gpushmem_uint64_g(&counter, 0) == (uint64_t)ROUNDS * (uint64_t)gpushmem_n_pes());
    CHECK(gpushmem_free(block) == 0 && gpushmem_finalize() == 0);
    puts("beside: ok");
    return 0;
}
