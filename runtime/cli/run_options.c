// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE // getopt_long, environ
#include "run_options.h"

#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "commands.h"

static const char usage_text[] =
    "usage: gpushmem run [options] [--] PROGRAM [arguments]\n"
    "Starts a job of several PEs on this machine. For clusters: srun --mpi=pmix, prterun, mpirun.\n\n"
    "  -n, --np N               number of PEs (default 1)\n"
    "  -t, --tag-output         put \"[PE] \" in front of every line of output\n"
    "  -x VAR=VALUE             set a variable for the PEs; may be repeated\n"
    "      --timeout SECONDS    end a job that runs longer, exit status 124\n"
    "      --nodes K            pretend that the PEs are spread over K nodes\n"
    "      --bind none|core     pin each PE to a core of its own (default none)\n"
    "      --on-failure abort|continue\n"
    "                           when a PE dies: end the job, or let the others go on (and set\n"
    "                           GPUSHMEM_ON_PE_FAILURE=notify for them; default: as that variable says)\n"
    "      --grace SECONDS      between asking a PE to end (SIGTERM) and killing it (default 2)\n"
    "  -q, --quiet              no messages of the launcher itself\n"
    "  -h, --help               print this\n\n"
    "PEs inherit the environment. PE 0 reads the standard input, the others read nothing. SIGINT, SIGTERM,\n"
    "SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGCONT, SIGTSTP and SIGWINCH go to every PE; SIGTERM, SIGHUP and a\n"
    "second SIGINT or SIGQUIT also end what still runs after the grace period.\n"
    "Exit status: 0 if all PEs returned 0, else that of the first PE that failed (128 + signal if one "
    "killed\n"
    "it).\n";

enum { OPT_TIMEOUT = 256, OPT_NODES, OPT_BIND, OPT_ON_FAILURE, OPT_GRACE };

static const struct option long_options[] = {
    {"np", required_argument, NULL, 'n'},
    {"tag-output", no_argument, NULL, 't'},
    {"timeout", required_argument, NULL, OPT_TIMEOUT},
    {"nodes", required_argument, NULL, OPT_NODES},
    {"bind", required_argument, NULL, OPT_BIND},
    {"on-failure", required_argument, NULL, OPT_ON_FAILURE},
    {"grace", required_argument, NULL, OPT_GRACE},
    {"quiet", no_argument, NULL, 'q'},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0},
};

static bool parse_count(const char *option, const char *text, int *value)
{
    char *end;
    long n = strtol(text, &end, 10);
    if (end == text || *end != '\0' || n < 1 || n > GPSH_RUN_MAX_PES) {
        gpsh_cli_say("run", "%s '%s' is not a number from 1 to %d", option, text, GPSH_RUN_MAX_PES);
        return false;
    }
    *value = (int)n;
    return true;
}

static bool parse_seconds(const char *option, const char *text, double *value)
{
    char *end;
    double s = strtod(text, &end);
    if (end == text || *end != '\0' || !isfinite(s) || s < 0 || s > 1e7) {
        gpsh_cli_say("run", "%s '%s' is not a number of seconds from 0 to 10000000", option, text);
        return false;
    }
    *value = s;
    return true;
}

// Takes one of two words; *value becomes true for the second.
static bool parse_word(const char *option, const char *text, const char *no, const char *yes, bool *value)
{
    if (strcmp(text, no) != 0 && strcmp(text, yes) != 0) {
        gpsh_cli_say("run", "%s '%s' is neither %s nor %s", option, text, no, yes);
        return false;
    }
    *value = strcmp(text, yes) == 0;
    return true;
}

// -x VAR=VALUE sets; -x VAR alone passes on what the PEs inherit anyway, as other launchers have it.
static bool parse_setting(struct gpsh_run_options *o, char *text)
{
    if (text[0] == '=' || text[0] == '\0') {
        gpsh_cli_say("run", "-x '%s' has no variable name; write -x VAR=VALUE", text);
        return false;
    }
    if (!strchr(text, '=')) {
        if (getenv(text))
            return true;
        gpsh_cli_say("run", "-x %s: that variable is not set here; write -x %s=VALUE", text, text);
        return false;
    }
    int n = 0;
    while (o->settings && o->settings[n])
        n++;
    char **grown = realloc(o->settings, ((size_t)n + 2) * sizeof(*grown));
    if (!grown) {
        gpsh_cli_say("run", "out of memory");
        return false;
    }
    grown[n] = text;
    grown[n + 1] = NULL;
    o->settings = grown;
    return true;
}

static bool parse_on_failure(struct gpsh_run_options *o, const char *text)
{
    bool go_on;
    if (!parse_word("--on-failure", text, "abort", "continue", &go_on))
        return false;
    o->on_failure = go_on ? GPSH_RUN_ON_FAILURE_CONTINUE : GPSH_RUN_ON_FAILURE_ABORT;
    return true;
}

static bool take_option(struct gpsh_run_options *o, int option)
{
    switch (option) {
    case 'n':
        return parse_count("-n", optarg, &o->n_pes);
    case 't':
        o->tag_output = true;
        return true;
    case 'x':
        return parse_setting(o, optarg);
    case 'q':
        o->quiet = true;
        return true;
    case OPT_TIMEOUT:
        return parse_seconds("--timeout", optarg, &o->timeout_s);
    case OPT_GRACE:
        return parse_seconds("--grace", optarg, &o->grace_s);
    case OPT_NODES:
        return parse_count("--nodes", optarg, &o->n_nodes);
    case OPT_BIND:
        return parse_word("--bind", optarg, "none", "core", &o->bind_cores);
    case OPT_ON_FAILURE:
        return parse_on_failure(o, optarg);
    }
    return false;
}

static void explain_unknown(char **argv, int option, int before)
{
    if (option == ':')
        gpsh_cli_say("run", "option '%s' needs a value; see gpushmem run --help", argv[optind - 1]);
    else
        gpsh_cli_say("run", "unknown option '%s'; see gpushmem run --help", argv[before]);
}

bool gpsh_run_options_parse(struct gpsh_run_options *o, int argc, char **argv, int *exit_status)
{
    *o = (struct gpsh_run_options){.n_pes = 1, .n_nodes = 1, .grace_s = 2};
    *exit_status = GPSH_RUN_EXIT_USAGE;
    opterr = 0;
    optind = 1;
    for (;;) {
        int before = optind;
        int option = getopt_long(argc, argv, "+:n:tx:qh", long_options, NULL);
        if (option == -1)
            break;
        if (option == 'h') {
            fputs(usage_text, stdout);
            *exit_status = 0;
            return false;
        }
        if (option == '?' || option == ':') {
            explain_unknown(argv, option, before);
            return false;
        }
        if (!take_option(o, option))
            return false;
    }
    o->program = argv + optind;
    if (!o->program[0]) {
        gpsh_cli_say("run", "no program given; for example: gpushmem run -n 4 ./app");
        return false;
    }
    if (o->n_nodes > o->n_pes) {
        gpsh_cli_say("run", "--nodes %d is more than the %d PE%s of -n", o->n_nodes, o->n_pes,
                     o->n_pes == 1 ? "" : "s");
        return false;
    }
    return true;
}

void gpsh_run_options_release(struct gpsh_run_options *o)
{
    free(o->settings);
    o->settings = NULL;
}
