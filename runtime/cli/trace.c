// SPDX-License-Identifier: BSD-3-Clause
// `gpushmem trace merge`: joins the parts of a trace that a job left behind, because a PE died, or
// its nodes share no file system.

#include <stdio.h>
#include <string.h>

#include "commands.h"
#include "observe/trace_merge.h"
#include "options.h"
#include "say.h"

// Jobs one after another, the latest first: it has the file's name, the others names beside it.
static int merge_others(const char *file, struct gpsh_trace_outcome *outcome)
{
    char text[1024];
    for (;;) {
        int others = outcome->others;
        outcome->others = 0;
        gpsh_trace_outcome_print(file, outcome, text, sizeof text);
        printf("%s\n", text);
        if (!others)
            return 0;
        if (gpsh_trace_merge(file, &(struct gpsh_trace_pick){0}, false, outcome))
            return gpsh_cli_fail("trace");
        if (!outcome->n_parts || outcome->others >= others) // they cannot be deleted
            return 0;
    }
}

static int trace_merge(const char *file)
{
    struct gpsh_trace_outcome outcome;
    if (gpsh_trace_merge(file, &(struct gpsh_trace_pick){0}, false, &outcome))
        return gpsh_cli_fail("trace");
    if (!outcome.n_parts) {
        gpsh_cli_say("trace",
                     "there are no parts %s.*.part; give the name that GPUSHMEM_TRACE had in the "
                     "job, and bring the parts of all nodes there",
                     file);
        return 1;
    }
    return merge_others(file, &outcome);
}

int gpsh_cmd_trace(int argc, char **argv)
{
    const struct gpsh_option options[] = {{0}};
    const struct gpsh_command_line line = {
        "gpushmem trace",
        "merge FILE\n"
        "Joins the parts FILE.PE.JOB.part that a job with GPUSHMEM_TRACE=FILE left behind to "
        "FILE, "
        "and deletes them. FILE becomes the trace of the job that began last; those of other jobs "
        "go beside it, as in t.JOB.json. Jobs that still run here are left alone. "
        "A job does that itself at finalize, and `gpushmem run` when a PE has died: this is for "
        "other launchers, for nodes that share no file system, and for disks that were full. "
        "https://ui.perfetto.dev shows the file.",
        .options = options};
    int status, operand = gpsh_options_parse(&line, argc, argv, &status);
    if (operand < 0)
        return status;
    if (operand + 2 == argc && strcmp(argv[operand], "merge") == 0 && argv[operand + 1][0])
        return trace_merge(argv[operand + 1]);
    gpsh_options_complain(&line, "it takes the word merge and one file; see gpushmem trace --help");
    return GPSH_OPTIONS_EXIT_USAGE;
}

// Most often the PEs have done it.
void gpsh_trace_join_left(const char *file, int run_pid)
{
    char text[1024];
    struct gpsh_trace_outcome outcome;
    const struct gpsh_trace_pick pick = {.run_pid = run_pid};
    if (!file || !file[0])
        return;
    if (gpsh_trace_merge(file, &pick, false, &outcome)) {
        gpsh_cli_fail("run");
    } else if (outcome.n_parts) {
        gpsh_trace_outcome_print(file, &outcome, text, sizeof text);
        gpsh_cli_say("run", "%s", text);
    }
}
