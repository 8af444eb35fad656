// SPDX-License-Identifier: BSD-3-Clause
// What OpenSHMEM has deprecated: first names, and the collectives of active sets, of several sets
// in turn, again and again, with work arrays that are used for one thing and then for another.
#include <mpp/shmem.h>

#include "shmem_check.h"

enum { MOST = 8, ROUNDS = 30 };

static long sync_a[_SHMEM_REDUCE_SYNC_SIZE], sync_b[_SHMEM_BARRIER_SYNC_SIZE];
static int me, n;

// A PE's place in an active set.
struct set {
    int start, log_stride, size, rank;
};

static struct set set_of(int start, int log_stride)
{
    int stride = 1 << log_stride, size = (n - start + stride - 1) / stride, rank = me - start;
    rank = rank >= 0 && rank % stride == 0 ? rank / stride : -1;
    return (struct set){start, log_stride, size, rank};
}

#define SET set.start, set.log_stride, set.size

static void reductions(struct set set)
{
    static int dest[3], source[3], work[8];
    static double wide[1], wide_source[1], wide_work[8];
    int sum = 0;
    for (int i = 0; i < set.size; i++)
        sum += set.start + (i << set.log_stride);
    for (int i = 0; i < 3; i++)
        source[i] = me + i;
    wide_source[0] = me + 0.5;
    shmem_int_sum_to_all(dest, source, 3, SET, work, sync_a);
    CHECK(dest[0] == sum && dest[2] == sum + 2 * set.size);
    shmem_double_max_to_all(wide, wide_source, 1, SET, wide_work, sync_b);
    CHECK(wide[0] == set.start + ((set.size - 1) << set.log_stride) + 0.5);
    shmem_int_or_to_all(source, source, 1, SET, work, sync_a); // in place
    CHECK(source[0] >= me);
}

static void moves(struct set set)
{
    static int32_t dest32[2 * MOST], source32[2 * MOST];
    static int64_t dest64[2 * MOST], source64[2 * MOST];
    int root = set.size - 1;
    for (int i = 0; i < 2 * MOST; i++) {
        source32[i] = me * 100 + i;
        source64[i] = me * 1000 + i;
        dest32[i] = -1;
        dest64[i] = -1;
    }
    shmem_broadcast32(dest32, source32, 2, root, SET, sync_a);
    if (set.rank == root)
        CHECK(dest32[0] == -1); // the root's dest stays
    else
        CHECK(dest32[1] == (set.start + (root << set.log_stride)) * 100 + 1);
    shmem_broadcast64(dest64, source64, 1, 0, SET, sync_b);
    CHECK(set.rank == 0 ? dest64[0] == -1 : dest64[0] == set.start * 1000);
    shmem_fcollect32(dest32, source32, 1, SET, sync_a);
    shmem_fcollect64(dest64, source64, 2, SET, sync_b);
    CHECK(dest32[set.rank] == me * 100 && dest64[2 * set.rank + 1] == me * 1000 + 1);
    shmem_collect32(dest32, source32, set.rank == 0 ? 2 : 1, SET, sync_a);
    shmem_collect64(dest64, source64, set.rank == 0 ? 0 : 1, SET, sync_b);
    CHECK(dest32[1] == set.start * 100 + 1 && (!set.rank || dest32[set.rank + 1] == me * 100));
    CHECK(!set.rank || dest64[set.rank - 1] == me * 1000);
    shmem_alltoall32(dest32, source32, 1, SET, sync_a);
    shmem_alltoalls64(dest64, source64, 2, 1, 1, SET, sync_b);
    CHECK(dest32[0] == set.start * 100 + set.rank && dest64[0] == set.start * 1000 + set.rank);
    shmem_alltoalls32(dest32, source32, 1, 2, 1, SET, sync_a);
    shmem_alltoall64(dest64, source64, 1, SET, sync_b);
    CHECK(dest32[0] == set.start * 100 + 2 * set.rank);
    CHECK(dest64[set.size - 1] % 1000 == set.rank);
}

static void barriers(struct set set)
{
    static long seen;
    long *neighbour = &seen;
    int next = set.start + ((set.rank + 1) % set.size << set.log_stride);
    for (long i = 1; i <= 5; i++) {
        shmem_long_p(neighbour, i, next);
        shmem_barrier(SET, sync_a);
        CHECK(seen == i);
        shmem_sync(SET, sync_a); // the array is the same one, at once
    }
    seen = 0;
    shmem_barrier(SET, sync_b);
}

static void on_set(int start, int log_stride)
{
    struct set set = set_of(start, log_stride);
    if (set.size < 1 || set.rank < 0)
        return;
    reductions(set);
    moves(set);
    barriers(set);
    for (int i = 0; i < _SHMEM_BARRIER_SYNC_SIZE; i++)
        CHECK(sync_a[i] == _SHMEM_SYNC_VALUE && sync_b[i] == _SHMEM_SYNC_VALUE);
}

static void names(void)
{
    static long word, lock_free;
    static float real;
    static short small;
    long *block = shmalloc(sizeof *block);
    int next = (me + 1) % n;
    CHECK(_my_pe() == me && _num_pes() == n && block);
    *block = 3;
    word = 1;
    shmem_barrier_all();
    CHECK(shmem_long_fadd(&word, 2, next) == 1 && shmem_long_finc(&word, next) == 3);
    CHECK(shmem_long_cswap(&word, 4, 5, next) == 4 && shmem_long_swap(&word, 6, next) == 5);
    CHECK(shmem_swap(&word, 7L, next) == 6 && shmem_fetch(&word, next) == 7);
    shmem_long_add(&word, 2, next);
    shmem_long_inc(&word, next);
    CHECK(shmem_long_fetch(&word, next) == 10);
    CHECK(shmem_ulong_fadd((unsigned long *)&word, 1ul, next) == 10);
    shmem_float_set(&real, 1.5f, next);
    CHECK(shmem_float_swap(&real, 2.5f, next) == 1.5f);
    shmem_short_p(&small, 1, next);
    shmem_short_wait(&small, 0);
    shmem_long_p(&lock_free, 4, next);
    shmem_wait(&lock_free, 0);
    (shmem_wait_until)(&lock_free, _SHMEM_CMP_EQ, 4);
    shmem_clear_cache_inv();
    shmem_set_cache_line_inv(&word);
    shmem_udcflush();
    shfree(block);
}

int main(void)
{
    start_pes(0);
    me = _my_pe();
    n = _num_pes();
    names();
    for (int i = 0; i < _SHMEM_BARRIER_SYNC_SIZE; i++)
        sync_a[i] = sync_b[i] = _SHMEM_SYNC_VALUE;
    shmem_barrier_all();
    for (int round = 0; round < ROUNDS; round++)
        for (int log_stride = 0; log_stride < 2; log_stride++)
            for (int start = 0; start < 3; start++) {
                on_set(start, log_stride);
                if (round == 0)
                    shmem_barrier_all(); // what the standard wants before a pSync is used elsewhere
            }
    shmem_barrier_all();
    if (me == 0)
        puts("old: ok");
    return 0; // leaves the job by itself
}
