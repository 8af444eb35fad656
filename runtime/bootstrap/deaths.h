// SPDX-License-Identifier: BSD-3-Clause
// Who of a job is known to have died: one list, whoever finds it out (a launcher, or the tree of
// tcp_tree.h), and who is told. Any thread.
#ifndef GPSH_DEATHS_H
#define GPSH_DEATHS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

// May be called from a thread of the implementation.
typedef void (*gpsh_pe_death_fn)(int pe, const char *reason);

struct gpsh_deaths {
    pthread_mutex_t lock;
    int n_pes;
    struct gpsh_death {
        bool died, told;
        char reason[100];
    } * of;              // [n_pes]; NULL: not open, and nothing is noted
    int n_died, n_told;  // how many
    _Atomic int first;   // who died first: PE + 1; 0: nobody
    gpsh_pe_death_fn fn; // who is told, or NULL
};

#define GPSH_DEATHS_INITIALIZER                                                                    \
    {                                                                                              \
        .lock = PTHREAD_MUTEX_INITIALIZER                                                          \
    }

// What an earlier job of the same size has noted stays, until it is closed.
int gpsh_deaths_open(struct gpsh_deaths *d, int n_pes); // 0 or GPUSHMEM_ERR_NO_MEMORY
void gpsh_deaths_close(struct gpsh_deaths *d);
// The first word about a PE counts. Nobody is told before gpsh_deaths_tell.
void gpsh_deaths_note(struct gpsh_deaths *d, int pe, const char *reason);
// How it is known that `pe` died, "" if it is not.
const char *gpsh_deaths_reason(struct gpsh_deaths *d, int pe);
// Calls `fn` for each that it was not told of yet, without any lock of this list.
void gpsh_deaths_tell(struct gpsh_deaths *d);
// The same with a new `fn` (or NULL), which hears of all.
void gpsh_deaths_on_death(struct gpsh_deaths *d, gpsh_pe_death_fn fn);
// 0, or GPUSHMEM_ERR_PE_FAILED naming the PE that died first. Waits up to `ms` for news of one.
int gpsh_deaths_check(struct gpsh_deaths *d, const char *what, int ms);

// How much later than its consequences the news of a death may come.
enum { GPSH_DEATHS_NEWS_MS = 500 };

#endif
