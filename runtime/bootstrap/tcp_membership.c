// SPDX-License-Identifier: BSD-3-Clause
// Who of the job lives. A PE is taken for dead
//   by unique id     if its connection ends without a goodbye (tcp_tree.c, tree_link_lost)
//   both             if it is called, and nobody or a stranger is where it listened
//   by another's word, over the tree, or by somebody of this node (gpsh_tcp_tree_tell_death)
// Each ends in gpsh_tree_note_death: the first word about a PE counts, the neighbours are told, and
// the tree's thread tells the runtime (bootstrap.h: on_death), by the list of deaths.h. PEs that
// leave in order are no deaths: may_have_left.
//
// Who calls whom follows one rule, gpsh_tree_above: whom each PE should be connected with. One that
// lost its upper PE calls that PE, and the next one if it does not answer. PEs that die together
// may have been connected with each other alone: then no living PE sees a connection end. So after
// a death a PE calls those that should be connected with it and have not called. A call is never
// given up while somebody listens: a PE that is stopped answers when it goes on, and if it dies
// instead the kernel ends the call.
#define _GNU_SOURCE // clock_gettime
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "bootstrap/tcp_tree.h"
#include "core/clock.h"
#include "core/error.h"
#include "core/thread.h"

enum {
    BELOW_MS = 300,      // those that belong below this PE call it meanwhile
    ANSWER_MS = 2000,    // then another one is called, too
    FULL_MS = 20,        // until a descriptor may be free
    HUNG_UP_MS = 10,     // until one that hung up is called again; twice as long each time
    REJECTED_MS = 30,    // the same of one that has too many callers
    UNREACHED_MS = 1000, // the same of a host that does not answer
    AGAIN_MS = 10000,    // the same where a firewall may refuse
    MOST_HANG_UPS = 5,   // a connection may end by chance before the other end spoke
};

static void set_due(struct gpsh_tcp_tree *t, int pe, int ms)
{
    t->peer[pe].due_ns = gpsh_clock_in(ms);
    if (t->peer[pe].due_ns < t->due_ns)
        t->due_ns = t->peer[pe].due_ns;
}

// ------------------------------------------------------------------------------------------
// whom to be connected with

bool gpsh_tree_comes_after(const struct gpsh_tcp_tree *t, int pe)
{
    int node = t->peer[pe].node, own = t->peer[t->my_pe].node;
    return node == own ? pe > t->my_pe : node > own;
}

static bool is_there(const struct gpsh_tcp_tree *t, int pe)
{
    const struct gpsh_tcp_peer *peer = &t->peer[pe];
    return pe == t->my_pe || (!peer->died && !peer->left && peer->listens.version);
}

static void find_lowest(struct gpsh_tcp_tree *t, bool searching)
{
    for (int node = 0; node < t->n_pes; node++)
        t->lowest[node] = -1;
    for (int pe = t->n_pes - 1; pe >= 0; pe--)
        if (is_there(t, pe) && !(searching && t->peer[pe].mute))
            t->lowest[t->peer[pe].node] = pe;
}

static int above(const struct gpsh_tcp_tree *t, int pe)
{
    int own = t->peer[pe].node;
    if (t->lowest[own] != pe)
        return t->lowest[own];
    for (int node = own; node > 0;) {
        node = gpsh_tree_parent(node);
        if (t->lowest[node] >= 0)
            return t->lowest[node];
    }
    for (int node = 0; node < own; node++)
        if (t->lowest[node] >= 0)
            return t->lowest[node];
    return -1;
}

int gpsh_tree_above(struct gpsh_tcp_tree *t, int pe, bool searching)
{
    find_lowest(t, searching);
    return above(t, pe);
}

static bool is_connected_upwards(const struct gpsh_tcp_tree *t)
{
    for (const struct gpsh_tcp_link *link = t->links; link; link = link->next)
        if (!gpsh_tree_comes_after(t, link->pe))
            return true;
    return t->upper_left;
}

// ------------------------------------------------------------------------------------------
// deaths

static bool may_have_left(const struct gpsh_tcp_tree *t, int pe)
{
    return t->departures && (!t->has_told || t->has_told(pe));
}

// Whether `pe` has died because nobody who is `pe` was found where it listened. Between nodes, a
// port that refuses may be a firewall's doing, and two hosts may have the same address.
static bool is_proof(const struct gpsh_tcp_tree *t, int pe, enum gpsh_tcp_ending ending)
{
    const struct gpsh_tcp_peer *peer = &t->peer[pe];
    if (!t->watches || peer->lost)
        return true;
    return ending == GPSH_TCP_REFUSED && !t->left &&
           (t->reached || peer->node == t->peer[t->my_pe].node);
}

static void note_gone(struct gpsh_tcp_tree *t, int pe)
{
    // Others there may have died with it.
    t->died_below = !t->peer[pe].lost && gpsh_tree_comes_after(t, pe);
    gpsh_tree_note_death(t, pe,
                         t->watches ? "its process ended without gpushmem_finalize"
                                    : "nobody listens any more where it did",
                         NULL);
}

// A host takes the connections among its PEs along.
static void note_silent(struct gpsh_tcp_tree *t, int node)
{
    char reason[sizeof t->deaths->of->reason];
    snprintf(reason, sizeof reason, "its host has not answered for %d s",
             t->watches ? GPSH_TCP_NODE_PATIENCE_S : GPSH_TCP_PATIENCE_S);
    for (int pe = 0; pe < t->n_pes; pe++)
        if (t->peer[pe].node == node && !may_have_left(t, pe))
            gpsh_tree_note_death(t, pe, reason, NULL);
}

// True: that decides it. Where an earlier connection ended by the same silence, its patience is
// over.
static bool host_is_silent(struct gpsh_tcp_tree *t, int pe)
{
    const struct gpsh_tcp_peer *peer = &t->peer[pe];
    const uint64_t patience_ns = GPSH_TCP_PATIENCE_S * (uint64_t)1000000000;
    bool silent = peer->silent || gpsh_clock_ns() - peer->silent_ns >= patience_ns;
    if (!silent || (t->watches && !peer->lost))
        return false;
    if (t->watches && !peer->silent) // it ended before its host did
        note_gone(t, pe);
    else
        note_silent(t, peer->node);
    return true;
}

void gpsh_tree_look_for(struct gpsh_tcp_tree *t, const struct gpsh_tcp_link *link)
{
    int error = link->error;
    struct gpsh_tcp_peer *peer = &t->peer[link->pe];
    peer->lost = true;
    peer->silent = error == ETIMEDOUT || error == EHOSTUNREACH || error == ENETUNREACH;
    set_due(t, link->pe, 0);
}

// ------------------------------------------------------------------------------------------
// calls

// Each PE of a launcher's job has a name of its own: two hosts may have the same address, and then
// a PE that calls one of another host meets one of its own.
struct gpsh_uniqueid gpsh_tree_id(const struct gpsh_tcp_tree *t, int pe)
{
    struct gpsh_uniqueid id = t->listener.id;
    uint8_t name[GPSH_SHA256_BYTES];
    if (!t->watches)
        return id;
    gpsh_hmac_sha256(id.secret, sizeof id.secret, &pe, sizeof pe, name);
    memcpy(id.job, name, sizeof id.job);
    return id;
}

static struct gpsh_tcp_link *call(struct gpsh_tcp_tree *t, int pe)
{
    const struct gpsh_hello hello = {
        .purpose = GPSH_PURPOSE_NEIGHBOUR, .pe = t->my_pe, .n_pes = t->n_pes};
    struct gpsh_uniqueid id = gpsh_tree_id(t, pe);
    struct gpsh_tcp_link *link =
        gpsh_tcp_link_call(&t->loop, &id, &t->peer[pe].listens, &hello, 0, t->link_ops, t);
    if (link)
        link->pe = pe;
    return link;
}

static void call_peer(struct gpsh_tcp_tree *t, int pe)
{
    struct gpsh_tcp_peer *peer = &t->peer[pe];
    peer->call = call(t, pe);
    if (peer->call && !peer->silent_ns)
        peer->silent_ns = gpsh_clock_ns();
    set_due(t, pe, peer->call ? ANSWER_MS : FULL_MS);
}

// It was called in vain, and may live. What is said of the first one explains most.
static void go_on_without(struct gpsh_tcp_tree *t, int pe, const char *what)
{
    char where[GPSH_TCP_TEXT_BYTES];
    t->peer[pe].mute = t->changed_members = true;
    if (!t->failure[0] && !gpsh_tree_comes_after(t, pe))
        snprintf(t->failure, sizeof t->failure, "PE %d at %s %s", pe,
                 gpsh_tcp_address_text(&t->peer[pe].listens, where), what);
}

static void call_again(struct gpsh_tcp_tree *t, int pe, enum gpsh_tcp_ending ending)
{
    static const struct {
        const char *what;
        int ms;
    } then[] = {[GPSH_TCP_REFUSED] = {"refuses connections", AGAIN_MS},
                [GPSH_TCP_UNREACHED] = {"cannot be reached", UNREACHED_MS},
                [GPSH_TCP_HUNG_UP] = {"hangs up", HUNG_UP_MS},
                [GPSH_TCP_STRANGER] = {"is another process", AGAIN_MS},
                [GPSH_TCP_REJECTED] = {"has too many callers", REJECTED_MS}};
    int ms = then[ending].ms;
    if (ending == GPSH_TCP_HUNG_UP)
        ms <<= t->peer[pe].hang_ups - 1;
    else
        go_on_without(t, pe, then[ending].what);
    set_due(t, pe, ms);
}

void gpsh_tree_call_failed(struct gpsh_tcp_tree *t, const struct gpsh_tcp_link *link)
{
    int pe = link->pe;
    struct gpsh_tcp_peer *peer = &t->peer[pe];
    enum gpsh_tcp_ending ending = link->ending;
    peer->call = NULL;
    if (ending == GPSH_TCP_FULL) { // says nothing about that PE
        bool full = gpsh_tcp_is_full(link->error);
        if (!full)
            go_on_without(t, pe, strerror(link->error));
        set_due(t, pe, full ? FULL_MS : AGAIN_MS);
        return;
    }
    peer->hang_ups = ending == GPSH_TCP_HUNG_UP ? peer->hang_ups + 1 : 0;
    if (ending != GPSH_TCP_UNREACHED)
        peer->silent_ns = 0;
    if (peer->hang_ups >= MOST_HANG_UPS) // a PE would have greeted
        ending = GPSH_TCP_STRANGER;
    bool gone = ending == GPSH_TCP_REFUSED || ending == GPSH_TCP_STRANGER;
    peer->due_ns = 0;
    if (peer->died || peer->left)
        return;
    if (gone && may_have_left(t, pe))
        peer->left = t->changed_members = true;
    else if (gone && is_proof(t, pe, ending))
        note_gone(t, pe);
    else if (ending != GPSH_TCP_UNREACHED || !host_is_silent(t, pe))
        call_again(t, pe, ending);
}

// ------------------------------------------------------------------------------------------
// steps

// Once, as long as all is well: whether this PE can reach another node.
static void reach_another_node(struct gpsh_tcp_tree *t)
{
    int own = t->peer[t->my_pe].node, pe = 0;
    while (pe < t->n_pes && (t->peer[pe].node == own || !is_there(t, pe)))
        pe++;
    t->probed = true;
    if (pe < t->n_pes && !t->reached)
        t->probe = call(t, pe);
}

// Whom this PE should be connected with, and is not.
static void look_at_members(struct gpsh_tcp_tree *t)
{
    bool connected = is_connected_upwards(t);
    int up = connected ? -1 : gpsh_tree_above(t, t->my_pe, true);
    t->changed_members = false;
    find_lowest(t, false);
    if (connected || above(t, t->my_pe) < 0)
        t->failure[0] = '\0';
    for (int pe = 0; pe < t->n_pes; pe++) {
        const struct gpsh_tcp_peer *peer = &t->peer[pe];
        if (pe == t->my_pe || !is_there(t, pe) || peer->link || peer->call || peer->due_ns)
            continue;
        if (pe == up)
            set_due(t, pe, 0);
        else if (t->n_died && above(t, pe) == t->my_pe)
            set_due(t, pe, t->died_below ? 0 : BELOW_MS);
    }
    t->died_below = false;
    if (up >= 0)
        return;
    t->settled = true;
    pthread_cond_broadcast(&t->changed);
    if (t->watches && !t->probed)
        reach_another_node(t);
}

static void take_turn(struct gpsh_tcp_tree *t, int pe)
{
    struct gpsh_tcp_peer *peer = &t->peer[pe];
    peer->due_ns = 0;
    if (!is_there(t, pe) || peer->link)
        return;
    if (peer->call)
        go_on_without(t, pe, "does not answer");
    else
        call_peer(t, pe);
}

int gpsh_tree_due(const struct gpsh_tcp_tree *t)
{
    if (t->leaving || !t->known)
        return -1;
    return t->changed_members ? 0 : gpsh_clock_left_ms(t->due_ns);
}

void gpsh_tree_step(struct gpsh_tcp_tree *t)
{
    uint64_t now = gpsh_clock_ns();
    if (t->leaving || !t->known)
        return;
    if (t->changed_members)
        look_at_members(t);
    t->due_ns = UINT64_MAX;
    for (int pe = 0; pe < t->n_pes; pe++) {
        struct gpsh_tcp_peer *peer = &t->peer[pe];
        if (peer->due_ns && peer->due_ns <= now)
            take_turn(t, pe);
        if (peer->due_ns && peer->due_ns < t->due_ns)
            t->due_ns = peer->due_ns;
        if (peer->died) { // whom others have named
            gpsh_tcp_link_destroy(peer->call);
            peer->call = NULL;
        }
    }
}

// ------------------------------------------------------------------------------------------
// what others ask

void gpsh_tcp_tree_set_peers(struct gpsh_tcp_tree *tree, const int *node,
                             const struct gpsh_tcp_address *addresses,
                             const uint8_t secret[GPSH_SECRET_BYTES])
{
    int nodes = 0;
    pthread_mutex_lock(&tree->lock);
    memcpy(tree->listener.id.secret, secret, GPSH_SECRET_BYTES);
    for (int pe = 0; pe < tree->n_pes; pe++) {
        tree->peer[pe].listens = addresses[pe];
        tree->peer[pe].node = !node || node[pe] == pe ? nodes++ : tree->peer[node[pe]].node;
    }
    tree->watches = node != NULL;
    tree->changed_members |= tree->watches;
    tree->listener.id = gpsh_tree_id(tree, tree->my_pe);
    tree->known = true;
    pthread_mutex_unlock(&tree->lock);
}

bool gpsh_tcp_tree_await_parent(struct gpsh_tcp_tree *tree, int ms)
{
    const uint64_t until_ns = gpsh_clock_in(ms);
    pthread_mutex_lock(&tree->lock);
    for (int late = 0; !tree->settled && !late;)
        late = gpsh_cond_wait_until(&tree->changed, &tree->lock, until_ns);
    bool connected = tree->settled && !tree->failure[0];
    if (!connected)
        gpsh_fail(GPUSHMEM_ERR_BOOTSTRAP, "%s", tree->settled ? tree->failure : "no PE answers");
    pthread_mutex_unlock(&tree->lock);
    return connected;
}

void gpsh_tcp_tree_expect_departures(struct gpsh_tcp_tree *tree, bool (*has_told)(int pe))
{
    pthread_mutex_lock(&tree->lock);
    tree->departures = true;
    tree->has_told = has_told;
    pthread_mutex_unlock(&tree->lock);
}

void gpsh_tcp_tree_tell_death(struct gpsh_tcp_tree *tree, int pe, const char *reason)
{
    pthread_mutex_lock(&tree->lock);
    gpsh_tree_note_death(tree, pe, reason, NULL);
    pthread_mutex_unlock(&tree->lock);
    gpsh_tcp_loop_wake(&tree->loop);
}
