// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE // SIGWINCH
#include "job.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/printable.h"
#include "observe/hang_report.h"
#include "say.h"

// How long PEs have to print what they wait for, when a job runs into its --timeout.
static const double last_words_s = 0.3;
// How long PEs have to show what they wait for after they were asked, or after the first of them
// has called.
static const double report_after_s = 0.3;
// After SIGKILL, as long as PEs are left: that they have ended must be noticed, too.
static const double kill_again_s = 0.5;
// How long other PEs may go on after one left without finalize before a warning is printed.
static const double left_alone_s = 3;

// "PE" or "3 PEs", to follow "the" or "the other".
static const char *count(char *text, size_t bytes, int n)
{
    if (n == 1)
        return "PE";
    snprintf(text, bytes, "%d PEs", n);
    return text;
}

// Between init and finalize, as the PE has it.
static bool is_joined(const struct gpsh_job *j, int pe)
{
    return atomic_load(&j->segment->pe[pe].state) == GPSH_PE_JOINED;
}

static void signal_all(const struct gpsh_job *j, int signal)
{
    for (int pe = 0; pe < j->n_pes; pe++)
        gpsh_child_signal(&j->pes[pe], signal);
}

// SIGUSR1 asks what a PE is at (observe/status_request.h), most of all of PEs that have not come
// yet.
static void ask_all(struct gpsh_job *j)
{
    for (int pe = 0; pe < j->n_pes; pe++)
        if (j->pes[pe].pid > 0)
            gpsh_children_ask(j->pes[pe].pid, SIGUSR1);
    gpsh_job_on_call(j);
}

static void ask_all_to_end(struct gpsh_job *j, int signal)
{
    signal_all(j, signal);
    signal_all(j, SIGCONT); // a stopped process would not notice
    j->terminate_at_s = 0;
    j->kill_at_s = gpsh_clock_s() + j->options->grace_s;
}

void gpsh_job_begin(struct gpsh_job *j)
{
    j->n_running = 0;
    for (int pe = 0; pe < j->n_pes; pe++)
        j->n_running += j->pes[pe].running;
    if (j->options->timeout_s > 0)
        j->timeout_at_s = gpsh_clock_s() + j->options->timeout_s;
}

static void begin_ending(struct gpsh_job *j, int exit_status, int n_ended)
{
    j->ending = true;
    j->n_ended = n_ended;
    j->exit_status = exit_status;
}

static void end_after_failure(struct gpsh_job *j, int n_ended)
{
    begin_ending(j, j->exit_status, n_ended);
    ask_all_to_end(j, SIGTERM);
}

static bool ended_by_forwarded_signal(const struct gpsh_job *j, const struct gpsh_child *c)
{
    return c->how != CLD_EXITED && c->status == j->forwarded;
}

// A frequent mistake: the heap is unmapped then.
static bool fell_after_finalize(const struct gpsh_job *j, int pe)
{
    const struct gpsh_child *c = &j->pes[pe];
    return c->how != CLD_EXITED && (c->status == SIGSEGV || c->status == SIGBUS) &&
           atomic_load(&j->segment->pe[pe].state) == GPSH_PE_LEFT;
}

static void describe_failure(const struct gpsh_job *j, int pe, char *text, size_t bytes)
{
    char how[128];
    const struct gpsh_child *c = &j->pes[pe];
    gpsh_child_describe(c, how, sizeof(how));
    if (ended_by_forwarded_signal(j, c))
        snprintf(text, bytes, "the job ended on signal %d (%s)", c->status, strsignal(c->status));
    else
        snprintf(text, bytes, "PE %d (pid %d) %s%s", pe, (int)c->pid, how,
                 fell_after_finalize(j, pe)
                     ? " after gpushmem_finalize, when symmetric memory is gone: read what is "
                       "needed of it before"
                     : "");
}

// The other PEs hear of it.
static void tell_death(struct gpsh_job *j, int pe)
{
    char how[64], reason[96];
    gpsh_child_describe(&j->pes[pe], how, sizeof(how));
    snprintf(reason, sizeof(reason), "its process %s", how);
    gpsh_job_segment_tell_death(j->segment, j->n_pes, pe, reason);
}

static void on_failure(struct gpsh_job *j, int pe)
{
    char what[256];
    if (j->ending)
        return;
    j->n_failed++;
    describe_failure(j, pe, what, sizeof(what));
    if (j->n_running > 0)
        tell_death(j, pe);
    if (j->n_failed == 1) {
        j->exit_status = gpsh_child_exit_status(&j->pes[pe]);
        snprintf(j->reason, sizeof(j->reason), "%s", what);
    }
    if (j->options->on_failure != GPSH_RUN_ON_FAILURE_CONTINUE)
        end_after_failure(j, ended_by_forwarded_signal(j, &j->pes[pe]) ? 0 : j->n_running);
}

// With --on-failure continue: PE `pe` has failed, and `more` at the same time.
static void say_who_goes_on(const struct gpsh_job *j, int pe, int more)
{
    char what[256], others[64] = "", n[32];
    if (j->ending || j->options->quiet || j->n_running == 0)
        return;
    describe_failure(j, pe, what, sizeof(what));
    if (more > 0)
        snprintf(others, sizeof(others), ", and %d more failed", more);
    gpsh_cli_say("run", "%s%s; the other %s still run%s", what, others,
                 count(n, sizeof(n), j->n_running), j->n_running == 1 ? "s" : "");
}

void gpsh_job_on_child_ends(struct gpsh_job *j)
{
    // If several ended at once, one that a signal killed is more likely the cause than one that
    // gave up.
    int worst = -1;
    bool ended[GPSH_RUN_MAX_PES] = {false};
    for (int pe = 0; pe < j->n_pes; pe++) {
        struct gpsh_child *c = &j->pes[pe];
        ended[pe] = c->running && c->ended;
        if (!ended[pe])
            continue;
        c->running = false;
        j->n_running--;
        if (gpsh_child_failed(c)) {
            if (worst < 0 || (c->how != CLD_EXITED && j->pes[worst].how == CLD_EXITED))
                worst = pe;
            continue;
        }
        if (j->exit_status == 0 && !j->ending)
            j->exit_status = c->status;
        if (is_joined(j, pe) && j->warn_at_s == 0) {
            j->left = pe;
            j->warn_at_s = gpsh_clock_s() + left_alone_s;
        }
    }
    if (worst < 0)
        return;
    int more = 0;
    on_failure(j, worst);
    for (int pe = 0; pe < j->n_pes; pe++) {
        if (!ended[pe] || pe == worst || !gpsh_child_failed(&j->pes[pe]))
            continue;
        on_failure(j, pe);
        more++;
    }
    say_who_goes_on(j, worst, more);
}

// A stopped PE stops the job without a word, unless it is said. `kill -STOP`, a debugger and
// reading from a terminal do that.
void gpsh_job_on_child_stops(struct gpsh_job *j)
{
    for (int pe = 0; pe < j->n_pes; pe++) {
        struct gpsh_child *c = &j->pes[pe];
        if (c->stopped_by && c->running && !c->stop_expected && !j->ending && !j->options->quiet)
            gpsh_cli_say("run",
                         "PE %d (pid %d) was stopped by signal %d (%s); kill -CONT %d lets "
                         "it go on",
                         pe, (int)c->pid, c->stopped_by, strsignal(c->stopped_by), (int)c->pid);
        if (c->stopped_by)
            c->stop_expected = false;
        c->stopped_by = 0;
    }
}

static bool job_has_ended(const struct gpsh_job *j)
{
    for (int pe = 0; pe < j->n_pes; pe++) {
        if (!j->pes[pe].ended)
            return false; // also one that was never started
    }
    return true;
}

// The PEs die with their parent, the keeper.
void gpsh_job_on_keeper_lost(struct gpsh_job *j)
{
    if (!job_has_ended(j) && !j->ending) {
        snprintf(j->reason, sizeof(j->reason),
                 "the process gpushmem-keeper, which starts and ends the PEs, was killed");
        begin_ending(j, 1, j->n_running);
    }
    signal_all(j, SIGKILL);
    j->n_running = 0;
}

void gpsh_job_on_abort(struct gpsh_job *j, int pe, int status, const char *why)
{
    const struct gpsh_child *c = &j->pes[pe];
    if (j->ending)
        return;
    j->exit_status = status >= 0 && status < 256 ? status : 1;
    snprintf(j->reason, sizeof(j->reason), "PE %d (pid %d) aborted the job with status %d%s%s", pe,
             (int)c->pid, status, why[0] ? ": " : "", why);
    gpsh_printable(j->reason, sizeof(j->reason));
    j->n_failed++;
    end_after_failure(j, j->n_running - c->running);
}

void gpsh_job_on_own_failure(struct gpsh_job *j, const char *why)
{
    if (j->ending)
        return;
    snprintf(j->reason, sizeof(j->reason), "%s", why);
    begin_ending(j, 1, j->n_running);
    ask_all_to_end(j, SIGTERM);
}

static bool is_of_launcher(const struct gpsh_board *board, pid_t pid, const void *job)
{
    (void)pid;
    return board->run_pid == (int)getpid() && board->n_pes == ((const struct gpsh_job *)job)->n_pes;
}

// Says what all PEs wait for, unless that was said before.
static void say_hang_report(struct gpsh_job *j)
{
    struct gpsh_boards boards = {0};
    char text[sizeof(j->hang_report)] = "";
    struct gpsh_pe_view *views = calloc((size_t)j->n_pes, sizeof(*views));
    for (int pe = 0; views && pe < j->n_pes; pe++)
        views[pe].state = j->pes[pe].ended   ? GPSH_PE_ENDED
                          : is_joined(j, pe) ? GPSH_PE_UNSEEN
                                             : GPSH_PE_ABSENT;
    if (views && gpsh_boards_read(&boards, is_of_launcher, j) == 0) {
        gpsh_views_set(views, j->n_pes, &boards);
        gpsh_hang_report(views, j->n_pes, text, sizeof(text));
    }
    gpsh_boards_free(&boards);
    free(views);
    if (!text[0] || strcmp(text, j->hang_report) == 0 || j->options->quiet)
        return;
    snprintf(j->hang_report, sizeof(j->hang_report), "%s", text);
    gpsh_cli_say("run", "%s", text);
}

void gpsh_job_on_call(struct gpsh_job *j)
{
    if (j->report_at_s == 0)
        j->report_at_s = gpsh_clock_s() + report_after_s;
}

void gpsh_job_on_signal(struct gpsh_job *j, int signal)
{
    j->forwarded = signal;
    bool interrupt = signal == SIGINT || signal == SIGQUIT;
    j->n_interrupts += interrupt;
    if (interrupt && j->n_interrupts > 2)
        j->kill_at_s = gpsh_clock_s();
    bool final = signal == SIGTERM || signal == SIGHUP || (interrupt && j->n_interrupts == 2);
    if (final && !j->ending) {
        snprintf(j->reason, sizeof(j->reason), "received signal %d (%s)", signal,
                 strsignal(signal));
        begin_ending(j, 128 + signal, j->n_running);
        ask_all_to_end(j, interrupt ? SIGTERM : signal);
    } else if (signal == SIGUSR1) {
        ask_all(j);
    } else {
        for (int pe = 0; signal == SIGTSTP && pe < j->n_pes; pe++)
            j->pes[pe].stop_expected = true;
        signal_all(j, signal);
    }
    if (signal == SIGTSTP)
        kill(getpid(), SIGSTOP); // with the PEs; SIGCONT wakes both
}

// On SIGUSR1 the library says in each wait what it waits for (waiter.c). Programs that are not in
// it die of the signal, which is about to happen anyway.
static void on_timeout(struct gpsh_job *j)
{
    snprintf(j->reason, sizeof(j->reason), "the job ran longer than %g s (--timeout)",
             j->options->timeout_s);
    begin_ending(j, GPSH_RUN_EXIT_TIMEOUT, j->n_running);
    j->report_at_s = j->terminate_at_s = gpsh_clock_s() + last_words_s;
    for (int pe = 0; pe < j->n_pes; pe++) {
        if (is_joined(j, pe))
            kill(j->pes[pe].pid, SIGUSR1);
    }
}

static void on_left_alone(struct gpsh_job *j)
{
    char n[32];
    j->warn_at_s = INFINITY;
    if (is_joined(j, j->left) && !j->ending && !j->options->quiet)
        gpsh_cli_say("run",
                     "PE %d (pid %d) ended without finalize, for which the other %s may be waiting",
                     j->left, (int)j->pes[j->left].pid, count(n, sizeof(n), j->n_running));
}

static bool is_due(double at_s, double now_s)
{
    return at_s > 0 && at_s <= now_s;
}

bool gpsh_job_on_time(struct gpsh_job *j)
{
    double now_s = gpsh_clock_s();
    if (is_due(j->warn_at_s, now_s))
        on_left_alone(j);
    if (is_due(j->timeout_at_s, now_s) && !j->ending)
        on_timeout(j);
    if (is_due(j->report_at_s, now_s)) {
        j->report_at_s = 0;
        say_hang_report(j);
    }
    if (is_due(j->terminate_at_s, now_s))
        ask_all_to_end(j, SIGTERM);
    if (!is_due(j->kill_at_s, now_s))
        return false;
    j->kill_at_s = now_s + kill_again_s;
    signal_all(j, SIGKILL);
    return true;
}

static double earlier(double a_s, double b_s)
{
    return b_s > 0 && b_s < a_s ? b_s : a_s;
}

double gpsh_job_due_s(const struct gpsh_job *j)
{
    double at_s = INFINITY;
    at_s = earlier(at_s, j->warn_at_s);
    at_s = earlier(at_s, j->ending ? 0 : j->timeout_at_s);
    at_s = earlier(at_s, j->report_at_s);
    at_s = earlier(at_s, j->terminate_at_s);
    return earlier(at_s, j->kill_at_s);
}

void gpsh_job_report(const struct gpsh_job *j)
{
    bool wanted = j->ending && j->exit_status == 0; // global_exit(0)
    if (!j->reason[0] || j->options->quiet || wanted)
        return;
    char n[32];
    if (j->ending && j->n_ended > 0)
        gpsh_cli_say("run", "%s; ended the %s%s", j->reason, j->n_failed ? "other " : "",
                     count(n, sizeof(n), j->n_ended));
    else if (!j->ending && j->n_failed > 1)
        gpsh_cli_say("run", "%s; %d more of the %d PEs failed after it", j->reason, j->n_failed - 1,
                     j->n_pes);
    else if (!j->ending && j->n_pes > 1)
        gpsh_cli_say("run", "%s; the other %s ran to the end", j->reason,
                     count(n, sizeof(n), j->n_pes - 1));
    else
        gpsh_cli_say("run", "%s", j->reason);
}
