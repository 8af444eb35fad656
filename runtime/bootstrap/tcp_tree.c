// SPDX-License-Identifier: BSD-3-Clause
// What goes to all neighbours of a PE in the tree: who gives up, who has died, who runs, and the
// end of the job.
#define _GNU_SOURCE // kill
#include "bootstrap/tcp_tree.h"

#include <signal.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/error.h"

static void tree_send(struct gpsh_tcp_link *link, struct gpsh_parcel *parcel)
{
    if (parcel)
        gpsh_tcp_link_send(link, parcel);
    gpsh_parcel_release(parcel);
}

void gpsh_tree_flood(struct gpsh_tcp_tree *t, struct gpsh_parcel *parcel,
                     const struct gpsh_tcp_link *from)
{
    for (struct gpsh_tcp_link *link = t->links; link && parcel; link = link->next)
        if (link != from)
            gpsh_tcp_link_send(link, parcel);
    gpsh_parcel_release(parcel);
    pthread_cond_broadcast(&t->changed);
}

void gpsh_tree_fail(struct gpsh_tcp_tree *t, int code, const char *sentence,
                    const struct gpsh_tcp_link *from)
{
    if (t->code)
        return;
    t->code = code;
    snprintf(t->sentence, sizeof t->sentence, "%s", sentence);
    gpsh_tree_flood(t, gpsh_parcel_text(GPSH_FRAME_FAIL, t->my_pe, (uint32_t)-code, sentence),
                    from);
}

void gpsh_tree_note_death(struct gpsh_tcp_tree *t, int pe, const char *reason,
                          const struct gpsh_tcp_link *from)
{
    if (t->leaving || pe < 0 || pe >= t->n_pes || pe == t->my_pe || t->peer[pe].died)
        return;
    t->peer[pe].died = true;
    gpsh_deaths_note(t->deaths, pe, reason);
    t->n_died++;
    t->changed_members = true;
    gpsh_tree_flood(t, gpsh_parcel_text(GPSH_FRAME_DEAD, pe, 0, reason), from);
}

void gpsh_tree_add_link(struct gpsh_tcp_tree *t, struct gpsh_tcp_link *link, int pe)
{
    struct gpsh_tcp_peer *peer = &t->peer[pe];
    link->pe = pe;
    link->ops = t->link_ops;
    link->owner = t;
    if (t->watches)
        gpsh_tcp_link_be_patient(link);
    link->next = t->links;
    t->links = peer->link = link;
    peer->lost = peer->silent = peer->mute = false;
    peer->hang_ups = 0;
    peer->due_ns = peer->silent_ns = 0;
    t->changed_members = true;
    for (int dead = 0; t->n_died && dead < t->n_pes; dead++)
        if (t->peer[dead].died)
            tree_send(link, gpsh_parcel_text(GPSH_FRAME_DEAD, dead, 0,
                                             gpsh_deaths_reason(t->deaths, dead)));
    if (t->leaving)
        tree_send(link, gpsh_parcel_create(GPSH_FRAME_BYE, t->my_pe, 0, 0));
}

// ------------------------------------------------------------------------------------------
// who runs

// Connections outlive a process that is stopped, since its kernel serves them; its thread answers
// nothing. A question goes to all, as its asker need not be connected with who is asked; its number
// is higher than all before it, so that nobody hands it on twice. Several may ask at once: the
// answer goes to all as well.
enum { MUTE_MS = 1500, ASK_AGAIN_MS = 5000 };

static bool is_old(const struct gpsh_tcp_tree *t, int pe, uint32_t number, uint32_t last)
{
    return t->leaving || pe < 0 || pe >= t->n_pes || number <= last;
}

void gpsh_tree_hear_answer(struct gpsh_tcp_tree *t, int pe, uint32_t number,
                           const struct gpsh_tcp_link *from)
{
    if (is_old(t, pe, number, pe >= 0 && pe < t->n_pes ? t->peer[pe].answered : 0))
        return;
    struct gpsh_tcp_peer *peer = &t->peer[pe];
    peer->answered = number;
    peer->asked = number > peer->asked ? number : peer->asked;
    peer->unanswered_ns = 0;
    gpsh_tree_flood(t, gpsh_parcel_create(GPSH_FRAME_RUNS, pe, number, 0), from);
}

void gpsh_tree_hear_question(struct gpsh_tcp_tree *t, int pe, uint32_t number,
                             const struct gpsh_tcp_link *from)
{
    if (is_old(t, pe, number, pe >= 0 && pe < t->n_pes ? t->peer[pe].asked : 0))
        return;
    t->peer[pe].asked = number;
    if (pe == t->my_pe)
        gpsh_tree_hear_answer(t, pe, number, NULL);
    else
        gpsh_tree_flood(t, gpsh_parcel_create(GPSH_FRAME_ASK, pe, number, 0), from);
}

// Seconds since 1970, and more where questions come faster: a PE that has missed some is heard.
static uint32_t next_number(const struct gpsh_tcp_peer *peer)
{
    uint32_t now = (uint32_t)time(NULL);
    return now > peer->asked ? now : peer->asked + 1;
}

static bool is_heard_of(const struct gpsh_tcp_tree *tree, int pe)
{
    const struct gpsh_tcp_peer *peer = &tree->peer[pe];
    return tree->known && tree->links && !tree->failure[0] && !peer->died && !peer->left;
}

bool gpsh_tcp_tree_would_tell(struct gpsh_tcp_tree *tree, int pe)
{
    pthread_mutex_lock(&tree->lock);
    bool heard = is_heard_of(tree, pe);
    pthread_mutex_unlock(&tree->lock);
    return heard;
}

bool gpsh_tcp_tree_is_mute(struct gpsh_tcp_tree *tree, int pe)
{
    const uint64_t ms = 1000000, now_ns = gpsh_clock_ns();
    pthread_mutex_lock(&tree->lock);
    struct gpsh_tcp_peer *peer = &tree->peer[pe];
    bool asks = is_heard_of(tree, pe);
    if (asks && now_ns - peer->asked_ns > (peer->unanswered_ns ? ASK_AGAIN_MS : MUTE_MS) * ms) {
        peer->asked_ns = now_ns;
        peer->unanswered_ns = peer->unanswered_ns ? peer->unanswered_ns : now_ns;
        gpsh_tree_hear_question(tree, pe, next_number(peer), NULL);
    }
    bool mute = asks && peer->unanswered_ns && now_ns - peer->unanswered_ns > MUTE_MS * ms;
    pthread_mutex_unlock(&tree->lock);
    if (asks)
        gpsh_tcp_loop_wake(&tree->loop);
    return mute;
}

// ------------------------------------------------------------------------------------------
// the end of the job

// Until then others are told; then the program has time to clean up.
enum { FIRST_MS = 100, GRACE_MS = 2000 };

bool gpsh_tcp_end_order(struct gpsh_tcp_end *end, bool by_exit, int status)
{
    if (end->ordered && (end->by_exit || !by_exit || end->steps))
        return false;
    *end = (struct gpsh_tcp_end){.ordered = true, .by_exit = by_exit, .status = status};
    end->next_ns = gpsh_clock_in(FIRST_MS);
    return true;
}

int gpsh_tcp_end_step(struct gpsh_tcp_end *end)
{
    if (!end->ordered)
        return -1;
    int left_ms = gpsh_clock_left_ms(end->next_ns);
    if (left_ms)
        return left_ms;
    if (end->by_exit)
        _exit(end->status);
    kill(getpid(), end->steps++ ? SIGKILL : SIGTERM);
    end->next_ns = gpsh_clock_in(GRACE_MS);
    return GRACE_MS;
}
