// SPDX-License-Identifier: BSD-3-Clause
// `gpushmem stat`: looks at running jobs of this user on this host, without stopping them.
#define _GNU_SOURCE // kill
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "commands.h"
#include "core/clock.h"
#include "gpushmem/gpushmem.h"
#include "observe/hang_report.h"
#include "options.h"
#include "say.h"
#include "table.h"

// Which PEs are wanted: those of one job.
struct selection {
    char job[sizeof((struct gpsh_board *)0)->job];
    int pid; // of a PE, or of its launcher
};

static bool is_named(const struct gpsh_board *board, pid_t pid, const void *selection)
{
    const struct selection *s = selection;
    return (int)pid == s->pid || board->run_pid == s->pid;
}

static bool parse_pid(const char *text, int *pid)
{
    char *end;
    errno = 0;
    long number = strtol(text, &end, 10);
    *pid = (int)number;
    return isdigit((unsigned char)text[0]) && !*end && !errno && number > 0 && number < 1 << 30;
}

// Root may send signals to everybody, and nevertheless finds its own PEs only.
static bool is_foreign(int pid)
{
    char path[32];
    struct stat st;
    snprintf(path, sizeof path, "/proc/%d", pid);
    return (kill(pid, 0) < 0 && errno == EPERM) || (stat(path, &st) == 0 && st.st_uid != geteuid());
}

static bool complain_nothing(const char *operand, const struct gpsh_boards *boards)
{
    int pid;
    if (boards->others)
        gpsh_cli_say("stat",
                     "'%s': its PEs have another version of gpushmem; use the program "
                     "`gpushmem` that belongs to it",
                     operand);
    else if (!parse_pid(operand, &pid))
        gpsh_cli_say("stat",
                     "no running job of this user on this host is called '%s'; give the process "
                     "number of a PE or of its `gpushmem run`",
                     operand);
    else if (is_foreign(pid))
        gpsh_cli_say("stat", "process %d belongs to another user, who alone may look at it", pid);
    else if (kill(pid, 0) < 0)
        gpsh_cli_say("stat", "there is no process %d on this host", pid);
    else
        gpsh_cli_say("stat",
                     "process %d is no PE between init and finalize, and has started none with "
                     "`gpushmem run`",
                     pid);
    return false;
}

// All PEs on this host of the job that the operand names. False after a sentence.
static bool find_job(const char *operand, struct gpsh_boards *boards)
{
    struct selection s = {.pid = -1};
    int status;
    snprintf(s.job, sizeof s.job, "%s", operand);
    if (parse_pid(operand, &s.pid)) {
        status = gpsh_boards_read(boards, is_named, &s);
        if (!status && boards->n == 0)
            return complain_nothing(operand, boards);
        snprintf(s.job, sizeof s.job, "%s", boards->n ? boards->list[0].board->job : "");
        gpsh_boards_free(boards);
    }
    status = gpsh_boards_read(boards, gpsh_board_is_of_job, s.job);
    if (status)
        return !gpsh_cli_fail("stat");
    return boards->n > 0 || complain_nothing(operand, boards);
}

// ---- Waits ----

static void print_wait(struct gpsh_table *table, const struct gpsh_board *board)
{
    const struct gpsh_wait_record *wait = gpsh_board_longest_wait(board);
    gpsh_table_add(table, "%d", board->pe);
    if (wait) {
        gpsh_table_add(table, "%.0f s", (double)(gpsh_clock_ns() - wait->since_ns) * 1e-9);
        gpsh_table_add(table, "%s", wait->what);
        gpsh_table_add(table, "waiting%s", wait->text);
    } else {
        gpsh_table_add_words(table, "-|-|in no wait of a second or longer");
    }
}

static int print_waits(const struct gpsh_boards *boards)
{
    char text[GPSH_HANG_REPORT_BYTES];
    int n = boards->list[0].board->n_pes;
    struct gpsh_table table = {.columns = 4};
    struct gpsh_pe_view *views = calloc((size_t)n, sizeof *views);
    gpsh_table_add_words(&table, "PE|for|in|what");
    for (int i = 0; i < boards->n; i++)
        print_wait(&table, boards->list[i].board);
    gpsh_table_print(&table);
    if (views)
        gpsh_views_set(views, n, boards);
    if (views && gpsh_hang_report(views, n, text, sizeof text))
        printf("\n%s\n", text);
    free(views);
    return 0;
}

// ---- Counters ----

// The numbers of a row, each with its names.
static const struct counter {
    const char *column;
    const char *metric; // of Prometheus
    const char *help;
    size_t offset;
    bool gauge;
} counters[] = {
#define COUNTER(field) offsetof(struct gpushmem_counters, field)
    {"operations", "operations_total", "operations accepted, or commands of kernels read",
     COUNTER(operations), false},
    {"completed", "completed_total", "of them complete", COUNTER(completed), false},
    {"bytes", "bytes_total", "bytes of payload that the operations move", COUNTER(bytes), false},
    {"posts", "posts_total", "operations that the commands of a ring became", COUNTER(posts),
     false},
    {"retries", "retries_total", "times there was no room for an operation", COUNTER(retries),
     false},
    {"batches", "batches_total", "passes over a ring that read something", COUNTER(batches), false},
    {"stalls", "stalls_total", "passes over a ring that ended for want of room", COUNTER(stalls),
     false},
    {"errors", "errors_total", "commands that failed", COUNTER(errors), false},
    {"peak", "peak_under_way", "most operations or commands under way at once", COUNTER(peak),
     true},
    {"reconnects", "reconnects_total", "times a connection closed for others was made again",
     COUNTER(reconnects), false},
#undef COUNTER
};
enum { N_COUNTERS = sizeof counters / sizeof counters[0] };

static uint64_t *number(struct gpushmem_counters *row, int i)
{
    return (uint64_t *)(void *)((char *)row + counters[i].offset);
}

static bool next_row(const struct gpsh_board *board, uint64_t *position,
                     struct gpushmem_counters *row)
{
    return gpsh_sheet_next(&board->sheet, board, position, row);
}

static bool alike(const struct gpushmem_counters *a, const struct gpushmem_counters *b)
{
    return a->kind == b->kind && a->number == b->number && !strcmp(a->transport, b->transport);
}

// The next row, with those of the same queues towards further PEs added: they follow each other.
static bool next_sum(const struct gpsh_board *board, uint64_t *position,
                     struct gpushmem_counters *sum)
{
    struct gpushmem_counters row;
    if (!next_row(board, position, sum))
        return false;
    for (uint64_t ahead = *position; next_row(board, &ahead, &row) && alike(sum, &row);
         *position = ahead) {
        sum->pe = -1;
        for (int i = 0; i < N_COUNTERS; i++) {
            uint64_t more = *number(&row, i), *so_far = number(sum, i);
            *so_far = !counters[i].gauge ? *so_far + more : more > *so_far ? more : *so_far;
        }
    }
    return true;
}

// What the row has counted in an earlier copy of its board.
static uint64_t operations_before(const struct gpsh_board *board,
                                  const struct gpushmem_counters *row, bool peers)
{
    struct gpushmem_counters then;
    uint64_t position = 0, found = 0;
    while (next_row(board, &position, &then))
        if (alike(&then, row) && (!peers || then.pe == row->pe))
            found += then.operations;
    return found;
}

static void add_row(struct gpsh_table *table, const struct gpsh_board *board,
                    struct gpushmem_counters *row)
{
    bool ring = row->kind == GPUSHMEM_COUNTERS_RING;
    gpsh_table_add(table, "%d", board->pe);
    if (ring)
        gpsh_table_add(table, "ring %d", row->number);
    else
        gpsh_table_add(table, "%s", row->owner);
    gpsh_table_add(table, "%s", ring ? "-" : row->transport);
    gpsh_table_add(table, row->pe < 0 ? "%s" : "%s%d",
                   ring          ? "-"
                   : row->pe < 0 ? "all"
                                 : "",
                   row->pe);
    for (int i = 0; i < N_COUNTERS; i++)
        gpsh_table_add(table, "%" PRIu64, *number(row, i));
}

// A row for each ring and each set of queues, over all peers or, with `peers`, for each. `before`:
// the same boards `seconds` ago, for a column of operations per second; NULL: none.
static void print_table(const struct gpsh_boards *boards, bool peers,
                        const struct gpsh_boards *before, double seconds)
{
    struct gpsh_table table = {.columns = 4 + N_COUNTERS + (before != NULL)};
    gpsh_table_add_words(&table, "PE|of|by|to PE");
    for (int i = 0; i < N_COUNTERS; i++)
        gpsh_table_add(&table, "%s", counters[i].column);
    if (before)
        gpsh_table_add(&table, "operations/s");
    for (int i = 0; i < boards->n; i++) {
        struct gpushmem_counters row;
        const struct gpsh_board *board = boards->list[i].board;
        for (uint64_t at = 0; peers ? next_row(board, &at, &row) : next_sum(board, &at, &row);) {
            add_row(&table, board, &row);
            if (!before)
                continue;
            uint64_t then = operations_before(before->list[i].board, &row, peers);
            gpsh_table_add(&table, "%.0f", (double)(row.operations - then) / seconds);
        }
    }
    gpsh_table_print(&table);
}

// In the text format of Prometheus.
static void print_label(const char *name, const char *value, const char *before)
{
    printf("%s%s=\"", before, name);
    for (const char *c = value; *c; c++) {
        if (*c == '\\' || *c == '"')
            putchar('\\');
        if (*c == '\n')
            fputs("\\n", stdout);
        else
            putchar(*c);
    }
    putchar('"');
}

static void print_sample(const struct counter *counter, const struct gpsh_board *board,
                         const struct gpushmem_counters *row, uint64_t value)
{
    char text[16];
    printf("gpushmem_%s", counter->metric);
    print_label("job", board->job, "{");
    snprintf(text, sizeof text, "%d", board->pe);
    print_label("pe", text, ",");
    print_label("owner", row->owner, ",");
    snprintf(text, sizeof text, "%d", row->kind == GPUSHMEM_COUNTERS_RING ? row->number : row->pe);
    if (row->kind == GPUSHMEM_COUNTERS_RING) {
        print_label("ring", text, ",");
    } else {
        print_label("transport", row->transport, ",");
        print_label("peer", text, ",");
    }
    printf("} %" PRIu64 "\n", value);
}

static void print_metric(const struct gpsh_boards *boards, int which)
{
    const struct counter *counter = &counters[which];
    printf("# HELP gpushmem_%s %s\n# TYPE gpushmem_%s %s\n", counter->metric, counter->help,
           counter->metric, counter->gauge ? "gauge" : "counter");
    for (int i = 0; i < boards->n; i++) {
        struct gpushmem_counters row;
        for (uint64_t at = 0; next_row(boards->list[i].board, &at, &row);)
            print_sample(counter, boards->list[i].board, &row, *number(&row, which));
    }
}

static void print_prometheus(const struct gpsh_boards *boards)
{
    for (int i = 0; i < N_COUNTERS; i++)
        print_metric(boards, i);
}

// A second is long enough for rates, and short enough for eyes.
enum { REFRESH_S = 1 };

static struct gpsh_boards copy_of(const struct gpsh_boards *boards)
{
    struct gpsh_boards copy = {.list = calloc((size_t)boards->n, sizeof *copy.list)};
    for (int i = 0; copy.list && i < boards->n; i++) {
        size_t bytes = boards->list[i].board->sheet.bytes;
        copy.list[i] = (struct gpsh_board_copy){.board = malloc(bytes), .fd = -1};
        if (!copy.list[i].board)
            break;
        memcpy(copy.list[i].board, boards->list[i].board, bytes);
        copy.n++;
    }
    return copy;
}

static int count_alive(const struct gpsh_boards *boards)
{
    int alive = 0;
    for (int i = 0; i < boards->n; i++)
        alive += gpsh_boards_alive(boards, i);
    return alive;
}

// Like top: until no PE is left, or somebody presses Ctrl-C.
static int watch_counters(struct gpsh_boards *boards, bool peers)
{
    static const char home_and_clear[] = "\033[H\033[J";
    for (int alive = count_alive(boards); alive > 0; alive = count_alive(boards)) {
        struct gpsh_boards before = copy_of(boards);
        uint64_t then = gpsh_clock_ns();
        sleep(REFRESH_S);
        gpsh_boards_again(boards);
        double seconds = (double)(gpsh_clock_ns() - then) * 1e-9;
        printf("%sjob %s: %d of its %d PEs run on this host\n\n", home_and_clear,
               boards->list[0].board->job, alive, boards->list[0].board->n_pes);
        print_table(boards, peers, before.n == boards->n ? &before : NULL, seconds);
        gpsh_boards_free(&before);
        if (fflush(stdout) != 0)
            return 1;
    }
    return 0;
}

// ---- The command ----

static int print_jobs(void)
{
    struct gpsh_boards boards;
    int status = gpsh_boards_read(&boards, NULL, NULL);
    struct gpsh_table table = {.columns = 4};
    if (status)
        gpsh_cli_fail("stat");
    else if (boards.n == 0)
        gpsh_cli_say("stat", "no PE of this user runs on this host");
    else
        gpsh_table_add_words(&table, "job|PEs here|of|launcher");
    for (int i = 0, first = 0; i < boards.n; i++) {
        const struct gpsh_board *b = boards.list[i].board;
        if (i + 1 < boards.n && !strcmp(boards.list[i + 1].board->job, b->job))
            continue;
        gpsh_table_add(&table, "%s", b->job);
        gpsh_table_add(&table, "%d", i + 1 - first);
        gpsh_table_add(&table, "%d", b->n_pes);
        gpsh_table_add(&table, b->run_pid ? "gpushmem run, process %d" : "-", b->run_pid);
        first = i + 1;
    }
    gpsh_table_print(&table);
    int exit_status = status || boards.n == 0;
    gpsh_boards_free(&boards);
    return exit_status;
}

static bool has_rows(const struct gpsh_boards *boards)
{
    struct gpushmem_counters row;
    for (int i = 0; i < boards->n; i++)
        if (next_row(boards->list[i].board, &(uint64_t){0}, &row))
            return true;
    return false;
}

static void print_once(const struct gpsh_boards *boards, bool peers)
{
    print_table(boards, peers, NULL, 0);
    if (!has_rows(boards) && fflush(stdout) == 0)
        gpsh_cli_say("stat", "no ring and no transport has been used; a job started with "
                             "GPUSHMEM_STATS=1 counts loads and stores on mapped memory, too");
}

struct stat_options {
    bool waits, peers, once, prometheus;
};

static int show_job(const char *operand, const struct stat_options *show)
{
    struct gpsh_boards boards = {0};
    int status = 0;
    if (!find_job(operand, &boards))
        status = 1;
    else if (show->waits)
        status = print_waits(&boards);
    else if (show->prometheus)
        print_prometheus(&boards);
    else if (!show->once && isatty(STDOUT_FILENO))
        status = watch_counters(&boards, show->peers);
    else
        print_once(&boards, show->peers);
    gpsh_boards_free(&boards);
    return status;
}

int gpsh_cmd_stat(int argc, char **argv)
{
    struct stat_options show = {.waits = false};
    const struct gpsh_option options[] = {
        {0, "waits", NULL,
         "what each PE waits for if that has lasted a second, and who is late, in one "
         "sentence",
         .flag = &show.waits},
        {0, "peers", NULL, "a row for each PE that operations go to, instead of one for all",
         .flag = &show.peers},
        {0, "once", NULL, "print and end, also on a terminal, where it is refreshed every second",
         .flag = &show.once},
        {0, "prometheus", NULL, "counters in the text format of Prometheus",
         .flag = &show.prometheus},
        {0},
    };
    const struct gpsh_command_line line = {
        "gpushmem stat",
        "[--waits | --prometheus | [--peers] [--once]] [PID|JOB]\n"
        "Prints, as a table, what rings and transports of each PE have done. It looks at a "
        "running "
        "job without stopping it. PID is the process of one of its PEs or of its `gpushmem run`. "
        "JOB is its name as listed here. Without either it lists the jobs of this user on this "
        "host. PEs on other hosts are not seen: call it there as "
        "well.",
        .options = options};
    int status, operand = gpsh_options_parse(&line, argc, argv, &status);
    if (operand < 0)
        return status;
    if (argc == 1)
        return print_jobs();
    if (show.waits + show.prometheus + (show.peers || show.once) > 1)
        gpsh_options_complain(&line,
                              "only one of --waits, --prometheus, and --peers or --once; see "
                              "gpushmem stat --help");
    else if (operand + 1 != argc)
        gpsh_options_complain(&line,
                              "it takes one job: its name, or the process number of a PE or of its "
                              "`gpushmem run`; `gpushmem stat` alone lists them");
    else
        return show_job(argv[operand], &show);
    return GPSH_OPTIONS_EXIT_USAGE;
}
