// SPDX-License-Identifier: BSD-3-Clause
#include "bootstrap/tcp_roll.h"

#include "bootstrap/tcp_tree_state.h"
#include "core/clock.h"

enum {
    FIRST_MS = 300, // who lost its parent calls another PE meanwhile
    MOST_MS = 30000,
};

int gpsh_tcp_roll_due(const struct gpsh_tcp_tree *t)
{
    const struct gpsh_tcp_roll *roll = &t->roll;
    uint64_t now = gpsh_clock_ns();
    if (t->nodes || t->parent || t->leaving || !t->addresses || !t->deaths.noted)
        return -1;
    if (roll->under_way || roll->known != t->deaths.noted || now >= roll->due_ns)
        return 0;
    return (int)((roll->due_ns - now) / 1000000) + 1;
}

static void put_off(struct gpsh_tcp_tree *t, int ms)
{
    ms = ms < MOST_MS ? ms : MOST_MS;
    t->roll = (struct gpsh_tcp_roll){
        .known = t->deaths.noted,
        .pause_ms = ms,
        .due_ns = gpsh_clock_ns() + (uint64_t)ms * 1000000,
    };
}

static void call(struct gpsh_tcp_tree *t, int pe)
{
    if (gpsh_tree_is_gone(t, pe) && !gpsh_tree_link_to(t, pe) && !gpsh_tree_may_have_left(t, pe))
        gpsh_tree_note_death(t, pe, "nobody listens any more where it did", NULL);
}

void gpsh_tcp_roll_step(struct gpsh_tcp_tree *t)
{
    struct gpsh_tcp_roll *roll = &t->roll;
    roll->under_way &= !t->parent;
    if (gpsh_tcp_roll_due(t))
        return;
    if (!roll->under_way && roll->known != t->deaths.noted) {
        put_off(t, FIRST_MS);
        return;
    }
    roll->under_way = true;
    while (roll->next < t->n_pes && (roll->next == t->my_pe || t->deaths.list[roll->next].died ||
                                     gpsh_tree_link_to(t, roll->next)))
        roll->next++;
    if (roll->next < t->n_pes)
        call(t, roll->next++);
    else // who was not found, since it had not died by then, is later
        put_off(t, 3 * roll->pause_ms);
}
