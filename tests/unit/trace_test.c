// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE // memmem
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/error.h"
#include "core/scratch.h"
#include "observe/trace.h"
#include "observe/trace_clock.h"
#include "observe/trace_events.h"
#include "observe/trace_merge.h"

enum { RECORDS = 64, PES = 2, LANES = 3 }; // default context, a proxy, a context

static char folder[64], file[80];
static int disk_error;
static struct gpsh_trace_outcome outcome;
static const struct gpsh_trace_pick newest;

int __wrap_posix_fallocate(int fd, off_t at, off_t bytes);
int __wrap_posix_fallocate(int fd, off_t at, off_t bytes)
{
    return disk_error ? disk_error : ftruncate(fd, at + bytes) ? errno : 0;
}

static uid_t other_user; // as whom this process appears, 0: as itself

uid_t __real_geteuid(void);
uid_t __wrap_geteuid(void);
uid_t __wrap_geteuid(void)
{
    return other_user ? other_user : __real_geteuid();
}

static void begin(void)
{
    cr_assert_eq(gpsh_scratch_dir("trace", 40, folder, sizeof folder), 0, "%s", folder);
    snprintf(file, sizeof file, "%s/t.json", folder);
}

static void end(void)
{
    char command[96];
    gpsh_trace_close();
    snprintf(command, sizeof command, "rm -rf %s", folder);
    cr_assert_eq(system(command), 0);
}
TestSuite(trace, .init = begin, .fini = end);

static const char *job = "job";

static int open_part_of(int pe, uint64_t records)
{
    return gpsh_trace_open(&(struct gpsh_trace_owner){.file = file,
                                                      .job = job,
                                                      .pe = pe,
                                                      .n_pes = PES,
                                                      .n_channels = LANES,
                                                      .n_proxies = 1,
                                                      .lane_records = records});
}

static int open_part(int pe)
{
    return open_part_of(pe, RECORDS);
}

static char *part_path(int pe)
{
    static char path[192];
    char mark[64];
    gpsh_trace_job_mark(job, mark);
    snprintf(path, sizeof path, "%s.%d.%s.part", file, pe, mark);
    return path;
}

static bool is_there(const char *path)
{
    return access(path, F_OK) == 0;
}

static size_t contents_bytes;

static char *contents(void)
{
    static char text[1 << 20];
    FILE *in = fopen(file, "r");
    cr_assert_not_null(in);
    contents_bytes = fread(text, 1, sizeof text - 1, in);
    text[contents_bytes] = '\0';
    fclose(in);
    return text;
}

static void write_part(int pe)
{
    cr_assert_eq(open_part(pe), 0, "%s", gpsh_last_error());
    gpsh_trace_stop();
    gpsh_trace_close();
}

// ---- A transport that completes what it is told to ----

static struct gpsh_flow flows[PES];
static struct gpsh_channel channel;
static int to_complete;
static int answer = GPSH_POST_IN_FLIGHT; // of the next post

static int fake_post(struct gpsh_channel *c, const struct gpsh_op *op)
{
    if (answer < 0 || answer == GPSH_POST_AGAIN)
        return answer;
    flows[op->pe].posted++;
    if (answer == GPSH_POST_DONE)
        flows[op->pe].completed = flows[op->pe].posted;
    else
        c->pending++;
    return answer;
}

static int fake_flush(struct gpsh_channel *c)
{
    return 0;
}

static int fake_progress(struct gpsh_channel *c)
{
    flows[1].completed += (uint64_t)to_complete;
    c->pending -= (uint64_t)to_complete;
    return to_complete;
}

static void fake_close(struct gpsh_channel *c)
{
    c->flows = NULL;
}

static const struct gpsh_transport_ops fake = {.name = "fake",
                                               .post = fake_post,
                                               .flush = fake_flush,
                                               .progress = fake_progress,
                                               .channel_close = fake_close};

static void open_channel(int lane)
{
    memset(flows, 0, sizeof flows);
    channel = (struct gpsh_channel){.ops = &fake, .flows = flows};
    gpsh_trace_channel(&channel, lane, 0);
}

static void post(uint64_t bytes)
{
    const struct gpsh_op op = {.kind = GPSH_OP_PUT, .pe = 1, .bytes = bytes, .flags = GPSH_OP_MORE};
    cr_assert_eq(channel.ops->post(&channel, &op), GPSH_POST_IN_FLIGHT);
}

static void progress(int n)
{
    to_complete = n;
    cr_assert_eq(channel.ops->progress(&channel), n);
}

// ---- Channels ----

Test(trace, gpsh_trace_channel__no_trace__is_the_transports_own)
{
    open_channel(0);
    cr_assert_eq(channel.ops, &fake);
}

Test(trace, gpsh_trace_channel__run_of_posts__is_one_record_and_many_operations)
{
    uint64_t at = 0;
    struct gpsh_channel *channels[] = {&channel};
    struct gpsh_events events;
    cr_assert_eq(open_part(0), 0);
    open_channel(1);
    gpsh_trace_ring(channels, 1, gpsh_clock_ns(), 5, &at);
    for (; at < 6; at++)
        post(8);
    channel.ops->flush(&channel);
    progress(4);
    gpsh_trace_ring(channels, 1, 0, 0, NULL);
    channel.ops->channel_close(&channel);
    cr_assert_null(channel.flows);
    cr_assert_eq(gpsh_trace_lane(1)->written, 3); // posts, doorbell, completions
    struct gpsh_trace_parts parts;
    cr_assert_eq(gpsh_trace_parts_open(file, &newest, &parts), 0);
    cr_assert_eq(parts.n, 1);
    cr_assert(gpsh_trace_events_make(parts.list[0].head, &events));
    int operations = 0, unfinished = 0;
    uint64_t before = 0;
    for (size_t i = 0; i < events.n; i++) {
        const struct gpsh_event *e = &events.list[i];
        if (e->kind != GPSH_EVENT_OPERATION)
            continue;
        cr_assert_eq(e->record->number + e->offset, ++operations);
        cr_assert_geq(e->at_ns, before, "operations of a queue overlap");
        before = e->at_ns + e->took_ns;
        unfinished += e->unfinished;
    }
    cr_assert_eq(operations, 6);
    cr_assert_eq(unfinished, 2);
    free(events.list);
    gpsh_trace_parts_close(&parts, false);
}

// No progress tells of the third one.
Test(trace, gpsh_trace_channel__complete_at_once_within_a_run__is_complete)
{
    uint64_t at = 0;
    struct gpsh_channel *channels[] = {&channel};
    const struct gpsh_op op = {.kind = GPSH_OP_PUT, .pe = 1, .bytes = 8};
    struct gpsh_trace_parts parts;
    struct gpsh_events events;
    cr_assert_eq(open_part(0), 0);
    open_channel(1);
    gpsh_trace_ring(channels, 1, gpsh_clock_ns(), 5, &at);
    for (; at < 3; at++) {
        answer = at < 2 ? GPSH_POST_IN_FLIGHT : GPSH_POST_DONE;
        cr_assert_eq(channel.ops->post(&channel, &op), answer);
    }
    gpsh_trace_ring(channels, 1, gpsh_clock_ns(), 0, NULL);
    channel.ops->channel_close(&channel);
    cr_assert_eq(gpsh_trace_parts_open(file, &newest, &parts), 0);
    cr_assert(gpsh_trace_events_make(parts.list[0].head, &events));
    cr_assert_eq(events.n, 3);
    for (size_t i = 0; i < events.n; i++)
        cr_assert(events.list[i].kind == GPSH_EVENT_OPERATION && !events.list[i].unfinished);
    free(events.list);
    gpsh_trace_parts_close(&parts, false);
}

// What was posted, and must be found in the trace.
struct posted {
    uint64_t number, bytes;
    uint32_t index;
    uint16_t ring;
    int pe, kind;
    bool at_once, complete;
};
enum { POSTS = 2000 };
static struct posted journal[POSTS];
static int n_posted;

static void post_any(uint64_t index, uint16_t ring)
{
    const struct gpsh_op op = {.kind = (uint8_t)(rand() % 8 ? GPSH_OP_PUT : GPSH_OP_GET),
                               .pe = rand() % 8 ? 1 : 0,
                               .bytes = rand() % 8 ? 8 : 4};
    struct gpsh_flow *flow = &flows[op.pe];
    bool idle = flow->posted == flow->completed;
    answer =
        rand() % 8 ? GPSH_POST_IN_FLIGHT : (int[]){GPSH_POST_AGAIN, -1, GPSH_POST_DONE}[rand() % 3];
    if (answer == GPSH_POST_DONE && !idle)
        answer = GPSH_POST_CAPTURED;
    cr_assert_eq(channel.ops->post(&channel, &op), answer);
    if (answer >= 0 && answer != GPSH_POST_AGAIN)
        journal[n_posted++] = (struct posted){.number = flow->posted,
                                              .bytes = op.bytes,
                                              .index = (uint32_t)index,
                                              .ring = ring,
                                              .pe = op.pe,
                                              .kind = op.kind,
                                              .at_once = answer == GPSH_POST_DONE};
}

// Turns of two rings and posts of the host, with commands that post nothing, one operation or
// several, and with room, failures and completions as they come.
static void post_at_random(void)
{
    uint64_t at[2] = {0, 1000};
    struct gpsh_channel *channels[] = {&channel};
    while (n_posted < POSTS - 64) {
        int ring = rand() % 3;
        gpsh_trace_ring(channels, 1, gpsh_clock_ns(), (uint16_t)ring, ring < 2 ? &at[ring] : NULL);
        for (int i = rand() % 20; i; i--) {
            for (int n = rand() % 8 ? 1 : rand() % 3; n; n--)
                post_any(ring < 2 ? at[ring] : 0, ring < 2 ? (uint16_t)ring : GPSH_TRACE_NO_RING);
            if (ring < 2)
                at[ring]++;
        }
        if (rand() % 2)
            channel.ops->flush(&channel);
        if (rand() % 2)
            progress((int)(flows[1].posted - flows[1].completed));
    }
    gpsh_trace_ring(channels, 1, gpsh_clock_ns(), 0, NULL);
    for (int i = 0; i < n_posted; i++)
        journal[i].complete = journal[i].number <= flows[journal[i].pe].completed;
}

static const struct posted *posted_as(int pe, uint32_t number)
{
    for (int i = 0; i < n_posted; i++)
        if (journal[i].pe == pe && journal[i].number == number)
            return &journal[i];
    return NULL;
}

Test(trace, gpsh_trace_channel__posts_at_random__are_all_there_as_they_were)
{
    for (unsigned seed = 1; seed < 40; seed++) {
        struct gpsh_trace_parts parts;
        struct gpsh_events events;
        int found = 0;
        srand(seed);
        n_posted = 0;
        cr_assert_eq(open_part_of(0, 8192), 0);
        open_channel(1);
        post_at_random();
        channel.ops->channel_close(&channel);
        gpsh_trace_stop();
        cr_assert_eq(gpsh_trace_parts_open(file, &newest, &parts), 0);
        cr_assert(gpsh_trace_events_make(parts.list[0].head, &events));
        for (size_t i = 0; i < events.n; i++) {
            const struct gpsh_event *e = &events.list[i];
            const struct gpsh_trace_record *r = e->record;
            if (e->kind != GPSH_EVENT_OPERATION)
                continue;
            const struct posted *p = posted_as(r->pe, r->number + e->offset);
            cr_assert_not_null(p, "seed %u: number %u", seed, r->number + e->offset);
            found++;
            cr_assert(r->bytes == p->bytes && (r->what & 7) == p->kind && r->ring == p->ring,
                      "seed %u: number %u", seed, r->number + e->offset);
            cr_assert(p->ring == GPSH_TRACE_NO_RING || r->index + e->offset == p->index,
                      "seed %u: number %u is of command %u, not %u", seed, r->number + e->offset,
                      p->index, r->index + e->offset);
            cr_assert(!(r->what & GPSH_TRACE_AT_ONCE) || p->at_once, "seed %u: number %u", seed,
                      r->number + e->offset);
            cr_assert_eq(e->unfinished, !p->complete, "seed %u: number %u", seed,
                         r->number + e->offset);
        }
        cr_assert_eq(found, n_posted, "seed %u: %d of %d", seed, found, n_posted);
        free(events.list);
        gpsh_trace_parts_close(&parts, true);
        gpsh_trace_close();
    }
}

Test(trace, gpsh_trace_channel__more_than_fits__keeps_the_latest_and_says_so)
{
    char sentence[256];
    cr_assert_eq(open_part(0), 0);
    open_channel(0);
    for (int i = 0; i < 10 * RECORDS; i++) {
        post((uint64_t)i); // each of another size: no run
        progress(1);
    }
    channel.ops->channel_close(&channel);
    gpsh_trace_stop();
    cr_assert_eq(gpsh_trace_merge(file, &newest, false, &outcome), 0);
    cr_assert_eq(outcome.records, RECORDS - 1);
    cr_assert_gt(outcome.dropped, 10 * RECORDS);
    cr_assert_not_null(strstr(contents(), "\"number\":640,"));
    cr_assert_null(strstr(contents(), "\"number\":1,"));
    gpsh_trace_outcome_print(file, &outcome, sentence, sizeof sentence);
    cr_assert_not_null(strstr(sentence, "records were dropped (GPUSHMEM_TRACE_RECORDS)"));
}

Test(trace, gpsh_trace_events_make__turn_that_is_complete__says_when)
{
    struct gpsh_trace_parts parts;
    struct gpsh_events events;
    int found = 0;
    cr_assert_eq(open_part(0), 0);
    struct gpsh_trace_lane *lane = gpsh_trace_lane(1);
    *gpsh_trace_next(lane) =
        (struct gpsh_trace_record){.at_ns = 1000,
                                   .took_ns = 50,
                                   .number = 7,
                                   .index = 100,
                                   .ring = 3,
                                   .pe = 25,
                                   .what = GPSH_TRACE_TURN << 4 | GPSH_TRACE_COMPLETE};
    gpsh_trace_commit(lane);
    cr_assert_eq(gpsh_trace_parts_open(file, &newest, &parts), 0);
    cr_assert(gpsh_trace_events_make(parts.list[0].head, &events));
    for (size_t i = 0; i < events.n; i++) {
        const struct gpsh_event *e = &events.list[i];
        if (e->kind != GPSH_EVENT_PUBLISH)
            continue;
        found++;
        cr_assert_eq(e->at_ns, 1075);
        cr_assert_eq(e->took_ns, 0);
        cr_assert_eq(e->record->index + e->offset, 107);
        cr_assert_eq(e->track, GPSH_TRACK_RING + 3);
    }
    cr_assert_eq(found, 1);
    free(events.list);
    gpsh_trace_parts_close(&parts, false);
}

Test(trace, gpsh_trace_stop__later_records__go_nowhere)
{
    cr_assert_eq(open_part(0), 0);
    open_channel(0);
    gpsh_trace_stop();
    post(8);
    progress(1);
    cr_assert_eq(gpsh_trace_lane(0)->head->records, 0);
    channel.ops->channel_close(&channel);
}

// ---- Files ----

Test(trace, gpsh_trace_open__full_disk__says_so_and_leaves_nothing)
{
    disk_error = ENOSPC;
    cr_assert_eq(open_part(0), GPUSHMEM_ERR_SYSTEM);
    cr_assert_not_null(strstr(gpsh_last_error(), "No space left on device"));
    cr_assert_not_null(strstr(gpsh_last_error(), "lower GPUSHMEM_TRACE_RECORDS"));
    cr_assert_not(is_there(part_path(0)));
    cr_assert_not(gpsh_trace_is_open());
    open_channel(0);
    cr_assert_eq(channel.ops, &fake);
}

Test(trace, gpsh_trace_open__bad_names__are_told)
{
    char long_name[5000];
    struct gpsh_trace_owner owner = {
        .file = folder, .job = "job", .n_pes = 1, .n_channels = LANES, .lane_records = RECORDS};
    cr_assert_eq(gpsh_trace_open(&owner), GPUSHMEM_ERR_SYSTEM);
    cr_assert_not_null(strstr(gpsh_last_error(), "Is a directory"));
    snprintf(long_name, sizeof long_name, "%s/pipe", folder);
    cr_assert_eq(mkfifo(long_name, 0600), 0);
    owner.file = long_name;
    cr_assert_eq(gpsh_trace_open(&owner), GPUSHMEM_ERR_SYSTEM);
    cr_assert_not_null(strstr(gpsh_last_error(), "it is a device, a pipe or a socket"));
    owner.file = "/nowhere/t.json";
    cr_assert_eq(gpsh_trace_open(&owner), GPUSHMEM_ERR_SYSTEM);
    cr_assert_not_null(strstr(gpsh_last_error(), "No such file or directory"));
    memset(long_name, 'x', sizeof long_name);
    long_name[sizeof long_name - 1] = '\0';
    owner.file = long_name;
    cr_assert_eq(gpsh_trace_open(&owner), GPUSHMEM_ERR_SYSTEM);
    cr_assert_not_null(strstr(gpsh_last_error(), "File name too long"));
}

static void write_text(const char *path, const char *text)
{
    FILE *out = fopen(path, "w");
    cr_assert_not_null(out);
    fputs(text, out);
    fclose(out);
}

// The limit of file sizes stands for a full disk, and sends a signal that would end the process.
Test(trace, gpsh_trace_merge__no_room__keeps_the_parts_and_what_was_there)
{
    struct rlimit limit, little;
    write_text(file, "old");
    write_part(0);
    getrlimit(RLIMIT_FSIZE, &limit);
    little = limit;
    little.rlim_cur = 100;
    setrlimit(RLIMIT_FSIZE, &little);
    int status = gpsh_trace_merge(file, &newest, false, &outcome);
    setrlimit(RLIMIT_FSIZE, &limit);
    cr_assert_eq(status, GPUSHMEM_ERR_SYSTEM);
    cr_assert_not_null(strstr(gpsh_last_error(), "File too large; its parts"), "%s",
                       gpsh_last_error());
    cr_assert_str_eq(contents(), "old");
    cr_assert(is_there(part_path(0)));
    cr_assert_eq(gpsh_trace_merge(file, &newest, false, &outcome), 0);
    cr_assert_eq(outcome.n_parts, 1);
    cr_assert_not(is_there(part_path(0)));
}

// What lies in the folder is FILE and what others have put there.
Test(trace, gpsh_trace_merge__links_of_others__are_not_followed)
{
    char precious[96], path[128];
    snprintf(precious, sizeof precious, "%s/precious", folder);
    write_text(precious, "mine");
    static const char *const names[] = {"", ".new", ".tmp", ".0.part"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        snprintf(path, sizeof path, "%s%s", file, names[i]);
        cr_assert_eq(symlink(precious, path), 0);
    }
    cr_assert_eq(symlink(precious, part_path(0)), 0);
    write_part(0);
    cr_assert_eq(gpsh_trace_merge(file, &newest, false, &outcome), 0);
    cr_assert_eq(outcome.n_parts, 1);
    cr_assert_not_null(strstr(contents(), "traceEvents"));
    strcpy(file, precious);
    cr_assert_str_eq(contents(), "mine");
}

// Others could cut off their file while it is mapped.
Test(trace, gpsh_trace_merge__part_of_another_user__only_if_a_person_says_so)
{
    const struct gpsh_trace_pick of_job = {.job = "job"}, of_run = {.run_pid = 1};
    write_part(0);
    other_user = __real_geteuid() + 1;
    cr_assert_eq(gpsh_trace_merge(file, &of_job, false, &outcome), GPUSHMEM_ERR_INVALID);
    cr_assert_not_null(strstr(gpsh_last_error(), ".part: it belongs to another user"));
    cr_assert_eq(gpsh_trace_merge(file, &of_run, false, &outcome), GPUSHMEM_ERR_INVALID);
    cr_assert(is_there(part_path(0)));
    cr_assert_eq(gpsh_trace_merge(file, &newest, false, &outcome), 0);
    cr_assert_eq(outcome.n_parts, 1);
}

// Who knows the name of a job may join it.
Test(trace, gpsh_trace_merge__name_of_the_job__is_in_no_file)
{
    char path[64], name[] = "gpushmem-0123456789abcdef";
    const struct gpsh_trace_pick of_job = {.job = name}, of_another = {.job = "gpushmem-0123"};
    job = name;
    struct gpsh_trace_owner owner = {
        .file = file, .job = name, .n_pes = 1, .n_channels = LANES, .lane_records = RECORDS};
    cr_assert_eq(gpsh_trace_open(&owner), 0);
    gpsh_trace_stop();
    gpsh_trace_close();
    strcpy(path, file);
    strcpy(file, part_path(0));
    for (int merged = 0; merged < 2; merged++) {
        const char *text = contents();
        cr_assert_null(memmem(text, contents_bytes, name, strlen(name)), "merged: %d", merged);
        strcpy(file, path);
        cr_assert_eq(gpsh_trace_merge(file, &of_another, true, &outcome), 0);
        cr_assert_eq(outcome.n_parts, 0);
        cr_assert_eq(gpsh_trace_merge(file, &of_job, true, &outcome), 0);
        cr_assert_eq(outcome.n_parts, !merged);
    }
}

Test(trace, gpsh_trace_merge__a_part_is_missing__completes_nothing_unless_told_to)
{
    write_part(1);
    cr_assert_eq(gpsh_trace_merge(file, &newest, true, &outcome), GPUSHMEM_ERR_SYSTEM);
    cr_assert_not_null(strstr(gpsh_last_error(), "here are 1 of 2, that of PE 0 is not there"));
    cr_assert_eq(gpsh_trace_merge(file, &newest, false, &outcome), 0);
    cr_assert_eq(outcome.n_parts, 1);
    cr_assert_eq(outcome.n_pes, PES);
}

Test(trace, gpsh_trace_merge__killed_pe__is_named)
{
    cr_assert_eq(open_part(0), 0); // and no more
    cr_assert_eq(gpsh_trace_merge(file, &newest, false, &outcome), 0);
    cr_assert_eq(outcome.unfinished, 1);
    cr_assert_not_null(strstr(contents(), "ended without gpushmem_finalize"));
}

static bool beside(const char *mark_of, const char *number)
{
    char mark[64], path[160];
    gpsh_trace_job_mark(mark_of, mark);
    snprintf(path, sizeof path, "%s/t.%s%s.json", folder, mark, number);
    return is_there(path);
}

static void write_parts_of(const char *name)
{
    job = name;
    write_part(0);
    write_part(1);
}

// Both jobs have their trace: the second one does not replace what the first has written.
Test(trace, gpsh_trace_merge__two_jobs_at_once__lose_nothing)
{
    const struct gpsh_trace_pick first = {.job = "first"}, second = {.job = "second"};
    char sentence[1024];
    write_parts_of("first");
    write_parts_of("second");
    cr_assert_eq(gpsh_trace_merge(file, &first, true, &outcome), 0, "%s", gpsh_last_error());
    cr_assert_eq(outcome.n_parts, PES);
    cr_assert_eq(outcome.others, 1);
    gpsh_trace_outcome_print(file, &outcome, sentence, sizeof sentence);
    cr_assert_not_null(strstr(sentence, "; there are parts of 1 other job, too: "), "%s", sentence);
    cr_assert(is_there(part_path(0)) && is_there(part_path(1)), "those of the other job");
    cr_assert_eq(gpsh_trace_merge(file, &second, true, &outcome), 0);
    cr_assert_eq(outcome.n_parts, PES);
    cr_assert(outcome.elsewhere && beside("second", ""));
    gpsh_trace_outcome_print(file, &outcome, sentence, sizeof sentence);
    cr_assert_not_null(strstr(sentence, "has been written since that job began"), "%s", sentence);
    cr_assert(is_there(file));
}

// In two steps, as when another node's parts come later.
Test(trace, gpsh_trace_merge__rest_of_a_job__is_beside_what_was_joined)
{
    static const char *const numbers[] = {"", ".2", ".3"};
    write_parts_of("late");
    cr_assert_eq(unlink(part_path(1)), 0);
    cr_assert_eq(gpsh_trace_merge(file, &newest, false, &outcome), 0);
    cr_assert_not(outcome.elsewhere);
    for (int i = 0; i < 3; i++) {
        const struct timespec late[2] = {{.tv_sec = 4000000000}, {.tv_sec = 4000000000}};
        char *last = i ? outcome.file : file;
        cr_assert_eq(utimensat(AT_FDCWD, last, late, 0), 0);
        write_part(1);
        cr_assert_eq(gpsh_trace_merge(file, &newest, false, &outcome), 0);
        cr_assert(beside("late", numbers[i]), "%s", outcome.file);
    }
}

Test(trace, gpsh_trace_merge__trace_of_an_earlier_job__is_replaced)
{
    const struct timespec early[2] = {{.tv_sec = 1000}, {.tv_sec = 1000}};
    write_text(file, "old");
    cr_assert_eq(utimensat(AT_FDCWD, file, early, 0), 0);
    write_part(0);
    cr_assert_eq(gpsh_trace_merge(file, &newest, false, &outcome), 0);
    cr_assert_not(outcome.elsewhere);
    cr_assert_not_null(strstr(contents(), "traceEvents"));
}

// A part that is mapped by another process, and then is not.
Test(trace, gpsh_trace_merge__job_that_runs__is_left_alone)
{
    int ready[2], go[2];
    char byte = 0;
    cr_assert(pipe(ready) == 0 && pipe(go) == 0);
    pid_t child = fork();
    if (child == 0) {
        byte = (char)(open_part(0) == 0);
        _exit(write(ready[1], &byte, 1) == 1 && read(go[0], &byte, 1) == 1 ? 0 : 1);
    }
    cr_assert_eq(read(ready[0], &byte, 1), 1);
    cr_assert_eq(byte, 1);
    cr_assert_eq(gpsh_trace_merge(file, &newest, false, &outcome), GPUSHMEM_ERR_INVALID);
    cr_assert_not_null(strstr(gpsh_last_error(), "still runs (pid "), "%s", gpsh_last_error());
    cr_assert(is_there(part_path(0)));
    cr_assert_eq(write(go[1], &byte, 1), 1);
    cr_assert_eq(waitpid(child, NULL, 0), child);
    cr_assert_eq(gpsh_trace_merge(file, &newest, false, &outcome), 0, "%s", gpsh_last_error());
    cr_assert_eq(outcome.unfinished, 1);
}

Test(trace, gpsh_trace_merge__damaged_part_beside_good_ones__is_told)
{
    char sentence[1024], path[128];
    write_part(0);
    snprintf(path, sizeof path, "%s.1.part", file);
    write_text(path, "something else");
    cr_assert_eq(gpsh_trace_merge(file, &newest, false, &outcome), 0);
    gpsh_trace_outcome_print(file, &outcome, sentence, sizeof sentence);
    cr_assert_not_null(strstr(sentence, "t.json.1.part: it is no part of a trace"), "%s", sentence);
    cr_assert(is_there(path));
}

Test(trace, gpsh_trace_merge__damaged_parts__are_refused)
{
    static const struct {
        size_t at;
        uint32_t word;
        const char *why;
    } rows[] = {
        {0, 0x6e6f6e65, "it is no part of a trace"},
        {offsetof(struct gpsh_trace_head, version), 99, "another version"},
        {offsetof(struct gpsh_trace_head, n_pes), 0, "damaged"},
        {offsetof(struct gpsh_trace_head, pe), 7, "damaged"},
        {offsetof(struct gpsh_trace_head, n_lanes), 1 << 30, "damaged"},
        {offsetof(struct gpsh_trace_head, lane_records), 65, "damaged"},
        {offsetof(struct gpsh_trace_head, n_names), 9999, "damaged"},
        {offsetof(struct gpsh_trace_head, n_proxies), 9999, "damaged"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        write_part(0);
        FILE *part = fopen(part_path(0), "r+");
        fseek(part, (long)rows[i].at, SEEK_SET);
        fwrite(&rows[i].word, 4, 1, part);
        fclose(part);
        cr_assert_eq(gpsh_trace_merge(file, &newest, false, &outcome), GPUSHMEM_ERR_INVALID);
        cr_assert_not_null(strstr(gpsh_last_error(), rows[i].why), "%zu: %s", i, gpsh_last_error());
    }
    write_part(0);
    cr_assert_eq(truncate(part_path(0), 100), 0);
    cr_assert_eq(gpsh_trace_merge(file, &newest, false, &outcome), GPUSHMEM_ERR_INVALID);
}

Test(trace, gpsh_trace_events_make__random_records__are_survived)
{
    struct gpsh_trace_parts parts;
    struct gpsh_events events;
    for (unsigned seed = 1; seed < 20; seed++) {
        write_part(0);
        FILE *part = fopen(part_path(0), "r+");
        fseek(part, (long)gpsh_trace_lanes_at(), SEEK_SET);
        srand(seed);
        for (int i = 0; i < 8000; i++)
            fputc(rand(), part);
        fseek(part, (long)gpsh_trace_records_at(LANES + GPSH_TRACE_HOST_THREADS), SEEK_SET);
        for (int i = 0; i < LANES * RECORDS; i++) {
            const struct gpsh_trace_record r = {.at_ns = (uint64_t)rand(),
                                                .took_ns = (uint32_t)rand() % 9,
                                                .number = (uint32_t)rand() % 50,
                                                .index = (uint32_t)rand() % 50,
                                                .pe = rand() % 5 - 1,
                                                .ring = (uint16_t)(rand() % 3),
                                                .transport = (uint8_t)(rand() % 6),
                                                .what = (uint8_t)rand()};
            fwrite(&r, sizeof r, 1, part);
        }
        fclose(part);
        cr_assert_eq(gpsh_trace_parts_open(file, &newest, &parts), 0);
        cr_assert_eq(parts.n, 1);
        cr_assert(gpsh_trace_events_make(parts.list[0].head, &events));
        free(events.list);
        gpsh_trace_parts_close(&parts, true);
    }
}

// ---- The time between two looks at the clock ----

Test(trace, gpsh_trace_time_learn__even_counter__follows_the_clock)
{
    struct gpsh_trace_time time = {0};
    gpsh_trace_time_learn(&time, 1000000, 5000, 1000100);
    cr_assert_eq(time.limit, 0, "one look tells nothing of a tick's length");
    gpsh_trace_time_learn(&time, 1001000, 5500, 1001100);
    cr_assert_eq(time.limit, 0, "two that are close to each other neither");
    gpsh_trace_time_learn(&time, 1400000, 205000, 1400100); // 2 ticks a ns
    cr_assert_gt(time.limit, 0);
    cr_assert_eq(gpsh_trace_time_at(&time, 1000), 205500);
}

Test(trace, gpsh_trace_time_learn__interrupted_look__is_not_taken)
{
    struct gpsh_trace_time time = {0}, before;
    gpsh_trace_time_learn(&time, 1000000, 5000, 1000100);
    gpsh_trace_time_learn(&time, 1400000, 205000, 1400100);
    before = time;
    gpsh_trace_time_learn(&time, 1700000, 355000, 9900000);
    cr_assert_eq(memcmp(&time, &before, sizeof time), 0);
}

Test(trace, gpsh_trace_time_learn__counter_jumps__asks_the_clock_each_time)
{
    struct gpsh_trace_time time = {0};
    gpsh_trace_time_learn(&time, 1000000, 5000, 1000100);
    gpsh_trace_time_learn(&time, 1400000, 205000, 1400100);
    gpsh_trace_time_learn(&time, 5000000, 355000, 5000100); // another processor's
    cr_assert_eq(time.limit, 0);
    gpsh_trace_time_learn(&time, 5400000, 555000, 5400100);
    cr_assert_gt(time.limit, 0);
    cr_assert_eq(gpsh_trace_time_at(&time, 1000), 555500);
}

Test(trace, gpsh_trace_time_learn__counter_goes_back__is_no_time_to_add)
{
    struct gpsh_trace_time time = {0};
    gpsh_trace_time_learn(&time, 1000000, 5000, 1000100);
    gpsh_trace_time_learn(&time, 1400000, 205000, 1400100);
    gpsh_trace_time_learn(&time, 400000, 305000, 400100);
    cr_assert_eq(time.limit, 0);
}

Test(trace, gpsh_trace_now__never_goes_back)
{
    struct gpsh_trace_lane lane = {0};
    for (int i = 0; i < 1000000; i++) {
        uint64_t ns = gpsh_trace_now(&lane);
        cr_assert_geq(ns, lane.now_ns);
        lane.now_ns = ns;
    }
}

// ---- Clocks ----

// Parts of two nodes in memory; node 1's clock is ahead, and drifts.
static struct gpsh_trace_head heads[2];
static struct gpsh_trace_part list[2] = {{.head = &heads[0]}, {.head = &heads[1]}};
static const struct gpsh_trace_parts two_nodes = {.list = list, .n = 2};

static uint64_t at_node_1(uint64_t ns, int64_t ahead, double drift)
{
    return ns + (uint64_t)ahead + (uint64_t)((double)ns * drift);
}

// Barrier i of those at the beginning (when 0) or the end: one PE comes late, in turn.
static void meet(int when, int i, uint64_t ns, int64_t ahead, double drift)
{
    uint64_t late_ns = ns + 1000 * (uint64_t)(1 + i % 3), left_ns = late_ns + 400;
    uint64_t came[2] = {i % 2 ? ns : late_ns, i % 2 ? late_ns : ns};
    uint64_t number = (uint64_t)(when * 1000 + i + 1);
    heads[0].marks[when][i] = (struct gpsh_trace_mark){number, came[0], left_ns};
    heads[1].marks[when][i] = (struct gpsh_trace_mark){number, at_node_1(came[1], ahead, drift),
                                                       at_node_1(left_ns + 100, ahead, drift)};
}

Test(trace, gpsh_trace_clock_estimate__barriers__bound_the_difference)
{
    static const int64_t aheads[] = {0, 5000000000, -700000};
    for (int row = 0; row < 3; row++) {
        struct gpsh_trace_clock clock;
        memset(heads, 0, sizeof heads);
        heads[1].node = 1;
        for (int i = 0; i < 16; i++)
            meet(0, i, 10000000000 + 100000 * (uint64_t)i, aheads[row], 0);
        gpsh_trace_clock_estimate(&two_nodes, 1, &clock);
        cr_assert_leq(clock.within_ns, 1000);
        cr_assert_leq(llabs(clock.ahead_ns - aheads[row]), clock.within_ns);
        gpsh_trace_clock_estimate(&two_nodes, 0, &clock);
        cr_assert_eq(clock.ahead_ns, 0);
    }
}

Test(trace, gpsh_trace_clock_estimate__drift__is_followed)
{
    const double drift = 20e-6;
    const uint64_t begin_ns = 10000000000, end_ns = 110000000000, between_ns = 60000000000;
    struct gpsh_trace_clock clock;
    memset(heads, 0, sizeof heads);
    heads[1].node = 1;
    for (int i = 0; i < 16; i++) {
        meet(0, i, begin_ns + 100000 * (uint64_t)i, 333, drift);
        meet(1, i, end_ns + 100000 * (uint64_t)i, 333, drift);
    }
    gpsh_trace_clock_estimate(&two_nodes, 1, &clock);
    uint64_t seen = gpsh_trace_clock_adjust(&clock, at_node_1(between_ns, 333, drift));
    cr_assert_leq(llabs((int64_t)(seen - between_ns)), 2000, "off by %lld ns",
                  (long long)(seen - between_ns));
}

Test(trace, gpsh_trace_clock_estimate__no_common_barrier__takes_the_hosts_dates)
{
    struct gpsh_trace_clock clock;
    memset(heads, 0, sizeof heads);
    heads[0].began_ns = 1000;
    heads[0].began_real_ns = 1700000000000001000;
    heads[1].node = 1;
    heads[1].began_ns = 9000;
    heads[1].began_real_ns = 1700000000000003000;
    gpsh_trace_clock_estimate(&two_nodes, 1, &clock);
    cr_assert_eq(clock.ahead_ns, 6000);
    cr_assert_eq(clock.within_ns, -1);
}
