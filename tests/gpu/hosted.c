// SPDX-License-Identifier: BSD-3-Clause
// Heaps on GPUs, and symmetric host memory beside them: blocks of it, and buffers of the program
// that become a part of it. The processor loads and stores there; GPU memory may be the other side.
// And sums of the host in GPU memory.
#include <gpushmem/gpushmem.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(x)                                                                                   \
    ((x) ? (void)0                                                                                 \
         : (fprintf(stderr, "PE %d: %s:%d: %s: %s\n", gpushmem_my_pe(), __FILE__, __LINE__, #x,    \
                    gpushmem_last_error()),                                                        \
            exit(1)))

enum { N = 3000, ROUNDS = 10, PAGE = 4096, BUFFER = 8 * PAGE };

static int me, n, next, before;

static void *host_block(size_t bytes)
{
    void *block = gpushmem_malloc_with_hints(bytes, GPUSHMEM_MALLOC_HOST);
    CHECK(block);
    memset(block, 0, bytes);
    CHECK(gpushmem_barrier_all() == 0);
    return block;
}

// words: host memory, block: the heap. Data one way and its flag the other.
static void round_of(long i, volatile long *words, long *block)
{
    long source[3] = {i, 2 * i, me}, seen[3];
    uint64_t *signal = (uint64_t *)(uintptr_t)&words[0];
    CHECK(gpushmem_long_put_signal(block, source, 3, signal, (uint64_t)i, GPUSHMEM_SIGNAL_SET,
                                   next) == 0);
    while (*(volatile uint64_t *)signal < (uint64_t)i) // flags that the processor polls
        (void)gpushmem_uint64_test(signal, GPUSHMEM_CMP_EQ,
                                   (uint64_t)i); // drives what is under way
    CHECK(gpushmem_long_get(seen, block, 3, me) == 0 && seen[1] == 2 * i && seen[2] == before);
    CHECK(gpushmem_barrier_all() == 0);
    CHECK(gpushmem_long_put((long *)(uintptr_t)&words[8], block, 3, next) == 0); // from GPU memory
    CHECK(gpushmem_fence() == 0 && gpushmem_long_p((long *)(uintptr_t)&words[1], i, next) == 0);
    CHECK(gpushmem_long_wait_until((long *)(uintptr_t)&words[1], GPUSHMEM_CMP_EQ, i) == 0);
    CHECK(words[9] == 2 * i);
    CHECK(gpushmem_long_get(block + 10, (long *)(uintptr_t)&words[8], 3, next) == 0); // and back
    CHECK(gpushmem_long_get(seen, block + 10, 3, me) == 0 && seen[1] == 2 * i);
    CHECK(gpushmem_long_atomic_inc((long *)(uintptr_t)&words[2], 0) == 0);
    CHECK(gpushmem_barrier_all() == 0);
}

static void blocks(void)
{
    long *words = host_block(64 * sizeof *words), *block = gpushmem_calloc(N, sizeof *block);
    CHECK(block);
    for (long i = 1; i <= ROUNDS; i++)
        round_of(i, words, block);
    CHECK(me != 0 || words[2] == (long)ROUNDS * n);
    CHECK(gpushmem_addr_accessible(words, next) && gpushmem_ptr(words, me) == words);
    words = gpushmem_realloc(words, 4096);
    CHECK(words && words[1] == ROUNDS);
    CHECK(gpushmem_long_p(&words[511], me, next) == 0 && gpushmem_barrier_all() == 0);
    CHECK(words[511] == before);
    CHECK(gpushmem_free(words) == 0 && gpushmem_free(words) == GPUSHMEM_ERR_ADDRESS);
    CHECK(gpushmem_free(block) == 0);
}

static void limits(int device)
{
    if (!device)
        return;
    CHECK(!gpushmem_malloc_with_hints(2 << 20, GPUSHMEM_MALLOC_HOST));
    CHECK(strstr(gpushmem_last_error(), "GPUSHMEM_HOST_HEAP_SIZE"));
    char *all = gpushmem_malloc_with_hints(1 << 20, GPUSHMEM_MALLOC_HOST);
    CHECK(all && gpushmem_char_p(all + (1 << 20) - 1, 1, next) == 0);
    CHECK(gpushmem_char_p(all + (1 << 20), 1, next) == GPUSHMEM_ERR_ADDRESS);
    CHECK(gpushmem_char_p(all - 1, 1, next) == GPUSHMEM_ERR_ADDRESS); // the library's
    CHECK(gpushmem_barrier_all() == 0 && all[(1 << 20) - 1] == 1 && gpushmem_free(all) == 0);
}

static void buffers(void)
{
    long *buffer = aligned_alloc(PAGE, BUFFER), seen = 0;
    memset(buffer, 0, BUFFER);
    buffer[5] = 50 + me;
    long *symmetric = gpushmem_buffer_register_symmetric(buffer, BUFFER);
    CHECK(symmetric && symmetric[5] == 50 + me);
    CHECK(gpushmem_long_p(&buffer[6], me, next) == 0);
    CHECK(gpushmem_long_atomic_add(&symmetric[7], 2, 0) == 0 && gpushmem_barrier_all() == 0);
    CHECK(buffer[6] == before && (me != 0 || buffer[7] == 2 * n));
    CHECK(gpushmem_long_get(&seen, &buffer[5], 1, next) == 0 && seen == 50 + next);
    CHECK(gpushmem_buffer_unregister_symmetric(symmetric) == 0 && buffer[6] == before);
    CHECK(gpushmem_long_p(&buffer[6], me, next) == GPUSHMEM_ERR_ADDRESS);
    free(buffer);
}

static double addend(int pe, size_t i)
{
    return (double)(i % 11 + (size_t)pe * 7) / 3;
}

// Sums of the host in GPU memory, which on several nodes go from node to node: folded from the left
// in every bit, with shares of several pieces.
static void sums(void)
{
    enum { NELEMS = 30000 };
    double *block = gpushmem_malloc(2 * NELEMS * sizeof *block),
           *mine = malloc(NELEMS * sizeof *mine), *seen = malloc(NELEMS * sizeof *seen);
    CHECK(block && mine && seen);
    for (size_t i = 0; i < NELEMS; i++)
        mine[i] = addend(me, i);
    for (int in_place = 0; in_place < 2; in_place++) {
        double *from = in_place ? block : block + NELEMS;
        CHECK(gpushmem_double_put(from, mine, NELEMS, me) == 0 && gpushmem_quiet() == 0);
        CHECK(gpushmem_double_sum_reduce(GPUSHMEM_TEAM_WORLD, block, from, NELEMS) == 0);
        CHECK(gpushmem_double_get(seen, block, NELEMS, me) == 0);
        for (size_t i = 0; i < NELEMS; i++) {
            double sum = addend(0, i);
            for (int pe = 1; pe < n; pe++)
                sum += addend(pe, i);
            CHECK(seen[i] == sum);
        }
    }
    CHECK(gpushmem_free(block) == 0);
    free(mine);
    free(seen);
}

int main(void)
{
    struct gpushmem_heap_info info;
    CHECK(gpushmem_init() == 0);
    me = gpushmem_my_pe();
    n = gpushmem_n_pes();
    next = (me + 1) % n;
    before = (me + n - 1) % n;
    CHECK(gpushmem_heap_info(&info) == 0);
    blocks();
    limits(!strcmp(info.kind, "device"));
    buffers();
    sums();
    CHECK(gpushmem_finalize() == 0);
    puts("hosted: ok");
    return 0;
}
