// SPDX-License-Identifier: BSD-3-Clause
// Locks: one PE at a time, first come first served, and what the holder did is complete for the
// next one. Usage: multi_lock [rounds], or multi_lock vain with GPUSHMEM_WAIT_TIMEOUT_MS.
#include "check.h"

enum { LOCKS = 3, PARCEL = 5000, LOAD = 400000 };

static int me, n_pes;

// A counter that is read and written without atomics, and a parcel that is put without waiting for
// it: the next holder sees both.
static void exclusion(int rounds)
{
    long *locks = gpushmem_calloc(LOCKS, sizeof *locks);
    long *counters = gpushmem_calloc(LOCKS, sizeof *counters);
    int *owners = gpushmem_calloc(LOCKS, sizeof *owners);
    char *parcels = gpushmem_calloc(LOCKS, PARCEL);
    char mine[PARCEL], seen[PARCEL];
    CHECK(locks && counters && owners && parcels);
    for (int i = 0; i < rounds; ++i) {
        int which = (i + me) % LOCKS, at = (which + 1) % n_pes;
        CHECK_OK(gpushmem_set_lock(&locks[which]));
        int before = gpushmem_int_atomic_swap(&owners[which], me + 1, at);
        CHECK_THAT(before == 0, "lock %d: PE %d is in there too", which, before - 1);
        long count = gpushmem_long_g(&counters[which], at);
        CHECK_OK(gpushmem_getmem(seen, parcels + which * PARCEL, PARCEL, at));
        CHECK(seen[0] == (char)count && seen[PARCEL - 1] == (char)count);
        CHECK_OK(gpushmem_long_p(&counters[which], count + 1, at));
        memset(mine, (char)(count + 1), sizeof mine);
        CHECK_OK(gpushmem_putmem_nbi(parcels + which * PARCEL, mine, PARCEL, at));
        CHECK_OK(gpushmem_int_atomic_set(&owners[which], 0, at));
        CHECK_OK(gpushmem_clear_lock(&locks[which]));
    }
    CHECK_OK(gpushmem_barrier_all());
    long total = 0;
    for (int which = 0; which < LOCKS; ++which) {
        total += gpushmem_long_g(&counters[which], (which + 1) % n_pes);
        CHECK(gpushmem_long_g(&locks[which], me) == 0); // as it was
    }
    CHECK_THAT(total == (long)rounds * n_pes, "%ld of %ld", total, (long)rounds * n_pes);
    CHECK_OK(gpushmem_barrier_all());
    CHECK_OK(gpushmem_free(parcels));
    CHECK_OK(gpushmem_free(owners));
    CHECK_OK(gpushmem_free(counters));
    CHECK_OK(gpushmem_free(locks));
}

// The holder's last act is a large put to one PE that it does not wait for; the next holder, which
// the network reaches by another way, looks there at once.
static void handing_over(int rounds)
{
    long *lock = gpushmem_calloc(1, sizeof *lock), *count = gpushmem_calloc(1, sizeof *count);
    char *load = gpushmem_calloc(1, LOAD), *mine = malloc(LOAD);
    const int far = n_pes - 1;
    CHECK(lock && count && load && mine);
    for (int i = 0; i < rounds; ++i) {
        CHECK_OK(gpushmem_set_lock(lock));
        long before = gpushmem_long_atomic_fetch_inc(count, 0);
        char last = gpushmem_char_g(load + LOAD - 1, far);
        CHECK_THAT(last == (char)before, "holder %ld sees %d", before, last);
        memset(mine, (char)(before + 1), LOAD);
        CHECK_OK(gpushmem_putmem_nbi(load, mine, LOAD, far));
        CHECK_OK(gpushmem_clear_lock(lock));
    }
    CHECK_OK(gpushmem_barrier_all());
    free(mine);
    CHECK_OK(gpushmem_free(load));
    CHECK_OK(gpushmem_free(count));
    CHECK_OK(gpushmem_free(lock));
}

// The PE that came last is somewhere in the lock's words.
static void await_last(const long *lock, int pe)
{
    uint32_t words[2];
    for (int home = 0;; home = (home + 1) % n_pes) {
        CHECK_OK(gpushmem_getmem(words, lock, sizeof words, home));
        if (words[0] == (uint32_t)pe + 1)
            return;
    }
}

// PEs come one after the other while PE 0 has the lock; they get it in this order.
static void first_come(void)
{
    long *lock = gpushmem_calloc(1, sizeof *lock);
    int *turn = gpushmem_calloc(1, sizeof *turn);
    CHECK(lock && turn);
    if (me == 0)
        CHECK_OK(gpushmem_set_lock(lock));
    CHECK_OK(gpushmem_barrier_all());
    if (me == 0)
        await_last(lock, n_pes - 1);
    else
        await_last(lock, me - 1);
    if (me != 0)
        CHECK_OK(gpushmem_set_lock(lock));
    int mine = gpushmem_int_atomic_fetch_inc(turn, 0);
    CHECK_THAT(mine == me, "PE %d has turn %d", me, mine);
    CHECK_OK(gpushmem_clear_lock(lock));
    CHECK_OK(gpushmem_barrier_all());
    CHECK_OK(gpushmem_free(turn));
    CHECK_OK(gpushmem_free(lock));
}

static void tests(int rounds)
{
    long *lock = gpushmem_calloc(1, sizeof *lock), *count = gpushmem_calloc(1, sizeof *count);
    CHECK(lock && count);
    if (me == 0)
        CHECK(gpushmem_test_lock(lock) == 0);
    CHECK_OK(gpushmem_barrier_all());
    CHECK(gpushmem_test_lock(lock) == 1); // PE 0's, also for PE 0
    CHECK_OK(gpushmem_barrier_all());
    if (me == 0)
        CHECK_OK(gpushmem_clear_lock(lock));
    for (int i = 0; i < rounds; ++i) {
        int status = 1;
        while (i % 2 && (status = gpushmem_test_lock(lock)) == 1)
            gpushmem_int_test((int *)(void *)count, GPUSHMEM_CMP_EQ, -1); // gives the core away
        CHECK(i % 2 == 0 || status == 0);
        if (i % 2 == 0)
            CHECK_OK(gpushmem_set_lock(lock));
        CHECK_OK(gpushmem_long_p(count, gpushmem_long_g(count, 0) + 1, 0));
        CHECK_OK(gpushmem_clear_lock(lock));
    }
    CHECK_OK(gpushmem_barrier_all());
    CHECK(gpushmem_long_g(count, 0) == (long)rounds * n_pes);
    CHECK_OK(gpushmem_barrier_all());
    CHECK_OK(gpushmem_free(count));
    CHECK_OK(gpushmem_free(lock));
}

static void refusals(void)
{
    long *lock = gpushmem_calloc(2, sizeof *lock), outside = 0;
    CHECK(lock != NULL);
    CHECK(gpushmem_clear_lock(lock) == GPUSHMEM_ERR_STATE);
    CHECK(strstr(gpushmem_last_error(), "gpushmem_clear_lock: this PE does not have the lock"));
    CHECK(gpushmem_set_lock(&outside) == GPUSHMEM_ERR_ADDRESS);
    CHECK(gpushmem_test_lock((long *)(void *)((char *)lock + 4)) == GPUSHMEM_ERR_ALIGNMENT);
    CHECK_OK(gpushmem_barrier_all());
    if (me == n_pes - 1) {
        CHECK_OK(gpushmem_set_lock(lock));
        CHECK(gpushmem_set_lock(lock) == GPUSHMEM_ERR_STATE);
        CHECK(strstr(gpushmem_last_error(), "has the lock at heap offset"));
        CHECK_OK(gpushmem_clear_lock(lock));
        CHECK(gpushmem_clear_lock(lock) == GPUSHMEM_ERR_STATE);
    }
    CHECK_OK(gpushmem_barrier_all());
    CHECK_OK(gpushmem_free(lock));
}

// A PE that gave up waiting keeps its place, gets the lock when it asks again, and passes it on.
static void in_vain(void)
{
    long *lock = gpushmem_calloc(1, sizeof *lock), *flag = gpushmem_calloc(1, sizeof *flag);
    CHECK(lock && flag && n_pes == 3);
    if (me == 0)
        CHECK_OK(gpushmem_set_lock(lock));
    CHECK_OK(gpushmem_barrier_all());
    if (me == 1) {
        CHECK(gpushmem_set_lock(lock) == GPUSHMEM_ERR_TIMEOUT);
        CHECK(strstr(gpushmem_last_error(), "keeps its place in the queue"));
        CHECK(gpushmem_clear_lock(lock) == GPUSHMEM_ERR_STATE);
        CHECK(gpushmem_test_lock(lock) == 1);
        CHECK_OK(gpushmem_long_p(flag, 1, 2));
        while (!gpushmem_long_test(flag, GPUSHMEM_CMP_EQ, 1))
            continue;
        while (gpushmem_set_lock(lock) != 0) // PE 0 takes its time
            CHECK(gpushmem_last_error_code() == GPUSHMEM_ERR_TIMEOUT);
        CHECK_OK(gpushmem_clear_lock(lock));
    } else if (me == 2) {
        while (!gpushmem_long_test(flag, GPUSHMEM_CMP_EQ, 1))
            continue;
        CHECK_OK(gpushmem_long_p(flag, 1, 0));
        while (gpushmem_set_lock(lock) != 0)
            CHECK(gpushmem_last_error_code() == GPUSHMEM_ERR_TIMEOUT);
        CHECK_OK(gpushmem_clear_lock(lock));
    } else {
        while (!gpushmem_long_test(flag, GPUSHMEM_CMP_EQ, 1))
            continue;
        CHECK_OK(gpushmem_clear_lock(lock));
        CHECK_OK(gpushmem_long_p(flag, 1, 1));
    }
    // the others may need longer than one limit
    while (gpushmem_long_atomic_fetch(lock, 0) || gpushmem_long_atomic_fetch(lock, 1) ||
           gpushmem_long_atomic_fetch(lock, 2))
        continue;
    int status = gpushmem_barrier_all();
    CHECK(status == 0 || status == GPUSHMEM_ERR_TIMEOUT);
}

int main(int argc, char **argv)
{
    CHECK_OK(gpushmem_init());
    me = gpushmem_my_pe();
    n_pes = gpushmem_n_pes();
    if (argc > 1 && strcmp(argv[1], "vain") == 0) {
        in_vain();
    } else {
        int rounds = check_rounds(argc, argv, 300);
        refusals();
        first_come();
        tests(rounds);
        exclusion(rounds);
        handing_over(rounds < 20 ? rounds : 20);
    }
    CHECK_OK(gpushmem_finalize());
    return 0;
}
