// SPDX-License-Identifier: BSD-3-Clause
#include "run_options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "options.h"

static const char usage[] =
    "[options] [--] PROGRAM [arguments]\n"
    "Starts a job of several PEs on this machine. For clusters: srun --mpi=pmix, prterun, mpirun.";

static void print_more(void)
{
    fputs("\nPEs inherit the environment. PE 0 reads the standard input, the others read nothing. "
          "SIGINT, SIGTERM,\n"
          "SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGCONT, SIGTSTP and SIGWINCH go to every PE; "
          "SIGTERM, SIGHUP and a\n"
          "second SIGINT or SIGQUIT also end what still runs after the grace period.\n"
          "Exit status: 0 if all PEs returned 0, else that of the first PE that failed (128 + "
          "signal if one killed it).\n",
          stdout);
}

// -x VAR=VALUE sets; -x VAR alone passes on what the PEs inherit anyway, as other launchers have
// it.
static bool take_setting(const struct gpsh_command_line *line, const char *name, char *text)
{
    struct gpsh_run_options *o = line->context;
    if (text[0] == '=' || text[0] == '\0')
        return gpsh_options_complain(line, "%s '%s' has no variable name; write -x VAR=VALUE", name,
                                     text);
    if (!strchr(text, '=')) {
        if (getenv(text))
            return true;
        return gpsh_options_complain(
            line, "%s %s: that variable is not set here; write -x %s=VALUE", name, text, text);
    }
    int n = 0;
    while (o->settings && o->settings[n])
        n++;
    char **grown = realloc(o->settings, ((size_t)n + 2) * sizeof(*grown));
    if (!grown)
        return gpsh_options_complain(line, "out of memory");
    grown[n] = text;
    grown[n + 1] = NULL;
    o->settings = grown;
    return true;
}

bool gpsh_run_options_parse(struct gpsh_run_options *o, int argc, char **argv, int *exit_status)
{
    enum { MOST = GPSH_RUN_MAX_PES, LONGEST_S = 10000000 };
    const struct gpsh_option options[] = {
        {'n', "np", "N", "number of PEs (default 1)", .number = &o->n_pes, .low = 1, .high = MOST},
        {'t', "tag-output", NULL, "put \"[PE] \" in front of every line of output",
         .flag = &o->tag_output},
        {'x', NULL, "VAR=VALUE", "set a variable for the PEs; may be repeated",
         .take = take_setting},
        {0, "timeout", "SECONDS", "end a job that runs longer, exit status 124",
         .seconds = &o->timeout_s, .high = LONGEST_S},
        {0, "nodes", "K", "pretend that the PEs are spread over K nodes", .number = &o->n_nodes,
         .low = 1, .high = MOST},
        {0, "bind", "none|core", "pin each PE to a core of its own (default none)",
         .word = &o->bind_cores},
        {0, "on-failure", "abort|continue",
         "when a PE dies: end the job, or let the others go on (and set\n"
         "GPUSHMEM_ON_PE_FAILURE=notify for them; default: as that variable says)",
         .word = &o->on_failure},
        {0, "grace", "SECONDS", "between asking a PE to end (SIGTERM) and killing it (default 2)",
         .seconds = &o->grace_s, .high = LONGEST_S},
        {'q', "quiet", NULL, "no messages of the launcher itself", .flag = &o->quiet},
        {0},
    };
    const struct gpsh_command_line line = {
        "gpushmem run", usage, print_more, options, .program_follows = true, .context = o};
    *o = (struct gpsh_run_options){
        .n_pes = 1, .n_nodes = 1, .grace_s = 2, .on_failure = GPSH_RUN_ON_FAILURE_UNSET};
    int program = gpsh_options_parse(&line, argc, argv, exit_status);
    if (program < 0)
        return false;
    o->program = argv + program;
    if (!o->program[0])
        return gpsh_options_complain(&line,
                                     "no program given; for example: gpushmem run -n 4 ./app");
    if (o->n_nodes > o->n_pes)
        return gpsh_options_complain(&line, "--nodes %d is more than the %d PE%s of -n", o->n_nodes,
                                     o->n_pes, o->n_pes == 1 ? "" : "s");
    return true;
}

void gpsh_run_options_release(struct gpsh_run_options *o)
{
    free(o->settings);
    o->settings = NULL;
}
