// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE
// What a PE of a job of so many PEs sends in collectives: the library's own schedules, for one PE,
// the first of its node, whose peers do what it does. What it sends to another node is counted, and
// is at the same time what it hears from one. Fails if that is more than it may be.
//
//   perf_rounds [PES...]      powers of two, of 8 PEs a node
//
// Time is counted, not measured: MESSAGE_US for a message that the next one waits for, PIPED_US for
// others, and BYTES_A_US for all bytes.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "api/coll.h"
#include "bootstrap/bootstrap.h"
#include "comm/context.h"
#include "comm/sync.h"
#include "comm/team_split.h"
#include "core/config.h"
#include "core/error.h"
#include "gpushmem/gpushmem.h"
#include "job/job.h"
#include "memory/heap.h"
#include "progress/waiter.h"
#include "tests/perf/resident.h"

enum { NODE = 8, BLOCK = 8, USER = 8 << 20, MOST_TEAMS_MIB = 16, BYTES_A_US = 25000 };
enum { GATHERED = 16 << 10 }; // of coll_choice.c
static const double MESSAGE_US = 2, PIPED_US = 0.1;

static struct {
    long rounds, puts, bytes; // of an operation
    char *met;                // [n_pes] PEs of other nodes, in all of them
    long peers;
} sent;

static void meet(int pe)
{
    sent.peers += !sent.met[pe];
    sent.met[pe] = 1;
}

// ---- What the others do ----

// A message of this PE's, and that of another one in the same round to it: it meets both, unless
// they are one, of which there are as many in the list.
int __wrap_gpsh_context_submit(struct gpsh_context *ctx, const struct gpsh_op *op,
                               enum gpsh_wait wait);
int __wrap_gpsh_context_submit(struct gpsh_context *ctx, const struct gpsh_op *op,
                               enum gpsh_wait wait)
{
    char *control = (char *)gpsh_heap()->control;
    int n = gpsh_job()->n_pes, me = gpsh_job()->my_pe;
    (void)ctx, (void)wait;
    sent.bytes += (long)op->bytes;
    meet(op->pe);
    meet((2 * me - op->pe + n) % n);
    if (op->kind != GPSH_OP_PUT_SIGNAL) {
        sent.puts++;
        return 0;
    }
    sent.rounds++;
    if (op->bytes)
        memcpy(control + op->remote, op->local, op->bytes);
    memcpy(control + op->signal, &op->operand, sizeof op->operand);
    return 0;
}

static struct gpsh_team_shown *shown(const struct gpsh_team *team, uint64_t epoch)
{
    return (void *)((char *)team->mine + team->shown + (ptrdiff_t)(epoch % 2) * team->side);
}

// The others of the node, whose words are this PE's, have come when they are waited for.
int __wrap_gpsh_waiter_slow(struct gpsh_waiter *waiter);
int __wrap_gpsh_waiter_slow(struct gpsh_waiter *waiter)
{
    struct gpsh_team *team = gpsh_team_of(waiter->team);
    if (waiter->awaited != GPSH_AWAITED_TEAM || !team ||
        shown(team, waiter->number)->epoch >= waiter->number)
        return gpsh_fail(GPUSHMEM_ERR_TIMEOUT, "%s: waits for what nobody sends", waiter->what);
    shown(team, waiter->number)->epoch = waiter->number;
    return 0;
}

// And what they show is what this PE has.
int __real_gpsh_team_allreduce(struct gpsh_team *team, const void *mine, size_t bytes,
                               const struct gpsh_team_fold *fold, const char *what);
int __wrap_gpsh_team_allreduce(struct gpsh_team *team, const void *mine, size_t bytes,
                               const struct gpsh_team_fold *fold, const char *what);
int __wrap_gpsh_team_allreduce(struct gpsh_team *team, const void *mine, size_t bytes,
                               const struct gpsh_team_fold *fold, const char *what)
{
    struct gpsh_team_shown *theirs = shown(team, team->epoch + 1);
    memcpy(bytes <= GPSH_TEAM_LINE_DATA ? theirs->line : theirs->data, mine, bytes);
    return __real_gpsh_team_allreduce(team, mine, bytes, fold, what);
}

// ---- The job ----

static void *zeros(size_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) {
        perror("perf_rounds");
        exit(1);
    }
    return memory;
}

static void map_job(int n)
{
    const struct gpsh_settings *settings = gpsh_settings();
    uint64_t heap = USER + gpsh_heap_reserved(settings);
    gpsh_heap_state.control_bytes = gpsh_control_total(n, settings);
    gpsh_heap_state.control = zeros(gpsh_heap_state.control_bytes);
    gpsh_heap_state.base = zeros(heap);
    gpsh_heap_state.user_bytes = USER;
    gpsh_heap_state.bytes = gpsh_heap_state.first_bytes = heap;
    gpsh_heap_state.direct = zeros((size_t)n * sizeof(char *));
    for (int region = 0; region < GPSH_REGIONS; region++)
        gpsh_heap_state.mapped[region] = zeros((size_t)n * sizeof(char *));
    sent.met = zeros((size_t)n);
    for (int pe = 0; pe < n; pe++) {
        struct gpsh_peer *peer = &gpsh_job_state.peers[pe];
        peer->node = pe / NODE * NODE;
        peer->node_pe = pe % NODE;
        peer->gpu_pe = pe;
        peer->same_node = peer->node == gpsh_job()->my_pe / NODE * NODE;
        if (!peer->same_node)
            continue;
        gpsh_heap_state.direct[pe] = gpsh_heap_state.mapped[GPSH_HEAP][pe] = gpsh_heap()->base;
        gpsh_heap_state.mapped[GPSH_CONTROL][pe] = (char *)gpsh_heap()->control;
    }
}

// Bytes that the teams of init take, or -1.
static double open_job(int n)
{
    char *none[] = {NULL};
    gpsh_job_state.boot->n_pes = n;
    gpsh_job_state.boot->my_pe = n / 2 + 3 * NODE;
    if (gpsh_settings_read(none, &gpsh_settings_state) || gpsh_job_open())
        return -1;
    map_job(n);
    gpsh_sync_init(0);
    double before = perf_resident();
    return gpsh_teams_init(gpsh_teams_reach()) ? -1 : perf_resident() - before;
}

// ---- Operations ----

static int run_coll(enum gpushmem_coll_kind kind, enum gpsh_type type, enum gpsh_fold_op op)
{
    const struct gpsh_coll c = {.what = "perf_rounds",
                                .kind = kind,
                                .team = gpsh_team_of(GPUSHMEM_TEAM_WORLD),
                                .dest = gpsh_heap()->base,
                                .source = gpsh_heap()->base + USER / 2,
                                .size = BLOCK,
                                .nelems = 1,
                                .dst = 1,
                                .sst = 1,
                                .type = type,
                                .op = op};
    return gpsh_coll_run(&c);
}

static int barrier(void)
{
    return gpsh_sync_as(GPSH_CALL_SYNC_ALL, 0, 0, "perf_rounds");
}

static int team_sync(void)
{
    return gpsh_team_sync(gpsh_team_of(GPUSHMEM_TEAM_WORLD), "perf_rounds");
}

static int sum_int(void)
{
    return run_coll(GPUSHMEM_COLL_REDUCE, GPSH_INT64, GPSH_SUM);
}

static int sum_double(void)
{
    return run_coll(GPUSHMEM_COLL_REDUCE, GPSH_DOUBLE, GPSH_SUM);
}

static int max_double(void)
{
    return run_coll(GPUSHMEM_COLL_REDUCE, GPSH_DOUBLE, GPSH_MAX);
}

static int broadcast(void)
{
    return run_coll(GPUSHMEM_COLL_BROADCAST, GPSH_INT64, GPSH_SUM);
}

static int alltoall(void)
{
    return run_coll(GPUSHMEM_COLL_ALLTOALL, GPSH_INT64, GPSH_SUM);
}

// Every second PE, from the first on.
static int split(void)
{
    int n = gpsh_job()->n_pes / 2, status;
    gpushmem_team_t team;
    int *ranks = calloc((size_t)n, sizeof *ranks);
    for (int i = 0; ranks && i < n; i++)
        ranks[i] = 2 * i;
    const struct gpsh_team_plan plan = {
        .what = "split", .ranks = ranks, .size = n, .call = {.function = "split"}};
    status = gpsh_team_split(gpsh_team_of(GPUSHMEM_TEAM_WORLD), &plan, &team);
    free(ranks);
    return status || team == GPUSHMEM_TEAM_INVALID ? -1 : 0;
}

// As tests/network/neighbours.c: a word of the next PE and of one drawn, and whose words are here.
static int neighbours(void)
{
    int n = gpsh_job()->n_pes, me = gpsh_job()->my_pe;
    for (int pe = 0; pe < n; pe++) {
        int drawn = (int)((uint64_t)pe * 2654435761u % (uint64_t)n);
        int other = pe == me ? drawn : drawn == me ? pe : pe == (me + 1) % n ? pe : me;
        if (other / NODE != me / NODE)
            meet(other);
    }
    return 0;
}

static int log2_of(long n)
{
    int log = 0;
    while (1L << (log + 1) <= n)
        log++;
    return log;
}

// ---- The table ----

static int fails(const char *name, long n, const char *what, double is, double most)
{
    if (is <= most)
        return 0;
    fprintf(stderr, "%s of %ld PEs: %.0f %s, of at most %.0f\n", name, n, is, what, most);
    return 1;
}

static int row(const char *name, int (*run)(void), long rounds, long puts, long bytes)
{
    long n = gpsh_job()->n_pes, peers = sent.peers;
    double before = perf_resident();
    sent.rounds = sent.puts = sent.bytes = 0;
    if (run()) {
        fprintf(stderr, "%s of %ld PEs: %s\n", name, n, gpsh_last_error());
        return 1;
    }
    double us = (double)sent.rounds * MESSAGE_US + (double)sent.puts * PIPED_US +
                (double)sent.bytes / BYTES_A_US;
    printf("%8ld %-14s %8ld %8ld %10ld %10.1f %8ld %10.2f\n", n, name, sent.rounds, sent.puts,
           sent.bytes, us, sent.peers - peers, (perf_resident() - before) / (1 << 20));
    return fails(name, n, "rounds", (double)sent.rounds, (double)rounds) +
           fails(name, n, "messages beside them", (double)sent.puts, (double)puts) +
           fails(name, n, "bytes", (double)sent.bytes, (double)bytes);
}

static int rows(int n)
{
    double teams = open_job(n);
    if (teams < 0) {
        fprintf(stderr, "%d PEs: %s\n", n, gpsh_last_error());
        return 1;
    }
    int pes = log2_of(n), nodes = log2_of(n / NODE);
    printf("%8d %-14s %60.2f\n", n, "teams of init", teams / (1 << 20));
    int failed = fails("init", n, "MiB for teams", teams / (1 << 20), MOST_TEAMS_MIB);
    failed += row("barrier", barrier, pes - 3, 0, 0);
    failed += row("neighbours", neighbours, 0, 0, 0);
    failed += row("team sync", team_sync, nodes, 0, 0);
    failed += row("sum of ints", sum_int, nodes, 0, GATHERED);
    failed += row("max of doubles", max_double, nodes, 0, GATHERED);
    failed += row("broadcast", broadcast, nodes, 0, nodes * BLOCK);
    failed += row("team split", split, 3 * nodes, 0, nodes * 256);
    failed += row("sum of doubles", sum_double, nodes, 0, (long)n * BLOCK);
    failed += fails("all before", n, "PEs that it connects to", (double)sent.peers, 2 * pes);
    failed += row("alltoall", alltoall, 2 * nodes, n / NODE - 1, (long)n * BLOCK);
    return failed;
}

// Each in a process of its own, whose memory nobody has used before.
static int rows_apart(int n)
{
    int status = 1;
    fflush(stdout);
    pid_t child = fork();
    if (!child) {
        status = rows(n) ? 1 : 0;
        fflush(stdout);
        _exit(status);
    }
    return child < 0 || waitpid(child, &status, 0) != child || status;
}

int main(int argc, char **argv)
{
    static const int usual[] = {1024, 16384, 131072};
    int failed = 0;
    printf("%8s %-14s %8s %8s %10s %10s %8s %10s\n", "PEs", "of 8 bytes", "rounds", "messages",
           "bytes", "us", "new PEs", "MiB");
    for (int i = 1; i < argc; i++)
        failed |= rows_apart(atoi(argv[i]));
    for (int i = 0; argc == 1 && i < 3; i++)
        failed |= rows_apart(usual[i]);
    return failed;
}
