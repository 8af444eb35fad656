// SPDX-License-Identifier: BSD-3-Clause
// The inside of the tree of PEs: what its parts share. All with the lock.
#ifndef GPSH_TCP_TREE_STATE_H
#define GPSH_TCP_TREE_STATE_H

#include <pthread.h>

#include "bootstrap/bootstrap.h"
#include "bootstrap/tcp_admission.h"
#include "bootstrap/tcp_connect.h"
#include "bootstrap/tcp_connection.h"

// Who of the job has died, and who has been told of it. Its owner holds a lock.
struct gpsh_tcp_deaths {
    struct gpsh_tcp_death {
        bool died, told;
        char reason[100];
    } * list; // [n_pes]
    int n_pes;
    int first;  // who died first, -1: nobody
    int noted;  // how many
    int untold; // deaths that the runtime was not told of
};

int gpsh_tcp_deaths_open(struct gpsh_tcp_deaths *d, int n_pes); // 0 or GPUSHMEM_ERR_NO_MEMORY
void gpsh_tcp_deaths_close(struct gpsh_tcp_deaths *d);
// True if that is news.
bool gpsh_tcp_deaths_note(struct gpsh_tcp_deaths *d, int pe, const char *reason);
// A PE of whose death the runtime was not told; from now on it was. -1: none.
int gpsh_tcp_deaths_take(struct gpsh_tcp_deaths *d);
// GPUSHMEM_ERR_PE_FAILED and its sentence, if a PE has died; else 0.
int gpsh_tcp_deaths_fail(const struct gpsh_tcp_deaths *d, const char *what);

// Whether those that nobody may be connected with still listen.
struct gpsh_tcp_sweep {
    bool under_way;
    int next;        // the PE to be called
    int known;       // deaths that a round has begun after, or found
    int pause_ms;    // between rounds
    uint64_t due_ns; // when to go on
    // [n_pes] since when the PE's host does not answer, 0: it does, or was not asked; NULL: the
    // same of all
    uint64_t *silent_ns;
};

// The end of a job that no launcher can end: each PE ends its own process, as a launcher would.
struct gpsh_tcp_end {
    bool ordered;
    bool by_exit; // gpushmem_global_exit: exit status `status` at once; else SIGTERM, SIGKILL later
    int status;
    int steps; // that were done
    uint64_t next_ns;
};

// The first order counts, and an exit ordered before anything was done: the PE that called it has
// exited, and others may have taken that for a failure. Returns whether this one counts.
bool gpsh_tcp_end_order(struct gpsh_tcp_end *end, bool by_exit, int status);
// Does what is due. Returns in how many ms to call it again, -1: nothing was ordered.
int gpsh_tcp_end_step(struct gpsh_tcp_end *end);

enum { GPSH_TREE_WIDTH = 16 }; // children of a PE

static inline int gpsh_tree_parent(int pe)
{
    return (pe - 1) / GPSH_TREE_WIDTH; // PE 0 has none
}

struct gpsh_tcp_tree {
    pthread_mutex_t lock;   // of everything below
    pthread_cond_t changed; // an exchange may go on
    pthread_t thread;
    bool running, stop;
    struct gpsh_tcp_loop loop;
    struct gpsh_tcp_gate gate;
    struct gpsh_tcp_hold hold;
    int my_pe, n_pes;
    const struct gpsh_tcp_link_ops *link_ops;
    struct gpsh_tcp_link *links, *parent;
    struct gpsh_tcp_address *addresses; // [n_pes], NULL: not known yet
    // Exchange number `round` is under way until `delivered` is as large. `mine` is this PE's
    // record, until it has gone up with those of the children, which are kept in their links.
    uint32_t round, delivered;
    struct gpsh_parcel *mine, *bundle;
    // trouble
    bool orphan;              // the parent died, and there is no new one
    bool missed;              // a PE that may live has not answered in this round of calls
    int call_next;            // the PE to be called next, if it lives
    uint64_t call_ns;         // not before
    bool leaving;             // nobody's end is a failure any more
    bool departures;          // PEs may leave in order
    bool (*has_told)(int pe); // whether one has told this PE that it leaves; NULL: not known
    int left;                 // PE + 1 that has left in order, 0: none
    int code;                 // a PE gave up: why
    char sentence[GPSH_SENTENCE_BYTES];
    struct gpsh_tcp_deaths deaths;
    struct gpsh_tcp_sweep sweep;
    gpsh_pe_death_fn on_death;
    void *on_death_arg;
    struct gpsh_tcp_end end;
    struct gpsh_tcp_nodes
        *nodes; // a launcher's job, watched (tcp_membership.h); NULL: one by unique id
};

// By which `pe` is called.
struct gpsh_uniqueid gpsh_tree_id(const struct gpsh_tcp_tree *t, int pe);
// Calls a PE, without the lock meanwhile. A descriptor, or a negative status.
int gpsh_tree_call(struct gpsh_tcp_tree *t, int pe);
// Somebody listens where `pe` did: is it the PE? Without the lock, too, and for `ms` at most.
enum gpsh_tcp_presence gpsh_tree_prove(struct gpsh_tcp_tree *t, int pe, int ms);
// Whether nobody listens where `pe` did may mean that it has left in order.
bool gpsh_tree_may_have_left(const struct gpsh_tcp_tree *t, int pe);
// The death of a PE that did not prove itself, unless it has called meanwhile, or may have left.
void gpsh_tree_note_gone(struct gpsh_tcp_tree *t, int pe, const char *reason);
// NULL: no memory.
struct gpsh_tcp_link *gpsh_tree_add_link(struct gpsh_tcp_tree *t, int fd, int pe);

int gpsh_tree_children(const struct gpsh_tcp_tree *t); // how many this PE has
bool gpsh_tree_is_child(const struct gpsh_tcp_tree *t, int pe);
struct gpsh_tcp_link *gpsh_tree_link_to(const struct gpsh_tcp_tree *t, int pe); // or NULL

// To all neighbours but one (or NULL). Takes the parcel, which may be NULL.
void gpsh_tree_flood(struct gpsh_tcp_tree *t, struct gpsh_parcel *parcel,
                     const struct gpsh_tcp_link *from);
// News, which go on to the other neighbours: a PE gave up, a PE died, the job ends.
void gpsh_tree_fail(struct gpsh_tcp_tree *t, int code, const char *sentence,
                    const struct gpsh_tcp_link *from);
void gpsh_tree_note_death(struct gpsh_tcp_tree *t, int pe, const char *reason,
                          const struct gpsh_tcp_link *from);
void gpsh_tree_order_end(struct gpsh_tcp_tree *t, int status, bool by_exit, const char *why,
                         const struct gpsh_tcp_link *from);

#endif
