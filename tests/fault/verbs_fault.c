// SPDX-License-Identifier: BSD-3-Clause
// verbs_fault CASE [DEVICE]: what the verbs transport does when things break. Runs in the Soft-RoCE
// guest as root, where PE 0 has rxe0 (on v0) and PE 1 rxe1 (on v1); the cases that need no cable
// also with DEVICE "softhca". Cases: kill, kill_staged, stop, link, heal, loss; with two rails
// each: acks, requests, and on the software HCA, whose settings take a link down: rail, bounced,
// told, doubt, adding; on the software HCA that flushes late: flush.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/error.h"
#include "job.h"
#include "transports/verbs/setup/verbs_setup.h"

enum { PIECE = 65536, DEPTH = 8, LOSSY_PUTS = 200, LOSSY_ADDS = 300, LARGE = 500000, BULK = 16 };

static struct gpsh_op put(struct job *job, int pe, uint64_t remote, uint64_t bytes)
{
    return (struct gpsh_op){
        .kind = GPSH_OP_PUT, .pe = pe, .local = job->heap, .remote = remote, .bytes = bytes};
}

// Streams puts to `pe` until its flow fails or `n` are posted; returns the error.
static int stream(struct job *job, int pe, int n)
{
    for (int i = 0; i < n; i++) {
        struct gpsh_op op = put(job, pe, (uint64_t)(1 + i % DEPTH) * PIECE, PIECE);
        int status = job_post(job, &op);
        if (status < 0)
            return status;
        if (i >= DEPTH)
            gpsh_verbs_ops.progress(job->channel);
    }
    return job_drain(job, pe);
}

static int check_report(struct job *job, int status, int pe)
{
    EXPECT(status == GPUSHMEM_ERR_PE_FAILED, "status %d (%s)", status, gpsh_last_error());
    EXPECT(job->failures == 1 && job->failed_pe == pe, "%d reports, the last about PE %d",
           job->failures, job->failed_pe);
    EXPECT(strstr(job->why, "does not answer"), "the reason given is: %s", job->why);
    // complete when the NIC has given back what was under way
    EXPECT(job_drain(job, pe) == GPUSHMEM_ERR_PE_FAILED, "operations are left over");
    return 0;
}

// PE 1 dies while PE 0 and PE 2 stream to it. Both report it; what they send each other is not
// disturbed.
static int body_kill(struct job *job)
{
    if (job->pe == 1)
        for (;;)
            pause();
    for (int i = 0; i < 16; i++)
        job->heap[i] = (char)(0x10 * job->pe + i);
    int other = 2 - job->pe;
    EXPECT(stream(job, 1, 3 * DEPTH) == 0, "before the kill: %s", gpsh_last_error());
    atomic_fetch_add(&job->shared->words[0], 1);
    while (atomic_load(&job->shared->words[0]) < 2)
        gpsh_verbs_ops.progress(job->channel);
    double start = job_seconds();
    if (job->pe == 0)
        kill(job->shared->pids[1], SIGKILL);
    int status = stream(job, 1, 1000000);
    printf("PE %d: PE 1 reported after %.2f s: %s\n", job->pe, job_seconds() - start, job->why);
    if (check_report(job, status, 1))
        return 1;
    EXPECT(stream(job, other, 20) == 0, "the survivors' own traffic: %s", gpsh_last_error());
    struct gpsh_op get = {
        .kind = GPSH_OP_GET, .pe = other, .local = job->heap + 4096, .remote = PIECE, .bytes = 16};
    EXPECT(job_post(job, &get) >= 0 && job_drain(job, other) == 0, "%s", gpsh_last_error());
    for (int i = 0; i < 16; i++)
        EXPECT(job->heap[4096 + i] == (char)(0x10 * job->pe + i), "byte %d came back wrong", i);
    return 0;
}

// A stopped process still serves: the NIC does the work. Nobody may be reported.
static int body_stop(struct job *job)
{
    if (job->pe == 0) {
        int status = stream(job, 1, 2); // a stopped process makes no connection
        kill(job->shared->pids[1], SIGSTOP);
        status = status || stream(job, 1, 100);
        struct gpsh_op add = {.kind = GPSH_OP_AMO,
                              .amo = GPSH_AMO_XOR,
                              .width = 4,
                              .pe = 1,
                              .remote = 4,
                              .operand = 1};
        status = status || job_post(job, &add) < 0 || job_drain(job, 1);
        kill(job->shared->pids[1], SIGCONT);
        EXPECT(status == 0 && job->failures == 0, "%s", gpsh_last_error());
        atomic_store(&job->shared->words[0], 1);
    }
    while (!atomic_load(&job->shared->words[0]))
        usleep(1000);
    return 0;
}

static int run_command(const char *command)
{
    int status = system(command);
    return status ? fprintf(stderr, "`%s` failed\n", command) : 0;
}

// The cable is cut for good: PE 0 reports PE 1, and its own traffic to itself, which needs no
// cable, goes on.
static int body_link(struct job *job)
{
    if (job->pe == 1) {
        while (!atomic_load(&job->shared->words[0]))
            usleep(1000);
        return 0;
    }
    EXPECT(stream(job, 1, 20) == 0, "before the cut: %s", gpsh_last_error());
    double start = job_seconds();
    int cut = run_command("ip link set v1 down");
    int status = stream(job, 1, 1000000);
    printf("PE 0: PE 1 reported after %.2f s: %s\n", job_seconds() - start, job->why);
    atomic_store(&job->shared->words[0], 1);
    return cut || check_report(job, status, 1);
}

// The cable is out for less than the retries last (GPUSHMEM_VERBS_TIMEOUT=18: 7 times 1 s): nobody
// notices.
static int body_heal(struct job *job)
{
    if (job->pe == 1) {
        while (!atomic_load(&job->shared->words[0]))
            usleep(1000);
        return 0;
    }
    EXPECT(stream(job, 1, 20) == 0, "before the cut: %s", gpsh_last_error());
    int status = run_command("tc qdisc add dev v0 root netem loss 100%");
    for (int i = 0; i < DEPTH; i++) {
        struct gpsh_op op = put(job, 1, PIECE, PIECE);
        EXPECT(job_post(job, &op) >= 0, "%s", gpsh_last_error());
    }
    usleep(300000);
    status |= run_command("tc qdisc del dev v0 root");
    status |= job_drain(job, 1);
    EXPECT(status == 0 && job->failures == 0, "%s", gpsh_last_error());
    EXPECT(stream(job, 1, 20) == 0, "after the cut: %s", gpsh_last_error());
    atomic_store(&job->shared->words[0], 1);
    return 0;
}

// Flags under way when rail 0 stops carrying one of its two directions. PE 1 resets each as it
// comes, and none may come twice, or not at all.
enum { FLAGS = 24, ROUNDS = 3 };

static int watch_flags(struct job *job)
{
    int seen[FLAGS] = {0};
    bool over = false;
    for (; !over; usleep(100)) {
        over = atomic_load(&job->shared->words[0]); // all are complete: one more look
        for (int i = 0; i < FLAGS; i++) {
            volatile uint64_t *flag = (uint64_t *)(void *)job->heap + i;
            seen[i] += *flag != 0;
            *flag = 0;
        }
    }
    for (int i = 0; i < FLAGS; i++)
        EXPECT(seen[i] == 1, "flag %d came %d times", i, seen[i]);
    return 0;
}

static int raise_flags(struct job *job, const char *cut)
{
    int failed = 0;
    for (int i = 0; i < FLAGS && !failed; i++) {
        uint64_t value = (uint64_t)i + 1;
        struct gpsh_op op = put(job, 1, (uint64_t)i * 8, 8);
        op.local = (char *)&value;
        op.flags = GPSH_OP_CAPTURE | (i % 8 == 7 ? 0 : GPSH_OP_MORE);
        if (i == FLAGS / ROUNDS)
            failed = job_drain(job, 1) || run_command(cut);
        EXPECT(!failed && job_post(job, &op) >= 0, "%s", gpsh_last_error());
    }
    return job_drain(job, 1);
}

static int lose_one_way(struct job *job, const char *cut)
{
    if (job->pe == 1)
        return watch_flags(job);
    int failed = raise_flags(job, cut);
    atomic_store(&job->shared->words[0], 1);
    const struct verbs_flow *flow = verbs_flow_at((struct verbs_channel *)job->channel, 1);
    EXPECT(!failed && job->failures == 0, "%s", job->why);
    EXPECT(flow->lanes[0].failed && !flow->lanes[1].failed, "rail 0 was not lost");
    return 0;
}

static int body_acks(struct job *job)
{
    return lose_one_way(job, "tc qdisc add dev v1 root netem loss 100%");
}

static int body_requests(struct job *job)
{
    return lose_one_way(job, "tc qdisc add dev v0 root netem loss 100%");
}

static int drained_post(struct job *job, const struct gpsh_op *op)
{
    EXPECT(job_post(job, op) >= 0 && job_drain(job, op->pe) == 0, "%s", gpsh_last_error());
    return 0;
}

static void pattern(char *bytes, uint64_t n, int seed)
{
    for (uint64_t i = 0; i < n; i += 64)
        bytes[i] = (char)(seed * 7 + (int)(i / 64));
}

// Large puts, four at a time, each with its own contents, and a get of the last. The link of one
// rail goes down among them (GPUSHMEM_SOFTHCA_DOWN_*). Sources are in the heap, or in memory that
// is not registered.
static int bulk_from(struct job *job, char *sources)
{
    for (int i = 0; i < BULK; i++) {
        struct gpsh_op op = put(job, 1, (uint64_t)(4 + i % 4) * LARGE, LARGE);
        op.local = sources + (uint64_t)(i % 4) * LARGE;
        op.flags = GPSH_OP_KEPT;
        pattern(op.local, LARGE, i);
        EXPECT(job_post(job, &op) >= 0, "put %d: %s", i, gpsh_last_error());
        gpsh_verbs_ops.fence(job->channel, 1);
        if (i % 4 != 3)
            continue;
        struct gpsh_op get = op;
        get.kind = GPSH_OP_GET;
        get.local = job->heap + 8ull * LARGE;
        EXPECT(job_drain(job, 1) == 0, "after put %d: %s", i, gpsh_last_error());
        if (drained_post(job, &get))
            return 1;
        for (uint64_t k = 0; k < LARGE; k += 64)
            EXPECT(get.local[k] == op.local[k], "put %d, byte %d", i, (int)k);
    }
    return 0;
}

static int bulk(struct job *job)
{
    return bulk_from(job, job->heap);
}

static int wait_for_word(struct job *job)
{
    while (!atomic_load(&job->shared->words[0]))
        usleep(1000);
    return 0;
}

static int lanes_left(const struct job *job, int pe)
{
    int lanes = 0;
    for (int i = 0; i < 2; i++)
        lanes += !verbs_flow_at((struct verbs_channel *)job->channel, pe)->lanes[i].failed;
    return lanes;
}

// A rail is lost for good: the others go on, with small operations too.
static int rail_from(struct job *job, char *sources)
{
    if (job->pe == 1)
        return wait_for_word(job);
    struct gpsh_op small = put(job, 1, 0, 8);
    int failed = bulk_from(job, sources);
    // an event of a NIC is seen now and then only
    for (int i = 0; i < 100000 && lanes_left(job, 1) == 2; i++)
        gpsh_verbs_ops.progress(job->channel);
    failed = failed || drained_post(job, &small) || bulk_from(job, sources);
    atomic_store(&job->shared->words[0], 1);
    EXPECT(failed || (lanes_left(job, 1) == 1 && job->failures == 0),
           "%d lanes are left, %d failures: %s", lanes_left(job, 1), job->failures, job->why);
    return failed;
}

static int body_rail(struct job *job)
{
    return rail_from(job, job->heap);
}

static int body_bounced(struct job *job)
{
    static char outside[4 * LARGE];
    return rail_from(job, outside);
}

// PE 0 has left rail 0. PE 1, which was idle, does not wait there with its next word.
static int body_told(struct job *job)
{
    if (job->pe == 0) {
        int failed = bulk(job);
        atomic_store(&job->shared->words[1], 1);
        return wait_for_word(job) || failed;
    }
    while (!atomic_load(&job->shared->words[1]))
        usleep(1000);
    struct gpsh_op word = put(job, 0, 0, 8);
    int failed = drained_post(job, &word), lanes = lanes_left(job, 0);
    atomic_store(&job->shared->words[0], 1);
    EXPECT(failed || (lanes == 1 && job->failures == 0), "%d lanes are left", lanes);
    return failed;
}

// Rail 0 is lost with an add in doubt, which may have happened: that is told, and not done twice.
static int body_doubt(struct job *job)
{
    if (job->pe == 1)
        return wait_for_word(job);
    struct gpsh_op add = {
        .kind = GPSH_OP_AMO, .amo = GPSH_AMO_ADD, .width = 8, .pe = 1, .remote = 8, .operand = 1};
    int status = 0, n = 0;
    for (; n < 100 && !status; n++)
        status = job_post(job, &add) < 0 ? -1 : job_drain(job, 1);
    atomic_store(&job->shared->words[0], 1);
    EXPECT(n < 100 && job->failures == 1, "%d adds, %d failures", n, job->failures);
    return 0;
}

// Puts whose signals add, two under way at a time, while a rail is lost. No signal comes twice: of
// those that were under way when the flow failed each came once or not at all, of all others once.
static int body_adding(struct job *job)
{
    enum { WORD = 4 << 20, POSTED = 2, COMPLETE = 3 };
    _Atomic uint64_t *words = job->shared->words;
    if (job->pe == 1) {
        wait_for_word(job);
        uint64_t added = *(volatile uint64_t *)(job->heap + WORD), posted = words[POSTED];
        EXPECT(added <= posted && added >= words[COMPLETE], "%llu signals of %llu, %llu complete",
               (unsigned long long)added, (unsigned long long)posted,
               (unsigned long long)words[COMPLETE]);
        return 0;
    }
    int status = 0;
    while (words[POSTED] < 2 * BULK && !status) {
        for (int i = 0; i < 2 && !status; i++) {
            struct gpsh_op op = put(job, 1, (uint64_t)i * LARGE, LARGE);
            op.kind = GPSH_OP_PUT_SIGNAL;
            op.flags = GPSH_OP_KEPT | GPSH_OP_SIGNAL_ADD;
            op.signal = WORD;
            op.operand = 1;
            status = job_post(job, &op) < 0 ? -1 : 0;
            words[POSTED]++;
        }
        status = job_drain(job, 1) ? -1 : status;
        words[COMPLETE] = status ? words[COMPLETE] : words[POSTED];
    }
    printf("%d of %d puts, %d lanes left: %s\n", (int)words[COMPLETE], (int)words[POSTED],
           lanes_left(job, 1), job->why);
    words[0] = 1;
    EXPECT(lanes_left(job, 1) < 2, "no rail was lost");
    EXPECT(!status || job->failures == 1, "%d failures", job->failures);
    return 0;
}

static bool all_are(const char *bytes, int value)
{
    for (int i = 0; i < PIECE; i++)
        if (bytes[i] != (char)value)
            return false;
    return true;
}

// The NIC is in the middle of a put and a get when PE 1 is given up. Once they are complete the
// memory is the program's again: what it writes there is neither overwritten nor sent.
static int body_flush(struct job *job)
{
    enum { OLD = 1, NEW = 2, THERE = 3 };
    memset(job->heap, job->pe ? THERE : OLD, 2 * PIECE);
    job_barrier(job, 3);
    if (job->pe == 1) {
        wait_for_word(job);
        EXPECT(all_are(job->heap, THERE) || all_are(job->heap, OLD), "something else was sent");
        return 0;
    }
    _Atomic uint64_t *hold = dlsym(RTLD_DEFAULT, "gpushmem_softhca_hold_bytes");
    EXPECT(hold, "the software HCA is not loaded");
    atomic_store(hold, PIECE);
    struct gpsh_op out = put(job, 1, 0, PIECE), in = put(job, 1, PIECE, PIECE);
    in.kind = GPSH_OP_GET;
    in.local = job->heap + PIECE;
    EXPECT(job_post(job, &out) >= 0 && job_post(job, &in) >= 0, "%s", gpsh_last_error());
    gpsh_verbs_ops.peer_lost(job->transport, 1);
    EXPECT(job_drain(job, 1) == GPUSHMEM_ERR_PE_FAILED, "%s", gpsh_last_error());
    memset(job->heap, NEW, 2 * PIECE);
    usleep(500000); // the NIC has flushed by then
    bool intact = all_are(job->heap, NEW);
    atomic_store(&job->shared->words[0], 1);
    EXPECT(intact, "the NIC wrote to memory after the get was complete");
    return 0;
}

static int lossy_puts(struct job *job, int pe)
{
    for (int i = 0; i < LOSSY_PUTS; i++) {
        char *source = job->heap + (i % DEPTH) * PIECE;
        struct gpsh_op op = {.kind = GPSH_OP_PUT,
                             .pe = pe,
                             .local = source,
                             .remote = (uint64_t)(i % 60 + 8) * PIECE,
                             .bytes = PIECE};
        if (i % DEPTH == 0)
            EXPECT(job_drain(job, pe) == 0, "%s", gpsh_last_error());
        for (int k = 0; k < PIECE; k += 64)
            source[k] = (char)(i * 7 + k / 64 + job->pe);
        EXPECT(job_post(job, &op) >= 0, "%s", gpsh_last_error());
    }
    EXPECT(job_drain(job, pe) == 0, "%s", gpsh_last_error());
    return 0;
}

static int lossy_adds(struct job *job, int pe)
{
    for (int i = 0; i < LOSSY_ADDS; i++) {
        struct gpsh_op native = {.kind = GPSH_OP_AMO,
                                 .amo = GPSH_AMO_ADD,
                                 .width = 8,
                                 .pe = pe,
                                 .remote = 69 * PIECE,
                                 .operand = 1};
        struct gpsh_op loop = native;
        loop.width = 4;
        loop.remote += 8;
        EXPECT(job_post(job, &native) >= 0 && job_post(job, &loop) >= 0, "%s", gpsh_last_error());
    }
    EXPECT(job_drain(job, pe) == 0, "%s", gpsh_last_error());
    return 0;
}

// The network loses packets: everything arrives nevertheless, and atomics happen exactly once.
static int body_loss(struct job *job)
{
    int other = 1 - job->pe;
    if (lossy_puts(job, other) || lossy_adds(job, other))
        return 1;
    job_barrier(job, 3);
    for (int i = LOSSY_PUTS - 60; i < LOSSY_PUTS; i++) // the last put into each place
        for (int k = 0; k < PIECE; k += 64)
            EXPECT(job->heap[(i % 60 + 8) * PIECE + k] == (char)(i * 7 + k / 64 + other),
                   "put %d, byte %d", i, k);
    uint64_t sums[2];
    memcpy(sums, job->heap + 69 * PIECE, sizeof sums);
    EXPECT(sums[0] == LOSSY_ADDS && sums[1] == LOSSY_ADDS, "%llu and %llu adds of %d",
           (unsigned long long)sums[0], (unsigned long long)sums[1], LOSSY_ADDS);
    return 0;
}

static const char two_rails[] = "GPUSHMEM_VERBS_RAILS=2";
static const char retries[] = "GPUSHMEM_TEST_VERBS_RETRY_COUNT=6";
// Nobody dies: a guest on a busy machine may be late seven times, too.
static const char without_end[] = "GPUSHMEM_TEST_VERBS_RETRY_COUNT=7";

static const struct fault {
    const char *name;
    int n_pes, victim;
    int (*body)(struct job *);
    int timeout;
    const char *setting;
} faults[] = {
    {"kill", 3, 1, body_kill, 14, NULL},
    {"kill_staged", 3, 1, body_kill, 14, "GPUSHMEM_GPUDIRECT=never"}, // its agent dies with it
    {"stop", 2, -1, body_stop, 14, NULL},
    {"link", 2, -1, body_link, 14, NULL},
    {"heal", 2, -1, body_heal, 18, NULL},
    {"acks", 2, -1, body_acks, 14, two_rails},
    {"requests", 2, -1, body_requests, 14, two_rails},
    {"rail", 2, -1, body_rail, 8, two_rails},
    {"bounced", 2, -1, body_bounced, 8, two_rails},
    {"told", 2, -1, body_told, 8, two_rails},
    {"doubt", 2, -1, body_doubt, 8, two_rails},
    {"adding", 2, -1, body_adding, 8, two_rails},
    {"flush", 2, -1, body_flush, 14, NULL},
    {"loss", 2, -1, body_loss, 16, without_end}, // a lost last packet costs one timeout
};

int main(int argc, char **argv)
{
    char names[2][64];
    const char *device = argc == 3 ? argv[2] : "rxe";
    bool rails = false;
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
        rails |= argc > 1 && !strcmp(argv[1], faults[i].name) && faults[i].setting == two_rails;
    for (int i = 0; i < 2; i++) {
        int used = snprintf(names[i], sizeof names[i], "%s%d", device, i);
        if (rails)
            snprintf(names[i] + used, sizeof names[i] - (size_t)used, ",%s%d", device, i + 2);
    }
    const char *const devices[] = {names[0], names[1], names[0]};
    for (size_t i = 0; (argc == 2 || argc == 3) && i < sizeof faults / sizeof *faults; i++) {
        if (strcmp(argv[1], faults[i].name) != 0)
            continue;
        char timeout[40];
        snprintf(timeout, sizeof timeout, "GPUSHMEM_VERBS_TIMEOUT=%d", faults[i].timeout);
        const char *first = faults[i].setting ? faults[i].setting : retries;
        const char *const settings[] = {timeout, first, retries, NULL}; // of a name, the first
        int failed = job_run(faults[i].n_pes, devices, settings, faults[i].victim, faults[i].body);
        printf("fault %s: %s\n", argv[1], failed ? "FAILED" : "ok");
        return failed;
    }
    fprintf(stderr,
            "usage: verbs_fault kill|kill_staged|stop|link|heal|acks|requests|rail|bounced|told|"
            "doubt|adding|flush|loss [DEVICE]\n");
    return 2;
}
