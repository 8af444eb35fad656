// SPDX-License-Identifier: BSD-3-Clause
#include "stream/coll_choice.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/config.h"
#include "core/error.h"
#include "gpushmem/impl/coll_few.h"

enum {
    THREADS = 512,
    SHARE = 16 << 10,
    PACKET_BLOCKS = GPUSHMEM_COLL_STREAM_BLOCKS,
    LARGE = 32 << 20,
    // By estimates, in docs/adr/0055-streams-by-nodes.md: bytes of a reduce for each node beyond
    // the second, and bytes that a NIC takes about as long for as a copy's further hop.
    NODE_STEP = 96 << 10,
    NODE_SAVES = 192 << 10,
};

static const struct gpsh_coll_limits standard = {192 << 10, 64 << 20, 64, 1, 0};
struct gpsh_coll_limits gpsh_coll_limits = {192 << 10, 64 << 20, 64, 1, 0};

// ---- The setting ----

static bool read_switch(const char *value, unsigned *on)
{
    uint64_t number = 0;
    bool fine = !gpsh_parse_size(value, &number) && number <= 1;
    *on = fine ? (unsigned)number : *on;
    return fine;
}

static bool read_word(const char *word, struct gpsh_coll_limits *limits)
{
    uint64_t blocks = 0;
    const char *value = strchr(word, '=');
    if (!value++)
        return false;
    if (!strncmp(word, "packets=", 8))
        return !gpsh_parse_size(value, &limits->packets);
    if (!strncmp(word, "copies=", 7))
        return !gpsh_parse_size(value, &limits->copies);
    if (!strncmp(word, "nodes=", 6))
        return read_switch(value, &limits->nodes);
    if (!strncmp(word, "round=", 6))
        return read_switch(value, &limits->round);
    if (strncmp(word, "blocks=", 7) != 0 || gpsh_parse_size(value, &blocks) || blocks < 1 ||
        blocks > GPUSHMEM_COLL_STREAM_BLOCKS)
        return false;
    limits->blocks = (unsigned)blocks;
    return true;
}

int gpsh_coll_limits_read(const char *text)
{
    struct gpsh_coll_limits limits = standard;
    char word[64];
    while (*text) {
        size_t length = strcspn(text, ",");
        snprintf(word, sizeof word, "%.*s", (int)length, text);
        if (!read_word(word, &limits))
            return gpsh_fail(
                GPUSHMEM_ERR_SETTING,
                "GPUSHMEM_COLLECTIVES: '%s' is none of packets=BYTES, copies=BYTES, nodes=0, "
                "nodes=1, round=0, round=1 and blocks=N with N from 1 to %d",
                word, GPUSHMEM_COLL_STREAM_BLOCKS);
        text += length + (text[length] == ',');
    }
    gpsh_coll_limits = limits;
    return 0;
}

void gpsh_coll_limits_print(char *text, size_t bytes)
{
    const struct gpsh_coll_limits *limits = &gpsh_coll_limits;
    snprintf(text, bytes, "packets=%" PRIu64 ",copies=%" PRIu64 ",blocks=%u,nodes=%u,round=%u",
             limits->packets, limits->copies, limits->blocks, limits->nodes, limits->round);
}

// ---- The choice ----

static unsigned at_most(uint64_t n, unsigned most)
{
    return n < 1 ? 1 : n < most ? (unsigned)n : most;
}

// A thread for each packet.
static struct gpsh_coll_choice packets(uint64_t bytes)
{
    uint64_t threads = (bytes + 7) / 8;
    unsigned blocks = at_most((threads + THREADS - 1) / THREADS, PACKET_BLOCKS);
    unsigned warps = at_most((threads + 31) / 32, THREADS / 32);
    return (struct gpsh_coll_choice){GPUSHMEM_COLL_LL, blocks, 32 * warps};
}

// One block moves 16 KiB in a microsecond or two; 32 fill the links from one side, and 64 where
// both sides send at once.
static unsigned blocks_for(uint64_t bytes, const struct gpsh_coll_limits *limits)
{
    unsigned most = bytes < LARGE ? 32 : 64;
    return at_most((bytes + SHARE - 1) / SHARE, most < limits->blocks ? most : limits->blocks);
}

static bool by_copies(const struct gpushmem_coll_op *op, uint64_t bytes,
                      const struct gpsh_coll_limits *limits)
{
    bool plain = op->kind == GPUSHMEM_COLL_FCOLLECT || op->kind == GPUSHMEM_COLL_ALLTOALL ||
                 op->kind == GPUSHMEM_COLL_BROADCAST;
    return plain && limits->copies && bytes >= limits->copies;
}

// A block counts the pieces of its part in 20 bits of a flag. The part is rounded up to 128 bytes.
static bool by_pushes(const struct gpushmem_coll_op *op, const struct gpushmem_dev_team *team,
                      bool apart, unsigned blocks)
{
    const uint64_t most = (((uint64_t)1 << 20) - 2) * GPUSHMEM_COLL_PUSH_MOST;
    return op->kind == GPUSHMEM_COLL_REDUCE && team->n == 2 && apart &&
           op->n * op->width / (blocks < 2 ? 1 : blocks / 2) <= most; // half of them fold
}

static struct gpsh_coll_choice direct(const struct gpushmem_coll_op *op,
                                      const struct gpushmem_dev_team *team, bool apart,
                                      const struct gpsh_coll_limits *limits)
{
    uint64_t bytes = op->n * op->width;
    if (op->kind == GPUSHMEM_COLL_COLLECT) // the others may bring more than this PE
        return (struct gpsh_coll_choice){GPUSHMEM_COLL_DIRECT, at_most(8, limits->blocks), THREADS};
    unsigned blocks = at_most((bytes + SHARE - 1) / SHARE, limits->blocks);
    if (by_pushes(op, team, apart, blocks))
        return (struct gpsh_coll_choice){GPUSHMEM_COLL_PUSH, blocks, THREADS};
    if (by_copies(op, bytes, limits))
        return (struct gpsh_coll_choice){GPUSHMEM_COLL_COPY, 1, 32};
    if (op->kind != GPUSHMEM_COLL_REDUCE && op->kind != GPUSHMEM_COLL_BROADCAST)
        bytes *= (uint64_t)(team->n - 1);
    return (struct gpsh_coll_choice){GPUSHMEM_COLL_DIRECT, blocks_for(bytes, limits), THREADS};
}

// A proxy does the work: one block is enough.
static struct gpsh_coll_choice behind_nics(const struct gpushmem_coll_op *op, uint64_t bytes, int n)
{
    bool small = gpushmem_coll_in_rounds(op->kind, bytes, n, true);
    return (struct gpsh_coll_choice){small ? GPUSHMEM_COLL_ROUNDS : GPUSHMEM_COLL_DIRECT, 1,
                                     THREADS};
}

// Partial results are of the type: not where half and bfloat16 are folded in float, for which dest
// has no room.
static bool keeps_type(const struct gpushmem_coll_op *op)
{
    bool exact = op->fold != GPUSHMEM_COLL_SUM && op->fold != GPUSHMEM_COLL_PROD;
    return exact || (op->type != GPUSHMEM_COLL_HALF && op->type != GPUSHMEM_COLL_BFLOAT16);
}

uint64_t gpsh_coll_segment(const struct gpushmem_coll_op *op, int n,
                           const struct gpsh_device_nodes *nodes)
{
    const uint64_t share = GPUSHMEM_COLL_KEPT / (unsigned)nodes->held & ~(uint64_t)127;
    return share * (uint64_t)n / op->width;
}

// A reduce by nodes has 2 (nodes - 1) hops one after the other, in place for each segment; without
// nodes pieces of 64 KiB of the vector are fetched one after the other.
static bool reduces_by_nodes(const struct gpushmem_coll_op *op, uint64_t bytes, int n,
                             const struct gpsh_device_nodes *nodes, bool apart)
{
    if (nodes->held > GPUSHMEM_COLL_KEPT / 128)
        return false;
    uint64_t segment = gpsh_coll_segment(op, n, nodes) * op->width,
             at_once = apart || bytes < segment ? bytes : segment;
    return at_once >= (uint64_t)(nodes->n - 2) * NODE_STEP;
}

// A block of a copy comes to a PE from each that is not on its node, or once for each other node.
static bool by_nodes(const struct gpushmem_coll_op *op, uint64_t bytes, int n,
                     const struct gpsh_device_nodes *nodes, bool apart,
                     const struct gpsh_coll_limits *limits)
{
    const uint64_t most = (((uint64_t)1 << 20) - 2) * gpushmem_coll_node_piece(UINT64_MAX / 2);
    if (!nodes->n || gpushmem_coll_in_rounds(op->kind, bytes, n, true) || bytes > most)
        return false;
    if (op->kind == GPUSHMEM_COLL_REDUCE)
        return (limits->round || keeps_type(op)) && reduces_by_nodes(op, bytes, n, nodes, apart);
    const int saved = n - n / nodes->n - (nodes->n - 1);
    return (op->kind == GPUSHMEM_COLL_FCOLLECT || op->kind == GPUSHMEM_COLL_BROADCAST) &&
           saved > 0 && bytes >= NODE_SAVES / (unsigned)saved;
}

static struct gpsh_coll_choice nodes_of(const struct gpushmem_coll_op *op, uint64_t bytes, int n,
                                        const struct gpsh_device_nodes *nodes,
                                        const struct gpsh_coll_limits *limits)
{
    const unsigned most = GPUSHMEM_COLL_NODE_BLOCKS;
    bool shares = op->kind == GPUSHMEM_COLL_REDUCE;
    uint64_t each = shares ? (bytes + (uint64_t)n - 1) / (uint64_t)n : bytes,
             piece = gpushmem_coll_node_piece(each),
             pieces = (each + piece - 1) / piece * (shares ? (uint64_t)nodes->n : 1);
    return (struct gpsh_coll_choice){GPUSHMEM_COLL_NODES,
                                     at_most(pieces, most < limits->blocks ? most : limits->blocks),
                                     THREADS};
}

static bool in_packets(const struct gpushmem_coll_op *op, uint64_t bytes, int n,
                       const struct gpsh_coll_limits *limits)
{
    return op->kind != GPUSHMEM_COLL_COLLECT && bytes * (uint64_t)(n - 1) <= limits->packets &&
           bytes <= gpushmem_coll_ll_most(n, true) &&
           !gpushmem_coll_is_wide(op->kind, op->type, op->fold);
}

// Elements of the larger part if what is too large for packets can go in two operations that are
// not; else 0.
static uint64_t part_of(const struct gpushmem_coll_op *op, int n)
{
    if (op->kind == GPUSHMEM_COLL_BROADCAST)
        return op->n / 2 + op->n % 2;
    return op->kind == GPUSHMEM_COLL_REDUCE && op->n % (uint64_t)n == 0 ? op->n / (uint64_t)n : 0;
}

static bool in_two(const struct gpushmem_coll_op *op, int n, const struct gpsh_coll_limits *limits)
{
    return n > 1 && n <= GPUSHMEM_COLL_FEW_OTHERS + 1 && part_of(op, n) > 0 &&
           in_packets(op, part_of(op, n) * op->width, n, limits);
}

void gpsh_coll_in_two(const struct gpushmem_coll_op *op, const struct gpushmem_dev_team *team,
                      struct gpushmem_coll_op two[2])
{
    uint64_t part = part_of(op, team->n), bytes = part * op->width;
    two[0] = two[1] = *op;
    two[0].n = two[1].n = part;
    if (op->kind == GPUSHMEM_COLL_BROADCAST) {
        two[1].n = op->n - part;
        two[1].dest = (char *)op->dest + bytes;
        if (op->root == team->my_rank) // nobody else's is looked at: it may be NULL
            two[1].source = (const char *)op->source + bytes;
        return;
    }
    two[0].kind = GPUSHMEM_COLL_REDUCESCATTER;
    two[0].dest = (char *)op->dest + (uint64_t)team->my_rank * bytes;
    two[1].kind = GPUSHMEM_COLL_FCOLLECT;
    two[1].source = two[0].dest;
}

struct gpsh_coll_choice gpsh_coll_choose(const struct gpushmem_coll_op *op,
                                         const struct gpushmem_dev_team *team,
                                         const struct gpsh_device_nodes *nodes, bool apart,
                                         const struct gpsh_coll_limits *limits)
{
    uint64_t bytes = op->n * op->width;
    if (op->kind <= GPUSHMEM_COLL_BARRIER)
        return (struct gpsh_coll_choice){GPUSHMEM_COLL_AUTO, 1, 32};
    if (team->n > 1 && !(team->flags & GPUSHMEM_DEV_TEAM_DIRECT))
        return by_nodes(op, bytes, team->n, nodes, apart, limits)
                   ? nodes_of(op, bytes, team->n, nodes, limits)
                   : behind_nics(op, bytes, team->n);
    if (in_packets(op, bytes, team->n, limits))
        return packets(bytes);
    if (in_two(op, team->n, limits)) {
        struct gpsh_coll_choice choice = packets(part_of(op, team->n) * op->width);
        choice.way = GPUSHMEM_COLL_TWO;
        return choice;
    }
    return direct(op, team, apart, limits);
}

const char *gpsh_coll_way_name(int way)
{
    static const char *const names[] = {"flags",  "packets", "staged", "direct", "push",
                                        "copies", "rounds",  "twice",  "nodes",  "keep"};
    return names[way];
}

const char *gpsh_coll_kind_name(int kind)
{
    static const char *const names[GPUSHMEM_COLL_KINDS] = {
        "nothing",  "sync",      "barrier", "broadcast",     "collect", "fcollect",
        "alltoall", "alltoalls", "reduce",  "reducescatter", "inscan",  "exscan"};
    return names[kind];
}
