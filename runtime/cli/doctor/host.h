// SPDX-License-Identifier: BSD-3-Clause
// The files of the machine that `gpushmem doctor` looks at, below a root: "/", or a directory that
// holds a copy of another machine's /sys, /proc, /dev and so on. Checks ask the machine for nothing
// else, unless `live` says that it is this one.
#ifndef GPSH_DOCTOR_HOST_H
#define GPSH_DOCTOR_HOST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { GPSH_HOST_NAME_BYTES = 64, GPSH_HOST_NAMES = 4096 };

struct gpsh_host {
    const char *root; // "" for "/"
    bool live;
};

// Paths are formats, without a slash at the beginning.
#define GPSH_HOST_PATH(n) __attribute__((format(printf, n, n + 1)))

// Reads a file as text, without white space at its end. The length, or -errno. A longer file is
// cut.
int gpsh_host_read(const struct gpsh_host *host, char *text, size_t bytes, const char *path, ...)
    GPSH_HOST_PATH(4);
// The same without changes to the content: white space and zeros stay.
int gpsh_host_read_raw(const struct gpsh_host *host, void *data, size_t bytes, const char *path,
                       ...) GPSH_HOST_PATH(4);
// A whole number, decimal or with 0x: 0, -errno, or -EINVAL if the file holds something else.
int gpsh_host_number(const struct gpsh_host *host, int64_t *number, const char *path, ...)
    GPSH_HOST_PATH(3);
// 0 if it exists and may be used so (R_OK | W_OK), or -errno.
int gpsh_host_access(const struct gpsh_host *host, int mode, const char *path, ...)
    GPSH_HOST_PATH(3);
// What a symbolic link holds.
int gpsh_host_link(const struct gpsh_host *host, char *target, size_t bytes, const char *path, ...)
    GPSH_HOST_PATH(4);

struct gpsh_names {
    int n;
    char name[GPSH_HOST_NAMES][GPSH_HOST_NAME_BYTES]; // sorted, digits by their value
};
// What a directory holds: 0 or -errno. Names that are longer are left out.
int gpsh_host_list(const struct gpsh_host *host, struct gpsh_names *names, const char *path, ...)
    GPSH_HOST_PATH(3);

// Whether a process of this name runs. The kernel keeps 15 characters of it.
bool gpsh_host_runs(const struct gpsh_host *host, const char *name);

// A variable of the environment that the doctor was started with. False if it is not set.
bool gpsh_host_variable(const struct gpsh_host *host, const char *name, char *value, size_t bytes);
// All of them, like environ.
char *const *gpsh_host_environment(const struct gpsh_host *host);

#endif
