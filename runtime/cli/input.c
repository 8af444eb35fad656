// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE // pipe2
#include "input.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

static const char end_of_file = 4; // Ctrl-D

int gpsh_input_open(struct gpsh_input *in)
{
    int ends[2];
    in->to_pe = -1;
    in->bytes = in->sent = 0;
    if (!isatty(STDIN_FILENO) || pipe2(ends, O_CLOEXEC) < 0)
        return -1;
    fcntl(ends[1], F_SETFL, O_NONBLOCK);
    in->to_pe = ends[1];
    return ends[0];
}

void gpsh_input_to_terminal(struct gpsh_input *in, int master)
{
    *in = (struct gpsh_input){.to_pe = fcntl(master, F_DUPFD_CLOEXEC, 0), .terminal = true};
}

struct pollfd gpsh_input_wants(const struct gpsh_input *in)
{
    struct pollfd p = {.fd = -1};
    if (in->to_pe < 0)
        return p;
    if (in->sent < in->bytes) {
        p.fd = in->to_pe;
        p.events = POLLOUT;
    } else if (!isatty(STDIN_FILENO) || tcgetpgrp(STDIN_FILENO) == getpgrp()) {
        // In the background a read would stop the launcher; SIGCONT ends the poll when it is
        // brought back.
        p.fd = STDIN_FILENO;
        p.events = POLLIN;
    }
    return p;
}

void gpsh_input_step(struct gpsh_input *in)
{
    ssize_t n;
    if (in->sent < in->bytes) {
        n = write(in->to_pe, in->text + in->sent, in->bytes - in->sent);
        in->sent += n > 0 ? (size_t)n : 0;
    } else {
        n = read(STDIN_FILENO, in->text, sizeof(in->text));
        in->sent = 0;
        in->bytes = n > 0 ? (size_t)n : 0;
    }
    if (n != 0 && (n > 0 || errno == EAGAIN || errno == EINTR))
        return;
    if (in->terminal && n == 0 && write(in->to_pe, &end_of_file, 1) < 0) {
        // The PE has ended, or reads nothing.
    }
    gpsh_input_close(in);
}

void gpsh_input_close(struct gpsh_input *in)
{
    if (in->to_pe >= 0)
        close(in->to_pe);
    in->to_pe = -1;
}
