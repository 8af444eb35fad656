// SPDX-License-Identifier: BSD-3-Clause
#include "bootstrap/tcp_roll.h"

#include <stdlib.h>

#include "bootstrap/tcp_dial.h"
#include "bootstrap/tcp_tree_state.h"
#include "core/clock.h"

enum {
    FIRST_MS = 300, // PEs that lost their parent call another PE meanwhile
    MOST_MS = 10000,
    SERVE_MS = 20,  // for events of others, after a call of a PE that is not dead
    PROVE_MS = 500, // for one PE; others wait meanwhile
    SILENT_S = 35,  // a host that has not answered for so long has vanished, as for keepalive
};

int gpsh_tcp_roll_due(const struct gpsh_tcp_tree *t)
{
    const struct gpsh_tcp_roll *roll = &t->roll;
    uint64_t now = gpsh_clock_ns();
    if (t->nodes || t->parent || t->leaving || !t->addresses || !t->deaths.noted)
        return -1;
    if (now >= roll->due_ns || (!roll->under_way && roll->known != t->deaths.noted))
        return 0;
    return (int)((roll->due_ns - now) / 1000000) + 1;
}

static void wait_until(struct gpsh_tcp_roll *roll, int ms)
{
    roll->due_ns = gpsh_clock_ns() + (uint64_t)ms * 1000000;
}

static void put_off(struct gpsh_tcp_roll *roll, int ms)
{
    roll->under_way = false;
    roll->next = 0;
    roll->pause_ms = ms < MOST_MS ? ms : MOST_MS;
    wait_until(roll, roll->pause_ms);
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
    if (!t->roll.silent_ns)
        t->roll.silent_ns = calloc((size_t)t->n_pes, sizeof *t->roll.silent_ns);
    uint64_t *since = t->roll.silent_ns ? &t->roll.silent_ns[pe] : NULL;
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
        wait_until(&t->roll, SERVE_MS);
    else // its children have higher numbers: their turn comes
        t->roll.known++;
}

void gpsh_tcp_roll_step(struct gpsh_tcp_tree *t)
{
    struct gpsh_tcp_roll *roll = &t->roll;
    roll->under_way &= !t->parent;
    if (gpsh_tcp_roll_due(t))
        return;
    if (!roll->under_way && roll->known != t->deaths.noted) {
        roll->known = t->deaths.noted;
        put_off(roll, FIRST_MS);
        return;
    }
    roll->under_way = true;
    while (roll->next < t->n_pes && !is_called(t, roll->next))
        roll->next++;
    if (roll->next < t->n_pes)
        call(t, roll->next++);
    else // one that lived when it was called may die later
        put_off(roll, 3 * roll->pause_ms);
}
