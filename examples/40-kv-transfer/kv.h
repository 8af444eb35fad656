// SPDX-License-Identifier: BSD-3-Clause
// What kernels and the serial reference share: sizes, memory, and what stands for keys, values and
// queries.
#ifndef KV_KV_H
#define KV_KV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__CUDACC__)
#define KV_FUNCTION static inline __host__ __device__
#else
#define KV_FUNCTION static inline
#endif

#ifdef __cplusplus
extern "C" {
#endif

enum {
    LAYERS = 8,
    PAGES = 8,                           // of a layer of a request
    SLOTS = 2,                           // requests under way; each has a stream on both sides
    POOL_PAGES = SLOTS * LAYERS * PAGES, // in the cache of a PE that decodes
};

// Pointers are symmetric; passed to kernels by value. PE i of the first half fills pages for PE i +
// n / 2.
struct kv {
    uint32_t requests, page_floats;
    bool kernels_send; // else streams do
    float *made;       // [SLOTS][PAGES][page_floats] prefill: one layer
    float *pool;       // [POOL_PAGES][page_floats] decode: its cache
    // [SLOTS][LAYERS][PAGES] decode: which page of the pool. Prefill: the partner's, for kernels
    uint32_t *table;
    uint32_t *scores; // [requests][LAYERS] decode: what came out
    // [SLOTS][LAYERS] decode: pages that are here, over all requests of the slot
    uint64_t *arrived;
    uint64_t *finished; // [SLOTS] prefill: requests of the slot whose pages are free again
};

// Collective. 0 or a negative status.
int kv_create(struct kv *kv, uint32_t requests, uint32_t page_floats, bool kernels_send);
int kv_free(struct kv *kv);
// Serial: adds up to *wrong how many scores are not those of the pages that `prefill` makes. 0 or a
// negative status.
int kv_check(const struct kv *kv, int prefill, uint64_t *wrong);

// Where a page is listed in the table.
KV_FUNCTION size_t kv_entry(uint32_t slot, uint32_t layer, uint32_t page)
{
    return ((size_t)slot * LAYERS + layer) * PAGES + page;
}

KV_FUNCTION float *kv_made(const struct kv *kv, uint32_t slot, uint32_t page)
{
    return kv->made + ((size_t)slot * PAGES + page) * kv->page_floats;
}

// A page of the pool.
KV_FUNCTION float *kv_page(const struct kv *kv, uint32_t page)
{
    return kv->pool + (size_t)page * kv->page_floats;
}

KV_FUNCTION uint32_t kv_hash(uint32_t a, uint32_t b)
{
    uint32_t h = a * 0x9e3779b1u ^ b * 0x85ebca77u;
    h = (h ^ h >> 15) * 0x2c1b3c6du;
    h = (h ^ h >> 12) * 0x297a2d39u;
    return h ^ h >> 15;
}

// Element i of a page: a small integer.
KV_FUNCTION float kv_value(int prefill, uint32_t request, uint32_t layer, uint32_t page, uint32_t i)
{
    return (
        float)(kv_hash((((uint32_t)prefill * 4099 + request) * LAYERS + layer) * PAGES + page, i) &
               15);
}

// What element i of a page adds to the layer's score: each element and page counts differently.
// Modulo 2^32.
KV_FUNCTION uint32_t kv_score(float value, uint32_t page, uint32_t i)
{
    return (uint32_t)value * kv_hash(page, ~i);
}

#ifdef __cplusplus
}
#endif

#endif
