// SPDX-License-Identifier: BSD-3-Clause
#include "stream/coll_choice.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/config.h"
#include "core/error.h"
#include "gpushmem/impl/coll_few.h"

// ---- The table of schedules ----

enum issuer { HOST, STREAM }; // kernels: gpsh_dev_coll_way of device/coll.cuh

// What is asked of a team and an operation. Of the host see gpsh_coll_team_is.
enum is {
    CHAIN = GPSH_COLL_CHAIN_TEAM,
    NODES = GPSH_COLL_NODE_TEAM,
    IN_ORDER = GPSH_COLL_IN_ORDER,
    NEIGHBORS = GPSH_COLL_NEIGHBORS,
    THREE_A_NODE = 1 << 4, // more than two members for each node, on average,
    FOUR_A_NODE = 1 << 5,  // and four at least
    KEEPS_TYPE = 1 << 6,   // a partial result is of the type, so that it has room in dest,
    WIDE = 1 << 7,         // or a float of half or bfloat16
    SAME_BITS = 1 << 8,    // folded node by node: integers, or types that are kept in order
    BEHIND_NICS = 1 << 9,  // kernels do not map all members
    SHORT = 1 << 10,       // fits the memory for rounds of dissemination,
    LONG = 1 << 11,        // or does not, and its pieces can be counted
    SAVES = 1 << 12,       // blocks that cross once for each node save as much as a hop costs
    PACKETS = 1 << 13,     // fits packets, by the setting or the constant
    COPIES = 1 << 17,      // at least as large as the setting says
    FITS_WORDS = GPSH_COLL_FITS_WORDS,
    FITS_DOUBLING = GPSH_COLL_FITS_DOUBLING,
    IN_PAIRS = GPSH_COLL_IN_PAIRS,
    GATHERS = 1 << 21, // so much from all members that it takes longer than a hop
    DENSE = 1 << 22,   // fits dense packets, by the setting or the constant
    FITS_PACKED = GPSH_COLL_FITS_PACKED,
};

#define KIND(NAME) (1u << GPUSHMEM_COLL_##NAME)
#define SPREADS    (KIND(BROADCAST) | KIND(FCOLLECT))

// An issuer takes the first of its rows that holds. A threshold is in bytes of a block: `least`, or
// `hop` for each node beyond the second where data goes from node to node. Rows without one follow
// from memory and from the order of folding.
static const struct rule {
    uint8_t issuer, way;
    uint16_t kinds;
    uint32_t needs;
    uint32_t least, hop;
} rules[] = {
    // Small operations of a flat team go through the control words before a row is looked for.
    // Doubling takes up to two rounds more than gathering, of which each PE has n blocks at the
    // end: estimated. Beyond what can be gathered the other ways send each member a message.
    {HOST, GPSH_COLL_DOUBLING, KIND(REDUCE), FITS_DOUBLING | IN_PAIRS | GATHERS, 0, 0},
    {HOST, GPSH_COLL_SMALL, 0xffff & ~KIND(COLLECT), FITS_WORDS, 0, 0},
    {HOST, GPSH_COLL_DOUBLING, KIND(REDUCE), FITS_DOUBLING | IN_PAIRS, 0, 0},
    // From node to node, measured in design/collectives: 0.63 to 0.98 of the time without nodes,
    // from 16 KiB a further node on. A scan has half the hops: 0.60 to 0.97 from 2 KiB on.
    {HOST, GPSH_COLL_CHAIN, KIND(REDUCE), CHAIN | SAME_BITS, 0, 16 << 10},
    {HOST, GPSH_COLL_CHAIN, KIND(INSCAN) | KIND(EXSCAN), CHAIN | IN_ORDER | KEEPS_TYPE, 0, 2 << 10},
    // design/collectives: with four members a node 0.73 to 1.00 from 4 KiB on, with three 1.0
    // to 1.21.
    {HOST, GPSH_COLL_CHAIN_WIDE, KIND(REDUCE), CHAIN | IN_ORDER | WIDE | NEIGHBORS | FOUR_A_NODE,
     4 << 10, 16 << 10},
    // design/collectives: 0.72 to 0.98; on nodes of two, where as much crosses as without, 0.98
    // to 1.03.
    {HOST, GPSH_COLL_CHAIN, KIND(REDUCESCATTER), CHAIN | SAME_BITS | THREE_A_NODE, 0, 16 << 10},
    // design/collectives: fcollect 0.66 to 1.48 and broadcast 0.42 to 0.88, on a wire without a
    // rate; n (m-1) blocks cross instead of all, which no size makes worse.
    {HOST, GPSH_COLL_BY_NODES, KIND(REDUCE), NODES | THREE_A_NODE, 0, 0},
    {HOST, GPSH_COLL_BY_NODES, SPREADS | KIND(COLLECT), NODES, 0, 0},
    {HOST, GPSH_COLL_BY_NODES, KIND(ALLTOALL), NODES | IN_ORDER | FITS_PACKED, 0, 0},
    {HOST, GPSH_COLL_BY_MEMBERS, 0xffff, 0, 0, 0},

    {STREAM, GPUSHMEM_COLL_AUTO, KIND(SYNC) | KIND(BARRIER), 0, 0, 0},
    // design/collectives, estimated for NICs of 50 GB/s and 5 us a hop, not measured: 64 KiB of a
    // reduce take 7 us, a further node two hops. In place `hop` is asked of a segment.
    {STREAM, GPUSHMEM_COLL_NODES, KIND(REDUCE), BEHIND_NICS | NODES | LONG | KEEPS_TYPE, 0,
     96 << 10},
    {STREAM, GPUSHMEM_COLL_NODES, SPREADS, BEHIND_NICS | NODES | LONG | SAVES, 0, 0},
    {STREAM, GPUSHMEM_COLL_ROUNDS, 0xffff, BEHIND_NICS | SHORT, 0, 0},
    {STREAM, GPUSHMEM_COLL_DIRECT, 0xffff, BEHIND_NICS, 0, 0},
    // benchmarks.md, two H200 by NVLink, in a graph: a reduce of 64 KiB takes 3.9 us in packets and
    // 4.4 in dense ones, of 1 MiB 9.5 in those and 11.7 by loads and stores, of 4 MiB 26.6 and
    // 21.7; a gather of twice 512 KiB 6.9 and 9.1, of twice 2 MiB 15.6 and 13.5. Four: a reduce of
    // 128 KiB takes 6.4 in packets and 9.4 by loads and stores, of 256 KiB 9.8 and 9.7; a gather of
    // four times 128 KiB 6.1 and 8.6, of 256 KiB 9.5 and 9.3, a reducescatter of those 9.9
    // and 11.8.
    // Copy engines leave multiprocessors to others, but take 1.4 TB/s for the own block: two times
    // 128 MiB took 429 us, by stores 391; four times 256 MiB 2210, by stores about 2300.
    {STREAM, GPUSHMEM_COLL_DENSE, 0xffff, DENSE, (192 << 10) + 1, 0},
    {STREAM, GPUSHMEM_COLL_LL, 0xffff & ~KIND(COLLECT), PACKETS, 0, 0},
    {STREAM, GPUSHMEM_COLL_DENSE, 0xffff, DENSE, 0, 0},
    {STREAM, GPUSHMEM_COLL_COPY, KIND(FCOLLECT), COPIES, 0, 0},
    {STREAM, GPUSHMEM_COLL_RELAY, KIND(BROADCAST), 0, 0, 0},
    {STREAM, GPUSHMEM_COLL_DIRECT, 0xffff, 0, 0, 0},
};

enum {
    NODE_SAVES = 192 << 10,         // design/collectives: a NIC takes about as long for it as a hop
    PIECES_COUNTED = (1 << 20) - 2, // in a flag's 20 bits
    GATHERED = 16 << 10,            // a hop of 2 us at 8 GB/s
    THREADS = 512,
    SHARE = 16 << 10, // of one block, in a microsecond or two
    LARGE = 2 << 20,  // from there 64 blocks, which fill the links where both sides send
    DENSE_THREADS = 256,
    PACKET_THREADS = 128, // more multiprocessors have fewer instructions each
};

#define STANDARD                                                                                   \
    {                                                                                              \
        768 << 10, 1 << 20, 256 << 20, 64, 1, 0                                                    \
    }
static const struct gpsh_coll_limits standard = STANDARD;
struct gpsh_coll_limits gpsh_coll_limits = STANDARD;

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
    if (!strncmp(word, "dense=", 6))
        return !gpsh_parse_size(value, &limits->dense);
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
                "GPUSHMEM_COLLECTIVES: '%s' is none of packets=BYTES, dense=BYTES, "
                "copies=BYTES, nodes=0, nodes=1, round=0, round=1 and blocks=N with N from 1 to %d",
                word, GPUSHMEM_COLL_STREAM_BLOCKS);
        text += length + (text[length] == ',');
    }
    gpsh_coll_limits = limits;
    return 0;
}

void gpsh_coll_limits_print(char *text, size_t bytes)
{
    const struct gpsh_coll_limits *limits = &gpsh_coll_limits;
    snprintf(text, bytes,
             "packets=%" PRIu64 ",dense=%" PRIu64 ",copies=%" PRIu64 ",blocks=%u,nodes=%u,round=%u",
             limits->packets, limits->dense, limits->copies, limits->blocks, limits->nodes,
             limits->round);
}

// ---- The choice ----

struct facts {
    enum issuer issuer;
    int kind, nodes;
    uint64_t bytes, at_once; // of a block; and of what goes from node to node
    unsigned is;
};

static int choose(const struct facts *f)
{
    const struct rule *rule = rules;
    uint64_t further = f->nodes > 2 ? (uint64_t)f->nodes - 2 : 0;
    while (rule->issuer != f->issuer || !(rule->kinds >> f->kind & 1) ||
           (f->is & rule->needs) != rule->needs || f->bytes < rule->least ||
           f->at_once < further * rule->hop)
        rule++; // an issuer's last row always holds
    return rule->way;
}

int gpsh_coll_choose_host(int kind, const struct gpsh_coll_team_facts *team, uint64_t bytes,
                          bool exact, bool wide)
{
    unsigned is = team->is;
    if (exact || (is & IN_ORDER && !wide))
        is |= SAME_BITS;
    is |= wide ? WIDE : KEEPS_TYPE;
    is |= exact ? IN_PAIRS : 0u;
    is |= bytes * (uint64_t)team->n > GATHERED ? GATHERS : 0u;
    is |= team->n > 2 * team->nodes ? THREE_A_NODE : 0u;
    is |= team->n >= 4 * team->nodes ? FOUR_A_NODE : 0u;
    const struct facts facts = {HOST, kind, team->nodes, bytes, bytes, is};
    return choose(&facts);
}

static unsigned at_most(uint64_t n, unsigned most)
{
    return n < 1 ? 1 : n < most ? (unsigned)n : most;
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

// A block of a copy comes to a PE from each that is not on its node, or once for each other node.
static bool nodes_save(uint64_t bytes, int n, int nodes)
{
    const int saved = n - n / nodes - (nodes - 1);
    return saved > 0 && bytes >= NODE_SAVES / (unsigned)saved;
}

static unsigned of_nodes(const struct gpushmem_coll_op *op, uint64_t bytes, int n,
                         const struct gpsh_device_nodes *nodes,
                         const struct gpsh_coll_limits *limits)
{
    const uint64_t most = PIECES_COUNTED * gpushmem_coll_node_piece(UINT64_MAX / 2);
    unsigned is = BEHIND_NICS;
    bool rounds = gpushmem_coll_in_rounds(op->kind, bytes, n, true);
    is |= rounds ? SHORT : bytes <= most ? LONG : 0u;
    if (!nodes->n || (op->kind == GPUSHMEM_COLL_REDUCE && nodes->held > GPUSHMEM_COLL_KEPT / 128))
        return is;
    is |= NODES | (nodes_save(bytes, n, nodes->n) ? SAVES : 0u);
    return is | (limits->round || keeps_type(op) ? KEEPS_TYPE : 0u);
}

static bool fits_packets(const struct gpushmem_coll_op *op, uint64_t bytes, int n,
                         const struct gpsh_coll_limits *limits)
{
    return bytes * (uint64_t)(n - 1) <= limits->packets &&
           bytes <= gpushmem_coll_ll_most(n, true) &&
           !gpushmem_coll_is_wide(op->kind, op->type, op->fold);
}

static unsigned of_mapped(const struct gpushmem_coll_op *op, uint64_t bytes,
                          const struct gpushmem_dev_team *team,
                          const struct gpsh_coll_limits *limits)
{
    const int n = team->n;
    bool dense = gpushmem_coll_may_be_dense(op->kind, n, team->flags) && bytes <= limits->dense &&
                 bytes <= GPUSHMEM_COLL_DENSE_MOST;
    return (fits_packets(op, bytes, n, limits) ? PACKETS : 0u) | (dense ? DENSE : 0u) |
           (limits->copies && bytes >= limits->copies ? COPIES : 0u);
}

// A thread for each packet.
static struct gpsh_coll_choice in_packets(int way, uint64_t bytes)
{
    uint64_t threads = (bytes + 7) / 8;
    unsigned blocks =
        at_most((threads + PACKET_THREADS - 1) / PACKET_THREADS, GPUSHMEM_COLL_STREAM_BLOCKS);
    unsigned warps = at_most((threads + 32 * blocks - 1) / (32 * blocks), THREADS / 32);
    return (struct gpsh_coll_choice){way, blocks, 32 * warps};
}

// A thread for each slot of a chunk, on as many multiprocessors as there is work for.
static struct gpsh_coll_choice in_dense(uint64_t bytes, unsigned most)
{
    unsigned slots =
        gpushmem_coll_dense_chunk_slots(bytes, gpushmem_coll_dense_chunks(bytes, true));
    unsigned threads = slots < DENSE_THREADS ? slots : +DENSE_THREADS,
             blocks = (slots + threads - 1) / threads;
    return (struct gpsh_coll_choice){GPUSHMEM_COLL_DENSE, at_most(blocks, most), threads};
}

static unsigned blocks_by_nodes(const struct gpushmem_coll_op *op, uint64_t bytes, int n, int nodes,
                                unsigned most)
{
    bool shares = op->kind == GPUSHMEM_COLL_REDUCE;
    uint64_t each = shares ? (bytes + (uint64_t)n - 1) / (uint64_t)n : bytes,
             piece = gpushmem_coll_node_piece(each),
             pieces = (each + piece - 1) / piece * (shares ? (uint64_t)nodes : 1);
    return at_most(pieces, most < GPUSHMEM_COLL_NODE_BLOCKS ? most : GPUSHMEM_COLL_NODE_BLOCKS);
}

static unsigned blocks_direct(const struct gpushmem_coll_op *op, uint64_t bytes, int n,
                              unsigned most)
{
    if (op->kind == GPUSHMEM_COLL_COLLECT) // the others may bring more than this PE
        return at_most(8, most);
    if (op->kind != GPUSHMEM_COLL_REDUCE && op->kind != GPUSHMEM_COLL_BROADCAST)
        bytes *= (uint64_t)(n - 1);
    unsigned fill = bytes < LARGE ? 32 : 64;
    return at_most((bytes + SHARE - 1) / SHARE, fill < most ? fill : most);
}

struct gpsh_coll_choice gpsh_coll_choose(const struct gpushmem_coll_op *op,
                                         const struct gpushmem_dev_team *team,
                                         const struct gpsh_device_nodes *nodes, bool apart,
                                         const struct gpsh_coll_limits *limits)
{
    uint64_t bytes = op->n * op->width, at_once = bytes;
    const int n = team->n;
    bool by_nics = n > 1 && !(team->flags & GPUSHMEM_DEV_TEAM_DIRECT);
    unsigned is =
        by_nics ? of_nodes(op, bytes, n, nodes, limits) : of_mapped(op, bytes, team, limits);
    if (is & NODES && !apart) {
        uint64_t segment = gpsh_coll_segment(op, n, nodes) * op->width;
        at_once = bytes < segment ? bytes : segment;
    }
    const struct facts facts = {STREAM, op->kind, nodes->n, bytes, at_once, is};
    int way = choose(&facts);
    switch (way) {
    case GPUSHMEM_COLL_AUTO:
    case GPUSHMEM_COLL_COPY: return (struct gpsh_coll_choice){way, 1, 32};
    case GPUSHMEM_COLL_LL: return in_packets(way, bytes);
    case GPUSHMEM_COLL_DENSE: return in_dense(bytes, limits->blocks);
    case GPUSHMEM_COLL_NODES:
        return (struct gpsh_coll_choice){
            way, blocks_by_nodes(op, bytes, n, nodes->n, limits->blocks), THREADS};
    default: // a proxy does the work behind NICs: one block is enough
        return (struct gpsh_coll_choice){
            way, by_nics ? 1 : blocks_direct(op, bytes, n, limits->blocks), THREADS};
    }
}

const char *gpsh_coll_way_name(int way)
{
    static const char *const names[] = {"flags",  "packets", "staged", "direct", "dense",
                                        "copies", "rounds",  "relay",  "nodes",  "keep"};
    return names[way];
}
