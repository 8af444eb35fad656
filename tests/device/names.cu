// SPDX-License-Identifier: BSD-3-Clause
// Kernels may have the names of functions of C: each is launched, and adds its number.
// Program with WITH_UNISTD: beside all those functions. Without: where only what the headers of
// gpushmem bring is declared, and `pipe(int *)` is nobody else's.
#include "kernel_check.cuh"

#if defined(WITH_UNISTD)
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
typedef unsigned long number;
#else
typedef int number;
#endif

// clang-format off
#define NAMES(X)                                                                                  \
    X(accept) X(access) X(alarm) X(bind) X(chdir) X(close) X(connect) X(div) X(dup) X(fork)       \
    X(index) X(kill) X(link) X(listen) X(open) X(pause) X(pipe) X(poll) X(raise) X(random)        \
    X(read) X(recv) X(remove) X(rename) X(rindex) X(select) X(send) X(shutdown) X(signal)         \
    X(sleep) X(socket) X(stat) X(sync) X(system) X(tee) X(time) X(truncate) X(unlink) X(wait)     \
    X(write)
// clang-format on

#define KERNEL(NAME)                                                                               \
    __global__ void NAME(number *sum)                                                              \
    {                                                                                              \
        *sum += 1;                                                                                 \
    }
NAMES(KERNEL)

namespace mine
{
__global__ void exit(number *sum) // C has another one that returns nothing
{
    *sum += 1;
}
} // namespace mine

int main(void)
{
    check_begin();
    number *sum = (number *)gpushmem_calloc(1, sizeof *sum);
    int blocks = 0;
    number launches = 0;
#define LAUNCH(NAME)                                                                               \
    CHECK_OK(GPUSHMEM_LAUNCH(NAME, 1, 1, NULL, sum));                                              \
    CHECK_OK(GPUSHMEM_LAUNCH_SHARED(::NAME, 1, 1, 64, NULL, sum));                                 \
    CHECK_OK(GPUSHMEM_LAUNCH_COLLECTIVE(NAME, 1, 1, 0, NULL, sum));                                \
    CHECK_OK(gpushmem_launch_collective_grid(NAME, 1, 0, &blocks));                                \
    launches += 3;
    NAMES(LAUNCH)
    CHECK_OK(GPUSHMEM_LAUNCH(mine::exit, 1, 1, NULL, sum));
    CHECK_OK(gpushmem_launch_wait(NULL));
    CHECK(check_read(sum) == launches + 1);
    gpushmem_free(sum);
    return check_end("names");
}
