// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE // what sockets need
#include "core/launcher.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "core/fd_message.h"

struct handed_down {
    int segment, line;
    unsigned long long segment_inode, line_inode;
    unsigned long long device, inode; // of standard error, 0: not the launcher's
};

static bool read_variable(struct handed_down *h)
{
    const char *text = getenv(GPSH_LAUNCHER_JOB);
    *h = (struct handed_down){.segment = -1, .line = -1};
    return text && sscanf(text, "%d:%llu %d:%llu %llu:%llu", &h->segment, &h->segment_inode,
                          &h->line, &h->line_inode, &h->device, &h->inode) >= 4;
}

static bool is_inode(int fd, unsigned long long inode, mode_t type)
{
    struct stat st;
    return fstat(fd, &st) == 0 && (st.st_mode & S_IFMT) == type && st.st_ino == inode;
}

enum gpsh_launched gpsh_launcher_find(int *segment, int *line)
{
    struct handed_down h;
    if (!read_variable(&h))
        return GPSH_NOT_LAUNCHED;
    if (!is_inode(h.segment, h.segment_inode, S_IFREG) || !is_inode(h.line, h.line_inode, S_IFSOCK))
        return GPSH_CUT_OFF;
    *segment = h.segment;
    *line = h.line;
    return GPSH_LAUNCHED;
}

int gpsh_launcher_send(int line, const struct gpsh_line_message *head, const char *text,
                       size_t bytes, const int *fds, int n)
{
    struct iovec parts[] = {{.iov_base = (void *)head, .iov_len = sizeof *head},
                            {.iov_base = (void *)text, .iov_len = bytes}};
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = text ? 2 : 1};
    // The launcher hears nobody who does not say who he is.
    return gpsh_fd_message_send(line, &message, fds, n, true) < 0 ? errno : 0;
}

int gpsh_launcher_receive(int line, struct gpsh_line_message *answer, int *fds, int most)
{
    struct iovec part = {.iov_base = answer, .iov_len = sizeof *answer};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    int n = most;
    ssize_t got = gpsh_fd_message_receive(line, &message, fds, &n, NULL);
    int error = got < 0 ? errno : got == 0 ? EPIPE : got == sizeof *answer ? 0 : EPROTO;
    if (!error && !(message.msg_flags & MSG_CTRUNC))
        return n;
    gpsh_fds_close(fds, n);
    return -error;
}

// To a launcher that prints where this process does.
static bool say(enum gpsh_line_word word, const char *text, size_t bytes)
{
    struct handed_down h;
    struct stat st;
    const struct gpsh_line_message head = {.word = word};
    return read_variable(&h) && h.inode && fstat(STDERR_FILENO, &st) == 0 &&
           st.st_dev == h.device && st.st_ino == h.inode &&
           is_inode(h.line, h.line_inode, S_IFSOCK) &&
           gpsh_launcher_send(h.line, &head, text, bytes, NULL, 0) == 0;
}

bool gpsh_launcher_log(const char *text, size_t bytes)
{
    return say(GPSH_LINE_LOG, text, bytes);
}

bool gpsh_launcher_call(void)
{
    return say(GPSH_LINE_CALL, NULL, 0);
}
