// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE // readlink
#include "launch.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/core/launcher.h"

enum { EXIT_NOT_FOUND = 127, LAUNCHER_WORDS = 7 };

// PMIx servers, and `gpushmem run`, set these for every process they start.
bool perf_is_launched(void)
{
    return getenv("PMIX_RANK") || getenv("GPUSHMEM_RUN_PE");
}

void perf_tell_result(int exit_status)
{
    int segment, line;
    const struct gpsh_line_message result = {.word = GPSH_LINE_RESULT, .a = exit_status};
    if (exit_status && gpsh_launcher_find(&segment, &line) == GPSH_LAUNCHED)
        (void)gpsh_launcher_send(line, &result, NULL, 0, NULL, 0);
}

static bool find_launcher(const char *self, char *path, size_t bytes)
{
    static const char *const places[] = {"gpushmem", "../../bin/gpushmem"};
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        int n = snprintf(path, bytes, "%.*s/%s", (int)(strrchr(self, '/') - self), self, places[i]);
        if (n < (int)bytes && access(path, X_OK) == 0)
            return true;
    }
    fprintf(
        stderr,
        "gpushmem perf: there is no launcher, and no gpushmem beside %s that could start a job\n",
        self);
    return false;
}

int perf_launch(int pes, bool bind, char **argv)
{
    char self[PATH_MAX], launcher[PATH_MAX], count[16];
    int words = 0;
    while (argv[words])
        words++;
    char **command = calloc((size_t)words + LAUNCHER_WORDS + 1, sizeof *command);
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    if (!command || length < 0) {
        fprintf(stderr, "gpushmem perf: cannot start a job: %s\n", strerror(errno));
        free(command);
        return EXIT_NOT_FOUND;
    }
    self[length] = '\0';
    snprintf(count, sizeof count, "%d", pes);
    bind &= pes <= sysconf(_SC_NPROCESSORS_ONLN);
    if (find_launcher(self, launcher, sizeof launcher)) {
        char *const head[LAUNCHER_WORDS] = {
            launcher, "run", "-n", count, "--bind", bind ? "core" : "none", "--"};
        memcpy(command, head, sizeof head);
        memcpy(command + LAUNCHER_WORDS, argv, ((size_t)words + 1) * sizeof *argv);
        command[LAUNCHER_WORDS] = self;
        execv(launcher, command);
        fprintf(stderr, "gpushmem perf: cannot start %s: %s\n", launcher, strerror(errno));
    }
    free(command);
    return EXIT_NOT_FOUND;
}
