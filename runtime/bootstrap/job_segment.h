// SPDX-License-Identifier: BSD-3-Clause
// The segment of a job of `gpushmem run`: a sealed memory file that the launcher makes and all PEs
// inherit. Who is in the job, what PEs publish about themselves, where they meet, who has died.
//
// PEs and launcher are processes of one user that trust each other; but a program may scribble. So
// both keep sizes of their own and check what they read here before they use it.
#ifndef GPSH_JOB_SEGMENT_H
#define GPSH_JOB_SEGMENT_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

enum gpsh_job_segment_state {
    GPSH_PE_AWAY,   // has not joined yet
    GPSH_PE_JOINED, // between init and finalize
    GPSH_PE_LEFT,   // has left in order, and may join again
};

// What one PE publishes, in turn: some may still read what was published before.
struct gpsh_job_segment_blob {
    uint64_t at, bytes; // in the blobs of its round
    uint32_t round;
};

struct gpsh_job_segment_pe {
    _Alignas(64) _Atomic int32_t state; // enum gpsh_job_segment_state; written by the PE
    _Atomic int32_t pid;                // of the process that has joined last
    _Atomic uint32_t left;  // its round when it last left in order, and needed nobody; 0: never
    uint64_t pid_namespace; // in which it has that number, 0: not known
    uint32_t round;         // of what it published last; outlives its process
    struct gpsh_job_segment_blob blob[2];
    // What the launcher knows of its end. The sentence is there before `died` is set.
    _Atomic int32_t died;
    char reason[92];
    _Atomic uint32_t news; // a futex: counts what this PE's thread is to look at
};

struct gpsh_job_segment {
    uint32_t magic, version;
    int32_t n_pes, n_nodes; // nodes are pretended
    uint64_t blobs_at;      // offset of the blobs of even rounds; those of odd ones follow
    uint64_t blobs_bytes;   // room for one round
    char job_id[64];
    _Alignas(64) _Atomic uint64_t used[2]; // of the blobs of even and odd rounds
    _Alignas(64) _Atomic uint32_t arrived; // PEs that are in the fence
    _Atomic uint32_t fences;               // a futex: how many have been passed
    _Atomic uint32_t deaths;               // how many PEs have died
    struct gpsh_job_segment_pe pe[];
};

// Makes and maps the segment of a new job. *fd is its file, which is closed at exec. NULL with
// errno.
struct gpsh_job_segment *gpsh_job_segment_create(int n_pes, int n_nodes, int *fd);
// Maps the segment that this process has inherited. NULL after gpsh_fail, if it is another user's,
// none, or of another release.
struct gpsh_job_segment *gpsh_job_segment_join(int fd, int *n_pes, int *n_nodes);
void gpsh_job_segment_unmap(struct gpsh_job_segment *s, int n_pes);

// The pretended node of a PE (blocks of PEs, as even as possible), and the first PE of a node,
// which is n_pes for the node after the last one.
int gpsh_job_node_of(int pe, int n_pes, int n_nodes);
int gpsh_job_first_pe(int node, int n_pes, int n_nodes);

// Tells all PEs that this one has died; the launcher's part.
void gpsh_job_segment_tell_death(struct gpsh_job_segment *s, int n_pes, int pe, const char *reason);

// Sleeps until the word is no longer `seen`, it is woken, or so many milliseconds (-1: for ever)
// have passed.
void gpsh_job_segment_sleep(_Atomic uint32_t *word, uint32_t seen, int ms);
// Adds one to the word, and wakes whoever sleeps on it.
void gpsh_job_segment_wake(_Atomic uint32_t *word);

#endif
