// SPDX-License-Identifier: BSD-3-Clause
#include "memory/heap_size.h"

uint64_t gpsh_heap_size_fitting(uint64_t standard, uint64_t reserved, uint64_t room)
{
    if (standard <= room && room - standard >= reserved)
        return standard;
    uint64_t rest = room > reserved ? room - reserved : 0;
    uint64_t mib = (rest < room / 2 ? rest : room / 2) >> 20;
    return (mib ? mib : 1) << 20;
}
