// SPDX-License-Identifier: BSD-3-Clause
// PEs that were lost: each is told once, to everybody who has to do something about it.
#ifndef GPSH_FAILURE_H
#define GPSH_FAILURE_H

// Marks a peer as lost, once, with the reason; tells the observers; starts the job's end if
// GPUSHMEM_ON_PE_FAILURE=abort. `code`: GPUSHMEM_ERR_PE_FAILED: it has died, or does not answer and
// may have died; GPUSHMEM_ERR_TRANSPORT: it lives, and the connection with it is lost. That such a
// one has died later is told as well. Any thread.
void gpsh_peer_failed(int pe, int code, const char *why);

// Trouble of this PE's own keeps it from reaching `pe`, which may be well and does not count as
// lost: keeps the reason for whoever posts to it; starts the job's end if
// GPUSHMEM_ON_PE_FAILURE=abort. Any thread.
void gpsh_peer_unreachable(int pe, const char *why);

// This PE leaves the job: from now on no PE counts as lost, and nobody looks at the tables of PEs
// on behalf of a thread that finds one gone. Before they are freed.
void gpsh_failures_end(void);

// From now on `observer` is called after each loss, twice if that PE was cut off and then died, by
// the thread that found it, when the loss is counted in gpsh_job()->failures, which ends waits.
// Registering a function again changes nothing, and none is ever removed: an observer looks itself
// whether it has something to do.
typedef void gpsh_failure_observer(int pe, int code);
void gpsh_failure_observe(gpsh_failure_observer *observer);
// Before the loss is counted: whose wait ends then finds that calls towards the PE fail.
void gpsh_failure_observe_first(gpsh_failure_observer *observer);

#endif
