// SPDX-License-Identifier: BSD-3-Clause
// The command ring and the replies, part of gpushmem/device_abi.h.
//
// A device thread asks for work by writing a 64-byte command into a ring in host memory; a proxy
// thread of the host reads the commands in order and posts them to a transport. Nobody ever clears
// a slot: each of a command's eight words carries the lap bit of the pass it was written in, so a
// word is either of this pass or visibly stale, whatever order they land in.
#ifndef GPUSHMEM_IMPL_COMMAND_RING_H
#define GPUSHMEM_IMPL_COMMAND_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gpushmem/impl/host_device.h"

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
    // the context wants a queue towards `pe` that kernels post to: gpushmem_nic_queue.state tells
    GPUSHMEM_CMD_NIC_QUEUE = 14,
    GPUSHMEM_CMD_LAST = GPUSHMEM_CMD_NIC_QUEUE,
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
    int32_t failed; // how many commands have failed, of those below `completed`; it wraps
    uint32_t pad3[11];
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

GPUSHMEM_HOST_DEVICE uint64_t gpushmem_reply_pack(uint32_t nonce, bool failed, uint32_t bits)
{
    return (failed ? GPUSHMEM_REPLY_FAILED : 0) | (uint64_t)nonce << 32 | bits;
}

GPUSHMEM_HOST_DEVICE bool gpushmem_reply_ready(struct gpushmem_reply r, uint32_t nonce)
{
    return (r.low >> 32 & GPUSHMEM_REPLY_NONCE) == nonce &&
           (r.high >> 32 & GPUSHMEM_REPLY_NONCE) == nonce;
}

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
GPUSHMEM_STATIC_ASSERT(sizeof(struct gpushmem_ring_layout) == 32, "ABI");

#endif
