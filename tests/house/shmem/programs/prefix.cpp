// SPDX-License-Identifier: BSD-3-Clause
// What OpenSHMEM 1.6 added, in C++: where each PE's part of a list begins (a scan), parts that go
// there as blocks, signals that count them.
#include <shmem.h>
#include <vector>

enum { ROWS = 4, MOST = 16 };

static long length, begin, end;
static double table[ROWS][MOST];
static std::uint64_t rows_here;
static __complex__ float each, all_before; // C's complex numbers, which C++ compilers know, too

int main()
{
    int joined = 1, wrong = 0;
    shmem_query_initialized(&joined);
    wrong |= joined;
    shmem_init();
    shmem_query_initialized(&joined);
    wrong |= !joined;
    const int me = shmem_my_pe(), n = shmem_n_pes();
    shmem_ctx_t ctx;
    wrong |= shmem_ctx_create(0, &ctx);

    length = me + 1;
    wrong |= shmem_long_sum_exscan(SHMEM_TEAM_WORLD, &begin, &length, 1);
    wrong |= shmem_long_sum_inscan(SHMEM_TEAM_WORLD, &end, &length, 1);
    wrong |= end != begin + length;
    __real__ each = 1;
    __imag__ each = static_cast<float>(me);
    wrong |= shmem_complexf_sum_exscan(SHMEM_TEAM_WORLD, &all_before, &each, 1);
    wrong |= __real__ all_before != static_cast<float>(me);

    // each PE writes its columns, `length` wide, into every row of every table
    const auto wide = static_cast<std::size_t>(length);
    std::vector<double> mine(ROWS * wide, me + 0.5);
    shmem_ctx_session_config_t config = {};
    config.total_ops = static_cast<std::size_t>(2 * n);
    shmem_ctx_session_start(ctx, SHMEM_CTX_SESSION_BATCH, &config, SHMEM_CTX_SESSION_TOTAL_OPS);
    for (int pe = 0; pe < n; pe++) {
        shmem_ctx_double_ibput(ctx, &table[0][begin], mine.data(), MOST, length, wide, ROWS, pe);
        shmem_ctx_pe_quiet(ctx, &pe, 1);
        shmem_ctx_signal_add(ctx, &rows_here, ROWS, pe);
    }
    shmem_ctx_session_stop(ctx);
    shmem_signal_wait_until(&rows_here, SHMEM_CMP_EQ, static_cast<std::uint64_t>(ROWS * n));
    for (auto &row : table)
        for (int pe = 0, at = 0; pe < n; pe++)
            for (int i = 0; i <= pe; i++, at++)
                wrong |= row[at] != pe + 0.5;
    shmem_barrier_all();
    double theirs[ROWS];
    shmem_double_ibget(theirs, &table[0][0], 1, MOST, 1, ROWS, n - 1);
    wrong |= theirs[ROWS - 1] != 0.5 || shmem_team_ptr(SHMEM_TEAM_WORLD, &begin, me) != &begin;
    shmem_signal_set(&rows_here, 0, me);
    shmem_pe_quiet(&me, 1);
    wrong |= shmem_signal_fetch(&rows_here) != 0;
    shmem_ctx_destroy(ctx);
    shmem_finalize();
    return wrong;
}
