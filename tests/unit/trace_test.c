// SPDX-License-Identifier: BSD-3-Clause
// What a PE records, and the events that are read from it.
#define _GNU_SOURCE // off_t
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/error.h"
#include "observe/trace.h"
#include "observe/trace_events.h"
#include "observe/trace_merge.h"
#include "trace_folder.h"

TestSuite(trace, .init = trace_folder_begin, .fini = trace_folder_end);

static int disk_error;
static struct gpsh_trace_outcome outcome;
static const struct gpsh_trace_pick newest;

int __wrap_posix_fallocate(int fd, off_t at, off_t bytes);
int __wrap_posix_fallocate(int fd, off_t at, off_t bytes)
{
    return disk_error ? disk_error : ftruncate(fd, at + bytes) ? errno : 0;
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
        fseek(part, (long)gpsh_trace_records_at(LANES + GPSH_TRACE_OTHER_LANES), SEEK_SET);
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
