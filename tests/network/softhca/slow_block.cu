// SPDX-License-Identifier: BSD-3-Clause
// One block's put is under way for as long as the other one likes: the other's quiet, on a context
// of its own and on the default one, does not wait for it, nor does the host's. Two PEs, over the
// software HCA.
#include <dlfcn.h>

#include "../../device/kernel_check.cuh"

enum { LARGE = 1 << 20, WORDS = LARGE / 8, ROUNDS = 3 };

struct job {
    uint64_t *words;  // symmetric, [WORDS + 2]
    uint64_t *source; // [WORDS]
    uint64_t *held;   // the HCA holds writes of that size or more; not 0 until all is seen
    uint64_t *turn;   // the slow block has put
    int *errors;
};

__device__ static void slow(job j, gpushmem_dev_ctx ctx, uint64_t round)
{
    j.source[WORDS - 1] = round;
    gpushmem_dev_ctx_uint64_put_nbi(ctx, j.words, j.source, WORDS, 1);
    gpsh_dev_store64_relaxed_gpu(j.turn, round);
    gpushmem_dev_ctx_quiet(ctx);
    EXPECT(j.errors, __atomic_load_n(j.held, __ATOMIC_ACQUIRE) == 0);
    EXPECT(j.errors, gpushmem_dev_ctx_uint64_g(ctx, &j.words[WORDS - 1], 1) == round);
}

__device__ static void quick(job j, gpushmem_dev_ctx ctx, uint64_t round)
{
    gpushmem_dev_uint64_wait_until(j.turn, GPUSHMEM_CMP_EQ, round);
    gpushmem_dev_ctx_uint64_p(ctx, &j.words[WORDS], round, 1);
    gpushmem_dev_ctx_fence(ctx);
    gpushmem_dev_ctx_uint64_atomic_add(ctx, &j.words[WORDS + 1], 1, 1);
    gpushmem_dev_ctx_quiet(ctx);
    gpushmem_dev_uint64_p(&j.words[WORDS + 2], round, 1);
    gpushmem_dev_quiet();
    gpushmem_dev_pe_quiet(1);
    EXPECT(j.errors, gpushmem_dev_ctx_uint64_g(ctx, &j.words[WORDS], 1) == round);
    EXPECT(j.errors, gpushmem_dev_uint64_g(&j.words[WORDS + 1], 1) == round);
    EXPECT(j.errors, gpushmem_dev_uint64_g(&j.words[WORDS + 2], 1) == round);
    EXPECT(j.errors, gpushmem_dev_uint64_g(&j.words[WORDS - 1], 1) == round - 1);
}

// The second block lets the HCA go on once it has seen all.
__global__ void two_blocks(job j, uint64_t round)
{
    gpushmem_dev_ctx ctx;
    EXPECT(j.errors, gpushmem_dev_ctx_create(0, &ctx) == 0);
    if (blockIdx.x == 0) {
        slow(j, ctx, round);
    } else {
        quick(j, ctx, round);
        __atomic_store_n(j.held, 0, __ATOMIC_RELEASE);
    }
    gpushmem_dev_ctx_destroy(ctx);
}

// The same with a host's context for the slow block, which the host's quiet of the default one does
// not wait for.
__global__ void put_slowly(job j, gpushmem_dev_ctx ctx)
{
    j.source[WORDS - 1] = ROUNDS + 1;
    gpushmem_dev_ctx_uint64_put_nbi(ctx, j.words, j.source, WORDS, 1);
}

static void hosts_quiet(job j)
{
    gpushmem_ctx_t ctx;
    gpushmem_dev_ctx on_device;
    CHECK_OK(gpushmem_ctx_create(0, &ctx));
    CHECK_OK(gpushmem_ctx_device(ctx, &on_device));
    __atomic_store_n(j.held, LARGE / 16, __ATOMIC_RELEASE);
    RUN(put_slowly, 1, 1, j, on_device);
    CHECK_OK(gpushmem_quiet());
    CHECK(gpushmem_uint64_g(&j.words[WORDS - 1], 1) == ROUNDS);
    __atomic_store_n(j.held, 0, __ATOMIC_RELEASE);
    CHECK_OK(gpushmem_ctx_quiet(ctx));
    CHECK(gpushmem_uint64_g(&j.words[WORDS - 1], 1) == ROUNDS + 1);
    CHECK_OK(gpushmem_ctx_destroy(ctx));
}

int main(void)
{
    int me = check_begin();
    job j = {};
    j.held = (uint64_t *)dlsym(RTLD_DEFAULT, "gpushmem_softhca_hold_bytes");
    j.words = (uint64_t *)gpushmem_calloc(WORDS + 3, 8);
    j.source = (uint64_t *)gpushmem_calloc(WORDS, 8);
    j.turn = (uint64_t *)gpushmem_calloc(1, 8);
    j.errors = check_errors_begin();
    CHECK(j.held && gpushmem_n_pes() == 2);
    for (uint64_t round = 1; round <= ROUNDS && me == 0 && !check_failures; round++) {
        __atomic_store_n(j.held, LARGE / 16, __ATOMIC_RELEASE);
        RUN(two_blocks, 2, 1, j, round);
        __atomic_store_n(j.held, 0, __ATOMIC_RELEASE);
    }
    if (me == 0 && !check_failures)
        hosts_quiet(j);
    check_errors_end(__FILE__, j.errors);
    gpushmem_free(j.turn);
    gpushmem_free(j.source);
    gpushmem_free(j.words);
    return check_end("slow_block");
}
