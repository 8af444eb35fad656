// SPDX-License-Identifier: BSD-3-Clause
// Standard descriptors that are closed before init: nothing of the library takes their numbers, so
// that what the program prints lands in no heap and in no socket.
//   process_streams          closes them in all combinations, in a child each, without a launcher
//   process_streams within   closes all of them in this PE
#include <gpushmem/gpushmem.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BYTES = 4096, ALL = 7 };

static int is_null(int fd)
{
    struct stat st;
    return fstat(fd, &st) == 0 && S_ISCHR(st.st_mode) && st.st_rdev == makedev(1, 3);
}

static int keeps(const char *heap, int fd)
{
    char text[BYTES];
    memset(text, 'x', sizeof text);
    if (write(fd, text, sizeof text) != sizeof text)
        return 0;
    for (int i = 0; i < BYTES; i++) {
        if (heap[i] != 0)
            return 0;
    }
    return 1;
}

// 0, or the number of what went wrong: nobody could read a sentence.
static int run_without(int closed)
{
    for (int fd = 0; fd < 3; fd++) {
        if (closed & 1 << fd)
            close(fd);
    }
    if (gpushmem_init())
        return 10;
    const char *heap = gpushmem_calloc(1, BYTES);
    for (int fd = 0; heap && fd < 3; fd++) {
        if ((closed & 1 << fd) && !is_null(fd))
            return 11 + fd;
        if ((closed & 1 << fd) && !keeps(heap, fd))
            return 21 + fd;
    }
    gpushmem_free((void *)heap);
    return gpushmem_finalize() || !heap ? 14 : 0;
}

int main(int argc, char **argv)
{
    if (argc > 1)
        return run_without(ALL);
    int wrong = 0;
    for (int closed = 0; closed <= ALL; closed++) {
        int status = -1;
        pid_t pid = fork();
        if (pid == 0)
            _exit(run_without(closed));
        if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0) {
            fprintf(stderr, "without the descriptors of mask %d: wait status %d, code %d\n", closed,
                    status, WEXITSTATUS(status));
            wrong++;
        }
    }
    return wrong != 0;
}
