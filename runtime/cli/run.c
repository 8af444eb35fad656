// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE // SIGWINCH
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bind.h"
#include "bootstrap/job_segment.h"
#include "children.h"
#include "commands.h"
#include "core/clock.h"
#include "core/config.h"
#include "job.h"
#include "keeper.h"
#include "lines.h"
#include "log_merge.h"
#include "say.h"
#include "streams.h"

enum { EXIT_INTERNAL = 1, EXIT_NOT_EXECUTABLE = 126, MOST_BESIDE_STREAMS = 8 };

// Arrays are as long as the largest job: what is not used takes no memory.
static struct launcher {
    struct gpsh_run_options options;
    struct gpsh_job job;
    struct gpsh_child pes[GPSH_RUN_MAX_PES];
    struct gpsh_keeper keeper;
    struct gpsh_sink sinks[2]; // standard output, standard error
    bool one_sink;             // both are the same: the first is used
    struct gpsh_stream streams[2 * GPSH_RUN_MAX_PES];
    int n_streams; // 2 * n_pes with --tag-output, else 0
    struct gpsh_input input;
    struct gpsh_terminal terminal;
    struct gpsh_lines lines;
    int pe_ends[GPSH_RUN_MAX_PES]; // of the lines, until the PEs are started
    struct gpsh_log_merge log;     // what the library says in the PEs
    struct gpsh_child_plan plans[GPSH_RUN_MAX_PES];
    int segment;     // the file of job.segment
    cpu_set_t *cpus; // [n_pes] with --bind, else NULL
    sigset_t old_signals;
    int signal_fd;
    int n_awaited;
    struct pollfd polls[MOST_BESIDE_STREAMS + 2 * GPSH_RUN_MAX_PES];
    struct {
        void (*ready)(struct launcher *l, int i);
        int i;
    } awaited[MOST_BESIDE_STREAMS + 2 * GPSH_RUN_MAX_PES]; // of `polls`
} self;

static const int forwarded_signals[] = {SIGINT,  SIGTERM, SIGHUP,  SIGQUIT, SIGUSR1,
                                        SIGUSR2, SIGCONT, SIGTSTP, SIGWINCH};

// Before any thread exists, so that all of them inherit the mask. A signal that is ignored (nohup,
// a shell's background job) stays ignored, here and in the PEs.
static int take_signals(struct launcher *l)
{
    sigset_t taken;
    sigemptyset(&taken);
    sigaddset(&taken, SIGCHLD);
    signal(SIGCHLD, SIG_DFL);
    for (size_t i = 0; i < sizeof(forwarded_signals) / sizeof(forwarded_signals[0]); i++) {
        struct sigaction old;
        if (sigaction(forwarded_signals[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN)
            sigaddset(&taken, forwarded_signals[i]);
    }
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN); // a write beyond `ulimit -f` fails, and is told
    sigprocmask(SIG_BLOCK, &taken, &l->old_signals);
    l->signal_fd = signalfd(-1, &taken, SFD_CLOEXEC | SFD_NONBLOCK);
    return l->signal_fd < 0 ? errno : 0;
}

// By the variable of that name or a settings file. What is wrong with either the PEs tell.
static bool library_notifies(const char *name)
{
    struct gpsh_settings settings;
    if (gpsh_settings_read_quietly(name, &settings))
        return false;
    bool notifies = settings.on_pe_failure == GPSH_ON_FAILURE_NOTIFY;
    gpsh_settings_clear(&settings);
    return notifies;
}

// Launcher and library must want the same when a PE dies: what one was told, the other follows.
static int agree_on_failure(struct gpsh_run_options *o)
{
    static const char name[] = "GPUSHMEM_ON_PE_FAILURE";
    if (o->on_failure == GPSH_RUN_ON_FAILURE_UNSET)
        o->on_failure =
            library_notifies(name) ? GPSH_RUN_ON_FAILURE_CONTINUE : GPSH_RUN_ON_FAILURE_ABORT;
    else if (o->on_failure == GPSH_RUN_ON_FAILURE_CONTINUE && !getenv(name))
        return setenv(name, "notify", 0) == 0 ? 0 : errno;
    return 0;
}

// -x comes on top of what is inherited.
static int prepare_environment(struct launcher *l)
{
    // What an outer launcher has said of this process must not be taken for the PEs'.
    static const char *const outer[] = {"PMIX_", "PMI_", "GPUSHMEM_RUN_", NULL};
    char size[16], pid[16];
    gpsh_environment_drop(outer);
    for (char **x = l->options.settings; x && *x; x++) {
        if (putenv(*x) != 0)
            return errno;
    }
    snprintf(size, sizeof(size), "%d", l->options.n_pes);
    snprintf(pid, sizeof(pid), "%d", (int)getpid());
    if (setenv("GPUSHMEM_RUN_SIZE", size, 1) != 0 || setenv("GPUSHMEM_RUN_PID", pid, 1) != 0)
        return errno;
    return agree_on_failure(&l->options);
}

// Lines, pipes and, while they are handed on, the memory of many PEs exceed the usual soft limit of
// 1024 descriptors.
static int descriptors_for(int n_pes)
{
    return n_pes * 10 + 128;
}

static void raise_descriptor_limit(int n_pes)
{
    struct rlimit limit;
    rlim_t wanted = (rlim_t)descriptors_for(n_pes);
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < wanted) {
        limit.rlim_cur = wanted < limit.rlim_max ? wanted : limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
}

// Of standard output (0) or standard error (1).
static struct gpsh_sink *sink_of(struct launcher *l, int i)
{
    return &l->sinks[l->one_sink ? 0 : i];
}

// Nobody may read it: the launcher waits for that at its end only.
static void line_print(const char *line, size_t bytes, void *launcher)
{
    gpsh_sink_add(sink_of(launcher, 1), line, bytes);
}

static void log_print(struct launcher *l)
{
    gpsh_log_merge_print(&l->log, line_print, l);
}

static void on_line(int pe, const struct gpsh_line_message *message, const char *text,
                    void *launcher)
{
    struct launcher *l = launcher;
    if (message->word == GPSH_LINE_LOG)
        gpsh_log_merge_add(&l->log, pe, text);
    else if (message->word == GPSH_LINE_CALL)
        gpsh_job_on_call(&l->job);
    else if (message->word == GPSH_LINE_ABORT)
        gpsh_job_on_abort(&l->job, pe, message->a, text);
    else if (message->word == GPSH_LINE_RESULT)
        l->job.pes[pe].result = message->a;
    if (l->log.n == GPSH_LOG_MERGE_MOST)
        log_print(l);
}

// Prints a line of the launcher after all that the PEs have said so far, and never inside one of
// their lines. It waits with those: more PEs may be about to say the same.
static void say_in_turn(const char *line, size_t bytes, void *launcher)
{
    struct launcher *l = launcher;
    bool waits = gpsh_log_merge_add_own(&l->log, line, bytes);
    if (!waits || l->log.n == GPSH_LOG_MERGE_MOST)
        log_print(l);
    if (!waits)
        line_print(line, bytes, l);
}

// What to do about an error that a limit of the user or shell has caused.
static const char *hint(const struct launcher *l, int error)
{
    static char files[96];
    if (error == EAGAIN)
        return " (no process more for this user: raise the limit, ulimit -u)";
    if (error == EFBIG)
        return " (the limit of file sizes is low: raise it, ulimit -f)";
    if (error != EMFILE)
        return "";
    snprintf(files, sizeof(files), " (%d PE%s need%s up to %d: raise the limit, ulimit -n)",
             l->options.n_pes, l->options.n_pes == 1 ? "" : "s", l->options.n_pes == 1 ? "s" : "",
             descriptors_for(l->options.n_pes));
    return files;
}

// "cannot ...: why (what to do)". Returns the exit status.
__attribute__((format(printf, 3, 4))) static int refuse(const struct launcher *l, int error,
                                                        const char *format, ...)
{
    char what[PATH_MAX + 64];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof(what), format, args);
    va_end(args);
    gpsh_cli_say("run", "cannot %s: %s%s", what, strerror(error), hint(l, error));
    return EXIT_INTERNAL;
}

// The file of a PE with --output-filename. -1 after a message.
static int output_file_open(const struct launcher *l, int pe)
{
    char name[PATH_MAX];
    snprintf(name, sizeof(name), "%s.%d", l->options.output_file, pe);
    int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0666);
    if (fd < 0)
        refuse(l, errno, "write %s (--output-filename)", name);
    return fd;
}

// Where a PE writes, for the launcher to close after the start. False after a message.
static bool outputs_open(struct launcher *l, int pe, int stdio[3])
{
    if (pe == 0 && l->options.terminal) {
        stdio[1] = gpsh_terminal_open(&l->terminal);
        if (stdio[1] < 0)
            return !refuse(l, errno, "make a terminal (--pty)");
        gpsh_input_to_terminal(&l->input, l->terminal.master);
        stdio[0] = stdio[2] = stdio[1];
        return true;
    }
    if (l->options.output_file) {
        stdio[1] = output_file_open(l, pe);
        stdio[2] = stdio[1] < 0 ? -1 : fcntl(stdio[1], F_DUPFD_CLOEXEC, 0);
        return stdio[2] >= 0;
    }
    for (int i = 0; i < 2 && l->n_streams; i++) {
        stdio[1 + i] = gpsh_stream_open(&l->streams[2 * pe + i], pe, sink_of(l, i));
        if (stdio[1 + i] < 0)
            return !refuse(l, errno, "make a pipe for PE %d", pe);
    }
    return true;
}

static void outputs_close(const int stdio[3])
{
    for (int fd = 1; fd < 3; fd++) {
        if (stdio[fd] > STDERR_FILENO && (fd == 1 || stdio[fd] != stdio[1]))
            close(stdio[fd]);
    }
}

// What the error means for a file that is there and executable.
static const char *program_hint(const struct launcher *l, int error)
{
    if (error == ENOENT)
        return " (the interpreter or loader that it names is missing)";
    if (error == ENOEXEC)
        return " (neither a program for this machine nor a script that begins with #!)";
    return hint(l, error);
}

static bool is_bound(const struct launcher *l, int pe)
{
    return l->cpus && CPU_COUNT(&l->cpus[pe]) > 0;
}

// Opens all that PE `pe` is to have. False after a message.
static bool plan_one(struct launcher *l, int pe, int input)
{
    const struct gpsh_run_app *app = gpsh_run_app_of(&l->options, pe);
    struct gpsh_child_plan *plan = &l->plans[pe];
    int n_pes = l->options.n_pes, n_nodes = l->options.n_nodes;
    int node = gpsh_job_node_of(pe, n_pes, n_nodes),
        first = gpsh_job_first_pe(node, n_pes, n_nodes);
    int local_size = gpsh_job_first_pe(node + 1, n_pes, n_nodes) - first;
    *plan = (struct gpsh_child_plan){.path = app->path,
                                     .directory = app->directory,
                                     .argv = app->program,
                                     .stdio = {input, STDOUT_FILENO, STDERR_FILENO},
                                     .segment = l->segment,
                                     .line = l->pe_ends[pe],
                                     .says_by_line = !l->options.output_file,
                                     .terminal = pe == 0 && l->options.terminal,
                                     .cpus = is_bound(l, pe) ? &l->cpus[pe] : NULL,
                                     .signals = &l->old_signals,
                                     .settings = {{"GPUSHMEM_RUN_PE", pe},
                                                  {"GPUSHMEM_RUN_SIZE", n_pes},
                                                  {"GPUSHMEM_RUN_LOCAL_PE", pe - first},
                                                  {"GPUSHMEM_RUN_LOCAL_SIZE", local_size}}};
    return outputs_open(l, pe, plan->stdio);
}

// In the keeper. What it kept open would seem open to PEs.
static void forget_own_ends(void *launcher)
{
    struct launcher *l = launcher;
    for (int i = 0; i < l->n_streams; i++)
        if (l->streams[i].fd >= 0)
            close(l->streams[i].fd);
    for (int pe = 0; pe < l->lines.n_pes; pe++)
        close(l->lines.lines[pe].fd);
    if (l->terminal.master >= 0)
        close(l->terminal.master);
    gpsh_input_close(&l->input);
    for (int i = 0; i < 2; i++)
        gpsh_sink_close(&l->sinks[i]);
    close(l->lines.epoll);
    close(l->signal_fd);
}

static void report_binding(const struct launcher *l, int pe)
{
    char cpus[512];
    int pid = (int)l->job.pes[pe].pid;
    if (is_bound(l, pe)) {
        gpsh_bind_print(&l->cpus[pe], cpus, sizeof(cpus));
        gpsh_cli_say("run", "PE %d (pid %d) runs on processors %s", pe, pid, cpus);
    } else {
        gpsh_cli_say("run", "PE %d (pid %d) is not pinned: %s", pe, pid,
                     l->options.bind == GPSH_BIND_NONE ? "--bind none"
                     : l->options.n_pes == 1           ? "all processors are its own"
                     : !l->cpus                        ? "there was no memory for a plan"
                     : l->options.bind == GPSH_BIND_SHARE
                         ? "there are more PEs than cores"
                         : "there are fewer than two cores for each PE (--bind share)");
    }
}

// 0, or the exit status after a message.
static int await_start(struct launcher *l)
{
    for (int n = 0; n < l->job.n_pes; n++) {
        int pe, error = gpsh_keeper_started(&l->keeper, &pe);
        if (l->keeper.lost) // the main loop notices
            return 0;
        if (error) {
            const char *path = l->plans[pe].path;
            gpsh_cli_say("run", "cannot start '%s' as PE %d: %s%s", path, pe, strerror(error),
                         program_hint(l, error));
            return error == ENOENT || error == ENOEXEC || error == EACCES ? EXIT_NOT_EXECUTABLE
                                                                          : EXIT_INTERNAL;
        }
        if (l->options.report_bindings)
            report_binding(l, pe);
    }
    return 0;
}

static bool plan_all(struct launcher *l, int first_input, int null)
{
    for (int pe = 0; pe < l->job.n_pes; pe++)
        if (!plan_one(l, pe, pe == 0 ? first_input : null))
            return false;
    return true;
}

// 0, or the exit status after a message.
static int start_all(struct launcher *l)
{
    int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (null < 0)
        return refuse(l, errno, "read /dev/null, which is the input of PEs");
    int copied = l->options.terminal ? -1 : gpsh_input_open(&l->input);
    int status = EXIT_INTERNAL, planned = 0;
    if (plan_all(l, copied >= 0 ? copied : STDIN_FILENO, null)) {
        planned = l->job.n_pes;
        int error =
            gpsh_keeper_start(&l->keeper, l->plans, l->job.pes, l->job.n_pes, forget_own_ends, l);
        if (error)
            refuse(l, error, "start a process");
        else
            status = 0;
    }
    for (int pe = 0; pe < planned; pe++)
        outputs_close(l->plans[pe].stdio);
    if (copied >= 0)
        close(copied);
    close(null);
    return status ? status : await_start(l);
}

static void read_signals(struct launcher *l)
{
    struct signalfd_siginfo info;
    while (read(l->signal_fd, &info, sizeof(info)) == sizeof(info)) {
        if (info.ssi_signo == SIGWINCH)
            gpsh_terminal_resize(&l->terminal);
        if (info.ssi_signo != SIGCHLD) {
            gpsh_job_on_signal(&l->job, (int)info.ssi_signo);
            continue;
        }
        // No child of ours belongs to the job; some were there before exec, and process 1 gets
        // every orphan.
        while (waitpid(-1, NULL, WNOHANG) > 0)
            continue;
    }
}

// PEs whose words nobody reads wait, as on a pipe.
static bool lines_wanted(struct launcher *l)
{
    return gpsh_sink_has_room(sink_of(l, 1));
}

static void read_lines(struct launcher *l)
{
    char why[192];
    gpsh_lines_read(&l->lines, on_line, l);
    if (!l->lines.no_room)
        return;
    snprintf(why, sizeof(why), "cannot hand on the memory of PEs: %s%s", strerror(EMFILE),
             hint(l, EMFILE));
    gpsh_job_on_own_failure(&l->job, why);
}

static void read_keeper(struct launcher *l)
{
    gpsh_keeper_read(&l->keeper);
    // What a PE has said before it ended is here by now, and comes first.
    if (lines_wanted(l))
        read_lines(l);
    for (int pe = 0; pe < l->job.n_pes; pe++)
        if (l->job.pes[pe].ended && l->job.pes[pe].running)
            gpsh_lines_forget(&l->lines, pe);
    gpsh_job_on_child_stops(&l->job);
    gpsh_job_on_child_ends(&l->job);
    if (l->keeper.lost)
        gpsh_job_on_keeper_lost(&l->job);
}

static void stream_ready(struct launcher *l, int i)
{
    gpsh_stream_read(&l->streams[i]);
}

static void sink_ready(struct launcher *l, int i)
{
    gpsh_sink_write(&l->sinks[i]);
}

static void terminal_ready(struct launcher *l, int unused)
{
    gpsh_terminal_read(&l->terminal, &l->sinks[0]);
    if (l->terminal.master < 0)
        gpsh_input_close(&l->input);
}

static void input_ready(struct launcher *l, int unused)
{
    gpsh_input_step(&l->input);
}

// What is awaited in this pass of the loop; `ready` NULL: it is looked at in every pass.
static void await(struct launcher *l, int fd, short events,
                  void (*ready)(struct launcher *l, int i), int i)
{
    if (fd < 0)
        return;
    l->polls[l->n_awaited] = (struct pollfd){.fd = fd, .events = events};
    l->awaited[l->n_awaited].ready = ready;
    l->awaited[l->n_awaited++].i = i;
}

static void await_all(struct launcher *l)
{
    struct pollfd input = gpsh_input_wants(&l->input);
    l->n_awaited = 0;
    for (int i = 0; i < l->n_streams; i++)
        if (gpsh_stream_wanted(&l->streams[i]))
            await(l, l->streams[i].fd, POLLIN, stream_ready, i);
    for (int i = 0; i < 2; i++)
        if (gpsh_sink_pending(&l->sinks[i]))
            await(l, l->sinks[i].fd, POLLOUT, sink_ready, i);
    if (gpsh_sink_has_room(&l->sinks[0]))
        await(l, l->terminal.master, POLLIN, terminal_ready, 0);
    await(l, input.fd, input.events, input_ready, 0);
    await(l, l->signal_fd, POLLIN, NULL, 0);
    await(l, l->keeper.socket, POLLIN, NULL, 0);
    if (lines_wanted(l))
        await(l, l->lines.epoll, POLLIN, NULL, 0);
}

// Until the job or a waiting line has something to do, -1: nothing is planned.
static int wait_ms(const struct launcher *l)
{
    double at_s = gpsh_job_due_s(&l->job), line_s = gpsh_log_merge_due_s(&l->log);
    at_s = line_s > 0 && line_s < at_s ? line_s : at_s;
    if (l->lines.refused)
        return 1;
    double wait_ms = ceil((at_s - gpsh_clock_s()) * 1e3);
    return isinf(at_s) ? -1 : wait_ms < 0 ? 0 : wait_ms > 3600e3 ? 3600000 : (int)wait_ms;
}

static void log_print_due(struct launcher *l)
{
    double due_s = gpsh_log_merge_due_s(&l->log);
    if (due_s > 0 && due_s <= gpsh_clock_s())
        log_print(l);
}

static void watch(struct launcher *l)
{
    while (l->job.n_running > 0) {
        await_all(l);
        int ready = poll(l->polls, (nfds_t)l->n_awaited, wait_ms(l));
        for (int i = 0; ready > 0 && i < l->n_awaited; i++)
            if (l->polls[i].revents && l->awaited[i].ready)
                l->awaited[i].ready(l, l->awaited[i].i);
        read_keeper(l);
        log_print_due(l);
        read_signals(l);
        if (gpsh_job_on_time(&l->job))
            gpsh_keeper_wake(&l->keeper);
    }
}

// All PEs have ended. Nothing they started survives them.
static void clean_up(struct launcher *l)
{
    gpsh_keeper_finish(&l->keeper);
    gpsh_input_close(&l->input);
    gpsh_terminal_close(&l->terminal, &l->sinks[0]);
    for (int i = 0; i < l->n_streams; i++)
        gpsh_stream_close(&l->streams[i]);
    // From here on a signal ends the launcher at once: the reader of its output may be stuck.
    sigprocmask(SIG_SETMASK, &l->old_signals, NULL);
    gpsh_lines_read(&l->lines, on_line, l);
    log_print(l);
    gpsh_cli_redirect(NULL, NULL);
    for (int i = 0; i < 2; i++)
        gpsh_sink_flush(&l->sinks[i]);
}

// True if output of the PEs was lost.
static bool output_lost(const struct launcher *l)
{
    int error = l->sinks[0].error ? l->sinks[0].error : l->sinks[1].error;
    if (!l->n_streams && !l->options.terminal)
        return false; // they write it themselves
    if (error)
        gpsh_cli_say("run", "some output of the PEs is lost, it could not be written: %s",
                     strerror(error));
    return error;
}

static void begin(struct launcher *l)
{
    int n = l->options.n_pes;
    l->job = (struct gpsh_job){.options = &l->options, .pes = l->pes, .n_pes = n};
    l->input.to_pe.fd = l->terminal.master = l->keeper.socket = -1;
    l->log.n_pes = n;
    l->one_sink = gpsh_sink_is_shared(STDOUT_FILENO, STDERR_FILENO);
    l->n_streams = l->options.tag_output ? 2 * n : 0;
    for (int i = 0; i < l->n_streams; i++)
        l->streams[i].fd = -1;
    gpsh_sink_open(&l->sinks[0], STDOUT_FILENO);
    gpsh_sink_open(&l->sinks[1], STDERR_FILENO);
}

// What launcher and PEs share. 0, or the exit status after a message.
static int open_job(struct launcher *l)
{
    struct gpsh_run_options *o = &l->options;
    l->job.segment = gpsh_job_segment_create(o->n_pes, o->n_nodes, &l->segment);
    if (!l->job.segment)
        return refuse(l, errno, "make the job's segment");
    int error = gpsh_lines_open(&l->lines, o->n_pes, o->n_nodes, l->pe_ends);
    return error ? refuse(l, error, "make the lines to %d PEs", o->n_pes) : 0;
}

// With signals taken. Returns the exit status.
static int run_job(struct launcher *l)
{
    gpsh_cli_redirect(say_in_turn, l);
    int status = start_all(l);
    for (int pe = 0; pe < l->job.n_pes; pe++)
        close(l->pe_ends[pe]);
    if (status == 0) {
        gpsh_job_begin(&l->job);
        if (l->keeper.lost) { // before the last PE was started
            read_signals(l);  // perhaps for these: then they are the reason
            gpsh_job_on_keeper_lost(&l->job);
        }
        watch(l);
        status = l->job.exit_status;
    }
    clean_up(l);
    gpsh_job_report(&l->job);
    gpsh_trace_join_left(getenv("GPUSHMEM_TRACE"), (int)getpid());
    return output_lost(l) && status == 0 ? EXIT_INTERNAL : status;
}

static int launch(struct launcher *l)
{
    int error = take_signals(l);
    if (!error)
        error = prepare_environment(l);
    if (error)
        return refuse(l, error, "prepare the job");
    raise_descriptor_limit(l->options.n_pes);
    begin(l);
    int status = open_job(l);
    return status ? status : run_job(l);
}

// 0, or the exit status after a message.
static int prepare(struct launcher *l)
{
    struct gpsh_run_options *o = &l->options;
    for (int i = 0; i < o->n_apps; i++) {
        int status;
        o->apps[i].path = gpsh_program_find(o->apps[i].program[0], o->apps[i].directory, &status);
        if (!o->apps[i].path)
            return status;
    }
    bool demanded = o->bind != GPSH_BIND_NONE && o->bind != GPSH_BIND_UNSET;
    if (demanded || (o->bind == GPSH_BIND_UNSET && o->n_pes > 1))
        l->cpus = gpsh_bind_plan(o->bind, o->cores ? o->cores : 1, o->n_pes);
    return demanded && !l->cpus ? EXIT_INTERNAL : 0;
}

int gpsh_cmd_run(int argc, char **argv)
{
    int status;
    if (!gpsh_run_options_parse(&self.options, argc, argv, &status))
        return status;
    status = prepare(&self);
    return status ? status : launch(&self);
}
