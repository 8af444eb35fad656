// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE // strchrnul
#include "core/nic_choice.h"

#include <stdlib.h>
#include <string.h>

#include "core/error.h"

static int bad(const char *text, const char *why)
{
    return gpsh_fail(GPUSHMEM_ERR_SETTING,
                     "GPUSHMEM_VERBS_DEVICES=%s: %s; allowed are lists like mlx5_0,mlx5_1:1, or "
                     "^mlx5_2 to leave devices out",
                     text, why);
}

// One item, "dev" or "dev:port", of `length` characters.
static const char *parse_item(const char *item, size_t length, struct gpsh_nic_filter *filter)
{
    const char *colon = memchr(item, ':', length);
    size_t name = colon ? (size_t)(colon - item) : length;
    if (filter->n == GPSH_NIC_FILTER_MOST)
        return "more than 32 devices";
    if (!name || name >= GPSH_NIC_NAME_BYTES)
        return "a device's name is empty or longer than 63 characters";
    int port = 0;
    for (const char *digit = colon ? colon + 1 : item + length; digit < item + length; digit++) {
        if (*digit < '0' || *digit > '9' || port > 25)
            return "a port is not a number from 1 to 255";
        port = port * 10 + *digit - '0';
    }
    if (colon && (port < 1 || port > 255))
        return "a port is not a number from 1 to 255";
    memcpy(filter->items[filter->n].device, item, name);
    filter->items[filter->n].device[name] = '\0';
    filter->items[filter->n++].port = port;
    return NULL;
}

int gpsh_nic_filter_parse(const char *text, struct gpsh_nic_filter *filter)
{
    struct gpsh_nic_filter result = {.exclude = text[0] == '^'};
    const char *item = text;
    while (*text) {
        const char *end = strchrnul(item, ',');
        if (*item == '^') {
            if (!result.exclude)
                return bad(
                    text, "^ leaves devices out, which does not mix with a list of devices to use");
            item++;
        }
        const char *why = parse_item(item, (size_t)(end - item), &result);
        if (why)
            return bad(text, why);
        if (!*end)
            break;
        item = end + 1;
    }
    *filter = result;
    return 0;
}

int gpsh_nic_filter_rank(const struct gpsh_nic_filter *filter, const char *device, int port)
{
    for (int i = 0; i < filter->n; i++) {
        bool match = !strcmp(filter->items[i].device, device) &&
                     (!filter->items[i].port || filter->items[i].port == port);
        if (match)
            return filter->exclude ? -1 : i;
    }
    return filter->n && !filter->exclude ? -1 : 0;
}

int gpsh_nic_rate(uint8_t speed, uint8_t width)
{
    static const struct {
        uint8_t code;
        int rate;
    } speeds[] = {{1, 2500},   {2, 5000},   {4, 10000},  {8, 10000},
                  {16, 14000}, {32, 25000}, {64, 50000}, {128, 100000}},
      widths[] = {{1, 1}, {2, 4}, {4, 8}, {8, 12}, {16, 2}};
    int rate = 0, lanes = 0;
    for (size_t i = 0; i < sizeof speeds / sizeof *speeds; i++)
        rate = speeds[i].code == speed ? speeds[i].rate : rate;
    for (size_t i = 0; i < sizeof widths / sizeof *widths; i++)
        lanes = widths[i].code == width ? widths[i].rate : lanes;
    return rate * lanes;
}

static int order(int x, int y)
{
    return (x > y) - (x < y);
}

// The first thing in which two ports differ for one PE, and by how much: negative if x is the
// better. Ports that are alike may be shared out.
static enum gpsh_nic_reason compare_kind(const struct gpsh_nic_candidate *x,
                                         const struct gpsh_nic_candidate *y, int *difference)
{
    const struct {
        enum gpsh_nic_reason reason;
        int difference;
    } keys[] = {{GPSH_NIC_BY_SPEED, order(x->slow, y->slow)},
                {GPSH_NIC_BY_DISTANCE, order(x->distance, y->distance)},
                {GPSH_NIC_BY_NETWORK, order(x->ethernet, y->ethernet)},
                {GPSH_NIC_BY_RATE, order(y->rate, x->rate)}};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        *difference = keys[i].difference;
        if (*difference)
            return keys[i].reason;
    }
    return GPSH_NIC_ALIKE;
}

enum gpsh_nic_reason gpsh_nic_difference(const struct gpsh_nic_candidate *x,
                                         const struct gpsh_nic_candidate *y)
{
    int difference = order(x->rank, y->rank);
    return difference ? GPSH_NIC_BY_RANK : compare_kind(x, y, &difference);
}

static int compare(const void *a, const void *b)
{
    const struct gpsh_nic_candidate *x = a, *y = b;
    int by_rank = order(x->rank, y->rank), by_kind = 0;
    compare_kind(x, y, &by_kind);
    return by_rank ? by_rank : by_kind ? by_kind : order(x->index, y->index);
}

static void mark_slow(struct gpsh_nic_candidate *candidates, int n)
{
    int best = 0;
    for (int i = 0; i < n; i++)
        best = candidates[i].rate > best ? candidates[i].rate : best;
    for (int i = 0; i < n; i++)
        candidates[i].slow = candidates[i].rate < best / 2;
}

// Rails of two networks, or of very unequal rate, are taken only if the setting lists them.
static int keep_alike(struct gpsh_nic_candidate *candidates, int n)
{
    int kept = 0;
    for (int i = 0; i < n; i++)
        if (candidates[i].ethernet == candidates[0].ethernet &&
            candidates[i].slow == candidates[0].slow)
            candidates[kept++] = candidates[i];
    return kept;
}

int gpsh_nic_choose(struct gpsh_nic_candidate *candidates, int n, bool listed, int n_rails,
                    int node_pe, int *chosen)
{
    mark_slow(candidates, n);
    qsort(candidates, (size_t)n, sizeof *candidates, compare);
    if (!listed)
        n = keep_alike(candidates, n);
    int group = n;
    if (!listed) // the nearest, and as many more as there are rails
        for (group = n < n_rails ? n : n_rails; group < n; group++)
            if (gpsh_nic_difference(&candidates[group], &candidates[0]) != GPSH_NIC_ALIKE)
                break;
    int rails = group < n_rails ? group : n_rails;
    // Rail i is one of the i-th part of the group. With two cables and two ends each (0-1, 2-3)
    // that puts rail 0 of all PEs on the first cable and rail 1 on the second.
    int width = rails ? group / rails : 0;
    for (int i = 0; i < rails; i++)
        chosen[i] = candidates[i * width + node_pe % width].index;
    return rails;
}
