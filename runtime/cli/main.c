// SPDX-License-Identifier: BSD-3-Clause
// The program `gpushmem`: a table of subcommands.
#define _GNU_SOURCE // O_CLOEXEC, setenv
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "commands.h"
#include "core/printable.h"
#include "core/spelling.h"
#include "core/standard_streams.h"
#include "gpushmem/types.h"
#include "page.h"

static int cmd_version(int argc, char **argv)
{
    printf("gpushmem %d.%d.%d\n", GPUSHMEM_VERSION_MAJOR, GPUSHMEM_VERSION_MINOR,
           GPUSHMEM_VERSION_PATCH);
    return 0;
}

static int cmd_help(int argc, char **argv);

static const struct {
    const char *name;
    const char *help;
    int (*run)(int argc, char **argv);
} commands[] = {
    {"run", "start a job of several PEs on this machine", gpsh_cmd_run},
    {"info", "print build, devices and settings, or how PEs reach each other", gpsh_cmd_info},
    {"topo", "show how near GPUs, NICs and processors are to each other", gpsh_cmd_topo},
    {"doctor", "say what keeps GPUs and NICs from working, and what to do", gpsh_cmd_doctor},
    {"perf", "measure latency, bandwidth and rates", gpsh_cmd_perf},
    {"stat", "look at a running job: what it has done, what its PEs wait for", gpsh_cmd_stat},
    {"trace", "join the parts of a trace that a job left behind", gpsh_cmd_trace},
    {"version", "print the version", cmd_version},
    {"help", "print this list", cmd_help},
};
enum { N_COMMANDS = sizeof(commands) / sizeof(commands[0]), TEXT_COLUMN = 12 };

static void print_commands(FILE *out)
{
    fprintf(out, "usage: gpushmem COMMAND [arguments]\n\ncommands:\n");
    for (int i = 0; i < N_COMMANDS; i++)
        gpsh_page_help(out, commands[i].help, fprintf(out, "  %-9s ", commands[i].name),
                       TEXT_COLUMN);
    fprintf(out, "\n`gpushmem COMMAND --help` tells more about one of them.\n");
}

// The number of a command, or -1 with a sentence.
static int command_find(const char *name)
{
    char typed[256], ask[GPSH_SPELLING_BYTES];
    struct gpsh_spelling spelling = {.typed = name, .length = strlen(name)};
    for (int i = 0; i < N_COMMANDS; i++) {
        if (strcmp(name, commands[i].name) == 0)
            return i;
        gpsh_spelling_consider(&spelling, commands[i].name, commands[i].name);
    }
    snprintf(typed, sizeof typed, "%s", name);
    gpsh_printable(typed, sizeof typed);
    fprintf(stderr, "gpushmem: unknown command '%s'; %s`gpushmem help` lists the commands\n", typed,
            gpsh_spelling_ask(&spelling, ask));
    return -1;
}

// "help run" is "run --help".
static int cmd_help(int argc, char **argv)
{
    int number = argc > 1 ? command_find(argv[1]) : N_COMMANDS - 1;
    if (number < 0)
        return 2;
    if (commands[number].run != cmd_help)
        return commands[number].run(2, (char *[]){argv[1], "--help", NULL});
    print_commands(stdout);
    return 0;
}

// What was printed may still be on its way to a full disk. `closed`: there was no standard output.
static int output_check(int status, bool closed)
{
    if (fflush(stdout) == 0 && !ferror(stdout))
        return status;
    fprintf(stderr, "gpushmem: cannot write the output: %s\n",
            closed ? "standard output is closed" : strerror(errno));
    return status ? status : 1;
}

// Takes the place of a closed standard output, so that writing to it still fails, here and in the
// benchmark that this program may become.
static void output_refuse(void)
{
    int unwritable = open("/dev/null", O_RDONLY | O_CLOEXEC);
    dup2(unwritable, STDOUT_FILENO);
    close(unwritable);
}

static int command_run(int number, int argc, char **argv, bool closed)
{
    int (*run)(int argc, char **argv) = commands[number].run;
    // What hwloc cannot find these say themselves, if it matters; what hwloc prints is for its
    // authors. PEs have their own environment.
    if (run == gpsh_cmd_info || run == gpsh_cmd_topo || run == gpsh_cmd_doctor)
        setenv("HWLOC_HIDE_ERRORS", "2", 0);
    // PEs that nobody reads may print
    if (closed && run != gpsh_cmd_run)
        output_refuse();
    return output_check(run(argc, argv), closed);
}

int main(int argc, char **argv)
{
    bool closed = fcntl(STDOUT_FILENO, F_GETFD) < 0;
    if (gpsh_standard_streams_open() != 0)
        return 1; // and nowhere to say why
    if (argc < 2) {
        print_commands(stderr);
        return 2;
    }
    const char *name = argv[1];
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0)
        name = "help";
    if (strcmp(name, "--version") == 0 || strcmp(name, "-V") == 0)
        name = "version";
    int number = command_find(name);
    return number < 0 ? 2 : command_run(number, argc - 1, argv + 1, closed);
}
