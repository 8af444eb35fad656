// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE // pipe2, setenv
#include "topo/trial.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/error.h"
#include "core/topology.h"
#include "say.h"

enum { WORDS_BYTES = 512, LOADED = 0, REFUSED = 3 };

__attribute__((noreturn)) static void child_run(const char *xml_file, int words)
{
    struct gpsh_topology *topology;
    const struct rlimit none = {.rlim_cur = 0};
    setrlimit(RLIMIT_CORE, &none);
    setenv("HWLOC_HIDE_ERRORS", "1", 1);
    dup2(words, STDOUT_FILENO);
    dup2(words, STDERR_FILENO);
    _exit(gpsh_topology_open(xml_file, &topology) ? REFUSED : LOADED);
}

// All that comes; the beginning of it is kept.
static void words_read(int fd, char *words)
{
    char rest[WORDS_BYTES];
    size_t used = 0;
    for (ssize_t n; (n = read(fd, rest, sizeof rest)) > 0 || (n < 0 && errno == EINTR);) {
        size_t room = WORDS_BYTES - 1 - used, take = n < 0              ? 0
                                                     : (size_t)n < room ? (size_t)n
                                                                        : room;
        memcpy(words + used, rest, take);
        used += take;
    }
    words[used] = '\0';
}

// The first line that says something: hwloc frames what it prints with asterisks.
static void words_warn(const char *xml_file, char *words)
{
    for (char *line = strtok(words, "\n"); line; line = strtok(NULL, "\n")) {
        line += strspn(line, "* ");
        if (!isalpha((unsigned char)*line))
            continue;
        gpsh_cli_say("topo", "%s may be shown wrongly: %s", xml_file, line);
        return;
    }
}

int gpsh_topo_try(const char *xml_file)
{
    int ends[2], status = 0;
    char words[WORDS_BYTES];
    if (pipe2(ends, O_CLOEXEC))
        return gpsh_fail(GPUSHMEM_ERR_SYSTEM, "cannot make a pipe: %s", strerror(errno));
    pid_t child = fork();
    if (!child)
        child_run(xml_file, ends[1]);
    close(ends[1]);
    words_read(ends[0], words);
    close(ends[0]);
    while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    if (child < 0)
        return gpsh_fail(GPUSHMEM_ERR_SYSTEM, "cannot start a process: %s", strerror(errno));
    if (WIFEXITED(status) && WEXITSTATUS(status) == REFUSED)
        return 0; // whoever loads it next is told why, and says so
    if (status)
        return gpsh_fail(GPUSHMEM_ERR_SYSTEM,
                         "hwloc cannot load the topology of %s: it dies of it, so the file is "
                         "damaged; record it anew with lstopo",
                         xml_file);
    words_warn(xml_file, words);
    return 0;
}
