// SPDX-License-Identifier: BSD-3-Clause
// A child that is forked from a PE is none: whatever it calls, and its exit handlers call, the job
// does not notice. Then two threads that leave the job at once, and init and finalize again.
#define _GNU_SOURCE // usleep
#include <gpushmem/gpushmem.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHECK(x)                                                                                   \
    ((x) ? (void)0                                                                                 \
         : (fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #x, gpushmem_last_error()),     \
            exit(1)))

static long *word;

static void at_exit(void)
{
    if (gpushmem_initialized())
        gpushmem_finalize();
}

static void child(void)
{
    CHECK(!gpushmem_initialized() && gpushmem_my_pe() < 0);
    CHECK(gpushmem_long_p(word, 7, 0) == GPUSHMEM_ERR_STATE);
    CHECK(strstr(gpushmem_last_error(), "forked"));
    CHECK(gpushmem_barrier_all() == GPUSHMEM_ERR_STATE);
    CHECK(gpushmem_init() == GPUSHMEM_ERR_STATE && strstr(gpushmem_last_error(), "gpushmem_init"));
    CHECK(gpushmem_finalize() == GPUSHMEM_ERR_STATE);
    CHECK(strstr(gpushmem_last_error(), "gpushmem_finalize"));
    exit(0); // through the exit handlers of this program and of all libraries
}

static void fork_one(void)
{
    int status = -1;
    pid_t pid = fork();
    if (pid == 0)
        child();
    CHECK(pid > 0 && waitpid(pid, &status, 0) == pid && status == 0);
}

static void *leave(void *status)
{
    *(int *)status = gpushmem_finalize();
    return NULL;
}

// The other PE comes to the last barrier only when both threads are in finalize.
static void leave_twice(void)
{
    pthread_t threads[2];
    int status[2] = {1, 1};
    for (int i = 0; i < 2; i++)
        CHECK(pthread_create(&threads[i], NULL, leave, &status[i]) == 0);
    usleep(50000);
    *word = 1;
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    CHECK((status[0] == 0 && status[1] == GPUSHMEM_ERR_STATE) ||
          (status[1] == 0 && status[0] == GPUSHMEM_ERR_STATE));
}

int main(void)
{
    int provided;
    CHECK(atexit(at_exit) == 0);
    CHECK(gpushmem_init_thread(GPUSHMEM_THREAD_MULTIPLE, &provided) == 0);
    CHECK((word = gpushmem_calloc(1, sizeof *word)) != NULL);
    if (gpushmem_my_pe() == 0)
        fork_one();
    CHECK(gpushmem_barrier_all() == 0 && *word == 0);
    volatile const long *first = gpushmem_ptr(word, 0);
    CHECK(first != NULL);
    if (gpushmem_my_pe() == 0) {
        leave_twice();
    } else {
        while (!*first)
            usleep(1000);
        CHECK(gpushmem_finalize() == 0);
    }
    CHECK(gpushmem_finalize() == GPUSHMEM_ERR_STATE);
    CHECK(gpushmem_init() == 0 && gpushmem_barrier_all() == 0 && gpushmem_finalize() == 0);
    puts("forks: ok");
}
