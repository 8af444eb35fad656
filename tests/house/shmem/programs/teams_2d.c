// SPDX-License-Identifier: BSD-3-Clause
// PEs in a grid: sums of rows and columns, and a broadcast in each row.
#include <shmem.h>
#include <stdio.h>

static int mine, row_sum, column_sum, corner[2];

int main(void)
{
    shmem_init();
    int me = shmem_my_pe(), n = shmem_n_pes(), width = 2, rows = 0, columns = 0;
    shmem_team_t row, column;
    mine = me + 1;
    shmem_team_split_2d(SHMEM_TEAM_WORLD, width, NULL, 0, &row, NULL, 0, &column);
    shmem_int_sum_reduce(row, &row_sum, &mine, 1);
    shmem_int_sum_reduce(column, &column_sum, &mine, 1);
    for (int i = 0; i < n; i++) {
        rows += i / width == me / width ? i + 1 : 0;
        columns += i % width == me % width ? i + 1 : 0;
    }
    shmem_int_broadcast(row, corner, &row_sum, 1, 0);
    int first = shmem_team_translate_pe(row, 0, SHMEM_TEAM_WORLD);
    int wrong = row_sum != rows || column_sum != columns || corner[0] != rows ||
                first != me / width * width;
    shmem_team_destroy(row);
    shmem_team_destroy(column);
    shmem_finalize();
    return wrong;
}
