// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE // cpu_set_t
#include "run_options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bind.h"
#include "options.h"
#include "other_options.h"
#include "page.h"

static const char program_name[] = "gpushmem run";
static const char usage[] =
    "[options] [--] PROGRAM [arguments] [: [-n N] [--wdir DIR] PROGRAM [arguments]]...\n"
    "Starts a job of several PEs on this machine. For clusters: srun --mpi=pmix, prterun, mpirun.";

static void print_more(void)
{
    static const char *const texts[] = {
        "PE 0 reads the standard input, the others read nothing. PEs inherit the environment; "
        "GPUSHMEM_RUN_PE, GPUSHMEM_RUN_SIZE, GPUSHMEM_RUN_LOCAL_PE and GPUSHMEM_RUN_LOCAL_SIZE "
        "tell a wrapper script which PE it starts, GPUSHMEM_RUN_PID where to send signals.",
        "SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGCONT, SIGTSTP and SIGWINCH go to "
        "every PE; SIGTERM, SIGHUP and a second SIGINT or SIGQUIT also kill what still runs after "
        "the grace period.",
        "Options of mpirun and srun: --oversubscribe, --allow-run-as-root and -ppn are accepted "
        "and "
        "change nothing, since all PEs are of this machine; --bind-to is --bind.",
        "Exit status: 0 if all PEs returned 0, else that of the first PE that failed (128 + "
        "signal if one killed it); 124 after --timeout, 126 or 127 if the program cannot be "
        "started, 2 for a wrong command line, 1 if the launcher itself failed.",
        NULL};
    gpsh_page_help_paragraphs(texts);
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

// One program of several: options, program, arguments. True if it is right.
static bool parse_app(struct gpsh_run_options *o, int argc, char **argv, int *exit_status)
{
    enum { MOST = GPSH_RUN_MAX_PES, LONGEST_S = 10000000, MOST_CORES = 1024 };
    struct gpsh_run_app *app = &o->apps[o->n_apps];
    const struct gpsh_option options[] = {
        {'n', "np", "N", "number of PEs (default 1); also -np N", .number = &app->n_pes, .low = 1,
         .high = MOST},
        {0, "wdir", "DIR", "start the program in this directory, and look for it there",
         .text = &app->directory},
        {'x', NULL, "VAR=VALUE", "set a variable for all PEs; may be repeated",
         .take = take_setting},
        {'t', "tag-output", NULL, "put \"[PE] \" in front of every line of output",
         .flag = &o->tag_output},
        {0, "output-filename", "FILE", "write the output of each PE to FILE.PE",
         .text = &o->output_file},
        {0, "pty", NULL,
         "give PE 0 a terminal of its own, for debuggers and editors: all "
         "keys go there, also Ctrl-C",
         .flag = &o->terminal},
        {0, "bind", "none|share|core|numa|socket",
         "pin each PE to its share of the cores, to one core of its own, or to a NUMA node or a "
         "socket that it shares with its neighbours (default share where each PE then has two "
         "cores "
         "or more, else none)",
         .word = &o->bind},
        {0, "cores", "K", "with --bind core: K neighbouring cores for each PE (default 1)",
         .number = &o->cores, .low = 1, .high = MOST_CORES},
        {0, "report-bindings", NULL, "say which processors each PE is pinned to, or why none",
         .flag = &o->report_bindings},
        {0, "timeout", "SECONDS", "end a job that runs longer, exit status 124",
         .seconds = &o->timeout_s, .high = LONGEST_S},
        {0, "on-failure", "abort|continue",
         "when a PE dies: end the job, or let the others go on (and set "
         "GPUSHMEM_ON_PE_FAILURE=notify for them; default: as that variable says)",
         .word = &o->on_failure},
        {0, "grace", "SECONDS", "between asking a PE to end (SIGTERM) and killing it (default 2)",
         .seconds = &o->grace_s, .high = LONGEST_S},
        {0, "nodes", "K", "pretend that the PEs are spread over K nodes, for tests",
         .number = &o->n_nodes, .low = 1, .high = MOST},
        {'q', "quiet", NULL, "no messages of the launcher itself", .flag = &o->quiet},
        {0},
    };
    const struct gpsh_command_line line = {
        program_name, usage, print_more, options, .program_follows = true, .context = o};
    *app = (struct gpsh_run_app){.n_pes = 1};
    if (!gpsh_other_options_take(&line, &argc, argv))
        return false;
    int program = gpsh_options_parse(&line, argc, argv, exit_status);
    if (program < 0)
        return false;
    app->program = argv + program;
    if (!app->program[0])
        return gpsh_options_complain(
            &line, o->n_apps == 0 ? "no program given; for example: gpushmem run -n 4 ./app"
                                  : "no program given after ':'");
    o->n_apps++;
    o->n_pes += app->n_pes;
    return true;
}

// The place of the ":" that ends this program's arguments, or argc. One that nothing follows is an
// argument (sh -c :).
static int app_end(int argc, char **argv)
{
    for (int i = 1; i + 1 < argc; i++) {
        if (strcmp(argv[i], ":") == 0)
            return i;
    }
    return argc;
}

static bool check_together(const struct gpsh_run_options *o)
{
    const struct gpsh_command_line line = {.program = program_name};
    if (o->n_pes > GPSH_RUN_MAX_PES)
        return gpsh_options_complain(&line, "%d PEs are more than %d", o->n_pes, GPSH_RUN_MAX_PES);
    if (o->n_nodes > o->n_pes)
        return gpsh_options_complain(&line, "--nodes %d is more than the %d PE%s of -n", o->n_nodes,
                                     o->n_pes, o->n_pes == 1 ? "" : "s");
    if (o->cores && o->bind != GPSH_BIND_CORE)
        return gpsh_options_complain(&line, "--cores %d needs --bind core", o->cores);
    if (o->output_file && o->tag_output)
        return gpsh_options_complain(
            &line, "--tag-output and --output-filename exclude each other: a file has one PE");
    return true;
}

bool gpsh_run_options_parse(struct gpsh_run_options *o, int argc, char **argv, int *exit_status)
{
    const struct gpsh_command_line line = {.program = program_name};
    *o = (struct gpsh_run_options){.n_nodes = 1,
                                   .grace_s = 2,
                                   .bind = GPSH_BIND_UNSET,
                                   .on_failure = GPSH_RUN_ON_FAILURE_UNSET};
    *exit_status = GPSH_OPTIONS_EXIT_USAGE;
    while (argc > 0) {
        int end = app_end(argc, argv);
        if (o->n_apps == GPSH_RUN_MAX_APPS)
            return gpsh_options_complain(&line, "more than %d programs", GPSH_RUN_MAX_APPS);
        argv[end] = NULL; // where the ":" was, or NULL anyway
        if (!parse_app(o, end, argv, exit_status))
            return false;
        argv += end;
        argc -= end;
    }
    return check_together(o);
}

const struct gpsh_run_app *gpsh_run_app_of(const struct gpsh_run_options *o, int pe)
{
    const struct gpsh_run_app *app = o->apps;
    for (; pe >= app->n_pes; app++)
        pe -= app->n_pes;
    return app;
}
