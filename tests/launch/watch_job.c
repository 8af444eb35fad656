// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE // fork, usleep, anonymous memory
#include "watch_job.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bootstrap/deaths.h"
#include "bootstrap/tcp_tree.h"
#include "core/error.h"

struct shared *shared;
int n, handover[2];
pid_t pids[MOST];
bool alive[MOST];
static int node[MOST];
static bool dead[MOST];
static const char *what;

// ------------------------------------------------------------------------------------------
// a PE

static int me;

static void on_death(int pe, const char *reason)
{
    (void)reason;
    shared->named[me][pe] = true;
}

// As if something between the hosts had cut all connections.
static void cut_connections(void)
{
    DIR *fds = opendir("/proc/self/fd");
    for (struct dirent *entry; fds && (entry = readdir(fds));) {
        struct sockaddr_storage peer;
        socklen_t bytes = sizeof peer;
        int fd = atoi(entry->d_name);
        if (getpeername(fd, (struct sockaddr *)&peer, &bytes) == 0 && peer.ss_family == AF_INET)
            shutdown(fd, SHUT_RDWR);
    }
    if (fds)
        closedir(fds);
    shared->cut++;
}

// What the program needs itself.
static void open_files(void)
{
    int fds[FILES / 3];
    for (int i = 0; i < FILES / 3; i++) {
        fds[i] = open("/dev/null", O_RDONLY | O_CLOEXEC);
        if (fds[i] < 0) {
            perror("open");
            exit(1);
        }
    }
    for (int i = 0; i < FILES / 3; i++)
        close(fds[i]);
    shared->opened++;
}

static int listener_of(int pe)
{
    for (int fd = 3; fd < FILES; fd++) {
        struct sockaddr_in at = {0};
        socklen_t bytes = sizeof at;
        int listens = 0;
        socklen_t size = sizeof listens;
        if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) == 0 && listens &&
            getsockname(fd, (struct sockaddr *)&at, &bytes) == 0 &&
            ntohs(at.sin_port) == shared->cards[pe].listens.port)
            return fd;
    }
    return -1;
}

// Between this PE and the job's process, which keeps the listening socket after the PE's death.
static void give_listener(void)
{
    int listener = listener_of(me);
    char byte = 0;
    struct iovec part = {.iov_base = &byte, .iov_len = 1};
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control = {0};
    struct msghdr header = {.msg_iov = &part,
                            .msg_iovlen = 1,
                            .msg_control = control.bytes,
                            .msg_controllen = sizeof control.bytes};
    struct cmsghdr *rights = CMSG_FIRSTHDR(&header);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(sizeof listener);
    memcpy(CMSG_DATA(rights), &listener, sizeof listener);
    if (listener < 0 || sendmsg(handover[0], &header, 0) != 1)
        perror("give_listener");
}

static void await_order(void)
{
    while (shared->order[me] == WAIT)
        usleep(1000);
}

static void run_pe(void)
{
    struct gpsh_bootstrap b = {.my_pe = me, .n_pes = n, .node_pes = &node[me]};
    static struct gpsh_deaths deaths = GPSH_DEATHS_INITIALIZER;
    if (gpsh_deaths_open(&deaths, n))
        exit(1);
    gpsh_deaths_on_death(&deaths, on_death);
    struct gpsh_node_watch *watch = gpsh_node_watch_open(&b, "127.0.0.1", &deaths);
    if (!watch) {
        fprintf(stderr, "%s: PE %d: %s\n", what, me, gpsh_last_error());
        exit(1);
    }
    gpsh_node_watch_describe(watch, &shared->cards[me]);
    shared->ready++;
    await_order();
    for (int pe = 0; pe < n; pe++)
        gpsh_node_watch_hear(watch, pe, &shared->cards[pe]);
    gpsh_node_watch_settle(watch);
    shared->order[me] = WAIT;
    shared->joined++;
    for (int order = JOIN; order != LEAVE;) {
        await_order();
        order = atomic_exchange(&shared->order[me], WAIT);
        if (order == CUT)
            cut_connections();
        if (order == OPEN_FILES)
            open_files();
        if (order == GIVE)
            give_listener();
        if (order == EXPECT) {
            struct gpsh_tcp_tree *tree = gpsh_node_watch_tree(watch);
            if (tree) // else nobody takes part
                gpsh_tcp_tree_expect_departures(tree, NULL);
            shared->expecting++;
        }
    }
    gpsh_node_watch_close(watch);
    gpsh_deaths_close(&deaths);
    shared->left[me] = true;
    exit(0); // leaks are told
}

// ------------------------------------------------------------------------------------------
// the job

void show(int signal)
{
    (void)signal;
    fprintf(stderr, "%s: hangs; of %d PEs %d have joined\n", what, n, shared->joined);
    for (int pe = 0; pe < n; pe++) {
        fprintf(stderr, "PE %d on node %d%s names:", pe, node[pe], dead[pe] ? ", dead," : "");
        for (int other = 0; other < n; other++)
            if (shared->named[pe][other])
                fprintf(stderr, " %d", other);
        fprintf(stderr, "\n");
    }
    kill(0, SIGKILL);
}

void fail(const char *sentence, int pe, int other)
{
    fprintf(stderr, "%s: PE %d %s PE %d\n", what, pe, sentence, other);
    kill(0, SIGKILL);
}

void until(_Atomic int *count, int value)
{
    while (*count < value)
        usleep(1000);
}

void begin(const char *name, int pes, int per_node, bool cyclic)
{
    what = name;
    n = pes;
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        exit(1);
    alarm(HANG_S);
    for (int pe = 0; pe < n; pe++) {
        int nodes = (n + per_node - 1) / per_node;
        node[pe] = cyclic ? pe % nodes : pe / per_node * per_node;
        alive[pe] = true;
        dead[pe] = false;
    }
    for (int pe = 0; pe < n; pe++) {
        pids[pe] = fork();
        if (pids[pe])
            continue;
        me = pe;
        run_pe();
    }
    until(&shared->ready, n);
}

void join_all(void)
{
    int joining = 0;
    for (int pe = 0; pe < n; pe++) {
        joining += alive[pe];
        shared->order[pe] = JOIN;
    }
    until(&shared->joined, joining);
}

void start(const char *name, int pes, int per_node, bool cyclic)
{
    begin(name, pes, per_node, cyclic);
    join_all();
}

void kill_pe(int pe)
{
    kill(pids[pe], SIGKILL);
    alive[pe] = false;
    dead[pe] = true;
}

void reap(void)
{
    for (int pe = 0; pe < n; pe++)
        if (dead[pe] && pids[pe] > 0) {
            waitpid(pids[pe], NULL, 0);
            pids[pe] = 0;
        }
}

static void check_names(void)
{
    for (int pe = 0; pe < n; pe++)
        for (int other = 0; other < n; other++)
            if (shared->named[pe][other] && !dead[other])
                fail("takes for dead", pe, other);
}

// Every survivor names all the dead.
void await_names(void)
{
    for (int pe = 0; pe < n; pe++)
        for (int other = 0; other < n; other++)
            while (alive[pe] && dead[other] && !shared->named[pe][other])
                usleep(1000);
    check_names();
}

// As in finalize, which is a barrier first.
void expect_departures(void)
{
    int expecting = 0;
    shared->expecting = 0;
    for (int pe = 0; pe < n; pe++) {
        expecting += alive[pe];
        if (alive[pe])
            shared->order[pe] = EXPECT;
    }
    until(&shared->expecting, expecting);
}

void leave_one(int pe)
{
    int status;
    shared->order[pe] = LEAVE;
    if (waitpid(pids[pe], &status, 0) != pids[pe] || status)
        fail("ends with an error, not", pe, pe);
    alive[pe] = false;
}

void finish(void)
{
    reap();
    expect_departures();
    for (int pe = 0; pe < n; pe++)
        if (alive[pe])
            leave_one(pe);
    check_names();
    munmap(shared, sizeof *shared);
    printf("%s: ok\n", what);
    fflush(stdout);
}
