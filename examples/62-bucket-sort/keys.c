// SPDX-License-Identifier: BSD-3-Clause
// Making keys, and sorting those of one PE.
#include <string.h>

#include "sort.h"

enum { UNIFORM, SKEWED, FEW, KINDS };
static const char *const names[KINDS] = {"uniform", "skewed", "few"};
const char *const keys_kinds = "uniform, skewed (most are small) or few (ten different ones)";

int keys_kind(const char *name)
{
    for (int kind = 0; kind < KINDS; kind++)
        if (!strcmp(name, names[kind]))
            return kind;
    return -1;
}

static uint32_t hash(uint32_t a, uint32_t b)
{
    uint32_t h = a * 0x9e3779b1u ^ (b + 1) * 0x85ebca77u;
    h = (h ^ h >> 15) * 0x2c1b3c6du;
    h = (h ^ h >> 12) * 0x297a2d39u;
    return h ^ h >> 15;
}

uint32_t keys_make(int kind, int pe, long i)
{
    uint32_t random = hash((uint32_t)i, (uint32_t)pe);
    double part = random / 4294967296.0;
    switch (kind) {
    case SKEWED: return (uint32_t)(part * part * part * part * 4294967296.0);
    case FEW: return (uint32_t)(part * 10) * 429496729u;
    default: return random;
    }
}

// One byte after the other, the lowest first.
void keys_sort(uint32_t *keys, uint32_t *scratch, long count)
{
    for (int shift = 0; shift < 32; shift += 8) {
        long begin[257] = {0};
        for (long i = 0; i < count; i++)
            begin[(keys[i] >> shift & 255) + 1]++;
        for (int byte = 0; byte < 256; byte++)
            begin[byte + 1] += begin[byte];
        for (long i = 0; i < count; i++)
            scratch[begin[keys[i] >> shift & 255]++] = keys[i];
        memcpy(keys, scratch, (size_t)count * sizeof *keys);
    }
}
