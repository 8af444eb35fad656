// SPDX-License-Identifier: BSD-3-Clause
#include "figures.h"

#include <inttypes.h>
#include <stdio.h>

const char *perf_size_text(uint64_t bytes, char *text, size_t room)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB"};
    int unit = 0;
    while (unit < 3 && bytes >= 1024 && bytes % 1024 == 0) {
        bytes /= 1024;
        unit++;
    }
    snprintf(text, room, "%" PRIu64 " %s", bytes, units[unit]);
    return text;
}

const char *perf_figure_text(double value, char *text, size_t room)
{
    int digits = value >= 1000 ? 0 : value >= 100 ? 1 : value >= 10 ? 2 : value >= 1 ? 3 : 4;
    snprintf(text, room, value ? "%.*f" : "", digits, value);
    return text;
}
