// SPDX-License-Identifier: BSD-3-Clause
// Large sums and products of half and bfloat16, whose partial results are floats. The upper 16 bits
// of each go to the dest of the share's holder on the next node, the lower ones to the same place
// in the dest of the member beside it: nobody else writes there before the holder has the result.
#include "comm/coll_chain.h"
#include "comm/team_signal.h"
#include "memory/heap.h"

enum {
    SENT = 4, // pieces on their way, in two parts each; then what came of the lower parts
    OUTS = 2 * SENT + 1,
};

// The member beside the link's holder on that node.
static int beside(const struct gpsh_chain *chain, const struct gpsh_link *link, int node)
{
    const struct gpsh_team_nodes *nodes = chain->nodes;
    int holder = gpsh_team_nodes_holder(nodes, link->rank, node);
    return nodes->members[nodes->starts[node] + (nodes->index[holder] + 1) % nodes->sizes[node]];
}

static uint16_t *part_of(const struct gpsh_chain *chain, size_t number)
{
    return (uint16_t *)(void *)chain->piece.out + number * chain->piece.most;
}

// The link's elements of an object of the member beside this PE.
static int get_beside(struct gpsh_chain *chain, const struct gpsh_link *link, void *to,
                      const char *sym)
{
    struct gpsh_team *team = chain->c->team;
    const char *from = sym + link->first * chain->c->size;
    int rank = beside(chain, link, chain->nodes->mine);
    int status = gpsh_coll_get(team, rank, to, from, link->nelems * chain->c->size);
    return status == 0 && !gpsh_coll_at(team, rank, from) ? gpsh_coll_settle(team) : status;
}

static int keep(struct gpsh_chain *chain, const struct gpsh_link *link)
{
    const struct gpsh_coll *c = chain->c;
    return get_beside(chain, link, chain->beside + link->first * c->size, c->source);
}

static int await(struct gpsh_chain *chain, const struct gpsh_link *link)
{
    struct gpsh_team *team = chain->c->team;
    int mine = chain->nodes->mine, at = beside(chain, link, mine);
    int from = gpsh_team_nodes_holder(chain->nodes, link->rank, mine - 1);
    size_t counter = gpsh_chain_up(link);
    int status = gpsh_chain_await(chain, link, mine - 1, counter);
    if (status == 0)
        status =
            gpsh_team_signal_wait_at(team, at, from, counter, link->number + 1, chain->c->what);
    return status == 0 ? get_beside(chain, link, part_of(chain, OUTS - 1), chain->c->dest) : status;
}

// The node's sources, behind what came, to the parts that leave, or on the last node to dest.
static void fold(const struct gpsh_chain *chain, const struct gpsh_link *link, int count,
                 uint16_t *upper, uint16_t *lower)
{
    const struct gpsh_coll *c = chain->c;
    const char *const *views = c->team->views;
    const uint16_t *came = part_of(chain, OUTS - 1);
    struct gpsh_fold acc;
    size_t part;
    for (size_t at = 0; at < link->nelems; at += part) {
        part = link->nelems - at < GPSH_FOLD_BLOCK ? link->nelems - at : GPSH_FOLD_BLOCK;
        const void *first = views[0] + at * c->size;
        if (gpsh_chain_is_first(chain))
            gpsh_fold_load(c->type, &acc, first, part);
        else
            gpsh_fold_join(&acc, first, came + at, part);
        for (int i = 1; i < count; i++)
            gpsh_fold_step(c->type, c->op, &acc, views[i] + at * c->size, part);
        if (gpsh_chain_is_last(chain))
            gpsh_fold_store(c->type, &acc, upper + at, part);
        else
            gpsh_fold_split(&acc, upper + at, lower + at, part);
    }
}

static int send_parts(struct gpsh_chain *chain, const struct gpsh_link *link, const uint16_t *upper,
                      const uint16_t *lower)
{
    struct gpsh_team *team = chain->c->team;
    int next = chain->nodes->mine + 1, to = beside(chain, link, next);
    size_t counter = gpsh_chain_up(link), bytes = link->nelems * chain->c->size;
    int status = gpsh_coll_put(team, to, gpsh_chain_dest(chain, link), lower, bytes);
    if (status == 0)
        status = gpsh_team_signal(team, to, counter, link->number + 1);
    return status == 0 ? gpsh_chain_pass(chain, link, next, (const char *)upper, counter) : status;
}

// In place a source beside this PE's own is where the lower parts come.
static int gather(struct gpsh_chain *chain, const struct gpsh_link *link, int *count)
{
    const struct gpsh_coll *c = chain->c;
    const struct gpsh_team_nodes *nodes = chain->nodes;
    int status = gpsh_chain_gather(chain, link, count);
    if (chain->beside)
        c->team->views[1 + nodes->index[beside(chain, link, nodes->mine)]] =
            chain->beside + link->first * c->size;
    return status;
}

static int go_up(struct gpsh_chain *chain, const struct gpsh_link *link)
{
    bool last = gpsh_chain_is_last(chain);
    unsigned turn = chain->gone++ % SENT;
    char *dest = gpsh_chain_dest(chain, link);
    uint16_t *upper = last ? (uint16_t *)(void *)dest : part_of(chain, 2 * turn);
    uint16_t *lower = part_of(chain, 2 * turn + 1);
    int count, status = gpsh_chain_is_first(chain) ? 0 : await(chain, link);
    if (status == 0 && turn == 0)
        status = gpsh_coll_settle(chain->c->team); // the parts before have left
    if (status == 0)
        status = gather(chain, link, &count);
    if (status < 0)
        return status;
    fold(chain, link, count, upper, lower);
    return last ? gpsh_chain_pass(chain, link, chain->nodes->mine - 1, dest,
                                  gpsh_chain_back(chain, link))
                : send_parts(chain, link, upper, lower);
}

bool gpsh_coll_chain_wide_fits(const struct gpsh_team *team)
{
    const struct gpsh_team_nodes *nodes = team->nodes;
    bool fits = gpsh_coll_chain_fits(team) && nodes->in_order && !gpsh_heap()->device;
    for (int node = 0; fits && node < nodes->n; node++)
        fits = nodes->sizes[node] > 1;
    return fits;
}

int gpsh_coll_chain_wide(const struct gpsh_coll *c)
{
    const struct gpsh_chain_steps steps = {
        .outs = OUTS, .keep = keep, .go = go_up, .then = gpsh_chain_go_back};
    return gpsh_chain_run(c, &steps);
}
