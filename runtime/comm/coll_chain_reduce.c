// SPDX-License-Identifier: BSD-3-Clause
// Large reduces of a team with nodes: the last node's result goes back from node to node.
#include "comm/coll_chain.h"
#include "memory/heap.h"

static int fold(struct gpsh_chain *chain, const struct gpsh_link *link)
{
    const struct gpsh_coll *c = chain->c;
    char *dest = gpsh_chain_dest(chain, link);
    char *result = gpsh_heap()->device ? chain->piece.out : dest;
    int count, status = gpsh_chain_gather(chain, link, &count);
    if (status < 0)
        return status;
    gpsh_fold_all(c->type, c->op, result, c->team->views, count, 0, link->nelems);
    return gpsh_coll_copy(dest, result, link->nelems * c->size);
}

static int pass(const struct gpsh_chain *chain, const struct gpsh_link *link, int node,
                size_t counter)
{
    return gpsh_chain_pass(chain, link, node, gpsh_chain_dest(chain, link), counter);
}

static int go_up(struct gpsh_chain *chain, const struct gpsh_link *link)
{
    int node = chain->nodes->mine, status = 0;
    if (!gpsh_chain_is_first(chain))
        status = gpsh_chain_await(chain, link, node - 1, gpsh_chain_up(link));
    if (status == 0)
        status = fold(chain, link);
    if (status < 0)
        return status;
    return gpsh_chain_is_last(chain) ? pass(chain, link, node - 1, gpsh_chain_back(chain, link))
                                     : pass(chain, link, node + 1, gpsh_chain_up(link));
}

int gpsh_chain_go_back(struct gpsh_chain *chain, const struct gpsh_link *link)
{
    const struct gpsh_coll *c = chain->c;
    int node = chain->nodes->mine, status = 0;
    bool last = gpsh_chain_is_last(chain);
    if (!last)
        status = gpsh_chain_await(chain, link, node + 1, gpsh_chain_back(chain, link));
    if (status == 0 && !last && !gpsh_chain_is_first(chain))
        status = pass(chain, link, node - 1, gpsh_chain_back(chain, link));
    const struct gpsh_coll_share part = {link->first * c->size, link->nelems * c->size};
    return status == 0 ? gpsh_coll_nodes_push_near(c, part) : status;
}

int gpsh_coll_chain_reduce(const struct gpsh_coll *c)
{
    const struct gpsh_chain_steps steps = {.outs = 1, .go = go_up, .then = gpsh_chain_go_back};
    return gpsh_chain_run(c, &steps);
}
