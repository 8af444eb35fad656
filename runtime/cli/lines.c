// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE // memfd_create
#include "lines.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include "core/memory_file.h"
#include "core/printable.h"

// MOST_OF_ONE: more messages than the buffer of a line holds (0.2 MiB, 0.75 KiB for each), so that
// one visit takes all that a PE has said before it ended.
enum { EVENTS = 64, PATIENCE_S = 1, MOST_OF_ONE = 512 };

// Whether the kernel tells who has sent a message. A socket that has asked for that gets a name,
// which everybody could see, once it sends: meanwhile PEs' messages say it themselves.
static int ask_for_senders(int fd, int on)
{
    return setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &on, sizeof(on));
}

int gpsh_lines_open(struct gpsh_lines *l, int n_pes, int n_nodes, int *pe_ends)
{
    const struct timeval patience = {.tv_sec = PATIENCE_S}; // a stopped launcher stops no PE
    l->epoll = epoll_create1(EPOLL_CLOEXEC);
    l->n_pes = n_pes;
    l->n_nodes = n_nodes;
    l->refused = l->no_room = false;
    for (int pe = 0; pe < n_pes; pe++) {
        l->lines[pe] = (struct gpsh_line){.fd = -1, .files = {{.fd = -1}, {.fd = -1}}};
        pe_ends[pe] = -1;
    }
    if (l->epoll < 0)
        return errno;
    for (int pe = 0; pe < n_pes; pe++) {
        int ends[2];
        struct epoll_event event = {.events = EPOLLIN, .data.u32 = (uint32_t)pe};
        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
            return errno;
        l->lines[pe].fd = ends[0];
        pe_ends[pe] = ends[1];
        if (ask_for_senders(ends[0], true) < 0 ||
            setsockopt(ends[1], SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience)) < 0 ||
            fcntl(ends[0], F_SETFL, O_NONBLOCK) < 0 ||
            epoll_ctl(l->epoll, EPOLL_CTL_ADD, ends[0], &event) < 0)
            return errno;
    }
    return 0;
}

static void fds_close(const int *fds, int *n)
{
    gpsh_fds_close(fds, *n);
    *n = 0;
}

// ------------------------------------------------------------------------------------------
// descriptors

static bool has_given(const struct gpsh_line *line, int32_t round)
{
    return line->n_fds > 0 && line->round == round;
}

// With n descriptors. False and errno: the PE did not get it.
static bool send_answer(const struct gpsh_line *to, struct gpsh_line_message answer, const int *fds,
                        int n)
{
    struct iovec part = {.iov_base = &answer, .iov_len = sizeof(answer)};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    ask_for_senders(to->fd, false);
    ssize_t sent = gpsh_fd_message_send(to->fd, &message, fds, n, false);
    int error = errno;
    ask_for_senders(to->fd, true);
    errno = error;
    return sent >= 0;
}

// Too many descriptors of this user are on their way; they will be received.
static bool comes_later(int error)
{
    return error == ETOOMANYREFS || error == EAGAIN || error == ENOBUFS;
}

static bool send_sets(const struct gpsh_lines *l, const struct gpsh_line *to, int first_of_node)
{
    int fds[GPSH_LINE_MOST_FDS], n = 0;
    for (int i = 0; i < to->wanted; i++) {
        const struct gpsh_line *from = &l->lines[first_of_node + to->first + i];
        memcpy(fds + n, from->fds, (size_t)from->n_fds * sizeof(int));
        n += from->n_fds;
    }
    const struct gpsh_line_message answer = {
        .word = GPSH_LINE_GIVEN, .a = to->wanted_round, .b = to->first, .c = to->wanted};
    return send_answer(to, answer, fds, n);
}

// Once all PEs of a node have everything, the memory is theirs alone.
static void settle(struct gpsh_lines *l, int node)
{
    int first = gpsh_job_first_pe(node, l->n_pes, l->n_nodes);
    int end = gpsh_job_first_pe(node + 1, l->n_pes, l->n_nodes);
    for (int pe = first; pe < end; pe++)
        if (!l->lines[pe].has_all)
            return;
    for (int pe = first; pe < end; pe++) {
        fds_close(l->lines[pe].fds, &l->lines[pe].n_fds);
        l->lines[pe].has_all = false;
    }
}

// Gives a PE what it has asked for, if all of that is there.
static void serve(struct gpsh_lines *l, int pe, int first)
{
    struct gpsh_line *to = &l->lines[pe];
    int n_fds = 0;
    for (int i = 0; i < to->wanted; i++) {
        const struct gpsh_line *from = &l->lines[first + to->first + i];
        if (!has_given(from, to->wanted_round))
            return;
        n_fds += from->n_fds;
    }
    if (n_fds > GPSH_LINE_MOST_FDS)
        to->wanted = 0; // the PE has asked for more than it may
    if (to->wanted == 0)
        return;
    if (!send_sets(l, to, first)) {
        l->refused |= comes_later(errno);
        return;
    }
    to->wanted = 0;
}

// ------------------------------------------------------------------------------------------
// files of a node

static void file_close(struct gpsh_line_file *file)
{
    if (file->fd >= 0)
        close(file->fd);
    file->fd = -1;
}

// Memory that nobody touches costs nothing. Sealed, so that no PE makes it shorter for another one.
static int memory_of(uint64_t bytes)
{
    int fd = memfd_create("gpushmem-node", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0)
        return -1;
    if (fchmod(fd, 0600) == 0 && gpsh_memory_file_grow(fd, bytes) == 0 &&
        fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0)
        return fd;
    close(fd);
    return -1;
}

// The file of which this PE has not heard yet: the first to ask for one after all have, and one
// that asks again, as some have begun anew, gets a new one.
static struct gpsh_line_file *file_for(struct gpsh_lines *l, int pe, int first, int end)
{
    const struct gpsh_line *asks = &l->lines[pe];
    struct gpsh_line_file *file = &l->lines[first].files[asks->use];
    if (asks->heard[asks->use])
        file_close(file);
    if (file->fd >= 0)
        return file;
    for (int i = first; i < end; i++)
        l->lines[i].heard[asks->use] = false;
    file->fd = memory_of((uint64_t)(end - first) * (uint64_t)asks->units * GPSH_SHARE_UNIT);
    file->units = asks->units;
    return file;
}

// Kept here longer, memory of PEs would live as long as the job.
static void close_if_heard(struct gpsh_lines *l, int use, int first, int end)
{
    for (int pe = first; pe < end; pe++)
        if (!l->lines[pe].heard[use] && !l->lines[pe].ended)
            return;
    file_close(&l->lines[first].files[use]);
}

// A PE that would need another size has to do without, and so have the others then, as they see.
static void serve_part(struct gpsh_lines *l, int pe, int first, int end)
{
    struct gpsh_line *to = &l->lines[pe];
    struct gpsh_line_file *file = file_for(l, pe, first, end);
    const struct gpsh_line_message answer = {
        .word = GPSH_LINE_SHARED, .a = to->question, .b = pe - first, .c = to->use};
    bool fits = file->fd >= 0 && file->units == to->units;
    bool sent = send_answer(to, answer, &file->fd, fits);
    if (!sent && comes_later(errno)) {
        l->refused = true;
        return;
    }
    to->units = 0;
    if (!sent)
        return;
    // One that has no part will not come for it either.
    to->heard[to->use] = file->fd >= 0;
    close_if_heard(l, to->use, first, end);
}

static void on_share(struct gpsh_line *line, const struct gpsh_line_message *m)
{
    if (m->c < 0 || m->c >= GPSH_SHARES || m->b <= 0)
        return; // no such use, or nothing
    line->question = m->a;
    line->units = m->b;
    line->use = m->c;
}

static void serve_node(struct gpsh_lines *l, int node)
{
    int first = gpsh_job_first_pe(node, l->n_pes, l->n_nodes);
    int end = gpsh_job_first_pe(node + 1, l->n_pes, l->n_nodes);
    for (int pe = first; pe < end; pe++) {
        if (l->lines[pe].wanted > 0)
            serve(l, pe, first);
        if (l->lines[pe].units > 0)
            serve_part(l, pe, first, end);
    }
}

static void on_give(struct gpsh_line *line, int32_t round, int *fds, int *n)
{
    fds_close(line->fds, &line->n_fds);
    memcpy(line->fds, fds, (size_t)*n * sizeof(int));
    line->n_fds = *n;
    line->round = round;
    line->has_all = false;
    *n = 0;
}

static void on_take(struct gpsh_lines *l, int pe, const struct gpsh_line_message *m)
{
    int node = gpsh_job_node_of(pe, l->n_pes, l->n_nodes);
    int n = gpsh_job_first_pe(node + 1, l->n_pes, l->n_nodes) -
            gpsh_job_first_pe(node, l->n_pes, l->n_nodes);
    if (m->b < 0 || m->c < 0 || m->b > n || m->c > n - m->b)
        return; // there are no such PEs
    l->lines[pe].has_all = m->c == 0 && has_given(&l->lines[pe], m->a);
    if (l->lines[pe].has_all)
        settle(l, node);
    l->lines[pe].wanted_round = m->a;
    l->lines[pe].first = m->b;
    l->lines[pe].wanted = m->c;
}

// ------------------------------------------------------------------------------------------
// messages

struct received {
    struct gpsh_line_message head;
    char text[GPSH_LINE_TEXT + 1];
    int fds[GPSH_LINE_FDS], n_fds;
    bool no_room; // for all of its descriptors
};

// False: nothing more is there. A message that is none of ours has no word that anybody knows.
static bool receive(int fd, struct received *r)
{
    struct gpsh_fd_sender who;
    struct iovec parts[] = {{.iov_base = &r->head, .iov_len = sizeof(r->head)},
                            {.iov_base = r->text, .iov_len = sizeof(r->text) - 1}};
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
    r->n_fds = GPSH_LINE_FDS;
    ssize_t n = gpsh_fd_message_receive(fd, &message, r->fds, &r->n_fds, &who);
    if (n <= 0)
        return false;
    bool ours = who.uid == geteuid();
    // One with more than there is place for is the PE's mistake.
    r->no_room = ours && message.msg_flags & MSG_CTRUNC && r->n_fds < GPSH_LINE_FDS;
    const ssize_t head = sizeof(r->head);
    if (!ours || n < head || message.msg_flags & MSG_CTRUNC)
        r->head.word = -1;
    r->text[n < head ? 0 : n - head] = '\0';
    gpsh_printable(r->text, sizeof(r->text));
    return true;
}

// A PE that floods its line is left for the next visit, so that others are heard, and their ends.
// True: nothing more is there.
static bool read_line(struct gpsh_lines *l, int pe, gpsh_line_said_fn *said, void *arg)
{
    struct received r;
    struct gpsh_line *line = &l->lines[pe];
    int i = 0;
    for (; i < MOST_OF_ONE && line->fd >= 0 && receive(line->fd, &r); i++) {
        const struct gpsh_line_message *m = &r.head;
        if (m->word == GPSH_LINE_GIVE && r.n_fds > 0)
            on_give(line, m->a, r.fds, &r.n_fds);
        else if (m->word == GPSH_LINE_TAKE)
            on_take(l, pe, m);
        else if (m->word == GPSH_LINE_SHARE)
            on_share(line, m);
        else if (m->word >= 0)
            said(pe, m, r.text, arg);
        fds_close(r.fds, &r.n_fds);
        l->no_room |= r.no_room;
    }
    return i < MOST_OF_ONE;
}

void gpsh_lines_read(struct gpsh_lines *l, gpsh_line_said_fn *said, void *arg)
{
    struct epoll_event events[EVENTS];
    int n, left = l->n_pes, last_node = -1;
    bool again = l->refused;
    l->refused = false;
    do {
        n = epoll_wait(l->epoll, events, EVENTS, 0);
        for (int i = 0; i < n; i++) {
            int pe = (int)events[i].data.u32;
            bool all = read_line(l, pe, said, arg);
            // At the end of the last process that has it: EPOLLHUP would come for ever.
            if (all && events[i].events & (EPOLLHUP | EPOLLERR))
                epoll_ctl(l->epoll, EPOLL_CTL_DEL, l->lines[pe].fd, NULL);
        }
        left -= n;
    } while (n == EVENTS && left > 0); // the kernel lets all take turns
    for (int pe = 0; pe < l->n_pes; pe++) {
        int node = gpsh_job_node_of(pe, l->n_pes, l->n_nodes);
        bool asks = l->lines[pe].wanted > 0 || l->lines[pe].units > 0;
        if (node != last_node && (again || asks))
            serve_node(l, last_node = node);
    }
}

void gpsh_lines_forget(struct gpsh_lines *l, int pe)
{
    struct gpsh_line *line = &l->lines[pe];
    int node = gpsh_job_node_of(pe, l->n_pes, l->n_nodes);
    fds_close(line->fds, &line->n_fds);
    line->wanted = line->units = 0;
    line->ended = true;
    for (int use = 0; use < GPSH_SHARES; use++)
        close_if_heard(l, use, gpsh_job_first_pe(node, l->n_pes, l->n_nodes),
                       gpsh_job_first_pe(node + 1, l->n_pes, l->n_nodes));
}
