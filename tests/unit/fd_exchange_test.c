// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE // setrlimit
#include <criterion/criterion.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "bootstrap/bootstrap.h"
#include "bootstrap/fd_exchange.h"
#include "core/error.h"
#include "core/launcher.h"

enum { PES = 24 }; // more than a unix socket queues, so that senders meet full queues

static struct gpsh_fd_exchange exchanges[PES];
static const char *paths[PES];
static int pes[PES];

// What a PE reads from the descriptors it is given; 0 where it was given none.
static int keep(void *letters, int index, const struct gpsh_fd_set *set)
{
    char *letter = (char *)letters + index;
    return set->count == 2 && read(set->fds[0], letter, 1) == 1 ? 0 : -1;
}

static int ignore(void *arg, int index, const struct gpsh_fd_set *set)
{
    (void)arg, (void)index, (void)set;
    return 0;
}

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
    char got[PES] = {0};
    struct gpsh_fd_set mine = {.fds = {ends[0], ends[1]}, .count = 2};
    if (gpsh_fd_exchange_run(&exchanges[me], me, pes, paths, PES, &mine, keep, got, 20000))
        return "exchange";
    for (int i = 0; i < PES; i++) {
        if (i != me && got[i] != 'a' + i)
            return "wrong descriptor";
    }
    close(ends[0]);
    close(ends[1]);
    return NULL;
}

static void open_all(int n)
{
    for (int i = 0; i < n; i++) {
        pes[i] = i;
        const struct gpsh_bootstrap job = {.my_pe = i};
        cr_assert_eq(gpsh_fd_exchange_open(&exchanges[i], &job, 1), 0, "%s", gpsh_last_error());
        paths[i] = exchanges[i].path;
    }
}

// As in a container whose files cannot be written.
Test(fd_exchange, one_pe_on_the_node__needs_no_directory)
{
    const struct gpsh_bootstrap job = {.node_n_pes = 1, .dir = "/proc"};
    const struct gpsh_fd_set mine = {.fds = {0}, .count = 1};
    struct gpsh_fd_exchange alone;
    cr_assert_eq(gpsh_fd_exchange_open(&alone, &job, 1), 0, "%s", gpsh_last_error());
    const char *path = alone.path;
    cr_expect_str_empty(path);
    cr_expect_eq(gpsh_fd_exchange_run(&alone, 0, pes, &path, 1, &mine, ignore, NULL, 100), 0);
    gpsh_fd_exchange_close(&alone);
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

static int refuse(void *calls, int index, const struct gpsh_fd_set *set)
{
    (void)set;
    ++*(int *)calls;
    return gpsh_fail(GPUSHMEM_ERR_NO_MEMORY, "no room for PE %d", index);
}

static void *run_refusing(void *arg)
{
    int calls = 0;
    struct gpsh_fd_set mine = {.fds = {0, 0}, .count = 2};
    (void)arg;
    int status =
        gpsh_fd_exchange_run(&exchanges[0], 0, pes, paths, PES, &mine, refuse, &calls, 30000);
    return status != GPUSHMEM_ERR_NO_MEMORY              ? "another status"
           : calls != 1                                  ? "called again"
           : strstr(gpsh_last_error(), "no room for PE") ? NULL
                                                         : "another sentence";
}

static void *run_ignoring(void *arg)
{
    int me = *(int *)arg;
    struct gpsh_fd_set mine = {.fds = {0, 0}, .count = 2};
    int status =
        gpsh_fd_exchange_run(&exchanges[me], me, pes, paths, PES, &mine, ignore, NULL, 30000);
    return status ? "waits in vain" : NULL;
}

// With full queues it has not sent all when its first mapping fails.
Test(fd_exchange, a_pe_that_cannot_map__still_hands_over_its_own)
{
    pthread_t threads[PES];
    open_all(PES);
    for (int i = 1; i < PES; i++)
        pthread_create(&threads[i], NULL, run_ignoring, &pes[i]);
    pthread_create(&threads[0], NULL, run_refusing, NULL);
    for (int i = 0; i < PES; i++) {
        void *wrong;
        pthread_join(threads[i], &wrong);
        cr_expect_null(wrong, "PE %d: %s", i, (char *)wrong);
    }
    for (int i = 0; i < PES; i++)
        gpsh_fd_exchange_close(&exchanges[i]);
}

static int looks;
static bool ended;

static void count_looks(bool over)
{
    looks += !over;
    ended = over;
}

Test(fd_exchange, a_missing_pe__is_named_after_the_timeout)
{
    open_all(2);
    exchanges[0].waits = count_looks;
    struct gpsh_fd_set mine = {.fds = {0}, .count = 1};
    cr_expect_eq(gpsh_fd_exchange_run(&exchanges[0], 0, pes, paths, 2, &mine, ignore, NULL, 100),
                 GPUSHMEM_ERR_TIMEOUT);
    cr_expect(strstr(gpsh_last_error(), "PE 1 of this node did not hand over its memory within 100 "
                                        "ms (GPUSHMEM_WAIT_TIMEOUT_MS)"),
              "%s", gpsh_last_error());
    cr_expect(looks > 0 && ended, "nobody was told of the wait");
    gpsh_fd_exchange_close(&exchanges[0]);
    gpsh_fd_exchange_close(&exchanges[1]);
}

Test(fd_exchange, limit__setting_for_waits_or_a_minute)
{
    const struct gpsh_bootstrap patient = {.wait_timeout_ms = 86400000}, none = {.my_pe = 0};
    cr_expect_eq(gpsh_fd_exchange_ms(&patient), 86400000);
    cr_expect_eq(gpsh_fd_exchange_ms(&none), 60000);
}

Test(fd_exchange, strange_messages__are_dropped)
{
    open_all(2);
    int s = socket(AF_UNIX, SOCK_DGRAM, 0);
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    snprintf(to.sun_path, sizeof to.sun_path, "%s", exchanges[0].path);
    cr_assert(sendto(s, "garbage", 7, 0, (struct sockaddr *)&to, sizeof to) == 7);
    struct gpsh_fd_set mine = {.fds = {0}, .count = 1};
    cr_expect_eq(gpsh_fd_exchange_run(&exchanges[0], 0, pes, paths, 2, &mine, ignore, NULL, 50),
                 GPUSHMEM_ERR_TIMEOUT);
    close(s);
    gpsh_fd_exchange_close(&exchanges[0]);
    gpsh_fd_exchange_close(&exchanges[1]);
}

// Sends junk as fast as it is taken.
static volatile bool babbles;

static void *babble(void *path)
{
    int s = socket(AF_UNIX, SOCK_DGRAM, 0);
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    snprintf(to.sun_path, sizeof to.sun_path, "%s", (const char *)path);
    while (babbles)
        (void)sendto(s, "garbage", 7, MSG_DONTWAIT, (struct sockaddr *)&to, sizeof to);
    close(s);
    return NULL;
}

Test(fd_exchange, strange_messages_without_end__do_not_keep_a_wait_going, .timeout = 60)
{
    pthread_t thread;
    open_all(2);
    babbles = true;
    cr_assert_eq(pthread_create(&thread, NULL, babble, exchanges[0].path), 0);
    struct gpsh_fd_set mine = {.fds = {0}, .count = 1};
    cr_expect_eq(gpsh_fd_exchange_run(&exchanges[0], 0, pes, paths, 2, &mine, ignore, NULL, 50),
                 GPUSHMEM_ERR_TIMEOUT);
    babbles = false;
    pthread_join(thread, NULL);
    gpsh_fd_exchange_close(&exchanges[0]);
    gpsh_fd_exchange_close(&exchanges[1]);
}

Test(fd_exchange, no_descriptor_left__is_said_at_once)
{
    open_all(2);
    struct gpsh_fd_set mine = {.fds = {0, 0}, .count = 2};
    gpsh_fd_exchange_run(&exchanges[1], 1, pes, paths, 2, &mine, ignore, NULL, 0); // sends
    int next = dup(0);
    close(next);
    cr_assert_eq(setrlimit(RLIMIT_NOFILE, &(struct rlimit){(rlim_t)next + 1, (rlim_t)next + 1}), 0);
    cr_expect_eq(gpsh_fd_exchange_run(&exchanges[0], 0, pes, paths, 2, &mine, ignore, NULL, 60000),
                 GPUSHMEM_ERR_SYSTEM);
    cr_expect(strstr(gpsh_last_error(), "ulimit -n"), "%s", gpsh_last_error());
    cr_expect(strstr(gpsh_last_error(), "PE 1"), "%s", gpsh_last_error());
    gpsh_fd_exchange_close(&exchanges[0]);
    gpsh_fd_exchange_close(&exchanges[1]);
}

// ---- By way of the launcher ----

static void give(int launcher, int32_t round, int fd)
{
    const struct gpsh_line_message given = {.word = GPSH_LINE_GIVEN, .a = round, .b = 0, .c = 1};
    cr_assert_eq(gpsh_launcher_send(launcher, &given, NULL, 0, &fd, 1), 0);
}

static int keep_letter(void *letter, int index, const struct gpsh_fd_set *set)
{
    return index == 0 && set->count == 1 && read(set->fds[0], letter, 1) == 1 ? 0 : -1;
}

// The exchange before was given up while its answer was on the way.
Test(fd_exchange, by_launcher__answer_of_an_earlier_exchange__is_not_taken_for_this_one)
{
    int line[2], late[2], right[2], both[] = {0, 1};
    char letter = '?';
    cr_assert(!socketpair(AF_UNIX, SOCK_SEQPACKET, 0, line) && !pipe(late) && !pipe(right));
    const struct gpsh_bootstrap job = {.my_pe = 1, .launched_by_us = true, .line = line[1]};
    struct gpsh_fd_exchange x;
    cr_assert_eq(gpsh_fd_exchange_open(&x, &job, 1), 0);
    x.waits = count_looks;
    struct gpsh_fd_set mine = {.fds = {0}, .count = 1};
    cr_assert_eq(gpsh_fd_exchange_run(&x, 1, both, NULL, 2, &mine, ignore, NULL, 1),
                 GPUSHMEM_ERR_TIMEOUT);
    cr_expect(strstr(gpsh_last_error(), "for 1 ms (GPUSHMEM_WAIT_TIMEOUT_MS)"), "%s",
              gpsh_last_error());
    cr_expect(looks > 0 && ended, "nobody was told of the wait");
    cr_assert(write(late[1], "l", 1) == 1 && write(right[1], "r", 1) == 1);
    give(line[0], 1, late[0]);
    give(line[0], 2, right[0]);
    const struct gpsh_line_message own = {.word = GPSH_LINE_GIVEN, .a = 2, .b = 1, .c = 1};
    int none = 0;
    cr_assert_eq(gpsh_launcher_send(line[0], &own, NULL, 0, &none, 1), 0);
    int status = gpsh_fd_exchange_run(&x, 1, both, NULL, 2, &mine, keep_letter, &letter, 5000);
    cr_expect_eq(status, 0, "%s", gpsh_last_error());
    cr_expect_eq(letter, 'r');
}
