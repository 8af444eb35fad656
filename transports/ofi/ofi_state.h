// SPDX-License-Identifier: BSD-3-Clause
// The libfabric transport: what its files share.
//
//   wire     the endpoint that the peers address, with its completion queue, one for each PE. By it
//            come parcels, and one-sided operations that the provider carries out when the queue is
//            read: the service thread reads it while the program computes, and whoever waits does
//   lane     a channel's own endpoint, from which its one-sided operations start
//   flow     the operations of a channel towards a PE: slots, in posting order. Each goes by one-
//            sided operations (pieces), by records in parcels, or by both
//   agent    carries out the records that arrive
//
// Locks: a channel's before the wire's, and that before the book's of peers. The wire's is held by
// whoever reads its queue or sends.
#ifndef GPSH_OFI_STATE_H
#define GPSH_OFI_STATE_H

#include <pthread.h>
#include <rdma/fabric.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

#include "core/config.h"
#include "core/error.h"
#include "core/log.h"
#include "core/thread.h"
#include "transport/buffers.h"
#include "transport/transport.h"
#include "transports/ofi/ofi_blob.h"
#include "transports/ofi/ofi_parcel.h"

enum {
    OFI_PIECES = 25, // of a heap: its first, and what is added
    OFI_SLOTS = 256, // operations of a flow under way
    OFI_WINDOW = 8,  // parcels of a flow that are not answered
    // With so many not answered, further records wait for one to be full: a stream of small
    // operations is sent in few large messages, and a single one at once.
    OFI_EAGER_PARCELS = 2,
    OFI_RECEIVES = 64,
    OFI_BLOCK = 32768, // of a lane's registered memory
    OFI_BLOCKS = 64,
    OFI_ABOUT_BYTES = 512,
};

struct gpsh_ofi;
struct ofi_flow;

// The few functions that libfabric exports; the others are calls through its objects.
struct ofi_library {
    int (*getinfo)(uint32_t version, const char *node, const char *service, uint64_t flags,
                   const struct fi_info *hints, struct fi_info **info);
    void (*freeinfo)(struct fi_info *info);
    struct fi_info *(*dupinfo)(const struct fi_info *info);
    int (*fabric)(struct fi_fabric_attr *attr, struct fid_fabric **fabric, void *context);
    const char *(*strerror)(int error);
    uint32_t (*version)(void);
};

// Where and by which key peers reach a piece of memory. No key: they cannot, the agent does it.
struct ofi_key {
    uint64_t base, key;
    bool keyed;
};

// A PE that this one has to do with.
struct ofi_peer {
    int pe;
    _Atomic fi_addr_t address; // FI_ADDR_NOTAVAIL: libfabric has not taken it yet
    struct ofi_key keys[GPSH_REGIONS];
    uint64_t secret;
    uint64_t static_bytes;        // of its GPSH_STATIC
    struct ofi_inbox *inboxes;    // [wire] [channels], made by its first request
    uint32_t waiting;             // [wire] messages to it that are unsent
    bool wanted;                  // [book] in that list
    struct ofi_peer *next_wanted; // [book]
    _Atomic int lost;             // why everything towards it fails, or 0
    _Atomic uint64_t heard_ns;    // when something came from it
    uint64_t awaited_ns;          // [thread] since when something is; later where it was stopped
    uint64_t look;                // [thread] the last one at which something was awaited
    bool judged;                  // [thread] in that look
    uint64_t stopped_ns;          // [thread] since when it is silent and stopped, 0: it is not
    bool told;                    // [thread] that it is stopped
    uint64_t full;                // [wire] the last scan of what is unsent in which it took nothing
    _Atomic(struct ofi_flow *) flows[]; // [channels], made on first use
};

// What is kept of all PEs: ofi_peers.h.
struct ofi_book {
    uint8_t *rows; // [n_pes]
    size_t row_bytes;
    uint32_t address_bytes;
    bool bases;
    uint64_t *static_bytes;            // [n_pes], or NULL: all have as much as this PE
    _Atomic(struct ofi_peer *) *peers; // [n_pes], made on first use
    pthread_mutex_t lock;              // a leaf: whoever has it takes no other
    struct ofi_peer *wanted;           // whose addresses are to be taken together
    size_t n_wanted;
};

// A message, on its way or waiting to be received.
struct ofi_message {
    struct fi_context2 context; // first: providers may need it
    struct ofi_message *next;
    void *descriptor;
    int pe;        // where it goes, or -1: it receives
    uint32_t held; // records of it that the agent's queue still reads
    uint32_t bytes;
    struct ofi_parcel *parcel; // OFI_PARCEL_BYTES
};

// Registered memory that is cut into messages.
struct ofi_slab {
    struct ofi_slab *next;
    struct fid_mr *mr;
    char *base;
};

struct ofi_wire {
    pthread_mutex_t lock;
    struct fid_ep *ep;
    struct fid_cq *cq;
    int fd; // of the queue, or -1
    struct ofi_message *idle, *unsent, **unsent_end;
    struct ofi_message *unposted; // receives that libfabric had no room for
    struct ofi_slab *slabs;
    uint64_t scans;          // of the unsent ones
    uint32_t sending;        // messages that libfabric has
    _Atomic uint32_t helped; // passes by others than the thread
    _Atomic uint32_t vain;   // of those since the last that found something
};

// How an operation goes.
enum ofi_way {
    OFI_BY_RMA,
    OFI_BY_RECORD,
    OFI_BY_ATOMIC, // of the provider
};

struct ofi_slot {
    uint8_t kind, amo, width, flags, region;
    uint8_t way;   // enum ofi_way
    bool tail;     // its records, or its signal, wait for their turn behind earlier signals
    bool issued;   // all pieces are posted, all records but the tail's written
    bool landed;   // [wire] what it fetches by record is here
    bool borrowed; // one-sided operations read `local` itself
    char *local;
    char *captured; // copy of the source, to be freed
    uint64_t remote, bytes, signal, operand, compare;
    uint64_t offset;  // issued so far
    uint64_t after;   // operations up to this one come before it: a fence
    uint32_t parts;   // one-sided operations under way
    uint64_t record;  // number of its last record, or 0
    uint64_t value;   // what was fetched
    uint64_t fetched; // [wire] bytes that have come
    void *result;
    struct gpsh_completion *completion;
};

// What a request is at the target, and how far the agent is with it.
struct ofi_inbox {
    int pe, channel; // of the requests
    uint64_t seen;   // number of the last one
    uint64_t done;
    uint64_t pinged;
    uint8_t refused;           // enum ofi_refusal
    bool due;                  // a reply is
    struct ofi_message *reply; // being filled, or NULL
};

struct ofi_channel;

struct ofi_flow {
    struct ofi_channel *channel;
    struct gpsh_flow *pub;
    struct ofi_peer *peer;
    int pe;
    struct ofi_slot *slots; // [OFI_SLOTS]
    struct fid_mr *slots_mr;
    uint64_t begun;   // operations that are issued, tails apart
    uint64_t settled; // prefix of those with nothing one-sided under way and no tail
    uint64_t landed;  // prefix of those that are complete at the target
    uint64_t fence, epoch;
    uint64_t next_tail;        // no tail is before it
    uint32_t tails, atomics;   // under way
    struct ofi_message *open;  // parcel being filled
    uint64_t records;          // written, of all parcels
    uint64_t parcels;          // sent
    uint64_t ends[OFI_WINDOW]; // number of the last record of each parcel that is not answered
    uint64_t answered_parcels;
    _Atomic uint64_t answered; // [wire] records
    _Atomic uint64_t asked;    // parcels, for the pings
    uint64_t sent;             // [wire] records of those
    uint32_t pings;            // [wire] that are not answered
    _Atomic int refused;       // [wire] enum ofi_refusal
    _Atomic bool held;         // something waits for an answer
    _Atomic bool push;         // it is in a list of those to be driven
    bool dead, listed;
    int failing;      // why it is about to fail, or 0
    uint64_t watched; // completed when it was last looked at
    uint64_t dead_ns; // since when
    struct ofi_flow *next, *next_pushed;
    _Atomic bool in_watch; // the thread looks at it, or will: ofi_thread.c
    struct ofi_flow *next_watched;
};

// A one-sided operation under way.
struct ofi_request {
    struct fi_context2 context; // first
    struct ofi_request *next;
    struct ofi_flow *flow;
    struct ofi_slot *slot;
    char *block; // that it goes through, or NULL
    char *to;    // where the block's bytes belong, or NULL
    uint64_t bytes;
    bool atomic;
};

struct ofi_channel {
    struct gpsh_channel base;
    struct gpsh_ofi *ofi;
    int index;
    bool open, driving;
    pthread_mutex_t lock;
    // Flows that can go on, linked by next_pushed; whoever unlocks drives them: ofi_flow.c.
    _Atomic(struct ofi_flow *) pushed;
    struct fid_ep *ep;
    struct fid_cq *cq;
    struct ofi_request *requests, *idle;
    uint32_t passes;
    uint32_t under_way; // requests
    char *blocks;       // registered, or NULL
    struct fid_mr *blocks_mr;
    uint16_t free_blocks, free[OFI_BLOCKS];
    struct fid_mr *region_mrs[GPSH_REGIONS];
    struct ofi_flow *active; // with operations that are not complete
    uint64_t epoch;
    uint32_t losses; // of the transport's, that it has seen
    int retired;
};

struct ofi_agent;

struct gpsh_ofi {
    struct gpsh_transport base;
    struct gpsh_transport_env env;
    const struct ofi_library *library;
    struct fi_info *info, *spoiled; // what is chosen; what was, and did not work
    struct fid_fabric *fabric;
    struct fid_domain *domain;
    struct fid_av *av;
    // What the provider is like.
    bool virtual_addresses, local_keys, endpoint_keys, raw_keys, provider_keys;
    bool in_order; // messages between two PEs arrive in the order sent
    bool hmem;     // it moves GPU memory
    bool atomics;  // native ones are used
    bool atomics_in_order;
    uint64_t small; // puts up to this go as records
    uint64_t max_message, inject;
    uint64_t secret;
    struct ofi_book book;
    struct ofi_channel *channels;
    struct ofi_wire wire;
    struct ofi_agent *agent;
    struct gpsh_thread thread;
    atomic_bool stop;
    // Flows with operations under way, linked by next_watched: those that the thread has not seen
    // yet, and its own.
    _Atomic(struct ofi_flow *) entered;
    struct ofi_flow *watched;
    uint64_t looks;
    int wake; // eventfd
    _Atomic uint32_t losses;
    // Memory: pieces of the heap, then the other regions.
    struct fid_mr *heap_mrs[OFI_PIECES], *region_mrs[GPSH_REGIONS];
    _Atomic uint32_t n_pieces;
    uint64_t piece_ends[OFI_PIECES];        // heap offsets
    struct ofi_key *piece_keys[OFI_PIECES]; // [n_pes], from the second piece on
    struct gpsh_buffers buffers;            // keys[0]: a struct fid_mr, or NULL
    char host[64];                          // why the heap is not registered, or ""
    char about[OFI_ABOUT_BYTES];
};

static inline struct ofi_slot *ofi_slot_at(struct ofi_flow *flow, uint64_t number)
{
    return &flow->slots[(number - 1) % OFI_SLOTS];
}

// NULL: nothing was done with that PE yet.
static inline struct ofi_peer *ofi_peer_of(const struct gpsh_ofi *ofi, int pe)
{
    return atomic_load_explicit(&ofi->book.peers[pe], memory_order_acquire);
}

static inline bool ofi_is_inserted(const struct ofi_peer *peer)
{
    return atomic_load_explicit(&peer->address, memory_order_acquire) != FI_ADDR_NOTAVAIL;
}

static inline fi_addr_t ofi_address(const struct ofi_peer *peer)
{
    return atomic_load_explicit(&peer->address, memory_order_relaxed);
}

static inline struct ofi_flow *ofi_flow_of(const struct ofi_channel *channel, int pe)
{
    const struct ofi_peer *peer = ofi_peer_of(channel->ofi, pe);
    return peer ? atomic_load(&peer->flows[channel->index]) : NULL;
}

static inline bool ofi_device_heap(const struct gpsh_ofi *ofi)
{
    return ofi->env.regions[GPSH_HEAP].kind == GPSH_MEMORY_DEVICE;
}

#endif
