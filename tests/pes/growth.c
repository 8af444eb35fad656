// SPDX-License-Identifier: BSD-3-Clause
// A heap that grows: allocations that do not fit get more memory on every PE, old and new blocks
// serve every kind of call, also both in one; at the limit the sentence says so.
#include "check.h"

enum { BLOCKS = 12 };
static const size_t BLOCK = 3 << 20; // the heap has 4M at first

static long *blocks[BLOCKS];
static uint64_t *signals;
static int me, n, next, before;

static uint64_t heap_bytes(void)
{
    struct gpushmem_heap_info info;
    CHECK_OK(gpushmem_heap_info(&info));
    return info.bytes;
}

static void exchange(int i)
{
    size_t last = BLOCK / sizeof(long) - 1;
    long source[3] = {100 * me + i, 200 * me + i, 300 * me + i};
    CHECK_OK(gpushmem_long_p(&blocks[i][last], me + i, next));
    CHECK_OK(gpushmem_long_put(blocks[i] + 7, source, 3, next));
    // a signal in the first piece for data in this one, and the other way round
    CHECK_OK(gpushmem_long_put_signal(blocks[i] + 20, source, 3, &signals[i], (uint64_t)i + 1,
                                      GPUSHMEM_SIGNAL_SET, next));
    CHECK_OK(gpushmem_long_put_signal(blocks[0] + 100 + 4 * i, source, 3,
                                      (uint64_t *)(void *)&blocks[i][50], 1, GPUSHMEM_SIGNAL_ADD,
                                      next));
    CHECK_OK(gpushmem_long_atomic_inc(&blocks[i][60], 0));
    CHECK_OK(gpushmem_int_atomic_add((int *)(void *)&blocks[i][61], 3, 0));
    CHECK_OK(gpushmem_uint64_wait_until(&signals[i], GPUSHMEM_CMP_EQ, (uint64_t)i + 1));
    CHECK(blocks[i][21] == 200 * before + i);
    CHECK_OK(gpushmem_uint64_wait_until((uint64_t *)(void *)&blocks[i][50], GPUSHMEM_CMP_EQ, 1));
    CHECK(blocks[0][102 + 4 * i] == 300 * before + i);
    CHECK_OK(gpushmem_barrier_all());
    CHECK(blocks[i][last] == before + i && blocks[i][9] == 300 * before + i);
    CHECK(gpushmem_long_g(&blocks[i][60], 0) == n &&
          gpushmem_int_g((int *)&blocks[i][61], 0) == 3 * n);
    long *big = blocks[i] + 1000, got = -1;
    CHECK_OK(gpushmem_putmem(big + last / 2, big, BLOCK / 4, next)); // from there to there
    CHECK_OK(gpushmem_long_get(&got, &blocks[i][last], 1, next));
    CHECK(got == me + i);
    CHECK_OK(gpushmem_barrier_all());
}

int main(void)
{
    CHECK_OK(gpushmem_init());
    me = gpushmem_my_pe();
    n = gpushmem_n_pes();
    next = (me + 1) % n;
    before = (me + n - 1) % n;
    uint64_t first = heap_bytes();
    signals = gpushmem_calloc(BLOCKS, sizeof *signals);
    for (int i = 0; i < BLOCKS; i++) {
        blocks[i] = gpushmem_calloc(1, BLOCK);
        CHECK_THAT(blocks[i], "block %d: %s", i, gpushmem_last_error());
        exchange(i);
    }
    for (int i = 0; i < BLOCKS; i++) // those of all pieces together
        CHECK(blocks[i][9] == 300 * before + i);
    CHECK_OK(gpushmem_barrier_all());
    for (int i = 0; i < BLOCKS; i++)
        CHECK_OK(gpushmem_long_p(&blocks[i][9], -i, next));
    CHECK_OK(gpushmem_barrier_all());
    CHECK(blocks[0][9] == 0 && blocks[BLOCKS - 1][9] == -(BLOCKS - 1));
    CHECK(heap_bytes() > first && heap_bytes() >= BLOCKS * BLOCK && heap_bytes() <= 64 << 20);
    uint64_t grown = heap_bytes();
    CHECK(!gpushmem_malloc(70 << 20) && strstr(gpushmem_last_error(), "GPUSHMEM_HEAP_MAX"));
    CHECK(heap_bytes() == grown);
    CHECK(gpushmem_long_p((long *)(void *)((char *)blocks[0] + (200 << 20)), 1, next) ==
          GPUSHMEM_ERR_ADDRESS);
    // Between the first piece and what was added is the library's memory.
    char *end = (char *)signals + first, *added = (char *)blocks[BLOCKS - 1];
    CHECK(added > end && gpushmem_long_p((long *)(void *)end, 1, next) == GPUSHMEM_ERR_ADDRESS);
    CHECK(strstr(gpushmem_last_error(), ", and 0x") != NULL);
    CHECK(gpushmem_putmem(end - 8, added, (size_t)(added - end), next) == GPUSHMEM_ERR_ADDRESS);
    CHECK_OK(gpushmem_free(blocks[5]));
    CHECK((blocks[5] = gpushmem_malloc(BLOCK)) && heap_bytes() == grown);
    for (int i = 0; i < BLOCKS; i++)
        CHECK_OK(gpushmem_free(blocks[i]));
    CHECK_OK(gpushmem_free(signals));
    CHECK_OK(gpushmem_finalize());
    return 0;
}
