// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE // memfd_create, MSG_CMSG_CLOEXEC
#include "keeper_wire.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

static void text_put(FILE *out, const char *text)
{
    fwrite(text, 1, strlen(text) + 1, out);
}

int gpsh_keeper_texts_write(const struct gpsh_child_plan *plan, struct gpsh_keeper_request *r)
{
    int fd = memfd_create("gpushmem-plan", MFD_CLOEXEC);
    int copy = fd < 0 ? -1 : dup(fd);
    FILE *out = copy < 0 ? NULL : fdopen(copy, "w");
    if (!out)
        goto err_close;
    text_put(out, plan->path);
    text_put(out, plan->directory ? plan->directory : "");
    for (r->n_args = 0; plan->argv[r->n_args]; r->n_args++)
        text_put(out, plan->argv[r->n_args]);
    for (r->n_variables = 0; plan->environment[r->n_variables]; r->n_variables++)
        text_put(out, plan->environment[r->n_variables]);
    if (fclose(out) == 0)
        return fd;
    copy = -1;

err_close:
    if (copy >= 0)
        close(copy);
    if (fd >= 0)
        close(fd);
    return -1;
}

static char **texts_list(char **next, int n)
{
    char **list = calloc((size_t)n + 1, sizeof(*list));
    for (int i = 0; list && i < n; i++) {
        list[i] = *next;
        *next += strlen(*next) + 1;
    }
    return list;
}

bool gpsh_keeper_texts_read(const struct gpsh_keeper_request *r, int texts,
                            struct gpsh_child_plan *plan)
{
    struct stat st;
    if (fstat(texts, &st) < 0)
        return false;
    char *next = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_PRIVATE, texts, 0);
    if (next == MAP_FAILED)
        return false;
    plan->path = next;
    next += strlen(next) + 1;
    plan->directory = *next ? next : NULL;
    next += strlen(next) + 1;
    plan->argv = texts_list(&next, r->n_args);
    plan->environment = texts_list(&next, r->n_variables);
    plan->cpus = r->pinned ? &r->cpus : NULL;
    plan->signals = &r->signals;
    plan->terminal = r->terminal;
    return plan->argv && plan->environment;
}

bool gpsh_keeper_send(int socket, const struct gpsh_keeper_request *r,
                      const int fds[GPSH_KEEPER_FDS])
{
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(GPSH_KEEPER_FDS * sizeof(int))];
    } control = {0};
    struct iovec part = {.iov_base = (void *)r, .iov_len = sizeof(*r)};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    if (fds) {
        message.msg_control = &control;
        message.msg_controllen = sizeof(control.bytes);
        control.header = (struct cmsghdr){.cmsg_len = CMSG_LEN(GPSH_KEEPER_FDS * sizeof(int)),
                                          .cmsg_level = SOL_SOCKET,
                                          .cmsg_type = SCM_RIGHTS};
        memcpy(CMSG_DATA(&control.header), fds, GPSH_KEEPER_FDS * sizeof(int));
    }
    ssize_t sent;
    while ((sent = sendmsg(socket, &message, MSG_NOSIGNAL)) < 0 && errno == EINTR)
        continue;
    return sent == sizeof(*r);
}

bool gpsh_keeper_receive(int socket, struct gpsh_keeper_request *r, int fds[GPSH_KEEPER_FDS])
{
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(GPSH_KEEPER_FDS * sizeof(int))];
    } control = {0};
    struct iovec part = {.iov_base = r, .iov_len = sizeof(*r)};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = &control,
                             .msg_controllen = sizeof(control.bytes)};
    ssize_t got;
    while ((got = recvmsg(socket, &message, MSG_CMSG_CLOEXEC)) < 0 && errno == EINTR)
        continue;
    for (int i = 0; i < GPSH_KEEPER_FDS; i++)
        fds[i] = -1;
    const struct cmsghdr *c = got > 0 ? CMSG_FIRSTHDR(&message) : NULL;
    if (c && c->cmsg_type == SCM_RIGHTS)
        memcpy(fds, CMSG_DATA(c), c->cmsg_len - CMSG_LEN(0));
    return got == sizeof(*r);
}
