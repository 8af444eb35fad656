// SPDX-License-Identifier: BSD-3-Clause
// FNV-1a, a hash of 64 bits: tells texts and small structs apart, but not against an enemy.
#ifndef GPSH_HASH_H
#define GPSH_HASH_H

#include <stddef.h>
#include <stdint.h>

#define GPSH_HASH_START UINT64_C(0xcbf29ce484222325)

// The hash of what `hash` stands for, followed by these bytes.
static inline uint64_t gpsh_hash_more(uint64_t hash, const void *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++)
        hash = (hash ^ ((const unsigned char *)bytes)[i]) * UINT64_C(0x100000001b3);
    return hash;
}

#endif
