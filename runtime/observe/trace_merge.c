// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE // PATH_MAX
#include "observe/trace_merge.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/error.h"
#include "core/memory_file.h"
#include "core/sha256.h"

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
    bool enough = gpsh_trace_json_write(out, parts, outcome);
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
    int used = snprintf(text, bytes, "the trace of %d of %d PEs is in %.200s", o->n_parts, o->n_pes,
                        o->file);
    size_t at = used > 0 && (size_t)used < bytes ? (size_t)used : bytes;
    if (o->elsewhere && at < bytes)
        at += (size_t)snprintf(
            text + at, bytes - at,
            ", because %.100s has been written since that job began, perhaps by another one", file);
    if (o->unfinished && at < bytes)
        at += (size_t)snprintf(text + at, bytes - at,
                               "; %d of them ended without gpushmem_finalize", o->unfinished);
    if (o->dropped && at < bytes)
        at += (size_t)snprintf(
            text + at, bytes - at,
            "; the oldest %llu of %llu records were dropped (GPUSHMEM_TRACE_RECORDS)",
            (unsigned long long)o->dropped, (unsigned long long)o->dropped + o->records);
    if (o->threads_left_out && at < bytes)
        at += (size_t)snprintf(text + at, bytes - at, "; calls of %d threads are not in it",
                               o->threads_left_out);
    if (o->refused && at < bytes)
        at += (size_t)snprintf(text + at, bytes - at, "; %d files beside them are left out: %s",
                               o->refused, o->why);
    if (o->others && at < bytes)
        snprintf(
            text + at, bytes - at,
            "; there are parts of %d other job%s, too: when ended, `gpushmem trace merge %.100s`",
            o->others, o->others == 1 ? "" : "s", file);
}
