// SPDX-License-Identifier: BSD-3-Clause
// Prefill and decode on different PEs: the first half of the PEs computes key-value pages, layer by
// layer, and each sends them to its partner in the other half, which uses a layer while later ones
// are still being made. Everything is queued in streams; what sends is a stream's operation, or the
// kernel that makes the page.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "transfer.cuh"

#if defined(__CUDACC__)
enum { REQUESTS = 32, PAGE_FLOATS = 65536 };
#else
enum { REQUESTS = 8, PAGE_FLOATS = 4096 };
#endif
// requests of a slot that the host queues before it waits: far more, and the driver would make it
// wait
enum { AHEAD = 8 };

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static bool prefills(void)
{
    return gpushmem_my_pe() < gpushmem_n_pes() / 2;
}

static int partner(void)
{
    return (gpushmem_my_pe() + gpushmem_n_pes() / 2) % gpushmem_n_pes();
}

// Queues requests [first, end) and waits for them.
static int serve(const struct kv *kv, const uint32_t *table, const gpushmem_stream_t *streams,
                 uint32_t first, uint32_t end)
{
    int status = 0;
    for (uint32_t request = first; request < end && !status; request++) {
        gpushmem_stream_t stream = streams[request % SLOTS];
        if (request / SLOTS % AHEAD == 0)
            status = gpushmem_launch_wait(stream);
        if (!status)
            status = prefills() ? prefill(kv, table, request, partner(), stream)
                                : decode(kv, request, partner(), stream);
    }
    for (int slot = 0; slot < SLOTS && !status; slot++)
        status = gpushmem_launch_wait(streams[slot]);
    return status ? status : gpushmem_barrier_all();
}

// The partner's table, for the host and for kernels of a PE that prefills.
static int learn_table(const struct kv *kv, uint32_t *table)
{
    if (!prefills())
        return 0;
    int status = gpushmem_uint32_get(table, kv->table, POOL_PAGES, partner());
    return status ? status : gpushmem_uint32_put(kv->table, table, POOL_PAGES, gpushmem_my_pe());
}

// Of all requests but the first of each slot, which warm up.
static int serve_timed(const struct kv *kv, double *seconds)
{
    uint32_t table[POOL_PAGES];
    gpushmem_stream_t streams[SLOTS];
    int status = learn_table(kv, table);
    for (int slot = 0; slot < SLOTS && !status; slot++)
        status = gpushmem_stream_create(&streams[slot]);
    status = status ? status : serve(kv, table, streams, 0, SLOTS);
    double begin = now_s();
    status = status ? status : serve(kv, table, streams, SLOTS, kv->requests);
    *seconds = now_s() - begin;
    // after a failure they may wait for ever: the process ends them
    for (int slot = 0; slot < SLOTS && !status; slot++)
        gpushmem_stream_destroy(streams[slot]);
    return status;
}

// The wrong scores of all PEs, on PE 0.
static int check(const struct kv *kv, uint64_t *wrong)
{
    uint64_t mine = 0, *sum = (uint64_t *)gpushmem_calloc(1, sizeof *sum);
    int status = sum ? gpushmem_barrier_all() : GPUSHMEM_ERR_NO_MEMORY; // every PE's sum is 0
    if (!status && !prefills())
        status = kv_check(kv, partner(), &mine);
    status = status ? status : gpushmem_uint64_atomic_add(sum, mine, 0);
    status = status ? status : gpushmem_barrier_all();
    if (!status && gpushmem_my_pe() == 0)
        status = gpushmem_uint64_get(wrong, sum, 1, 0);
    return status ? status : gpushmem_free(sum);
}

static int run(uint32_t requests, uint32_t page_floats, bool kernels_send)
{
    struct kv kv;
    uint64_t wrong = 0;
    double seconds, megabytes = (double)LAYERS * PAGES * page_floats * sizeof(float) * 1e-6;
    int half = gpushmem_n_pes() / 2;
    int status = kv_create(&kv, requests + SLOTS, page_floats, kernels_send);
    status = status ? status : serve_timed(&kv, &seconds);
    status = status ? status : check(&kv, &wrong);
    if (!status && gpushmem_my_pe() == 0) {
        printf("kv_transfer: %s: %d + %d PEs, %" PRIu32
               " requests of %d layers, %.1f MB each, by %s: %.2f GB/s a pair",
               wrong ? "failed" : "ok", half, half, requests, LAYERS, megabytes,
               kernels_send ? "kernels" : "streams", requests * megabytes / seconds * 1e-3);
        if (wrong)
            printf(", %" PRIu64 " scores differ from the serial run", wrong);
        printf("\n");
    }
    status = status ? status : kv_free(&kv);
    // counted on PE 0: the others do not end the job before it has said so
    return status ? status : wrong != 0;
}

int main(int argc, char **argv)
{
    uint64_t numbers[] = {REQUESTS, PAGE_FLOATS};
    for (int i = 1; i < argc && i <= 2; i++)
        numbers[i - 1] = strtoull(argv[i], NULL, 10);
    bool kernels_send = argc > 3 && !strcmp(argv[3], "kernels");
    if (!numbers[0] || numbers[0] > 1u << 20 || !numbers[1] || numbers[1] > 1u << 20 ||
        (argc > 3 && !kernels_send && strcmp(argv[3], "streams") != 0)) {
        fprintf(stderr, "usage: kv_transfer [requests of each pair] [floats of a page] "
                        "[streams|kernels]\n");
        return 2;
    }
    int status = gpushmem_init();
    if (!status && gpushmem_n_pes() % 2)
        status = fprintf(stderr, "kv_transfer: %d PEs do not make pairs; start an even number\n",
                         gpushmem_n_pes());
    else if (!status)
        status = run((uint32_t)numbers[0], (uint32_t)numbers[1], kernels_send);
    if (status >= 0 && gpushmem_finalize())
        status = -1;
    if (status < 0)
        fprintf(stderr, "kv_transfer: %s\n", gpushmem_last_error());
    return status != 0;
}
