// SPDX-License-Identifier: BSD-3-Clause
// Test support: cases that each run in a process of their own, and a connected pair of queue pairs
// whose far end is in the same process, in another one with private memory, or in another one with
// memory that can be mapped.
#ifndef SOFTHCA_ENDPOINT_H
#define SOFTHCA_ENDPOINT_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>

extern int failures;

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #condition);              \
            failures++;                                                                            \
        }                                                                                          \
    } while (0)

#define CHECK_EQ(actual, expected)                                                                 \
    do {                                                                                           \
        long long actual_ = (long long)(actual), expected_ = (long long)(expected);                \
        if (actual_ != expected_) {                                                                \
            fprintf(stderr, "%s:%d: %s is %lld, not %lld\n", __FILE__, __LINE__, #actual, actual_, \
                    expected_);                                                                    \
            failures++;                                                                            \
        }                                                                                          \
    } while (0)

enum mode {
    SAME_PROCESS = 1,
    PRIVATE_MEMORY = 2,
    MAPPED_MEMORY = 4,
    ALL_MODES = 7,
    TWO_PROCESSES = 6
};

struct pair;

struct test_case {
    const char *name;
    int modes;
    // "NAME=value NAME=value", without the prefix GPUSHMEM_SOFTHCA_
    const char *environment;
    void (*run)(enum mode mode);        // this,
    void (*on_pair)(struct pair *pair); // or this, with a pair of the usual options
};

enum { BUFFER_BYTES = 1 << 20 };
enum gpu_memory { NO_GPU, GPU_BY_POINTER, GPU_BY_DMABUF };

struct options {
    int far_device;
    int sq_depth, cq_depth, recv_depth, max_inline;
    int far_access, far_qp_access;
    int timeout, retry, rnr_retry, max_rd, far_max_rd;
    bool sq_sig_all;
    int near_gid, far_gid;             // indices
    enum gpu_memory near_gpu, far_gpu; // the buffer is in the memory of the first, or the last GPU
};
// The other end of a usual pair may wait half a second for a processor, of an impatient one 16 ms.
extern const struct options usual, impatient;

struct end {
    struct ibv_context *context;
    struct ibv_pd *pd;
    struct ibv_comp_channel *channel;
    struct ibv_cq *cq, *recv_cq;
    struct ibv_qp *qp;
    struct ibv_mr *mr;
    char *buffer;
    int fd;
    enum gpu_memory gpu;
    union ibv_gid gid;
    uint8_t gid_index;
};

struct far_reply {
    int value;
    uint32_t qpn, rkey;
    uint64_t address;
    union ibv_gid gid;
    struct ibv_wc wc;
};

// What the far end is told to do.
enum far_command {
    FAR_DESCRIBE,
    FAR_CONNECT,
    FAR_RECEIVE,
    FAR_POLL,
    FAR_EVENT,
    FAR_DEREGISTER,
    FAR_PEEK,
    FAR_QUIT
};

struct pair {
    struct options options;
    enum mode mode;
    struct end near, far; // far: only in the same process
    struct far_reply there;
    pid_t child;
    int to_child, from_child;
    struct ibv_sge sge; // for a test's work requests
};

void end_open(struct end *end, int device, bool mappable);
void end_use_gpu(struct end *end, enum gpu_memory kind, bool last); // after end_open
void end_use_gid(struct end *end, int index); // after end_open, which takes the first
void end_queues(struct end *end, const struct options *options, int access, int qp_access);
void end_close(struct end *end);
int end_init(struct end *end, int qp_access);
int end_connect(struct end *end, const struct options *options, const union ibv_gid *gid,
                uint32_t qpn, bool near);

void pair_open(struct pair *pair, enum mode mode, const struct options *options);
void pair_close(struct pair *pair);
struct far_reply far_do(struct pair *pair, enum far_command command, uint64_t argument);

// Work requests between the start of the near buffer and an offset of the far one.
struct ibv_send_wr write_wr(struct pair *pair, struct ibv_sge *sge, uint64_t from, uint64_t to,
                            uint32_t bytes);
int post(struct pair *pair, struct ibv_send_wr *wr);
// Waits for one completion, for some seconds at most.
struct ibv_wc wait_wc(struct ibv_cq *cq);
// Posts and waits; returns the status.
int run_wr(struct pair *pair, struct ibv_send_wr *wr);
uint64_t far_word(struct pair *pair, uint64_t offset);
uint64_t *near_word(struct pair *pair, uint64_t offset);
// To and from the near buffer, wherever it is.
void near_store(struct pair *pair, uint64_t offset, const void *from, size_t bytes);
void near_load(struct pair *pair, uint64_t offset, void *to, size_t bytes);
double seconds(void);

// test_gpu.c
bool gpu_present(void);
// dmabuf_fd NULL: not asked for; *dmabuf_fd -1: refused
char *gpu_allocate(bool last, size_t bytes, int *dmabuf_fd);
void gpu_copy(void *to, const void *from, size_t bytes);

// test_mlx5.c: programs for queues in memory, drawn, against a model
void random_programs(struct pair *pair);

extern const struct test_case ops_cases[], error_cases[], order_cases[], device_cases[],
    fault_cases[], datagram_cases[], gpu_cases[], mlx5_cases[], misuse_cases[], devx_cases[];

#endif
