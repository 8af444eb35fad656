// SPDX-License-Identifier: BSD-3-Clause
// Numbers as they are on the wire, in records and datagrams: little-endian, of 1 to 8 bytes.
#ifndef GPSH_VERBS_WIRE_H
#define GPSH_VERBS_WIRE_H

#include <stdint.h>

static inline void verbs_put(unsigned char *to, uint64_t value, int bytes)
{
    for (int i = 0; i < bytes; i++)
        to[i] = (unsigned char)(value >> (8 * i));
}

static inline uint64_t verbs_get(const unsigned char *from, int bytes)
{
    uint64_t value = 0;
    for (int i = 0; i < bytes; i++)
        value |= (uint64_t)from[i] << (8 * i);
    return value;
}

#endif
