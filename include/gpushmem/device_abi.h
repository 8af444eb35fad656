// SPDX-License-Identifier: BSD-3-Clause
// What host and device agree on: the command ring and its replies (impl/command_ring.h), teams and
// their collectives (impl/team_layout.h), queues of NICs (impl/nic_queue.h), errors, and the handle
// of kernels. Plain data, versioned; compiles as C11, C++17 and CUDA. docs/design/kernels.md says
// why it looks like this.
#ifndef GPUSHMEM_DEVICE_ABI_H
#define GPUSHMEM_DEVICE_ABI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gpushmem/impl/command_ring.h"
#include "gpushmem/impl/nic_queue.h"
#include "gpushmem/impl/team_layout.h"
#include "gpushmem/types.h"

// Raised whenever anything here, or in those headers, changes its meaning or layout.
#define GPUSHMEM_DEVICE_ABI 19

// ---- Errors
// ------------------------------------------------------------------------------------------

// What a thread of a kernel reports: the first thing that went wrong, or what it waits for. Host
// memory, written by the thread that won the claim of the same number.
enum gpushmem_fault_number {
    GPUSHMEM_FAULT_FIRST = 0,   // what went wrong first
    GPUSHMEM_FAULT_WAITING = 1, // the answer to gpushmem_device_control.question
    GPUSHMEM_FAULTS = 2,
};

// What the host asks of waiting threads: a number that tells a question from earlier ones, from 1
// on, above the bits of how long a wait has lasted at least, in units of 2^26 ns (67 ms).
enum {
    GPUSHMEM_QUESTION_NUMBER_SHIFT = 21,
    GPUSHMEM_QUESTION_NUMBERS = 1 << 10,
    GPUSHMEM_QUESTION_UNIT_SHIFT = 26,
};

// Of the word that a thread waited for.
enum gpushmem_fault_word {
    GPUSHMEM_FAULT_NO_WORD = 0, // not about one word. `seen`: in which collective, or 0
    GPUSHMEM_FAULT_UNSIGNED = 1,
    GPUSHMEM_FAULT_SIGNED = 2,
    // no word, but a context: `seen` is its number, `wanted` how many there are; `cmp` is not 0 if
    // its other fields are not those of a context
    GPUSHMEM_FAULT_CONTEXT = 3,
    GPUSHMEM_FAULT_GRID = 4, // no word: a grid cannot meet, for the way in which it was launched
    // no word: members of a team call differently. `pe` passes `seen`, PE `bytes` passes `wanted`;
    // `cmp` says what: enum gpushmem_coll_call_word; `address` is the collective (that enum's WHAT)
    GPUSHMEM_FAULT_CALL = 5,
    // no word, but the rank `pe` in a call on a context of a team: `seen` is that, `wanted` how
    // many ranks it has, 0: this PE is in no such team
    GPUSHMEM_FAULT_RANK = 6,
    // no word: `seen` is no team or channel of this PE, or with `wanted` none that a grid may use
    GPUSHMEM_FAULT_TEAM = 7,
    // no word: an argument of a collective, `cmp` says which: enum gpushmem_coll_call_word. A root
    // or a stride is `seen`, and a team has `wanted` members; dest overlaps source. `address` is
    // the collective
    GPUSHMEM_FAULT_ARGUMENT = 8,
    GPUSHMEM_FAULT_BUSY = 9, // no word: another operation of the same sequence is under way
    // no word: `seen` is no signal operation or, if `wanted`, no comparison
    GPUSHMEM_FAULT_OPERATOR = 10,
    // no word: strides below 1, `seen` at the PE and `wanted` here
    GPUSHMEM_FAULT_STRIDE = 11,
    GPUSHMEM_FAULT_LOCAL =
        12, // no word: the source of a put or, if `wanted`, dest of a get is NULL
};

struct gpushmem_device_fault {
    // 0: nothing; positive: no failure, but the answer to that question. Written last
    int32_t status;
    int32_t pe; // the PE named in the call, or -1
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
    // not 0: the first thread that sees it and has waited for so long says what it waits for
    int32_t question;
    uint32_t reserved0;
    // What programs have of the heap beside its first piece, which ends at gpushmem_dev.sync: from
    // where on, and to where now, as offsets. The last grows.
    uint64_t heap_first_bytes;
    uint64_t heap_bytes;
    uint64_t reserved[4];
};

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
    // kernels on CPU threads count their loads and stores (GPUSHMEM_STATS)
    GPUSHMEM_DEV_COUNTED = 32,
    // kernels on CPU threads ask whether memory is in an allocated block (GPUSHMEM_CHECK)
    GPUSHMEM_DEV_BLOCKS = 64,
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

enum { GPUSHMEM_DEV_NEAR_PEERS = 8, GPUSHMEM_DEV_PLAIN_BYTES = 64 };

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
    // [n_pes] where a peer's heap is mapped here, less where this PE's is, plus 1; 0: through a
    // ring
    const uint64_t *away;
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
    // away[0 .. 7] once more: kernel arguments and constants are read in an instant, while away[]
    // has to be read from memory again after each fence
    uint64_t near_away[GPUSHMEM_DEV_NEAR_PEERS];
    struct gpushmem_ring_layout layout;
    // device memory: a copy of all this, for functions that are not inlined
    const struct gpushmem_dev *self;
    const struct gpushmem_dev_team *teams; // [n_teams] device memory
    struct gpushmem_dev_context *contexts; // [n_contexts], device memory; number k is [k - 1]
    uint32_t n_contexts;
    // From the heap's begin on so many GPUSHMEM_DEV_PLAIN_BYTES are the program's, whatever is
    // allocated there; of the rest `sync`, `control` and `flags` tell. 0 with GPUSHMEM_DEV_BLOCKS.
    uint32_t plain;
    // queues that kernels post to by themselves, device memory; NULL: none, all goes by rings
    struct gpushmem_nic *nic;
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
    // only in the emulation, and in no stream: returns when no kernel runs any more
    GPUSHMEM_STREAM_END = 9,
    // only in the emulation: `source` is a struct gpushmem_coll_op
    GPUSHMEM_STREAM_COLL = 10,
    GPUSHMEM_STREAM_P = 11, // `bytes` of `value`
    GPUSHMEM_STREAM_IPUT = 12,
    GPUSHMEM_STREAM_IGET = 13,
    GPUSHMEM_STREAM_KINDS = 14,
    // only in the emulation, and in no stream: returns when the stream has ended
    GPUSHMEM_STREAM_DRAIN = 14,
};

struct gpushmem_stream_op {
    int32_t kind;
    int32_t pe;
    int32_t op;   // signal operator, or comparison of a wait
    int32_t size; // bytes of an element of iput and iget, of a wait's word (0: 8; signed: negative)
    void *dest;
    const void *source;
    uint64_t bytes; // iput and iget: of all elements
    union {
        uint64_t *signal;
        int64_t dest_stride; // of iput and iget, in elements
    };
    union {
        uint64_t value; // the signal's, or what a wait compares with
        int64_t source_stride;
    };
};

GPUSHMEM_STATIC_ASSERT(sizeof(struct gpushmem_device_fault) == 128, "ABI");
GPUSHMEM_STATIC_ASSERT(sizeof(struct gpushmem_device_control) == 64, "ABI");
GPUSHMEM_STATIC_ASSERT(sizeof(struct gpushmem_dev_sync) == 64 * GPUSHMEM_DEV_SYNC_ROUNDS,
                       "one cache line per round");
GPUSHMEM_STATIC_ASSERT(sizeof(struct gpushmem_dev) == 264, "ABI");
GPUSHMEM_STATIC_ASSERT(sizeof(struct gpushmem_dev_ctx) == 16, "ABI");
GPUSHMEM_STATIC_ASSERT(sizeof(struct gpushmem_stream_op) == 56, "ABI");
GPUSHMEM_STATIC_ASSERT(sizeof(struct gpushmem_dev_context) == 280, "ABI");
GPUSHMEM_STATIC_ASSERT(offsetof(struct gpushmem_dev, contexts) == 240, "ABI");
GPUSHMEM_STATIC_ASSERT(offsetof(struct gpushmem_dev, timeout_ns) == 104, "ABI");

#endif
