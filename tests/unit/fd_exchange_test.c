// SPDX-License-Identifier: BSD-3-Clause
#include <criterion/criterion.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "bootstrap/fd_exchange.h"
#include "core/error.h"

enum { PES = 24 }; // more than a unix socket queues, so that senders meet full queues

static struct gpsh_fd_exchange exchanges[PES];
static const char *paths[PES];
static int pes[PES];

static void *run(void *arg)
{
    int me = *(int *)arg;
    int ends[2];
    if (pipe(ends))
        return "pipe";
    char letter = (char)('a' + me);
    for (int i = 0; i < PES; i++)
        if (write(ends[1], &letter, 1) != 1)
            return "write";
    struct gpsh_fd_set mine = {.fds = {ends[0], ends[1]}, .count = 2}, theirs[PES];
    if (gpsh_fd_exchange_run(&exchanges[me], me, pes, paths, PES, &mine, theirs, 20000))
        return "exchange";
    for (int i = 0; i < PES; i++) {
        if (i == me)
            continue;
        char got = 0;
        if (theirs[i].count != 2 || read(theirs[i].fds[0], &got, 1) != 1 || got != 'a' + i)
            return "wrong descriptor";
        close(theirs[i].fds[0]);
        close(theirs[i].fds[1]);
    }
    close(ends[0]);
    close(ends[1]);
    return NULL;
}

static void open_all(int n)
{
    for (int i = 0; i < n; i++) {
        pes[i] = i;
        cr_assert_eq(gpsh_fd_exchange_open(&exchanges[i], "", i, 1), 0, "%s", gpsh_last_error());
        paths[i] = exchanges[i].path;
    }
}

Test(fd_exchange, many_pes__everybody_gets_everybodys)
{
    pthread_t threads[PES];
    open_all(PES);
    for (int i = 0; i < PES; i++)
        pthread_create(&threads[i], NULL, run, &pes[i]);
    for (int i = 0; i < PES; i++) {
        void *wrong;
        pthread_join(threads[i], &wrong);
        cr_expect_null(wrong, "PE %d: %s", i, (char *)wrong);
        gpsh_fd_exchange_close(&exchanges[i]);
        cr_expect_neq(access(paths[i], F_OK), 0, "socket left behind");
    }
}

Test(fd_exchange, a_missing_pe__is_named_after_the_timeout)
{
    open_all(2);
    struct gpsh_fd_set mine = {.fds = {0}, .count = 1}, theirs[2];
    cr_expect_eq(gpsh_fd_exchange_run(&exchanges[0], 0, pes, paths, 2, &mine, theirs, 100),
                 GPUSHMEM_ERR_TIMEOUT);
    cr_expect(strstr(gpsh_last_error(), "PE 1"), "%s", gpsh_last_error());
    gpsh_fd_exchange_close(&exchanges[0]);
    gpsh_fd_exchange_close(&exchanges[1]);
}

Test(fd_exchange, strange_messages__are_dropped)
{
    open_all(2);
    int s = socket(AF_UNIX, SOCK_DGRAM, 0);
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    snprintf(to.sun_path, sizeof to.sun_path, "%s", exchanges[0].path);
    cr_assert(sendto(s, "garbage", 7, 0, (struct sockaddr *)&to, sizeof to) == 7);
    struct gpsh_fd_set mine = {.fds = {0}, .count = 1}, theirs[2];
    cr_expect_eq(gpsh_fd_exchange_run(&exchanges[0], 0, pes, paths, 2, &mine, theirs, 50),
                 GPUSHMEM_ERR_TIMEOUT);
    close(s);
    gpsh_fd_exchange_close(&exchanges[0]);
    gpsh_fd_exchange_close(&exchanges[1]);
}
