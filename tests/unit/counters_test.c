// SPDX-License-Identifier: BSD-3-Clause
// Which ring, channel, transport and PE a row of counters is said to be of.
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "observe/counters.h"
#include "transport/transport.h"

enum { N_PES = 3 };

static struct gpsh_sheet sheet;
static char *board;

static void setup(void)
{
    sheet = (struct gpsh_sheet){
        .n_rings = 2, .n_contexts = 1, .n_channels = 4, .n_proxies = 1, .n_pes = N_PES};
    strcpy(sheet.transports[0], "p2p");
    strcpy(sheet.transports[2], "verbs");
    gpsh_sheet_plan(&sheet, 8);
    board = aligned_alloc(64, (sheet.bytes + 63) / 64 * 64);
    cr_assert_not_null(board);
    memset(board, 0, sheet.bytes);
}

static void teardown(void)
{
    free(board);
}

static struct gpsh_flow *flow_of(int transport, int channel, int pe)
{
    int row = transport * sheet.n_channels + channel;
    void *flows = board + sheet.flows + (uint64_t)row * sheet.flow_stride;
    return (struct gpsh_flow *)flows + pe;
}

TestSuite(counters, .init = setup, .fini = teardown);

Test(counters, gpsh_sheet_next__flows_that_counted__say_whose_they_are)
{
    const struct {
        int transport, channel, pe;
        const char *name, *owner;
    } rows[] = {
        {0, 0, 1, "p2p", "default context"}, {0, 0, 2, "p2p", "default context"},
        {0, 1, 2, "p2p", "proxy thread 0"},  {2, 3, 0, "verbs", "context 2"},
        {2, 3, 2, "verbs", "context 2"},
    };
    uint64_t position = 0;
    struct gpushmem_counters row;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        *flow_of(rows[i].transport, rows[i].channel, rows[i].pe) =
            (struct gpsh_flow){.posted = 100 + i, .completed = 50 + i, .bytes = 8 * i};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        cr_assert(gpsh_sheet_next(&sheet, board, &position, &row), "row %zu", i);
        cr_expect_eq(row.kind, GPUSHMEM_COUNTERS_FLOW);
        cr_expect_eq(row.pe, rows[i].pe, "row %zu: pe %d", i, (int)row.pe);
        cr_expect_eq(row.number, rows[i].channel);
        cr_expect_str_eq(row.transport, rows[i].name);
        cr_expect_str_eq(row.owner, rows[i].owner);
        cr_expect_eq(row.operations, 100 + i);
        cr_expect_eq(row.completed, 50 + i);
        cr_expect_eq(row.bytes, 8 * i);
    }
    cr_expect_not(gpsh_sheet_next(&sheet, board, &position, &row));
}

Test(counters, gpsh_sheet_next__rings__come_first_and_only_if_they_counted)
{
    struct gpsh_ring_counters *rings = (void *)(board + sheet.rings);
    uint64_t position = 0;
    struct gpushmem_counters row;
    rings[1].commands = 7;
    flow_of(0, 2, 1)->retries = 1;
    cr_assert(gpsh_sheet_next(&sheet, board, &position, &row));
    cr_expect(row.kind == GPUSHMEM_COUNTERS_RING && row.number == 1 && row.operations == 7);
    cr_assert(gpsh_sheet_next(&sheet, board, &position, &row));
    cr_expect(row.kind == GPUSHMEM_COUNTERS_FLOW && row.number == 2 && row.pe == 1);
    cr_expect_not(gpsh_sheet_next(&sheet, board, &position, &row));
}
