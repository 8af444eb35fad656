// SPDX-License-Identifier: BSD-3-Clause
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "proxy/ring.h"

static uint64_t seed = 88172645463325252u;

static uint64_t random64(void)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return seed;
}

static struct gpushmem_command random_command(void)
{
    return (struct gpushmem_command){
        .opcode = (uint8_t)random64(),
        .flags = (uint8_t)random64(),
        .context = (uint8_t)random64(),
        .pe = (int32_t)random64(),
        .local = random64(),
        .remote = random64(),
        .bytes = random64(),
        .operand = random64(),
        .compare = random64(),
        .reply = random64(),
        .extra = random64(),
    };
}

static bool same(const struct gpushmem_command *a, const struct gpushmem_command *b)
{
    return a->opcode == b->opcode && a->flags == b->flags && a->context == b->context &&
           a->pe == b->pe && a->local == b->local && a->remote == b->remote &&
           a->bytes == b->bytes && a->operand == b->operand && a->compare == b->compare &&
           a->reply == b->reply && a->extra == b->extra;
}

static void check_round_trip(const struct gpushmem_command *command)
{
    for (uint64_t lap = 0; lap < 2; lap++) {
        uint64_t words[GPUSHMEM_COMMAND_WORDS];
        struct gpushmem_command back;
        gpushmem_command_pack(command, lap, words);
        cr_assert(gpushmem_command_ready(words, lap));
        cr_assert(!gpushmem_command_ready(words, !lap));
        gpushmem_command_unpack(words, &back);
        cr_assert(same(command, &back));
    }
}

Test(ring, pack__every_field_at_its_extremes__comes_back)
{
    const uint64_t extremes[] = {
        0, 1, UINT64_MAX, UINT64_MAX >> 1, (uint64_t)1 << 63, (uint64_t)1 << 62};
    for (size_t i = 0; i < sizeof extremes / sizeof *extremes; i++) {
        uint64_t x = extremes[i];
        struct gpushmem_command none = {.opcode = 1}, c = none;
        check_round_trip(&c);
        uint64_t *const fields[] = {&c.local,   &c.remote, &c.bytes, &c.operand,
                                    &c.compare, &c.reply,  &c.extra};
        for (size_t f = 0; f < sizeof fields / sizeof *fields; f++) {
            c = none;
            *fields[f] = x;
            check_round_trip(&c);
        }
        c = (struct gpushmem_command){(uint8_t)x, (uint8_t)x, (uint8_t)x, (int32_t)x, x, x,
                                      x,          x,          x,          x,          x};
        check_round_trip(&c);
    }
    struct gpushmem_command c = {.pe = INT32_MAX};
    check_round_trip(&c);
    c.pe = INT32_MIN;
    check_round_trip(&c);
}

Test(ring, pack__random_commands__come_back)
{
    for (int i = 0; i < 100000; i++) {
        struct gpushmem_command c = random_command();
        check_round_trip(&c);
    }
}

Test(ring, lap__first_pass__differs_from_zeroed_memory)
{
    cr_assert_eq(gpushmem_ring_lap(0, 6), 1);
    cr_assert_eq(gpushmem_ring_lap(63, 6), 1);
    cr_assert_eq(gpushmem_ring_lap(64, 6), 0);
    cr_assert_eq(gpushmem_ring_lap(128, 6), 1);
}

static struct gpsh_ring_set make_set(int rings, unsigned entries_log2, int n_pes)
{
    struct gpsh_ring_set set;
    cr_assert_eq(
        gpsh_ring_set_create(&gpsh_device_memory_host, rings, entries_log2, n_pes, NULL, 0, &set),
        0);
    return set;
}

// Property: over several laps, with the words of each command arriving in a random order, a command
// is seen exactly when its last word has arrived, and is the one that was written.
Test(ring, peek__words_arrive_in_any_order__only_whole_commands_are_seen)
{
    struct gpsh_ring_set set = make_set(1, 6, 1);
    struct gpushmem_command seen;
    for (uint64_t index = 0; index < 64 * 9; index++) {
        struct gpushmem_command command = random_command();
        uint64_t words[GPUSHMEM_COMMAND_WORDS];
        gpushmem_command_pack(&command, gpushmem_ring_lap(index, 6), words);
        int order[GPUSHMEM_COMMAND_WORDS];
        for (int i = 0; i < GPUSHMEM_COMMAND_WORDS; i++) {
            int j = (int)(random64() % (uint64_t)(i + 1));
            order[i] = order[j];
            order[j] = i;
        }
        for (int i = 0; i < GPUSHMEM_COMMAND_WORDS; i++) {
            cr_assert(!gpsh_ring_peek(&set.rings[0], index, &seen), "seen with %d of 8 words", i);
            set.rings[0].slots[(index & 63) * GPUSHMEM_COMMAND_WORDS + (uint64_t)order[i]] =
                words[order[i]];
        }
        cr_assert(gpsh_ring_peek(&set.rings[0], index, &seen));
        cr_assert(same(&command, &seen));
        cr_assert(!gpsh_ring_peek(&set.rings[0], index + 64, &seen),
                  "the next lap's command is not there yet");
    }
    gpsh_ring_set_destroy(&set);
}

Test(ring, set_create__several_rings__do_not_overlap)
{
    enum { RINGS = 5, LOG2 = 6, PES = 37 };
    struct gpsh_ring_set set = make_set(RINGS, LOG2, PES);
    for (int i = 0; i < RINGS; i++) {
        const struct gpushmem_ring *ring = &set.rings[i];
        memset(ring->slots, i + 1, GPUSHMEM_COMMAND_BYTES << LOG2);
        memset(ring->status, i + 1, sizeof *ring->status);
        memset(ring->completed_pe, i + 1, PES * sizeof *ring->completed_pe);
        *ring->head = *ring->consumed_seen = *ring->mixed = (uint64_t)i + 1;
    }
    for (int i = 0; i < RINGS; i++) {
        const struct gpushmem_ring *ring = &set.device_rings[i];
        cr_assert_eq(ring->number, (uint32_t)i);
        cr_assert_eq(ring->entries_log2, LOG2);
        cr_assert_eq(((char *)ring->slots)[0], i + 1);
        cr_assert_eq(((char *)ring->slots)[(GPUSHMEM_COMMAND_BYTES << LOG2) - 1], i + 1);
        cr_assert_eq((char)ring->status->consumed, i + 1);
        cr_assert_eq((char)ring->status->completed, i + 1);
        cr_assert_eq((char)ring->completed_pe[0], i + 1);
        cr_assert_eq((char)ring->completed_pe[PES - 1], i + 1);
        cr_assert_eq(*ring->head, (uint64_t)i + 1);
        cr_assert_eq(*ring->consumed_seen, (uint64_t)i + 1);
        cr_assert_eq(*ring->mixed, (uint64_t)i + 1);
        cr_assert_eq((uintptr_t)ring->slots % 64, 0);
    }
    gpsh_ring_set_destroy(&set);
    gpsh_ring_set_destroy(&set);
}

static int allocations_left;

static void *scarce_alloc(size_t bytes)
{
    return allocations_left-- > 0 ? calloc(1, bytes) : NULL;
}

static void scarce_free(void *memory, size_t bytes)
{
    free(memory);
}

static int write_fails(void *to, const void *from, size_t bytes)
{
    return GPUSHMEM_ERR_CUDA;
}

Test(ring, set_create__each_allocation_fails__reports_and_leaks_nothing)
{
    const struct gpsh_device_memory scarce = {.host_alloc = scarce_alloc,
                                              .host_free = scarce_free,
                                              .device_alloc = scarce_alloc,
                                              .device_free = scarce_free,
                                              .device_write = write_fails,
                                              .cpu_threads = true};
    for (int n = 0; n < 3; n++) {
        struct gpsh_ring_set set = {.n_rings = 77};
        allocations_left = n;
        int expected = n < 2 ? GPUSHMEM_ERR_NO_MEMORY : GPUSHMEM_ERR_CUDA;
        cr_assert_eq(gpsh_ring_set_create(&scarce, 2, 6, 4, NULL, 0, &set), expected);
        cr_assert_eq(set.n_rings, 77);
    }
}

Test(ring, reply__halves_in_any_order__ready_with_both)
{
    struct gpushmem_reply reply = {gpushmem_reply_pack(7, false, 1),
                                   gpushmem_reply_pack(7, false, 2)};
    cr_assert(gpushmem_reply_ready(reply, 7));
    cr_assert(!gpushmem_reply_ready(reply, 8));
    reply.high = gpushmem_reply_pack(8, false, 3);
    cr_assert(!gpushmem_reply_ready(reply, 8));
    cr_assert(!gpushmem_reply_ready(reply, 7));
    reply.low = gpushmem_reply_pack(8, true, 4);
    cr_assert(gpushmem_reply_ready(reply, 8));
    cr_assert(reply.low & GPUSHMEM_REPLY_FAILED);
    reply.low = reply.high = gpushmem_reply_pack(GPUSHMEM_REPLY_NONCE, true, UINT32_MAX);
    cr_assert(gpushmem_reply_ready(reply, GPUSHMEM_REPLY_NONCE));
}
