// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE // kill
#include "bootstrap/tcp_tree_state.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bootstrap/tcp_connect.h"
#include "core/clock.h"
#include "core/error.h"
#include "core/log.h"

enum { DIAL_MS = 2000 };

int gpsh_tree_children(const struct gpsh_tcp_tree *t)
{
    int first = t->my_pe * GPSH_TREE_WIDTH + 1, rest = t->n_pes - first;
    return rest < 0 ? 0 : rest < GPSH_TREE_WIDTH ? rest : GPSH_TREE_WIDTH;
}

bool gpsh_tree_is_child(const struct gpsh_tcp_tree *t, int pe)
{
    return pe > 0 && gpsh_tree_parent(pe) == t->my_pe && pe < t->n_pes;
}

struct gpsh_tcp_link *gpsh_tree_link_to(const struct gpsh_tcp_tree *t, int pe)
{
    struct gpsh_tcp_link *link = t->links;
    while (link && link->pe != pe)
        link = link->next;
    return link;
}

// Each PE of a launcher's job has a name of its own: two hosts may have the same address, and then
// a PE that calls one of another host meets one of its own.
struct gpsh_uniqueid gpsh_tree_id(const struct gpsh_tcp_tree *t, int pe)
{
    struct gpsh_uniqueid id = t->gate.id;
    uint8_t name[GPSH_SHA256_BYTES];
    if (!t->nodes)
        return id;
    gpsh_hmac_sha256(id.secret, sizeof id.secret, &pe, sizeof pe, name);
    memcpy(id.job, name, sizeof id.job);
    return id;
}

int gpsh_tree_call(struct gpsh_tcp_tree *t, int pe)
{
    struct gpsh_hello hello = {.purpose = GPSH_PURPOSE_ORPHAN, .pe = t->my_pe, .n_pes = t->n_pes};
    struct gpsh_tcp_address address = t->addresses[pe];
    struct gpsh_uniqueid id = gpsh_tree_id(t, pe);
    char whom[16];
    snprintf(whom, sizeof whom, "PE %d", pe);
    pthread_mutex_unlock(&t->lock);
    int fd = gpsh_tcp_dial(&id, &address, 1, &hello, NULL, NULL, whom,
                           gpsh_clock_ns() + DIAL_MS * (uint64_t)1000000);
    pthread_mutex_lock(&t->lock);
    return fd;
}

enum gpsh_tcp_presence gpsh_tree_prove(struct gpsh_tcp_tree *t, int pe, int ms)
{
    struct gpsh_hello hello = {.pe = t->my_pe, .n_pes = t->n_pes};
    struct gpsh_tcp_address address = t->addresses[pe];
    struct gpsh_uniqueid id = gpsh_tree_id(t, pe);
    pthread_mutex_unlock(&t->lock);
    enum gpsh_tcp_presence presence =
        gpsh_tcp_prove(&id, &address, &hello, gpsh_clock_ns() + (uint64_t)ms * 1000000);
    pthread_mutex_lock(&t->lock);
    return presence;
}

bool gpsh_tree_may_have_left(const struct gpsh_tcp_tree *t, int pe)
{
    return t->departures && (!t->has_told || t->has_told(pe));
}

void gpsh_tree_note_gone(struct gpsh_tcp_tree *t, int pe, const char *reason)
{
    if (!gpsh_tree_link_to(t, pe) && !gpsh_tree_may_have_left(t, pe))
        gpsh_tree_note_death(t, pe, reason, NULL);
}

// A new neighbour may have missed who died.
struct gpsh_tcp_link *gpsh_tree_add_link(struct gpsh_tcp_tree *t, int fd, int pe)
{
    struct gpsh_tcp_link *link = gpsh_tcp_link_create(&t->loop, fd, pe, t->link_ops, t);
    if (!link)
        return NULL;
    if (t->nodes)
        gpsh_tcp_link_be_patient(link);
    link->next = t->links;
    t->links = link;
    for (int dead = 0; t->deaths.first >= 0 && dead < t->n_pes; dead++) {
        if (!t->deaths.list[dead].died)
            continue;
        struct gpsh_parcel *news =
            gpsh_parcel_text(GPSH_FRAME_DEAD, dead, 0, t->deaths.list[dead].reason);
        if (news)
            gpsh_tcp_link_send(link, news);
        gpsh_parcel_release(news);
    }
    return link;
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
    if (t->leaving || pe == t->my_pe || !gpsh_tcp_deaths_note(&t->deaths, pe, reason))
        return;
    gpsh_tree_flood(t, gpsh_parcel_text(GPSH_FRAME_DEAD, pe, 0, reason), from);
}

void gpsh_tree_order_end(struct gpsh_tcp_tree *t, int status, bool by_exit, const char *why,
                         const struct gpsh_tcp_link *from)
{
    if (!gpsh_tcp_end_order(&t->end, by_exit, status))
        return;
    if (from) // else the PE that ordered it has said so
        GPSH_LOG(ERROR, "bootstrap", "the job ends: %s", why);
    gpsh_tree_flood(t, gpsh_parcel_text(GPSH_FRAME_END, by_exit, (uint32_t)status, why), from);
}

// ------------------------------------------------------------------------------------------
// who has died

int gpsh_tcp_deaths_open(struct gpsh_tcp_deaths *d, int n_pes)
{
    *d = (struct gpsh_tcp_deaths){
        .list = calloc((size_t)n_pes, sizeof *d->list), .n_pes = n_pes, .first = -1};
    return d->list ? 0 : gpsh_fail(GPUSHMEM_ERR_NO_MEMORY, "no memory for a list of %d PEs", n_pes);
}

void gpsh_tcp_deaths_close(struct gpsh_tcp_deaths *d)
{
    free(d->list);
    *d = (struct gpsh_tcp_deaths){.first = -1};
}

bool gpsh_tcp_deaths_note(struct gpsh_tcp_deaths *d, int pe, const char *reason)
{
    if (pe < 0 || pe >= d->n_pes || d->list[pe].died)
        return false;
    d->list[pe].died = true;
    snprintf(d->list[pe].reason, sizeof d->list[pe].reason, "%s", reason);
    if (d->first < 0)
        d->first = pe;
    d->noted++;
    d->untold++;
    return true;
}

int gpsh_tcp_deaths_take(struct gpsh_tcp_deaths *d)
{
    for (int pe = 0; d->untold && pe < d->n_pes; pe++) {
        if (!d->list[pe].died || d->list[pe].told)
            continue;
        d->list[pe].told = true;
        d->untold--;
        return pe;
    }
    return -1;
}

int gpsh_tcp_deaths_fail(const struct gpsh_tcp_deaths *d, const char *what)
{
    return d->first < 0 ? 0
                        : gpsh_fail(GPUSHMEM_ERR_PE_FAILED, "%s: PE %d has failed: %s", what,
                                    d->first, d->list[d->first].reason);
}

// ------------------------------------------------------------------------------------------
// the end of the job

// Until then others are told; then the program has time to clean up.
enum { FIRST_MS = 100, GRACE_MS = 2000 };

static void end_later(struct gpsh_tcp_end *end, int ms)
{
    end->next_ns = gpsh_clock_ns() + (uint64_t)ms * 1000000;
}

bool gpsh_tcp_end_order(struct gpsh_tcp_end *end, bool by_exit, int status)
{
    if (end->ordered && (end->by_exit || !by_exit || end->steps))
        return false;
    *end = (struct gpsh_tcp_end){.ordered = true, .by_exit = by_exit, .status = status};
    end_later(end, FIRST_MS);
    return true;
}

int gpsh_tcp_end_step(struct gpsh_tcp_end *end)
{
    if (!end->ordered)
        return -1;
    uint64_t now = gpsh_clock_ns();
    if (now < end->next_ns)
        return (int)((end->next_ns - now) / 1000000) + 1;
    if (end->by_exit)
        _exit(end->status);
    kill(getpid(), end->steps++ ? SIGKILL : SIGTERM);
    end_later(end, GRACE_MS);
    return GRACE_MS;
}
