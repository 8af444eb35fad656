// SPDX-License-Identifier: BSD-3-Clause
// Jobs of processes that each have a node watch, on pretended nodes, and die when they are told to:
// what the cases of `watch_nodes` are made of.
#ifndef GPUSHMEM_TESTS_WATCH_JOB_H
#define GPUSHMEM_TESTS_WATCH_JOB_H

#include <stdatomic.h>
#include <stdbool.h>
#include <sys/types.h>

#include "bootstrap/node_watch.h"

enum { MOST = 48, HANG_S = 60, FILES = 64 };
enum order { WAIT, JOIN, CUT, OPEN_FILES, GIVE, EXPECT, LEAVE };

// Between all processes of a job.
struct shared {
    struct gpsh_node_card cards[MOST];
    _Atomic int ready, joined, cut, opened, expecting;
    _Atomic int order[MOST];
    _Atomic bool named[MOST][MOST], left[MOST];
};
extern struct shared *shared;

// Of the job under way: PEs 0 to n - 1.
extern int n;
extern pid_t pids[MOST];
extern bool alive[MOST];
// Sockets over which a PE that is told to GIVE passes its listener; [1] is the job's end.
extern int handover[2];

// On SIGALRM: who has named whom, and the end of everything.
void show(int signal);
// Says what PE `pe` does with `other`, and ends everything.
void fail(const char *sentence, int pe, int other);
// Waits until so many PEs have counted.
void until(_Atomic int *count, int value);
// Starts a job of so many PEs on nodes of `per_node`; cyclic: neighbours are on different nodes.
// They watch nobody yet.
void begin(const char *name, int pes, int per_node, bool cyclic);
// They hear of each other.
void join_all(void);
// Both.
void start(const char *name, int pes, int per_node, bool cyclic);
// It dies, and everybody has to name it.
void kill_pe(int pe);
// Waits for those that died.
void reap(void);
// Every survivor names all the dead, and nobody else.
void await_names(void);
// As in finalize, which is a barrier first.
void expect_departures(void);
// One leaves without an error.
void leave_one(int pe);
// All survivors leave, and the job is over.
void finish(void);

#endif
