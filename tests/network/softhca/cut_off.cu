// SPDX-License-Identifier: BSD-3-Clause
// cut_off host|kernel: a request of PE 0's fails, and with it the queue pair by which PE 1 posts to
// PE 0. PE 0 lives: PE 1 is told that the connection is gone, not the process; calls and waits end.
// Then PE 0 is killed, and that is told as well. Two PEs, over the software HCA, with
// --on-failure continue.
#include <signal.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#include "../../device/kernel_check.cuh"

struct job {
    uint64_t *word, *never; // symmetric
    uint64_t *pid;          // symmetric, at PE 1: PE 0's
};

// By kernels' own queue, once it is up, and by the ring: each is a queue pair, and PE 0's request
// may fail in either.
__global__ void put_one(uint64_t *word, int pe)
{
    gpushmem_dev_uint64_p(word, 7, pe);
    gpushmem_dev_uint64_atomic_set(word, 7, pe); // never by a queue
    gpushmem_dev_quiet();
}

__global__ void await(uint64_t *word)
{
    gpushmem_dev_uint64_wait_until(word, GPUSHMEM_CMP_NE, 0);
}

static int put_by_kernel(job j, int pe)
{
    CHECK_OK(GPUSHMEM_LAUNCH(put_one, 1, 4, NULL, j.word, pe));
    int status = gpushmem_launch_wait(NULL);
    return status ? status : gpushmem_quiet();
}

static int put(job j, int pe)
{
    int status = gpushmem_uint64_p(j.word, 7, pe);
    return status ? status : gpushmem_quiet();
}

static int put_until_failure(job j, bool by_kernel, int pe)
{
    int status = 0;
    while (!status)
        status = by_kernel ? put_by_kernel(j, pe) : put(j, pe);
    return status;
}

static int await_by_kernel(job j)
{
    CHECK_OK(GPUSHMEM_LAUNCH(await, 1, 1, NULL, j.never));
    return gpushmem_launch_wait(NULL);
}

static void expect(int status, int wanted, const char *told)
{
    if (status == wanted && strstr(gpushmem_last_error(), told))
        return;
    fprintf(stderr, "PE %d: '%s' (%d), and '%s' (%d) was expected\n", gpushmem_my_pe(),
            gpushmem_last_error(), status, told, wanted);
    check_failures++;
}

// PE 1.
static void be_cut_off(job j, bool by_kernel)
{
    const pid_t pid = (pid_t)*j.pid;
    expect(put_until_failure(j, by_kernel, 0), GPUSHMEM_ERR_TRANSPORT, "its process lives");
    expect(gpushmem_uint64_p(j.word, 7, 0), GPUSHMEM_ERR_TRANSPORT, "does not answer");
    CHECK(gpushmem_failed_pes(NULL, 0) == 1);
    if (by_kernel)
        expect(await_by_kernel(j), GPUSHMEM_ERR_TRANSPORT, "PE 0 was cut off");
    expect(gpushmem_uint64_wait_until(j.never, GPUSHMEM_CMP_NE, 0), GPUSHMEM_ERR_TRANSPORT,
           "PE 0 was cut off while this PE waited");
    kill(pid, SIGKILL);
    expect(gpushmem_uint64_wait_until(j.never, GPUSHMEM_CMP_NE, 0), GPUSHMEM_ERR_PE_FAILED,
           "PE 0 failed while this PE waited");
    expect(gpushmem_uint64_p(j.word, 7, 0), GPUSHMEM_ERR_PE_FAILED, "PE 0");
    CHECK(gpushmem_failed_pes(NULL, 0) == 1);
    if (by_kernel)
        expect(await_by_kernel(j), GPUSHMEM_ERR_PE_FAILED, "PE 0 failed");
}

int main(int argc, char **argv)
{
    const bool by_kernel = argc > 1 && !strcmp(argv[1], "kernel");
    check_begin();
    job j = {(uint64_t *)gpushmem_calloc(1, 8), (uint64_t *)gpushmem_calloc(1, 8),
             (uint64_t *)gpushmem_calloc(1, 8)};
    const int me = gpushmem_my_pe();
    if (me == 0)
        CHECK_OK(gpushmem_uint64_p(j.pid, (uint64_t)getpid(), 1));
    CHECK_OK(gpushmem_barrier_all());
    if (me == 0) {
        expect(put_until_failure(j, by_kernel, 1), GPUSHMEM_ERR_TRANSPORT, "outside its heap");
        if (check_failures == 0)
            pause(); // until PE 1 ends it
    } else {
        be_cut_off(j, by_kernel);
        printf("cut_off: %d failures\n", check_failures);
    }
    fflush(stdout);
    _exit(check_failures != 0); // finalize is a barrier with the dead
}
