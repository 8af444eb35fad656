// SPDX-License-Identifier: BSD-3-Clause
// Who of the job has died, and who has been told of it. Its owner holds a lock.
#ifndef GPSH_TCP_DEATHS_H
#define GPSH_TCP_DEATHS_H

#include <stdbool.h>

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

#endif
