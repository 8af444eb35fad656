// SPDX-License-Identifier: BSD-3-Clause
// The schedules of collectives, of the host, of streams and of kernels, in one table: chosen by
// operation, bytes and team, and nothing that two members could see differently.
#ifndef GPSH_COLL_CHOICE_H
#define GPSH_COLL_CHOICE_H

#include <stdbool.h>
#include <stdint.h>

#include "gpushmem/device_abi.h"
#include "proxy/device_teams.h"

struct gpsh_coll_choice {
    int way; // enum gpushmem_coll_way
    unsigned blocks, threads;
};

// From which sizes on what is used (0: never), and what else the setting says.
struct gpsh_coll_limits {
    uint64_t packets; // largest sum of a member's messages that goes in packets
    uint64_t dense;   // largest block of a fold of two members that goes in dense packets
    uint64_t copies;  // smallest message that copy engines move
    unsigned blocks;  // at most
    unsigned nodes;   // 1: operations of several nodes go node by node
    unsigned round;   // 1: those of streams also where half or bfloat16 is rounded between nodes
};
extern struct gpsh_coll_limits gpsh_coll_limits; // in use

// Takes the words of the setting GPUSHMEM_COLLECTIVES. GPUSHMEM_ERR_SETTING with a sentence; the
// limits are as before then.
int gpsh_coll_limits_read(const char *text);
// The limits in use as that setting: the same text for the same limits.
void gpsh_coll_limits_print(char *text, size_t bytes);

// ---- Of the host ----

enum gpsh_coll_schedule {
    GPSH_COLL_BY_MEMBERS, // each member reads from, or sends to, each other
    GPSH_COLL_BY_NODES,   // what is the same for a node goes there once
    GPSH_COLL_CHAIN,      // folded from node to node
    GPSH_COLL_CHAIN_WIDE, // the same of partial results that are wider than the type
    GPSH_COLL_SMALL,      // by control words: all data comes to each member,
    GPSH_COLL_DOUBLING,   // or sums of twice as many in each round
    GPSH_COLL_SCHEDULES,
};

enum gpsh_coll_team_is {
    GPSH_COLL_NODE_TEAM = 1,  // it has several nodes, and some have several members
    GPSH_COLL_CHAIN_TEAM = 2, // and counters for shares that go from node to node
    GPSH_COLL_IN_ORDER = 4,   // the ranks of each node follow each other
    GPSH_COLL_NEIGHBORS = 8,  // each node has several members, whose memory is the processor's
    // it and the operation: the control words have room for that
    GPSH_COLL_FITS_WORDS = 1 << 18,
    GPSH_COLL_FITS_DOUBLING = 1 << 19,
    // the same bits however it is bracketed; of what is exact that need not be said
    GPSH_COLL_IN_PAIRS = 1 << 20,
    // blocks of a node for one of another's members, and they can be copied into one message
    GPSH_COLL_FITS_PACKED = 1 << 23,
};

struct gpsh_coll_team_facts {
    int n, nodes; // members; 0: it has no nodes
    unsigned is;  // enum gpsh_coll_team_is
};

// enum gpsh_coll_schedule of an operation on `bytes`. `exact`: the order of folding does not
// show. `wide`: partial results have no room in dest.
int gpsh_coll_choose_host(int kind, const struct gpsh_coll_team_facts *team, uint64_t bytes,
                          bool exact, bool wide);

// ---- Of streams ----

// `team` as kernels know it, and its nodes. `apart`: dest is another address than source.
struct gpsh_coll_choice gpsh_coll_choose(const struct gpushmem_coll_op *op,
                                         const struct gpushmem_dev_team *team,
                                         const struct gpsh_device_nodes *nodes, bool apart,
                                         const struct gpsh_coll_limits *limits);

// How many elements of a vector one reduce in place by nodes takes at most: so many that the copies
// which a PE has to keep of them fit into GPUSHMEM_COLL_KEPT. `nodes`: some.
uint64_t gpsh_coll_segment(const struct gpushmem_coll_op *op, int n,
                           const struct gpsh_device_nodes *nodes);

const char *gpsh_coll_way_name(int way);

#endif
