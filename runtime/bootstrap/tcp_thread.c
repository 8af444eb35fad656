// SPDX-License-Identifier: BSD-3-Clause
// The thread of each PE that serves its part of the tree, and the tree's beginning and end.
#define _GNU_SOURCE // pthread_condattr_setclock
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "bootstrap/tcp_tree.h"
#include "core/error.h"
#include "core/log.h"
#include "core/thread.h"

enum { FLUSH_MS = 500, FULL_MS = 20 };

// ------------------------------------------------------------------------------------------
// connections

static void tree_unlink(struct gpsh_tcp_tree *t, struct gpsh_tcp_link *link)
{
    struct gpsh_tcp_link **at = &t->links;
    while (*at != link)
        at = &(*at)->next;
    *at = link->next;
    t->peer[link->pe].link = NULL;
    t->changed_members = true;
}

static void tree_order_end(struct gpsh_tcp_tree *t, int status, bool by_exit, const char *why,
                           const struct gpsh_tcp_link *from)
{
    if (!gpsh_tcp_end_order(&t->end, by_exit, status))
        return;
    if (from) // else the PE that ordered it has said so
        GPSH_LOG(ERROR, "bootstrap", "the job ends: %s", why);
    gpsh_tree_flood(t, gpsh_parcel_text(GPSH_FRAME_END, by_exit, (uint32_t)status, why), from);
}

static void tree_link_frame(struct gpsh_tcp_link *link, struct gpsh_parcel *parcel)
{
    struct gpsh_tcp_tree *t = link->owner;
    const struct gpsh_frame frame = parcel->frame;
    char text[GPSH_SENTENCE_BYTES];
    if (frame.type == GPSH_FRAME_UP || frame.type == GPSH_FRAME_DOWN) {
        gpsh_tree_take_bundle(t, link, parcel);
        return;
    }
    gpsh_frame_text(parcel->payload, frame.bytes, text, sizeof text);
    gpsh_parcel_release(parcel);
    switch (frame.type) {
    case GPSH_FRAME_FAIL: gpsh_tree_fail(t, -(int)frame.round, text, link); break;
    case GPSH_FRAME_DEAD: gpsh_tree_note_death(t, frame.pe, text, link); break;
    case GPSH_FRAME_END: tree_order_end(t, (int)frame.round, frame.pe, text, link); break;
    case GPSH_FRAME_ASK: gpsh_tree_hear_question(t, frame.pe, frame.round, link); break;
    case GPSH_FRAME_RUNS: gpsh_tree_hear_answer(t, frame.pe, frame.round, link); break;
    case GPSH_FRAME_BYE:
        link->left = true;
        t->left = link->pe + 1;
        pthread_cond_broadcast(&t->changed);
        break;
    default: break;
    }
}

static void tree_link_lost(struct gpsh_tcp_tree *t, struct gpsh_tcp_link *link)
{
    tree_unlink(t, link);
    if (link->left) {
        t->peer[link->pe].left = true;
        t->upper_left |= !gpsh_tree_comes_after(t, link->pe);
    } else if (t->watches) {
        gpsh_tree_look_for(t, link);
    } else if (link->heard) {
        gpsh_tree_note_death(t, link->pe, gpsh_tcp_link_why(link), link);
    } // else it has called, and may have given that up; if it has died it does not answer a call
}

static void tree_link_ended(struct gpsh_tcp_link *link)
{
    struct gpsh_tcp_tree *t = link->owner;
    if (link->ending == GPSH_TCP_LOST)
        tree_link_lost(t, link);
    else if (link == t->probe)
        t->probe = NULL;
    else
        gpsh_tree_call_failed(t, link);
    gpsh_tcp_link_destroy(link);
}

static int tree_link_greeted(struct gpsh_tcp_link *link)
{
    struct gpsh_tcp_tree *t = link->owner;
    t->reached |= t->peer[link->pe].node != t->peer[t->my_pe].node;
    return link == t->probe;
}

static void tree_link_open(struct gpsh_tcp_link *link)
{
    struct gpsh_tcp_tree *t = link->owner;
    t->peer[link->pe].call = NULL;
    gpsh_tree_add_link(t, link, link->pe);
}

static const struct gpsh_tcp_link_ops link_ops = {.greeted = tree_link_greeted,
                                                  .open = tree_link_open,
                                                  .frame = tree_link_frame,
                                                  .ended = tree_link_ended};

// Two PEs may call each other at the same time: then the upper one's call counts, if it has been
// greeted. One that calls again has lost a connection that this PE still has.
static void tree_admit(struct gpsh_tcp_listener *listener, struct gpsh_tcp_link *link)
{
    struct gpsh_tcp_tree *t = listener->owner;
    int pe = link->hello.pe;
    bool ours = link->hello.n_pes == t->n_pes && pe >= 0 && pe < t->n_pes && pe != t->my_pe;
    struct gpsh_tcp_peer *peer = ours ? &t->peer[pe] : NULL;
    bool child = ours && link->hello.purpose == GPSH_PURPOSE_CHILD && !peer->link && !t->watches &&
                 pe > 0 && gpsh_tree_parent(pe) == t->my_pe;
    if (!child && (!ours || link->hello.purpose != GPSH_PURPOSE_NEIGHBOUR ||
                   (peer->call && peer->call->state == GPSH_TCP_AWAITS_ANSWER &&
                    gpsh_tree_comes_after(t, pe)))) {
        gpsh_tcp_link_destroy(link);
        return;
    }
    gpsh_tcp_link_destroy(peer->call);
    peer->call = NULL;
    if (peer->link) {
        struct gpsh_tcp_link *old = peer->link;
        tree_unlink(t, old);
        gpsh_tcp_link_destroy(old);
    }
    link->heard = child;
    gpsh_tree_add_link(t, link, pe);
}

// ------------------------------------------------------------------------------------------
// the thread

static int sooner(int ms, int other_ms) // -1: never
{
    return ms < 0 || (other_ms >= 0 && other_ms < ms) ? other_ms : ms;
}

static void *tree_run(void *arg)
{
    struct gpsh_tcp_tree *t = arg;
    pthread_mutex_lock(&t->lock);
    while (!t->stop) {
        gpsh_tcp_loop_turn(&t->loop, sooner(gpsh_tcp_end_step(&t->end), gpsh_tree_due(t)),
                           &t->lock);
        if (t->listener.accept_error) { // callers wait meanwhile
            t->listener.accept_error = 0;
            pthread_mutex_unlock(&t->lock);
            nanosleep(&(struct timespec){.tv_nsec = FULL_MS * 1000000}, NULL);
            pthread_mutex_lock(&t->lock);
        }
        if (!t->stop && gpsh_tree_due(t) == 0)
            gpsh_tree_step(t);
        if (t->stop)
            break;
        pthread_mutex_unlock(&t->lock); // the runtime may end the job
        gpsh_deaths_tell(t->deaths);
        pthread_mutex_lock(&t->lock);
    }
    pthread_mutex_unlock(&t->lock);
    return NULL;
}

// ------------------------------------------------------------------------------------------
// what others ask

static void tree_free(struct gpsh_tcp_tree *t)
{
    for (int pe = 0; pe < t->n_pes; pe++) {
        gpsh_tcp_link_destroy(t->peer[pe].link);
        gpsh_tcp_link_destroy(t->peer[pe].call);
    }
    gpsh_tcp_link_destroy(t->probe);
    gpsh_tcp_listener_close(&t->listener);
    gpsh_tcp_loop_close(&t->loop);
    gpsh_parcel_release(t->mine);
    gpsh_parcel_release(t->bundle);
    pthread_cond_destroy(&t->changed);
    pthread_mutex_destroy(&t->lock);
    free(t->peer);
    free(t->lowest);
    free(t);
}

static int tree_listen(struct gpsh_tcp_tree *t, const struct gpsh_uniqueid *id,
                       struct gpsh_tcp_address *address)
{
    struct gpsh_uniqueid here = *id;
    here.n_addresses = 1;
    here.address[0] = *address;
    here.address[0].port = 0;
    int error = gpsh_tcp_loop_open(&t->loop);
    if (error)
        return gpsh_fail(GPUSHMEM_ERR_SYSTEM, "no file descriptors to connect the PEs: %s",
                         strerror(error));
    int status = gpsh_tcp_listener_open(&t->listener, &t->loop, &here, tree_admit, t);
    if (status)
        return status;
    gpsh_tcp_listener_hold(&t->listener);
    *address = t->listener.id.address[0];
    return 0;
}

struct gpsh_tcp_tree *gpsh_tcp_tree_create(const struct gpsh_uniqueid *id, int my_pe, int n_pes,
                                           struct gpsh_tcp_address *address,
                                           struct gpsh_deaths *deaths)
{
    struct gpsh_tcp_tree *t = calloc(1, sizeof *t);
    struct gpsh_tcp_peer *peer = calloc((size_t)n_pes, sizeof *peer);
    int *lowest = calloc((size_t)n_pes, sizeof *lowest);
    if (!t || !peer || !lowest) {
        gpsh_fail(GPUSHMEM_ERR_NO_MEMORY, "no memory to connect %d PEs", n_pes);
        free(t);
        free(peer);
        free(lowest);
        return NULL;
    }
    *t = (struct gpsh_tcp_tree){.my_pe = my_pe,
                                .n_pes = n_pes,
                                .link_ops = &link_ops,
                                .peer = peer,
                                .lowest = lowest,
                                .deaths = deaths,
                                .due_ns = UINT64_MAX};
    gpsh_cond_init(&t->changed);
    pthread_mutex_init(&t->lock, NULL);
    for (int pe = 0; pe < n_pes; pe++)
        peer[pe].node = pe;
    if (!tree_listen(t, id, address))
        return t;
    tree_free(t);
    return NULL;
}

int gpsh_tcp_tree_start(struct gpsh_tcp_tree *tree)
{
    return gpsh_thread_start(&tree->thread, "gpushmem-boot", tree_run, tree);
}

void gpsh_tcp_tree_add_link(struct gpsh_tcp_tree *tree, struct gpsh_tcp_link *link, int pe)
{
    pthread_mutex_lock(&tree->lock);
    gpsh_tree_add_link(tree, link, pe);
    pthread_mutex_unlock(&tree->lock);
}

// Waits until everything is with the kernel, but not long. Where the network may lose a packet, a
// goodbye has to arrive first: a connection that is closed with something to read is reset, and
// what it was to send is gone.
static void tree_flush(struct gpsh_tcp_tree *t)
{
    for (int ms = 0; t->thread.runs && ms < FLUSH_MS; ms++) {
        bool pending = false;
        pthread_mutex_lock(&t->lock);
        for (const struct gpsh_tcp_link *link = t->links; link; link = link->next)
            pending |= t->watches ? !gpsh_tcp_link_has_arrived(link) : link->n_out > 0;
        pthread_mutex_unlock(&t->lock);
        if (!pending)
            return;
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
}

void gpsh_tcp_tree_say_goodbye(struct gpsh_tcp_tree *tree)
{
    pthread_mutex_lock(&tree->lock);
    tree->leaving = true;
    gpsh_tree_flood(tree, gpsh_parcel_create(GPSH_FRAME_BYE, tree->my_pe, 0, 0), NULL);
    pthread_mutex_unlock(&tree->lock);
    tree_flush(tree);
}

void gpsh_tcp_tree_destroy(struct gpsh_tcp_tree *tree)
{
    if (!tree)
        return;
    gpsh_tcp_tree_say_goodbye(tree);
    pthread_mutex_lock(&tree->lock);
    tree->stop = true;
    pthread_mutex_unlock(&tree->lock);
    gpsh_tcp_loop_wake(&tree->loop);
    gpsh_thread_join(&tree->thread);
    tree_free(tree);
}

void gpsh_tcp_tree_give_up(struct gpsh_tcp_tree *tree, int code)
{
    pthread_mutex_lock(&tree->lock);
    gpsh_tree_fail(tree, code, gpsh_last_error(), NULL);
    pthread_mutex_unlock(&tree->lock);
}

void gpsh_tcp_tree_end_job(struct gpsh_tcp_tree *tree, int status, const char *why,
                           bool this_one_too)
{
    pthread_mutex_lock(&tree->lock);
    if (this_one_too)
        tree_order_end(tree, status, false, why, NULL);
    else
        gpsh_tree_flood(tree, gpsh_parcel_text(GPSH_FRAME_END, 1, (uint32_t)status, why), NULL);
    pthread_mutex_unlock(&tree->lock);
    gpsh_tcp_loop_wake(&tree->loop);
    if (!this_one_too)
        tree_flush(tree);
}
