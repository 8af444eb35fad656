// SPDX-License-Identifier: BSD-3-Clause
// The public signals, waits, tests, fences and barriers (contracts: gpushmem/device.cuh).
#ifndef GPUSHMEM_DEVICE_API_SYNC_CUH
#define GPUSHMEM_DEVICE_API_SYNC_CUH

#include "gpushmem/device/api.cuh"

GPSH_API_0(int, gpushmem_dev_my_pe, return dev.my_pe)
GPSH_API_0(int, gpushmem_dev_n_pes, return dev.n_pes)
GPSH_API(void *, gpushmem_dev_ptr, (const void *address, int pe), (address, pe),
         return gpsh_dev_ptr(dev, address, pe))

GPSH_API_0(void, gpushmem_dev_fence, gpsh_dev_fence(dev))
GPSH_API_0(void, gpushmem_dev_block_fence, gpsh_dev_fence_block(dev))
GPSH_API_0(void, gpushmem_dev_quiet, gpsh_dev_quiet(dev))
GPSH_API(void, gpushmem_dev_pe_quiet, (int pe), (pe), gpsh_dev_pe_quiet(dev, pe))

GPSH_API(void, gpushmem_dev_signal_op, (uint64_t * signal, uint64_t value, int op, int pe),
         (signal, value, op, pe), gpsh_dev_signal(dev, signal, value, op, pe))
GPSH_API(uint64_t, gpushmem_dev_signal_fetch, (const uint64_t *signal), (signal),
         return gpsh_dev_load_acquire(signal))
GPSH_API(uint64_t, gpushmem_dev_signal_wait_until,
         (const uint64_t *signal, int cmp, uint64_t value), (signal, cmp, value),
         return gpsh_dev_wait_value<uint64_t>(dev, signal, cmp, value))
GPSH_API(int, gpushmem_dev_signal_wait_until_status,
         (const uint64_t *signal, int cmp, uint64_t value, uint64_t *seen),
         (signal, cmp, value, seen),
         return gpsh_dev_wait_until<uint64_t>(dev, signal, cmp, value, seen))

#define GPSH_API_BARRIER(SUFFIX, SCOPE, UNUSED)                                                    \
    GPSH_API_0(void, gpushmem_dev_barrier_all##SUFFIX, gpsh_dev_barrier_all<SCOPE>(dev))           \
    GPSH_API_0(void, gpushmem_dev_sync_all##SUFFIX, gpsh_dev_sync_all<SCOPE>(dev))
GPSH_SCOPES(GPSH_API_BARRIER, )
#undef GPSH_API_BARRIER

// One comparison value for all words, and (vector) one for each.
#define GPSH_API_WORDS(NAME, TYPE, VECTOR, VALUE, WORDS)                                           \
    GPSH_API(int, gpushmem_dev_##NAME##_wait_until_all##VECTOR,                                    \
             (const TYPE *words, size_t n, const int *status, int cmp, VALUE),                     \
             (words, n, status, cmp, value), return gpsh_dev_wait_all<TYPE>(dev, WORDS))           \
    GPSH_API(size_t, gpushmem_dev_##NAME##_wait_until_any##VECTOR,                                 \
             (const TYPE *words, size_t n, const int *status, int cmp, VALUE),                     \
             (words, n, status, cmp, value), return gpsh_dev_wait_any<TYPE>(dev, WORDS))           \
    GPSH_API(size_t, gpushmem_dev_##NAME##_wait_until_some##VECTOR,                                \
             (const TYPE *words, size_t n, size_t *indices, const int *status, int cmp, VALUE),    \
             (words, n, indices, status, cmp, value),                                              \
             return gpsh_dev_wait_some<TYPE>(dev, WORDS, indices))                                 \
    GPSH_API(int, gpushmem_dev_##NAME##_test_all##VECTOR,                                          \
             (const TYPE *words, size_t n, const int *status, int cmp, VALUE),                     \
             (words, n, status, cmp, value), return gpsh_dev_words_test_all<TYPE>(WORDS))          \
    GPSH_API(size_t, gpushmem_dev_##NAME##_test_any##VECTOR,                                       \
             (const TYPE *words, size_t n, const int *status, int cmp, VALUE),                     \
             (words, n, status, cmp, value), return gpsh_dev_test_any<TYPE>(WORDS))                \
    GPSH_API(size_t, gpushmem_dev_##NAME##_test_some##VECTOR,                                      \
             (const TYPE *words, size_t n, size_t *indices, const int *status, int cmp, VALUE),    \
             (words, n, indices, status, cmp, value),                                              \
             return gpsh_dev_test_some<TYPE>(WORDS, indices))

#define GPSH_API_SYNC(NAME, TYPE)                                                                  \
    GPSH_API(int, gpushmem_dev_##NAME##_wait_until, (const TYPE *word, int cmp, TYPE value),       \
             (word, cmp, value), return gpsh_dev_wait_status<TYPE>(dev, word, cmp, value))         \
    GPSH_API(int, gpushmem_dev_##NAME##_test, (const TYPE *word, int cmp, TYPE value),             \
             (word, cmp, value),                                                                   \
             return gpsh_dev_compare<TYPE>(gpsh_dev_load_acquire(word), cmp, value))               \
    GPSH_API_WORDS(NAME, TYPE, , TYPE value,                                                       \
                   (gpsh_dev_words<TYPE>{words, n, status, cmp, value, nullptr}))                  \
    GPSH_API_WORDS(NAME, TYPE, _vector, const TYPE *value,                                         \
                   (gpsh_dev_words<TYPE>{words, n, status, cmp, (TYPE)0, value}))
GPUSHMEM_SYNC_TYPES(GPSH_API_SYNC)
#undef GPSH_API_SYNC
#undef GPSH_API_WORDS

#endif
