// SPDX-License-Identifier: BSD-3-Clause
// rail_doubt CASE...: a rail is lost at each of many moments, among operations that may not happen
// twice, on the software HCA. Each job has two PEs with two rails or three; the link of PE 0's
// first goes down with a certain request, which is executed without an answer, or is lost. Cases:
//   mix      flags that the target resets, puts with signals of all sizes, fenced puts, adds
//   both     the same in both directions at once, by two channels each
//   second   three rails: the second is lost while the first one's requests are repeated
//   counted  adds, where only rail 0's NIC may do them: as many were done as were complete
//   fetches  fetching adds: one whose answer is lost fails alone
//   untold   the NIC does not tell how far it got, or is not asked: the flow fails, with the reason
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/error.h"
#include "job.h"
#include "transports/verbs/setup/verbs_setup.h"

enum {
    OPS = 36, // of one channel
    CHANNELS = 2,
    KINDS = 6,
    FLAGS = 0, // [CHANNELS][OPS] words
    SIGNALS = 4096,
    COUNTS = 4160,
    DATA = 1 << 16, // [CHANNELS][OPS][PLACE]
    PLACE = 32768,
    SOURCES = 4 << 20, // the same
    SOME = 1000,
    MUCH = 20000,
    BATCH = 9,
};

static struct plan {
    int channels, senders, rails;
} plan;

struct traffic {
    struct job *job;
    int posted[CHANNELS];
    int seen[CHANNELS][OPS]; // flags
    uint64_t signal[CHANNELS];
    uint64_t adds;
};

static uint64_t place_of(int channel, int i)
{
    return DATA + ((uint64_t)channel * OPS + (uint64_t)i) * PLACE;
}

static uint64_t size_of(int i)
{
    return i % KINDS == 1 ? 32 : i % KINDS == 2 ? SOME : MUCH;
}

static char byte_of(int channel, int i, uint64_t at)
{
    return (char)(i * 7 + channel * 3 + (int)(at % 61) + 1);
}

static bool has_data(int i)
{
    return i % KINDS >= 1 && i % KINDS <= 3;
}

static struct gpsh_channel *channel_of(struct job *job, int channel)
{
    static struct gpsh_channel *second;
    if (channel && !second)
        gpsh_verbs_ops.channel_open(job->transport, 1, &second);
    return channel ? second : job->channel;
}

static void progress(struct job *job)
{
    for (int c = 0; c < plan.channels; c++)
        gpsh_verbs_ops.progress(channel_of(job, c));
}

static bool is_right(const char *data, int channel, int i)
{
    for (uint64_t at = 0; at < size_of(i); at++)
        if (data[at] != byte_of(channel, i, at))
            return false;
    return true;
}

// What has come is looked at as a program would: flags are reset, a signal tells of everything that
// was fenced or came with it.
static int watch_channel(struct traffic *traffic, int c)
{
    struct job *job = traffic->job;
    for (int i = 0; i < OPS; i++) {
        volatile uint64_t *flag = (uint64_t *)(void *)job->heap + c * OPS + i;
        uint64_t value = *flag;
        if (!value)
            continue;
        EXPECT(value == (uint64_t)i + 1, "flag %d is %llu", i, (unsigned long long)value);
        *flag = 0;
        traffic->seen[c][i]++;
    }
    uint64_t signal = ((volatile uint64_t *)(void *)(job->heap + SIGNALS))[c];
    EXPECT(signal >= traffic->signal[c], "signal %llu after %llu", (unsigned long long)signal,
           (unsigned long long)traffic->signal[c]);
    for (uint64_t i = traffic->signal[c]; i < signal; i++)
        EXPECT(!has_data((int)i) || is_right(job->heap + place_of(c, (int)i), c, (int)i),
               "data %d came after its signal", (int)i);
    traffic->signal[c] = signal;
    return 0;
}

static int watch(struct traffic *traffic)
{
    int failed = 0;
    for (int c = 0; c < plan.channels && !failed; c++)
        failed = watch_channel(traffic, c);
    return failed;
}

static struct gpsh_op make(struct job *job, int c, int i, char *local)
{
    struct gpsh_op op = {.kind =
                             i % KINDS == 1 || i % KINDS == 3 ? GPSH_OP_PUT_SIGNAL : GPSH_OP_PUT,
                         .pe = 1 - job->pe,
                         .local = local,
                         .remote = place_of(c, i),
                         .bytes = size_of(i),
                         .signal = SIGNALS + (uint64_t)c * 8,
                         .operand = (uint64_t)i + 1,
                         .flags = GPSH_OP_CAPTURE};
    if (i % KINDS == 0 || i % KINDS == 5) {
        op.remote = FLAGS + ((uint64_t)c * OPS + (uint64_t)i) * 8;
        op.bytes = 8;
    }
    if (i % KINDS == 4) {
        op.kind = GPSH_OP_AMO;
        op.amo = GPSH_AMO_ADD;
        op.width = 8;
        op.remote = COUNTS + (uint64_t)c * 8;
        op.operand = 1;
        op.flags = 0;
    }
    return op;
}

// The source of a small operation is overwritten as soon as it has been posted.
static int post_one(struct traffic *traffic, int c, int i, bool more)
{
    struct job *job = traffic->job;
    char small[SOME] = {0};
    char *large = job->heap + SOURCES + ((uint64_t)c * OPS + (uint64_t)i) * PLACE;
    char *local = size_of(i) > SOME ? large : small;
    struct gpsh_op op = make(job, c, i, local);
    uint64_t flag = (uint64_t)i + 1;
    for (uint64_t at = 0; at < size_of(i); at++)
        local[at] = byte_of(c, i, at);
    if (op.bytes == 8)
        op.local = memcpy(small, &flag, sizeof flag);
    op.flags |= more ? GPSH_OP_MORE : 0;
    if (i % KINDS == 3 || i % KINDS == 5)
        gpsh_verbs_ops.fence(channel_of(job, c), op.pe);
    int status = GPSH_POST_AGAIN;
    double start = job_seconds();
    while (status == GPSH_POST_AGAIN && job_seconds() - start < 60) {
        status = gpsh_verbs_ops.post(channel_of(job, c), &op);
        if (status == GPSH_POST_AGAIN)
            progress(job);
    }
    EXPECT(status >= 0 && status != GPSH_POST_AGAIN, "operation %d: %d %s", i, status,
           gpsh_last_error());
    EXPECT(local != small || op.kind == GPSH_OP_AMO || status != GPSH_POST_IN_FLIGHT,
           "operation %d was not captured", i);
    memset(small, 0x55, sizeof small);
    return 0;
}

static bool is_sending(const struct job *job)
{
    return job->pe < plan.senders;
}

static int post_batch(struct traffic *traffic, int c, int first)
{
    int failed = 0;
    for (int i = first; i < first + BATCH && !failed; i++)
        failed = post_one(traffic, c, i, i + 1 < first + BATCH);
    return failed;
}

static int settle(struct traffic *traffic)
{
    struct job *job = traffic->job;
    double start = job_seconds();
    for (int c = 0; c < plan.channels; c++) {
        const struct gpsh_flow *flow = &channel_of(job, c)->flows[1 - job->pe];
        while (flow->completed < flow->posted) {
            progress(job);
            if (watch(traffic))
                return 1;
            EXPECT(job_seconds() - start < 60, "%llu of %llu operations are complete",
                   (unsigned long long)flow->completed, (unsigned long long)flow->posted);
        }
        EXPECT(!flow->error, "channel %d: %s", c, job->why);
    }
    return 0;
}

static int lanes_left(struct job *job, int c)
{
    int lanes = 0;
    for (int i = 0; i < plan.rails; i++)
        lanes += !verbs_flow_at((struct verbs_channel *)channel_of(job, c), 1 - job->pe)
                      ->lanes[i]
                      .failed;
    return lanes;
}

static int check_all(struct traffic *traffic)
{
    struct job *job = traffic->job;
    if (watch(traffic))
        return 1;
    for (int c = 0; c < plan.channels; c++)
        for (int i = 0; i < OPS; i++) {
            bool flag = i % KINDS == 0 || i % KINDS == 5;
            EXPECT(traffic->seen[c][i] == flag, "channel %d: flag %d came %d times", c, i,
                   traffic->seen[c][i]);
            EXPECT(!has_data(i) || is_right(job->heap + place_of(c, i), c, i), "data %d", i);
        }
    const uint64_t *counts = (const uint64_t *)(const void *)(job->heap + COUNTS);
    for (int c = 0; c < plan.channels; c++)
        EXPECT(counts[c] == OPS / KINDS, "channel %d: %llu adds of %d", c,
               (unsigned long long)counts[c], OPS / KINDS);
    return 0;
}

// Nobody leaves before all are done: what one has lost, the other has to answer for.
static int meet(struct traffic *traffic, int n)
{
    struct job *job = traffic->job;
    int failed = 0;
    atomic_fetch_add(&job->shared->words[0], 1);
    while (atomic_load(&job->shared->words[0]) < (uint64_t)n * (uint64_t)job->n_pes) {
        progress(job);
        failed |= watch(traffic);
        usleep(50);
    }
    return failed;
}

static int body_mix(struct job *job)
{
    struct traffic traffic = {.job = job};
    int failed = 0;
    for (int first = 0; first < OPS && is_sending(job) && !failed; first += BATCH) {
        for (int c = 0; c < plan.channels && !failed; c++)
            failed = post_batch(&traffic, c, first);
        failed = failed || (first % (2 * BATCH) && settle(&traffic));
    }
    failed = (!failed && settle(&traffic)) || failed;
    failed = meet(&traffic, 1) || failed;
    bool receives = job->pe == 1 || plan.senders == 2;
    failed = failed || (receives && check_all(&traffic));
    failed = meet(&traffic, 2) || failed;
    EXPECT(failed || job->failures == 0, "%d failures: %s", job->failures, job->why);
    int lanes = 0;
    for (int c = 0; c < plan.channels; c++)
        lanes += lanes_left(job, c);
    EXPECT(failed || job->pe != 0 || lanes < plan.channels * plan.rails, "no rail was lost");
    return failed;
}

struct counted {
    struct gpsh_completion completion;
    int done, status;
    uint64_t before;
};

static void on_done(struct gpsh_completion *self, int status)
{
    struct counted *counted = (struct counted *)self;
    counted->done++;
    counted->status = status;
}

enum { ADDS = 40, WORD = 64 };

// Adds, of which some fail. Leaves in words 1 and 2 how many were complete without failing, and how
// many failed alone.
static int post_adds(struct job *job, struct counted *adds, bool fetch)
{
    for (int i = 0; i < ADDS; i++) {
        adds[i] = (struct counted){.completion.done = on_done, .before = UINT64_MAX};
        struct gpsh_op op = {.kind = GPSH_OP_AMO,
                             .amo = GPSH_AMO_ADD,
                             .width = 8,
                             .pe = 1,
                             .remote = WORD,
                             .operand = 1,
                             .flags = i % 8 == 7 ? 0 : GPSH_OP_MORE,
                             .result = fetch ? &adds[i].before : NULL,
                             .completion = &adds[i].completion};
        if (job_post(job, &op) < 0)
            break;
        if (i % 16 == 15)
            job_drain(job, 1);
    }
    job_drain(job, 1);
    for (int i = 0; i < ADDS; i++) {
        EXPECT(adds[i].done < 2, "add %d was completed %d times", i, adds[i].done);
        job->shared->words[1] += adds[i].done && !adds[i].status;
        job->shared->words[2] += adds[i].done && adds[i].status;
    }
    return 0;
}

static int count_there(struct job *job, uint64_t expected)
{
    uint64_t added = *(volatile uint64_t *)(void *)(job->heap + WORD);
    EXPECT(added == expected, "%llu adds were done, %llu complete", (unsigned long long)added,
           (unsigned long long)expected);
    return 0;
}

static int wait_for_word(struct job *job)
{
    while (!atomic_load(&job->shared->words[0]))
        usleep(200);
    return 0;
}

static int body_counted(struct job *job)
{
    static struct counted adds[ADDS];
    if (job->pe == 1) {
        wait_for_word(job);
        return count_there(job, job->shared->words[1]);
    }
    int failed = post_adds(job, adds, false);
    atomic_store(&job->shared->words[0], 1);
    EXPECT(failed || job->failures == 1, "%d failures: %s", job->failures, job->why);
    EXPECT(strstr(job->why, "atomics need rail 0"), "the reason is: %s", job->why);
    return failed;
}

static int body_fetches(struct job *job)
{
    static struct counted adds[ADDS];
    if (job->pe == 1) {
        wait_for_word(job);
        return count_there(job, ADDS);
    }
    int failed = post_adds(job, adds, true);
    atomic_store(&job->shared->words[0], 1);
    EXPECT(job->failures == 0, "%d failures: %s", job->failures, job->why);
    for (int i = 0; i < ADDS; i++) {
        EXPECT(adds[i].done == 1, "add %d is not complete", i);
        EXPECT(adds[i].status || adds[i].before == (uint64_t)i, "add %d found %llu", i,
               (unsigned long long)adds[i].before);
        EXPECT(!adds[i].status || adds[i].before == UINT64_MAX, "add %d failed with a value", i);
    }
    return failed;
}

static const char *reason;

static int body_untold(struct job *job)
{
    static struct counted adds[ADDS];
    if (job->pe == 1)
        return wait_for_word(job);
    int failed = post_adds(job, adds, false);
    atomic_store(&job->shared->words[0], 1);
    EXPECT(job->failures == 1 && strstr(job->why, reason), "%d failures: %s", job->failures,
           job->why);
    return failed;
}

// ---------------------------------------------------------------------------------------- the jobs

static void set_number(const char *name, long value)
{
    char text[24];
    snprintf(text, sizeof text, "%ld", value);
    setenv(name, text, 1);
}

static int run(const struct plan *job_plan, int after, int executed, int (*body)(struct job *),
               const char *setting)
{
    char names[2][64], rails[40];
    plan = *job_plan;
    snprintf(rails, sizeof rails, "GPUSHMEM_VERBS_RAILS=%d", plan.rails);
    for (int pe = 0, used = 0; pe < 2; pe++, used = 0)
        for (int i = 0; i < plan.rails; i++)
            used += snprintf(names[pe] + used, sizeof names[pe] - (size_t)used, "%ssofthca%d",
                             i ? "," : "", 2 * i + pe);
    const char *const devices[] = {names[0], names[1]};
    const char *const settings[] = {"GPUSHMEM_VERBS_TIMEOUT=7", "GPUSHMEM_TEST_VERBS_RETRY_COUNT=4",
                                    setting ? setting : "GPUSHMEM_VERBS_FAILOVER_MS=100000", rails,
                                    NULL};
    set_number("GPUSHMEM_SOFTHCA_DOWN_AFTER", after);
    set_number("GPUSHMEM_SOFTHCA_DOWN_LOST", executed);
    if (!job_run(2, devices, settings, -1, body))
        return 0;
    fprintf(stderr, "after request %d; %d requests were executed unseen\n", after, executed);
    return 1;
}

// From request `first` on; none to eight are executed.
static int sweep(const struct plan *job_plan, int first, int last, int step,
                 int (*body)(struct job *))
{
    int failed = 0;
    for (int after = first; after <= last && !failed; after += step)
        failed = run(job_plan, after, after / step * 5 % 9, body, NULL);
    return failed;
}

static const struct plan one_way = {1, 1, 2}, both_ways = {2, 2, 2}, three_rails = {1, 1, 3};

static int run_second(int step)
{
    int failed = 0;
    setenv("GPUSHMEM_SOFTHCA_THEN_DEVICE", "2", 1);
    for (int then = 0; then < 40 && !failed; then += step) {
        set_number("GPUSHMEM_SOFTHCA_THEN_AFTER", then);
        failed = run(&three_rails, 5 + then % 7, then % 4, body_mix, NULL);
        if (failed)
            fprintf(stderr, "and the second rail after request %d\n", then);
    }
    unsetenv("GPUSHMEM_SOFTHCA_THEN_AFTER");
    return failed;
}

static int run_untold(void)
{
    int failed = 0;
    setenv("GPUSHMEM_SOFTHCA_PSN", "0", 1);
    reason = "does not tell";
    failed = run(&one_way, 3, 1, body_untold, NULL);
    unsetenv("GPUSHMEM_SOFTHCA_PSN");
    reason = "it does not answer";
    return failed || run(&one_way, 3, 1, body_untold, "GPUSHMEM_VERBS_FAILOVER_MS=0");
}

static int run_case(const char *name, int step)
{
    setenv("GPUSHMEM_SOFTHCA_ATOMIC_CAP", strcmp(name, "counted") ? "glob" : "hca", 1);
    if (!strcmp(name, "mix"))
        return sweep(&one_way, 0, 44, step, body_mix);
    if (!strcmp(name, "both"))
        return sweep(&both_ways, 0, 44, step, body_mix);
    if (!strcmp(name, "second"))
        return run_second(step);
    if (!strcmp(name, "counted"))
        return sweep(&one_way, 0, ADDS - 2, step, body_counted);
    if (!strcmp(name, "fetches"))
        return sweep(&one_way, 0, ADDS - 2, step, body_fetches);
    if (!strcmp(name, "untold"))
        return run_untold();
    return fprintf(stderr, "usage: rail_doubt STEP mix|both|second|counted|fetches|untold...\n");
}

int main(int argc, char **argv)
{
    int step = argc > 2 ? atoi(argv[1]) : 0, failed = step < 1;
    for (int i = 2; i < argc && !failed; i++) {
        failed = run_case(argv[i], step);
        printf("rail_doubt %s: %s\n", argv[i], failed ? "FAILED" : "ok");
    }
    return failed != 0;
}
