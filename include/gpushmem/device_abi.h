// SPDX-License-Identifier: BSD-3-Clause
// What host and device agree on: the command ring, the replies and the device handle. Plain data,
// versioned; compiles as C11, C++17 and CUDA. docs/adr/0003-command-ring.md says why it looks like
// this.
//
// A device thread asks for work by writing a 64-byte command into a ring in host memory; a proxy
// thread of the host reads the commands in order and posts them to a transport. Nobody ever clears
// a slot: each of a command's eight words carries the lap bit of the pass it was written in, so a
// word is either of this pass or visibly stale, whatever order they land in.
#ifndef GPUSHMEM_DEVICE_ABI_H
#define GPUSHMEM_DEVICE_ABI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gpushmem/types.h"

#if defined(__CUDACC__)
#define GPUSHMEM_HOST_DEVICE static __host__ __device__ __forceinline__
#else
#define GPUSHMEM_HOST_DEVICE static inline
#endif

#if defined(__cplusplus)
#define GPUSHMEM_STATIC_ASSERT(condition, text) static_assert(condition, text)
#else
#define GPUSHMEM_STATIC_ASSERT(condition, text) _Static_assert(condition, text)
#endif

// Raised whenever anything below changes its meaning or layout.
#define GPUSHMEM_DEVICE_ABI 8

// ---- Commands
// ------------------------------------------------------------------------------------------

// 0 is no opcode: zeroed memory is never a command.
enum gpushmem_opcode {
    GPUSHMEM_CMD_NOP = 1,
    GPUSHMEM_CMD_PUT = 2, // bytes from local to remote
    // `bytes` bytes to remote: the low ones of operand, and beyond 8, up to GPUSHMEM_INLINE_BYTES,
    // of local, compare, reply and extra too (then without flags)
    GPUSHMEM_CMD_PUT_INLINE = 3,
    // bytes from remote to local; with REPLY_VALUE (bytes <= 8) into the reply instead
    GPUSHMEM_CMD_GET = 4,
    GPUSHMEM_CMD_AMO = 5, // extra = enum gpushmem_amo, bytes = width 4 or 8
    // PUT, then the signal word at `compare` is set to (or increased by) operand
    GPUSHMEM_CMD_PUT_SIGNAL = 6,
    // `bytes` elements of size `extra`; operand and compare = strides at target and source
    GPUSHMEM_CMD_IPUT = 7,
    GPUSHMEM_CMD_IGET = 8, // the same; in elements, always target (destination) first
    // orders earlier commands of the ring, and those of up to four other rings
    // (gpushmem_fence_add), before later commands of the ring, per PE (pe = -1: all)
    GPUSHMEM_CMD_FENCE = 9,
    // completed_pe[pe] passes this command's index once all earlier ones to pe are complete
    GPUSHMEM_CMD_QUIET_PE = 10,
    // PUT_SIGNAL whose 1 to GPUSHMEM_SIGNAL_INLINE_BYTES bytes are in local, reply and extra; of
    // the flags only SIGNAL_ADD
    GPUSHMEM_CMD_PUT_SIGNAL_INLINE = 11,
    // answers with a context that has queues of its own: number | tag << 32; 0: there is none left
    GPUSHMEM_CMD_CONTEXT_CLAIM = 12,
    // the last command of a context, in its ring; operand = its tag
    GPUSHMEM_CMD_CONTEXT_FREE = 13,
    GPUSHMEM_CMD_LAST = GPUSHMEM_CMD_CONTEXT_FREE,
};

enum gpushmem_amo { // the same numbers as enum gpsh_amo of the transports
    GPUSHMEM_AMO_FETCH = 0,
    GPUSHMEM_AMO_SET = 1,
    GPUSHMEM_AMO_ADD = 2,
    GPUSHMEM_AMO_SWAP = 3,
    GPUSHMEM_AMO_CSWAP = 4,
    GPUSHMEM_AMO_AND = 5,
    GPUSHMEM_AMO_OR = 6,
    GPUSHMEM_AMO_XOR = 7,
};

enum gpushmem_command_flag {
    GPUSHMEM_CMD_REPLY = 1, // answer through the reply slot when complete
    // PUT kinds, with REPLY: answer as soon as the source may be reused
    GPUSHMEM_CMD_REPLY_SOURCE = 2,
    GPUSHMEM_CMD_REPLY_VALUE = 4, // GET, with REPLY: the bytes go into the reply
    GPUSHMEM_CMD_SIGNAL_ADD = 8,  // PUT_SIGNAL: add instead of set
    GPUSHMEM_CMD_FLAGS = 15,
};

// A command, unpacked. Addresses are those of the issuing PE: `remote` is where its own heap holds
// the object.
struct gpushmem_command {
    uint8_t opcode;  // enum gpushmem_opcode
    uint8_t flags;   // enum gpushmem_command_flag
    uint8_t context; // 0: that of the ring
    int32_t pe;
    uint64_t local;
    uint64_t remote;
    uint64_t bytes;
    uint64_t operand;
    uint64_t compare;
    uint64_t reply; // slot number << 32 | nonce (31 bits, never 0)
    uint64_t extra;
};

// Other rings of a FENCE: 16 bits of `extra` hold a ring's number plus one (0: none), and remote,
// bytes, operand or compare the number of its first command that the fence does not wait for.
enum { GPUSHMEM_FENCE_RINGS = 4 };

GPUSHMEM_HOST_DEVICE void gpushmem_fence_add(struct gpushmem_command *c, unsigned slot,
                                             uint32_t ring, uint64_t end)
{
    uint64_t *const ends[GPUSHMEM_FENCE_RINGS] = {&c->remote, &c->bytes, &c->operand, &c->compare};
    *ends[slot] = end;
    c->extra |= (uint64_t)(ring + 1) << 16 * slot;
}

// The ring in that slot plus one, or 0, and *end.
GPUSHMEM_HOST_DEVICE uint32_t gpushmem_fence_ring(const struct gpushmem_command *c, unsigned slot,
                                                  uint64_t *end)
{
    const uint64_t ends[GPUSHMEM_FENCE_RINGS] = {c->remote, c->bytes, c->operand, c->compare};
    *end = ends[slot];
    return (uint32_t)(c->extra >> 16 * slot & 0xffff);
}

enum { GPUSHMEM_INLINE_BYTES = 40, GPUSHMEM_SIGNAL_INLINE_BYTES = 24 };

#define GPUSHMEM_COMMAND_WORDS 8
#define GPUSHMEM_COMMAND_BYTES 64

// Word 0: lap (63) | bit 63 of words 1..7 (56..62) | opcode (48..55) | context (40..47) | flags
// (32..39) | pe (0..31). Words 1..7: local, remote, bytes, operand, compare, reply, extra, with the
// lap in bit 63.
#define GPUSHMEM_LAP_BIT 63

// The lap bit of command number `index` in a ring of 2^entries_log2 slots: 1 in the first pass, so
// that zeroed memory is stale.
GPUSHMEM_HOST_DEVICE uint64_t gpushmem_ring_lap(uint64_t index, unsigned entries_log2)
{
    return ~(index >> entries_log2) & 1;
}

GPUSHMEM_HOST_DEVICE void gpushmem_command_pack(const struct gpushmem_command *c, uint64_t lap,
                                                uint64_t *words)
{
    const uint64_t top = (uint64_t)1 << GPUSHMEM_LAP_BIT, bit = lap << GPUSHMEM_LAP_BIT;
    words[1] = (c->local & ~top) | bit;
    words[2] = (c->remote & ~top) | bit;
    words[3] = (c->bytes & ~top) | bit;
    words[4] = (c->operand & ~top) | bit;
    words[5] = (c->compare & ~top) | bit;
    words[6] = (c->reply & ~top) | bit;
    words[7] = (c->extra & ~top) | bit;
    uint64_t spill = (c->local >> 63) | (c->remote >> 63) << 1 | (c->bytes >> 63) << 2 |
                     (c->operand >> 63) << 3 | (c->compare >> 63) << 4 | (c->reply >> 63) << 5 |
                     (c->extra >> 63) << 6;
    words[0] = bit | spill << 56 | (uint64_t)c->opcode << 48 | (uint64_t)c->context << 40 |
               (uint64_t)c->flags << 32 | (uint32_t)c->pe;
}

// True if all eight words were written in the pass whose lap bit is `lap`.
GPUSHMEM_HOST_DEVICE bool gpushmem_command_ready(const uint64_t *words, uint64_t lap)
{
    uint64_t every =
        words[0] & words[1] & words[2] & words[3] & words[4] & words[5] & words[6] & words[7];
    uint64_t any =
        words[0] | words[1] | words[2] | words[3] | words[4] | words[5] | words[6] | words[7];
    return (lap ? every : ~any) >> GPUSHMEM_LAP_BIT;
}

GPUSHMEM_HOST_DEVICE void gpushmem_command_unpack(const uint64_t *words, struct gpushmem_command *c)
{
    const uint64_t low = ~((uint64_t)1 << GPUSHMEM_LAP_BIT);
    uint64_t spill = words[0] >> 56;
    c->opcode = (uint8_t)(words[0] >> 48);
    c->context = (uint8_t)(words[0] >> 40);
    c->flags = (uint8_t)(words[0] >> 32);
    c->pe = (int32_t)(uint32_t)words[0];
    c->local = (words[1] & low) | (spill >> 0 & 1) << 63;
    c->remote = (words[2] & low) | (spill >> 1 & 1) << 63;
    c->bytes = (words[3] & low) | (spill >> 2 & 1) << 63;
    c->operand = (words[4] & low) | (spill >> 3 & 1) << 63;
    c->compare = (words[5] & low) | (spill >> 4 & 1) << 63;
    c->reply = (words[6] & low) | (spill >> 5 & 1) << 63;
    c->extra = (words[7] & low) | (spill >> 6 & 1) << 63;
}

// ---- Rings
// ------------------------------------------------------------------------------------------

// Host memory, written by the proxy, and by a device thread that declares the ring lost. The counts
// are of commands since the start and only grow.
struct gpushmem_ring_status {
    uint64_t consumed; // slots of commands below this may be written again; published in batches
    int32_t closed;    // the same as `error`: each count comes with it in one load of 16 bytes
    uint32_t pad0;
    uint64_t pad2[6];
    // commands below this are complete at their targets (or have failed): what quiet waits for
    uint64_t completed;
    int32_t error; // 0, or why no command of this ring may be waited for any more
    // not 0: closed because a device thread left a slot unwritten; no later slot is ever read
    uint32_t lost;
    uint64_t pad3[6];
};

// The head of a ring that is closed or lost: no count ever reaches it, so a thread that reserves a
// slot finds no room, asks the host, and learns the reason at once.
#define GPUSHMEM_RING_LOST ((uint64_t)1 << 62)

struct gpushmem_ring {
    uint64_t *slots; // host memory, [entries][8]
    uint64_t *head;  // device memory: number of the next command to write
    // device memory: a recent status->consumed, so that host memory is rarely read
    uint64_t *consumed_seen;
    struct gpushmem_ring_status *status; // host memory
    uint64_t *completed_pe;              // host memory, [n_pes]: answers to QUIET_PE
    // CPU emulation: not 0 while the proxy sleeps and wants to be woken; GPU: NULL
    uint32_t *sleeping;
    // device memory: commands below this held atomics on PEs that are also in `peers`
    uint64_t *mixed;
    uint64_t *completed_seen; // device memory: a recent status->completed
    // device memory: not 0 while one thread asks the host for consumed [0], completed [16]
    uint32_t *asking;
    uint32_t entries_log2;
    uint32_t number;
};

// Where all rings lie. Device code computes a ring's addresses from it: it is in registers or
// constant memory, and what is computed from it is known to be the same for a whole warp, while a
// descriptor would have to be read from memory again after each fence.
struct gpushmem_ring_layout {
    char *host;   // per ring: slots, status, completed_pe
    char *device; // per ring: GPUSHMEM_RING_DEVICE_BYTES
    uint64_t host_stride;
    uint32_t entries_log2;
    uint32_t reserved0;
};

enum {
    GPUSHMEM_RING_LINE = 128, // two cache lines: neighbours are prefetched in pairs
    // head; consumed_seen and mixed; completed_seen; asking
    GPUSHMEM_RING_DEVICE_BYTES = 4 * GPUSHMEM_RING_LINE,
};

// All but `sleeping`, which is NULL.
GPUSHMEM_HOST_DEVICE struct gpushmem_ring
gpushmem_ring_at(const struct gpushmem_ring_layout *layout, uint32_t number)
{
    char *host = layout->host + number * layout->host_stride;
    char *device = layout->device + (uint64_t)number * GPUSHMEM_RING_DEVICE_BYTES;
    char *status = host + ((uint64_t)GPUSHMEM_COMMAND_BYTES << layout->entries_log2);
    struct gpushmem_ring ring;
    ring.slots = (uint64_t *)host;
    ring.head = (uint64_t *)device;
    ring.consumed_seen = (uint64_t *)(device + GPUSHMEM_RING_LINE);
    ring.status = (struct gpushmem_ring_status *)status;
    ring.completed_pe = (uint64_t *)(status + GPUSHMEM_RING_LINE);
    ring.sleeping = NULL;
    ring.mixed = (uint64_t *)(device + GPUSHMEM_RING_LINE + 64);
    ring.completed_seen = (uint64_t *)(device + 2 * GPUSHMEM_RING_LINE);
    ring.asking = (uint32_t *)(device + 3 * GPUSHMEM_RING_LINE);
    ring.entries_log2 = layout->entries_log2;
    ring.number = number;
    return ring;
}

// ---- Replies
// ------------------------------------------------------------------------------------------

// Host memory, written by the proxy: each word holds half of a value and the nonce of the request
// it answers, so that one 16-byte load (of two words in any order) says whether the answer is
// there: low (value bits 0..31) and high.
//   word: failed (63) | nonce (32..62) | half of the value, or of the negative status if failed
//   (0..31)
struct gpushmem_reply {
    uint64_t low;
    uint64_t high;
};

// The owner word of a reply slot: BUSY while it is in use, else the last nonce used,
#define GPUSHMEM_REPLY_BUSY 0xffffffffu
// with LEFT if nobody waits for its answer any more: free again when the answer has come.
#define GPUSHMEM_REPLY_LEFT   0x80000000u
#define GPUSHMEM_REPLY_NONCE  0x7fffffffu
#define GPUSHMEM_REPLY_FAILED ((uint64_t)1 << 63)

GPUSHMEM_HOST_DEVICE uint64_t gpushmem_reply_pack(uint32_t nonce, bool failed, uint32_t half)
{
    return (failed ? GPUSHMEM_REPLY_FAILED : 0) | (uint64_t)nonce << 32 | half;
}

GPUSHMEM_HOST_DEVICE bool gpushmem_reply_ready(struct gpushmem_reply r, uint32_t nonce)
{
    return (r.low >> 32 & GPUSHMEM_REPLY_NONCE) == nonce &&
           (r.high >> 32 & GPUSHMEM_REPLY_NONCE) == nonce;
}

// ---- Errors
// ------------------------------------------------------------------------------------------

// What a thread of a kernel reports: the first thing that went wrong, or what it waits for. Host
// memory, written by the thread that won the claim of the same number.
enum gpushmem_fault_number {
    GPUSHMEM_FAULT_FIRST = 0,   // what went wrong first
    GPUSHMEM_FAULT_WAITING = 1, // the answer to gpushmem_device_control.question
    GPUSHMEM_FAULTS = 2,
};

// Of the word that a thread waited for.
enum gpushmem_fault_word {
    GPUSHMEM_FAULT_NO_WORD = 0, // not about one word
    GPUSHMEM_FAULT_UNSIGNED = 1,
    GPUSHMEM_FAULT_SIGNED = 2,
    // no word, but a context: `seen` is its number, `wanted` how many there are
    GPUSHMEM_FAULT_CONTEXT = 3,
    GPUSHMEM_FAULT_GRID = 4, // no word: a grid cannot meet, for the way in which it was launched
    // no word: members of a team call differently. `pe` passes `seen`, PE `bytes` passes `wanted`;
    // `cmp` says what: enum gpushmem_coll_call_word
    GPUSHMEM_FAULT_CALL = 5,
    // no word, but the rank `pe` in a call on a context of a team: `seen` is that, `wanted` how
    // many ranks it has, 0: this PE is in no such team
    GPUSHMEM_FAULT_RANK = 6,
    GPUSHMEM_FAULT_TEAM = 7, // no word: `seen` is no team or channel of this PE
    // no word: an argument of a collective, `cmp` says which: enum gpushmem_coll_call_word. A root
    // or a stride is `seen`, and a team has `wanted` members; dest overlaps source
    GPUSHMEM_FAULT_ARGUMENT = 8,
};

struct gpushmem_device_fault {
    int32_t status; // 0: nothing; 1: an answer, no failure. Written last
    int32_t pe;     // the PE named in the call, or -1
    uint32_t block[3];
    uint32_t thread[3];
    uint64_t address; // the offending address, or that of the word or words waited for, or 0
    uint64_t bytes;
    uint64_t seen;   // the word's last value, sign-extended if it is signed
    uint64_t wanted; // what it was compared with
    int32_t cmp;     // how: enum gpushmem_cmp
    uint32_t word;   // enum gpushmem_fault_word: says whether the three before mean anything
    uint64_t reserved[7];
};

// Host memory, written by the host, read in every device spin.
struct gpushmem_device_control {
    int32_t abort; // not 0: every device wait ends now with this status
    // not 0: a PE is lost (gpushmem_device_error says how long); waits on memory end with this
    // status
    int32_t peer_failed;
    // not 0: the first waiting thread that sees it says what it waits for
    int32_t question;
    uint32_t reserved0;
    // What programs have of the heap beside its first piece, which ends at gpushmem_dev.sync: from
    // where on, and to where now, as offsets. The last grows.
    uint64_t heap_first_bytes;
    uint64_t heap_bytes;
    uint64_t reserved[4];
};

// ---- Teams
// ------------------------------------------------------------------------------------------

// docs/adr/0028-teams-and-collectives.md. A team's handle is slot | generation << 8.
enum {
    GPUSHMEM_TEAM_SLOTS = 256,
    GPUSHMEM_TEAM_SLOT_MASK = 255,
    GPUSHMEM_TEAM_GENERATION_SHIFT = 8,
    GPUSHMEM_TEAM_PREDEFINED = 4,
};

enum gpushmem_dev_team_flag {
    // kernels load and store the heaps of all members
    GPUSHMEM_DEV_TEAM_DIRECT = 1,
    // the slot has the scratch that operations of streams need
    GPUSHMEM_DEV_TEAM_STREAM = 2,
    // a member was lost: its operations fail
    GPUSHMEM_DEV_TEAM_LOST = 4,
    // members compare their calls in kernels before they begin (GPUSHMEM_CHECK=1)
    GPUSHMEM_DEV_TEAM_CHECKED = 8,
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
    char *scratch;        // symmetric: for operations in kernels
    char *stream_scratch; // symmetric: for operations of streams, NULL without
    uint64_t *epochs;     // device memory of this PE, [GPUSHMEM_TEAM_EPOCHS]
    uint64_t reserved[1];
};

// Words per team in `epochs`. Word 0 is the sync of kernels; what the others count is the business
// of the collectives' bodies. They start above what any member has used in this slot.
enum { GPUSHMEM_TEAM_EPOCHS = 128 };

// ---- Collectives
// ------------------------------------------------------------------------------------------

// A team has channels, each a sequence of operations of its own, so that blocks that work side by
// side do not share one. A channel's handle is the team's with the channel's number in these bits,
// which the generation of a team does not reach.
enum {
    GPUSHMEM_TEAM_CHANNEL_SHIFT = 27,
    GPUSHMEM_TEAM_CHANNEL_MASK = 15,
    GPUSHMEM_TEAM_CHANNELS = 8, // of slots with scratch for streams; the others have one
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
    GPUSHMEM_COLL_COMPLEXD = 13,
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

// How the data travels (docs/adr/0028-teams-and-collectives.md).
enum gpushmem_coll_way {
    GPUSHMEM_COLL_AUTO = 0, // kernels choose
    GPUSHMEM_COLL_LL = 1,
    GPUSHMEM_COLL_STAGED = 2,
    GPUSHMEM_COLL_DIRECT = 3, // loads of the members' sources, stores to their dests
    GPUSHMEM_COLL_PUSH = 4,   // reduce of two members: stores to the other's dest, folded there
    GPUSHMEM_COLL_COPY = 5,   // copy engines between two kernels with the flags
    // of members behind NICs: rounds of dissemination, in which blocks are gathered
    GPUSHMEM_COLL_ROUNDS = 6,
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
    GPUSHMEM_COLL_PROGRESS = 2, // how many pieces of its push have arrived
    GPUSHMEM_COLL_COUNT = 3,    // collect: how many elements it brings
};

// What a member calls, for others to compare with what they do. `epoch` comes last.
enum gpushmem_coll_call_word {
    // kind (bits 0 to 7), type, operator, negated status of what is wrong with it, width (32 to 63)
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

// Where a channel's parts lie in its scratch, which begins with the poison word. `pes` is the
// job's number of PEs, so all teams have the same layout. Everything is written by other members
// (each word by one), and zero before the first use of the slot, never again.
enum {
    GPUSHMEM_COLL_ROUND_AT = 64, // this PE's own word: the packets were cleared
    GPUSHMEM_COLL_SYNC_AT = 128, // [GPUSHMEM_COLL_SYNC_WORDS] of dissemination
    GPUSHMEM_COLL_SYNC_WORDS = 80,
    GPUSHMEM_COLL_ROUNDS_MOST = 32, // of those for odd and as many for even numbers
    GPUSHMEM_COLL_FLAGS_AT = 128 + 8 * GPUSHMEM_COLL_SYNC_WORDS,
    GPUSHMEM_COLL_KERNEL_LL = 8 << 10,
    GPUSHMEM_COLL_KERNEL_STAGE = 16 << 10, // or more: gpushmem_coll_stage_bytes
    GPUSHMEM_COLL_STREAM_BLOCKS = 64,      // at most
    GPUSHMEM_COLL_STREAM_LL = 768 << 10,
    GPUSHMEM_COLL_STREAM_STAGE = 64 << 10,
    GPUSHMEM_COLL_PIECE = 64 << 10, // of a push: then a flag says that it is there
    GPUSHMEM_COLL_FLAG_WORDS = 4,   // per block and member: enum gpushmem_coll_flag
};

// Room for flags of members: whole cache lines.
GPUSHMEM_HOST_DEVICE uint32_t gpushmem_coll_row(int32_t pes)
{
    return ((uint32_t)pes + 15) & ~15u;
}

GPUSHMEM_HOST_DEVICE uint64_t gpushmem_coll_ll_at(int32_t pes, bool stream)
{
    uint64_t blocks = stream ? GPUSHMEM_COLL_STREAM_BLOCKS : 1;
    return GPUSHMEM_COLL_FLAGS_AT + 8 * GPUSHMEM_COLL_FLAG_WORDS * blocks * gpushmem_coll_row(pes);
}

GPUSHMEM_HOST_DEVICE uint64_t gpushmem_coll_stage_at(int32_t pes, bool stream)
{
    return gpushmem_coll_ll_at(pes, stream) +
           (uint64_t)(stream ? GPUSHMEM_COLL_STREAM_LL : GPUSHMEM_COLL_KERNEL_LL);
}

// Bytes of staging memory, of which each member of any team can have 16.
GPUSHMEM_HOST_DEVICE uint64_t gpushmem_coll_stage_bytes(int32_t pes, bool stream)
{
    uint64_t least = 16 * (uint64_t)gpushmem_coll_row(pes);
    uint64_t bytes = stream ? GPUSHMEM_COLL_STREAM_STAGE : GPUSHMEM_COLL_KERNEL_STAGE;
    return bytes < least ? least : bytes;
}

// A member's slot of it where all have one: whole units of 16 bytes, and one at least.
GPUSHMEM_HOST_DEVICE uint64_t gpushmem_coll_fetch_slot(int32_t pes, int32_t n, bool stream)
{
    return gpushmem_coll_stage_bytes(pes, stream) / (uint32_t)n & ~(uint64_t)15;
}

// [2][pes] struct gpushmem_coll_call, for odd and even numbers: only kernels' channels have them.
GPUSHMEM_HOST_DEVICE uint64_t gpushmem_coll_calls_at(int32_t pes)
{
    return gpushmem_coll_stage_at(pes, false) + gpushmem_coll_stage_bytes(pes, false);
}

// Bytes of one channel for kernels: a multiple of 128.
GPUSHMEM_HOST_DEVICE uint64_t gpushmem_coll_channel_bytes(int32_t pes)
{
    return gpushmem_coll_calls_at(pes) +
           2 * (uint64_t)(uint32_t)pes * sizeof(struct gpushmem_coll_call);
}

// A slot's first channel has scratch of its own. The others, 1 .. CHANNELS-1, follow what streams
// have.
GPUSHMEM_HOST_DEVICE uint64_t gpushmem_coll_channel_at(int32_t pes, int channel)
{
    return gpushmem_coll_stage_at(pes, true) + gpushmem_coll_stage_bytes(pes, true) +
           (uint64_t)(channel - 1) * gpushmem_coll_channel_bytes(pes);
}

// Bytes of a slot for kernels, and those more for streams: multiples of 128.
GPUSHMEM_HOST_DEVICE uint64_t gpushmem_coll_kernel_bytes(int32_t pes)
{
    return gpushmem_coll_channel_bytes(pes);
}

GPUSHMEM_HOST_DEVICE uint64_t gpushmem_coll_stream_bytes(int32_t pes)
{
    return gpushmem_coll_channel_at(pes, GPUSHMEM_TEAM_CHANNELS);
}

// Payload of one member's message in packets: two buffers for each of the others, half of it flags.
GPUSHMEM_HOST_DEVICE uint64_t gpushmem_coll_ll_most(int32_t n, bool stream)
{
    uint64_t bytes = (uint64_t)(stream ? GPUSHMEM_COLL_STREAM_LL : GPUSHMEM_COLL_KERNEL_LL);
    return n < 2 ? 0 : bytes / (4 * (uint64_t)(n - 1)) & ~(uint64_t)15;
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

// Whether an element is folded as a whole of more than the 8 bytes that packets carry.
GPUSHMEM_HOST_DEVICE bool gpushmem_coll_is_wide(int32_t kind, int32_t type, int32_t fold)
{
    return kind >= GPUSHMEM_COLL_REDUCE && type == GPUSHMEM_COLL_COMPLEXD &&
           fold == GPUSHMEM_COLL_PROD;
}

// Payload of one member's message in kernels' staging memory.
GPUSHMEM_HOST_DEVICE uint64_t gpushmem_coll_stage_most(int32_t n)
{
    return n < 2 ? 0 : GPUSHMEM_COLL_KERNEL_STAGE / (2 * (uint64_t)(n - 1)) & ~(uint64_t)15;
}

// ---- Handle
// ------------------------------------------------------------------------------------------

enum gpushmem_dev_flag {
    // atomics on peers in `peers` are executed by the issuing processor
    GPUSHMEM_DEV_DIRECT_ATOMICS = 1,
    // every PE is in `peers` and atomics are direct: the rings stay empty
    GPUSHMEM_DEV_ALL_DIRECT = 2,
    // the heap may be in host memory: fence at system scope before every command with payload, not
    // only where that is outside the heap
    GPUSHMEM_DEV_SYSTEM_SCOPE = 4,
    // the heap is GPU memory, and the rings are where that GPU reaches them
    GPUSHMEM_DEV_GPU_HEAP = 8,
    // no PE is in `peers`: no put is a store of the calling thread
    GPUSHMEM_DEV_NO_DIRECT = 16,
};

// Rounds of the device barrier: enough for 2^32 PEs.
enum { GPUSHMEM_DEV_SYNC_ROUNDS = 32 };

// Words of the device barrier, in symmetric memory: PE 2^round before this one writes its sequence
// number here.
struct gpushmem_dev_sync {
    struct {
        uint64_t sequence;
        uint64_t pad[7];
    } arrived[GPUSHMEM_DEV_SYNC_ROUNDS];
};

enum { GPUSHMEM_DEV_NEAR_PEERS = 8 };

// A context of kernels, as a value: copy it, pass it to kernels, keep it in shared memory. All
// zero: the default context. Contract: gpushmem/device.cuh, "Contexts".
struct gpushmem_dev_ctx {
    uint32_t number;  // 0: its operations go where the default context's go
    uint32_t tag;     // tells this claim of the number from earlier and later ones
    uint32_t options; // enum gpushmem_ctx_option
    int32_t team;     // PE numbers are ranks of it; GPUSHMEM_TEAM_WORLD: those of the job
};
#define GPUSHMEM_DEV_CTX_NONE 0xffffffffu // the number of the invalid context; tag: why
// To initialise one with.
#define GPUSHMEM_DEV_CTX_DEFAULT                                                                   \
    {                                                                                              \
        0, 0, 0, 0                                                                                 \
    }
#define GPUSHMEM_DEV_CTX_INVALID                                                                   \
    {                                                                                              \
        GPUSHMEM_DEV_CTX_NONE, 0, 0, 0                                                             \
    }

struct gpushmem_dev_context; // below

// Everything device code needs. Pass it to kernels by value, or use the functions without a handle
// argument, which read a copy that the launch (or gpushmem_init) put into the module. Valid until
// gpushmem_finalize.
struct gpushmem_dev {
    uint32_t abi;   // GPUSHMEM_DEVICE_ABI
    uint32_t flags; // enum gpushmem_dev_flag
    int32_t my_pe;
    int32_t n_pes;
    char *heap;
    // with the library's own part, from `sync` on, and room to grow: gpushmem_device_control knows
    // how large it is now
    uint64_t heap_bytes;
    // [n_pes] where a peer's heap is mapped here; NULL entry: through a ring
    char *const *peers;
    const struct gpushmem_ring *rings;   // [n_rings], device memory; `layout` says the same
    struct gpushmem_reply *replies;      // [2^replies_log2] host memory
    uint32_t *reply_owners;              // [2^replies_log2] device memory
    struct gpushmem_device_fault *fault; // [GPUSHMEM_FAULTS] host memory
    uint32_t *fault_claim;               // [GPUSHMEM_FAULTS] device memory
    const struct gpushmem_device_control *control; // host memory
    struct gpushmem_dev_sync *sync;                // symmetric
    uint64_t *sync_sequence; // device memory: barriers begun by this PE's kernels
    uint64_t timeout_ns;     // longest a device wait may last; 0: unbounded
    uint32_t n_rings;
    uint32_t replies_log2;
    // counts initialisations, so that an old handle is recognised
    uint32_t generation;
    uint32_t n_teams; // GPUSHMEM_TEAM_SLOTS, or 0: no teams
    // peers[0 .. 7] once more: kernel arguments and constants are read in an instant, while peers[]
    // has to be read from memory again after each fence
    char *near_peers[GPUSHMEM_DEV_NEAR_PEERS];
    struct gpushmem_ring_layout layout;
    // device memory: a copy of all this, for functions that are not inlined
    const struct gpushmem_dev *self;
    const struct gpushmem_dev_team *teams; // [n_teams] device memory
    struct gpushmem_dev_context *contexts; // [n_contexts], device memory; number k is [k - 1]
    uint32_t n_contexts;
    uint32_t reserved0;
};

// A context with a ring of its own: the same handle with that ring alone.
struct gpushmem_dev_context {
    struct gpushmem_dev dev;
    uint32_t tag; // of the context that has it now; 0: none
    uint32_t reserved[3];
};

// ---- Operations of a stream
// ---------------------------------------------------------------------------------------

// What gpushmem/stream.h enqueues. 0 is none: a kernel launched with it does nothing.
enum gpushmem_stream_kind {
    GPUSHMEM_STREAM_PUT = 1,
    GPUSHMEM_STREAM_GET = 2,
    GPUSHMEM_STREAM_PUT_SIGNAL = 3,
    GPUSHMEM_STREAM_SIGNAL = 4,
    GPUSHMEM_STREAM_WAIT = 5,
    GPUSHMEM_STREAM_QUIET = 6,
    GPUSHMEM_STREAM_BARRIER = 7,
    GPUSHMEM_STREAM_SYNC = 8,
    GPUSHMEM_STREAM_KINDS = 9,
    // only in the emulation, and in no stream: returns when no kernel runs any more
    GPUSHMEM_STREAM_END = 9,
    // only in the emulation: `source` is a struct gpushmem_coll_op
    GPUSHMEM_STREAM_COLL = 10,
};

struct gpushmem_stream_op {
    int32_t kind;
    int32_t pe;
    int32_t op; // signal operator, or comparison of a wait
    int32_t reserved;
    void *dest;
    const void *source;
    uint64_t bytes;
    uint64_t *signal;
    uint64_t value; // the signal's, or what a wait compares with
};

GPUSHMEM_STATIC_ASSERT(sizeof(struct gpushmem_ring_status) == 128,
                       "consumed and completed on cache lines of their own");
GPUSHMEM_STATIC_ASSERT(offsetof(struct gpushmem_ring_status, completed) == 64,
                       "completed on its own cache line");
GPUSHMEM_STATIC_ASSERT(offsetof(struct gpushmem_ring_status, closed) == 8 &&
                           offsetof(struct gpushmem_ring_status, error) == 72,
                       "the error follows each count");
GPUSHMEM_STATIC_ASSERT(sizeof(struct gpushmem_ring) == 80, "ABI");
GPUSHMEM_STATIC_ASSERT(offsetof(struct gpushmem_ring, entries_log2) == 72, "ABI");
GPUSHMEM_STATIC_ASSERT(sizeof(struct gpushmem_reply) == 16, "one 16-byte load");
GPUSHMEM_STATIC_ASSERT(sizeof(struct gpushmem_device_fault) == 128, "ABI");
GPUSHMEM_STATIC_ASSERT(sizeof(struct gpushmem_device_control) == 64, "ABI");
GPUSHMEM_STATIC_ASSERT(sizeof(struct gpushmem_dev_sync) == 64 * GPUSHMEM_DEV_SYNC_ROUNDS,
                       "one cache line per round");
GPUSHMEM_STATIC_ASSERT(sizeof(struct gpushmem_dev_team) == 64, "ABI");
GPUSHMEM_STATIC_ASSERT(sizeof(struct gpushmem_coll_call) == 64, "ABI");
GPUSHMEM_STATIC_ASSERT(sizeof(struct gpushmem_dev) == 256, "ABI");
GPUSHMEM_STATIC_ASSERT(sizeof(struct gpushmem_ring_layout) == 32, "ABI");
GPUSHMEM_STATIC_ASSERT(sizeof(struct gpushmem_dev_ctx) == 16, "ABI");
GPUSHMEM_STATIC_ASSERT(sizeof(struct gpushmem_dev_context) == 272, "ABI");
GPUSHMEM_STATIC_ASSERT(offsetof(struct gpushmem_dev, contexts) == 240, "ABI");
GPUSHMEM_STATIC_ASSERT(offsetof(struct gpushmem_dev, timeout_ns) == 104, "ABI");

#endif
