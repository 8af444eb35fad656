// SPDX-License-Identifier: BSD-3-Clause
// Parts of a job's trace become one file, among what others have put there.
#define _GNU_SOURCE // memmem
#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/error.h"
#include "core/sha256.h"
#include "observe/trace.h"
#include "observe/trace_merge.h"
#include "trace_folder.h"

TestSuite(trace_merge, .init = trace_folder_begin, .fini = trace_folder_end);

static struct gpsh_trace_outcome outcome;
static const struct gpsh_trace_pick newest;

static uid_t other_user; // as whom this process appears, 0: as itself

uid_t __real_geteuid(void);
uid_t __wrap_geteuid(void);
uid_t __wrap_geteuid(void)
{
    return other_user ? other_user : __real_geteuid();
}

static void write_text(const char *path, const char *text)
{
    FILE *out = fopen(path, "w");
    cr_assert_not_null(out);
    fputs(text, out);
    fclose(out);
}

// The limit of file sizes stands for a full disk, and sends a signal that would end the process.
Test(trace_merge, gpsh_trace_merge__no_room__keeps_the_parts_and_what_was_there)
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
Test(trace_merge, gpsh_trace_merge__links_of_others__are_not_followed)
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
Test(trace_merge, gpsh_trace_merge__part_of_another_user__only_if_a_person_says_so)
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
Test(trace_merge, gpsh_trace_merge__name_of_the_job__is_in_no_file)
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

Test(trace_merge, gpsh_trace_merge__a_part_is_missing__completes_nothing_unless_told_to)
{
    write_part(1);
    cr_assert_eq(gpsh_trace_merge(file, &newest, true, &outcome), GPUSHMEM_ERR_SYSTEM);
    cr_assert_not_null(strstr(gpsh_last_error(), "here are 1 of 2, that of PE 0 is not there"));
    cr_assert_eq(gpsh_trace_merge(file, &newest, false, &outcome), 0);
    cr_assert_eq(outcome.n_parts, 1);
    cr_assert_eq(outcome.n_pes, PES);
}

Test(trace_merge, gpsh_trace_merge__killed_pe__is_named)
{
    cr_assert_eq(open_part(0), 0); // and no more
    cr_assert_eq(gpsh_trace_merge(file, &newest, false, &outcome), 0);
    cr_assert_eq(outcome.unfinished, 1);
    cr_assert_not_null(strstr(contents(), "ended without gpushmem_finalize"));
}

static bool beside(const char *mark_of, const char *number)
{
    char mark[GPSH_SHA256_MARK], path[160];
    gpsh_sha256_mark(mark_of, mark);
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
Test(trace_merge, gpsh_trace_merge__two_jobs_at_once__lose_nothing)
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
Test(trace_merge, gpsh_trace_merge__rest_of_a_job__is_beside_what_was_joined)
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

Test(trace_merge, gpsh_trace_merge__trace_of_an_earlier_job__is_replaced)
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
Test(trace_merge, gpsh_trace_merge__job_that_runs__is_left_alone)
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

Test(trace_merge, gpsh_trace_merge__damaged_part_beside_good_ones__is_told)
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

Test(trace_merge, gpsh_trace_merge__damaged_parts__are_refused)
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
