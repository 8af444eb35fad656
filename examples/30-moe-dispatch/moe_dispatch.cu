// SPDX-License-Identifier: BSD-3-Clause
// Mixture of experts: the experts of a layer are spread over the PEs. Kernels put each token into
// the memory of its experts' PEs, and the experts' kernels put their answers back. The host only
// queues kernels.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "layer.cuh"

#if defined(__CUDACC__)
// four blocks on each multiprocessor: with one, a step of 4,096 tokens takes twice as long
enum { BLOCKS = 512, THREADS = 256, TOKENS = 512, WIDTH = 2048, STEPS = 100 };
#else
enum { BLOCKS = 4, THREADS = 2, TOKENS = 64, WIDTH = 512, STEPS = 20 }; // operating system threads
#endif
// steps that the host queues before it waits: far more, and the driver would make it wait
enum { AHEAD = 100 };

// Not more than there are tokens: each slice of what goes to a PE has a signal of its own.
static unsigned blocks_of(const struct moe *m)
{
    return m->tokens < BLOCKS ? m->tokens : (unsigned)BLOCKS;
}

// Kernels of a stream run one after the other. No block waits for another of its own launch, so
// grids may be of any size.
static int run_steps(const struct moe *m, uint64_t first, uint64_t last)
{
    int status = 0, slices = gpushmem_n_pes() * (int)m->slices;
    unsigned blocks = blocks_of(m);
    for (uint64_t step = first; step <= last && !status; step++) {
        status = GPUSHMEM_LAUNCH(route, blocks, THREADS, NULL, *m, step);
        status = status ? status : GPUSHMEM_LAUNCH(dispatch, slices, THREADS, NULL, *m, step);
        status = status ? status : GPUSHMEM_LAUNCH(experts, slices, THREADS, NULL, *m, step);
        status = status ? status : GPUSHMEM_LAUNCH(combine, blocks, THREADS, NULL, *m, step);
        if (!status && (step % AHEAD == 0 || step == last))
            status = gpushmem_launch_wait(NULL);
    }
    return status ? status : gpushmem_barrier_all();
}

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

// The wrong values of all PEs, on PE 0.
static int check(const struct moe *m, uint64_t steps, uint64_t *wrong)
{
    uint64_t mine = 0, *sum = (uint64_t *)gpushmem_calloc(1, sizeof *sum);
    int status = sum ? moe_check(m, steps, &mine) : GPUSHMEM_ERR_NO_MEMORY;
    // every PE's sum is 0 before others add to it
    status = status ? status : gpushmem_barrier_all();
    status = status ? status : gpushmem_uint64_atomic_add(sum, mine, 0);
    status = status ? status : gpushmem_barrier_all();
    if (!status && gpushmem_my_pe() == 0)
        status = gpushmem_uint64_get(wrong, sum, 1, 0);
    return status ? status : gpushmem_free(sum);
}

static void report(const struct moe *m, uint64_t steps, double seconds, uint64_t wrong)
{
    double tokens = (double)m->tokens * (double)steps,
           bytes = tokens * TOP * 2.0 * m->width * sizeof(float);
    printf("moe_dispatch: %s: %d PEs, %d experts, top %d of %" PRIu32 " tokens x %" PRIu32
           " floats: %.1f us a step, %.2f GB/s a PE, %.0f tokens/s",
           wrong ? "failed" : "ok", gpushmem_n_pes(), (int)m->experts * gpushmem_n_pes(), TOP,
           m->tokens, m->width, seconds / (double)steps * 1e6, bytes / seconds * 1e-9,
           tokens * gpushmem_n_pes() / seconds);
    if (wrong)
        printf(", %" PRIu64 " values differ from the serial run", wrong);
    printf("\n");
}

static int run(struct moe *m, uint64_t steps)
{
    uint64_t wrong = 0;
    unsigned each = blocks_of(m) / (unsigned)gpushmem_n_pes();
    m->slices = each ? each : 1;
    int status = moe_create(m);
    status = status ? status : run_steps(m, 1, 1); // loads the kernels, connects the PEs
    double begin = now_s();
    status = status ? status : run_steps(m, 2, steps + 1);
    double seconds = now_s() - begin;
    status = status ? status : check(m, steps + 1, &wrong);
    if (!status && gpushmem_my_pe() == 0)
        report(m, steps, seconds, wrong);
    status = status ? status : moe_free(m);
    // counted on PE 0: the others do not end the job before it has said so
    return status ? status : wrong != 0;
}

// Whether the sums of the check are exact: they stay below 2^24 eighths.
static int exact(const struct moe *m, uint64_t steps)
{
    if ((steps + 1) * (m->experts * (uint64_t)gpushmem_n_pes() + 1) <= 100000)
        return 1;
    if (gpushmem_my_pe() == 0)
        fprintf(stderr, "moe_dispatch: steps times experts of all PEs may be up to 100000\n");
    return 0;
}

int main(int argc, char **argv)
{
    uint64_t numbers[] = {TOKENS, WIDTH, STEPS, 4, 0},
             most[] = {1u << 20, 1u << 20, 1000, 256, 100};
    for (int i = 0; i < 5; i++) {
        if (i + 1 < argc)
            numbers[i] = strtoull(argv[i + 1], NULL, 10);
        if ((!numbers[i] && i < 4) || numbers[i] > most[i]) {
            fprintf(stderr,
                    "usage: moe_dispatch [tokens of each PE] [floats of a token] [steps, up "
                    "to 1000] [experts of each PE, up to 256] [skew in percent]\n");
            return 2;
        }
    }
    struct moe m = {};
    m.tokens = (uint32_t)numbers[0], m.width = (uint32_t)numbers[1];
    m.experts = (uint32_t)numbers[3], m.skew = (uint32_t)numbers[4];
    int status = gpushmem_init();
    if (!status)
        status = exact(&m, numbers[2]) ? run(&m, numbers[2]) : 2;
    if (status >= 0 && gpushmem_finalize())
        status = -1;
    if (status < 0)
        fprintf(stderr, "moe_dispatch: %s\n", gpushmem_last_error());
    return status != 0;
}
