// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE // PATH_MAX
#include "observe/trace_merge.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "core/error.h"

static int fail_write(const char *file, int error)
{
    return gpsh_fail(
        GPUSHMEM_ERR_SYSTEM,
        "the trace %s cannot be written: %s; its parts, %s.*.part, are left: make room "
        "and call `gpushmem trace merge %s`",
        file, strerror(error), file, file);
}

// Under another name until it is whole: what was there before stays if it cannot be written.
static int write_file(const char *file, const struct gpsh_trace_parts *parts,
                      struct gpsh_trace_outcome *outcome)
{
    char path[PATH_MAX];
    if ((size_t)snprintf(path, sizeof path, "%s.new", file) >= sizeof path)
        return fail_write(file, ENAMETOOLONG);
    FILE *out = fopen(path, "we");
    if (!out)
        return fail_write(file, errno);
    errno = 0;
    bool enough = gpsh_trace_json_write(out, parts, outcome);
    bool failed = ferror(out) || fflush(out) != 0;
    int error = !enough ? ENOMEM : errno ? errno : EIO;
    failed = fclose(out) != 0 || failed || !enough;
    if (!failed && rename(path, file) == 0)
        return 0;
    error = failed ? error : errno;
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
    else if (parts.n && complete && parts.n != parts.list[0].head->n_pes)
        status = refuse_incomplete(file, &parts);
    else if (parts.n)
        status = write_file(file, &parts, outcome);
    gpsh_trace_parts_close(&parts, !status);
    return status;
}

void gpsh_trace_outcome_print(const char *file, const struct gpsh_trace_outcome *o, char *text,
                              size_t bytes)
{
    int used =
        snprintf(text, bytes, "the trace of %d of %d PEs is in %s", o->n_parts, o->n_pes, file);
    size_t at = used > 0 && (size_t)used < bytes ? (size_t)used : bytes;
    if (o->unfinished && at < bytes)
        at += (size_t)snprintf(text + at, bytes - at,
                               "; %d of them ended without gpushmem_finalize", o->unfinished);
    if (o->dropped && at < bytes)
        at += (size_t)snprintf(
            text + at, bytes - at,
            "; the oldest %llu of %llu records were dropped (GPUSHMEM_TRACE_RECORDS)",
            (unsigned long long)o->dropped, (unsigned long long)o->dropped + o->records);
    if (o->threads_left_out && at < bytes)
        snprintf(text + at, bytes - at, "; calls of %d threads are not in it", o->threads_left_out);
}
