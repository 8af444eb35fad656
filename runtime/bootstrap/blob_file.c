// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE // O_CLOEXEC, O_NOFOLLOW
#include "bootstrap/blob_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/error.h"

enum { PATH_BYTES = 320 }; // a session directory is shorter than 256

static void blob_path(char path[PATH_BYTES], const char *dir, int pe, uint32_t round)
{
    snprintf(path, PATH_BYTES, "%s/blob.%d.%u", dir, pe, round % 2);
}

// 0 or an errno.
static int blob_write(int fd, const char *next, size_t bytes)
{
    while (bytes > 0) {
        ssize_t n = write(fd, next, bytes);
        if (n < 0 && errno != EINTR)
            return errno;
        next += n > 0 ? n : 0;
        bytes -= n > 0 ? (size_t)n : 0;
    }
    return 0;
}

// 0 or an errno. A file that is shorter than it was said to be is not one of ours.
static int blob_read(int fd, char *next, size_t bytes)
{
    while (bytes > 0) {
        ssize_t n = read(fd, next, bytes);
        if (n == 0 || (n < 0 && errno != EINTR))
            return n == 0 ? EIO : errno;
        next += n > 0 ? n : 0;
        bytes -= n > 0 ? (size_t)n : 0;
    }
    return 0;
}

int gpsh_blob_file_write(const char *dir, int pe, uint32_t round, const void *blob, size_t bytes)
{
    char path[PATH_BYTES];
    blob_path(path, dir, pe, round);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    int error = fd < 0 ? errno : blob_write(fd, blob, bytes);
    if (fd >= 0 && close(fd) < 0 && !error)
        error = errno;
    return !error ? 0
                  : gpsh_fail(GPUSHMEM_ERR_SYSTEM,
                              "this PE's data cannot be written to %s: %s; set TMPDIR to a "
                              "directory with room before the launcher is started",
                              path, strerror(error));
}

int gpsh_blob_file_read(const char *dir, int pe, uint32_t round, void **blob, size_t *bytes)
{
    char path[PATH_BYTES];
    struct stat st = {0};
    blob_path(path, dir, pe, round);
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    int error = fd < 0 || fstat(fd, &st) < 0 ? errno : 0;
    *bytes = (size_t)st.st_size;
    *blob = error ? NULL : malloc(*bytes + 1);
    if (!error)
        error = *blob ? blob_read(fd, *blob, *bytes) : ENOMEM;
    if (fd >= 0)
        close(fd);
    if (!error)
        return 0;
    free(*blob);
    *blob = NULL;
    return gpsh_fail(GPUSHMEM_ERR_PEER_DATA,
                     "the data of PE %d in round %u cannot be read (%s: %s)", pe, round, path,
                     strerror(error));
}
