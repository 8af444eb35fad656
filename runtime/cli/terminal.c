// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE // posix_openpt, cfmakeraw
#include "terminal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

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
