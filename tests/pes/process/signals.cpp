// SPDX-License-Identifier: BSD-3-Clause
// A program that blocks a signal and waits for it gets it: no thread of the library, nor of the
// libraries that it starts, nor of a kernel on CPU threads, takes it away. Each of them has a name.
#include <dirent.h>
#include <gpushmem/device.cuh>
#include <gpushmem/gpushmem.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CHECK(x) ((x) ? (void)0 : (fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #x), exit(1)))

static const int signals[] = {SIGTERM, SIGINT, SIGHUP, SIGCHLD, SIGUSR2, SIGALRM};

__global__ void put(long *word)
{
    gpushmem_dev_long_p(word, 1, (gpushmem_dev_my_pe() + 1) % gpushmem_dev_n_pes());
}

static void read_status(const char *thread, char name[32], unsigned long long *blocked)
{
    char path[64], line[256];
    snprintf(path, sizeof path, "/proc/self/task/%.16s/status", thread);
    FILE *file = fopen(path, "r");
    while (file && fgets(line, sizeof line, file)) {
        sscanf(line, "Name:\t%31s", name);
        sscanf(line, "SigBlk:\t%llx", blocked);
    }
    if (file)
        fclose(file);
}

// A thread names itself, which one that had no work so far may be about to do.
static void look_at(const char *thread)
{
    char name[32] = "";
    unsigned long long blocked = 0;
    bool own = atoi(thread) == getpid();
    for (int tries = 0; tries < 5000 && !(own && *name) && strncmp(name, "gpushmem-", 9); tries++) {
        usleep(tries ? 1000 : 0);
        read_status(thread, name, &blocked);
    }
    for (int signal : signals)
        if (!(blocked >> (signal - 1) & 1)) {
            fprintf(stderr, "thread %s takes signal %d\n", name, signal);
            exit(1);
        }
    if (!own && strncmp(name, "gpushmem-", 9) != 0) {
        fprintf(stderr, "thread %s bears no name of the library\n", name);
        exit(1);
    }
}

static int look_at_threads()
{
    int threads = 0;
    DIR *tasks = opendir("/proc/self/task");
    for (struct dirent *task; tasks && (task = readdir(tasks));)
        if (task->d_name[0] != '.') {
            look_at(task->d_name);
            threads++;
        }
    closedir(tasks);
    return threads;
}

int main(int argc, char **argv)
{
    int expected = argc > 1 ? atoi(argv[1]) : 0, taken = 0;
    sigset_t set;
    CHECK(gpushmem_init() == 0);
    long *word = static_cast<long *>(gpushmem_calloc(1, sizeof *word));
    CHECK(GPUSHMEM_LAUNCH(put, 1, 1, NULL, word) == 0 && gpushmem_launch_wait(NULL) == 0);
    // Only now: what was started before must not have inherited it.
    sigemptyset(&set);
    for (int signal : signals)
        sigaddset(&set, signal);
    CHECK(pthread_sigmask(SIG_BLOCK, &set, NULL) == 0);
    int threads = look_at_threads();
    if (threads < expected) {
        fprintf(stderr, "%d threads, fewer than %d: does this test still see them?\n", threads,
                expected);
        return 1;
    }
    CHECK(kill(getpid(), SIGTERM) == 0 && sigwait(&set, &taken) == 0 && taken == SIGTERM);
    gpushmem_free(word);
    CHECK(gpushmem_finalize() == 0);
    puts("signals: ok");
}
