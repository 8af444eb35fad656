// SPDX-License-Identifier: BSD-3-Clause
// Which work requests an operation becomes: inlining, chaining, signalling, splitting, striping,
// bouncing.
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "tests/fakes/fake_pair.h"

static struct fake_pair pair;

static void open_with(const char *a, const char *b)
{
    fake_reset();
    memset(&pair, 0, sizeof pair);
    pair.settings[0] = a;
    pair.settings[1] = a ? b : NULL;
    cr_assert(fake_pair_open(&pair) == 0);
}

static void open_two_rails(void)
{
    fake_reset();
    fake.n_devices = 2;
    memset(&pair, 0, sizeof pair);
    pair.settings[0] = "GPUSHMEM_VERBS_RAILS=2";
    cr_assert(fake_pair_open(&pair) == 0);
}

static void close_all(void)
{
    fake_pair_close(&pair);
    cr_assert_eq(fake.live_objects, 0, "%d verbs objects were not destroyed", fake.live_objects);
}

TestSuite(verbs_post, .fini = close_all);

static bool is_signalled(int i)
{
    return fake.journal[i].wr.send_flags & IBV_SEND_SIGNALED;
}

Test(verbs_post, put__eight_bytes__one_inline_signalled_write)
{
    open_with(NULL, NULL);
    uint64_t value = 42;
    struct gpsh_op op = fake_put((char *)&value, 64, 8);
    cr_assert_eq(fake_post_op(&pair, &op), GPSH_POST_CAPTURED);
    cr_assert_eq(fake.n_posts, 1);
    const struct fake_post *post = &fake.journal[0];
    cr_assert_eq(post->wr.opcode, IBV_WR_RDMA_WRITE);
    cr_assert_eq(post->wr.send_flags, IBV_SEND_INLINE | IBV_SEND_SIGNALED);
    cr_assert_eq(post->wr.wr.rdma.remote_addr, (uintptr_t)pair.there + 64);
    fake_settle(&pair);
    cr_assert_eq(*(uint64_t *)(pair.there + 64), 42);
    cr_assert_eq(pair.channel->flows[1].completed, 1);
    cr_assert_eq(pair.channel->pending, 0);
}

Test(verbs_post, put__around_the_inline_limit__inline_then_in_place)
{
    open_with("GPUSHMEM_TEST_VERBS_INLINE=100", NULL);
    struct gpsh_op fits = fake_put(pair.heap, 0, 100), not = fake_put(pair.heap, 0, 101);
    cr_assert_eq(fake_post_op(&pair, &fits), GPSH_POST_CAPTURED);
    cr_assert_eq(fake_post_op(&pair, &not ), GPSH_POST_IN_FLIGHT);
    cr_assert(fake.journal[0].wr.send_flags & IBV_SEND_INLINE);
    cr_assert_not(fake.journal[1].wr.send_flags & IBV_SEND_INLINE);
    cr_assert_eq(fake.journal[1].sge.addr, (uintptr_t)pair.heap);
}

Test(verbs_post, put__around_the_inline_limit__captured_by_either_way)
{
    open_with("GPUSHMEM_TEST_VERBS_INLINE=100", NULL);
    for (int bytes = 100; bytes <= 101; bytes++) {
        struct gpsh_op op = fake_put(pair.heap, 4096, (uint64_t)bytes);
        op.flags = GPSH_OP_CAPTURE;
        memset(pair.heap, bytes, (size_t)bytes);
        cr_assert_eq(fake_post_op(&pair, &op), GPSH_POST_CAPTURED);
        memset(pair.heap, 0, (size_t)bytes);
        fake_settle(&pair);
        cr_assert_eq(pair.there[4096 + bytes - 1], bytes);
    }
}

Test(verbs_post, put__device_takes_less_inline__limit_follows)
{
    fake_reset();
    fake.max_inline = 60; // 128 are asked for; halving ends at 32
    memset(&pair, 0, sizeof pair);
    cr_assert(fake_pair_open(&pair) == 0);
    struct gpsh_op fits = fake_put(pair.heap, 0, 32), not = fake_put(pair.heap, 0, 33);
    fake_post_op(&pair, &fits);
    fake_post_op(&pair, &not );
    cr_assert(fake.journal[0].wr.send_flags & IBV_SEND_INLINE);
    cr_assert_not(fake.journal[1].wr.send_flags & IBV_SEND_INLINE);
}

Test(verbs_post, put__from_unregistered_memory__through_the_bounce_buffer)
{
    open_with(NULL, NULL);
    char outside[1000];
    memset(outside, 7, sizeof outside);
    struct gpsh_op op = fake_put(outside, 0, sizeof outside);
    cr_assert_eq(fake_post_op(&pair, &op), GPSH_POST_CAPTURED);
    memset(outside, 0, sizeof outside);
    cr_assert_neq(fake.journal[0].sge.addr, (uintptr_t)outside);
    fake_settle(&pair);
    cr_assert_eq(pair.there[999], 7);
}

Test(verbs_post, get__to_unregistered_memory__copied_on_completion)
{
    open_with(NULL, NULL);
    char *outside = calloc(1, 600000);
    memset(pair.there, 9, 600000);
    struct gpsh_op op = fake_put(outside, 0, 600000);
    op.kind = GPSH_OP_GET;
    cr_assert_eq(fake_post_op(&pair, &op), GPSH_POST_IN_FLIGHT);
    cr_assert_gt(fake.n_posts, 1, "pieces of a block each, so that copies overlap transfers");
    fake_settle(&pair);
    cr_assert_eq(memcmp(outside, pair.there, 600000), 0);
    free(outside);
}

Test(verbs_post, put__with_more__one_doorbell_and_one_completion)
{
    open_with(NULL, NULL);
    for (uint64_t i = 0; i < 5; i++) {
        struct gpsh_op op = fake_put((char *)&i, 8 * i, 8);
        op.flags = GPSH_OP_MORE;
        cr_assert_eq(fake_post_op(&pair, &op), GPSH_POST_CAPTURED);
    }
    cr_assert_eq(fake.doorbells, 0);
    gpsh_verbs_ops.flush(pair.channel);
    cr_assert_eq(fake.doorbells, 1);
    for (int i = 0; i < 5; i++)
        cr_assert_eq(is_signalled(i), i == 4, "request %d", i);
    fake_settle(&pair);
    for (uint64_t i = 0; i < 5; i++)
        cr_assert_eq(*(uint64_t *)(pair.there + 8 * i), i,
                     "a held payload changed with its source");
    cr_assert_eq(pair.channel->flows[1].completed, 5);
}

Test(verbs_post, put__without_more_to_another_pe__rings_what_is_held)
{
    open_with(NULL, NULL);
    struct gpsh_op held = fake_put(pair.heap, 0, 8), other = fake_put(pair.heap, 0, 8);
    held.flags = GPSH_OP_MORE;
    other.pe = 0;
    fake_post_op(&pair, &held);
    fake_post_op(&pair, &other);
    cr_assert_eq(fake.n_posts, 2);
}

Test(verbs_post, put__long_chain__signalled_every_nth)
{
    open_with("GPUSHMEM_TEST_VERBS_SIGNAL_EVERY=4", NULL);
    for (int i = 0; i < 10; i++) {
        struct gpsh_op op = fake_put(pair.heap, 0, 8);
        op.flags = GPSH_OP_MORE;
        fake_post_op(&pair, &op);
    }
    gpsh_verbs_ops.flush(pair.channel);
    for (int i = 0; i < 10; i++)
        cr_assert_eq(is_signalled(i), i == 3 || i == 7 || i == 9, "request %d", i);
    cr_assert_eq(fake.doorbells, 3);
}

Test(verbs_post, put__larger_than_a_message__split)
{
    open_with("GPUSHMEM_TEST_VERBS_MAX_MESSAGE=64K", NULL);
    fake.port[0].max_msg_sz = 1 << 20;
    struct gpsh_op op = fake_put(pair.heap, 100, 200000);
    memset(pair.heap, 3, 200000);
    fake_post_op(&pair, &op);
    cr_assert_eq(fake.n_posts, 4);
    uint64_t total = 0;
    for (int i = 0; i < 4; i++) {
        cr_assert_leq(fake.journal[i].sge.length, 65536);
        cr_assert_eq(fake.journal[i].wr.wr.rdma.remote_addr, (uintptr_t)pair.there + 100 + total);
        total += fake.journal[i].sge.length;
    }
    cr_assert_eq(total, 200000);
    fake_settle(&pair);
    cr_assert_eq(pair.channel->flows[1].completed, 1, "one operation, however many requests");
}

Test(verbs_post, put__port_limit_below_the_setting__port_wins)
{
    fake_reset();
    fake.port[0].max_msg_sz = 10000;
    memset(&pair, 0, sizeof pair);
    cr_assert(fake_pair_open(&pair) == 0);
    struct gpsh_op op = fake_put(pair.heap, 0, 30000);
    fake_post_op(&pair, &op);
    cr_assert_eq(fake.n_posts, 3);
}

// The source is too large for a block, and its completion does not come. Post returns all the same:
// the caller waits, where it can give up.
Test(verbs_post, put__source_may_be_borrowed__post_does_not_wait, .timeout = 20)
{
    fake_reset();
    fake.port[0].max_msg_sz = 10000;
    memset(&pair, 0, sizeof pair);
    cr_assert(fake_pair_open(&pair) == 0);
    struct gpsh_op op = fake_put(pair.heap, 0, 30000);
    op.flags = GPSH_OP_CAPTURE;
    cr_assert_eq(fake_post_op(&pair, &op), GPSH_POST_IN_FLIGHT);
    cr_assert_eq(pair.channel->flows[1].completed, 0);
    fake_settle(&pair);
    cr_assert_eq(pair.channel->flows[1].completed, 1);
    op.bytes = 3000;
    cr_assert_eq(fake_post_op(&pair, &op), GPSH_POST_CAPTURED, "a small one is copied");
}

Test(verbs_post, put__striped__rails_share_it_evenly)
{
    open_two_rails();
    struct gpsh_op small = fake_put(pair.heap, 0, 65535), large = fake_put(pair.heap, 0, 1 << 20);
    fake_post_op(&pair, &small);
    cr_assert_eq(fake.n_posts, 2);
    fake_post_op(&pair, &large);
    cr_assert_eq(fake.n_posts, 6, "a write by each rail, and a read of what it wrote");
    cr_assert_neq(fake.journal[2].qp->context->device, fake.journal[4].qp->context->device);
    for (int i = 2; i < 6; i += 2) {
        cr_assert_eq(fake.journal[i].sge.length, 1 << 19);
        cr_assert_eq(fake.journal[i + 1].wr.opcode, IBV_WR_RDMA_READ);
        cr_assert_eq(fake.journal[i + 1].qp, fake.journal[i].qp);
    }
    cr_assert_eq(fake.journal[5].wr.wr.rdma.remote_addr, (uintptr_t)pair.there + (1 << 20) - 8);
}

Test(verbs_post, put_signal__set__one_chain_on_one_queue_pair)
{
    open_with(NULL, NULL);
    struct gpsh_op op = fake_put(pair.heap, 0, 4096);
    op.kind = GPSH_OP_PUT_SIGNAL;
    op.signal = 8192;
    op.operand = 5;
    cr_assert_eq(fake_post_op(&pair, &op), GPSH_POST_IN_FLIGHT);
    cr_assert_eq(fake.n_posts, 2);
    cr_assert_eq(fake.doorbells, 1);
    cr_assert_eq(fake.journal[0].qp, fake.journal[1].qp);
    cr_assert_eq(fake.journal[1].wr.opcode, IBV_WR_RDMA_WRITE);
    cr_assert_eq(fake.journal[1].wr.send_flags, IBV_SEND_INLINE | IBV_SEND_SIGNALED);
    cr_assert_not(is_signalled(0));
    fake_settle(&pair);
    cr_assert_eq(*(uint64_t *)(pair.there + 8192), 5);
}

static bool has_fence(int i)
{
    return fake.journal[i].wr.send_flags & IBV_SEND_FENCE;
}

// Where packets may arrive in any order the signal waits, in the NIC, for a read of the data's end.
Test(verbs_post, put_signal__writes_may_be_misplaced__still_one_chain)
{
    fake_reset();
    fake.misplaces = true;
    memset(&pair, 0, sizeof pair);
    cr_assert(fake_pair_open(&pair) == 0);
    struct gpsh_op op = fake_put(pair.heap, 0, 4096);
    op.kind = GPSH_OP_PUT_SIGNAL;
    op.signal = 8192;
    op.operand = 5;
    fake_post_op(&pair, &op);
    cr_assert_eq(fake.n_posts, 3);
    cr_assert_eq(fake.doorbells, 1);
    cr_assert_eq(fake.journal[1].wr.opcode, IBV_WR_RDMA_READ);
    cr_assert_eq(fake.journal[1].wr.wr.rdma.remote_addr, (uintptr_t)pair.there + 4096 - 8);
    cr_assert_not(has_fence(1));
    cr_assert(has_fence(2));
    fake_settle(&pair);
    cr_assert_eq(*(uint64_t *)(pair.there + 8192), 5);
}

Test(verbs_post, put_signal__order_is_set_to_the_queue__nothing_is_asked_for)
{
    fake_reset();
    fake.misplaces = true;
    memset(&pair, 0, sizeof pair);
    pair.settings[0] = "GPUSHMEM_VERBS_ORDER=queue";
    cr_assert(fake_pair_open(&pair) == 0);
    struct gpsh_op op = fake_put(pair.heap, 0, 4096);
    op.kind = GPSH_OP_PUT_SIGNAL;
    op.signal = 8192;
    fake_post_op(&pair, &op);
    cr_assert_eq(fake.n_posts, 2);
}

Test(verbs_post, put_signal__order_is_set_to_strict__the_device_is_not_believed)
{
    open_with("GPUSHMEM_VERBS_ORDER=strict", NULL);
    struct gpsh_op op = fake_put(pair.heap, 0, 4096);
    op.kind = GPSH_OP_PUT_SIGNAL;
    op.signal = 8192;
    fake_post_op(&pair, &op);
    cr_assert_eq(fake.n_posts, 3);
}

Test(verbs_post, put_signal__add_without_data__one_atomic)
{
    open_with(NULL, NULL);
    struct gpsh_op op = fake_put(NULL, 0, 0);
    op.kind = GPSH_OP_PUT_SIGNAL;
    op.flags = GPSH_OP_SIGNAL_ADD;
    op.signal = 8;
    op.operand = 5;
    fake_post_op(&pair, &op);
    cr_assert_eq(fake.n_posts, 1);
    cr_assert_eq(fake.journal[0].wr.opcode, IBV_WR_ATOMIC_FETCH_AND_ADD);
}

Test(verbs_post, put_signal__striped__signal_waits_for_all_rails)
{
    open_two_rails();
    struct gpsh_op op = fake_put(pair.heap, 0, 1 << 20);
    op.kind = GPSH_OP_PUT_SIGNAL;
    op.signal = 3 << 20;
    op.operand = 5;
    fake_post_op(&pair, &op);
    cr_assert_eq(fake.n_posts, 4);
    fake_run(3, IBV_WC_SUCCESS);
    gpsh_verbs_ops.progress(pair.channel);
    cr_assert_eq(fake.n_posts, 4, "the other rail's data may be on its way to memory");
    fake_run(1, IBV_WC_SUCCESS);
    gpsh_verbs_ops.progress(pair.channel);
    cr_assert_eq(fake.n_posts, 6);
    cr_assert_eq(pair.channel->flows[1].completed, 0);
    fake_settle(&pair);
    cr_assert_eq(pair.channel->flows[1].completed, 1);
}

Test(verbs_post, put__queue_full__again_until_progress)
{
    open_with("GPUSHMEM_TEST_VERBS_SQ_DEPTH=16", NULL);
    struct gpsh_op op = fake_put(pair.heap, 0, 4096);
    int accepted = 0;
    while (fake_post_op(&pair, &op) == GPSH_POST_IN_FLIGHT)
        accepted++;
    cr_assert_eq(accepted, 16);
    cr_assert_eq(fake_post_op(&pair, &op), GPSH_POST_AGAIN);
    cr_assert_eq(pair.channel->flows[1].posted, 16, "nothing was posted");
    fake_run(1, IBV_WC_SUCCESS);
    gpsh_verbs_ops.progress(pair.channel);
    cr_assert_eq(fake_post_op(&pair, &op), GPSH_POST_IN_FLIGHT);
}

Test(verbs_post, put__small_completion_queue__never_overrun)
{
    fake_reset();
    fake.max_cqe = 20; // 2 queue pairs of 256 share it
    memset(&pair, 0, sizeof pair);
    cr_assert(fake_pair_open(&pair) == 0);
    for (int i = 0; i < 100; i++) {
        struct gpsh_op op = fake_put(pair.heap, 0, 4096);
        op.pe = i % 2;
        cr_assert_geq(fake_post_op(&pair, &op), 0);
    }
    cr_assert_eq(fake_waiting(), 20);
    fake_settle(&pair);
    cr_assert_eq(pair.channel->pending, 0);
}

Test(verbs_post, put__provider_full__kept_and_posted_later)
{
    open_with(NULL, NULL);
    struct gpsh_op op = fake_put(pair.heap, 0, 8);
    fake_post_op(&pair, &op);
    fake.post_error = 12; // ENOMEM
    fake.post_accept = 0;
    cr_assert_eq(fake_post_op(&pair, &op), GPSH_POST_CAPTURED);
    cr_assert_eq(fake.n_posts, 1);
    fake.post_error = 0;
    fake_settle(&pair);
    cr_assert_eq(fake.n_posts, 2);
    cr_assert_eq(pair.channel->flows[1].completed, 2);
}

Test(verbs_post, put__provider_takes_part_of_a_chain__the_rest_follows)
{
    open_with(NULL, NULL);
    for (uint64_t i = 0; i < 5; i++) {
        struct gpsh_op op = fake_put((char *)&i, 8 * i, 8);
        op.flags = GPSH_OP_MORE;
        fake_post_op(&pair, &op);
    }
    fake.post_error = 12; // ENOMEM
    fake.post_accept = 2;
    gpsh_verbs_ops.flush(pair.channel);
    cr_assert_eq(fake.n_posts, 2);
    fake.post_error = 0;
    fake_settle(&pair);
    cr_assert_eq(fake.n_posts, 5);
    cr_assert_eq(pair.channel->flows[1].completed, 5);
    cr_assert_eq(*(uint64_t *)(pair.there + 32), 4);
}

Test(verbs_post, put__zero_bytes__done_at_once)
{
    open_with(NULL, NULL);
    struct gpsh_op op = fake_put(NULL, 0, 0);
    cr_assert_eq(fake_post_op(&pair, &op), GPSH_POST_DONE);
    cr_assert_eq(pair.channel->flows[1].completed, 1);
    cr_assert_eq(fake.n_posts, 0);
}

Test(verbs_post, put__gpu_heap__never_read_by_the_processor)
{
    fake_reset();
    memset(&pair, 0, sizeof pair);
    pair.heap_kind = GPSH_MEMORY_DEVICE;
    pair.dmabuf_fd = 5;
    cr_assert(fake_pair_open(&pair) == 0);
    cr_assert_eq(fake.dmabuf_registrations, 1);
    struct gpsh_op op = fake_put(pair.heap, 0, 8);
    cr_assert_eq(fake_post_op(&pair, &op), GPSH_POST_IN_FLIGHT);
    cr_assert_not(fake.journal[0].wr.send_flags & IBV_SEND_INLINE);
}

// A value out of a command ring: the driver is not asked to copy what the processor has in its own
// memory.
Test(verbs_post, put_and_fetch__gpu_heap_and_host_values__copied_by_the_processor)
{
    fake_reset();
    memset(&pair, 0, sizeof pair);
    pair.heap_kind = GPSH_MEMORY_DEVICE;
    cr_assert(fake_pair_open(&pair) == 0);
    uint64_t values[3] = {7};
    struct gpsh_op put = fake_put((char *)&values[0], 64, 8), get = put;
    get.kind = GPSH_OP_GET;
    get.local = (char *)&values[1];
    struct gpsh_op amo = fake_amo(GPSH_AMO_ADD, 8, 64, 5, 0, &values[2]);
    put.flags = get.flags = amo.flags = GPSH_OP_LOCAL_HOST;
    fake_copies = 0;
    cr_assert_eq(fake_post_op(&pair, &put), GPSH_POST_CAPTURED);
    cr_assert(fake.journal[0].wr.send_flags & IBV_SEND_INLINE);
    fake_post_op(&pair, &get);
    fake_post_op(&pair, &amo);
    fake_settle(&pair);
    cr_assert_eq(values[1], 7);
    cr_assert_eq(values[2], 7);
    cr_assert_eq(fake_copies, 0);
}

// What a block holds instead of the copy is another operation's: it must neither be sent nor
// delivered.
Test(verbs_post, gpu_heap__copy_fails__told_and_nothing_of_it_sent_or_delivered)
{
    char mine[600] = "mine";
    struct gpsh_op ops[] = {fake_put(mine, 0, 8), fake_put(mine, 0, sizeof mine),
                            fake_put(mine, 0, sizeof mine), fake_put(mine, 0, sizeof mine),
                            fake_amo(GPSH_AMO_ADD, 8, 0, 1, 0, mine)};
    ops[1].flags = GPSH_OP_CAPTURE;
    ops[3].kind = GPSH_OP_GET;
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
        fake_reset();
        memset(&pair, 0, sizeof pair);
        pair.heap_kind = GPSH_MEMORY_DEVICE;
        pair.dmabuf_fd = 5;
        cr_assert_eq(fake_pair_open(&pair), 0);
        fake_copy_error = GPUSHMEM_ERR_CUDA;
        int status = fake_post_op(&pair, &ops[i]);
        bool put = ops[i].kind == GPSH_OP_PUT;
        cr_expect(!put || fake.n_posts == 0, "row %zu was sent", i);
        fake_settle(&pair);
        cr_expect_eq(pair.channel->flows[1].error, GPUSHMEM_ERR_CUDA, "row %zu, %d", i, status);
        cr_expect(pair.failures == 1 && pair.failed_pe == 1 && pair.channel->pending == 0,
                  "row %zu", i);
        cr_expect_str_eq(mine, "mine", "row %zu", i);
        close_all();
    }
}
