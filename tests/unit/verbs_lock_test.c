// SPDX-License-Identifier: BSD-3-Clause
// Atomics on 4 bytes towards a NIC that is atomic to itself only, over fake verbs: which requests
// they are, and who waits for whom.
#define _GNU_SOURCE // memfd_create, usleep
#include <criterion/criterion.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/error.h"
#include "core/log.h"
#include "tests/fakes/fake_pair.h"

static struct fake_pair pair;
static _Atomic uint64_t ahead_ns; // of the clock

uint64_t __real_gpsh_clock_ns(void);
uint64_t __wrap_gpsh_clock_ns(void);
uint64_t __wrap_gpsh_clock_ns(void)
{
    return __real_gpsh_clock_ns() + ahead_ns;
}

static void open_with(enum ibv_atomic_cap cap, const char *setting)
{
    fake_reset();
    fake.atomic_cap = cap;
    memset(&pair, 0, sizeof pair);
    pair.n_locks = 4;
    pair.settings[0] = setting;
    cr_assert(fake_pair_open(&pair) == 0);
}

static void open_one(void)
{
    open_with(IBV_ATOMIC_HCA, NULL);
}

static void close_all(void)
{
    fake_pair_close(&pair);
    cr_assert_eq(fake.live_objects, 0, "%d verbs objects were not destroyed", fake.live_objects);
}

TestSuite(verbs_lock, .init = open_one, .fini = close_all);

static uint64_t *lock_of(uint64_t offset)
{
    uint64_t index = ((uintptr_t)pair.there + offset) / 4 % pair.n_locks;
    return pair.control_there + PAIR_LOCKS / 8 + index;
}

static uint32_t half_at(uint64_t offset)
{
    uint32_t half;
    memcpy(&half, pair.there + offset, sizeof half);
    return half;
}

static void run_posted(void)
{
    fake_run(FAKE_JOURNAL, IBV_WC_SUCCESS);
    gpsh_verbs_ops.progress(pair.channel);
}

Test(verbs_lock, add__free_lock__two_trips_that_touch_4_bytes)
{
    struct gpsh_op add = fake_amo(GPSH_AMO_ADD, 4, 8, 5, 0, NULL);
    memset(pair.there, 0x11, 16);
    cr_assert_eq(fake_post_op(&pair, &add), GPSH_POST_URGENT,
                 "others may come to wait for the lock");
    cr_assert_eq(fake.n_posts, 2);
    cr_assert_eq(fake.doorbells, 1);
    cr_assert_eq(fake.journal[0].wr.opcode, IBV_WR_ATOMIC_CMP_AND_SWP);
    cr_assert_eq(fake.journal[0].wr.wr.atomic.remote_addr, (uintptr_t)lock_of(8));
    cr_assert_eq(fake.journal[1].wr.opcode, IBV_WR_RDMA_READ);
    cr_assert_eq(fake.journal[1].sge.length, 4);
    run_posted();
    cr_assert_eq(*lock_of(8), 1, "the lock is this PE's");
    cr_assert_eq(fake.n_posts, 4);
    cr_assert_eq(fake.doorbells, 2);
    cr_assert_eq(fake.journal[2].wr.opcode, IBV_WR_RDMA_WRITE);
    cr_assert_eq(fake.journal[2].sge.length, 4);
    memset(pair.there + 12, 0x22, 4); // somebody's put, in between
    run_posted();
    cr_assert_eq(half_at(8), 0x11111116);
    cr_assert_eq(half_at(12), 0x22222222);
    cr_assert_eq(*lock_of(8), 0);
    cr_assert_eq(pair.channel->pending, 0);
}

Test(verbs_lock, compare_swap__other_value__writes_nothing)
{
    uint32_t before = 0;
    struct gpsh_op swap = fake_amo(GPSH_AMO_CSWAP, 4, 4, 9, 8, &before);
    memset(pair.there, 0x11, 8);
    fake_post_op(&pair, &swap);
    fake_settle(&pair);
    cr_assert_eq(fake.n_posts, 3, "lock, read, unlock");
    cr_assert_eq(before, 0x11111111);
    cr_assert_eq(half_at(4), 0x11111111);
    cr_assert_eq(*lock_of(4), 0);
}

Test(verbs_lock, fetch__is_a_read_and_not_urgent)
{
    uint32_t before = 0;
    struct gpsh_op fetch = fake_amo(GPSH_AMO_FETCH, 4, 4, 0, 0, &before);
    memset(pair.there, 0x11, 8);
    cr_assert_eq(fake_post_op(&pair, &fetch), GPSH_POST_IN_FLIGHT);
    fake_settle(&pair);
    cr_assert_eq(fake.n_posts, 1);
    cr_assert_eq(fake.journal[0].wr.opcode, IBV_WR_RDMA_READ);
    cr_assert_eq(before, 0x11111111);
}

Test(verbs_lock, add__lock_taken__tries_until_it_is_free)
{
    struct gpsh_op add = fake_amo(GPSH_AMO_ADD, 4, 0, 5, 0, NULL);
    *lock_of(0) = 2; // PE 1's
    fake_post_op(&pair, &add);
    for (int i = 0; i < 10; i++)
        run_posted();
    cr_assert_eq(half_at(0), 0);
    cr_assert_eq(*lock_of(0), 2);
    *lock_of(0) = 0;
    fake_settle(&pair);
    cr_assert_eq(half_at(0), 5);
    cr_assert_eq(*lock_of(0), 0);
    cr_assert_eq(pair.channel->pending, 0);
}

Test(verbs_lock, add__owner_of_the_lock_lost__takes_it)
{
    struct gpsh_op add = fake_amo(GPSH_AMO_ADD, 4, 0, 5, 0, NULL);
    *lock_of(0) = 2;
    fake_post_op(&pair, &add);
    run_posted();
    run_posted();
    cr_assert_eq(*lock_of(0), 2, "PE 1 is well");
    pair.lost_pe = 1 + 1;
    for (int i = 0; i < 1000 && pair.channel->pending; i++) {
        run_posted();
        usleep(1000);
    }
    cr_assert_eq(half_at(0), 5);
    cr_assert_eq(*lock_of(0), 0);
}

// Only the way to it may be lost: it goes on with what it does at others.
Test(verbs_lock, add__owner_of_the_lock_lost_but_alive__waits_for_its_unlock)
{
    struct gpsh_op add = fake_amo(GPSH_AMO_ADD, 4, 0, 5, 0, NULL);
    uint32_t theirs = 7;
    pair.lost_pe = 1 + 1;
    *lock_of(0) = 2;
    fake_post_op(&pair, &add);
    for (int i = 0; i < 10; i++)
        run_posted();
    cr_assert_eq(*lock_of(0), 2);
    memcpy(pair.there, &theirs, sizeof theirs);
    *lock_of(0) = 0;
    fake_settle(&pair);
    cr_assert_eq(half_at(0), 12);
}

// ---- A lock that a living PE keeps: nobody may take it ----

static const uint64_t second_ns = 1000000000, moment_ns = 200000000; // longer than the second look

struct noted {
    struct gpsh_completion completion;
    int calls, status;
};

static void note(struct gpsh_completion *self, int status)
{
    struct noted *noted = (struct noted *)self;
    noted->calls++;
    noted->status = status;
}

// So much later.
static void look_after(uint64_t ns)
{
    run_posted();
    ahead_ns += ns;
    run_posted();
}

static void post_fetch(struct noted *noted, uint64_t offset, uint32_t *before)
{
    struct gpsh_op add = fake_amo(GPSH_AMO_ADD, 4, offset, 5, 0, before);
    *noted = (struct noted){.completion.done = note};
    add.completion = &noted->completion;
    cr_assert_eq(fake_post_op(&pair, &add), GPSH_POST_URGENT);
    run_posted();
}

Test(verbs_lock, lock_is_kept__first_waits_and_the_next_ones_fail_soon)
{
    struct noted first, second, third;
    uint32_t before = 77;
    *lock_of(0) = 2; // PE 1's
    post_fetch(&first, 0, &before);
    look_after(30 * second_ns);
    cr_assert_eq(first.calls, 0, "a NIC has not given up yet");
    look_after(10 * second_ns);
    cr_assert(first.calls == 1 && first.status == GPUSHMEM_ERR_TIMEOUT);
    post_fetch(&second, 64, &before);
    look_after(0);
    cr_assert_eq(second.calls, 0, "one look proves nothing: the owner may have taken it again");
    look_after(moment_ns);
    cr_assert(second.calls == 1 && second.status == GPUSHMEM_ERR_TIMEOUT);
    cr_assert(before == 77 && half_at(0) == 0 && half_at(64) == 0);
    cr_assert(pair.failures == 0 && pair.channel->flows[1].error == 0);
    post_fetch(&third, 4, &before); // another lock
    fake_settle(&pair);
    cr_assert(third.calls == 1 && third.status == 0 && half_at(4) == 5);
}

Test(verbs_lock, lock_was_kept_and_is_free_again__serves_as_before)
{
    struct noted noted;
    uint32_t before;
    *lock_of(0) = 2;
    post_fetch(&noted, 0, &before);
    look_after(40 * second_ns);
    cr_assert_eq(noted.status, GPUSHMEM_ERR_TIMEOUT);
    *lock_of(0) = 0;
    post_fetch(&noted, 0, &before);
    fake_settle(&pair);
    cr_assert(noted.calls == 1 && noted.status == 0 && half_at(0) == 5);
    *lock_of(0) = 2;
    post_fetch(&noted, 0, &before);
    look_after(moment_ns);
    cr_assert_eq(noted.calls, 0, "it is not remembered any more");
}

Test(verbs_lock, lock_is_kept__waits_no_longer_than_its_caller)
{
    struct noted noted;
    uint32_t before;
    fake_pair_close(&pair);
    open_with(IBV_ATOMIC_HCA, "GPUSHMEM_WAIT_TIMEOUT_MS=3000");
    *lock_of(0) = 2;
    post_fetch(&noted, 0, &before);
    look_after(2 * second_ns);
    cr_assert_eq(noted.calls, 0);
    look_after(2 * second_ns);
    cr_assert_eq(noted.status, GPUSHMEM_ERR_TIMEOUT);
}

// It would not be told otherwise.
Test(verbs_lock, lock_is_kept__atomic_without_an_answer_takes_its_flow_along)
{
    struct gpsh_op add = fake_amo(GPSH_AMO_ADD, 4, 0, 5, 0, NULL);
    *lock_of(0) = 2;
    fake_post_op(&pair, &add);
    run_posted();
    look_after(40 * second_ns);
    cr_assert_eq(pair.channel->flows[1].error, GPUSHMEM_ERR_TRANSPORT);
    cr_assert(strstr(gpsh_last_error(), "PE 1 keeps the lock"), "%s", gpsh_last_error());
    cr_assert(pair.failures == 1 && !pair.cut_off);
    fake_settle(&pair);
    cr_assert_eq(pair.channel->pending, 0);
}

Test(verbs_lock, owner_of_the_lock_is_stopped__is_waited_for)
{
    struct noted noted;
    uint32_t before;
    pair.stopped_pe = 1 + 1;
    *lock_of(0) = 2;
    post_fetch(&noted, 0, &before);
    look_after(40 * second_ns);
    look_after(40 * second_ns);
    cr_assert_eq(noted.calls, 0);
    *lock_of(0) = 0;
    fake_settle(&pair);
    cr_assert(noted.calls == 1 && noted.status == 0);
}

Test(verbs_lock, lock_is_kept__told_once_by_whom)
{
    struct noted noted;
    char name[32], text[2048] = "";
    uint32_t before;
    int fd = memfd_create("log", 0);
    snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
    cr_assert_eq(gpsh_log_open(GPSH_LOG_WARN, name), 0);
    *lock_of(0) = 2;
    for (int i = 0; i < 3; i++) {
        post_fetch(&noted, 0, &before);
        look_after(40 * second_ns);
        cr_assert_eq(noted.calls, 1);
    }
    gpsh_log_close();
    cr_assert(pread(fd, text, sizeof text - 1, 0) > 0, "nothing was said");
    const char *said = strstr(text, "PE 1 keeps the lock");
    cr_assert(said && !strstr(said + 1, "PE 1 keeps the lock"), "%s", text);
    close(fd);
}

Test(verbs_lock, two__on_one_lock__one_after_the_other)
{
    uint32_t first = 0, second = 0;
    struct gpsh_op add = fake_amo(GPSH_AMO_ADD, 4, 0, 5, 0, &first),
                   far = fake_amo(GPSH_AMO_OR, 4, 64, 3, 0, &second);
    cr_assert_eq(lock_of(0), lock_of(64));
    fake_post_op(&pair, &add);
    fake_post_op(&pair, &far);
    fake_settle(&pair);
    cr_assert_eq(half_at(0), 5);
    cr_assert_eq(half_at(64), 3);
    cr_assert_eq(*lock_of(0), 0);
    cr_assert_eq(pair.channel->pending, 0);
}

Test(verbs_lock, fence__behind_add__next_waits_for_the_unlock)
{
    struct gpsh_op add = fake_amo(GPSH_AMO_ADD, 4, 0, 5, 0, NULL),
                   flag = fake_put(pair.heap, 64, 8);
    fake_post_op(&pair, &add);
    gpsh_verbs_ops.fence(pair.channel, 1);
    fake_post_op(&pair, &flag);
    run_posted();
    cr_assert_eq(fake.n_posts, 4, "no put yet");
    run_posted();
    cr_assert_eq(fake.n_posts, 5);
}

Test(verbs_lock, device_without_inline__writes_from_a_block)
{
    fake_pair_close(&pair);
    fake_reset();
    fake.max_inline = 0;
    memset(&pair, 0, sizeof pair);
    pair.n_locks = 4;
    cr_assert(fake_pair_open(&pair) == 0);
    struct gpsh_op add = fake_amo(GPSH_AMO_SET, 4, 0, 0x1234, 0, NULL);
    fake_post_op(&pair, &add);
    fake_settle(&pair);
    cr_assert_not(fake.journal[2].wr.send_flags & IBV_SEND_INLINE);
    cr_assert_eq(half_at(0), 0x1234);
}

Test(verbs_lock, nic_atomic_to_everything__no_lock)
{
    fake_pair_close(&pair);
    open_with(IBV_ATOMIC_GLOB, NULL);
    struct gpsh_op add = fake_amo(GPSH_AMO_ADD, 4, 4, 5, 0, NULL);
    cr_assert_eq(fake_post_op(&pair, &add), GPSH_POST_IN_FLIGHT);
    cr_assert_eq(fake.n_posts, 1);
    cr_assert_eq(fake.journal[0].wr.opcode, IBV_WR_ATOMIC_FETCH_AND_ADD);
    fake_settle(&pair);
    cr_assert_eq(half_at(4), 5);
}

Test(verbs_lock, peer_fails__everything_completes_with_the_error)
{
    struct gpsh_op add = fake_amo(GPSH_AMO_ADD, 4, 0, 5, 0, NULL);
    fake_post_op(&pair, &add);
    fake_run(1, IBV_WC_RETRY_EXC_ERR);
    gpsh_verbs_ops.progress(pair.channel);
    cr_assert_eq(pair.failed_pe, 1);
    fake_settle(&pair);
    cr_assert_eq(pair.channel->pending, 0);
}
