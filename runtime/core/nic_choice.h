// SPDX-License-Identifier: BSD-3-Clause
// Which ports of NICs a PE uses: GPUSHMEM_VERBS_DEVICES and the choice among what it allows. Pure
// functions: the verbs transport calls them for its PE, and `gpushmem topo` for every GPU of a
// machine.
#ifndef GPSH_NIC_CHOICE_H
#define GPSH_NIC_CHOICE_H

#include <stdbool.h>
#include <stdint.h>

enum { GPSH_NIC_FILTER_MOST = 32, GPSH_NIC_NAME_BYTES = 64 };

struct gpsh_nic_filter {
    bool exclude; // the list names what is not to be used
    int n;
    struct {
        char device[GPSH_NIC_NAME_BYTES];
        int port; // 0: any
    } items[GPSH_NIC_FILTER_MOST];
};

// "dev,dev:port" takes these, in this order; "^dev,dev" leaves these out; empty allows all.
// GPUSHMEM_ERR_SETTING with a sentence if the text is malformed; *filter is untouched then.
int gpsh_nic_filter_parse(const char *text, struct gpsh_nic_filter *filter);

// Rank of a port in the list (0 where there is no list), or -1: not to be used.
int gpsh_nic_filter_rank(const struct gpsh_nic_filter *filter, const char *device, int port);

struct gpsh_nic_candidate {
    int rank;     // from the filter
    int distance; // enum gpsh_distance
    int index;    // the caller's
    int rate;     // Mb/s, 0: not known
    bool ethernet;
    bool slow; // set by gpsh_nic_choose
};

// Sorts the candidates by rank; then those with at least half of the best rate come first; then by
// distance, InfiniBand before Ethernet, rate and index. Writes the `index` of up to n_rails of them
// to `chosen`, and returns how many. Equally good ones are shared out among the PEs of a node by
// `node_pe`. Every PE of a job with the same NICs comes to the same kind of network.
int gpsh_nic_choose(struct gpsh_nic_candidate *candidates, int n, bool listed, int n_rails,
                    int node_pe, int *chosen);

// What sets the better one of two candidates apart, after gpsh_nic_choose has been called with
// them.
enum gpsh_nic_reason {
    GPSH_NIC_BY_RANK,  // GPUSHMEM_VERBS_DEVICES lists it first
    GPSH_NIC_BY_SPEED, // the other has less than half the best rate
    GPSH_NIC_BY_DISTANCE,
    GPSH_NIC_BY_NETWORK, // InfiniBand goes before Ethernet
    GPSH_NIC_BY_RATE,
    GPSH_NIC_ALIKE, // nothing: PEs of a node are spread over them
};
enum gpsh_nic_reason gpsh_nic_difference(const struct gpsh_nic_candidate *x,
                                         const struct gpsh_nic_candidate *y);

// The rate of a port in Mb/s from the codes of ibv_port_attr.
int gpsh_nic_rate(uint8_t speed, uint8_t width);

#endif
