// SPDX-License-Identifier: BSD-3-Clause
// With GPUSHMEM_CHECK=1 a kernel that names memory of no block is refused, and told which block it
// was: by the call on CPU threads, and (BY_RINGS) by the proxy, where the call itself checks
// nothing. Without that setting it is not.
#if defined(BY_RINGS)
#define GPUSHMEM_DEVICE_CHECKS 0
#endif
#include <string.h>

#include "kernel_check.cuh"

enum { WORDS = 16 };

struct memory {
    uint64_t *kept, *freed;
};

__global__ void put_value(uint64_t *word, int pe)
{
    gpushmem_dev_uint64_p(word, 1, pe);
    gpushmem_dev_quiet();
}

__global__ void put_block(uint64_t *to, uint64_t *from, size_t n, int pe)
{
    gpushmem_dev_uint64_put_block(to, from, n, pe);
    if (threadIdx.x == 0)
        gpushmem_dev_quiet();
}

__global__ void put_strided(uint64_t *to, uint64_t *from, int pe)
{
    gpushmem_dev_uint64_iput(to, from, 2, 1, WORDS / 2, pe);
    gpushmem_dev_quiet();
}

__global__ void put_signal(uint64_t *to, uint64_t *from, uint64_t *signal, int pe)
{
    gpushmem_dev_uint64_put_signal(to, from, WORDS, signal, 1, GPUSHMEM_SIGNAL_ADD, pe);
    gpushmem_dev_quiet();
}

__global__ void fetch(uint64_t *word, uint64_t *result, int pe)
{
    *result = gpushmem_dev_uint64_g(word, pe) + gpushmem_dev_uint64_atomic_fetch_add(word, 1, pe);
}

__global__ void wait_for(uint64_t *word)
{
    gpushmem_dev_uint64_wait_until(word, GPUSHMEM_CMP_EQ, 1);
}

static int told(int launched)
{
    CHECK_OK(launched);
    int status = gpushmem_launch_wait(NULL);
    return status ? status : gpushmem_quiet();
}

static void expect_refused(const char *why, int launched)
{
    int status = told(launched);
    CHECK(status == GPUSHMEM_ERR_ADDRESS);
    CHECK(strstr(gpushmem_last_error(), why));
    while (gpushmem_quiet()) // there may be several, and kernel and proxy may both have told
        ;
}

static void test_refused(struct memory m, int pe)
{
    char freed[96], past[96];
    snprintf(freed, sizeof freed, "are in no block: the block of %zu bytes that was allocated at",
             WORDS * sizeof(uint64_t));
    snprintf(past, sizeof past, "run past the end of the block of %zu bytes",
             WORDS * sizeof(uint64_t));
    expect_refused(freed, GPUSHMEM_LAUNCH(put_value, 1, 1, NULL, m.freed, pe));
    expect_refused(freed, GPUSHMEM_LAUNCH(put_block, 1, 32, NULL, m.freed, m.kept, WORDS, pe));
    expect_refused(past, GPUSHMEM_LAUNCH(put_block, 1, 32, NULL, m.kept, m.kept, WORDS + 1, pe));
    expect_refused(past, GPUSHMEM_LAUNCH(put_strided, 1, 1, NULL, m.kept + 2, m.kept, pe));
    expect_refused(freed, GPUSHMEM_LAUNCH(put_signal, 1, 1, NULL, m.freed, m.kept, m.kept, pe));
    expect_refused(freed, GPUSHMEM_LAUNCH(put_signal, 1, 1, NULL, m.kept, m.kept, m.freed, pe));
    expect_refused(freed, GPUSHMEM_LAUNCH(fetch, 1, 1, NULL, m.freed, m.kept, pe));
#if !defined(BY_RINGS)
    expect_refused(freed, GPUSHMEM_LAUNCH(wait_for, 1, 1, NULL, m.freed));
#endif
}

static void test_good(struct memory m, int pe)
{
    CHECK(!told(GPUSHMEM_LAUNCH(put_block, 1, 32, NULL, m.kept, m.kept, WORDS, pe)));
    CHECK(!told(GPUSHMEM_LAUNCH(put_strided, 1, 1, NULL, m.kept, m.kept, pe)));
    CHECK(!told(GPUSHMEM_LAUNCH(put_value, 1, 1, NULL, m.kept + WORDS - 1, pe)));
}

int main(int argc, char **argv)
{
    int pe = (check_begin() + 1) % gpushmem_n_pes();
    bool checked = argc > 1 && !strcmp(argv[1], "checked");
    struct memory m;
    m.freed = (uint64_t *)gpushmem_calloc(WORDS, sizeof(uint64_t));
    m.kept = (uint64_t *)gpushmem_calloc(WORDS, sizeof(uint64_t));
    CHECK_OK(gpushmem_free(m.freed));
    test_good(m, pe);
    gpushmem_barrier_all();
    if (checked)
        test_refused(m, pe);
    else
        CHECK(!told(GPUSHMEM_LAUNCH(put_value, 1, 1, NULL, m.freed, pe)));
    gpushmem_barrier_all();
    gpushmem_free(m.kept);
    return check_end("freed");
}
