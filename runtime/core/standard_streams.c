// SPDX-License-Identifier: BSD-3-Clause
#include "core/standard_streams.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

int gpsh_standard_streams_open(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
        if (fcntl(fd, F_GETFD) >= 0)
            continue;
        int got = open("/dev/null", O_RDWR); // the lowest that is free: this one
        if (got < 0)
            return errno;
        if (got > STDERR_FILENO) // another thread of the program was faster
            close(got);
    }
    return 0;
}
