// SPDX-License-Identifier: BSD-3-Clause
#include "observe/counters.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "transport/transport.h"

enum { LINE = 64 };

static uint64_t whole_lines(uint64_t bytes)
{
    return (bytes + LINE - 1) / LINE * LINE;
}

void gpsh_sheet_plan(struct gpsh_sheet *sheet, uint64_t at)
{
    sheet->rings = whole_lines(at);
    sheet->flows = sheet->rings + (uint64_t)sheet->n_rings * sizeof(struct gpsh_ring_counters);
    sheet->flow_stride = whole_lines((uint64_t)sheet->n_pes * sizeof(struct gpsh_flow));
    sheet->direct =
        sheet->flows + sheet->flow_stride * (uint64_t)sheet->n_channels * GPSH_SHEET_TRANSPORTS;
    sheet->bytes =
        sheet->direct + (sheet->counts_direct ? GPSH_DIRECT_KINDS : 0) * sheet->flow_stride;
}

bool gpsh_sheet_sound(const struct gpsh_sheet *sheet, uint64_t at)
{
    enum { MOST = 1 << 20 };
    struct gpsh_sheet planned = *sheet;
    bool counts = sheet->n_rings >= 0 && sheet->n_rings < MOST && sheet->n_channels >= 0 &&
                  sheet->n_channels < MOST && sheet->n_pes > 0 && sheet->n_pes < MOST &&
                  (sheet->counts_direct == 0 || sheet->counts_direct == 1);
    if (!counts)
        return false;
    gpsh_sheet_plan(&planned, at);
    return planned.rings == sheet->rings && planned.flows == sheet->flows &&
           planned.flow_stride == sheet->flow_stride && planned.direct == sheet->direct &&
           planned.bytes == sheet->bytes;
}

static uint64_t load(const uint64_t *counter)
{
    return __atomic_load_n(counter, __ATOMIC_RELAXED);
}

static bool read_ring(const struct gpsh_sheet *sheet, const char *board, uint64_t number,
                      struct gpushmem_counters *out)
{
    const void *rings = board + sheet->rings;
    const struct gpsh_ring_counters *ring = (const struct gpsh_ring_counters *)rings + number;
    *out = (struct gpushmem_counters){.kind = GPUSHMEM_COUNTERS_RING,
                                      .number = (int32_t)number,
                                      .pe = -1,
                                      .operations = load(&ring->commands),
                                      .completed = load(&ring->completed),
                                      .posts = load(&ring->posts),
                                      .stalls = load(&ring->stalls),
                                      .batches = load(&ring->batches),
                                      .errors = load(&ring->errors),
                                      .peak = load(&ring->peak)};
    snprintf(out->owner, sizeof out->owner, "kernels");
    return out->operations || out->errors;
}

void gpsh_channel_name(uint64_t channel, int n_proxies, char *text, size_t bytes)
{
    if (channel == 0)
        snprintf(text, bytes, "default context");
    else if (channel <= (uint64_t)n_proxies)
        snprintf(text, bytes, "proxy thread %" PRIu64, channel - 1);
    else
        snprintf(text, bytes, "context %" PRIu64, channel - (uint64_t)n_proxies);
}

static bool read_flow(const struct gpsh_sheet *sheet, const char *board, uint64_t index,
                      struct gpushmem_counters *out)
{
    uint64_t n_pes = (uint64_t)sheet->n_pes, row = index / n_pes;
    uint64_t transport = row / (uint64_t)sheet->n_channels;
    uint64_t channel = row % (uint64_t)sheet->n_channels;
    const void *flows = board + sheet->flows + row * sheet->flow_stride;
    const struct gpsh_flow *flow = (const struct gpsh_flow *)flows + index % n_pes;
    *out = (struct gpushmem_counters){.kind = GPUSHMEM_COUNTERS_FLOW,
                                      .number = (int32_t)channel,
                                      .pe = (int32_t)(index % n_pes),
                                      .operations = load(&flow->posted),
                                      .completed = load(&flow->completed),
                                      .bytes = load(&flow->bytes),
                                      .retries = load(&flow->retries),
                                      .peak = load(&flow->peak),
                                      .reconnects = load(&flow->reconnects)};
    gpsh_channel_name(channel, sheet->n_proxies, out->owner, sizeof out->owner);
    snprintf(out->transport, sizeof out->transport, "%.15s", sheet->transports[transport]);
    return out->operations || out->retries;
}

// Row `index` of the loads and stores.
static bool read_direct(const struct gpsh_sheet *sheet, const char *board, uint64_t index,
                        struct gpushmem_counters *out)
{
    uint64_t n_pes = (uint64_t)sheet->n_pes, by = index / n_pes;
    const void *flows = board + sheet->direct + by * sheet->flow_stride;
    const struct gpsh_flow *flow = (const struct gpsh_flow *)flows + index % n_pes;
    *out = (struct gpushmem_counters){.kind = GPUSHMEM_COUNTERS_FLOW,
                                      .number = (int32_t)by,
                                      .pe = (int32_t)(index % n_pes),
                                      .operations = load(&flow->posted),
                                      .bytes = load(&flow->bytes)};
    out->completed = out->operations;
    snprintf(out->owner, sizeof out->owner, "%s", by == GPSH_DIRECT_HOST ? "host" : "kernels");
    snprintf(out->transport, sizeof out->transport, "direct");
    return out->operations != 0;
}

struct gpsh_direct_counts gpsh_direct_counts;

void gpsh_direct_add(enum gpsh_direct_by by, int pe, uint64_t bytes)
{
    void *flows = gpsh_direct_counts.flows + (uint64_t)by * gpsh_direct_counts.stride;
    struct gpsh_flow *flow = (struct gpsh_flow *)flows + pe;
    __atomic_fetch_add(&flow->posted, 1, __ATOMIC_RELAXED); // any thread
    __atomic_fetch_add(&flow->bytes, bytes, __ATOMIC_RELAXED);
}

bool gpsh_sheet_next(const struct gpsh_sheet *sheet, const void *board, uint64_t *position,
                     struct gpushmem_counters *out)
{
    uint64_t n_rings = (uint64_t)sheet->n_rings;
    uint64_t row = (uint64_t)sheet->n_channels * (uint64_t)sheet->n_pes;
    uint64_t direct = n_rings + row * GPSH_SHEET_TRANSPORTS;
    uint64_t end = direct + (sheet->counts_direct ? GPSH_DIRECT_KINDS : 0) * (uint64_t)sheet->n_pes;
    while (*position < direct) {
        uint64_t at = (*position)++, flow = at - n_rings;
        if (at < n_rings ? read_ring(sheet, board, at, out) : read_flow(sheet, board, flow, out))
            return true;
        // The flows of transports that are not in use may be those of thousands of PEs: skip them.
        if (at >= n_rings && !sheet->transports[flow / row][0])
            *position = n_rings + (flow / row + 1) * row;
    }
    while (*position < end)
        if (read_direct(sheet, board, (*position)++ - direct, out))
            return true;
    return false;
}
