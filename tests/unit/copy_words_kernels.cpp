// SPDX-License-Identifier: BSD-3-Clause
// How a thread of many copies on a GPU, for copy_words_test.c.
#include "gpushmem/device.cuh"

extern "C" void copy_words(uint64_t *to, const uint64_t *from, size_t words, unsigned rank,
                           unsigned size)
{
    gpsh_dev_copy_words<gpsh_way_put, uint64_t, 4>((char *)to, (const char *)from, words, rank,
                                                   size);
}
