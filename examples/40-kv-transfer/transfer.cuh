// SPDX-License-Identifier: BSD-3-Clause
// Both ends of a request: what is queued in the stream of its slot. Streams run one operation after
// the other; different slots overlap: one's pages travel while the other's are being made.
#ifndef KV_TRANSFER_CUH
#define KV_TRANSFER_CUH

#include <gpushmem/device.cuh>
#include <gpushmem/gpushmem.h>

#include "kv.h"

#if defined(__CUDACC__)
enum { THREADS = 256 };
#else
enum { THREADS = 1 }; // operating system threads
#endif

// A block's page. Stands for the layer's projections.
__device__ static float *make_page(const struct kv *kv, uint32_t request, uint32_t layer)
{
    float *page = kv_made(kv, request % SLOTS, blockIdx.x);
    for (uint32_t i = threadIdx.x; i < kv->page_floats; i += blockDim.x)
        page[i] = kv_value(gpushmem_dev_my_pe(), request, layer, blockIdx.x, i);
    return page;
}

// A block per page.
__global__ void make_pages(struct kv kv, uint32_t request, uint32_t layer)
{
    make_page(&kv, request, layer);
}

// The same, and each block sends its page, whose place the kernel finds in its copy of the
// partner's table. When the put returns it has read its source.
__global__ void make_and_send_pages(struct kv kv, uint32_t request, uint32_t layer, int partner)
{
    uint32_t slot = request % SLOTS;
    const float *page = make_page(&kv, request, layer);
    gpushmem_dev_float_put_signal_block(kv_page(&kv, kv.table[kv_entry(slot, layer, blockIdx.x)]),
                                        page, kv.page_floats, &kv.arrived[slot * LAYERS + layer], 1,
                                        GPUSHMEM_SIGNAL_ADD, partner);
}

// A block per page, which the table finds in the pool. Stands for attention.
__global__ void use_pages(struct kv kv, uint32_t request, uint32_t layer)
{
    const float *page = kv_page(&kv, kv.table[kv_entry(request % SLOTS, layer, blockIdx.x)]);
    uint32_t score = 0;
    for (uint32_t i = threadIdx.x; i < kv.page_floats; i += blockDim.x)
        score += kv_score(page[i], blockIdx.x, i);
    atomicAdd(&kv.scores[(size_t)request * LAYERS + layer], score);
}

// One thread.
__global__ void tell_finished(struct kv kv, uint32_t request, int partner)
{
    gpushmem_dev_signal_op(&kv.finished[request % SLOTS], 1, GPUSHMEM_SIGNAL_ADD, partner);
}

// A layer's pages, which are made.
static int send_pages(const struct kv *kv, const uint32_t *table, uint32_t slot, uint32_t layer,
                      int partner, gpushmem_stream_t stream)
{
    int status = 0;
    // The signal is never there before its page, so no fence or quiet; but pages may overtake each
    // other, and so each layer counts in a word of its own.
    for (uint32_t page = 0; page < PAGES && !status; page++)
        status = gpushmem_float_put_signal_on_stream(
            kv_page(kv, table[kv_entry(slot, layer, page)]), kv_made(kv, slot, page),
            kv->page_floats, &kv->arrived[slot * LAYERS + layer], 1, GPUSHMEM_SIGNAL_ADD, partner,
            stream);
    return status;
}

// A request's pages to `partner`, whose table is known here.
static int prefill(const struct kv *kv, const uint32_t *table, uint32_t request, int partner,
                   gpushmem_stream_t stream)
{
    uint32_t slot = request % SLOTS;
    // Credit: the request that had these pages of the partner's pool before is finished there. The
    // host goes on meanwhile.
    int status = gpushmem_signal_wait_until_on_stream(&kv->finished[slot], GPUSHMEM_CMP_GE,
                                                      request / SLOTS, stream);
    for (uint32_t layer = 0; layer < LAYERS && !status; layer++) {
        // `made` may be overwritten: what is before these kernels in the stream has read its
        // source.
        if (kv->kernels_send) {
            status = GPUSHMEM_LAUNCH(make_and_send_pages, PAGES, THREADS, stream, *kv, request,
                                     layer, partner);
            continue;
        }
        status = GPUSHMEM_LAUNCH(make_pages, PAGES, THREADS, stream, *kv, request, layer);
        status = status ? status : send_pages(kv, table, slot, layer, partner, stream);
    }
    return status;
}

static int decode(const struct kv *kv, uint32_t request, int partner, gpushmem_stream_t stream)
{
    uint32_t slot = request % SLOTS;
    // those of earlier requests count on in the same words
    uint64_t pages = (uint64_t)PAGES * (request / SLOTS + 1);
    int status = 0;
    for (uint32_t layer = 0; layer < LAYERS && !status; layer++) {
        status = gpushmem_signal_wait_until_on_stream(&kv->arrived[slot * LAYERS + layer],
                                                      GPUSHMEM_CMP_GE, pages, stream);
        status = status ? status
                        : GPUSHMEM_LAUNCH(use_pages, PAGES, THREADS, stream, *kv, request, layer);
    }
    // The kernels before it in the stream have read their pages: the partner may overwrite them.
    if (!status && kv->kernels_send)
        status = GPUSHMEM_LAUNCH(tell_finished, 1, 1, stream, *kv, request, partner);
    else if (!status)
        status = gpushmem_signal_op_on_stream(&kv->finished[slot], 1, GPUSHMEM_SIGNAL_ADD, partner,
                                              stream);
    return status;
}

#endif
