// SPDX-License-Identifier: BSD-3-Clause
// Drives a fuzz target without a fuzzer: valid samples, mutated by a fixed random sequence, a
// bounded number of times. The targets have libFuzzer's entry point as well, so that `clang
// -fsanitize=fuzzer TARGET.c` explores further.
//   usage: TARGET [iterations [seed]]
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"

enum { INPUT_BYTES = 65536 };

static uint64_t state;

static uint64_t random_below(uint64_t limit)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state % limit;
}

static size_t mutate(uint8_t *data, size_t bytes)
{
    static const uint8_t interesting[] = {0, 1, 0x7f, 0x80, 0xff, '=', ',', '-', 'G', '9'};
    for (uint64_t n = 1 + random_below(8); n && bytes; n--) {
        size_t at = (size_t)random_below(bytes);
        switch (random_below(6)) {
        case 0: data[at] ^= (uint8_t)(1u << random_below(8)); break;
        case 1: data[at] = interesting[random_below(sizeof interesting)]; break;
        case 2: data[at] = (uint8_t)random_below(256); break;
        case 3: bytes = at; break;
        case 4: // a run of one value, as lengths and counts are attacked
            memset(data + at, random_below(2) ? 0xff : 0,
                   (size_t)(bytes - at < 8 ? bytes - at : 8));
            break;
        case 5: // insert
            if (bytes < INPUT_BYTES) {
                memmove(data + at + 1, data + at, bytes - at);
                data[at] = (uint8_t)random_below(256);
                bytes++;
            }
            break;
        }
    }
    return bytes;
}

int main(int argc, char **argv)
{
    long iterations = argc > 1 ? strtol(argv[1], NULL, 10) : 100000;
    state = argc > 2 ? strtoull(argv[2], NULL, 10) | 1 : 0x9E3779B97F4A7C15ull;
    static uint8_t data[INPUT_BYTES + 1];
    int samples = 0;
    while (fuzz_sample(samples, data, INPUT_BYTES))
        samples++;
    if (!samples) {
        fprintf(stderr, "fuzz: the target has no samples\n");
        return 1;
    }
    for (long i = 0; i < iterations; i++) {
        size_t bytes = fuzz_sample((int)random_below((uint64_t)samples), data, INPUT_BYTES);
        if (i >= samples)
            bytes = mutate(data, bytes);
        // A block of its own size, so that AddressSanitizer sees every byte read too far.
        uint8_t *copy = malloc(bytes + !bytes);
        if (!copy)
            return 1;
        memcpy(copy, data, bytes);
        LLVMFuzzerTestOneInput(copy, bytes);
        free(copy);
    }
    printf("fuzz: %ld inputs from %d samples\n", iterations, samples);
    return 0;
}
