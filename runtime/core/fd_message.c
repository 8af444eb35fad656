// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE // struct ucred, SCM_CREDENTIALS
#include "core/fd_message.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

union control {
    struct cmsghdr align;
    char bytes[CMSG_SPACE(GPSH_FD_MESSAGE_MOST * sizeof(int)) + CMSG_SPACE(sizeof(struct ucred))];
};

static void control_add(struct msghdr *message, int type, const void *data, size_t bytes)
{
    struct cmsghdr *c = (struct cmsghdr *)((char *)message->msg_control + message->msg_controllen);
    *c = (struct cmsghdr){.cmsg_len = CMSG_LEN(bytes), .cmsg_level = SOL_SOCKET, .cmsg_type = type};
    memcpy(CMSG_DATA(c), data, bytes);
    message->msg_controllen += CMSG_SPACE(bytes);
}

ssize_t gpsh_fd_message_send(int socket, struct msghdr *message, const int *fds, int n, bool signs)
{
    union control control = {0};
    const struct ucred me = {.pid = getpid(), .uid = geteuid(), .gid = getegid()};
    ssize_t sent;
    message->msg_control = &control;
    message->msg_controllen = 0;
    if (signs)
        control_add(message, SCM_CREDENTIALS, &me, sizeof me);
    if (n > 0)
        control_add(message, SCM_RIGHTS, fds, (size_t)n * sizeof *fds);
    while ((sent = sendmsg(socket, message, MSG_NOSIGNAL)) < 0 && errno == EINTR)
        continue;
    return sent;
}

ssize_t gpsh_fd_message_receive(int socket, struct msghdr *message, int *fds, int *n,
                                struct gpsh_fd_sender *sender)
{
    union control control;
    struct ucred who = {.uid = (uid_t)-1};
    ssize_t got;
    do { // the kernel tells of the sender first
        message->msg_control = &control;
        message->msg_controllen =
            CMSG_LEN((size_t)*n * sizeof *fds) + (sender ? CMSG_SPACE(sizeof who) : 0);
        got = recvmsg(socket, message, MSG_CMSG_CLOEXEC);
    } while (got < 0 && errno == EINTR);
    *n = 0;
    for (struct cmsghdr *c = got < 0 ? NULL : CMSG_FIRSTHDR(message); c;
         c = CMSG_NXTHDR(message, c)) {
        if (c->cmsg_type == SCM_CREDENTIALS)
            memcpy(&who, CMSG_DATA(c), sizeof who);
        if (c->cmsg_type != SCM_RIGHTS)
            continue;
        *n = (int)((c->cmsg_len - CMSG_LEN(0)) / sizeof *fds);
        memcpy(fds, CMSG_DATA(c), (size_t)*n * sizeof *fds);
    }
    if (sender)
        *sender = (struct gpsh_fd_sender){who.pid, who.uid};
    return got;
}

void gpsh_fds_close(const int *fds, int n)
{
    for (int i = 0; i < n; i++)
        close(fds[i]);
}
