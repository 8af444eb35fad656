// SPDX-License-Identifier: BSD-3-Clause
// Threads that copy words together, as only a GPU's do, one after the other.
#include <criterion/criterion.h>
#include <stdint.h>
#include <string.h>

enum { LOADS = 4, MOST_THREADS = 5, MOST = 3 * LOADS * MOST_THREADS, UNTOUCHED = 77 };

void copy_words(uint64_t *to, const uint64_t *from, size_t words, unsigned rank, unsigned size);

Test(copy_words, any_number_of_words_and_threads__each_is_copied_and_none_behind_them)
{
    uint64_t from[MOST + 1], to[MOST + 1];
    for (uint64_t i = 0; i <= MOST; i++)
        from[i] = 1000 + i;
    for (unsigned size = 1; size <= MOST_THREADS; size++)
        for (size_t words = 0; words <= MOST; words++) {
            for (size_t i = 0; i <= MOST; i++)
                to[i] = UNTOUCHED;
            for (unsigned rank = 0; rank < size; rank++)
                copy_words(to, from, words, rank, size);
            for (size_t i = 0; i <= MOST; i++)
                cr_assert_eq(to[i], i < words ? from[i] : UNTOUCHED,
                             "word %zu of %zu, by %u threads", i, words, size);
        }
}
