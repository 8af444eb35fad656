// SPDX-License-Identifier: BSD-3-Clause
// `gpushmem perf`: becomes the benchmark program (tests/perf), which lies beside this one in a
// build tree and in libexec after an installation.
#define _GNU_SOURCE // readlink, setenv
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "commands.h"
#include "core/config.h"
#include "say.h"

enum { EXIT_NOT_FOUND = 127 };

// The benchmark records its environment, with which its figures are compared to others. So what
// files say goes there.
static void settings_export(const struct gpsh_settings *settings)
{
    for (int row = 0; row < GPSH_SETTINGS; row++) {
        char value[4096];
        gpsh_setting_value(settings, row, value, sizeof value);
        if (gpsh_setting_origin(row)->source == GPSH_FROM_FILE)
            setenv(gpsh_setting_rows[row].name, value, 1);
    }
}

// With a heap in GPU memory the kernels must run on the GPU. Bad settings are left for the
// benchmark to tell.
static bool settings_want_cuda(void)
{
    struct gpsh_settings settings;
    bool host = false;
    if (!gpsh_settings_read_quietly("GPUSHMEM_", &settings)) {
        host = settings.heap_kind == GPSH_HEAP_HOST;
        settings_export(&settings);
        gpsh_settings_clear(&settings);
    }
    return !host && gpsh_cli_gpus() > 0;
}

static bool find_benchmark(char *path, size_t bytes)
{
    static const char *const places[] = {"", "../libexec/gpushmem/"};
    const char *suffix = settings_want_cuda() ? ".cuda" : "";
    char self[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    if (length < 0) {
        gpsh_cli_say("perf", "cannot read /proc/self/exe: %s", strerror(errno));
        return false;
    }
    self[length] = '\0';
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        int folder = (int)(strrchr(self, '/') - self);
        int n = snprintf(path, bytes, "%.*s/%sgpushmem-perf%s", folder, self, places[i], suffix);
        if (n < (int)bytes && access(path, X_OK) == 0)
            return true;
    }
    gpsh_cli_say("perf",
                 "there is no gpushmem-perf%s beside %s or in ../libexec/gpushmem, and a wheel has "
                 "none; in the sources, configure with -DGPUSHMEM_TESTS=ON%s, build the targets "
                 "gpushmem_cli and gpushmem-perf%s and start bin/gpushmem of the build folder, or "
                 "install again%s",
                 suffix, self, *suffix ? " -DGPUSHMEM_CUDA=ON" : "", suffix,
                 *suffix ? ", or set GPUSHMEM_HEAP_KIND=host" : "");
    return false;
}

int gpsh_cmd_perf(int argc, char **argv)
{
    char path[PATH_MAX];
    if (!find_benchmark(path, sizeof path))
        return EXIT_NOT_FOUND;
    argv[0] = path;
    execv(path, argv);
    gpsh_cli_say("perf", "cannot start %s: %s", path, strerror(errno));
    return EXIT_NOT_FOUND;
}
