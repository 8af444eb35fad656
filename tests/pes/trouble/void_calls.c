// SPDX-License-Identifier: BSD-3-Clause
// Calls that fail and cannot return it, by the names of OpenSHMEM or, with -DBY_NVSHMEM, of
// NVSHMEM, and by gpushmem's own. void_calls.sh looks at what is logged and at how the job ends.
// usage: void_calls all|threads|returned|full|child|twice|own|start|refused|waits|none
#define _GNU_SOURCE // setenv
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef BY_NVSHMEM
#include "gpushmem/compat/nvshmem.h"
#define API(NAME) nvshmem_##NAME
#define INVALID   NVSHMEM_TEAM_INVALID
#define MULTIPLE  NVSHMEM_THREAD_MULTIPLE
#else
#include "gpushmem/compat/shmem.h"
#define API(NAME) shmem_##NAME
#define INVALID   SHMEM_TEAM_INVALID
#define MULTIPLE  SHMEM_THREAD_MULTIPLE
#endif

enum { THREADS = 8, CALLS = 1000 };
static int *word;

static void must(int right, const char *what)
{
    if (right)
        return;
    printf("PE %d: wrong: %s\n", API(my_pe)(), what);
    exit(3);
}

// Of 22 calls 10 are the first of their kind.
static void fail_in_all_ways(void)
{
    int local[4] = {0};
    uint64_t signal = 0;
    for (int i = 0; i < 3; i++) {
        API(int_p)(word, 1, 99);
        API(int_atomic_inc)(word, 99);
    }
    for (int i = 0; i < 2; i++)
        API(int_p)(word, 1, 98);
    API(int_p)(word, 1, -1);
    for (int i = 0; i < 4; i++) // one kind, whatever the addresses
        API(int_put)(&local[i], word, 1, 0);
    for (int i = 0; i < 2; i++) {
        must(API(int_g)(word, 99) == 0, "g");
        must(API(int_atomic_fetch)(word, 99) == 0, "atomic_fetch");
        must(gpushmem_int_atomic_fetch(word, 97) == 0, "gpushmem's atomic_fetch");
        must(gpushmem_signal_fetch(&signal) == 0, "gpushmem_signal_fetch");
    }
    must(gpushmem_int_test_any(local, 4, NULL, GPUSHMEM_CMP_EQ, 0) == SIZE_MAX, "test_any");
}

// None of these is a failure that the program is not told.
static void return_failures(void)
{
    int local = 0;
    API(int_put)(&local, NULL, 0, API(my_pe)());
    API(int_get)(NULL, NULL, 0, API(my_pe)());
    API(putmem)(NULL, NULL, 0, 0);
    must(gpushmem_int_p(word, 1, 99) == GPUSHMEM_ERR_PE, "gpushmem_int_p");
    must(gpushmem_int_put(&local, word, 1, 0) == GPUSHMEM_ERR_ADDRESS, "gpushmem_int_put");
    must(gpushmem_int_atomic_fetch_status(word, 99, &local) == GPUSHMEM_ERR_PE, "_status");
    must(API(int_g)(word, API(my_pe)()) == 0, "g of a 0");
}

// These log, and the program is told.
static void return_bad_teams(void)
{
    must(API(int_sum_reduce)(INVALID, word, word, 1) != 0, "reduce");
    must(API(ptr)(word, 99) == NULL, "ptr");
}

static void *fail_often(void *pe)
{
    for (int i = 0; i < CALLS; i++)
        API(int_p)(word, i, *(int *)pe);
    return NULL;
}

static void fail_at_once(int pe)
{
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        must(pthread_create(&threads[i], NULL, fail_often, &pe) == 0, "pthread_create");
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
}

// A child is no PE, and does not end its parent's job.
static void fail_in_child(void)
{
    int status = 0;
    pid_t child = fork();
    if (child == 0) {
        API(int_p)(word, 1, 0);
        _exit(7);
    }
    must(child > 0 && waitpid(child, &status, 0) == child, "fork");
    must(WIFEXITED(status) && WEXITSTATUS(status) == 7, "the child goes on");
}

// Of an init that fails: start cannot be told, refused is.
static int begin(const char *way)
{
    int provided;
    if (strcmp(way, "start") == 0) {
        API(init)();
        API(barrier_all)();
    } else
        must(API(init_thread)(MULTIPLE, &provided) != 0, "init_thread fails");
    must(API(my_pe)() < 0, "a PE without a job");
    puts("went on");
    return 0;
}

// PE 1 lets PE 0 wait for longer than GPUSHMEM_HANG_REPORT.
static void wait_long(void)
{
    if (API(my_pe)() == 1) {
        sleep(2);
        API(int_p)(word, 1, 0);
        API(quiet)();
    } else
        API(int_wait_until)(word, GPUSHMEM_CMP_EQ, 1);
    API(barrier_all)();
    *word = 0;
}

int main(int argc, char **argv)
{
    const char *way = argc > 1 ? argv[1] : "all";
    int provided;
    if (strcmp(way, "start") == 0 || strcmp(way, "refused") == 0)
        return begin(way);
    for (int round = strcmp(way, "twice") == 0 ? 2 : 1; round > 0; round--) {
        must(API(init_thread)(MULTIPLE, &provided) == 0, "init");
        word = API(calloc)(1, sizeof *word);
        must(word != NULL, "calloc");
        if (strcmp(way, "full") == 0)
            must(API(malloc)((size_t)1 << 40) == NULL, "malloc");
        if (strcmp(way, "waits") == 0)
            wait_long();
        if (API(my_pe)() == 0) {
            if (strcmp(way, "returned") == 0)
                return_bad_teams();
            if (strcmp(way, "child") == 0)
                fail_in_child();
            if (strcmp(way, "threads") == 0)
                fail_at_once(96);
            if (strcmp(way, "own") == 0)
                must(gpushmem_int_atomic_fetch(word, 97) == 0, "gpushmem's atomic_fetch");
            if (strcmp(way, "all") == 0 || strcmp(way, "twice") == 0)
                fail_in_all_ways();
        }
        return_failures();
        API(barrier_all)();
        must(*word == 0, "nothing was written");
        API(free)(word);
        API(finalize)();
    }
    puts("went on");
    return 0;
}
