// SPDX-License-Identifier: BSD-3-Clause
// Calling a process that listens: the other side of tcp_admission.h. Blocks until a deadline.
#ifndef GPSH_TCP_CONNECT_H
#define GPSH_TCP_CONNECT_H

#include "bootstrap/tcp_wire.h"

// Connects to one of addresses[n] and makes sure that the process there knows the secret of `id`,
// and knows that this process does. `hello`: purpose, pe and n_pes are set; `prepare` (or NULL) is
// called with the connected socket before it is sent, to set `listens`. `whom` is for sentences:
// "the meeting", "PE 3". Returns the connected descriptor, or
//   GPUSHMEM_ERR_BOOTSTRAP  no process listens there, or another than the one that should
//   GPUSHMEM_ERR_SYSTEM     this process can open no more files
//   GPUSHMEM_ERR_TIMEOUT    deadline_ns (of gpsh_clock_ns) has passed
//   what `prepare` returned
typedef int gpsh_tcp_prepare_fn(int fd, struct gpsh_hello *hello, void *arg);
int gpsh_tcp_dial(const struct gpsh_uniqueid *id, const struct gpsh_tcp_address *addresses, int n,
                  struct gpsh_hello *hello, gpsh_tcp_prepare_fn *prepare, void *arg,
                  const char *whom, uint64_t deadline_ns);

enum gpsh_tcp_presence {
    GPSH_TCP_PRESENT,   // somebody listens there
    GPSH_TCP_ABSENT,    // nobody does
    GPSH_TCP_UNREACHED, // the host does not answer
    GPSH_TCP_UNSURE,    // this process has no descriptor to find out
    GPSH_TCP_OTHER,     // another process than the one that is called
    GPSH_TCP_HUNG_UP,   // somebody listens, and ends the connection at once
};
// Whether a process listens at `address`. Without an id it need not answer, so two that ask each
// other never wait for each other. With one, whether it is the process that knows the secret of
// `id` and has its name: a stranger that says what that process would not is GPSH_TCP_OTHER. One
// that says nothing, within a fraction of a second, counts as the process: that may be stopped, or
// be asking somebody itself. `hello`: pe and n_pes are set.
enum gpsh_tcp_presence gpsh_tcp_probe(const struct gpsh_uniqueid *id,
                                      const struct gpsh_tcp_address *address,
                                      struct gpsh_hello *hello, uint64_t deadline_ns);

// Whether the PE has ended, after it was asked to prove itself: nobody listens there any more, or a
// stranger does. One that greets as that PE and then hangs up has too many callers; one that says
// nothing is stopped, or calls somebody itself.
bool gpsh_tcp_has_ended(enum gpsh_tcp_presence presence);

// Receives exactly so many bytes. 0, ETIMEDOUT, ECONNRESET where the connection ended, or another
// errno value.
int gpsh_tcp_receive(int fd, void *data, size_t bytes, uint64_t deadline_ns);

#endif
