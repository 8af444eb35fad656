// SPDX-License-Identifier: BSD-3-Clause
// Fences and atomics over fake verbs: who waits for what.

#include "core/error.h"
#include "verbs_rails.h"

TestSuite(verbs_order, .init = open_one, .fini = close_all);
TestSuite(verbs_atomics, .init = open_one, .fini = close_all);

static bool has_fence(int i)
{
    return fake.journal[i].wr.send_flags & IBV_SEND_FENCE;
}

static uint64_t word_at(uint64_t offset)
{
    uint64_t word;
    memcpy(&word, pair.there + offset, 8);
    return word;
}

Test(verbs_order, fence__between_puts__costs_nothing)
{
    struct gpsh_op op = fake_put(pair.heap, 0, 8);
    fake_post_op(&pair, &op);
    gpsh_verbs_ops.fence(pair.channel, 1);
    fake_post_op(&pair, &op);
    cr_assert_eq(fake.n_posts, 2);
    cr_assert_not(has_fence(1));
}

Test(verbs_order, fence__after_atomic__next_request_alone_carries_the_flag)
{
    struct gpsh_op add = fake_amo(GPSH_AMO_ADD, 8, 0, 1, 0, NULL), put = fake_put(pair.heap, 64, 8);
    fake_post_op(&pair, &add);
    gpsh_verbs_ops.fence(pair.channel, GPSH_ALL_PES);
    fake_post_op(&pair, &put);
    fake_post_op(&pair, &put);
    cr_assert_eq(fake.n_posts, 3);
    cr_assert(has_fence(1));
    cr_assert_not(has_fence(2));
}

Test(verbs_order, fence__after_completed_atomic__no_flag)
{
    struct gpsh_op add = fake_amo(GPSH_AMO_ADD, 8, 0, 1, 0, NULL), put = fake_put(pair.heap, 64, 8);
    fake_post_op(&pair, &add);
    fake_settle(&pair);
    gpsh_verbs_ops.fence(pair.channel, 1);
    fake_post_op(&pair, &put);
    cr_assert_not(has_fence(1));
}

Test(verbs_order, fence__then_empty_put__reaches_the_operation_behind)
{
    struct gpsh_op add = fake_amo(GPSH_AMO_ADD, 8, 0, 1, 0, NULL), put = fake_put(pair.heap, 64, 8);
    struct gpsh_op empty = fake_put(NULL, 0, 0);
    fake_post_op(&pair, &add);
    gpsh_verbs_ops.fence(pair.channel, 1);
    cr_assert_eq(fake_post_op(&pair, &empty), GPSH_POST_CAPTURED,
                 "counts behind the add, so it is not done yet");
    fake_post_op(&pair, &put);
    cr_assert(has_fence(1));
}

Test(verbs_order, fence__to_another_pe__does_not_concern_this_one)
{
    struct gpsh_op add = fake_amo(GPSH_AMO_ADD, 8, 0, 1, 0, NULL), put = fake_put(pair.heap, 64, 8);
    fake_post_op(&pair, &add);
    gpsh_verbs_ops.fence(pair.channel, 0);
    fake_post_op(&pair, &put);
    cr_assert_not(has_fence(1));
}

Test(verbs_order, fence__behind_striped_put__next_waits)
{
    reopen_rails();
    struct gpsh_op large = fake_put(pair.heap, 0, 1 << 20), flag = fake_put(pair.heap, 2 << 20, 8);
    fake_post_op(&pair, &large);
    gpsh_verbs_ops.fence(pair.channel, 1);
    fake_post_op(&pair, &flag);
    cr_assert_eq(fake.n_posts, 4, "the flag must not pass the other rail's half");
    fake_settle(&pair);
    cr_assert_eq(fake.n_posts, 6);
}

Test(verbs_order, fence__before_striped_put__it_waits_for_all_before)
{
    reopen_rails();
    struct gpsh_op large = fake_put(pair.heap, 0, 1 << 20), small = fake_put(pair.heap, 2 << 20, 8);
    fake_post_op(&pair, &small);
    gpsh_verbs_ops.fence(pair.channel, 1);
    fake_post_op(&pair, &small);
    fake_post_op(&pair, &large);
    cr_assert_eq(fake.n_posts, 4);
    cr_assert_eq(fake.journal[1].wr.opcode, IBV_WR_RDMA_READ);
    fake_run(1, IBV_WC_SUCCESS);
    gpsh_verbs_ops.progress(pair.channel);
    cr_assert_eq(fake.n_posts, 4, "acknowledged, and perhaps not there yet");
    fake_settle(&pair);
    cr_assert_eq(fake.n_posts, 8);
}

static void open_misplacing(void)
{
    fake_pair_close(&pair);
    fake_reset();
    fake.misplaces = true;
    memset(&pair, 0, sizeof pair);
    cr_assert(fake_pair_open(&pair) == 0);
}

Test(verbs_order, fence__writes_may_be_misplaced__a_read_comes_between)
{
    open_misplacing();
    struct gpsh_op op = fake_put(pair.heap, 0, 8);
    fake_post_op(&pair, &op);
    fake_post_op(&pair, &op);
    cr_assert_eq(fake.n_posts, 2, "nobody asked for an order");
    gpsh_verbs_ops.fence(pair.channel, 1);
    fake_post_op(&pair, &op);
    fake_post_op(&pair, &op);
    cr_assert_eq(fake.n_posts, 5);
    cr_assert_eq(fake.journal[2].wr.opcode, IBV_WR_RDMA_READ);
    cr_assert(has_fence(3));
    cr_assert_not(has_fence(4));
}

Test(verbs_order, fence__misplaced_writes_acknowledged__costs_nothing)
{
    open_misplacing();
    struct gpsh_op op = fake_put(pair.heap, 0, 8);
    fake_post_op(&pair, &op);
    fake_settle(&pair);
    gpsh_verbs_ops.fence(pair.channel, 1);
    fake_post_op(&pair, &op);
    cr_assert_eq(fake.n_posts, 2);
    cr_assert_not(has_fence(1));
}

// A get or an atomic needs no read to come after the data; the flag after it still does.
Test(verbs_order, fence__then_get_or_atomic__the_put_after_it_is_ordered_too)
{
    static char outside[64];
    for (int i = 0; i < 3; i++) {
        open_misplacing(); // another heap
        struct gpsh_op data = fake_put(pair.heap, 0, 4096), flag = fake_put(outside, 8192, 8);
        struct gpsh_op between[] = {fake_put(pair.heap, 16384, 4096),
                                    fake_amo(GPSH_AMO_ADD, 8, 64, 1, 0, NULL),
                                    fake_amo(GPSH_AMO_OR, 8, 64, 1, 0, NULL)};
        between[0].kind = GPSH_OP_GET;
        fake_post_op(&pair, &data);
        gpsh_verbs_ops.fence(pair.channel, 1);
        fake_post_op(&pair, &between[i]);
        fake_post_op(&pair, &flag);
        fake_post_op(&pair, &flag);
        cr_assert_eq(fake.n_posts, 4);
        cr_assert(has_fence(2), "case %d: the flag may overtake the data", i);
        cr_assert_not(has_fence(3));
    }
}

// A heap reached by another function of the NIC than the words that tell of it.
Test(verbs_order, put__heap_and_words_apart__complete_when_it_was_read_back)
{
    fake_pair_close(&pair);
    fake_reset();
    memset(&pair, 0, sizeof pair);
    pair.apart = true;
    cr_assert(fake_pair_open(&pair) == 0);
    struct gpsh_op op = fake_put(pair.heap, 0, 8);
    op.flags = GPSH_OP_MORE;
    fake_post_op(&pair, &op);
    fake_post_op(&pair, &op);
    gpsh_verbs_ops.flush(pair.channel);
    cr_assert_eq(fake.n_posts, 3);
    cr_assert_eq(fake.doorbells, 1);
    cr_assert_eq(fake.journal[2].wr.opcode, IBV_WR_RDMA_READ);
    fake_run(2, IBV_WC_SUCCESS);
    gpsh_verbs_ops.progress(pair.channel);
    cr_assert_eq(pair.channel->pending, 2);
    fake_run(1, IBV_WC_SUCCESS);
    gpsh_verbs_ops.progress(pair.channel);
    cr_assert_eq(pair.channel->pending, 0);
}

static void open_apart(void)
{
    fake_pair_close(&pair);
    fake_reset();
    memset(&pair, 0, sizeof pair);
    pair.apart = true;
    pair.n_locks = 8;
    pair.settings[0] = "GPUSHMEM_TEST_VERBS_SIGNAL_EVERY=1";
    cr_assert(fake_pair_open(&pair) == 0);
}

Test(verbs_order, add__heap_and_words_apart__is_read_back)
{
    open_apart();
    struct gpsh_op add = fake_amo(GPSH_AMO_ADD, 8, 0, 7, 0, NULL);
    fake_post_op(&pair, &add);
    cr_assert_eq(fake.n_posts, 2);
    cr_assert_eq(fake.journal[1].wr.opcode, IBV_WR_RDMA_READ);
    fake_settle(&pair);
    cr_assert_eq(pair.channel->pending, 0);
}

// Its lock is among the words, and what happens there proves nothing about the heap.
Test(verbs_order, four_byte_atomic__heap_and_words_apart__is_read_back)
{
    open_apart();
    struct gpsh_op swap = fake_amo(GPSH_AMO_SWAP, 4, 0, 7, 0, NULL);
    fake_post_op(&pair, &swap);
    fake_settle(&pair);
    cr_assert_eq(pair.channel->pending, 0, "the shortest chains must have room for its steps");
    cr_assert_eq(word_at(0), 7);
    cr_assert_eq(fake.journal[fake.n_posts - 1].wr.opcode, IBV_WR_RDMA_READ);
}

Test(verbs_order, fence__before_an_atomic__is_its_own_order)
{
    open_misplacing();
    struct gpsh_op put = fake_put(pair.heap, 0, 8), add = fake_amo(GPSH_AMO_ADD, 8, 64, 1, 0, NULL);
    fake_post_op(&pair, &put);
    gpsh_verbs_ops.fence(pair.channel, 1);
    fake_post_op(&pair, &add);
    cr_assert_eq(fake.n_posts, 2, "an atomic is executed after every write before it");
}

Test(verbs_order, fence__behind_loop__next_waits_until_it_won)
{
    struct gpsh_op loop = fake_amo(GPSH_AMO_OR, 8, 0, 1, 0, NULL),
                   flag = fake_put(pair.heap, 64, 8);
    memset(pair.there, 0x11, 8); // the first guess, 0, is wrong
    fake_post_op(&pair, &loop);
    gpsh_verbs_ops.fence(pair.channel, 1);
    fake_post_op(&pair, &flag);
    fake_run(1, IBV_WC_SUCCESS);
    gpsh_verbs_ops.progress(pair.channel);
    cr_assert_eq(fake.n_posts, 2, "the second attempt only");
    cr_assert_eq(fake.journal[1].wr.opcode, IBV_WR_ATOMIC_CMP_AND_SWP);
    fake_settle(&pair);
    cr_assert_eq(fake.n_posts, 3);
}

Test(verbs_atomics, native__add_fetch_cswap__one_request_each)
{
    uint64_t old[3];
    struct gpsh_op ops[] = {fake_amo(GPSH_AMO_ADD, 8, 0, 3, 0, &old[0]),
                            fake_amo(GPSH_AMO_FETCH, 8, 0, 9, 0, &old[1]),
                            fake_amo(GPSH_AMO_CSWAP, 8, 0, 8, 3, &old[2])};
    for (int i = 0; i < 3; i++)
        fake_post_op(&pair, &ops[i]);
    cr_assert_eq(fake.n_posts, 3);
    fake_settle(&pair);
    cr_assert_eq(fake.n_posts, 3);
    cr_assert(old[0] == 0 && old[1] == 3 && old[2] == 3 && word_at(0) == 8);
}

Test(verbs_atomics, add__four_bytes_upper_half__native_without_carry)
{
    uint32_t old = 0;
    memset(pair.there, 0xff, 8);
    struct gpsh_op op = fake_amo(GPSH_AMO_ADD, 4, 4, 2, 0, &old);
    fake_post_op(&pair, &op);
    cr_assert_eq(fake.journal[0].wr.opcode, IBV_WR_ATOMIC_FETCH_AND_ADD);
    fake_settle(&pair);
    cr_assert(old == UINT32_MAX && word_at(0) == 0x1ffffffff);
}

Test(verbs_atomics, add__four_bytes_lower_half__loop_keeps_the_carry_in)
{
    memset(pair.there, 0xff, 4);
    struct gpsh_op op = fake_amo(GPSH_AMO_ADD, 4, 0, 2, 0, NULL);
    fake_post_op(&pair, &op);
    fake_settle(&pair);
    cr_assert_eq(word_at(0), 1);
}

Test(verbs_atomics, loop__somebody_else_wins__tries_again_with_what_it_found)
{
    uint64_t old = 0, theirs = 5;
    struct gpsh_op op = fake_amo(GPSH_AMO_XOR, 8, 0, 0xf0, 0, &old);
    fake_post_op(&pair, &op);
    for (int i = 0; i < 5; i++) { // the word changes before every attempt
        memcpy(pair.there, &theirs, 8);
        fake_run(1, IBV_WC_SUCCESS);
        gpsh_verbs_ops.progress(pair.channel);
        theirs += 1;
    }
    fake_settle(&pair);
    cr_assert_eq(fake.n_posts, 6);
    cr_assert(old == 9 && word_at(0) == (9 ^ 0xf0));
}

Test(verbs_atomics, loop__same_word_again__first_guess_is_right)
{
    struct gpsh_op op = fake_amo(GPSH_AMO_SWAP, 8, 0, 77, 0, NULL);
    memset(pair.there, 1, 8);
    fake_post_op(&pair, &op);
    fake_settle(&pair);
    int before = fake.n_posts;
    op.operand = 78;
    fake_post_op(&pair, &op);
    fake_settle(&pair);
    cr_assert_eq(fake.n_posts, before + 1);
    cr_assert_eq(word_at(0), 78);
}

Test(verbs_atomics, loop__other_words__under_way_together)
{
    for (uint64_t i = 0; i < 20; i++) {
        struct gpsh_op op = fake_amo(GPSH_AMO_OR, 8, 8 * i, 1, 0, NULL);
        fake_post_op(&pair, &op);
    }
    cr_assert_eq(fake.n_posts, 16);
    fake_settle(&pair);
    cr_assert_eq(word_at(19 * 8), 1);
}

Test(verbs_atomics, loop__nothing_overtakes_on_its_word)
{
    struct gpsh_op loop = fake_amo(GPSH_AMO_OR, 8, 64, 1, 0, NULL),
                   put = fake_put(pair.heap, 60, 8);
    struct gpsh_op elsewhere = fake_put(pair.heap, 512, 8);
    fake_post_op(&pair, &loop);
    fake_post_op(&pair, &elsewhere);
    cr_assert_eq(fake.n_posts, 2);
    fake_post_op(&pair, &put);
    cr_assert_eq(fake.n_posts, 2);
    fake_settle(&pair);
    cr_assert_eq(fake.n_posts, 3);
}

// Captured sources hold blocks while they wait; the operation they wait behind still needs one for
// itself.
Test(verbs_order, captured_puts__behind_one_that_needs_a_block__all_go_on)
{
    static char outside[16384];
    struct gpsh_op loop = fake_amo(GPSH_AMO_OR, 8, 0, 1, 0, NULL),
                   head = fake_put(outside, 4096, sizeof outside);
    fake_pair_close(&pair);
    fake_reset();
    pair.settings[0] = "GPUSHMEM_TEST_VERBS_BOUNCE=64K";
    cr_assert(fake_pair_open(&pair) == 0);
    fake_post_op(&pair, &loop);
    gpsh_verbs_ops.fence(pair.channel, 1);
    cr_assert_eq(fake_post_op(&pair, &head), GPSH_POST_IN_FLIGHT);
    int captured = 0, status;
    do {
        struct gpsh_op put = fake_put(outside, 0, 1000);
        put.flags = GPSH_OP_CAPTURE;
        status = fake_post_op(&pair, &put);
        captured += status == GPSH_POST_CAPTURED;
    } while (status == GPSH_POST_CAPTURED);
    cr_assert_eq(status, GPSH_POST_AGAIN);
    cr_assert_gt(captured, 8);
    fake_settle(&pair);
    cr_assert_eq(pair.channel->pending, 0, "%d operations are stuck", (int)pair.channel->pending);
}
