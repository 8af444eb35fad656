// SPDX-License-Identifier: BSD-3-Clause
// Barriers of kernels, and the command ring by itself.
#include "kernels.cuh"

template <int SCOPE, bool SYNC> struct barrier : scoped<SCOPE> {
    static __device__ void initiate(const struct job &, uint64_t)
    {
        if (SCOPE == THREAD)
            SYNC ? gpushmem_dev_sync_all() : gpushmem_dev_barrier_all();
        else if (SCOPE == WARP)
            SYNC ? gpushmem_dev_sync_all_warp() : gpushmem_dev_barrier_all_warp();
        else
            SYNC ? gpushmem_dev_sync_all_block() : gpushmem_dev_barrier_all_block();
    }
    static __device__ void respond(const struct job &j, uint64_t sequence)
    {
        initiate(j, sequence);
    }
};

template <int SCOPE> static int barriers(struct perf_bench *b)
{
    int status = measure<barrier<SCOPE, false>>(b, "barrier_all", SCOPE, 0);
    return status ? status : measure<barrier<SCOPE, true>>(b, "sync_all", SCOPE, 0);
}

int perf_device_barrier(struct perf_bench *b)
{
    int status = barriers<THREAD>(b);
#if defined(__CUDACC__)
    if (!status)
        status = barriers<WARP>(b);
    if (!status)
        status = barriers<BLOCK>(b);
#endif
    return status;
}

// Commands that ask for nothing: the ring and the proxy's parser alone.
static __device__ void push_nop(void)
{
    struct gpushmem_command nop =
        gpsh_dev_command(GPUSHMEM_CMD_NOP, gpushmem_dev_my_pe(), nullptr, nullptr, 0);
    gpsh_dev_submit(gpsh_dev_implicit, nop, GPSH_DEV_NOTHING);
}

struct nop_window : passive<THREAD> {
    static __device__ void initiate(const struct job &j, uint64_t)
    {
        for (uint64_t i = threadIdx.x; i < j.window; i += blockDim.x)
            push_nop();
        quiet<BLOCK>();
    }
};

struct nop_trip : passive<THREAD> {
    static __device__ void initiate(const struct job &, uint64_t)
    {
        push_nop();
        gpushmem_dev_quiet();
    }
};

int perf_device_ring(struct perf_bench *b)
{
    enum { NOPS = 1024 };
    int status = measure<nop_trip>(b, "ring-trip", THREAD, 0);
    static const char *const names[] = {"ring-push-1", "ring-push-2", "ring-push-4"};
    for (int i = 0; i < 3 && !status; i++) {
        struct perf_case c = device_case<nop_window>(names[i], THREAD, 0);
        c.threads = 1 << i;
        c.window = NOPS;
        c.bandwidth = true;
        c.warm = 2;
        c.lead = 1;
        status = perf_measure(b, &c);
    }
    return status;
}
