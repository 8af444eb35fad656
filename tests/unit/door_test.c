// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE // SOCK_CLOEXEC
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <errno.h>
#include <linux/netlink.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "door.h"

static bool no_sock_diag, no_proc; // as on kernels, or in containers, that lack them
static int lacking = EAFNOSUPPORT; // why
#pragma GCC diagnostic ignored "-Wmissing-prototypes"
int __real_socket(int domain, int type, int protocol);
int __wrap_socket(int domain, int type, int protocol)
{
    if (domain != AF_NETLINK || !no_sock_diag)
        return __real_socket(domain, type, protocol);
    errno = lacking;
    return -1;
}

FILE *__real_fopen(const char *path, const char *mode);
FILE *__wrap_fopen(const char *path, const char *mode)
{
    return no_proc && strncmp(path, "/proc/net/", 10) == 0 ? NULL : __real_fopen(path, mode);
}

// Connects to itself over loopback; what accept() said, or -1.
static int knock(int *theirs)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t length = sizeof(at);
    int server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    *theirs = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    cr_assert(bind(server, (struct sockaddr *)&at, length) == 0 && listen(server, 4) == 0);
    cr_assert(getsockname(server, (struct sockaddr *)&at, &length) == 0);
    cr_assert(connect(*theirs, (struct sockaddr *)&at, length) == 0);
    cr_assert(write(*theirs, "x", 1) == 1); // silent ones stay outside
    int connection = accept(server, NULL, NULL);
    close(server);
    return connection;
}

static void expect_open(bool expected)
{
    int theirs, ours = knock(&theirs), error = errno;
    cr_expect((ours >= 0) == expected);
    cr_expect(expected || error == EAGAIN, "libpmix takes that calmly");
    if (ours >= 0)
        close(ours);
    close(theirs);
}

// What is said on standard error from now on.
static FILE *listen_in(void)
{
    FILE *file = tmpfile();
    cr_assert(file && dup2(fileno(file), STDERR_FILENO) == STDERR_FILENO);
    return file;
}

Test(door, accept__own_connection__let_in)
{
    FILE *said = listen_in();
    expect_open(true);
    cr_expect(fseek(said, 0, SEEK_END) == 0 && ftell(said) == 0);
}

Test(door, accept__one_source_missing__let_in)
{
    FILE *said = listen_in();
    no_sock_diag = true;
    expect_open(true);
    no_sock_diag = false;
    no_proc = true;
    expect_open(true);
    cr_expect(fseek(said, 0, SEEK_END) == 0 && ftell(said) == 0);
}

Test(door, accept__owner_unknown__refused_and_said_once)
{
    char line[512] = "";
    FILE *said = listen_in();
    no_sock_diag = no_proc = true;
    expect_open(false);
    expect_open(false);
    rewind(said);
    cr_expect(fgets(line, sizeof(line), said) && strstr(line, "/proc/net/tcp"));
    cr_expect(fgets(line, sizeof(line), said) == NULL);
}

Test(door, accept__no_more_files__refused_and_said)
{
    char line[512] = "";
    FILE *said = listen_in();
    no_sock_diag = no_proc = true;
    lacking = EMFILE;
    expect_open(false);
    rewind(said);
    cr_expect(fgets(line, sizeof(line), said) && strstr(line, "ulimit -n"), "%s", line);
}
