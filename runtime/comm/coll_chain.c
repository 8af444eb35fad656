// SPDX-License-Identifier: BSD-3-Clause
// Folds that go from node to node in a team with nodes: each share of the elements has a holder on
// each node (comm/team_nodes.h), which folds the node's sources behind what the nodes before have
// folded. That is the fold from the left if the nodes follow each other in the team. Piece follows
// piece, so that all nodes work at once. docs/design/collectives.md.
#include <stdlib.h>
#include <string.h>

#include "comm/coll.h"
#include "core/error.h"
#include "memory/heap.h"

enum {
    PIECE_BYTES = 32768,         // as measured, of 32 and 64 KiB
    SCATTER_PIECE_BYTES = 65536, // a piece crosses twice for each node
    // In place a PE keeps a part of its own source, of so many bytes at most at a time.
    SEGMENT_BYTES = 8 << 20,
    SENT = 4, // results on their way
};

// A piece of the share of a rank that this PE holds. `first` counts elements of the source.
struct link {
    int rank;
    size_t number, first, nelems;
};

// An operation, or in place a segment of it.
struct chain {
    const struct gpsh_coll *c;
    const struct gpsh_team_nodes *nodes;
    struct gpsh_piece piece;
    size_t most;         // elements of a piece, the same on all members
    bool in_place;       // on all members
    char *copy;          // in place: of this PE's source, as far as dest takes what others send,
    size_t copied;       // from this element on
    char *neighbor_copy; // and of another member of the node, or NULL
    unsigned sent;       // links whose results have been sent
};

typedef int link_fn(struct chain *chain, const struct link *link);

// What this PE's links go through, one step after the other, with the meetings. Links of all
// members have one order, so that nobody waits in a circle if nodes wait for those before them
// only, or in `then` for those behind.
struct steps {
    size_t outs;            // results that the piece has room for
    link_fn *copy_neighbor; // or NULL; in place, behind the first node: fills neighbor_copy
    link_fn *go;
    link_fn *then; // or NULL
};

static bool scatters(const struct chain *chain)
{
    return chain->c->kind == GPUSHMEM_COLL_REDUCESCATTER;
}

static bool is_first(const struct chain *chain)
{
    return chain->nodes->mine == 0;
}

static bool is_last(const struct chain *chain)
{
    return chain->nodes->mine == chain->nodes->n - 1;
}

static const int *mates_of(const struct chain *chain)
{
    return chain->nodes->members + chain->nodes->starts[chain->nodes->mine];
}

static size_t bytes_of(const struct chain *chain, const struct link *link)
{
    return link->nelems * chain->c->size;
}

// Result number i of the piece.
static char *out_at(const struct chain *chain, size_t i)
{
    return chain->piece.out + i * chain->piece.most * chain->c->size;
}

// Where the rank's share is in a whole dest. Of a reducescatter, whose dest is a part: as an
// address of this PE, where the rank itself has it.
static char *dest_of(const struct chain *chain, const struct link *link)
{
    const struct gpsh_coll *c = chain->c;
    size_t before = 0;
    if (scatters(chain))
        before = (size_t)(chain->in_place ? c->team->my_rank : link->rank) * c->nelems;
    return c->dest + (ptrdiff_t)(link->first - before) * (ptrdiff_t)c->size;
}

// ---- Between nodes ----

// Counters: what the nodes before have folded of a rank's share is there.
static size_t up(const struct link *link)
{
    return (size_t)link->rank;
}

// The same, of the result on its way back.
static size_t back(const struct chain *chain, const struct link *link)
{
    return (size_t)chain->c->team->n + (size_t)link->rank;
}

static int holder(const struct chain *chain, const struct link *link, int node)
{
    return gpsh_team_nodes_holder(chain->nodes, link->rank, node);
}

// Waits for the link's piece from its holder on that node.
static int await(const struct chain *chain, const struct link *link, int node, size_t counter)
{
    return gpsh_team_signal_wait(chain->c->team, holder(chain, link, node), counter,
                                 link->number + 1, chain->c->what);
}

static int await_before(const struct chain *chain, const struct link *link)
{
    return is_first(chain) ? 0 : await(chain, link, chain->nodes->mine - 1, up(link));
}

// `from`, which is dest or memory of this process that stays until gpsh_coll_quiet, to the dest of
// the link's holder on that node, and the counter behind it.
static int pass(const struct chain *chain, const struct link *link, int node, const char *from,
                size_t counter)
{
    struct gpsh_team *team = chain->c->team;
    char *dest = dest_of(chain, link);
    int to = holder(chain, link, node);
    int status = from == dest ? gpsh_coll_push(team, to, dest, dest, bytes_of(chain, link))
                              : gpsh_coll_put(team, to, dest, from, bytes_of(chain, link));
    return status < 0 ? status : gpsh_team_signal(team, to, counter, link->number + 1);
}

// ---- In a node ----

// views[0] becomes what the nodes before have folded, which is in this PE's dest, or in that of the
// rank itself if it scatters; the sources follow it.
static int put_before(struct chain *chain, const struct link *link, int count)
{
    struct gpsh_team *team = chain->c->team;
    const char **views = team->views;
    char *dest = dest_of(chain, link);
    int where = scatters(chain) ? link->rank : team->my_rank;
    memmove(views + 1, views, (size_t)count * sizeof *views);
    views[0] = dest;
    if (where == team->my_rank && !gpsh_heap()->device)
        return 0;
    char *fetched = chain->piece.fetched + (size_t)count * chain->piece.most * chain->c->size;
    views[0] = fetched;
    int status = gpsh_coll_get(team, where, fetched, dest, bytes_of(chain, link));
    return status == 0 && where != team->my_rank ? gpsh_coll_quiet(team) : status;
}

// In place this PE's own source of the link is where results of others come.
static bool is_overwritten(const struct chain *chain, const struct link *link)
{
    return chain->copy && (!scatters(chain) || link->rank == chain->c->team->my_rank);
}

static char *copy_at(const struct chain *chain, const struct link *link)
{
    return chain->copy + (link->first - chain->copied) * chain->c->size;
}

// The team's views become what the nodes before have folded, if there are any, and the node's
// sources. *count: how many these are.
static int gather(struct chain *chain, const struct link *link, int *count)
{
    const struct gpsh_coll *c = chain->c;
    const struct gpsh_team_nodes *nodes = chain->nodes;
    int size = nodes->sizes[nodes->mine];
    int status = gpsh_piece_gather(&chain->piece, mates_of(chain), size, c->source,
                                   link->first * c->size, link->nelems);
    if (is_overwritten(chain, link))
        c->team->views[nodes->index[c->team->my_rank]] = copy_at(chain, link);
    if (status == 0 && !is_first(chain))
        status = put_before(chain, link, size++);
    *count = size;
    return status;
}

// ---- All of it ----

static void share_of(const struct chain *chain, int rank, size_t *first, size_t *last)
{
    const struct gpsh_coll *c = chain->c;
    if (!scatters(chain)) {
        gpsh_piece_share(c, rank, first, last);
        return;
    }
    *first = (size_t)rank * c->nelems;
    *last = *first + c->nelems;
}

// Pieces first and ranks second.
static int for_each(struct chain *chain, link_fn *go)
{
    const struct gpsh_coll *c = chain->c;
    size_t first, last, longest;
    int status = 0;
    share_of(chain, 0, &first, &longest);
    for (size_t at = 0; at < longest && status == 0; at += chain->most)
        for (int rank = 0; rank < c->team->n && status == 0; rank++) {
            share_of(chain, rank, &first, &last);
            int mine = gpsh_team_nodes_holder(chain->nodes, rank, chain->nodes->mine);
            if (mine != c->team->my_rank || last - first <= at)
                continue;
            size_t left = last - first - at;
            const struct link link = {rank, at / chain->most, first + at,
                                      left < chain->most ? left : chain->most};
            status = go(chain, &link);
        }
    return status;
}

// Before anything can reach dest.
static int copy_own(struct chain *chain, const struct link *link)
{
    const struct gpsh_coll *c = chain->c;
    if (!is_overwritten(chain, link))
        return 0;
    return gpsh_coll_get(c->team, c->team->my_rank, copy_at(chain, link),
                         c->source + link->first * c->size, bytes_of(chain, link));
}

static int begin(struct chain *chain, const struct steps *steps)
{
    const struct gpsh_coll *c = chain->c;
    size_t bytes = c->nelems * c->size;
    int status = gpsh_piece_begin(&chain->piece, c, steps->outs, chain->most);
    if (status < 0 || !chain->in_place || is_first(chain))
        return status;
    chain->copied = scatters(chain) ? (size_t)c->team->my_rank * c->nelems : 0;
    chain->copy = malloc(bytes);
    chain->neighbor_copy = steps->copy_neighbor ? malloc(bytes) : NULL;
    if (chain->copy && (chain->neighbor_copy || !steps->copy_neighbor))
        return for_each(chain, copy_own);
    return gpsh_fail(GPUSHMEM_ERR_NO_MEMORY,
                     "%s: no host memory for a copy of %zu bytes of source, which dest is, too; "
                     "free some, or pass a dest apart from source, which needs no copy",
                     c->what, bytes);
}

// The others' sources are ready after one meeting, and left alone until the next.
static int copy_neighbor(struct chain *chain, link_fn *copy, int status)
{
    status = gpsh_coll_sync(chain->c, status);
    return status == 0 && chain->neighbor_copy ? for_each(chain, copy) : status;
}

static int run_segment(const struct gpsh_coll *c, const struct steps *steps, bool in_place)
{
    bool scatter = c->kind == GPUSHMEM_COLL_REDUCESCATTER;
    struct chain chain = {.c = c,
                          .nodes = c->team->nodes,
                          .most = (scatter ? SCATTER_PIECE_BYTES : PIECE_BYTES) / c->size,
                          .in_place = in_place};
    int status = gpsh_team_usable(c->team, c->what);
    if (status < 0)
        return status;
    status = begin(&chain, steps);
    if (steps->copy_neighbor && in_place)
        status = copy_neighbor(&chain, steps->copy_neighbor, status);
    gpsh_team_signals_clear(c->team);
    status = gpsh_coll_sync(c, status);
    if (status == 0)
        status = for_each(&chain, steps->go);
    if (status == 0 && steps->then)
        status = for_each(&chain, steps->then);
    status = gpsh_coll_leave(c, status);
    free(chain.copy);
    gpsh_coll_free(status, chain.neighbor_copy);
    gpsh_coll_free(status, chain.piece.memory);
    return status;
}

static int run(const struct gpsh_coll *c, const struct steps *steps)
{
    bool in_place = c->dest == c->source; // on all members
    size_t most = in_place ? SEGMENT_BYTES / c->size : c->nelems, part;
    int status = 0;
    for (size_t at = 0; at < c->nelems && status == 0; at += part) {
        struct gpsh_coll segment = *c;
        part = c->nelems - at < most ? c->nelems - at : most;
        segment.nelems = part;
        segment.dest += at * c->size;
        segment.source += at * c->size;
        status = run_segment(&segment, steps, in_place);
    }
    return status;
}

// ---- reduce: the last node's result goes back from node to node ----

static int reduce_up(struct chain *chain, const struct link *link)
{
    const struct gpsh_coll *c = chain->c;
    int node = chain->nodes->mine, count = 0, status = await_before(chain, link);
    char *dest = dest_of(chain, link), *result = gpsh_heap()->device ? chain->piece.out : dest;
    if (status == 0)
        status = gather(chain, link, &count);
    if (status < 0)
        return status;
    gpsh_fold_all(c->type, c->op, result, c->team->views, count, 0, link->nelems);
    status = gpsh_coll_copy(dest, result, bytes_of(chain, link));
    if (status < 0)
        return status;
    return is_last(chain) ? pass(chain, link, node - 1, dest, back(chain, link))
                          : pass(chain, link, node + 1, dest, up(link));
}

// The result, which comes to dest, goes to the node before and in this node.
static int reduce_back(struct chain *chain, const struct link *link)
{
    const struct gpsh_coll *c = chain->c;
    int node = chain->nodes->mine;
    bool last = is_last(chain);
    int status = last ? 0 : await(chain, link, node + 1, back(chain, link));
    if (status == 0 && !last && !is_first(chain))
        status = pass(chain, link, node - 1, dest_of(chain, link), back(chain, link));
    const struct gpsh_coll_share part = {link->first * c->size, bytes_of(chain, link)};
    return status == 0 ? gpsh_coll_nodes_push_near(c, part) : status;
}

int gpsh_coll_reduce_chain(const struct gpsh_coll *c)
{
    return run(c, &(struct steps){.outs = 1, .go = reduce_up, .then = reduce_back});
}

// ---- reducescatter: what is folded of a rank's part waits in that rank's dest ----

// The next node's holder may be told of what is in the rank's dest, or the rank of its result.
static int scatter_tell(struct chain *chain, const struct link *link)
{
    struct gpsh_team *team = chain->c->team;
    int node = chain->nodes->mine, home = chain->nodes->node[link->rank], status = 0;
    size_t number = link->number + 1;
    if (is_last(chain))
        return node == home ? 0 : gpsh_team_signal(team, link->rank, back(chain, link), number);
    if (node != home && node + 1 != home) // it reads there by another way than this PE wrote
        status = gpsh_coll_quiet(team);
    return status < 0 ? status
                      : gpsh_team_signal(team, holder(chain, link, node + 1), up(link), number);
}

static int scatter_go(struct chain *chain, const struct link *link)
{
    const struct gpsh_coll *c = chain->c;
    unsigned turn = chain->sent++ % SENT;
    char *out = out_at(chain, turn);
    int count = 0, status = await_before(chain, link);
    if (status == 0 && turn == 0)
        status = gpsh_coll_quiet(c->team); // the last ones have left
    if (status == 0)
        status = gather(chain, link, &count);
    if (status < 0)
        return status;
    gpsh_fold_all(c->type, c->op, out, c->team->views, count, 0, link->nelems);
    status = gpsh_coll_put(c->team, link->rank, dest_of(chain, link), out, bytes_of(chain, link));
    return status == 0 ? scatter_tell(chain, link) : status;
}

static int scatter_await(struct chain *chain, const struct link *link)
{
    bool mine = link->rank == chain->c->team->my_rank && !is_last(chain);
    return mine ? await(chain, link, chain->nodes->n - 1, back(chain, link)) : 0;
}

int gpsh_coll_reducescatter_chain(const struct gpsh_coll *c)
{
    const struct steps steps = {.outs = SENT, .go = scatter_go, .then = scatter_await};
    bool in_place = c->dest == c->source + (size_t)c->team->my_rank * c->nelems * c->size;
    return run_segment(c, &steps, in_place);
}

// ---- Scans: a holder has the results of its node's ranks, and sends the last sum on ----

// The sum of all ranks up to this node's last one, in memory that stays until it has left.
static int scan_pass(struct chain *chain, const struct link *link, const char *sum)
{
    char *prefix = out_at(chain, (size_t)chain->c->team->n + chain->sent % SENT);
    if (is_last(chain))
        return 0;
    memcpy(prefix, sum, bytes_of(chain, link));
    return pass(chain, link, chain->nodes->mine + 1, prefix, up(link));
}

// out[i]: the sum of the first i + 1 views.
static int scan_give(struct chain *chain, const struct link *link)
{
    const struct gpsh_coll *c = chain->c;
    const int *mates = mates_of(chain);
    size_t bytes = bytes_of(chain, link);
    int before = is_first(chain) ? 0 : 1, exclusive = c->kind == GPUSHMEM_COLL_EXSCAN, status = 0;
    char *zeros = chain->piece.fetched; // the sources have been folded
    memset(zeros, 0, bytes);
    for (int i = 0; i < chain->nodes->sizes[chain->nodes->mine] && status == 0; i++) {
        int sum = i + before - exclusive;
        const char *result = sum < 0 ? zeros : out_at(chain, (size_t)sum);
        status = gpsh_coll_put(c->team, mates[i], dest_of(chain, link), result, bytes);
    }
    return status;
}

// Results are copies of the processor's in the whole node.
static bool gives_directly(const struct chain *chain)
{
    bool direct = !gpsh_heap()->device;
    for (int i = 0; i < chain->nodes->sizes[chain->nodes->mine] && direct; i++)
        direct = gpsh_coll_at(chain->c->team, mates_of(chain)[i], chain->c->dest) != NULL;
    return direct;
}

static int scan_go(struct chain *chain, const struct link *link)
{
    int count = 0, status = await_before(chain, link);
    if (status == 0 && (chain->sent % SENT == 0 || !gives_directly(chain)))
        status = gpsh_coll_quiet(chain->c->team); // the results before have left
    if (status == 0)
        status = gather(chain, link, &count);
    if (status < 0)
        return status;
    gpsh_piece_sums(&chain->piece, count, link->nelems);
    status = scan_pass(chain, link, out_at(chain, (size_t)count - 1));
    chain->sent++;
    return status == 0 ? scan_give(chain, link) : status;
}

int gpsh_coll_scan_chain(const struct gpsh_coll *c)
{
    return run(c, &(struct steps){.outs = (size_t)c->team->n + SENT, .go = scan_go});
}

// ---- Sums and products of half and bfloat16, whose partial results are floats ----

// The upper 16 bits of each go to the dest of the share's holder on the next node, the lower ones
// to the same place in the dest of the member beside it: nobody else writes there before the holder
// has the result. So the piece has room for SENT results in two parts, and for what came of the
// lower parts.
enum { WIDE_OUTS = 2 * SENT + 1 };

// The member beside the link's holder on that node.
static int neighbor(const struct chain *chain, const struct link *link, int node)
{
    const struct gpsh_team_nodes *nodes = chain->nodes;
    int index = nodes->index[holder(chain, link, node)];
    return nodes->members[nodes->starts[node] + (index + 1) % nodes->sizes[node]];
}

static uint16_t *part_at(const struct chain *chain, size_t i)
{
    return (uint16_t *)(void *)out_at(chain, i);
}

// The link's elements of an object of the member beside this PE.
static int get_neighbor(struct chain *chain, const struct link *link, void *to, const char *sym)
{
    struct gpsh_team *team = chain->c->team;
    const char *from = sym + link->first * chain->c->size;
    int rank = neighbor(chain, link, chain->nodes->mine);
    int status = gpsh_coll_get(team, rank, to, from, bytes_of(chain, link));
    return status == 0 && !gpsh_coll_at(team, rank, from) ? gpsh_coll_quiet(team) : status;
}

static int wide_copy(struct chain *chain, const struct link *link)
{
    const struct gpsh_coll *c = chain->c;
    return get_neighbor(chain, link, chain->neighbor_copy + link->first * c->size, c->source);
}

static int wide_await(struct chain *chain, const struct link *link)
{
    int mine = chain->nodes->mine, status = await_before(chain, link);
    if (status == 0)
        status = gpsh_team_signal_wait_at(chain->c->team, neighbor(chain, link, mine),
                                          holder(chain, link, mine - 1), up(link), link->number + 1,
                                          chain->c->what);
    return status == 0 ? get_neighbor(chain, link, part_at(chain, WIDE_OUTS - 1), chain->c->dest)
                       : status;
}

// The node's sources, behind what came, to the parts that leave, or on the last node to dest.
static void wide_fold(const struct chain *chain, const struct link *link, int count,
                      uint16_t *upper, uint16_t *lower)
{
    const struct gpsh_coll *c = chain->c;
    const char *const *views = c->team->views;
    const uint16_t *came = part_at(chain, WIDE_OUTS - 1);
    struct gpsh_fold acc;
    size_t part;
    for (size_t at = 0; at < link->nelems; at += part) {
        part = link->nelems - at < GPSH_FOLD_BLOCK ? link->nelems - at : GPSH_FOLD_BLOCK;
        const void *first = views[0] + at * c->size;
        if (is_first(chain))
            gpsh_fold_load(c->type, &acc, first, part);
        else
            gpsh_fold_join(&acc, first, came + at, part);
        for (int i = 1; i < count; i++)
            gpsh_fold_step(c->type, c->op, &acc, views[i] + at * c->size, part);
        if (is_last(chain))
            gpsh_fold_store(c->type, &acc, upper + at, part);
        else
            gpsh_fold_split(&acc, upper + at, lower + at, part);
    }
}

static int wide_pass(struct chain *chain, const struct link *link, const uint16_t *upper,
                     const uint16_t *lower)
{
    struct gpsh_team *team = chain->c->team;
    int next = chain->nodes->mine + 1, to = neighbor(chain, link, next);
    int status = gpsh_coll_put(team, to, dest_of(chain, link), lower, bytes_of(chain, link));
    if (status == 0)
        status = gpsh_team_signal(team, to, up(link), link->number + 1);
    return status == 0 ? pass(chain, link, next, (const char *)upper, up(link)) : status;
}

// In place a source beside this PE's own is where the lower parts come.
static int wide_gather(struct chain *chain, const struct link *link, int *count)
{
    const struct gpsh_coll *c = chain->c;
    int status = gather(chain, link, count);
    int beside = neighbor(chain, link, chain->nodes->mine);
    if (chain->neighbor_copy)
        c->team->views[1 + chain->nodes->index[beside]] =
            chain->neighbor_copy + link->first * c->size;
    return status;
}

static int wide_up(struct chain *chain, const struct link *link)
{
    bool last = is_last(chain);
    unsigned turn = chain->sent++ % SENT;
    char *dest = dest_of(chain, link);
    uint16_t *upper = last ? (uint16_t *)(void *)dest : part_at(chain, 2 * turn);
    uint16_t *lower = part_at(chain, 2 * turn + 1);
    int count = 0, status = is_first(chain) ? 0 : wide_await(chain, link);
    if (status == 0 && turn == 0)
        status = gpsh_coll_quiet(chain->c->team); // the parts before have left
    if (status == 0)
        status = wide_gather(chain, link, &count);
    if (status < 0)
        return status;
    wide_fold(chain, link, count, upper, lower);
    return last ? pass(chain, link, chain->nodes->mine - 1, dest, back(chain, link))
                : wide_pass(chain, link, upper, lower);
}

int gpsh_coll_reduce_chain_wide(const struct gpsh_coll *c)
{
    return run(
        c, &(struct steps){
               .outs = WIDE_OUTS, .copy_neighbor = wide_copy, .go = wide_up, .then = reduce_back});
}
