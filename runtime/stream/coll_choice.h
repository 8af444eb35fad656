// SPDX-License-Identifier: BSD-3-Clause
// How a collective of a stream is carried out: by operation, bytes and team, and nothing that two
// members could see differently.
#ifndef GPSH_COLL_CHOICE_H
#define GPSH_COLL_CHOICE_H

#include <stdbool.h>
#include <stdint.h>

#include "gpushmem/device_abi.h"
#include "proxy/device_nodes.h"

struct gpsh_coll_choice {
    int way; // enum gpushmem_coll_way
    unsigned blocks, threads;
};

// From which sizes on what is used (0: never), and what else the setting says.
struct gpsh_coll_limits {
    uint64_t packets; // largest sum of a member's messages that goes in packets
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

// `team` as kernels know it, and its nodes. `apart`: dest is another address than source.
struct gpsh_coll_choice gpsh_coll_choose(const struct gpushmem_coll_op *op,
                                         const struct gpushmem_dev_team *team,
                                         const struct gpsh_device_nodes *nodes, bool apart,
                                         const struct gpsh_coll_limits *limits);

// How many elements of a vector one reduce in place by nodes takes at most: so many that the copies
// which a PE has to keep of them fit into GPUSHMEM_COLL_KEPT. `nodes`: some.
uint64_t gpsh_coll_segment(const struct gpushmem_coll_op *op, int n,
                           const struct gpsh_device_nodes *nodes);

// The two operations of GPUSHMEM_COLL_TWO, one after the other on the same stream: halves of a
// broadcast; of a reduce, a reducescatter into this PE's part of dest, and an fcollect of the
// parts. Each part is folded in the order of the members, as ever.
void gpsh_coll_in_two(const struct gpushmem_coll_op *op, const struct gpushmem_dev_team *team,
                      struct gpushmem_coll_op two[2]);

const char *gpsh_coll_way_name(int way);
const char *gpsh_coll_kind_name(int kind);

#endif
