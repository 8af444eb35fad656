// SPDX-License-Identifier: BSD-3-Clause
// Who decides that a PE has died, and by what:
//   by unique id     its connection ended without a goodbye (tcp_tree.c, tree_link_lost); or it was
//                    called, by a PE that lost its parent or in a sweep, and nobody or a stranger
//                    is at its port
//   by a launcher    its connection ended, and then nobody or a stranger is at its port; or it was
//                    called, on the way into the tree or in a visit, and nobody is
//   by another's word, over the tree, or by somebody of this node (gpsh_tcp_tree_tell_death)
// Each ends in gpsh_tree_note_death: the list below keeps the first word about a PE, the neighbours
// are told, and the tree's thread tells the runtime (bootstrap.h: on_death), which is where
// runtime/progress learns of it. PEs that leave in order are no deaths: gpsh_tree_may_have_left.
#define _GNU_SOURCE // clock_gettime
#include "bootstrap/tcp_membership.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bootstrap/tcp_connect.h"
#include "bootstrap/tcp_tree_state.h"
#include "core/clock.h"
#include "core/error.h"
#include "core/log.h"

// ------------------------------------------------------------------------------------------
// jobs by unique id: PEs whose parent died are called

enum {
    FIRST_MS = 300, // PEs that lost their parent call another PE meanwhile
    MOST_MS = 10000,
    SERVE_MS = 20,  // for events of others, after a call of a PE that is not dead
    PROVE_MS = 500, // for one PE; others wait meanwhile
    SILENT_S = 35,  // a host that has not answered for so long has vanished, as for keepalive
};

int gpsh_tcp_sweep_due(const struct gpsh_tcp_tree *t)
{
    const struct gpsh_tcp_sweep *sweep = &t->sweep;
    uint64_t now = gpsh_clock_ns();
    if (t->nodes || t->parent || t->leaving || !t->addresses || !t->deaths.noted)
        return -1;
    if (now >= sweep->due_ns || (!sweep->under_way && sweep->known != t->deaths.noted))
        return 0;
    return (int)((sweep->due_ns - now) / 1000000) + 1;
}

static void wait_until(struct gpsh_tcp_sweep *sweep, int ms)
{
    sweep->due_ns = gpsh_clock_ns() + (uint64_t)ms * 1000000;
}

static void put_off(struct gpsh_tcp_sweep *sweep, int ms)
{
    sweep->under_way = false;
    sweep->next = 0;
    sweep->pause_ms = ms < MOST_MS ? ms : MOST_MS;
    wait_until(sweep, sweep->pause_ms);
}

// The parent of any other PE lives, is connected with it, and would say that it died.
static bool is_called(const struct gpsh_tcp_tree *t, int pe)
{
    const struct gpsh_tcp_death *list = t->deaths.list;
    bool has_parent = pe > 0 && !list[gpsh_tree_parent(pe)].died;
    return pe != t->my_pe && !list[pe].died && !has_parent && !gpsh_tree_link_to(t, pe);
}

// A host takes the connections among its PEs along.
static bool has_vanished(struct gpsh_tcp_tree *t, int pe, enum gpsh_tcp_presence presence)
{
    uint64_t now = gpsh_clock_ns();
    if (!t->sweep.silent_ns)
        t->sweep.silent_ns = calloc((size_t)t->n_pes, sizeof *t->sweep.silent_ns);
    uint64_t *since = t->sweep.silent_ns ? &t->sweep.silent_ns[pe] : NULL;
    if (!since || presence == GPSH_TCP_UNSURE)
        return false;
    if (presence != GPSH_TCP_UNREACHED)
        *since = 0;
    else if (!*since)
        *since = now;
    return *since && now - *since >= SILENT_S * (uint64_t)1000000000;
}

static void call(struct gpsh_tcp_tree *t, int pe)
{
    int noted = t->deaths.noted;
    enum gpsh_tcp_presence presence = gpsh_tree_prove(t, pe, PROVE_MS);
    if (gpsh_tcp_has_ended(presence))
        gpsh_tree_note_gone(t, pe, "nobody listens any more where it did");
    else if (has_vanished(t, pe, presence))
        gpsh_tree_note_gone(t, pe, "its host has not answered for 35 s");
    if (t->deaths.noted == noted)
        wait_until(&t->sweep, SERVE_MS);
    else // its children have higher numbers: their turn comes
        t->sweep.known++;
}

void gpsh_tcp_sweep_step(struct gpsh_tcp_tree *t)
{
    struct gpsh_tcp_sweep *sweep = &t->sweep;
    sweep->under_way &= !t->parent;
    if (gpsh_tcp_sweep_due(t))
        return;
    if (!sweep->under_way && sweep->known != t->deaths.noted) {
        sweep->known = t->deaths.noted;
        put_off(sweep, FIRST_MS);
        return;
    }
    sweep->under_way = true;
    while (sweep->next < t->n_pes && !is_called(t, sweep->next))
        sweep->next++;
    if (sweep->next < t->n_pes)
        call(t, sweep->next++);
    else // one that lived when it was called may die later
        put_off(sweep, 3 * sweep->pause_ms);
}

enum {
    PROBE_MS = 2000,
    VISIT_MS = 300, // who lost its watcher calls another PE meanwhile, and need not be visited
    SLOW_MS = 100,  // until one that listens and says nothing is called again
    AGAIN_MS = 10000,
    JUDGE_MS = 10, // until a suspect that is there is looked at again; then twice as long
    MOST_TRIES = 9,
    MOST_TRUSTED = 3, // tries at which it is enough that somebody listens
    MOST_CUT = 5,     // tries at which a connection may end by chance before the other end spoke
    MOST_SILENT = 3,  // PEs that are called in a row, each for PROBE_MS
};

// What a PE is suspected for.
enum mark {
    MARK_ENDED = 1,     // its connection was closed
    MARK_TIMED_OUT = 2, // its host does not answer
    MARK_TRY = 4,       // times how often that was looked into
};

static const char *const ended = "its process ended without gpushmem_finalize";

struct gpsh_tcp_nodes {
    int *node;  // [n_pes]
    int *order; // [n_order] whom this PE calls
    int n_order;
    uint8_t *marks;     // [n_pes]
    int suspects;       // PEs with a mark
    uint64_t judge_ns;  // when to look at them
    uint64_t again_ns;  // when to call somebody, if this PE is an orphan
    uint64_t visit_ns;  // when to look after others, 0: never
    bool proven, tried; // this PE has reached another node, or has tried to
    bool settled;       // the first call has an outcome
    int n_known;        // deaths, after which others were looked after, or will be
    char failure[160];  // which was this; "": it is connected, or need not be
};

// ------------------------------------------------------------------------------------------
// whom to call

struct place {
    int node, pe;
};

static int place_compare(const void *a, const void *b)
{
    const struct place *x = a, *y = b;
    return x->node != y->node ? (x->node > y->node) - (x->node < y->node)
                              : (x->pe > y->pe) - (x->pe < y->pe);
}

// Fills places[n_pes], sorted, and first[n + 1], where in it the PEs of each of the n nodes begin.
static void places_fill(const int *node, int n_pes, struct place *places, int *first)
{
    int n = 0;
    for (int pe = 0; pe < n_pes; pe++)
        places[pe] = (struct place){.node = node[pe], .pe = pe};
    qsort(places, (size_t)n_pes, sizeof *places, place_compare);
    for (int i = 0; i < n_pes; i++)
        if (i == 0 || places[i].node != places[i - 1].node)
            first[n++] = i;
    first[n] = n_pes;
}

static int places_add(const struct place *places, const int *first, int node, int *order)
{
    int n = 0;
    for (int i = first[node]; i < first[node + 1]; i++)
        order[n++] = places[i].pe;
    return n;
}

static int places_order(const struct place *places, const int *first, int own, int me, int *order)
{
    int above[32], n_above = 0, n = 0; // as deep as no tree is
    for (int i = first[own]; places[i].pe != me; i++)
        order[n++] = places[i].pe;
    for (int node = own; node > 0; n_above++) {
        node = (node - 1) / GPSH_TREE_WIDTH;
        n += places_add(places, first, node, order + n);
        above[n_above] = node;
    }
    for (int node = 0; node < own; node++) {
        if (n_above && above[n_above - 1] == node) // they are in the order of a way up
            n_above--;
        else
            n += places_add(places, first, node, order + n);
    }
    return n;
}

int gpsh_tcp_nodes_order(const int *node, int n_pes, int me, int *order)
{
    struct place *places = calloc((size_t)n_pes, sizeof *places);
    int *first = calloc((size_t)n_pes + 1, sizeof *first), n = -1, own = 0;
    if (places && first) {
        places_fill(node, n_pes, places, first);
        while (places[first[own]].node != node[me])
            own++;
        n = places_order(places, first, own, me, order);
    }
    free(places);
    free(first);
    return n;
}

bool gpsh_tcp_nodes_admit(const struct gpsh_tcp_tree *t, int pe)
{
    const int *node = t->nodes->node;
    return pe >= 0 && pe < t->n_pes &&
           (node[pe] == node[t->my_pe] ? pe > t->my_pe : node[pe] > node[t->my_pe]);
}

// ------------------------------------------------------------------------------------------
// who is dead

void gpsh_tcp_nodes_lost(struct gpsh_tcp_tree *t, const struct gpsh_tcp_link *link)
{
    int error = link->error;
    bool silent = error == ETIMEDOUT || error == EHOSTUNREACH || error == ENETUNREACH;
    struct gpsh_tcp_nodes *n = t->nodes;
    n->suspects += !n->marks[link->pe];
    n->marks[link->pe] = silent ? MARK_TIMED_OUT : MARK_ENDED;
    n->judge_ns = 0;
}

static enum gpsh_tcp_presence probe(struct gpsh_tcp_tree *t, int pe)
{
    struct gpsh_tcp_address address = t->addresses[pe];
    pthread_mutex_unlock(&t->lock);
    enum gpsh_tcp_presence presence =
        gpsh_tcp_probe(&address, gpsh_clock_ns() + PROBE_MS * (uint64_t)1000000);
    pthread_mutex_lock(&t->lock);
    return presence;
}

static bool is_gone(const struct gpsh_tcp_tree *t, int pe)
{
    return t->deaths.list[pe].died || !t->addresses[pe].version;
}

// Nobody listens where `pe` did. One that has left in order does not either.
static bool note_absent(struct gpsh_tcp_tree *t, int pe)
{
    const struct gpsh_tcp_nodes *n = t->nodes;
    bool proof = !t->left && !gpsh_tree_may_have_left(t, pe) &&
                 (n->proven || n->node[pe] == n->node[t->my_pe]);
    if (proof)
        gpsh_tree_note_death(t, pe, ended, NULL);
    return proof;
}

static void note_node_silent(struct gpsh_tcp_tree *t, int node)
{
    char reason[100];
    snprintf(reason, sizeof reason, "its node has not answered for %d s", GPSH_TCP_NODE_PATIENCE_S);
    for (int pe = 0; pe < t->n_pes; pe++)
        if (t->nodes->node[pe] == node)
            gpsh_tree_note_death(t, pe, reason, NULL);
}

// One that is there calls this PE, or another one; or it is just ending, and closes its port after
// its connections.
static enum gpsh_tcp_presence judge(struct gpsh_tcp_tree *t, int pe, int mark, int tries)
{
    // To be asked when it has not called again for a while: each waits until the other has time.
    enum gpsh_tcp_presence presence =
        tries < MOST_TRUSTED ? probe(t, pe) : gpsh_tree_prove(t, pe, PROBE_MS);
    bool hangs_up = presence == GPSH_TCP_HUNG_UP && tries >= MOST_CUT; // a PE would greet
    if (presence == GPSH_TCP_ABSENT || presence == GPSH_TCP_OTHER || hangs_up ||
        (presence == GPSH_TCP_UNREACHED && mark == MARK_ENDED))
        gpsh_tree_note_death(t, pe, ended, NULL);
    else if (presence == GPSH_TCP_UNREACHED)
        note_node_silent(t, t->nodes->node[pe]);
    return presence;
}

// In how many ms to look at `pe` again, 0: it is no suspect any more.
static int judge_again(struct gpsh_tcp_tree *t, int pe)
{
    struct gpsh_tcp_nodes *n = t->nodes;
    int tries = n->marks[pe] / MARK_TRY;
    bool settled = is_gone(t, pe) || gpsh_tree_link_to(t, pe) || tries == MOST_TRIES;
    if (!settled) {
        enum gpsh_tcp_presence presence = judge(t, pe, n->marks[pe] % MARK_TRY, tries);
        if (presence == GPSH_TCP_UNSURE)
            return SLOW_MS; // that was no look: perhaps nobody else will say so
        settled = is_gone(t, pe) || presence == GPSH_TCP_UNREACHED;
    }
    n->suspects -= settled;
    n->marks[pe] = settled ? 0 : (uint8_t)(n->marks[pe] + MARK_TRY);
    return settled ? 0 : JUDGE_MS << tries;
}

static void judge_suspects(struct gpsh_tcp_tree *t)
{
    struct gpsh_tcp_nodes *n = t->nodes;
    int soonest = JUDGE_MS << MOST_TRIES;
    for (int pe = 0; n->suspects && pe < t->n_pes && !t->stop; pe++) {
        int ms = n->marks[pe] ? judge_again(t, pe) : 0;
        if (ms && ms < soonest)
            soonest = ms;
    }
    n->judge_ns = gpsh_clock_ns() + soonest * (uint64_t)1000000;
}

static bool is_linked(const struct gpsh_tcp_tree *t, int node)
{
    for (const struct gpsh_tcp_link *link = t->links; link; link = link->next)
        if (t->nodes->node[link->pe] == node)
            return true;
    return false;
}

static void visit_own(struct gpsh_tcp_tree *t)
{
    const int *node = t->nodes->node;
    for (int pe = node[t->my_pe]; pe < t->n_pes && !t->stop; pe++)
        if (node[pe] == node[t->my_pe] && pe != t->my_pe && !is_gone(t, pe) &&
            !gpsh_tree_link_to(t, pe) && probe(t, pe) == GPSH_TCP_ABSENT)
            note_absent(t, pe);
}

// True: somebody is there, or it is not known.
static bool visit_other(struct gpsh_tcp_tree *t, int node)
{
    if (is_linked(t, node))
        return true;
    for (int pe = node; pe < t->n_pes; pe++) {
        if (t->nodes->node[pe] != node || is_gone(t, pe))
            continue;
        if (t->stop || probe(t, pe) != GPSH_TCP_ABSENT || !note_absent(t, pe))
            return true;
    }
    return false;
}

static void visit(struct gpsh_tcp_tree *t)
{
    const int *node = t->nodes->node;
    int own = node[t->my_pe];
    t->nodes->visit_ns = 0;
    if (t->parent && node[t->parent->pe] == own)
        return; // that one does it
    visit_own(t);
    for (int i = 1; i < t->n_pes; i++) {
        int next = (own + i) % t->n_pes;
        if (node[next] == next && visit_other(t, next))
            return;
    }
}

// Once, as long as all is well: whether this PE can reach another node, the next one in the ring.
static void prove(struct gpsh_tcp_tree *t)
{
    struct gpsh_tcp_nodes *n = t->nodes;
    int own = n->node[t->my_pe];
    n->tried = true;
    for (int i = 1; i < t->n_pes && !n->proven; i++) {
        int next = (own + i) % t->n_pes;
        if (n->node[next] != next || next == own || is_gone(t, next))
            continue;
        n->proven |= probe(t, next) == GPSH_TCP_PRESENT;
        return;
    }
}

// ------------------------------------------------------------------------------------------
// the way into the tree

static void settle(struct gpsh_tcp_tree *t, const char *failure)
{
    struct gpsh_tcp_nodes *n = t->nodes;
    if (!n->tried)
        prove(t);
    n->settled = true;
    snprintf(n->failure, sizeof n->failure, "%s", failure);
    pthread_cond_broadcast(&t->changed);
}

// The sentence about a PE that was called in vain.
static void explain(const struct gpsh_tcp_tree *t, int pe, enum gpsh_tcp_presence presence,
                    char *text, size_t bytes)
{
    static const char *const what[] = {[GPSH_TCP_PRESENT] = "does not answer",
                                       [GPSH_TCP_ABSENT] = "refuses connections",
                                       [GPSH_TCP_UNREACHED] = "cannot be reached",
                                       [GPSH_TCP_UNSURE] = "was not called (no descriptor)"};
    char where[GPSH_TCP_TEXT_BYTES];
    snprintf(text, bytes, "PE %d at %s %s", pe, gpsh_tcp_address_text(&t->addresses[pe], where),
             what[presence]);
}

// Nobody could be called. Whoever listens and says nothing has not come so far, or is stopped.
static void find_later(struct gpsh_tcp_tree *t, bool slow, const char *failure)
{
    t->orphan = true;
    t->nodes->again_ns = gpsh_clock_ns() + (slow ? SLOW_MS : AGAIN_MS) * (uint64_t)1000000;
    if (!slow)
        settle(t, failure);
}

static bool take_above(struct gpsh_tcp_tree *t, int fd, int pe)
{
    t->parent = gpsh_tree_add_link(t, fd, pe);
    if (!t->parent)
        return false;
    t->nodes->again_ns = 0;
    t->nodes->proven |= t->nodes->node[pe] != t->nodes->node[t->my_pe];
    settle(t, "");
    return true;
}

static void find_above(struct gpsh_tcp_tree *t)
{
    struct gpsh_tcp_nodes *n = t->nodes;
    char failure[sizeof n->failure] = "";
    int silent = 0;
    bool slow = false;
    t->orphan = false;
    for (int i = 0; i < n->n_order && silent < MOST_SILENT; i++) {
        int pe = n->order[i];
        if (is_gone(t, pe))
            continue;
        int fd = gpsh_tree_call(t, pe);
        if (fd >= 0 && take_above(t, fd, pe))
            return;
        if (t->stop || t->leaving)
            return;
        enum gpsh_tcp_presence presence = probe(t, pe);
        if (presence == GPSH_TCP_ABSENT && note_absent(t, pe))
            continue;
        if (!failure[0])
            explain(t, pe, presence, failure, sizeof failure);
        silent += presence != GPSH_TCP_ABSENT;
        slow |= presence == GPSH_TCP_PRESENT || presence == GPSH_TCP_UNSURE;
    }
    if (failure[0])
        find_later(t, slow, failure);
    else
        settle(t, ""); // this PE is the top of the tree
}

void gpsh_tcp_nodes_step(struct gpsh_tcp_tree *t)
{
    struct gpsh_tcp_nodes *n = t->nodes;
    if (t->leaving)
        return;
    if (n->suspects && gpsh_clock_ns() >= n->judge_ns)
        judge_suspects(t);
    if (n->visit_ns && gpsh_clock_ns() >= n->visit_ns)
        visit(t);
    if (t->orphan && gpsh_clock_ns() >= n->again_ns)
        find_above(t);
    if (n->n_known != t->deaths.noted && !n->visit_ns)
        n->visit_ns = gpsh_clock_ns() + VISIT_MS * (uint64_t)1000000;
    n->n_known = t->deaths.noted;
}

int gpsh_tcp_nodes_due(const struct gpsh_tcp_tree *t)
{
    const struct gpsh_tcp_nodes *n = t->nodes;
    uint64_t at = UINT64_MAX, now = gpsh_clock_ns();
    if (n->suspects)
        at = n->judge_ns;
    if (n->visit_ns && n->visit_ns < at)
        at = n->visit_ns;
    if (t->orphan && n->again_ns < at)
        at = n->again_ns;
    if (t->leaving || at == UINT64_MAX)
        return -1;
    return at <= now ? 0 : (int)((at - now) / 1000000) + 1;
}

// ------------------------------------------------------------------------------------------
// what others ask

void gpsh_tcp_nodes_free(struct gpsh_tcp_nodes *nodes)
{
    if (!nodes)
        return;
    free(nodes->node);
    free(nodes->order);
    free(nodes->marks);
    free(nodes);
}

static struct gpsh_tcp_nodes *nodes_create(const int *node, int n_pes, int me)
{
    struct gpsh_tcp_nodes *n = calloc(1, sizeof *n);
    if (!n)
        return NULL;
    n->node = calloc((size_t)n_pes, sizeof *n->node);
    n->order = calloc((size_t)n_pes, sizeof *n->order);
    n->marks = calloc((size_t)n_pes, sizeof *n->marks);
    if (n->node && n->order && n->marks) {
        memcpy(n->node, node, (size_t)n_pes * sizeof *n->node);
        n->n_order = gpsh_tcp_nodes_order(node, n_pes, me, n->order);
        if (n->n_order >= 0)
            return n;
    }
    gpsh_tcp_nodes_free(n);
    return NULL;
}

int gpsh_tcp_tree_watch_nodes(struct gpsh_tcp_tree *tree, const int *node,
                              struct gpsh_tcp_address *addresses,
                              const uint8_t secret[GPSH_SECRET_BYTES])
{
    struct gpsh_tcp_nodes *nodes = nodes_create(node, tree->n_pes, tree->my_pe);
    if (!nodes) {
        free(addresses);
        return gpsh_fail(GPUSHMEM_ERR_NO_MEMORY, "no memory to watch %d PEs", tree->n_pes);
    }
    pthread_mutex_lock(&tree->lock);
    memcpy(tree->gate.id.secret, secret, GPSH_SECRET_BYTES);
    tree->addresses = addresses;
    tree->nodes = nodes;
    tree->gate.id = gpsh_tree_id(tree, tree->my_pe);
    tree->orphan = true;
    pthread_mutex_unlock(&tree->lock);
    return 0;
}

bool gpsh_tcp_tree_await_nodes(struct gpsh_tcp_tree *tree, int ms)
{
    struct timespec until;
    char failure[160];
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += ms / 1000;
    pthread_mutex_lock(&tree->lock);
    const struct gpsh_tcp_nodes *n = tree->nodes;
    for (int late = 0; !n->settled && !late;)
        late = pthread_cond_timedwait(&tree->changed, &tree->lock, &until);
    snprintf(failure, sizeof failure, "%s", n->settled ? n->failure : "no PE answers");
    pthread_mutex_unlock(&tree->lock);
    if (failure[0])
        gpsh_fail(GPUSHMEM_ERR_BOOTSTRAP, "%s", failure);
    return !failure[0];
}

void gpsh_tcp_tree_tell_death(struct gpsh_tcp_tree *tree, int pe, const char *reason)
{
    pthread_mutex_lock(&tree->lock);
    gpsh_tree_note_death(tree, pe, reason, NULL);
    pthread_mutex_unlock(&tree->lock);
    gpsh_tcp_loop_wake(&tree->loop);
}
