// SPDX-License-Identifier: BSD-3-Clause
// Large scans of a team with nodes: a share's holder has the results of its node's ranks, and sends
// the last sum to the holder on the next node.
#include <string.h>

#include "comm/coll_chain.h"
#include "comm/coll_scan.h"
#include "memory/heap.h"

enum { PREFIXES = 4 }; // sums on their way

// Bytes of a piece of results.
static size_t room(const struct gpsh_chain *chain)
{
    return chain->piece.most * chain->c->size;
}

// The sum of all ranks up to this node's last one, in memory that stays until it has left.
static int pass_on(struct gpsh_chain *chain, const struct gpsh_link *link, const char *sum)
{
    const struct gpsh_coll *c = chain->c;
    size_t at = (size_t)c->team->n + chain->gone % PREFIXES;
    char *prefix = chain->piece.out + at * room(chain);
    if (gpsh_chain_is_last(chain))
        return 0;
    memcpy(prefix, sum, link->nelems * c->size);
    return gpsh_chain_pass(chain, link, chain->nodes->mine + 1, prefix, gpsh_chain_up(link));
}

// out[i]: the sum of the first i + 1 views.
static int give(struct gpsh_chain *chain, const struct gpsh_link *link, bool inclusive)
{
    const struct gpsh_coll *c = chain->c;
    const struct gpsh_team_nodes *nodes = chain->nodes;
    const int *mates = nodes->members + nodes->starts[nodes->mine];
    size_t bytes = link->nelems * c->size;
    int before = gpsh_chain_is_first(chain) ? 0 : 1, status = 0;
    char *zeros = chain->piece.fetched; // the sources have been folded
    memset(zeros, 0, bytes);
    for (int i = 0; i < nodes->sizes[nodes->mine] && status == 0; i++) {
        int sum = i + before - !inclusive;
        const char *result = sum < 0 ? zeros : chain->piece.out + (size_t)sum * room(chain);
        status = gpsh_coll_put(c->team, mates[i], gpsh_chain_dest(chain, link), result, bytes);
    }
    return status;
}

// Results are copies of the processor's in the whole node.
static bool is_direct(const struct gpsh_chain *chain)
{
    const struct gpsh_team_nodes *nodes = chain->nodes;
    const struct gpsh_team *team = chain->c->team;
    const int *mates = nodes->members + nodes->starts[nodes->mine];
    bool direct = !gpsh_heap()->device;
    for (int i = 0; i < nodes->sizes[nodes->mine] && direct; i++)
        direct = gpsh_coll_at(team, mates[i], chain->c->dest) != NULL;
    return direct;
}

static int go(struct gpsh_chain *chain, const struct gpsh_link *link, bool inclusive)
{
    struct gpsh_team *team = chain->c->team;
    int count, status = 0;
    if (!gpsh_chain_is_first(chain))
        status = gpsh_chain_await(chain, link, chain->nodes->mine - 1, gpsh_chain_up(link));
    if (status == 0 && (chain->gone % PREFIXES == 0 || !is_direct(chain)))
        status = gpsh_coll_settle(team); // the results before have left
    if (status == 0)
        status = gpsh_chain_gather(chain, link, &count);
    if (status < 0)
        return status;
    gpsh_scan_sums(&chain->piece, count, link->nelems);
    status = pass_on(chain, link, chain->piece.out + (size_t)(count - 1) * room(chain));
    chain->gone++;
    return status == 0 ? give(chain, link, inclusive) : status;
}

static int go_inclusive(struct gpsh_chain *chain, const struct gpsh_link *link)
{
    return go(chain, link, true);
}

static int go_exclusive(struct gpsh_chain *chain, const struct gpsh_link *link)
{
    return go(chain, link, false);
}

int gpsh_coll_chain_scan(const struct gpsh_coll *c, bool inclusive)
{
    const struct gpsh_chain_steps steps = {.outs = (size_t)c->team->n + PREFIXES,
                                           .go = inclusive ? go_inclusive : go_exclusive};
    return gpsh_chain_run(c, &steps);
}
