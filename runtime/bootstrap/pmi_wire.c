// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE // F_DUPFD_CLOEXEC
#include "bootstrap/pmi_wire.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/error.h"

int gpsh_pmi_wire_open(struct gpsh_pmi_wire *w, const char *pmi_fd)
{
    char *end;
    struct stat st;
    long fd = strtol(pmi_fd, &end, 10);
    *w = (struct gpsh_pmi_wire){.fd = -1};
    if (*end || end == pmi_fd || fd < 0 || fd > INT_MAX || fstat((int)fd, &st) ||
        !S_ISSOCK(st.st_mode))
        return gpsh_fail(GPUSHMEM_ERR_BOOTSTRAP,
                         "PMI_FD is '%.20s', which is no open socket of this process: either the "
                         "program that started it closed the descriptors, or MPI_Finalize did; "
                         "start it with the launcher itself, or, to be a job of one PE, set "
                         "GPUSHMEM_BOOTSTRAP=single",
                         pmi_fd);
    w->fd = fcntl((int)fd, F_DUPFD_CLOEXEC, 3);
    if (w->fd < 0)
        return gpsh_fail(GPUSHMEM_ERR_SYSTEM, "no descriptor to talk to the launcher: %s",
                         strerror(errno));
    fcntl((int)fd, F_SETFD, FD_CLOEXEC);
    return 0;
}

void gpsh_pmi_wire_close(struct gpsh_pmi_wire *w)
{
    if (w->fd >= 0)
        close(w->fd);
    w->fd = -1;
    w->wrong = "the conversation is over";
}

static int fail_wire(struct gpsh_pmi_wire *w, const char *wrong)
{
    w->wrong = wrong;
    return gpsh_fail(GPUSHMEM_ERR_BOOTSTRAP, "the launcher cannot be asked by PMI-1: %s", wrong);
}

int gpsh_pmi_fail_answer(struct gpsh_pmi_wire *w, const char *line, const char *wanted)
{
    char shown[81];
    snprintf(shown, sizeof shown, "%.80s", line);
    for (char *c = shown; *c; c++)
        *c = isprint((unsigned char)*c) ? *c : '?';
    w->wrong = "it gave an answer before that makes no sense";
    return gpsh_fail(GPUSHMEM_ERR_BOOTSTRAP,
                     "the launcher, asked by PMI-1, answered '%s' where %s was expected: is what "
                     "PMI_FD names its descriptor?",
                     shown, wanted);
}

// 0, or an errno value; ETIMEDOUT after `ms`.
static int await(int fd, short events, int ms)
{
    struct pollfd ready = {.fd = fd, .events = events};
    int n = poll(&ready, 1, ms);
    return n > 0 ? 0 : n == 0 ? ETIMEDOUT : errno;
}

int gpsh_pmi_send(struct gpsh_pmi_wire *w, const char *request, uint64_t deadline_ns)
{
    size_t left = strlen(request);
    if (w->wrong)
        return fail_wire(w, w->wrong);
    while (left) {
        ssize_t n = send(w->fd, request, left, MSG_NOSIGNAL | MSG_DONTWAIT);
        int error = n < 0 ? errno : 0;
        if (error == EAGAIN)
            error = await(w->fd, POLLOUT, gpsh_clock_left_ms(deadline_ns));
        if (error == ETIMEDOUT)
            return fail_wire(w, "it takes no requests; is it stopped?");
        if (error && error != EINTR)
            return fail_wire(w, "it has ended, or hung up");
        request += n > 0 ? n : 0;
        left -= n > 0 ? (size_t)n : 0;
    }
    return 0;
}

// Bytes behind the line that was read stay for the next; a launcher sends none unasked.
int gpsh_pmi_receive(struct gpsh_pmi_wire *w, long ms, char **line)
{
    if (w->wrong)
        return fail_wire(w, w->wrong);
    uint64_t deadline = gpsh_clock_in(ms);
    for (;;) {
        int error = await(w->fd, POLLIN, gpsh_clock_left_ms(deadline));
        if (error == ETIMEDOUT)
            return 0;
        ssize_t n =
            error ? -1
                  : recv(w->fd, w->answer + w->have, sizeof w->answer - 1 - w->have, MSG_DONTWAIT);
        error = error ? error : n < 0 ? errno : 0;
        if (error == EAGAIN || error == EINTR)
            continue;
        if (error || n == 0)
            return fail_wire(w, "it has ended, or hung up");
        w->have += (size_t)n;
        w->answer[w->have] = '\0';
        if (memchr(w->answer, '\0', w->have))
            return fail_wire(w, "it sent a zero byte, which is no text");
        char *end = strchr(w->answer, '\n');
        if (!end && w->have == sizeof w->answer - 1)
            return fail_wire(w, "it sent a line without an end");
        if (!end)
            continue;
        if (end[1])
            return fail_wire(w, "it sent more than it was asked for");
        *end = '\0';
        w->have = 0;
        *line = w->answer;
        return 1;
    }
}

bool gpsh_pmi_field(const char *line, const char *name, char *value, size_t bytes)
{
    size_t length = strlen(name);
    for (const char *word = line; *word; word += strcspn(word, " ")) {
        word += strspn(word, " ");
        if (strncmp(word, name, length) != 0 || word[length] != '=')
            continue;
        const char *from = word + length + 1;
        size_t n = strcspn(from, " ");
        if (n >= bytes)
            return false;
        memcpy(value, from, n);
        value[n] = '\0';
        return true;
    }
    return false;
}

int gpsh_pmi_ask(struct gpsh_pmi_wire *w, const char *request, const char *cmd, int64_t limit_ms,
                 char **line)
{
    char value[64];
    int status = gpsh_pmi_send(w, request, gpsh_clock_in(limit_ms));
    if (status)
        return status;
    int come = gpsh_pmi_receive(w, limit_ms, line);
    if (come < 0)
        return come;
    if (come == 0)
        return fail_wire(w, "it does not answer; is it stopped, or has MPI_Init or a parent "
                            "process used the same descriptor before?");
    if (!gpsh_pmi_field(*line, "cmd", value, sizeof value) || strcmp(value, cmd) != 0)
        return gpsh_pmi_fail_answer(w, *line, cmd);
    if (gpsh_pmi_field(*line, "rc", value, sizeof value) && strcmp(value, "0") != 0)
        return gpsh_fail(GPUSHMEM_ERR_BOOTSTRAP, "the launcher refuses (PMI-1): '%.80s'", *line);
    return 0;
}

// ------------------------------------------------------------------------------------------
// text

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

size_t gpsh_pmi_encode(const void *data, size_t bytes, char *text)
{
    const uint8_t *from = data;
    char *to = text;
    uint32_t bits = 0;
    int n = 0;
    for (size_t i = 0; i < bytes; i++) {
        bits = bits << 8 | from[i];
        for (n += 8; n >= 6; n -= 6)
            *to++ = digits[bits >> (n - 6) & 63];
    }
    if (n)
        *to++ = digits[bits << (6 - n) & 63];
    *to = '\0';
    return (size_t)(to - text);
}

long gpsh_pmi_decode(const char *text, void *data, size_t room)
{
    uint8_t *to = data;
    size_t bytes = 0;
    uint32_t bits = 0;
    int n = 0;
    for (; *text; text++) {
        const char *digit = strchr(digits, *text);
        if (!digit)
            return -1;
        bits = bits << 6 | (uint32_t)(digit - digits);
        n += 6;
        if (n < 8)
            continue;
        n -= 8;
        if (bytes == room)
            return -1;
        to[bytes++] = (uint8_t)(bits >> n);
    }
    return (long)bytes;
}

// ------------------------------------------------------------------------------------------
// PMI_process_mapping: which ranks share a node

struct block {
    long node, nodes, ranks;
};

static bool read_number(const char **text, long least, char end, long *number)
{
    char *after;
    if (**text < '0' || **text > '9')
        return false;
    *number = strtol(*text, &after, 10);
    if (*after != end || *number < least || *number > INT_MAX / 2)
        return false;
    *text = after + 1;
    return true;
}

// Reads ",(0,2,4)" and moves on behind it. What is no block is left where it is.
static bool read_block(const char **text, struct block *block)
{
    if (strncmp(*text, ",(", 2) != 0)
        return false;
    const char *at = *text + 2;
    if (!read_number(&at, 0, ',', &block->node) || !read_number(&at, 1, ',', &block->nodes) ||
        !read_number(&at, 1, ')', &block->ranks))
        return false;
    *text = at;
    return true;
}

bool gpsh_pmi_mapping_read(const char *text, int n_pes, int *node)
{
    static const char head[] = "(vector";
    struct block block;
    if (strncmp(text, head, strlen(head)) != 0)
        return false;
    text += strlen(head);
    const char *first = text, *at = text;
    while (read_block(&at, &block))
        ;
    if (at == first || strcmp(at, ")") != 0)
        return false;
    at = first;
    for (int pe = 0; pe < n_pes;) {
        if (*at == ')')
            at = first;
        read_block(&at, &block);
        for (long i = 0; i < block.nodes && pe < n_pes; i++)
            for (long rank = 0; rank < block.ranks && pe < n_pes; rank++)
                node[pe++] = (int)(block.node + i);
    }
    return true;
}
