// SPDX-License-Identifier: BSD-3-Clause
// A person whose job hangs asks by SIGUSR1 what this PE is doing. The handler only counts; each
// thread of the library that waits or works sees the count change and logs what it is at.
#ifndef GPSH_STATUS_REQUEST_H
#define GPSH_STATUS_REQUEST_H

#include <stdint.h>

// Takes SIGUSR1 over, unless the program has plans of its own for it. It is not given back when the
// library is finalized: a question that comes late, or between two jobs, would end the process. The
// handler stays valid, because the library is never unloaded (-z nodelete).
void gpsh_status_requests_open(void);

// How often the program was asked so far. Any thread.
unsigned gpsh_status_requests(void);

// Sleeps until, after the ticket was taken, SIGUSR1 comes or gpsh_status_requests_wake is called,
// or until limit_s seconds have passed (0: no limit). May return for no reason.
unsigned gpsh_status_requests_ticket(void);
void gpsh_status_requests_await(unsigned ticket, int64_t limit_s);
void gpsh_status_requests_wake(void);

#endif
