// SPDX-License-Identifier: BSD-3-Clause
// The PMIx server inside `gpushmem run`. One per process, as the PMIx library has it. Its callbacks
// run in a thread of that library and only write to a pipe; everything is decided in the launcher's
// main loop.
#ifndef GPSH_JOB_SERVER_H
#define GPSH_JOB_SERVER_H

enum gpsh_server_event_kind { GPSH_SERVER_CONNECTED, GPSH_SERVER_FINALIZED, GPSH_SERVER_ABORT };

// What a PE told the server. One read of the event pipe returns exactly one of these.
struct gpsh_server_event {
    enum gpsh_server_event_kind kind;
    int pe;
    int status;        // of an abort
    char message[768]; // of an abort
};

struct gpsh_job_server {
    int event_fd; // readable when there is an event; non-blocking
    int n_pes;
    int n_nodes;
};

// Starts the server with its files in `dir`. 0, or -1 after a message. All signals the launcher
// waits for must be blocked by now, because the library starts threads.
int gpsh_job_server_start(struct gpsh_job_server *s, const char *dir, int n_pes, int n_nodes);

// `base` plus what the client library of this PE needs, and GPSH_LAUNCHER_LOG unless `log` is NULL.
// NULL after a message. Freed with gpsh_environment_free.
char **gpsh_job_server_environment(const struct gpsh_job_server *s, int pe, char **base,
                                   const char *log);
void gpsh_environment_free(char **environment);

// Tells all surviving PEs that this one is gone. Does not block.
void gpsh_job_server_announce_death(const struct gpsh_job_server *s, int pe);

// Pretended node of a PE: blocks of PEs, as even as possible.
int gpsh_job_server_node_of(const struct gpsh_job_server *s, int pe);

#endif
