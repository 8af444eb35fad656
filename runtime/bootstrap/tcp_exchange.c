// SPDX-License-Identifier: BSD-3-Clause
// Blobs of all PEs to all PEs: up the tree, and down again.
#define _GNU_SOURCE // clock_gettime
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "bootstrap/tcp_tree.h"
#include "core/clock.h"
#include "core/error.h"
#include "core/thread.h"

static bool is_child(const struct gpsh_tcp_tree *t, int pe)
{
    return pe > 0 && pe < t->n_pes && gpsh_tree_parent(pe) == t->my_pe;
}

static struct gpsh_tcp_link *parent(const struct gpsh_tcp_tree *t)
{
    return t->my_pe ? t->peer[gpsh_tree_parent(t->my_pe)].link : NULL;
}

static int children(const struct gpsh_tcp_tree *t) // how many this PE has
{
    int first = t->my_pe * GPSH_TREE_WIDTH + 1, rest = t->n_pes - first;
    return rest < 0 ? 0 : rest < GPSH_TREE_WIDTH ? rest : GPSH_TREE_WIDTH;
}

// The bundle of all PEs is here.
static void tree_deliver(struct gpsh_tcp_tree *t, struct gpsh_parcel *bundle)
{
    gpsh_parcel_release(t->bundle);
    t->bundle = bundle;
    t->delivered = t->round;
    for (struct gpsh_tcp_link *link = t->links; link; link = link->next)
        if (is_child(t, link->pe))
            gpsh_tcp_link_send(link, bundle);
    pthread_cond_broadcast(&t->changed);
}

// Records of this PE and of all below it, in one parcel.
static struct gpsh_parcel *tree_gather(struct gpsh_tcp_tree *t)
{
    size_t bytes = t->mine->frame.bytes;
    for (struct gpsh_tcp_link *link = t->links; link; link = link->next)
        bytes += link->kept ? link->kept->frame.bytes : 0;
    struct gpsh_parcel *all =
        gpsh_parcel_create(t->my_pe ? GPSH_FRAME_UP : GPSH_FRAME_DOWN, t->my_pe, t->round, bytes);
    if (!all)
        return NULL;
    uint8_t *at = all->payload;
    memcpy(at, t->mine->payload, t->mine->frame.bytes);
    at += t->mine->frame.bytes;
    for (struct gpsh_tcp_link *link = t->links; link; link = link->next) {
        if (!link->kept)
            continue;
        memcpy(at, link->kept->payload, link->kept->frame.bytes);
        at += link->kept->frame.bytes;
        gpsh_parcel_release(link->kept);
        link->kept = NULL;
    }
    return all;
}

// Sends up what is complete.
static void tree_advance(struct gpsh_tcp_tree *t)
{
    int have = 0;
    for (struct gpsh_tcp_link *link = t->links; link; link = link->next)
        have += link->kept != NULL;
    if (!t->mine || have < children(t) || (t->my_pe && !parent(t)))
        return;
    struct gpsh_parcel *all = tree_gather(t);
    gpsh_parcel_release(t->mine);
    t->mine = NULL;
    if (!all) {
        gpsh_tree_fail(t, GPUSHMEM_ERR_NO_MEMORY, "no memory for the data that the PEs exchange",
                       NULL);
    } else if (t->my_pe) {
        gpsh_tcp_link_send(parent(t), all);
        gpsh_parcel_release(all);
    } else {
        tree_deliver(t, all);
    }
}

void gpsh_tree_take_bundle(struct gpsh_tcp_tree *t, struct gpsh_tcp_link *link,
                           struct gpsh_parcel *parcel)
{
    bool up = parcel->frame.type == GPSH_FRAME_UP, due;
    char sentence[160];
    if (up) // a child is ahead by one at most: it waits for the bundle of the round before
        due = is_child(t, link->pe) && !link->kept && parcel->frame.round == t->delivered + 1;
    else
        due = link == parent(t) && t->round != t->delivered && !t->mine &&
              parcel->frame.round == t->round;
    if (!due) {
        snprintf(sentence, sizeof sentence,
                 "PE %d sent its part of exchange %u to PE %d, which is in exchange %u: all PEs "
                 "must run the same release of gpushmem",
                 link->pe, parcel->frame.round, t->my_pe, t->round);
        gpsh_tree_fail(t, GPUSHMEM_ERR_PEER_DATA, sentence, NULL);
        gpsh_parcel_release(parcel);
    } else if (up) {
        link->kept = parcel;
        tree_advance(t);
    } else {
        tree_deliver(t, parcel);
    }
}

// Names the PE that nothing came from.
static int tree_late(struct gpsh_tcp_tree *t, const char *what, int64_t timeout_ms)
{
    char from[96] = "its parent in the tree of PEs", where[GPSH_TCP_TEXT_BYTES];
    for (int pe = t->my_pe * GPSH_TREE_WIDTH + 1; t->mine && is_child(t, pe); pe++) {
        const struct gpsh_tcp_link *link = t->peer[pe].link;
        if (link && link->kept)
            continue;
        if (link)
            snprintf(from, sizeof from, "PE %d", pe);
        else
            snprintf(from, sizeof from, "PE %d, which did not connect to %s (a firewall?)", pe,
                     gpsh_tcp_address_text(&t->listener.id.address[0], where));
        break;
    }
    return gpsh_fail(GPUSHMEM_ERR_TIMEOUT,
                     "%s timed out after %lld ms: PE %d heard nothing from %s", what,
                     (long long)timeout_ms, t->my_pe, from);
}

// 0: still nothing. With the lock.
static int tree_trouble(struct gpsh_tcp_tree *t, const char *what)
{
    int status = gpsh_deaths_check(t->deaths, what, 0);
    if (!status && t->code)
        status = gpsh_fail(t->code, "%s", t->sentence);
    if (!status && t->left)
        status = gpsh_fail(GPUSHMEM_ERR_PE_FAILED, "%s: PE %d has left the job", what, t->left - 1);
    return status;
}

static int tree_await_bundle(struct gpsh_tcp_tree *t, int64_t timeout_ms, const char *what)
{
    const uint64_t until_ns = gpsh_clock_in(timeout_ms);
    for (int late = 0; t->delivered != t->round;) {
        int status = tree_trouble(t, what);
        if (status)
            return status;
        if (late)
            return tree_late(t, what, timeout_ms);
        late = timeout_ms > 0 ? gpsh_cond_wait_until(&t->changed, &t->lock, until_ns)
                              : pthread_cond_wait(&t->changed, &t->lock);
    }
    return 0;
}

int gpsh_tcp_tree_exchange(struct gpsh_tcp_tree *tree, const void *blob, size_t bytes,
                           int64_t timeout_ms, const char *what, struct gpsh_parcel **bundle)
{
    pthread_mutex_lock(&tree->lock);
    int status = tree_trouble(tree, what);
    if (!status) {
        struct gpsh_parcel *mine =
            gpsh_parcel_create(GPSH_FRAME_UP, tree->my_pe, 0, gpsh_record_room(bytes));
        if (mine) {
            gpsh_record_write(mine->payload, tree->my_pe, blob, bytes);
            tree->mine = mine;
            tree->round++;
            tree_advance(tree);
            status = tree_await_bundle(tree, timeout_ms, what);
        } else {
            status = gpsh_fail(GPUSHMEM_ERR_NO_MEMORY, "no memory for %zu bytes", bytes);
        }
    }
    if (status && status != GPUSHMEM_ERR_PE_FAILED)
        gpsh_tree_fail(tree, status, gpsh_last_error(), NULL);
    if (!status) {
        *bundle = tree->bundle;
        atomic_fetch_add(&tree->bundle->references, 1);
    }
    pthread_mutex_unlock(&tree->lock);
    return status;
}
