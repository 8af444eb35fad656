// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE
// What the ofi transport adds to libfabric: the same operations by the library and by libfabric's
// own calls, in turn, between the same two PEs. Medians of single operations, each waited for, and
// the least in brackets.
//   gpushmem run -n 2 --nodes 2 perf_ofi_raw [ROUNDS [ROW]]
// ROW is the name of one row, like "put 8 B". ROUNDS of 0: one with a twentieth of the operations,
// for a test that looks at no time.
// under GPUSHMEM_TRANSPORTS=ofi, GPUSHMEM_OFI_PROVIDER=tcp and GPUSHMEM_OFI_DOMAIN=lo, the provider
// and domain that the raw side takes as well.
#include <gpushmem/gpushmem.h>
#include <rdma/fabric.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    KEY = 77,
    LARGEST = 1 << 20,
    REPEATS = 2000,
    LARGE_REPEATS = 200,
    BLOCKS = 10,
    RATE = 20000,
    TEST_PART = 20,
    PATIENCE = 1000, // polls that find nothing, some 0.5 ms: then the other PE may need this core
};

enum what { PUT, GET, FETCH_ADD };
enum phase { RAW, LIBRARY, STOP };

struct row {
    const char *name;
    enum what what;
    size_t bytes;
};

static struct {
    struct fid_ep *ep;
    struct fid_cq *cq;
    fi_addr_t peer;
    char *memory;
} raw;
static struct {
    char address[64];
    uint64_t word, phase;
    char to[LARGEST];
} * shared;
static char *source;
static int part = 1; // of the operations, TEST_PART in a test

static double now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static void check(int64_t error, const char *call)
{
    if (!error)
        return;
    fprintf(stderr, "perf_ofi_raw: %s: %lld\n", call, (long long)error);
    exit(1);
}

static bool poll_raw(void)
{
    static int vain;
    struct fi_cq_entry entry;
    ssize_t n = fi_cq_read(raw.cq, &entry, 1);
    check(n < 0 && n != -FI_EAGAIN ? n : 0, "fi_cq_read");
    vain = n > 0 ? 0 : vain + 1;
    if (vain > PATIENCE)
        sched_yield();
    return n > 0;
}

static struct fi_info *find_info(void)
{
    struct fi_info *hints = fi_allocinfo(), *list = NULL;
    hints->caps = FI_MSG | FI_RMA | FI_ATOMIC;
    hints->ep_attr->type = FI_EP_RDM;
    hints->tx_attr->op_flags = FI_DELIVERY_COMPLETE | FI_COMPLETION;
    hints->domain_attr->threading = FI_THREAD_SAFE;
    hints->fabric_attr->prov_name = strdup("tcp;ofi_rxm");
    check(fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &list), "fi_getinfo");
    struct fi_info *at = list;
    while (at && strcmp(at->domain_attr->name, "lo") != 0)
        at = at->next;
    check(at ? 0 : -FI_ENODATA, "no tcp on lo");
    fi_freeinfo(hints);
    return at;
}

static void open_raw(int peer)
{
    struct fi_info *info = find_info();
    struct fid_fabric *fabric;
    struct fid_domain *domain;
    struct fid_av *av;
    struct fid_mr *mr;
    struct fi_av_attr av_attr = {.type = FI_AV_UNSPEC};
    struct fi_cq_attr cq_attr = {.format = FI_CQ_FORMAT_CONTEXT};
    char address[sizeof shared->address];
    size_t bytes = sizeof address;
    check(fi_fabric(info->fabric_attr, &fabric, NULL), "fi_fabric");
    check(fi_domain(fabric, info, &domain, NULL), "fi_domain");
    check(fi_av_open(domain, &av_attr, &av, NULL), "fi_av_open");
    check(fi_cq_open(domain, &cq_attr, &raw.cq, NULL), "fi_cq_open");
    check(fi_endpoint(domain, info, &raw.ep, NULL), "fi_endpoint");
    check(fi_ep_bind(raw.ep, &av->fid, 0), "fi_ep_bind");
    check(fi_ep_bind(raw.ep, &raw.cq->fid, FI_TRANSMIT | FI_RECV), "fi_ep_bind");
    check(fi_enable(raw.ep), "fi_enable");
    raw.memory = calloc(1, LARGEST);
    check(fi_mr_reg(domain, raw.memory, LARGEST, FI_REMOTE_READ | FI_REMOTE_WRITE, 0, KEY, 0, &mr,
                    NULL),
          "fi_mr_reg");
    check(fi_getname(&raw.ep->fid, shared->address, &bytes), "fi_getname");
    gpushmem_barrier_all();
    gpushmem_getmem(address, shared->address, sizeof address, peer);
    check(fi_av_insert(av, address, 1, &raw.peer, 0, NULL) - 1, "fi_av_insert");
}

static void by_raw(enum what what, size_t bytes)
{
    static uint64_t one = 1, old;
    ssize_t error;
    do {
        error = what == PUT   ? fi_write(raw.ep, source, bytes, NULL, raw.peer, 0, KEY, NULL)
                : what == GET ? fi_read(raw.ep, source, bytes, NULL, raw.peer, 0, KEY, NULL)
                              : fi_fetch_atomic(raw.ep, &one, 1, NULL, &old, NULL, raw.peer, 0, KEY,
                                                FI_UINT64, FI_SUM, NULL);
        if (error == -FI_EAGAIN)
            poll_raw();
    } while (error == -FI_EAGAIN);
    check(error, "an operation");
    while (!poll_raw())
        ;
}

static void by_library(enum what what, size_t bytes)
{
    switch (what) {
    case PUT:
        gpushmem_putmem_nbi(shared->to, source, bytes, 1);
        gpushmem_quiet();
        break;
    case GET: gpushmem_getmem(source, shared->to, bytes, 1); break;
    default: gpushmem_uint64_atomic_fetch_add(&shared->word, 1, 1);
    }
}

static int compare(const void *a, const void *b)
{
    const double *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

// The other PE polls for raw operations, and waits in the library for the library's.
static void enter(uint64_t phase)
{
    gpushmem_putmem(&shared->phase, &phase, sizeof phase, 1);
    gpushmem_quiet();
    nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
}

// What a row takes: of the two sides in turn, in blocks, so that whatever else the machine does
// meets both.
struct sides {
    double us[2][REPEATS];
    int n;
};

static void block(struct sides *sides, enum phase side, const struct row *row)
{
    void (*operation)(enum what, size_t) = side == RAW ? by_raw : by_library;
    int repeats = (row->bytes < LARGEST ? REPEATS : LARGE_REPEATS) / BLOCKS / part;
    enter(side);
    for (int i = 0; i < repeats; i++) {
        double begun = now_us();
        operation(row->what, row->bytes);
        sides->us[side][sides->n + i] = now_us() - begun;
    }
    sides->n += side == LIBRARY ? repeats : 0;
}

static void measure_row(const struct row *row)
{
    static struct sides sides;
    sides.n = 0;
    for (int i = 0; i < BLOCKS; i++) {
        block(&sides, RAW, row);
        block(&sides, LIBRARY, row);
    }
    for (int side = RAW; side <= LIBRARY; side++)
        qsort(sides.us[side], (size_t)sides.n, sizeof **sides.us, compare);
    const double *raw_us = sides.us[RAW], *us = sides.us[LIBRARY];
    int middle = sides.n / 2;
    printf("%-10s libfabric %8.2f (least %8.2f) us, library %8.2f (%8.2f) us: %.2f (%.2f)\n",
           row->name, raw_us[middle], raw_us[0], us[middle], us[0], us[middle] / raw_us[middle],
           us[0] / raw_us[0]);
    fflush(stdout);
}

static double raw_rate(void)
{
    const int rate = RATE / part;
    double begun = now_us();
    for (int sent = 0, done = 0; done < rate; done += poll_raw())
        while (sent < rate && sent - done < 512 &&
               !fi_write(raw.ep, source, 8, NULL, raw.peer, 0, KEY, NULL))
            sent++;
    return rate / (now_us() - begun);
}

static double library_rate(void)
{
    const int rate = RATE / part;
    double begun = now_us();
    for (int i = 0; i < rate; i++)
        gpushmem_putmem_nbi(shared->to + 8 * (i % 1024), source, 8, 1);
    gpushmem_quiet();
    return rate / (now_us() - begun);
}

static void serve(void)
{
    for (uint64_t phase = RAW; phase != STOP; phase = *(const volatile uint64_t *)&shared->phase) {
        if (phase == RAW)
            poll_raw();
        else
            gpushmem_uint64_wait_until(&shared->phase, GPUSHMEM_CMP_NE, LIBRARY);
    }
}

static void measure_rates(void)
{
    enter(RAW);
    double floor_rate = raw_rate();
    enter(LIBRARY);
    double rate = library_rate();
    printf("puts of 8 B in a row: libfabric %.3f M/s, library %.3f M/s: %.1f\n", floor_rate, rate,
           rate / floor_rate);
    fflush(stdout);
}

// All rows, or the one that is named.
static void measure(const char *only)
{
    static const struct row rows[] = {{"put 8 B", PUT, 8},         {"put 4 KiB", PUT, 4096},
                                      {"put 64 KiB", PUT, 65536},  {"put 1 MiB", PUT, 1 << 20},
                                      {"get 8 B", GET, 8},         {"get 64 KiB", GET, 65536},
                                      {"get 1 MiB", GET, 1 << 20}, {"fetch-add", FETCH_ADD, 8}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (!only || !strcmp(only, rows[i].name))
            measure_row(&rows[i]);
    if (!only || !strcmp(only, "rate"))
        measure_rates();
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 1;
    part = rounds ? 1 : TEST_PART;
    rounds += !rounds;
    if (gpushmem_init() || gpushmem_n_pes() != 2)
        return 1;
    int me = gpushmem_my_pe();
    shared = gpushmem_calloc(1, sizeof *shared);
    source = gpushmem_calloc(1, LARGEST);
    open_raw(1 - me);
    gpushmem_barrier_all();
    for (int i = 0; i < rounds && me == 0; i++)
        measure(argc > 2 ? argv[2] : NULL);
    if (me == 0)
        enter(STOP);
    else
        serve();
    gpushmem_barrier_all();
    gpushmem_free(source);
    gpushmem_free(shared);
    gpushmem_finalize();
    return 0;
}
