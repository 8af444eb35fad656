// SPDX-License-Identifier: BSD-3-Clause
// A PE dies while kernels of the others wait for it: their kernels end, the host is told which PE
// it was, and what concerns only the living goes on. Run with --on-failure continue; the last PE is
// the one that dies.
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "kernel_check.cuh"

__global__ void wait_for_the_dead(uint64_t *word)
{
    gpushmem_dev_uint64_wait_until(word, GPUSHMEM_CMP_NE, 0);
}

#if !defined(__CUDACC__)
__global__ void die(int *unused)
{
    kill(getpid(), SIGKILL);
}
#endif

// In the middle of a kernel of its own.
static void lose_this_pe(uint64_t *words)
{
#if defined(__CUDACC__)
    GPUSHMEM_LAUNCH(wait_for_the_dead, 1, 4, NULL, words);
    usleep(100000);
    kill(getpid(), SIGKILL);
#else
    RUN(die, 1, 1, (int *)NULL);
#endif
}

__global__ void nothing(int)
{
}

// Among the survivors 0 .. alive-1.
__global__ void live_on(uint64_t *words, int alive)
{
    int me = gpushmem_dev_my_pe();
    for (int pe = 0; pe < alive; pe++)
        gpushmem_dev_uint64_p(&words[1 + me], (uint64_t)me + 100, pe);
    gpushmem_dev_quiet();
    for (int pe = 0; pe < alive; pe++)
        gpushmem_dev_uint64_wait_until(&words[1 + pe], GPUSHMEM_CMP_EQ, (uint64_t)pe + 100);
}

static void expect_loss(int dead)
{
    char name[32];
    snprintf(name, sizeof name, "PE %d ", dead);
    CHECK(gpushmem_launch_wait(NULL) == GPUSHMEM_ERR_PE_FAILED);
    if (!strstr(gpushmem_last_error(), name)) {
        fprintf(stderr, "'%s' is not in '%s'\n", name, gpushmem_last_error());
        check_failures++;
    }
}

// No kernel runs when the PE dies, and the host hears of it first.
static void hear_of_it(uint64_t *words)
{
    CHECK(gpushmem_uint64_wait_until(words, GPUSHMEM_CMP_NE, 0) == GPUSHMEM_ERR_PE_FAILED);
}

// usage: device_lost [polled|heard]
//   polled   the host asks for errors all the time, and takes no loss away that no kernel has seen
//   heard    the host has heard of the loss before the kernel begins, which ends all the same
int main(int argc, char **argv)
{
    int me = check_begin(), dead = gpushmem_n_pes() - 1, status;
    uint64_t *words = (uint64_t *)gpushmem_calloc(64, 8);
    bool polled = argc > 1 && !strcmp(argv[1], "polled");
    bool heard = argc > 1 && !strcmp(argv[1], "heard");
    RUN(nothing, 1, 1, 0);
    gpushmem_barrier_all();
    if (me == dead)
        lose_this_pe(words);
    if (heard)
        hear_of_it(words);
    CHECK_OK(GPUSHMEM_LAUNCH(wait_for_the_dead, 1, 4, NULL, words));
    if (polled) {
        while (!(status = gpushmem_device_error()))
            usleep(100);
        CHECK(status == GPUSHMEM_ERR_PE_FAILED);
        status = gpushmem_launch_wait(NULL); // of the other threads
        CHECK(!status || status == GPUSHMEM_ERR_PE_FAILED);
    } else {
        expect_loss(dead);
    }
    RUN(live_on, 1, 1, words, dead);
    printf("PE %d lives on: %d failures\n", me, check_failures);
    fflush(stdout);
    _exit(check_failures != 0); // finalize is a barrier with the dead
}
