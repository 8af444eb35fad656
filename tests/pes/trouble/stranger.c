// SPDX-License-Identifier: BSD-3-Clause
// A process of root has inherited a file that looks like a PE's board and that another user made,
// as `su` does: `gpushmem stat` of root knows nothing of it. Needs root. usage: stranger GPUSHMEM
#define _GNU_SOURCE // memfd_create
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gpushmem/gpushmem.h"
#include "observe/board.h"

enum { SKIPPED = 77, NOBODY = 65534, BYTES = 1 << 20 };

static char bytes[BYTES];

// A copy of this PE's own board; its size, or -1.
static ssize_t board_copy(void)
{
    DIR *fds = opendir("/proc/self/fd");
    ssize_t found = -1;
    for (const struct dirent *e; fds && found < 0 && (e = readdir(fds));) {
        char target[64] = "";
        if (readlinkat(dirfd(fds), e->d_name, target, sizeof target - 1) > 0 &&
            strstr(target, GPSH_BOARD_NAME)) {
            int fd = openat(dirfd(fds), e->d_name, O_RDONLY);
            found = pread(fd, bytes, sizeof bytes, 0);
            close(fd);
        }
    }
    closedir(fds);
    return found;
}

// Makes a board of a job called `name`, as the user `owner`.
static int board_invent(const char *name, uid_t owner, size_t size)
{
    struct gpsh_board *board = (void *)bytes;
    snprintf(board->job, sizeof board->job, "%s", name);
    if (seteuid(owner) < 0)
        return -1;
    int fd = memfd_create(GPSH_BOARD_NAME, MFD_ALLOW_SEALING);
    if (seteuid(0) < 0 || fchmod(fd, 0600) < 0 || write(fd, bytes, size) != (ssize_t)size ||
        fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) < 0)
        return -1;
    return fd;
}

static bool stat_knows(const char *gpushmem, const char *name)
{
    char command[512], line[512];
    bool knows = false;
    snprintf(command, sizeof command, "'%s' stat 2>&1", gpushmem);
    FILE *out = popen(command, "r"); // NOLINT(cert-env33-c): the test's own program
    while (out && fgets(line, sizeof line, out))
        knows |= strstr(line, name) != NULL;
    return out && pclose(out) >= 0 && knows;
}

int main(int argc, char **argv)
{
    if (argc < 2 || geteuid() != 0) {
        printf("skipped: needs root\n");
        return SKIPPED;
    }
    if (gpushmem_init()) {
        printf("%s\n", gpushmem_last_error());
        return 1;
    }
    ssize_t size = board_copy();
    bool made = size > 0 && size < BYTES && board_invent("invented", NOBODY, (size_t)size) >= 0 &&
                board_invent("of-root", 0, (size_t)size) >= 0;
    bool right = made && stat_knows(argv[1], "of-root") && !stat_knows(argv[1], "invented");
    printf(!made   ? "the boards could not be made\n"
           : right ? "root sees its own board, and not the stranger's\n"
                   : "FAILED: root sees the stranger's board, or not its own\n");
    gpushmem_finalize();
    return !right;
}
