// SPDX-License-Identifier: BSD-3-Clause
// Who of the job lives. A PE is taken for dead
//   by unique id     if its connection ends without a goodbye (tcp_thread.c, tree_link_lost)
//   by a launcher    if its connection ends, and then nobody or a stranger is at its port
//   both             if it is called, by a PE that searches for a parent or that looks after those
//                    that belong below it, and nobody is there
//   by another's word, over the tree, or by somebody of this node (gpsh_tcp_tree_tell_death)
// Each ends in gpsh_tree_note_death: the first word about a PE counts, the neighbours are told, and
// the tree's thread tells the runtime (bootstrap.h: on_death), which is where runtime/progress
// learns of it. PEs that leave in order are no deaths: may_have_left.
//
// Both callings follow one rule, gpsh_tree_above: whom each PE should be connected with. One that
// lost its parent calls that PE, and the next one if it does not answer. PEs that die together may
// have been connected with each other alone: then no living PE sees a connection end. So after a
// death a PE calls those that should be connected with it and have not called.
#define _GNU_SOURCE // clock_gettime
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "bootstrap/tcp_tree.h"
#include "core/clock.h"
#include "core/error.h"

enum {
    DIAL_MS = 2000,
    PROBE_MS = 2000,  // a packet may be lost
    LOOK_MS = 500,    // for one of many; others wait meanwhile
    PAUSE_MS = 20,    // for events of others, after a look at a PE that is there
    FULL_MS = 20,     // until a descriptor may be free
    SERVE_MS = 200,   // for others that call this PE, between two that do not answer it
    SLOW_MS = 100,    // until all that were busy are called again
    AGAIN_MS = 10000, // until all that were not reached are
    FIRST_MS = 300,   // PEs that lost their parent call another one meanwhile
    MOST_MS = 10000,
    SILENT_S = 35,
};

// A suspect that is there is looked at again after 10 ms, then after twice as long.
enum {
    SUSPECT_MS = 10,
    MOST_LOOKS = 9,
    MOST_TRUSTED = 3, // looks at which it is enough that somebody listens
    MOST_CUT = 5,     // looks at which a connection may end by chance before the other end spoke
};

static uint64_t in_ms(int ms)
{
    return gpsh_clock_ns() + (uint64_t)ms * 1000000;
}

// ------------------------------------------------------------------------------------------
// deaths

static bool may_have_left(const struct gpsh_tcp_tree *t, int pe)
{
    return t->departures && (!t->has_told || t->has_told(pe));
}

// Nobody who is `pe` was found where it listened; it may have called meanwhile. Between nodes, a
// port that refuses may be a firewall's doing, and two hosts may have the same address. Returns
// whether that is its death.
static bool note_gone(struct gpsh_tcp_tree *t, int pe, enum gpsh_tcp_presence presence)
{
    bool proof = !t->watches || (presence == GPSH_TCP_ABSENT && !t->left &&
                                 (t->reached || t->peer[pe].node == t->peer[t->my_pe].node));
    if (!gpsh_tcp_has_ended(presence) || !proof || gpsh_tree_link_to(t, pe) || may_have_left(t, pe))
        return false;
    gpsh_tree_note_death(t, pe,
                         t->watches ? "its process ended without gpushmem_finalize"
                                    : "nobody listens any more where it did",
                         NULL);
    return true;
}

// A host takes the connections among its PEs along.
static void note_silent(struct gpsh_tcp_tree *t, int node)
{
    char reason[sizeof t->peer->reason];
    snprintf(reason, sizeof reason, "its host has not answered for %d s",
             t->watches ? GPSH_TCP_NODE_PATIENCE_S : SILENT_S);
    for (int pe = 0; pe < t->n_pes; pe++)
        if (t->peer[pe].node == node && !may_have_left(t, pe))
            gpsh_tree_note_death(t, pe, reason, NULL);
}

// ------------------------------------------------------------------------------------------
// calls

// Each PE of a launcher's job has a name of its own: two hosts may have the same address, and then
// a PE that calls one of another host meets one of its own.
struct gpsh_uniqueid gpsh_tree_id(const struct gpsh_tcp_tree *t, int pe)
{
    struct gpsh_uniqueid id = t->gate.id;
    uint8_t name[GPSH_SHA256_BYTES];
    if (!t->watches)
        return id;
    gpsh_hmac_sha256(id.secret, sizeof id.secret, &pe, sizeof pe, name);
    memcpy(id.job, name, sizeof id.job);
    return id;
}

// A connected descriptor, or a negative status.
static int dial(struct gpsh_tcp_tree *t, int pe)
{
    struct gpsh_hello hello = {.purpose = GPSH_PURPOSE_ORPHAN, .pe = t->my_pe, .n_pes = t->n_pes};
    struct gpsh_tcp_address address = t->peer[pe].listens;
    struct gpsh_uniqueid id = gpsh_tree_id(t, pe);
    char whom[16];
    snprintf(whom, sizeof whom, "PE %d", pe);
    pthread_mutex_unlock(&t->lock);
    int fd = gpsh_tcp_dial(&id, &address, 1, &hello, NULL, NULL, whom, in_ms(DIAL_MS));
    pthread_mutex_lock(&t->lock);
    return fd;
}

// Whether somebody listens where `pe` did and, if it shall prove it, is the PE.
static enum gpsh_tcp_presence look(struct gpsh_tcp_tree *t, int pe, bool prove, int ms)
{
    struct gpsh_hello hello = {.pe = t->my_pe, .n_pes = t->n_pes};
    struct gpsh_tcp_address address = t->peer[pe].listens;
    struct gpsh_uniqueid id = gpsh_tree_id(t, pe);
    pthread_mutex_unlock(&t->lock);
    enum gpsh_tcp_presence presence =
        gpsh_tcp_probe(prove ? &id : NULL, &address, &hello, in_ms(ms));
    pthread_mutex_lock(&t->lock);
    return presence;
}

// ------------------------------------------------------------------------------------------
// whom to be connected with

bool gpsh_tree_comes_after(const struct gpsh_tcp_tree *t, int pe)
{
    if (pe < 0 || pe >= t->n_pes)
        return false;
    int node = t->peer[pe].node, own = t->peer[t->my_pe].node;
    return node == own ? pe > t->my_pe : node > own;
}

static bool is_there(const struct gpsh_tcp_tree *t, int pe)
{
    return pe == t->my_pe || (!t->peer[pe].died && t->peer[pe].listens.version);
}

static void find_lowest(struct gpsh_tcp_tree *t, bool searching)
{
    for (int node = 0; node < t->n_pes; node++)
        t->lowest[node] = -1;
    for (int pe = t->n_pes - 1; pe >= 0; pe--)
        if (is_there(t, pe) && !(searching && t->peer[pe].tried))
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

// ------------------------------------------------------------------------------------------
// the search for a parent

// Once, as long as all is well: whether this PE can reach another node.
static void reach_another_node(struct gpsh_tcp_tree *t)
{
    int own = t->peer[t->my_pe].node, pe = 0;
    while (pe < t->n_pes && (t->peer[pe].node == own || !is_there(t, pe)))
        pe++;
    t->tried_to_reach = true;
    if (pe < t->n_pes && look(t, pe, false, PROBE_MS) == GPSH_TCP_PRESENT)
        t->reached = true;
}

static void settle(struct gpsh_tcp_tree *t)
{
    if (t->watches && !t->reached && !t->tried_to_reach)
        reach_another_node(t);
    t->settled = true;
    pthread_cond_broadcast(&t->changed);
}

// All were called. Those that did not answer are called again: else a PE that was stopped would be
// cut off from the others for ever.
static void end_search(struct gpsh_tcp_tree *t)
{
    bool missed = t->missed, slow = t->slow;
    for (int pe = 0; pe < t->n_pes; pe++)
        t->peer[pe].tried = false;
    t->missed = t->slow = false;
    t->orphan = missed;
    t->call_ns = in_ms(slow ? SLOW_MS : AGAIN_MS);
    if (!missed)
        t->failure[0] = '\0';
    if (!slow)
        settle(t);
}

// `pe` was called in vain, and may live.
static void miss(struct gpsh_tcp_tree *t, int pe, enum gpsh_tcp_presence presence)
{
    static const char *const what[] = {[GPSH_TCP_PRESENT] = "does not answer",
                                       [GPSH_TCP_ABSENT] = "refuses connections",
                                       [GPSH_TCP_UNREACHED] = "cannot be reached",
                                       [GPSH_TCP_UNSURE] = "was not called (no descriptor)",
                                       [GPSH_TCP_OTHER] = "is another process",
                                       [GPSH_TCP_HUNG_UP] = "hangs up"};
    char where[GPSH_TCP_TEXT_BYTES];
    for (int other = 0; presence == GPSH_TCP_UNREACHED && other < t->n_pes; other++)
        t->peer[other].tried |= t->peer[other].node == t->peer[pe].node && other != t->my_pe;
    if (!t->missed)
        snprintf(t->failure, sizeof t->failure, "PE %d at %s %s", pe,
                 gpsh_tcp_address_text(&t->peer[pe].listens, where), what[presence]);
    t->missed = true;
    t->slow |=
        presence != GPSH_TCP_ABSENT && presence != GPSH_TCP_UNREACHED && presence != GPSH_TCP_OTHER;
    t->call_ns = in_ms(SERVE_MS);
}

static bool take_parent(struct gpsh_tcp_tree *t, int fd, int pe)
{
    t->parent = gpsh_tree_add_link(t, fd, pe);
    if (!t->parent)
        return false;
    t->reached |= t->peer[pe].node != t->peer[t->my_pe].node;
    t->orphan = t->missed = t->slow = false;
    t->failure[0] = '\0';
    for (int other = 0; other < t->n_pes; other++)
        t->peer[other].tried = false;
    settle(t);
    return true;
}

static void search(struct gpsh_tcp_tree *t)
{
    int pe = gpsh_tree_above(t, t->my_pe, true);
    if (pe < 0) {
        end_search(t);
        return;
    }
    int fd = dial(t, pe);
    if (fd >= 0 && take_parent(t, fd, pe))
        return;
    if (fd == GPUSHMEM_ERR_SYSTEM) { // says nothing about that PE
        t->call_ns = in_ms(FULL_MS);
        return;
    }
    enum gpsh_tcp_presence presence = look(t, pe, true, PROBE_MS);
    t->peer[pe].tried = true;
    if (note_gone(t, pe, presence) || (gpsh_tcp_has_ended(presence) && may_have_left(t, pe)))
        return;
    miss(t, pe, presence);
}

// ------------------------------------------------------------------------------------------
// looking after others

static void look_again(struct gpsh_tcp_tree *t, int pe, int ms)
{
    t->peer[pe].look_ns = in_ms(ms);
    if (t->peer[pe].look_ns < t->look_ns)
        t->look_ns = t->peer[pe].look_ns;
}

// After a death, all that belong below this PE and are not connected with it.
static void mind(struct gpsh_tcp_tree *t, int ms)
{
    t->n_minded = t->n_died;
    find_lowest(t, false);
    for (int pe = 0; pe < t->n_pes; pe++) {
        struct gpsh_tcp_peer *peer = &t->peer[pe];
        if (pe == t->my_pe || !is_there(t, pe) || above(t, pe) != t->my_pe || peer->suspicion ||
            gpsh_tree_link_to(t, pe) || (peer->look_ns && peer->look_ns <= in_ms(ms)))
            continue;
        peer->pause_ms = FIRST_MS;
        look_again(t, pe, ms);
    }
}

void gpsh_tree_suspect(struct gpsh_tcp_tree *t, const struct gpsh_tcp_link *link)
{
    int error = link->error;
    bool silent = error == ETIMEDOUT || error == EHOSTUNREACH || error == ENETUNREACH;
    t->peer[link->pe].suspicion = silent ? GPSH_SUSPECT_SILENT : GPSH_SUSPECT_ENDED;
    t->peer[link->pe].looks = 0;
    look_again(t, link->pe, 0);
    t->look_ns = t->peer[link->pe].look_ns;
}

// One that is there calls this PE, or another one; or it is just ending, and closes its port after
// its connections. It is to be asked when it has not called again for a while: each waits until the
// other has time.
static void look_at_suspect(struct gpsh_tcp_tree *t, int pe)
{
    struct gpsh_tcp_peer *peer = &t->peer[pe];
    enum gpsh_tcp_presence presence = look(t, pe, peer->looks >= MOST_TRUSTED, PROBE_MS);
    bool by_chance = presence == GPSH_TCP_HUNG_UP && peer->looks < MOST_CUT; // a PE would greet
    if ((gpsh_tcp_has_ended(presence) && !by_chance) ||
        (presence == GPSH_TCP_UNREACHED && peer->suspicion == GPSH_SUSPECT_ENDED))
        gpsh_tree_note_death(t, pe, "its process ended without gpushmem_finalize", NULL);
    else if (presence == GPSH_TCP_UNREACHED)
        note_silent(t, peer->node);
    else if (presence == GPSH_TCP_UNSURE) // that was no look: perhaps nobody else will say so
        look_again(t, pe, SLOW_MS);
    else if (++peer->looks < MOST_LOOKS)
        look_again(t, pe, SUSPECT_MS << (peer->looks - 1));
    if (!peer->look_ns)
        peer->suspicion = GPSH_NO_SUSPECT;
}

static bool has_vanished(struct gpsh_tcp_peer *peer, enum gpsh_tcp_presence presence)
{
    if (presence == GPSH_TCP_UNREACHED && !peer->silent_ns)
        peer->silent_ns = gpsh_clock_ns();
    if (presence != GPSH_TCP_UNREACHED && presence != GPSH_TCP_UNSURE)
        peer->silent_ns = 0;
    return peer->silent_ns &&
           gpsh_clock_ns() - peer->silent_ns >= SILENT_S * (uint64_t)1000000000 &&
           presence == GPSH_TCP_UNREACHED;
}

// One that lives when it is looked at may die later. Returns in how many ms to look at others.
static int look_after(struct gpsh_tcp_tree *t, int pe)
{
    struct gpsh_tcp_peer *peer = &t->peer[pe];
    enum gpsh_tcp_presence presence = look(t, pe, true, LOOK_MS);
    if (note_gone(t, pe, presence)) {
        mind(t, 0);
        return 0;
    }
    if (!t->watches && has_vanished(peer, presence))
        note_silent(t, peer->node);
    peer->pause_ms = 3 * peer->pause_ms < MOST_MS ? 3 * peer->pause_ms : MOST_MS;
    look_again(t, pe, peer->pause_ms);
    return PAUSE_MS;
}

// Whose turn is next, -1: nobody's. Those that have called or died need not be looked at.
static int next_to_look_at(struct gpsh_tcp_tree *t)
{
    int next = -1;
    for (int pe = 0; pe < t->n_pes; pe++) {
        struct gpsh_tcp_peer *peer = &t->peer[pe];
        if (!peer->look_ns)
            continue;
        if (!is_there(t, pe) || gpsh_tree_link_to(t, pe)) {
            peer->look_ns = 0;
            peer->suspicion = GPSH_NO_SUSPECT;
        } else if (next < 0 || peer->look_ns < t->peer[next].look_ns) {
            next = pe;
        }
    }
    return next;
}

static void look_at_next(struct gpsh_tcp_tree *t)
{
    int pause = 0, pe = next_to_look_at(t);
    if (pe >= 0 && t->peer[pe].look_ns <= gpsh_clock_ns()) {
        t->peer[pe].look_ns = 0;
        if (t->peer[pe].suspicion)
            look_at_suspect(t, pe);
        else
            pause = look_after(t, pe);
        pe = next_to_look_at(t);
    }
    t->look_ns = pe < 0 ? UINT64_MAX : t->peer[pe].look_ns;
    if (pause && t->look_ns < in_ms(pause))
        t->look_ns = in_ms(pause);
}

int gpsh_tree_due(const struct gpsh_tcp_tree *t)
{
    uint64_t at = t->look_ns, now = gpsh_clock_ns();
    if (t->leaving || !t->known)
        return -1;
    if (t->n_minded != t->n_died)
        return 0;
    if (t->orphan && t->call_ns < at)
        at = t->call_ns;
    if (at == UINT64_MAX)
        return -1;
    return at <= now ? 0 : (int)((at - now) / 1000000) + 1;
}

void gpsh_tree_step(struct gpsh_tcp_tree *t)
{
    if (t->leaving || !t->known)
        return;
    if (t->n_minded != t->n_died)
        mind(t, FIRST_MS);
    uint64_t now = gpsh_clock_ns();
    if (t->look_ns <= now)
        look_at_next(t);
    else if (t->orphan && t->call_ns <= now)
        search(t);
}

// ------------------------------------------------------------------------------------------
// what others ask

void gpsh_tcp_tree_set_peers(struct gpsh_tcp_tree *tree, const int *node,
                             const struct gpsh_tcp_address *addresses,
                             const uint8_t secret[GPSH_SECRET_BYTES])
{
    int nodes = 0;
    pthread_mutex_lock(&tree->lock);
    memcpy(tree->gate.id.secret, secret, GPSH_SECRET_BYTES);
    for (int pe = 0; pe < tree->n_pes; pe++) {
        tree->peer[pe].listens = addresses[pe];
        tree->peer[pe].node = !node || node[pe] == pe ? nodes++ : tree->peer[node[pe]].node;
    }
    tree->watches = tree->orphan = node != NULL;
    tree->gate.id = gpsh_tree_id(tree, tree->my_pe);
    tree->known = true;
    pthread_mutex_unlock(&tree->lock);
}

bool gpsh_tcp_tree_await_parent(struct gpsh_tcp_tree *tree, int ms)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += ms / 1000;
    pthread_mutex_lock(&tree->lock);
    for (int late = 0; !tree->settled && !late;)
        late = pthread_cond_timedwait(&tree->changed, &tree->lock, &until);
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
