// SPDX-License-Identifier: BSD-3-Clause
// Which ports become rails: GPUSHMEM_VERBS_DEVICES and the choice among what it allows. Pure
// functions.
#ifndef GPSH_VERBS_CHOOSE_H
#define GPSH_VERBS_CHOOSE_H

#include <stdbool.h>
#include <stdint.h>

enum { GPSH_VERBS_FILTER_MOST = 32, GPSH_VERBS_DEVICE_BYTES = 64 };

struct gpsh_verbs_filter {
    bool exclude; // the list names what is not to be used
    int n;
    struct {
        char device[GPSH_VERBS_DEVICE_BYTES];
        int port; // 0: any
    } items[GPSH_VERBS_FILTER_MOST];
};

// "dev,dev:port" takes these, in this order; "^dev,dev" leaves these out; empty allows all.
// GPUSHMEM_ERR_SETTING with a sentence if the text is neither; *filter is untouched then.
int gpsh_verbs_filter_parse(const char *text, struct gpsh_verbs_filter *filter);

// Rank of a port in the list (0 where there is no list), or -1: not to be used.
int gpsh_verbs_filter_rank(const struct gpsh_verbs_filter *filter, const char *device, int port);

struct gpsh_verbs_candidate {
    int rank;     // from the filter
    int distance; // enum gpsh_distance
    int index;    // the caller's
    int rate;     // Mb/s, 0: not known
    bool ethernet;
    bool slow; // set by gpsh_verbs_choose
};

// Sorts the candidates by rank, those of less than half the best rate last, then by distance,
// InfiniBand before Ethernet, rate and index; writes the `index` of up to n_rails of them to
// `chosen`: the PEs of a node spread over the equally good ones by `node_pe`. Returns how many.
// Every PE of a job with the same NICs comes to the same kind of network.
int gpsh_verbs_choose(struct gpsh_verbs_candidate *candidates, int n, bool listed, int n_rails,
                      int node_pe, int *chosen);

// The rate of a port in Mb/s from the codes of ibv_port_attr.
int gpsh_verbs_rate(uint8_t speed, uint8_t width);

#endif
