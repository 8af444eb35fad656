// SPDX-License-Identifier: BSD-3-Clause
#define _DEFAULT_SOURCE // syscall, dprintf; with _GNU_SOURCE glibc declares accept() with a type of
                        // its own
#include "door.h"

#include <errno.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

#define EXPORTED __attribute__((visibility("default"))) // for libpmix to find it

enum { SILENCE_S = 24 * 3600 }; // longer than anybody waits for a job to start

struct door_query {
    struct nlmsghdr header;
    struct inet_diag_req_v2 body;
};

static bool address_is_ip4(const struct sockaddr_storage *a)
{
    return a->ss_family == AF_INET;
}

// The other end's socket, as the kernel names it: from its own point of view.
static void query_fill(struct door_query *q, const struct sockaddr_in *theirs,
                       const struct sockaddr_in *ours)
{
    *q = (struct door_query){
        .header = {.nlmsg_len = sizeof(*q),
                   .nlmsg_type = SOCK_DIAG_BY_FAMILY,
                   .nlmsg_flags = NLM_F_REQUEST},
        .body = {.sdiag_family = AF_INET,
                 .sdiag_protocol = IPPROTO_TCP,
                 .idiag_states = ~0u,
                 .id = {.idiag_sport = theirs->sin_port,
                        .idiag_dport = ours->sin_port,
                        .idiag_src = {theirs->sin_addr.s_addr},
                        .idiag_dst = {ours->sin_addr.s_addr},
                        .idiag_cookie = {INET_DIAG_NOCOOKIE, INET_DIAG_NOCOOKIE}}}};
}

static bool user_by_sock_diag(const struct sockaddr_in *theirs, const struct sockaddr_in *ours,
                              uid_t *user)
{
    struct door_query query;
    union {
        struct nlmsghdr header;
        char bytes[4096];
    } reply;
    query_fill(&query, theirs, ours);
    int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
    if (fd < 0)
        return false;
    ssize_t got = send(fd, &query, sizeof(query), 0) < 0 ? -1 : recv(fd, &reply, sizeof(reply), 0);
    close(fd);
    if (got < (ssize_t)NLMSG_LENGTH(sizeof(struct inet_diag_msg)) ||
        reply.header.nlmsg_type != SOCK_DIAG_BY_FAMILY)
        return false;
    *user = ((const struct inet_diag_msg *)NLMSG_DATA(&reply.header))->idiag_uid;
    return true;
}

// One line per socket: "0: 0100007F:EB7B 0100007F:C0ED 01 0:0 0:0 0 UID ...".
static bool user_by_proc(const struct sockaddr_in *theirs, const struct sockaddr_in *ours,
                         uid_t *user)
{
    char line[512];
    bool found = false;
    FILE *list = fopen("/proc/net/tcp", "re");
    while (list && !found && fgets(line, sizeof(line), list)) {
        unsigned from, from_port, to, to_port, owner;
        found = sscanf(line, " %*d: %x:%x %x:%x %*x %*x:%*x %*x:%*x %*x %u", &from, &from_port, &to,
                       &to_port, &owner) == 5 &&
                from == theirs->sin_addr.s_addr && from_port == ntohs(theirs->sin_port) &&
                to == ours->sin_addr.s_addr && to_port == ntohs(ours->sin_port);
        if (found)
            *user = owner;
    }
    if (list)
        fclose(list);
    return found;
}

bool gpsh_door_peer_user(int connection, uid_t *user)
{
    struct sockaddr_storage theirs, ours;
    socklen_t n = sizeof(theirs), m = sizeof(ours);
    if (getpeername(connection, (struct sockaddr *)&theirs, &n) < 0 ||
        getsockname(connection, (struct sockaddr *)&ours, &m) < 0 || !address_is_ip4(&theirs) ||
        !address_is_ip4(&ours))
        return false;
    const struct sockaddr_in *from = (const struct sockaddr_in *)&theirs;
    const struct sockaddr_in *to = (const struct sockaddr_in *)&ours;
    return user_by_sock_diag(from, to, user) || user_by_proc(from, to, user);
}

int gpsh_door_secret(char text[2 * GPSH_SECRET_BYTES + 1])
{
    unsigned char bytes[GPSH_SECRET_BYTES];
    ssize_t got;
    while ((got = getrandom(bytes, sizeof(bytes), 0)) < 0 && errno == EINTR)
        continue;
    if (got != sizeof(bytes)) // as many as these come at once or not at all
        return got < 0 ? errno : EIO;
    for (int i = 0; i < GPSH_SECRET_BYTES; i++)
        snprintf(text + 2 * i, 3, "%02x", bytes[i]);
    return 0;
}

static bool is_tcp(int fd)
{
    int protocol = 0;
    socklen_t n = sizeof(protocol);
    return getsockopt(fd, SOL_SOCKET, SO_PROTOCOL, &protocol, &n) == 0 && protocol == IPPROTO_TCP;
}

// In the place of libc's, see door.h.
EXPORTED int listen(int fd, int backlog)
{
    if (is_tcp(fd)) {
        int seconds = SILENCE_S;
        setsockopt(fd, IPPROTO_TCP, TCP_DEFER_ACCEPT, &seconds, sizeof(seconds));
    }
    return (int)syscall(SYS_listen, fd, backlog);
}

// Only once: each PE connects.
static void say_unknown(int error)
{
    static atomic_bool said;
    bool full = error == EMFILE || error == ENFILE;
    if (!atomic_exchange(&said, true))
        dprintf(STDERR_FILENO, // this is libpmix's thread
                "gpushmem run: refused a connection to the PMIx server, because %s\n",
                full ? "the launcher can open no more files, to find out whose it is; raise that "
                       "(ulimit -n)"
                     : "the kernel does not tell whose it is: it has neither sock_diag "
                       "(inet_diag) nor /proc/net/tcp here; PEs cannot join without one of them");
}

// In the place of libc's, see door.h. A stranger's connection looks to libpmix like one that was
// gone before it could be accepted, which it takes calmly.
EXPORTED int accept(int fd, struct sockaddr *restrict address, socklen_t *restrict length)
{
    uid_t user;
    int connection = (int)syscall(SYS_accept4, fd, address, length, 0);
    if (connection < 0 || !is_tcp(connection))
        return connection;
    errno = 0;
    bool known = gpsh_door_peer_user(connection, &user);
    if (known && user == geteuid())
        return connection;
    if (!known)
        say_unknown(errno);
    close(connection);
    errno = EAGAIN;
    return -1;
}
