// SPDX-License-Identifier: BSD-3-Clause
// A fake of libibverbs: the program that links fake_verbs.c gets devices made of memory, a journal
// of every work request posted, and failures on demand. Requests execute (addresses are this
// process's own) when fake_run says so. Posting, polling, running and registering may be done by
// several threads at a time.
#ifndef FAKE_VERBS_H
#define FAKE_VERBS_H

#include <infiniband/verbs.h>
#include <stdbool.h>

enum { FAKE_DEVICES = 4, FAKE_JOURNAL = 8192, FAKE_GIDS = 8, FAKE_INLINE = 512 };

struct fake_post {
    struct ibv_send_wr wr;
    struct ibv_sge sge;
    char inlined[FAKE_INLINE];
    struct ibv_qp *qp;
    int doorbell; // number of the ibv_post_send call, from 1
    bool done;
};

struct fake_verbs {
    // the machine
    int n_devices;
    const char *sysfs[FAKE_DEVICES]; // folder of the device there, NULL: a software device
    struct ibv_port_attr port[FAKE_DEVICES];
    struct ibv_gid_entry gids[FAKE_GIDS]; // the same table for every device; gid_type -1: unused
    bool no_gids[FAKE_DEVICES];           // for that device the table is empty
    int max_qp_wr, max_cqe, max_rd_atomic;
    uint32_t max_inline;
    enum ibv_atomic_cap atomic_cap;
    bool pins;      // a registration touches its pages, as a real one does
    bool misplaces; // queue pairs do not promise that data is in order
    // failures on demand: an errno value, or 0
    const void *unregistrable; // ibv_reg_mr refuses the range that begins here
    int open_error, register_error, dmabuf_error, qp_error, cq_error, rtr_error;
    // while set, each ibv_post_send accepts `post_accept` requests, then fails
    int post_error, post_accept;
    int post_error_device; // 1 + the only one that refuses, or 0: each does
    bool poll_fails;
    // not 0: queue pairs take turns at random; each keeps its own order
    uint64_t shuffle;
    int event; // 1 + type of an event to deliver once, or 0
    struct ibv_qp *event_qp;
    // what happened
    struct fake_post journal[FAKE_JOURNAL];
    int n_posts, doorbells;
    int qps, most_qps; // that live; more are refused with ENOMEM, 0: none is
    int fork_inits;
    uint64_t dmabuf_offset, dmabuf_iova; // of the last registration by dma-buf
    int dmabuf_registrations, live_objects;
    int overruns; // completions for which a queue had no room
    _Atomic int killed_qps;
    _Atomic uint32_t rq_psn; // of each queue pair,
    int query_qp_error;      // unless it tells nothing
    bool unkillable;         // they refuse to go to the error state, and to be reset
    // when a queue pair was ended last, and one was asked for its number
    _Atomic uint64_t killed_ns, queried_ns;
    struct ibv_qp_attr rtr, rts; // the last ones
    // What is sent by a queue pair of datagrams goes here, on the sender's thread; NULL: it is lost
    void (*datagram)(struct ibv_qp *from, const void *bytes, size_t n);
    int datagrams; // sent
    // So many sends fail like this, and all others of the queue pair until it has been reset.
    int datagram_failures;
    enum ibv_wc_status datagram_status;
};

extern struct fake_verbs fake;

// One RoCE device with a good GID, one port each, everything working.
void fake_reset(void);
// Executes up to n posted requests in order, each ending in `status` if it is the last, and queues
// their completions. Returns how many were executed.
int fake_run(int n, enum ibv_wc_status status);
// A datagram comes to that queue pair; without a receive it is lost.
void fake_datagram(struct ibv_qp *to, const void *bytes, size_t n);
int fake_waiting(void);
void fake_gid(int index, int type, const char *address);

#endif
