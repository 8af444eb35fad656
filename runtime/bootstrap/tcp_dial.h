// SPDX-License-Identifier: BSD-3-Clause
// Calls of a process that joins a job: these block, until a deadline, and say in a sentence what is
// wrong.
#ifndef GPSH_TCP_DIAL_H
#define GPSH_TCP_DIAL_H

#include "bootstrap/tcp_link.h"

struct gpsh_tcp_dial {
    const struct gpsh_uniqueid *id;
    const struct gpsh_tcp_address *addresses; // [n], the best first
    int n;
    struct gpsh_hello hello; // purpose, pe and n_pes are set
    // Or NULL: called with the socket before the hello is sent, to set `listens`. 0 or an error.
    int (*prepare)(int fd, struct gpsh_hello *hello, void *arg);
    void *arg;
    const char *whom; // for sentences: "PE 3"
    uint64_t deadline_ns;
};

// An open link, which the caller gives ops and an owner, or NULL and
//   GPUSHMEM_ERR_BOOTSTRAP  no process listens there, or another than the one that should
//   GPUSHMEM_ERR_SYSTEM     this process can open no more files
//   GPUSHMEM_ERR_TIMEOUT    deadline_ns has passed
//   what `prepare` returned
// What else is ready in the loop is served meanwhile.
struct gpsh_tcp_link *gpsh_tcp_dial(struct gpsh_tcp_loop *loop, const struct gpsh_tcp_dial *dial);

#endif
