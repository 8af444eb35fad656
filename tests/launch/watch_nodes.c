// SPDX-License-Identifier: BSD-3-Clause
// Who hears of whose death where no launcher tells: processes that each have a node watch, on
// pretended nodes, and die in many ways. The survivors must name the dead and nobody else.
//   watch_nodes [CASE...]         all cases, or these
//   watch_nodes measure FIRST COUNT  how long that takes if PE FIRST dies, on 12 nodes with 4 PEs;
//                                    3: all of the second node
//   watch_nodes random FIRST COUNT   jobs whose size, nodes and deaths are drawn, for a long run
#define _GNU_SOURCE // fork, usleep
#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "bootstrap/tcp_wire.h"
#include "watch_job.h"

enum { STRANGERS = 40, SILENT = 120 };

static void kill_each(const char *name, const int *victims, int count, bool at_once, bool cyclic)
{
    start(name, 9, 3, cyclic);
    for (int i = 0; i < count; i++) {
        kill_pe(victims[i]);
        if (!at_once)
            await_names();
    }
    await_names();
    finish();
}

#define VICTIMS(...) (const int[]){__VA_ARGS__}, sizeof((const int[]){__VA_ARGS__}) / sizeof(int)

static void case_leaf(void)
{
    kill_each("leaf", VICTIMS(5), false, false);
}

static void case_watcher(void)
{
    kill_each("watcher", VICTIMS(3), false, false);
}

static void case_first_watcher(void)
{
    kill_each("first_watcher", VICTIMS(0), false, true);
}

static void case_successor_too(void)
{
    kill_each("successor_too", VICTIMS(3, 4), true, false);
}

static void case_first_successor_too(void)
{
    kill_each("first_successor_too", VICTIMS(0, 1), true, false);
}

static void case_whole_node(void)
{
    kill_each("whole_node", VICTIMS(6, 7, 8), true, false);
}

static void case_first_node(void)
{
    kill_each("first_node", VICTIMS(0, 1, 2), true, false);
}

static void case_all_watchers(void)
{
    kill_each("all_watchers", VICTIMS(0, 3, 6), true, false);
}

static void case_one_after_another(void)
{
    kill_each("one_after_another", VICTIMS(3, 0, 1, 8, 6, 2, 7, 4), false, false);
}

// Levels of nodes, each with one PE: node 1 is above nodes 17 and more.
static void case_levels(void)
{
    start("levels", 20, 1, false);
    kill_pe(1);
    await_names();
    kill_pe(0);
    kill_pe(19);
    await_names();
    finish();
}

static void case_leave(unsigned seed)
{
    int order[MOST];
    start("leave", 9, 3, true);
    for (int i = 0; i < n; i++) {
        int other = rand_r(&seed) % (i + 1);
        order[i] = order[other];
        order[other] = i;
    }
    expect_departures();
    for (int i = 0; i < n; i++)
        shared->order[order[i]] = LEAVE;
    for (int i = 0; i < n; i++)
        leave_one(order[i]);
    finish();
}

static void case_leave_in_any_order(void)
{
    for (unsigned seed = 1; seed <= 4; seed++)
        case_leave(seed);
}

// It has published where it listens, and no more. Nobody waits for it.
static void case_unborn(void)
{
    begin("unborn", 9, 3, false);
    kill_pe(3);
    reap();
    for (int pe = 0; pe < n; pe++)
        shared->named[pe][3] = true; // they need not say so
    join_all();
    kill_pe(8);
    kill_pe(4);
    await_names();
    finish();
}

// A node whose first PE takes no part does not either; nobody calls it, and nobody misses it.
static void case_unwilling(void)
{
    begin("unwilling", 9, 3, false);
    memset(&shared->cards[3], 0, sizeof shared->cards[3]);
    join_all();
    kill_pe(7);
    kill_pe(0);
    for (int pe = 3; pe < 6; pe++) // they may hear it, or not
        shared->named[pe][0] = shared->named[pe][7] = true;
    await_names();
    finish();
}

static void case_nobody_willing(void)
{
    begin("nobody_willing", 4, 2, false);
    memset(shared->cards, 0, sizeof shared->cards);
    join_all();
    finish();
}

// Nobody is dead who only does not answer; who hears by it hears later.
static void case_stopped(void)
{
    start("stopped", 9, 3, false);
    kill(pids[3], SIGSTOP);
    kill_pe(7);
    for (int pe = 0; pe < 3; pe++)
        while (!shared->named[pe][7])
            usleep(1000);
    kill(pids[3], SIGCONT);
    await_names();
    finish();
}

// Connections that are cut are no deaths, and come again: the next death is heard of.
static void case_cut(void)
{
    start("cut", 9, 3, false);
    for (int round = 0; round < 3; round++) {
        shared->cut = 0;
        shared->order[round * 3] = CUT;
        until(&shared->cut, 1);
    }
    kill_pe(7);
    await_names();
    finish();
}

static int stranger(int pe)
{
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons(shared->cards[pe].listens.port)};
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connect(fd, (struct sockaddr *)&to, sizeof to))
        fail("does not listen, says", pe, pe);
    return fd;
}

// Some say nothing, others what is no hello, and go away or stay.
static void case_strangers(void)
{
    static const char nonsense[4096] = "GET / HTTP/1.0\r\n\r\n";
    int fds[STRANGERS];
    begin("strangers", 6, 2, false);
    for (int i = 0; i < STRANGERS; i++) {
        fds[i] = stranger(i % n);
        if (i % 3 == 1)
            send(fds[i], nonsense, i % 2 ? sizeof nonsense : 30, MSG_NOSIGNAL);
        if (i % 5 == 4)
            shutdown(fds[i], SHUT_RDWR);
        if (i == STRANGERS / 2)
            join_all();
    }
    kill_pe(2);
    await_names();
    finish();
    for (int i = 0; i < STRANGERS; i++)
        close(fds[i]);
}

// Who says nothing gets some of a PE's descriptors, and not all that the program may open.
static void case_silent_strangers(void)
{
    char greeting;
    int fds[SILENT];
    struct rlimit files, few;
    getrlimit(RLIMIT_NOFILE, &files);
    few = files;
    few.rlim_cur = FILES;
    setrlimit(RLIMIT_NOFILE, &few);
    begin("silent_strangers", 4, 2, false);
    setrlimit(RLIMIT_NOFILE, &files);
    join_all();
    for (int i = 0; i < SILENT; i++)
        fds[i] = stranger(2);
    for (int i = 0; i < SILENT; i++)
        recv(fds[i], &greeting, 1, 0); // it is in, or was put off
    shared->order[2] = OPEN_FILES;
    until(&shared->opened, 1);
    kill_pe(3);
    await_names();
    finish();
    for (int i = 0; i < SILENT; i++)
        close(fds[i]);
}

static int take_listener(int pe)
{
    char byte;
    int fd = -1;
    struct iovec part = {.iov_base = &byte, .iov_len = 1};
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof fd)];
    } control;
    struct msghdr header = {.msg_iov = &part,
                            .msg_iovlen = 1,
                            .msg_control = control.bytes,
                            .msg_controllen = sizeof control.bytes};
    shared->order[pe] = GIVE;
    if (recvmsg(handover[1], &header, MSG_CMSG_CLOEXEC) != 1 || !CMSG_FIRSTHDR(&header))
        fail("does not show where it listens, says", pe, pe);
    memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&header)), sizeof fd);
    return fd;
}

// What has a dead PE's port hangs up, says what no PE says, or what a PE of another job says.
static void answer_as_stranger(int listener, int manner)
{
    const struct gpsh_uniqueid other = {.job = {42}, .secret = {42}};
    char page[] = "HTTP/1.0 400 Bad Request\r\n\r\nThis is no place for a PE.\r\n";
    struct gpsh_greeting greeting;
    for (;;) {
        int fd = accept(listener, NULL, NULL);
        if (fd < 0) {
            usleep(1000);
            continue;
        }
        gpsh_greeting_make(&other, &greeting);
        if (manner == 1)
            send(fd, page, sizeof page, MSG_NOSIGNAL);
        if (manner == 2)
            send(fd, &greeting, sizeof greeting, MSG_NOSIGNAL);
        close(fd);
    }
}

static pid_t squat(int pe, int manner)
{
    int listener = take_listener(pe);
    pid_t squatter = fork();
    if (squatter == 0)
        answer_as_stranger(listener, manner);
    close(listener);
    return squatter;
}

// A stranger at a dead PE's port is not that PE.
static void case_squatted(void)
{
    static const int victims[] = {3, 8, 4};
    pid_t squatters[3];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, handover))
        exit(1);
    start("squatted", 9, 3, false);
    for (int i = 0; i < 3; i++)
        squatters[i] = squat(victims[i], i);
    for (int i = 0; i < 3; i++) {
        kill_pe(victims[i]);
        await_names();
    }
    for (int i = 0; i < 3; i++) {
        kill(squatters[i], SIGKILL);
        waitpid(squatters[i], NULL, 0);
    }
    finish();
    close(handover[0]);
    close(handover[1]);
}

static void try_port(int pe, bool reuse)
{
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_port = htons(shared->cards[pe].listens.port)};
    int on = reuse, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof on);
    if (bind(fd, (struct sockaddr *)&at, sizeof at) == 0)
        fail("dies, and a stranger gets the port of", pe, pe);
    close(fd);
}

// Even if nobody looks for a while. What said nothing there would be taken for the PE.
static void case_port_is_held(void)
{
    start("port_is_held", 4, 2, false);
    for (int pe = 0; pe < 2; pe++)
        kill(pids[pe], SIGSTOP);
    for (int pe = 2; pe < 4; pe++)
        kill_pe(pe);
    reap();
    for (int pe = 2; pe < 4; pe++) {
        try_port(pe, false);
        try_port(pe, true);
    }
    for (int pe = 0; pe < 2; pe++)
        kill(pids[pe], SIGCONT);
    await_names();
    finish();
}

static const struct {
    const char *name;
    void (*run)(void);
} cases[] = {
    {"leaf", case_leaf},
    {"watcher", case_watcher},
    {"first_watcher", case_first_watcher},
    {"successor_too", case_successor_too},
    {"first_successor_too", case_first_successor_too},
    {"whole_node", case_whole_node},
    {"first_node", case_first_node},
    {"all_watchers", case_all_watchers},
    {"one_after_another", case_one_after_another},
    {"levels", case_levels},
    {"leave", case_leave_in_any_order},
    {"unborn", case_unborn},
    {"unwilling", case_unwilling},
    {"nobody_willing", case_nobody_willing},
    {"stopped", case_stopped},
    {"cut", case_cut},
    {"strangers", case_strangers},
    {"silent_strangers", case_silent_strangers},
    {"squatted", case_squatted},
    {"port_is_held", case_port_is_held},
};
enum { CASES = sizeof cases / sizeof cases[0] };

static void random_job(unsigned seed)
{
    static char name[32];
    snprintf(name, sizeof name, "random %u", seed);
    int pes = 2 + rand_r(&seed) % (MOST - 2), per_node = 1 + rand_r(&seed) % 8;
    start(name, pes, per_node, rand_r(&seed) % 2);
    for (int left = pes; left > 1;) {
        for (int kills = 1 + rand_r(&seed) % 4; kills && left > 1; kills--, left--) {
            int pe = rand_r(&seed) % pes;
            while (!alive[pe])
                pe = (pe + 1) % pes;
            kill_pe(pe);
        }
        await_names();
        if (rand_r(&seed) % 4 == 0)
            break;
    }
    finish();
}

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static int compare_times(const void *a, const void *b)
{
    return (*(const double *)a > *(const double *)b) - (*(const double *)a < *(const double *)b);
}

// How long it took until all survivors knew, with deaths one after another; the looking takes part.
static void measure(int first, int count)
{
    double joined[MOST], known[MOST], since;
    for (int i = 0; i < count; i++) {
        begin("measure", MOST, 4, false);
        since = seconds();
        join_all();
        joined[i] = seconds() - since;
        since = seconds();
        for (int pe = first; pe < first + 1 + 3 * (first % 4 == 3); pe++)
            kill_pe(first == 3 ? pe + 1 : pe);
        await_names();
        known[i] = seconds() - since;
        finish();
    }
    qsort(joined, (size_t)count, sizeof *joined, compare_times);
    qsort(known, (size_t)count, sizeof *known, compare_times);
    printf("%d PEs: joined after %.1f ms, known after %.1f ms (median), %.1f ms (worst of %d)\n",
           MOST, joined[count / 2] * 1e3, known[count / 2] * 1e3, known[count - 1] * 1e3, count);
}

int main(int argc, char **argv)
{
    signal(SIGALRM, show);
    setpgid(0, 0); // what hangs is ended with all its processes
    if (argc > 3 && strcmp(argv[1], "measure") == 0) {
        measure(atoi(argv[2]), atoi(argv[3]) < MOST ? atoi(argv[3]) : MOST);
        return 0;
    }
    if (argc > 3 && strcmp(argv[1], "random") == 0) {
        for (int i = 0; i < atoi(argv[3]); i++)
            random_job((unsigned)(atoi(argv[2]) + i));
        return 0;
    }
    for (int i = 0; i < CASES; i++) {
        bool wanted = argc < 2;
        for (int a = 1; a < argc; a++)
            wanted |= strcmp(argv[a], cases[i].name) == 0;
        if (wanted)
            cases[i].run();
    }
    return 0;
}
