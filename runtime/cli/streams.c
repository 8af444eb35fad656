// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE // pipe2, memrchr, posix_openpt, cfmakeraw
#include "streams.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

// ---- Standard output ----

enum {
    SINK_FULL = 1 << 20,   // bytes waiting in a sink above which no stream is read
    LONGEST_LINE = 1 << 20 // longer lines are cut into several
};

// False if memory ran out: then the text is lost, but the job goes on.
static bool append(char **text, size_t *bytes, size_t *room, const char *more, size_t n)
{
    if (*bytes + n > *room) {
        size_t wanted = *room ? *room : 4096;
        while (wanted < *bytes + n)
            wanted *= 2;
        char *grown = realloc(*text, wanted);
        if (!grown)
            return false;
        *text = grown;
        *room = wanted;
    }
    memcpy(*text + *bytes, more, n);
    *bytes += n;
    return true;
}

void gpsh_sink_open(struct gpsh_sink *k, int fd)
{
    char path[32];
    struct stat st;
    *k = (struct gpsh_sink){.fd = fd};
    if (fstat(fd, &st) < 0 || !S_ISFIFO(st.st_mode))
        return;
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    int own = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
    k->fd = own >= 0 ? own : fd;
}

void gpsh_sink_close(struct gpsh_sink *k)
{
    if (k->fd > STDERR_FILENO)
        close(k->fd);
    k->fd = -1;
}

void gpsh_sink_add(struct gpsh_sink *k, const char *text, size_t bytes)
{
    if (!k->broken && !append(&k->text, &k->bytes, &k->room, text, bytes))
        k->error = ENOMEM;
}

static void finish_line(struct gpsh_stream *s)
{
    char prefix[32];
    int n = snprintf(prefix, sizeof(prefix), "[%d] ", s->pe);
    gpsh_sink_add(s->sink, prefix, (size_t)n);
    gpsh_sink_add(s->sink, s->line, s->bytes);
    gpsh_sink_add(s->sink, "\n", 1);
    s->bytes = 0;
}

static void take(struct gpsh_stream *s, const char *text, size_t n)
{
    while (n > 0) {
        const char *newline = memchr(text, '\n', n);
        size_t part = newline ? (size_t)(newline - text) : n;
        append(&s->line, &s->bytes, &s->room, text, part);
        if (newline || s->bytes >= LONGEST_LINE)
            finish_line(s);
        part += newline != NULL;
        text += part;
        n -= part;
    }
}

int gpsh_stream_open(struct gpsh_stream *s, int pe, struct gpsh_sink *sink)
{
    int ends[2];
    *s = (struct gpsh_stream){.fd = -1, .pe = pe, .sink = sink};
    if (pipe2(ends, O_CLOEXEC) < 0)
        return -1;
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    s->fd = ends[0];
    return ends[1];
}

bool gpsh_sink_has_room(const struct gpsh_sink *k)
{
    return k->bytes - k->sent < SINK_FULL;
}

bool gpsh_stream_wanted(const struct gpsh_stream *s)
{
    return s->fd >= 0 && gpsh_sink_has_room(s->sink);
}

static void stream_end(struct gpsh_stream *s)
{
    if (s->bytes > 0)
        finish_line(s);
    close(s->fd);
    s->fd = -1;
    free(s->line);
    s->line = NULL;
}

// False: nothing more is there now, or ever.
static bool stream_take(struct gpsh_stream *s)
{
    char text[16384];
    ssize_t n = read(s->fd, text, sizeof(text));
    if (n > 0)
        take(s, text, (size_t)n);
    // A PE whose output nobody reads gets SIGPIPE, as it would without the launcher in between.
    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR) || s->sink->broken)
        stream_end(s);
    return n > 0 && s->fd >= 0;
}

void gpsh_stream_read(struct gpsh_stream *s)
{
    stream_take(s);
}

void gpsh_stream_close(struct gpsh_stream *s)
{
    while (s->fd >= 0 && stream_take(s))
        continue;
    if (s->fd >= 0)
        stream_end(s);
}

bool gpsh_sink_pending(const struct gpsh_sink *k)
{
    return k->sent < k->bytes;
}

// How much goes out at once: whole lines as long as they fit into what a pipe takes in one piece,
// so that other writers' lines come between and not into them.
static size_t sink_piece(const struct gpsh_sink *k)
{
    const char *text = k->text + k->sent;
    size_t left = k->bytes - k->sent, piece = left < PIPE_BUF ? left : PIPE_BUF;
    const char *newline = memrchr(text, '\n', piece);
    return newline ? (size_t)(newline + 1 - text) : piece;
}

void gpsh_sink_write(struct gpsh_sink *k)
{
    // A pipe that poll calls writable takes PIPE_BUF bytes, unless PEs fill it meanwhile.
    size_t piece = sink_piece(k);
    ssize_t n = write(k->fd, k->text + k->sent, piece);
    if (n < 0 && errno != EINTR && errno != EAGAIN) {
        // A full disk may have room again; a reader that went away does not come back.
        k->broken = errno == EPIPE;
        k->error = k->error || k->broken ? k->error : errno;
        n = (ssize_t)(k->broken ? k->bytes - k->sent : piece);
    }
    if (n > 0)
        k->sent += (size_t)n;
    if (k->sent >= k->bytes / 2) {
        memmove(k->text, k->text + k->sent, k->bytes - k->sent);
        k->bytes -= k->sent;
        k->sent = 0;
    }
}

bool gpsh_sink_is_shared(int fd, int other)
{
    struct stat a, b;
    return fstat(fd, &a) == 0 && fstat(other, &b) == 0 && a.st_dev == b.st_dev &&
           a.st_ino == b.st_ino;
}

void gpsh_sink_flush(struct gpsh_sink *k)
{
    while (gpsh_sink_pending(k)) {
        struct pollfd p = {.fd = k->fd, .events = POLLOUT};
        if (poll(&p, 1, -1) > 0)
            gpsh_sink_write(k);
    }
}

// ---- Standard input ----

static const char end_of_file = 4; // Ctrl-D

int gpsh_input_open(struct gpsh_input *in)
{
    int ends[2];
    in->to_pe.fd = -1;
    if (!isatty(STDIN_FILENO) || pipe2(ends, O_CLOEXEC) < 0)
        return -1;
    fcntl(ends[1], F_SETFL, O_NONBLOCK);
    in->to_pe.fd = ends[1];
    return ends[0];
}

void gpsh_input_to_terminal(struct gpsh_input *in, int master)
{
    *in = (struct gpsh_input){.to_pe.fd = fcntl(master, F_DUPFD_CLOEXEC, 0), .terminal = true};
}

struct pollfd gpsh_input_wants(const struct gpsh_input *in)
{
    if (in->to_pe.fd >= 0 && gpsh_sink_pending(&in->to_pe))
        return (struct pollfd){.fd = in->to_pe.fd, .events = POLLOUT};
    // In the background a read would stop the launcher; SIGCONT ends the poll when it is brought
    // back.
    bool readable =
        in->to_pe.fd >= 0 && (!isatty(STDIN_FILENO) || tcgetpgrp(STDIN_FILENO) == getpgrp());
    return (struct pollfd){.fd = readable ? STDIN_FILENO : -1, .events = POLLIN};
}

void gpsh_input_step(struct gpsh_input *in)
{
    char text[4096];
    ssize_t n = 1;
    if (gpsh_sink_pending(&in->to_pe))
        gpsh_sink_write(&in->to_pe);
    else if ((n = read(STDIN_FILENO, text, sizeof(text))) > 0)
        gpsh_sink_add(&in->to_pe, text, (size_t)n);
    if (!in->to_pe.error && !in->to_pe.broken &&
        (n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR))))
        return;
    if (in->terminal && n == 0 && write(in->to_pe.fd, &end_of_file, 1) < 0) {
        // The PE has ended, or reads nothing.
    }
    gpsh_input_close(in);
}

void gpsh_input_close(struct gpsh_input *in)
{
    if (in->to_pe.fd >= 0)
        close(in->to_pe.fd);
    in->to_pe.fd = -1;
}

// ---- The terminal of PE 0 ----

// In the background a change of the settings would stop the launcher.
static bool in_foreground(void)
{
    return tcgetpgrp(STDIN_FILENO) == getpgrp();
}

static void settings_take_over(struct gpsh_terminal *t, int slave)
{
    if (!in_foreground() || tcgetattr(STDIN_FILENO, &t->saved) < 0)
        return;
    struct termios raw = t->saved;
    tcsetattr(slave, TCSANOW, &t->saved);
    cfmakeraw(&raw);
    t->raw = tcsetattr(STDIN_FILENO, TCSADRAIN, &raw) == 0;
}

int gpsh_terminal_open(struct gpsh_terminal *t)
{
    int slave = -1;
    t->master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (t->master < 0)
        return -1;
    if (grantpt(t->master) == 0 && unlockpt(t->master) == 0)
        slave = open(ptsname(t->master), O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (slave < 0) {
        close(t->master);
        t->master = -1;
        return -1;
    }
    fcntl(t->master, F_SETFL, O_NONBLOCK);
    settings_take_over(t, slave);
    gpsh_terminal_resize(t);
    return slave;
}

void gpsh_terminal_resize(const struct gpsh_terminal *t)
{
    struct winsize size;
    if (t->master >= 0 && ioctl(STDIN_FILENO, TIOCGWINSZ, &size) == 0)
        ioctl(t->master, TIOCSWINSZ, &size);
}

static void terminal_release(struct gpsh_terminal *t)
{
    if (t->master >= 0)
        close(t->master);
    t->master = -1;
    if (t->raw)
        tcsetattr(STDIN_FILENO, TCSADRAIN, &t->saved);
    t->raw = false;
}

void gpsh_terminal_read(struct gpsh_terminal *t, struct gpsh_sink *sink)
{
    char text[4096];
    ssize_t n = t->master < 0 ? 0 : read(t->master, text, sizeof(text));
    if (n > 0)
        gpsh_sink_add(sink, text, (size_t)n);
    else if (n < 0 && errno != EAGAIN && errno != EINTR)
        terminal_release(t);
}

void gpsh_terminal_close(struct gpsh_terminal *t, struct gpsh_sink *sink)
{
    size_t before;
    do {
        before = sink->bytes;
        gpsh_terminal_read(t, sink);
    } while (sink->bytes > before);
    terminal_release(t);
}
