// SPDX-License-Identifier: BSD-3-Clause
// Without GPUSHMEM_DEVICE_CHECKS a PE that does not exist is refused, too: nothing is mapped for
// it, so the call takes the way of the rings, also where there is nobody to reach by one.
#define GPUSHMEM_DEVICE_CHECKS 0
#include <string.h>

#include "kernel_check.cuh"

__global__ void put_to(uint64_t *word, int pe)
{
    gpushmem_dev_uint64_p(word, 1, pe);
}

__global__ void put_block_to(uint64_t *words, int pe)
{
    gpushmem_dev_uint64_put_block(words, words + 8, 8, pe);
}

__global__ void fetch_from(uint64_t *word, int pe, uint64_t *result)
{
    *result = gpushmem_dev_uint64_g(word, pe) + gpushmem_dev_uint64_atomic_fetch_inc(word, pe);
}

// By all threads at once. The next one has the same ring, and finds nothing in it.
__global__ void destroy_often(gpushmem_dev_ctx *ctx)
{
    if (threadIdx.x == 0)
        gpushmem_dev_ctx_create(0, ctx);
    __syncthreads();
    gpushmem_dev_ctx_destroy(*ctx);
    __syncthreads();
    gpushmem_dev_ctx_destroy(*ctx);
}

__global__ void use_next(gpushmem_dev_ctx *ctx, uint64_t *word)
{
    gpushmem_dev_ctx_create(0, ctx);
    gpushmem_dev_ctx_uint64_p(*ctx, word, 9, gpushmem_dev_my_pe());
    gpushmem_dev_ctx_destroy(*ctx);
}

// By the ring alone, without the checks of the call.
__global__ void sum_by_ring(struct gpushmem_coll_op op, int *statuses)
{
    gpushmem_dev dev = *gpsh_dev_implicit.self;
    struct gpsh_dev_coll c = gpsh_dev_coll_of(dev, gpsh_dev_group_of<gpsh_scope_block>());
    gpsh_dev_coll_begin(&c, gpsh_dev_teams_of(dev), op.team);
    gpsh_dev_fold_by_ring(&c, op);
    statuses[threadIdx.x] = gpsh_dev_coll_end(&c);
}

static void expect_refused_as(int expected, const char *word, int launched)
{
    CHECK_OK(launched);
    int status = gpushmem_launch_wait(NULL);
    if (!status)
        status = gpushmem_quiet(); // not waited for by the kernel
    CHECK(status == expected);
    CHECK(strstr(gpushmem_last_error(), word));
    while (gpushmem_quiet()) // kernel and proxy may both have told
        ;
}

static void expect_refused(int launched)
{
    expect_refused_as(GPUSHMEM_ERR_PE, "PE", launched);
}

static void test_destroyed(uint64_t *word)
{
    gpushmem_dev dev;
    gpushmem_dev_ctx *ctx = (gpushmem_dev_ctx *)gpushmem_calloc(1, sizeof *ctx);
    CHECK_OK(gpushmem_device_handle(&dev));
    if (dev.n_contexts)
        expect_refused_as(GPUSHMEM_ERR_INVALID, "context number 1",
                          GPUSHMEM_LAUNCH(destroy_often, 1, 32, NULL, ctx));
    RUN(use_next, 1, 1, ctx, word);
    CHECK(check_read(word) == 9);
    gpushmem_free(ctx);
}

// A source that nobody may read: the proxy refuses the gets of a reduce or scan. `n` elements are
// one piece, or several.
static void test_fold_fetch(int kind, uint64_t n)
{
    enum { THREADS = 3 };
    float *dest = (float *)gpushmem_calloc(n, sizeof(float)), *elsewhere;
    int *statuses = (int *)gpushmem_calloc(THREADS, sizeof(int));
    gpushmem_team_t team;
    struct gpushmem_coll_op op = {};
    elsewhere = (float *)calloc(n, sizeof *elsewhere);
    CHECK_OK(gpushmem_team_split_strided(GPUSHMEM_TEAM_WORLD, 0, 1, gpushmem_n_pes(), NULL, 0,
                                         &team)); // the failure is the end of it
    op.team = team;
    op.kind = (uint8_t)kind;
    op.type = GPUSHMEM_COLL_FLOAT;
    op.fold = GPUSHMEM_COLL_SUM;
    op.dest = dest;
    op.source = elsewhere;
    op.n = n;
    op.width = sizeof(float);
    bool fetches = kind != GPUSHMEM_COLL_INSCAN || gpushmem_my_pe() > 0; // of those before it
    CHECK_OK(GPUSHMEM_LAUNCH(sum_by_ring, 1, THREADS, NULL, op, statuses));
    int status = gpushmem_launch_wait(NULL);
    while (gpushmem_quiet())
        ;
    CHECK(status == (fetches ? GPUSHMEM_ERR_ADDRESS : 0));
    for (int t = 0; t < THREADS; t++)
        CHECK(check_read(&statuses[t]) == GPUSHMEM_ERR_ADDRESS); // also where another one failed
    gpushmem_barrier_all();
    CHECK_OK(gpushmem_team_destroy(team));
    free(elsewhere);
    gpushmem_free(statuses);
    gpushmem_free(dest);
}

static void test_fold_fetches(void)
{
    gpushmem_dev dev;
    CHECK_OK(gpushmem_device_handle(&dev));
    if (gpushmem_n_pes() < 2 || dev.flags & GPUSHMEM_DEV_ALL_DIRECT)
        return;
    test_fold_fetch(GPUSHMEM_COLL_REDUCE, 100);
    test_fold_fetch(GPUSHMEM_COLL_REDUCE, 300000);
    test_fold_fetch(GPUSHMEM_COLL_INSCAN, 100);
}

int main(void)
{
    check_begin();
    int n = gpushmem_n_pes();
    uint64_t *words = (uint64_t *)gpushmem_calloc(16, 8),
             *result = (uint64_t *)gpushmem_calloc(1, 8);
    const int nobody[] = {n, n + 100, -1};
    for (int i = 0; i < 3; i++) {
        expect_refused(GPUSHMEM_LAUNCH(put_to, 1, 1, NULL, words, nobody[i]));
        expect_refused(GPUSHMEM_LAUNCH(put_block_to, 2, 40, NULL, words, nobody[i]));
        expect_refused(GPUSHMEM_LAUNCH(fetch_from, 1, 1, NULL, words, nobody[i], result));
    }
    CHECK(check_read(result) == 0 && check_read(words) == 0);
    test_destroyed(words);
    test_fold_fetches();
    gpushmem_free(result);
    gpushmem_free(words);
    return check_end("unchecked");
}
