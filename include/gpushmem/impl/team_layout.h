// SPDX-License-Identifier: BSD-3-Clause
// Teams as kernels see them, the operations of their collectives, and where the parts of a team's
// scratch lie. Part of gpushmem/device_abi.h.
#ifndef GPUSHMEM_IMPL_TEAM_LAYOUT_H
#define GPUSHMEM_IMPL_TEAM_LAYOUT_H

#include <stdbool.h>
#include <stdint.h>

#include "gpushmem/impl/host_device.h"
#include "gpushmem/types.h"

// ---- Teams
// ------------------------------------------------------------------------------------------

// docs/design/teams.md. A team's handle is slot | generation << 8.
enum {
    GPUSHMEM_TEAM_SLOTS = 256,
    GPUSHMEM_TEAM_SLOT_MASK = 255,
    GPUSHMEM_TEAM_GENERATION_SHIFT = 8,
    GPUSHMEM_TEAM_PREDEFINED = 6,
};

enum gpushmem_dev_team_flag {
    // kernels load and store the heaps of all members
    GPUSHMEM_DEV_TEAM_DIRECT = 1,
    // it has the scratch that operations of streams need
    GPUSHMEM_DEV_TEAM_STREAM = 2,
    // a member was lost: its operations fail
    GPUSHMEM_DEV_TEAM_LOST = 4,
    // members compare their calls in kernels before they begin (GPUSHMEM_CHECK=1)
    GPUSHMEM_DEV_TEAM_CHECKED = 8,
    // from this bit on: of how many members the scratch has room
    GPUSHMEM_DEV_TEAM_ROOM_SHIFT = 8,
};

// What kernels know of a team, in device memory.
struct gpushmem_dev_team {
    int32_t team;    // the handle that is valid now; GPUSHMEM_TEAM_INVALID: the slot is free
    int32_t my_rank; // this PE's number in the team
    int32_t n;       // members
    uint32_t flags;  // enum gpushmem_dev_team_flag
    int32_t start;   // member r is PE start + r * stride, if stride is not 0,
    int32_t stride;
    const int32_t *pes;   // [n] device memory; and pes[r] always
    char *scratch;        // symmetric: for operations in kernels, or NULL
    char *stream_scratch; // symmetric: for operations of streams, or NULL
    uint64_t *epochs;     // device memory of this PE, [GPUSHMEM_TEAM_EPOCHS]
    // device memory: of a team over several nodes whose ranks follow each other, else NULL
    const struct gpushmem_dev_nodes *nodes;
};

// The nodes of a team, of which kernels load and store the heaps of their own and of no other.
// docs/design/collectives.md.
struct gpushmem_dev_nodes {
    int32_t n, mine;       // nodes, in the order of the team; this PE's
    const int32_t *starts; // [n + 1] the first rank of each, and the team's n
    char *kept;            // [GPUSHMEM_COLL_KEPT] of this PE's, of teams with scratch for streams
};

// Words per team in `epochs`, the last ones for the blocks of streams' operations. Word 0 is the
// sync of kernels; what the others count is the business of the collectives' bodies. They start
// alike on all members.
enum { GPUSHMEM_TEAM_EPOCHS = 128 };

// Words among them that are no numbers, by which the blocks of a grid tell each other.
enum gpushmem_team_grid_word {
    GPUSHMEM_TEAM_GRID_FAILED = 8,  // why one gave up, as the team's poison says it
    GPUSHMEM_TEAM_GRID_REFUSED = 9, // 0, or why no block is to begin
    GPUSHMEM_TEAM_GRID_ENTER = 10,  // where they meet at the beginning
    GPUSHMEM_TEAM_GRID_LEAVE = 11,  // and at the end
};

// ---- Collectives
// ------------------------------------------------------------------------------------------

// A team has channels, each a sequence of operations of its own, so that blocks that work side by
// side do not share one. A channel's handle is the team's with the channel's number in these bits,
// which the generation of a team does not reach.
enum {
    GPUSHMEM_TEAM_CHANNEL_SHIFT = 27,
    GPUSHMEM_TEAM_CHANNEL_MASK = 15,
    GPUSHMEM_TEAM_CHANNELS = 8, // of teams with scratch for streams; the others have one
};

enum gpushmem_coll_kind {
    GPUSHMEM_COLL_SYNC = 1,
    GPUSHMEM_COLL_BARRIER = 2,
    GPUSHMEM_COLL_BROADCAST = 3,
    GPUSHMEM_COLL_COLLECT = 4,
    GPUSHMEM_COLL_FCOLLECT = 5,
    GPUSHMEM_COLL_ALLTOALL = 6,
    GPUSHMEM_COLL_ALLTOALLS = 7,
    // the kinds from here on fold
    GPUSHMEM_COLL_REDUCE = 8,
    GPUSHMEM_COLL_REDUCESCATTER = 9,
    GPUSHMEM_COLL_INSCAN = 10,
    GPUSHMEM_COLL_EXSCAN = 11,
    GPUSHMEM_COLL_KINDS = 12,
};

// What is folded. The integers' bits 0 and 1 are the logarithm of their bytes.
enum gpushmem_coll_type {
    GPUSHMEM_COLL_INT8 = 0,
    GPUSHMEM_COLL_INT16 = 1,
    GPUSHMEM_COLL_INT32 = 2,
    GPUSHMEM_COLL_INT64 = 3,
    GPUSHMEM_COLL_UINT8 = 4,
    GPUSHMEM_COLL_UINT16 = 5,
    GPUSHMEM_COLL_UINT32 = 6,
    GPUSHMEM_COLL_UINT64 = 7,
    GPUSHMEM_COLL_HALF = 8,
    GPUSHMEM_COLL_BFLOAT16 = 9,
    GPUSHMEM_COLL_FLOAT = 10,
    GPUSHMEM_COLL_DOUBLE = 11,
    GPUSHMEM_COLL_COMPLEXF = 12, // only sum and prod
    GPUSHMEM_COLL_COMPLEXD = 13, // the same, and max of pairs of a value and its place (maxloc)
    GPUSHMEM_COLL_TYPES = 14,
};

enum gpushmem_coll_fold {
    GPUSHMEM_COLL_AND = 0,
    GPUSHMEM_COLL_OR = 1,
    GPUSHMEM_COLL_XOR = 2,
    GPUSHMEM_COLL_MIN = 3,
    GPUSHMEM_COLL_MAX = 4,
    GPUSHMEM_COLL_SUM = 5,
    GPUSHMEM_COLL_PROD = 6,
    GPUSHMEM_COLL_FOLDS = 7,
};

// How the data travels (docs/design/teams.md).
enum gpushmem_coll_way {
    GPUSHMEM_COLL_AUTO = 0, // kernels choose
    GPUSHMEM_COLL_LL = 1,
    GPUSHMEM_COLL_STAGED = 2,
    GPUSHMEM_COLL_DIRECT = 3, // loads of the members' sources, stores to their dests
    // of two members: packets of 12 bytes of data (device/coll_dense.cuh)
    GPUSHMEM_COLL_DENSE = 4,
    GPUSHMEM_COLL_COPY = 5, // copy engines between two kernels with the flags
    // of members behind NICs: rounds of dissemination, in which blocks are gathered
    GPUSHMEM_COLL_ROUNDS = 6,
    GPUSHMEM_COLL_RELAY = 7, // broadcasts of streams: each leaf reads a part, and passes it on
    // of teams over several nodes: to each node once
    GPUSHMEM_COLL_NODES = 8,
    // before a reduce in place by nodes: copies of what it will overwrite, in a kernel of its own
    GPUSHMEM_COLL_KEEP = 9,
};

// One collective operation, the same on all members but for dest and source of other memory than
// the heap.
struct gpushmem_coll_op {
    int32_t team;   // the handle, with the channel
    int32_t root;   // broadcast
    uint8_t kind;   // enum gpushmem_coll_kind
    uint8_t type;   // enum gpushmem_coll_type, if it folds
    uint8_t fold;   // enum gpushmem_coll_fold, if it folds
    uint8_t way;    // enum gpushmem_coll_way
    uint32_t width; // bytes of an element
    void *dest;
    const void *source;
    uint64_t n; // elements of a block: what one member contributes, or gets from each
    int64_t dest_stride, source_stride; // alltoalls, in elements
};

// Words that tell another member how far this one is; all but the counts only grow.
enum gpushmem_coll_flag {
    GPUSHMEM_COLL_ENTRY = 0,    // its source is ready, its dest may be written
    GPUSHMEM_COLL_EXIT = 1,     // its stores are there, and it no longer reads
    GPUSHMEM_COLL_PROGRESS = 2, // how many pieces it has read, or sent
    // collect: how many elements it brings; a relayed broadcast: how far behind dest its source is
    GPUSHMEM_COLL_COUNT = 3,
};

// What a member calls, for others to compare with what they do. `epoch` comes last.
enum gpushmem_coll_call_word {
    // kind (bits 0 to 7), type, operator, negated status of what is wrong with it, width (32 to
    // 39), the blocks of the grid that calls (40 to 63), 0 for one thread, warp or block
    GPUSHMEM_COLL_CALL_WHAT = 0,
    GPUSHMEM_COLL_CALL_NELEMS = 1,
    GPUSHMEM_COLL_CALL_ROOT = 2,
    GPUSHMEM_COLL_CALL_DST = 3,
    GPUSHMEM_COLL_CALL_SST = 4,
    GPUSHMEM_COLL_CALL_DEST = 5, // offset in the heap
    GPUSHMEM_COLL_CALL_SOURCE = 6,
    GPUSHMEM_COLL_CALL_WORDS = 7,
};
struct gpushmem_coll_call {
    uint64_t words[GPUSHMEM_COLL_CALL_WORDS];
    uint64_t epoch;
};

// Where a channel's parts lie in its scratch, which begins with the poison word. `room`: of how
// many members it has room. Everything is written by other members (each word by one), and zero
// before the team's first operation.
enum {
    GPUSHMEM_COLL_ROUND_AT = 64, // this PE's own word: the packets were cleared
    GPUSHMEM_COLL_MET_AT = 72,   // this PE's own word: the first block has met all members
    GPUSHMEM_COLL_SYNC_AT = 128, // [GPUSHMEM_COLL_SYNC_WORDS] of dissemination
    GPUSHMEM_COLL_SYNC_WORDS = 80,
    GPUSHMEM_COLL_ROUNDS_MOST = 32, // of those for odd and as many for even numbers
    GPUSHMEM_COLL_FLAGS_AT = 128 + 8 * GPUSHMEM_COLL_SYNC_WORDS,
    GPUSHMEM_COLL_KERNEL_LL = 12 << 10,
    GPUSHMEM_COLL_KERNEL_STAGE = 16 << 10, // or more: gpushmem_coll_stage_bytes
    GPUSHMEM_COLL_STREAM_BLOCKS = 64,      // at most
    GPUSHMEM_COLL_STREAM_LL = 3 << 20,
    GPUSHMEM_COLL_STREAM_LL_OF_TWO = 768 << 10, // dense packets take over
    GPUSHMEM_COLL_STREAM_STAGE = 64 << 10,
    // Slots of dense packets that one chunk has at most; there are two buffers.
    GPUSHMEM_COLL_DENSE_SLOT = 64,      // bytes in memory,
    GPUSHMEM_COLL_DENSE_DATA = 48,      // and of data
    GPUSHMEM_COLL_DENSE_ROW = 32,       // slots that lie together,
    GPUSHMEM_COLL_DENSE_TILE = 32 * 48, // and bytes of data in them
    GPUSHMEM_COLL_STREAM_SLOTS = 16 * 512,
    GPUSHMEM_COLL_KERNEL_SLOTS = 43 * 32, // 64 KiB of data
    GPUSHMEM_COLL_DENSE_MOST = 1 << 30,   // bytes of a block: its slots are counted in 32 bits
    // Largest block that kernels send in packets of 8 bytes of data; and where there are dense
    // ones, a unit for each thread of a warp.
    GPUSHMEM_COLL_KERNEL_PACKETS = 1024,
    GPUSHMEM_COLL_KERNEL_PACKETS_OF_TWO = 256,
    GPUSHMEM_COLL_FLAG_WORDS = 4, // per block and member: enum gpushmem_coll_flag
    // Blocks of an operation by nodes, at most: the flags of the others count on the way back.
    GPUSHMEM_COLL_NODE_BLOCKS = GPUSHMEM_COLL_STREAM_BLOCKS / 2,
    GPUSHMEM_COLL_KEPT = 2 << 20, // bytes of a PE's source that one reduce in place may keep
    GPUSHMEM_TEAM_STREAM_EPOCHS = GPUSHMEM_TEAM_EPOCHS - GPUSHMEM_COLL_STREAM_BLOCKS,
};

// The word of a channel that was given up, and why. A team that has the slot later has another
// handle.
GPUSHMEM_HOST_DEVICE uint64_t gpushmem_team_poison(int32_t team, int32_t status)
{
    return (uint64_t)(uint32_t)-status << 32 | ((uint32_t)team | 0x80000000u);
}

// Room for flags of members: whole cache lines.
GPUSHMEM_HOST_DEVICE uint32_t gpushmem_coll_row(int32_t room)
{
    return ((uint32_t)room + 15) & ~15u;
}

GPUSHMEM_HOST_DEVICE uint64_t gpushmem_coll_ll_at(int32_t room, bool stream)
{
    uint64_t blocks = stream ? GPUSHMEM_COLL_STREAM_BLOCKS : 1;
    return GPUSHMEM_COLL_FLAGS_AT + 8 * GPUSHMEM_COLL_FLAG_WORDS * blocks * gpushmem_coll_row(room);
}

// Bytes of packets of 8 bytes of data.
GPUSHMEM_HOST_DEVICE uint64_t gpushmem_coll_ll_bytes(int32_t room, bool stream)
{
    return (uint64_t)(!stream     ? GPUSHMEM_COLL_KERNEL_LL
                      : room <= 2 ? GPUSHMEM_COLL_STREAM_LL_OF_TWO
                                  : GPUSHMEM_COLL_STREAM_LL);
}

GPUSHMEM_HOST_DEVICE uint64_t gpushmem_coll_stage_at(int32_t room, bool stream)
{
    return gpushmem_coll_ll_at(room, stream) + gpushmem_coll_ll_bytes(room, stream);
}

// Bytes of staging memory, of which each member of any team can have 16.
GPUSHMEM_HOST_DEVICE uint64_t gpushmem_coll_stage_bytes(int32_t room, bool stream)
{
    uint64_t least = 16 * (uint64_t)gpushmem_coll_row(room);
    uint64_t bytes = stream ? GPUSHMEM_COLL_STREAM_STAGE : GPUSHMEM_COLL_KERNEL_STAGE;
    return bytes < least ? least : bytes;
}

// A member's slot of it where all have one: whole units of 16 bytes, and one at least.
GPUSHMEM_HOST_DEVICE uint64_t gpushmem_coll_fetch_slot(int32_t room, int32_t n, bool stream)
{
    return gpushmem_coll_stage_bytes(room, stream) / (uint32_t)n & ~(uint64_t)15;
}

// [2][room] struct gpushmem_coll_call, for odd and even numbers: of kernels' channels where members
// compare their calls (GPUSHMEM_DEV_TEAM_CHECKED).
GPUSHMEM_HOST_DEVICE uint64_t gpushmem_coll_calls_at(int32_t room)
{
    return gpushmem_coll_stage_at(room, false) + gpushmem_coll_stage_bytes(room, false);
}

// Bytes of one channel for kernels: a multiple of 128.
GPUSHMEM_HOST_DEVICE uint64_t gpushmem_coll_channel_bytes(int32_t room, bool checked)
{
    uint64_t calls = checked ? 2 * (uint64_t)(uint32_t)room : 0;
    return gpushmem_coll_calls_at(room) + calls * sizeof(struct gpushmem_coll_call);
}

GPUSHMEM_HOST_DEVICE uint32_t gpushmem_coll_dense_slots(bool stream)
{
    return stream ? GPUSHMEM_COLL_STREAM_SLOTS : GPUSHMEM_COLL_KERNEL_SLOTS;
}

GPUSHMEM_HOST_DEVICE uint32_t gpushmem_coll_dense_tiles(uint64_t bytes)
{
    return ((uint32_t)bytes + GPUSHMEM_COLL_DENSE_TILE - 1) / GPUSHMEM_COLL_DENSE_TILE;
}

// Into how many chunks a block is divided, and slots of each: whole rows.
GPUSHMEM_HOST_DEVICE uint32_t gpushmem_coll_dense_chunks(uint64_t bytes, bool stream)
{
    uint32_t rows = gpushmem_coll_dense_slots(stream) / GPUSHMEM_COLL_DENSE_ROW;
    return (gpushmem_coll_dense_tiles(bytes) + rows - 1) / rows;
}

GPUSHMEM_HOST_DEVICE uint32_t gpushmem_coll_dense_chunk_slots(uint64_t bytes, uint32_t chunks)
{
    uint32_t tiles = gpushmem_coll_dense_tiles(bytes);
    if (chunks > 1) // most have one, and a division takes long
        tiles = (tiles + chunks - 1) / chunks;
    return tiles * GPUSHMEM_COLL_DENSE_ROW;
}

// Bytes of both buffers of a sequence.
GPUSHMEM_HOST_DEVICE uint64_t gpushmem_coll_dense_bytes(bool stream)
{
    return 2 * (uint64_t)gpushmem_coll_dense_slots(stream) * GPUSHMEM_COLL_DENSE_SLOT;
}

// Where dense packets lie in the scratch for streams: those of streams, and then of each channel.
// Teams with room for more than two members have none.
GPUSHMEM_HOST_DEVICE uint64_t gpushmem_coll_dense_at(int32_t room, bool stream, int channel)
{
    uint64_t at = gpushmem_coll_stage_at(room, true) + gpushmem_coll_stage_bytes(room, true);
    if (stream || room != 2)
        return at;
    return at + gpushmem_coll_dense_bytes(true) +
           (uint64_t)channel * gpushmem_coll_dense_bytes(false);
}

// A team's first channel has scratch of its own. The others, 1 .. CHANNELS-1, follow what streams
// have; and those of CHANNELS would end there.
GPUSHMEM_HOST_DEVICE uint64_t gpushmem_coll_channel_at(int32_t room, int channel, bool checked)
{
    return gpushmem_coll_dense_at(room, false, GPUSHMEM_TEAM_CHANNELS) +
           (uint64_t)(channel - 1) * gpushmem_coll_channel_bytes(room, checked);
}

// Bytes of a team for kernels, and those more for streams: multiples of 128.
GPUSHMEM_HOST_DEVICE uint64_t gpushmem_coll_kernel_bytes(int32_t room, bool checked)
{
    return gpushmem_coll_channel_bytes(room, checked);
}

GPUSHMEM_HOST_DEVICE uint64_t gpushmem_coll_stream_bytes(int32_t room, bool checked)
{
    return gpushmem_coll_channel_at(room, GPUSHMEM_TEAM_CHANNELS, checked);
}

// Payload of one member's message in packets: two buffers for each of the others, half of it flags.
// Of two members it is the same whatever the room. In 32 bits: a kernel divides 64 in a hundred
// instructions.
GPUSHMEM_HOST_DEVICE uint64_t gpushmem_coll_ll_most(int32_t n, bool stream)
{
    uint32_t bytes = (uint32_t)gpushmem_coll_ll_bytes(n, stream);
    return n < 2 ? 0 : n == 2 ? bytes / 4 : bytes / (4 * (uint32_t)(n - 1)) & ~15u;
}

// Where in a channel's scratch `to` keeps the packets of `from`, of operations with `odd` numbers.
GPUSHMEM_HOST_DEVICE uint64_t gpushmem_coll_ll_place(int32_t room, int32_t n, bool stream,
                                                     uint32_t odd, int32_t from, int32_t to)
{
    uint64_t slot = 2 * gpushmem_coll_ll_most(n, stream);
    uint32_t index = (uint32_t)(from < to ? from : from - 1);
    return gpushmem_coll_ll_at(room, stream) + (odd * (uint32_t)(n - 1) + index) * slot;
}

// Staging memory that one operation may use, while members may still be in the one before.
GPUSHMEM_HOST_DEVICE uint64_t gpushmem_coll_half_stage(bool stream)
{
    return (uint64_t)(stream ? GPUSHMEM_COLL_STREAM_STAGE : GPUSHMEM_COLL_KERNEL_STAGE) / 2;
}

// Blocks that are gathered begin at multiples of 16.
GPUSHMEM_HOST_DEVICE uint64_t gpushmem_coll_padded(uint64_t bytes)
{
    return (bytes + 15) & ~(uint64_t)15;
}

// Whether a team of which some member is behind a NIC carries the operation out in rounds.
GPUSHMEM_HOST_DEVICE bool gpushmem_coll_in_rounds(int32_t kind, uint64_t bytes, int32_t n,
                                                  bool stream)
{
    bool folds = kind == GPUSHMEM_COLL_REDUCE || kind == GPUSHMEM_COLL_INSCAN ||
                 kind == GPUSHMEM_COLL_EXSCAN;
    bool gathers = folds || kind == GPUSHMEM_COLL_FCOLLECT;
    uint64_t most = gpushmem_coll_half_stage(stream), blocks = gathers ? (uint32_t)n : 1;
    return (gathers || kind == GPUSHMEM_COLL_BROADCAST) && bytes <= most &&
           gpushmem_coll_padded(bytes) * blocks <= most;
}

// In pieces of so many bytes a block or share travels by nodes: many of a small one, so that
// several blocks and nodes work at once, and not too small for a NIC.
GPUSHMEM_HOST_DEVICE uint64_t gpushmem_coll_node_piece(uint64_t bytes)
{
    uint64_t piece = (bytes / 16 + 4095) & ~(uint64_t)4095;
    return piece < (16 << 10) ? 16 << 10 : piece > (128 << 10) ? 128 << 10 : piece;
}

// Whether an element is folded as a whole of more than the 8 bytes that packets carry.
GPUSHMEM_HOST_DEVICE bool gpushmem_coll_is_wide(int32_t kind, int32_t type, int32_t fold)
{
    return kind >= GPUSHMEM_COLL_REDUCE && type == GPUSHMEM_COLL_COMPLEXD &&
           fold != GPUSHMEM_COLL_SUM;
}

// Payload of one member's message in kernels' staging memory.
GPUSHMEM_HOST_DEVICE uint64_t gpushmem_coll_stage_most(int32_t n)
{
    return n < 2 ? 0 : GPUSHMEM_COLL_KERNEL_STAGE / (2 * (uint64_t)(n - 1)) & ~(uint64_t)15;
}

// Whether a team has memory for dense packets, and whether two members that have it may use them,
// for whatever size.
GPUSHMEM_HOST_DEVICE bool gpushmem_coll_has_dense(uint32_t flags)
{
    const uint32_t asked = GPUSHMEM_DEV_TEAM_DIRECT | GPUSHMEM_DEV_TEAM_STREAM;
    return (flags & asked) == asked && flags >> GPUSHMEM_DEV_TEAM_ROOM_SHIFT == 2;
}

GPUSHMEM_HOST_DEVICE bool gpushmem_coll_may_be_dense(int32_t kind, int32_t n, uint32_t flags)
{
    return n == 2 && gpushmem_coll_has_dense(flags) && kind != GPUSHMEM_COLL_COLLECT &&
           kind != GPUSHMEM_COLL_ALLTOALLS;
}

GPUSHMEM_HOST_DEVICE uint64_t gpushmem_coll_kernel_packets(int32_t kind, int32_t n, uint32_t flags)
{
    return gpushmem_coll_may_be_dense(kind, n, flags) ? +GPUSHMEM_COLL_KERNEL_PACKETS_OF_TWO
                                                      : +GPUSHMEM_COLL_KERNEL_PACKETS;
}

// ---- Blocks of an operation ----

GPUSHMEM_HOST_DEVICE uint64_t gpushmem_coll_bytes(const struct gpushmem_coll_op *op)
{
    return op->n * op->width;
}

// Bytes that travel between two members.
GPUSHMEM_HOST_DEVICE uint64_t gpushmem_coll_message(const struct gpushmem_coll_op *op, int32_t from,
                                                    int32_t to)
{
    bool none = (op->kind == GPUSHMEM_COLL_BROADCAST && from != op->root) ||
                (op->kind >= GPUSHMEM_COLL_INSCAN && from > to);
    return none ? 0 : gpushmem_coll_bytes(op);
}

// Where the block for `rank` begins in source.
GPUSHMEM_HOST_DEVICE const char *gpushmem_coll_source(const struct gpushmem_coll_op *op,
                                                      int32_t rank)
{
    uint64_t at = 0;
    if (op->kind == GPUSHMEM_COLL_ALLTOALL || op->kind == GPUSHMEM_COLL_REDUCESCATTER)
        at = (uint64_t)rank * gpushmem_coll_bytes(op);
    if (op->kind == GPUSHMEM_COLL_ALLTOALLS)
        at = (uint64_t)rank * gpushmem_coll_bytes(op) * (uint64_t)op->source_stride;
    return (const char *)op->source + at;
}

// Where the block of `rank` goes in dest, if nothing is folded.
GPUSHMEM_HOST_DEVICE char *gpushmem_coll_dest(const struct gpushmem_coll_op *op, int32_t rank)
{
    uint64_t at = 0;
    if (op->kind == GPUSHMEM_COLL_FCOLLECT || op->kind == GPUSHMEM_COLL_ALLTOALL)
        at = (uint64_t)rank * gpushmem_coll_bytes(op);
    if (op->kind == GPUSHMEM_COLL_ALLTOALLS)
        at = (uint64_t)rank * gpushmem_coll_bytes(op) * (uint64_t)op->dest_stride;
    return (char *)op->dest + at;
}

// Where all members' blocks lie of which `rank` names its own: in place, the block of an fcollect
// is that of dest, and the result of a reducescatter that of source.
GPUSHMEM_HOST_DEVICE const void *gpushmem_coll_all_source(const struct gpushmem_coll_op *op,
                                                          int32_t rank)
{
    bool in_place =
        op->kind == GPUSHMEM_COLL_FCOLLECT && op->source == gpushmem_coll_dest(op, rank);
    return in_place ? op->dest : op->source;
}

GPUSHMEM_HOST_DEVICE const void *gpushmem_coll_all_dest(const struct gpushmem_coll_op *op,
                                                        int32_t rank)
{
    bool in_place =
        op->kind == GPUSHMEM_COLL_REDUCESCATTER && op->dest == gpushmem_coll_source(op, rank);
    return in_place ? op->source : op->dest;
}

GPUSHMEM_STATIC_ASSERT(sizeof(struct gpushmem_dev_team) == 64, "ABI");
GPUSHMEM_STATIC_ASSERT(sizeof(struct gpushmem_coll_call) == 64, "ABI");

#endif
