// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE // usleep
#include <criterion/criterion.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/error.h"
#include "progress/watch.h"

enum { CHILDREN = 3 };

static atomic_int ended[CHILDREN + 1];

static void on_end(int pe)
{
    atomic_fetch_add(&ended[pe], 1);
}

static pid_t child(void)
{
    pid_t pid = fork();
    if (pid == 0)
        for (;;)
            pause();
    return pid;
}

static void end(pid_t pid)
{
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

Test(watch, process_ends__that_pe_is_told_once, .timeout = 60)
{
    const int pes[CHILDREN + 1] = {0, 1, 2, 3};
    pid_t pids[CHILDREN + 1] = {child(), child(), child(), 0}; // 0: cannot be seen from here
    cr_assert_eq(gpsh_watch_start(pes, pids, CHILDREN + 1, on_end), 0, "%s", gpsh_last_error());
    end(pids[1]);
    while (!atomic_load(&ended[1]))
        usleep(100);
    end(pids[2]);
    while (!atomic_load(&ended[2]))
        usleep(100);
    gpsh_watch_stop();
    end(pids[0]);
    cr_expect_eq(ended[0], 0);
    cr_expect_eq(ended[1], 1);
    cr_expect_eq(ended[2], 1);
    cr_expect_eq(ended[3], 0);
}

Test(watch, process_ended_before__pe_is_told_or_left_out_and_stop_returns, .timeout = 60)
{
    const int pes[1] = {0};
    pid_t pids[1] = {child()};
    end(pids[0]);
    cr_assert_eq(gpsh_watch_start(pes, pids, 1, on_end), 0);
    gpsh_watch_stop();
    gpsh_watch_stop();
    cr_expect_leq(ended[0], 1);
}

static bool becomes(pid_t pid, bool stopped)
{
    for (int i = 0; i < 5000 && gpsh_watch_is_stopped(pid) != stopped; i++)
        usleep(1000);
    return gpsh_watch_is_stopped(pid) == stopped;
}

Test(watch, process_stops_and_goes_on__seen, .timeout = 60)
{
    pid_t pid = child();
    cr_expect(becomes(pid, false));
    kill(pid, SIGSTOP);
    cr_expect(becomes(pid, true));
    cr_expect(gpsh_watch_is_living(pid));
    kill(pid, SIGCONT);
    cr_expect(becomes(pid, false));
    end(pid);
    cr_expect(!gpsh_watch_is_stopped(pid));
    cr_expect(!gpsh_watch_is_stopped(0));
    cr_expect(!gpsh_watch_is_stopped(getpid()));
}

Test(watch, process_is_killed__lives_no_more_before_anybody_has_waited_for_it, .timeout = 60)
{
    siginfo_t info;
    pid_t pid = child();
    cr_expect(gpsh_watch_is_living(pid));
    kill(pid, SIGKILL);
    cr_assert_eq(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
    cr_expect(!gpsh_watch_is_living(pid));
    waitpid(pid, NULL, 0);
    cr_expect(!gpsh_watch_is_living(pid));
    cr_expect(!gpsh_watch_is_living(0));
}

// The name is the program's to choose.
Test(watch, process_has_a_name_like_a_state__not_stopped, .timeout = 60)
{
    cr_assert_eq(prctl(PR_SET_NAME, "a) T 1 ("), 0);
    cr_expect(!gpsh_watch_is_stopped(getpid()));
}
