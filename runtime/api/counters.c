// SPDX-License-Identifier: BSD-3-Clause
// gpushmem_counters_next, and the same as a table at finalize.
#define _GNU_SOURCE // open_memstream
#include "api/counters.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/sized.h"
#include "gpushmem/gpushmem.h"
#include "job/job.h"
#include "observe/board.h"

int gpushmem_counters_next_sized(uint64_t *position, struct gpushmem_counters *out, size_t size)
{
    enum { FIRST_VERSION = offsetof(struct gpushmem_counters, reconnects) };
    struct gpushmem_counters row;
    const struct gpsh_board *board = gpsh_board_own();
    int status = gpsh_check_initialised("counters_next");
    if (status)
        return status;
    if (!position)
        return gpsh_fail(GPUSHMEM_ERR_INVALID, "gpushmem_counters_next: the position is NULL");
    if (!out || size < FIRST_VERSION) // also where no row is left
        return gpsh_sized_fill("gpushmem_counters_next", out, size, &row, sizeof row,
                               FIRST_VERSION);
    if (!board)
        return gpsh_fail(GPUSHMEM_ERR_UNSUPPORTED,
                         "gpushmem_counters_next: this PE has no memory file for counters; "
                         "GPUSHMEM_LOG_LEVEL=info says why");
    if (!gpsh_sheet_next(&board->sheet, board, position, &row))
        return 0;
    status = gpsh_sized_fill("gpushmem_counters_next", out, size, &row, sizeof row, FIRST_VERSION);
    return status ? status : 1;
}

static void print_head(FILE *to)
{
    fprintf(to, "gpushmem[%d] stats: %-16s %-8s %5s %12s %12s %14s %9s %9s %9s %7s %6s %10s\n",
            gpsh_job()->my_pe, "of", "by", "to PE", "operations", "completed", "bytes", "retries",
            "batches", "stalls", "peak", "errors", "reconnects");
}

static void print_row(FILE *to, const struct gpushmem_counters *row)
{
    char of[32], pe[12] = "-";
    bool ring = row->kind == GPUSHMEM_COUNTERS_RING;
    if (ring)
        snprintf(of, sizeof of, "ring %d", row->number);
    else
        snprintf(of, sizeof of, "%s", row->owner);
    if (!ring)
        snprintf(pe, sizeof pe, "%d", row->pe);
    fprintf(to,
            "gpushmem[%d] stats: %-16s %-8s %5s %12" PRIu64 " %12" PRIu64 " %14" PRIu64 " %9" PRIu64
            " %9" PRIu64 " %9" PRIu64 " %7" PRIu64 " %6" PRIu64 " %10" PRIu64 "\n",
            gpsh_job()->my_pe, of, ring ? "-" : row->transport, pe, row->operations, row->completed,
            row->bytes, row->retries, row->batches, row->stalls, row->peak, row->errors,
            row->reconnects);
}

static void print_rows(FILE *to)
{
    struct gpushmem_counters row;
    uint64_t position = 0;
    int n = 0;
    for (; gpushmem_counters_next(&position, &row) == 1; n++) {
        if (n == 0)
            print_head(to);
        print_row(to, &row);
    }
    if (n == 0)
        fprintf(to,
                "gpushmem[%d] stats: nothing was counted: no put, get or atomic went to any PE; "
                "loads and stores of "
                "kernels on a GPU, and of kernels' collectives, are not counted\n",
                gpsh_job()->my_pe);
}

void gpsh_stats_print(void)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *to = open_memstream(&text, &bytes);
    if (!to)
        return;
    print_rows(to);
    if (fclose(to) == 0)
        fwrite(text, 1, bytes, stderr);
    free(text);
}
