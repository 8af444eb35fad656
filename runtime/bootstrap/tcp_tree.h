// SPDX-License-Identifier: BSD-3-Clause
// The PEs of a job as a tree of TCP connections, served by a thread of each PE. Blobs go up and the
// bundle of all comes down (tcp_exchange.c), news of deaths goes to all neighbours, and whoever
// loses its parent looks for another one (tcp_membership.c). There are two kinds of jobs:
//   by a unique id      each PE is a node of the tree; a connection that ends without a goodbye is
//                       a PE that died, since what was on its way there is lost
//   started by others   the tree exchanges nothing and watches the nodes of a launcher that does
//                       not tell who dies. A node's lowest PE that lives is connected with another
//                       node's, its others with that one; a lost connection is a reason to call
// The functions gpsh_tcp_tree_* may be called from any thread, gpsh_tree_* with the lock.
#ifndef GPSH_TCP_TREE_H
#define GPSH_TCP_TREE_H

#include <pthread.h>

#include "bootstrap/deaths.h"
#include "bootstrap/tcp_listener.h"
#include "core/thread.h"

enum { GPSH_TREE_WIDTH = 16 }; // children of a PE, or of a node

static inline int gpsh_tree_parent(int pe)
{
    return (pe - 1) / GPSH_TREE_WIDTH; // PE 0 has none
}

// What is known of a PE.
struct gpsh_tcp_peer {
    struct gpsh_tcp_address listens; // a version of 0: it takes no part
    int node;                        // of the tree
    bool died;                       // which its neighbours were told
    struct gpsh_tcp_link *link;      // open, NULL: none
    struct gpsh_tcp_link *call;      // this PE's, until it is open or has failed
    bool left;                       // in order, or that may be
    bool lost, silent;  // a link of a launcher's job has ended: its host did not answer
    bool mute;          // it was called and does not answer: others are called, too
    int hang_ups;       // in a row, of those that were called there
    uint64_t due_ns;    // when to call it, or to go on without its answer; 0: never
    uint64_t silent_ns; // since when its host does not answer, 0: it does
    // Questions whether its process runs: the numbers of the last one and of the last that it has
    // answered, when this PE asked first without an answer since, and when last
    uint32_t asked, answered;
    uint64_t unanswered_ns, asked_ns;
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

struct gpsh_tcp_tree {
    pthread_mutex_t lock;   // of everything below
    pthread_cond_t changed; // whoever waits for something may look again
    struct gpsh_thread thread;
    bool stop;
    struct gpsh_tcp_loop loop;
    struct gpsh_tcp_listener listener;
    int my_pe, n_pes;
    bool watches;               // nodes of a launcher's job
    bool known;                 // nodes and addresses of the peers
    struct gpsh_tcp_peer *peer; // [n_pes]
    const struct gpsh_tcp_link_ops *link_ops;
    struct gpsh_tcp_link *links; // those that are open
    // Exchange number `round` is under way until `delivered` is as large. `mine` is this PE's
    // record, until it has gone up with those of the children, which are kept in their links.
    uint32_t round, delivered;
    struct gpsh_parcel *mine, *bundle;
    // who has died
    struct gpsh_deaths *deaths;
    int n_died;
    bool leaving;             // nobody's end is a failure any more
    bool departures;          // PEs may leave in order
    bool (*has_told)(int pe); // whether one has told this PE that it leaves; NULL: not known
    int left;                 // PE + 1 that has left in order, 0: none
    int code;                 // a PE gave up: why
    char sentence[GPSH_SENTENCE_BYTES];
    struct gpsh_tcp_end end;
    // membership
    int *lowest;                 // [n_pes] of each node, the lowest PE that lives, or -1
    bool changed_members;        // who should be connected with whom has to be looked at again
    bool upper_left;             // the PE above has left in order
    bool died_below;             // one did that had not called: the others there are called at once
    bool settled;                // connected upwards, or nobody is left to be called for that
    char failure[160];           // "", or why not connected
    bool reached;                // another node was, by a call
    struct gpsh_tcp_link *probe; // a call that finds it out; it is made once
    bool probed;
    uint64_t due_ns; // the first of the peers', UINT64_MAX: never
};

// Listens at *address, whose port it fills in, and which nobody else gets for a minute when the
// process dies. Who dies is noted in `deaths`. NULL: the sentence is set.
struct gpsh_tcp_tree *gpsh_tcp_tree_create(const struct gpsh_uniqueid *id, int my_pe, int n_pes,
                                           struct gpsh_tcp_address *address,
                                           struct gpsh_deaths *deaths);
// Says goodbye, and waits until that is on its way: from now on this PE may end at any time.
void gpsh_tcp_tree_say_goodbye(struct gpsh_tcp_tree *tree);
// Leaves in order: says goodbye, ends the thread, frees everything. NULL is legal.
void gpsh_tcp_tree_destroy(struct gpsh_tcp_tree *tree);
int gpsh_tcp_tree_start(struct gpsh_tcp_tree *tree); // the thread
// `link`, which it takes, is open to PE `pe`.
void gpsh_tcp_tree_add_link(struct gpsh_tcp_tree *tree, struct gpsh_tcp_link *link, int pe);
// Where all PEs listen, [n_pes]. `secret` takes the place of the id's, which others may still have.
// node[n_pes], the smallest PE of each one's node, makes it a tree that watches a launcher's job,
// and is set before the thread starts; NULL: a job by unique id, in which everybody has joined.
void gpsh_tcp_tree_set_peers(struct gpsh_tcp_tree *tree, const int *node,
                             const struct gpsh_tcp_address *addresses,
                             const uint8_t secret[GPSH_SECRET_BYTES]);
// Waits until this PE is connected with the one above it, has none, or cannot reach any; at most
// `ms`. False: it is not connected, and the sentence says why.
bool gpsh_tcp_tree_await_parent(struct gpsh_tcp_tree *tree, int ms);
// Collective, by unique id. *bundle has a record of every PE, the caller releases it.
//   GPUSHMEM_ERR_PE_FAILED  a PE has died, or left
//   GPUSHMEM_ERR_TIMEOUT    timeout_ms (0: none) passed
//   what made another PE give up
int gpsh_tcp_tree_exchange(struct gpsh_tcp_tree *tree, const void *blob, size_t bytes,
                           int64_t timeout_ms, const char *what, struct gpsh_parcel **bundle);
// Tells all others that this PE gives up, with the thread's last error.
void gpsh_tcp_tree_give_up(struct gpsh_tcp_tree *tree, int code);
// From now on PEs may leave in order: a closed port proves a death only where has_told(pe), which
// is called with the tree's lock, is false: the PE has not told this one that it leaves. With NULL
// it proves none.
void gpsh_tcp_tree_expect_departures(struct gpsh_tcp_tree *tree, bool (*has_told)(int pe));
// See the functions of bootstrap.h.
void gpsh_tcp_tree_tell_death(struct gpsh_tcp_tree *tree, int pe, const char *reason);
bool gpsh_tcp_tree_would_tell(struct gpsh_tcp_tree *tree, int pe);
bool gpsh_tcp_tree_is_mute(struct gpsh_tcp_tree *tree, int pe);
// `this_one_too`: this process is ended, by SIGTERM; else the others end by exit with `status`.
void gpsh_tcp_tree_end_job(struct gpsh_tcp_tree *tree, int status, const char *why,
                           bool this_one_too);

// tcp_tree.c
// `link` is open to PE `pe`, which may have missed who died, and that this PE leaves.
void gpsh_tree_add_link(struct gpsh_tcp_tree *t, struct gpsh_tcp_link *link, int pe);
// To all neighbours but one (or NULL). Takes the parcel, which may be NULL.
void gpsh_tree_flood(struct gpsh_tcp_tree *t, struct gpsh_parcel *parcel,
                     const struct gpsh_tcp_link *from);
// A PE gave up, which goes on to the other neighbours.
void gpsh_tree_fail(struct gpsh_tcp_tree *t, int code, const char *sentence,
                    const struct gpsh_tcp_link *from);
// A PE has died, by whatever it was found out; the neighbours are told. The first word counts.
void gpsh_tree_note_death(struct gpsh_tcp_tree *t, int pe, const char *reason,
                          const struct gpsh_tcp_link *from);

// Somebody asks whether `pe` runs, or that answers.
void gpsh_tree_hear_question(struct gpsh_tcp_tree *t, int pe, uint32_t number,
                             const struct gpsh_tcp_link *from);
void gpsh_tree_hear_answer(struct gpsh_tcp_tree *t, int pe, uint32_t number,
                           const struct gpsh_tcp_link *from);

// tcp_exchange.c: a frame UP or DOWN has come; takes the parcel.
void gpsh_tree_take_bundle(struct gpsh_tcp_tree *t, struct gpsh_tcp_link *link,
                           struct gpsh_parcel *parcel);

// tcp_membership.c
// A link of a launcher's job has ended without a goodbye: the PE is called.
void gpsh_tree_look_for(struct gpsh_tcp_tree *t, const struct gpsh_tcp_link *link);
// The call has ended without a link. It may be destroyed afterwards.
void gpsh_tree_call_failed(struct gpsh_tcp_tree *t, const struct gpsh_tcp_link *call);
// By which `pe` is called.
struct gpsh_uniqueid gpsh_tree_id(const struct gpsh_tcp_tree *t, int pe);
// Whether `pe` belongs below this PE rather than above, if either: so nobody is below itself.
bool gpsh_tree_comes_after(const struct gpsh_tcp_tree *t, int pe);
// In how many ms a step is due, -1: never. The tree's thread does it.
int gpsh_tree_due(const struct gpsh_tcp_tree *t);
void gpsh_tree_step(struct gpsh_tcp_tree *t);
// Whom `pe` is to be connected with, of those that live: the lowest of its own node; if that is
// itself, the lowest of the nodes above its own, the nearest first; then of all other nodes before
// its own. `searching`: of those that are not mute. -1: it is the top of the tree.
int gpsh_tree_above(struct gpsh_tcp_tree *t, int pe, bool searching);

#endif
