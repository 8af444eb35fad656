// SPDX-License-Identifier: BSD-3-Clause
// Two PEs under a launcher: this process, and a child.
#define _GNU_SOURCE // what sockets need
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bootstrap/bootstrap_ways.h"
#include "bootstrap/job_segment.h"
#include "core/error.h"
#include "core/launcher.h"

static int to_child[2], to_parent[2];

static unsigned long long inode(int fd)
{
    struct stat file;
    return fstat(fd, &file) ? 0 : file.st_ino;
}

static void launch(void)
{
    int segment, line[2];
    char job[96];
    cr_assert(gpsh_job_segment_create(2, 1, &segment));
    cr_assert(!socketpair(AF_UNIX, SOCK_SEQPACKET, 0, line) && !pipe(to_child) && !pipe(to_parent));
    snprintf(job, sizeof job, "%d:%llu %d:%llu", segment, inode(segment), line[1], inode(line[1]));
    setenv(GPSH_LAUNCHER_JOB, job, 1);
}

static void step(int to)
{
    cr_assert_eq(write(to, "", 1), 1);
}

static void await(int from)
{
    char byte;
    cr_assert_eq(read(from, &byte, 1), 1);
}

static int join_job(struct gpsh_bootstrap *b, const char *pe)
{
    setenv("GPUSHMEM_RUN_PE", pe, 1);
    return gpsh_bootstrap_segment_init(b);
}

static int meet(struct gpsh_bootstrap *b)
{
    int status = gpsh_bootstrap_put(b, "blob", 4);
    return status ? status : gpsh_bootstrap_exchange(b);
}

static void leave(struct gpsh_bootstrap *b)
{
    gpsh_bootstrap_leave(b);
    gpsh_bootstrap_finalize(b);
}

// PE 1: leaves, and has joined the next job before the other one has left.
static int child(void)
{
    struct gpsh_bootstrap b;
    if (join_job(&b, "1") || meet(&b))
        return 1;
    await(to_child[0]);
    leave(&b);
    if (join_job(&b, "1"))
        return 2;
    step(to_parent[1]);
    if (meet(&b))
        return 3;
    await(to_child[0]);
    leave(&b);
    step(to_parent[1]);
    return 0;
}

Test(bootstrap_segment, has_left__is_of_the_job_that_the_asking_pe_is_in, .timeout = 20)
{
    struct gpsh_bootstrap b;
    int status = -1;
    launch();
    pid_t pid = fork();
    if (!pid)
        _exit(child());
    cr_assert_eq(join_job(&b, "0"), 0, "%s", gpsh_last_error());
    cr_assert_eq(meet(&b), 0, "%s", gpsh_last_error());
    cr_expect_not(gpsh_bootstrap_has_left(&b, 1));
    step(to_child[1]);
    await(to_parent[0]);
    cr_expect(gpsh_bootstrap_has_left(&b, 1), "it is in the next job");
    leave(&b);
    cr_assert_eq(join_job(&b, "0"), 0, "%s", gpsh_last_error());
    cr_assert_eq(meet(&b), 0, "%s", gpsh_last_error());
    cr_expect_not(gpsh_bootstrap_has_left(&b, 1), "that was the job before");
    step(to_child[1]);
    await(to_parent[0]);
    cr_expect(gpsh_bootstrap_has_left(&b, 1));
    leave(&b);
    cr_assert_eq(waitpid(pid, &status, 0), pid);
    cr_assert_eq(status, 0, "the child ended with %d", status);
}
