// SPDX-License-Identifier: BSD-3-Clause
// A signal every millisecond, as of a profiler, makes no wait of init shorter: PE 0 comes long
// before the others, and where a launcher is named, that is stopped meanwhile.
//   process_interrupted [pid of the launcher]
#define _GNU_SOURCE // timer_create
#include <gpushmem/gpushmem.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

// Longer than all looks of a wait would take if each ended by a signal.
enum { LATE_MS = 900 };

static void handle(int signal)
{
    (void)signal;
}

static int start_signals(void)
{
    const struct timespec period = {.tv_nsec = 1000000};
    const struct sigaction action = {.sa_handler = handle, .sa_flags = SA_RESTART};
    struct sigevent by_signal = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR2};
    timer_t timer;
    return sigaction(SIGUSR2, &action, NULL) || timer_create(CLOCK_MONOTONIC, &by_signal, &timer) ||
           timer_settime(timer, 0, &(struct itimerspec){period, period}, NULL);
}

static void sleep_late(void)
{
    struct timespec left = {.tv_nsec = LATE_MS * 1000000L};
    while (nanosleep(&left, &left))
        continue;
}

// The child lets it go on, whatever becomes of this process.
static int stop_for_a_while(pid_t launcher)
{
    pid_t child = fork();
    if (child == 0) {
        sleep_late();
        kill(launcher, SIGCONT);
        _exit(0);
    }
    return child < 0 || kill(launcher, SIGSTOP);
}

int main(int argc, char **argv)
{
    const char *pe = getenv("GPUSHMEM_RUN_PE");
    pid_t launcher = argc > 1 ? (pid_t)strtol(argv[1], NULL, 10) : 0;
    bool first = pe && !strcmp(pe, "0");
    if (start_signals() || (first && launcher > 1 && stop_for_a_while(launcher)))
        return 2;
    if (!first && launcher <= 1)
        sleep_late();
    if (gpushmem_init() || gpushmem_finalize()) {
        fprintf(stderr, "PE %s: %s\n", pe ? pe : "?", gpushmem_last_error());
        return 1;
    }
    return 0;
}
