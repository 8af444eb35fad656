// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE // PATH_MAX
#include "observe/trace_merge.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/error.h"
#include "core/memory_file.h"
#include "core/sha256.h"
#include "core/text.h"
#include "observe/counters.h"
#include "observe/trace_events.h"
#include "transport/transport.h"

// ---- What is written ----

// The Trace Event Format, as Perfetto and Chrome read it: a process for each PE, a thread for each
// track. Times are microseconds since the first PE began.

struct writer {
    FILE *out;
    const char *between; // events
    const struct gpsh_trace_head *head;
    const struct gpsh_trace_clock *clock;
    uint64_t base_ns;
};

// Nothing of what is written comes from elsewhere than the library and the host's name, but a part
// may be damaged.
static void text_write(FILE *out, const char *text)
{
    for (; *text; text++)
        fputc((unsigned char)*text < ' ' || strchr("\"\\", *text) || (unsigned char)*text > '~'
                  ? '?'
                  : *text,
              out);
}

static void time_write(struct writer *w, const char *key, uint64_t ns)
{
    fprintf(w->out, ",\"%s\":%" PRIu64 ".%03u", key, ns / 1000, (unsigned)(ns % 1000));
}

static uint64_t aligned(const struct writer *w, uint64_t at_ns)
{
    uint64_t ns = gpsh_trace_clock_adjust(w->clock, at_ns);
    return ns > w->base_ns ? ns - w->base_ns : 0;
}

static const char *operation_name(const struct gpsh_trace_record *r)
{
    static const char *const names[] = {[GPSH_OP_PUT] = "put",
                                        [GPSH_OP_GET] = "get",
                                        [GPSH_OP_AMO] = "atomic",
                                        [GPSH_OP_PUT_SIGNAL] = "put with signal"};
    return names[r->what & 3];
}

static const char *event_name(const struct gpsh_trace_head *head, const struct gpsh_event *e)
{
    switch (e->kind) {
    case GPSH_EVENT_CALL:
    case GPSH_EVENT_KERNEL:
        return e->record->index < head->n_names ? head->names[e->record->index] : "a call";
    case GPSH_EVENT_TURN: return "read ring";
    case GPSH_EVENT_BATCH: return e->record->number ? "commands" : "elements of a command";
    case GPSH_EVENT_DOORBELL: return "doorbell";
    case GPSH_EVENT_POLL: return "completions";
    case GPSH_EVENT_PUBLISH: return "complete";
    case GPSH_EVENT_COMMAND:
    case GPSH_EVENT_OPERATION: return operation_name(e->record);
    default: return "command";
    }
}

static void arguments_write(struct writer *w, const struct gpsh_event *e)
{
    const struct gpsh_trace_record *r = e->record;
    FILE *out = w->out;
    fputs(",\"args\":{", out);
    switch (e->kind) {
    case GPSH_EVENT_CALL:
        if (r->pe >= 0)
            fprintf(out, "\"pe\":%d%s", r->pe, r->bytes ? "," : "");
        if (r->bytes)
            fprintf(out, "\"bytes\":%" PRIu32, r->bytes);
        break;
    case GPSH_EVENT_KERNEL: fprintf(out, "\"threads\":%" PRIu32, r->number); break;
    case GPSH_EVENT_TURN:
    case GPSH_EVENT_BATCH:
        fprintf(out,
                "\"ring\":%u,\"first\":%" PRIu32 ",\"commands\":%" PRIu32 ",\"posts\":%" PRIu32,
                r->ring, r->index, r->number, r->bytes);
        break;
    case GPSH_EVENT_COMMAND:
        fprintf(out, "\"command\":%" PRIu32 ",\"pe\":%d,\"bytes\":%" PRIu32, r->index + e->offset,
                r->pe, r->bytes);
        break;
    case GPSH_EVENT_OPERATION:
        fprintf(out, "\"number\":%" PRIu32 ",\"bytes\":%" PRIu32, r->number + e->offset, r->bytes);
        time_write(w, "posted_us", aligned(w, e->posted_ns));
        if (e->unfinished)
            fputs(",\"complete\":false", out);
        break;
    case GPSH_EVENT_DOORBELL: break;
    case GPSH_EVENT_POLL:
        fprintf(out, "\"pe\":%d,\"number\":%" PRIu32 "%s", r->pe, r->number,
                r->what & GPSH_TRACE_FAILED ? ",\"failed\":true" : "");
        break;
    default: fprintf(out, "\"commands\":%" PRIu32, r->index + e->offset); break;
    }
    fputc('}', out);
}

static void event_write(struct writer *w, const struct gpsh_event *e)
{
    FILE *out = w->out;
    bool arrow = e->kind >= GPSH_EVENT_ARROW_BEGIN;
    char phase = e->kind == GPSH_EVENT_ARROW_BEGIN  ? 's'
                 : e->kind == GPSH_EVENT_ARROW_STEP ? 't'
                 : arrow                            ? 'f'
                                                    : 'X';
    uint64_t begin = aligned(w, e->at_ns), end = aligned(w, e->at_ns + e->took_ns);
    fprintf(out, "%s{\"ph\":\"%c\",\"pid\":%d,\"tid\":%" PRIu32 ",\"name\":\"", w->between, phase,
            w->head->pe, e->track);
    text_write(out, event_name(w->head, e));
    fputc('"', out);
    time_write(w, "ts", begin);
    if (arrow) {
        fprintf(out, ",\"cat\":\"command\",\"id\":\"%d.%u.%" PRIu32 "\"%s", w->head->pe,
                e->record->ring, e->record->index + e->offset, phase == 'f' ? ",\"bp\":\"e\"" : "");
    } else {
        time_write(w, "dur", end > begin ? end - begin : 0);
        arguments_write(w, e);
    }
    fputc('}', out);
    w->between = ",\n";
}

// ---- Tracks ----

static void track_name(const struct gpsh_trace_head *head, uint32_t track, char *text, size_t bytes)
{
    char owner[48];
    if (track >= GPSH_TRACK_QUEUES) {
        uint64_t row = (track - GPSH_TRACK_QUEUES) / (uint64_t)head->n_pes;
        uint64_t pe = (track - GPSH_TRACK_QUEUES) % (uint64_t)head->n_pes;
        gpsh_channel_name(row / GPSH_TRACE_TRANSPORTS, head->n_proxies, owner, sizeof owner);
        snprintf(text, bytes, "queue of %s to PE %" PRIu64 ", %s", owner, pe,
                 head->transports[row % GPSH_TRACE_TRANSPORTS]);
    } else if (track >= GPSH_TRACK_RING) {
        snprintf(text, bytes, "ring %u", track - GPSH_TRACK_RING);
    } else if (track >= GPSH_TRACK_PROXY) {
        snprintf(text, bytes, "proxy thread %u", track - GPSH_TRACK_PROXY);
    } else if (track == GPSH_TRACK_STREAM) {
        snprintf(text, bytes, "kernels, default stream");
    } else if (track > GPSH_TRACK_STREAM) {
        snprintf(text, bytes, "kernels, stream %u", track - GPSH_TRACK_STREAM);
    } else {
        snprintf(text, bytes, "host thread %u", track - GPSH_TRACK_HOST);
    }
}

static void meta_write(struct writer *w, const char *what, uint32_t track, const char *text)
{
    fprintf(w->out,
            "%s{\"ph\":\"M\",\"pid\":%d,\"tid\":%" PRIu32 ",\"name\":\"%s\",\"args\":{\"name\":\"",
            w->between, w->head->pe, track, what);
    text_write(w->out, text);
    fputs("\"}}", w->out);
    w->between = ",\n";
}

static void order_write(struct writer *w, const char *what, uint32_t track, uint32_t order)
{
    fprintf(w->out,
            ",\n{\"ph\":\"M\",\"pid\":%d,\"tid\":%" PRIu32
            ",\"name\":\"%s\",\"args\":{\"sort_index\":%" PRIu32 "}}",
            w->head->pe, track, what, order);
}

static void tracks_write(struct writer *w, const struct gpsh_events *events)
{
    char text[160];
    snprintf(text, sizeof text, "PE %d (%s)%s", w->head->pe, w->head->host,
             w->head->ended ? "" : ", ended without gpushmem_finalize");
    meta_write(w, "process_name", 0, text);
    order_write(w, "process_sort_index", 0, (uint32_t)w->head->pe);
    for (size_t i = 0; i < events->n; i++) {
        uint32_t track = events->list[i].track;
        if (i && track == events->list[i - 1].track)
            continue;
        track_name(w->head, track, text, sizeof text);
        meta_write(w, "thread_name", track, text);
        order_write(w, "thread_sort_index", track, track);
    }
}

// ---- Parts ----

static bool part_write(struct writer *w, struct gpsh_trace_outcome *outcome)
{
    struct gpsh_events events;
    bool made = gpsh_trace_events_make(w->head, &events);
    if (made) {
        tracks_write(w, &events);
        for (size_t i = 0; i < events.n; i++)
            event_write(w, &events.list[i]);
    }
    outcome->records += events.records;
    outcome->dropped += events.dropped;
    outcome->unfinished += !w->head->ended;
    outcome->threads_left_out += (int)w->head->threads_left_out;
    outcome->n_parts++;
    free(events.list);
    return made;
}

static void about_write(FILE *out, const struct gpsh_trace_parts *parts,
                        const struct gpsh_trace_clock *clocks,
                        const struct gpsh_trace_outcome *outcome)
{
    fprintf(out, "\n],\"displayTimeUnit\":\"ns\",\"otherData\":{\"job\":\"");
    text_write(out, parts->list[0].head->job);
    fprintf(out,
            "\",\"pes\":%d,\"parts\":%d,\"records\":%" PRIu64 ",\"dropped\":%" PRIu64
            ",\"nodes\":[",
            outcome->n_pes, outcome->n_parts, outcome->records, outcome->dropped);
    const char *between = "";
    for (int i = 0; i < parts->n; i++) {
        if (parts->list[i].head->pe != clocks[i].node)
            continue;
        fprintf(out, "%s{\"first_pe\":%d,\"clock_ahead_ns\":%" PRId64 ",\"within_ns\":%" PRId64 "}",
                between, clocks[i].node, clocks[i].ahead_ns, clocks[i].within_ns);
        between = ",";
    }
    fputs("]}}\n", out);
}

// Of each part; parts of a node share what was found out.
static struct gpsh_trace_clock *clocks_estimate(const struct gpsh_trace_parts *parts)
{
    struct gpsh_trace_clock *clocks = calloc((size_t)parts->n, sizeof *clocks);
    for (int i = 0; clocks && i < parts->n; i++) {
        int node = parts->list[i].head->node, same = 0;
        while (same < i && clocks[same].node != node)
            same++;
        if (same < i)
            clocks[i] = clocks[same];
        else
            gpsh_trace_clock_estimate(parts, node, &clocks[i]);
    }
    return clocks;
}

// False: no memory. Errors of the file are its own (ferror).
static bool json_write(FILE *out, const struct gpsh_trace_parts *parts,
                       struct gpsh_trace_outcome *outcome)
{
    struct gpsh_trace_clock *clocks = clocks_estimate(parts);
    bool made = clocks;
    struct writer w = {.out = out, .between = "\n", .base_ns = UINT64_MAX};
    *outcome = (struct gpsh_trace_outcome){.n_pes = parts->list[0].head->n_pes};
    for (int i = 0; made && i < parts->n; i++) {
        uint64_t began = gpsh_trace_clock_adjust(&clocks[i], parts->list[i].head->began_ns);
        w.base_ns = began < w.base_ns ? began : w.base_ns;
    }
    fputs("{\"traceEvents\":[", out);
    for (int i = 0; made && i < parts->n && !ferror(out); i++) {
        w.head = parts->list[i].head;
        w.clock = &clocks[i];
        made = part_write(&w, outcome);
    }
    if (made)
        about_write(out, parts, clocks, outcome);
    free(clocks);
    return made;
}

// ---- The file ----

static int fail_write(const char *file, int error)
{
    return gpsh_fail(
        GPUSHMEM_ERR_SYSTEM,
        "the trace %s cannot be written: %s; its parts, %s.*.part, are left: make room "
        "and call `gpushmem trace merge %s`",
        file, strerror(error), file, file);
}

// A new file beside FILE, with its name. That is no name which somebody could know before: where
// others may write in the folder it could be their link to another file. 0 or an errno value.
static int file_create(const char *file, char path[PATH_MAX], FILE **out)
{
    uint32_t any;
    int error = gpsh_random(&any, sizeof any);
    if (error)
        return error;
    if ((size_t)snprintf(path, PATH_MAX, "%s.%06x.new", file, any & 0xffffff) >= PATH_MAX)
        return ENAMETOOLONG;
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0)
        return errno;
    *out = fdopen(fd, "w");
    if (*out)
        return 0;
    error = errno;
    close(fd);
    unlink(path);
    return error;
}

// 0 or an errno value. Closes `out`.
static int file_fill(FILE *out, const struct gpsh_trace_parts *parts,
                     struct gpsh_trace_outcome *outcome)
{
    struct gpsh_file_limit limit;
    gpsh_file_limit_begin(&limit);
    errno = 0;
    bool enough = json_write(out, parts, outcome);
    bool failed = ferror(out) || fflush(out) != 0;
    int error = !enough ? ENOMEM : errno ? errno : EIO;
    failed = fclose(out) != 0 || failed || !enough;
    gpsh_file_limit_end(&limit, failed);
    return failed ? error : 0;
}

// It was there, and somebody has written it since the job began: it may have another job's trace,
// or the rest of this one.
static bool is_newer(const char *file, const struct gpsh_trace_parts *parts)
{
    struct stat st;
    uint64_t began_ns = UINT64_MAX;
    for (int i = 0; i < parts->n; i++)
        if (parts->list[i].head->began_real_ns < began_ns)
            began_ns = parts->list[i].head->began_real_ns;
    return lstat(file, &st) == 0 && st.st_mtim.tv_sec >= 0 &&
           (uint64_t)st.st_mtim.tv_sec * 1000000000 + (uint64_t)st.st_mtim.tv_nsec > began_ns;
}

// t.json, or if that is somebody else's now, t.MARK.json, t.MARK.2.json and so on.
static int choose_file(const char *file, const struct gpsh_trace_parts *parts,
                       struct gpsh_trace_outcome *outcome)
{
    enum { MOST = 1000 };
    const char *slash = strrchr(file, '/'), *dot = strrchr(file, '.'), *mark;
    size_t room = sizeof outcome->file;
    int stem = dot && dot > (slash ? slash + 1 : file) ? (int)(dot - file) : (int)strlen(file);
    mark = parts->list[0].head->job;
    int used = snprintf(outcome->file, room, "%s", file);
    for (int i = 1; is_newer(outcome->file, parts) && i <= MOST && (size_t)used < room; i++) {
        outcome->elsewhere = true;
        if (i == 1)
            used = snprintf(outcome->file, room, "%.*s.%s%s", stem, file, mark, file + stem);
        else
            used = snprintf(outcome->file, room, "%.*s.%s.%d%s", stem, file, mark, i, file + stem);
    }
    return (size_t)used < room ? 0 : ENAMETOOLONG;
}

// Under another name until it is whole: what was there before stays if it cannot be written.
static int write_file(const char *file, const struct gpsh_trace_parts *parts,
                      struct gpsh_trace_outcome *outcome)
{
    char path[PATH_MAX];
    FILE *out;
    int error = file_create(file, path, &out);
    if (error)
        return fail_write(file, error);
    error = file_fill(out, parts, outcome);
    if (!error)
        error = choose_file(file, parts, outcome);
    if (!error && rename(path, outcome->file))
        error = errno;
    if (!error)
        return 0;
    unlink(path);
    return fail_write(file, error);
}

static int refuse_incomplete(const char *file, const struct gpsh_trace_parts *parts)
{
    int n_pes = parts->list[0].head->n_pes, missing = 0;
    while (missing < parts->n && parts->list[missing].head->pe == missing)
        missing++;
    return gpsh_fail(
        GPUSHMEM_ERR_SYSTEM,
        "the trace %s is left in parts: here are %d of %d, that of PE %d is not there; "
        "bring them together, and call `gpushmem trace merge %s`",
        file, parts->n, n_pes, missing, file);
}

int gpsh_trace_merge(const char *file, const struct gpsh_trace_pick *pick, bool complete,
                     struct gpsh_trace_outcome *outcome)
{
    struct gpsh_trace_parts parts;
    *outcome = (struct gpsh_trace_outcome){0};
    int status = gpsh_trace_parts_open(file, pick, &parts);
    if (status)
        return status;
    if (!parts.n && parts.refused)
        status = gpsh_fail(GPUSHMEM_ERR_INVALID, "%s", parts.why);
    else if (!parts.n && parts.running)
        status = gpsh_fail(GPUSHMEM_ERR_INVALID,
                           "the job that writes the trace %s still runs (pid %d): its parts are "
                           "joined when it ends",
                           file, parts.running_pid);
    else if (parts.n && complete && parts.n != parts.list[0].head->n_pes)
        status = refuse_incomplete(file, &parts);
    else if (parts.n)
        status = write_file(file, &parts, outcome);
    outcome->others = parts.others;
    outcome->refused = parts.refused;
    snprintf(outcome->why, sizeof outcome->why, "%.255s", parts.why);
    gpsh_trace_parts_close(&parts, !status);
    return status;
}

void gpsh_trace_outcome_print(const char *file, const struct gpsh_trace_outcome *o, char *text,
                              size_t bytes)
{
    struct gpsh_text t = {text, bytes, 0};
    gpsh_text_add(&t, "the trace of %d of %d PEs is in %.200s", o->n_parts, o->n_pes, o->file);
    if (o->elsewhere)
        gpsh_text_add(
            &t, ", because %.100s has been written since that job began, perhaps by another one",
            file);
    if (o->unfinished)
        gpsh_text_add(&t, "; %d of them ended without gpushmem_finalize", o->unfinished);
    if (o->dropped)
        gpsh_text_add(&t, "; the oldest %llu of %llu records were dropped (GPUSHMEM_TRACE_RECORDS)",
                      (unsigned long long)o->dropped, (unsigned long long)o->dropped + o->records);
    if (o->threads_left_out)
        gpsh_text_add(&t, "; calls of %d threads are not in it", o->threads_left_out);
    if (o->refused)
        gpsh_text_add(&t, "; %d files beside them are left out: %s", o->refused, o->why);
    if (o->others)
        gpsh_text_add(
            &t,
            "; there are parts of %d other job%s, too: when ended, `gpushmem trace merge %.100s`",
            o->others, o->others == 1 ? "" : "s", file);
}
