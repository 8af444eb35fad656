// SPDX-License-Identifier: BSD-3-Clause
// Kernels as NVSHMEM's users write them, small: each program has a kernel, and a function of the
// host that runs it and knows what has to come out.
#include <vector>

#include "nvshmem_check.cuh"

// Programs cast their kernels, whose types kernels on CPU threads need.
#if defined(__CUDACC__)
#define KERNEL(name) ((const void *)name)
#else
#define KERNEL(name) name
#endif

static int me, n;

template <typename T> static T *shared_array(size_t count)
{
    T *block = (T *)nvshmem_calloc(count, sizeof(T));
    CHECK(block != NULL);
    return block;
}

template <typename T> static std::vector<T> read_back(const T *symmetric, size_t count)
{
    std::vector<T> values(count);
    nvshmem_getmem(values.data(), symmetric, count * sizeof(T), me);
    return values;
}

template <typename T> static void fill(T *symmetric, const std::vector<T> &values)
{
    nvshmem_putmem(symmetric, values.data(), values.size() * sizeof(T), me);
    nvshmem_barrier_all();
}

// ---- 1: everybody tells the right neighbour its number ----

__global__ void ring_shift(int *inbox)
{
    int mine = nvshmem_my_pe();
    nvshmem_int_p(inbox, mine, (mine + 1) % nvshmem_n_pes());
    nvshmem_barrier_all();
}

static void program_ring_shift(void)
{
    int *inbox = shared_array<int>(1);
    NV_RUN(ring_shift, 1, 1, inbox);
    CHECK(check_read(inbox) == (me + n - 1) % n);
    nvshmem_free(inbox);
}

// ---- 2: a sum that goes round the ring, a step by each signal ----

__global__ void ring_sum(long *value, long *sum, uint64_t *signal)
{
    int mine = nvshmem_my_pe(), pes = nvshmem_n_pes(), right = (mine + 1) % pes;
    long all = value[0];
    for (int step = 1; step < pes; step++) {
        nvshmem_long_put_signal(value + step, value + step - 1, 1, signal, 1, NVSHMEM_SIGNAL_ADD,
                                right);
        nvshmem_signal_wait_until(signal, NVSHMEM_CMP_GE, (uint64_t)step);
        all += *(volatile long *)(value + step);
    }
    *sum = all;
}

static void program_ring_sum(void)
{
    long *value = shared_array<long>(n + 1), *sum = shared_array<long>(1);
    uint64_t *signal = shared_array<uint64_t>(1);
    fill(value, std::vector<long>(1, 10 + me));
    NV_RUN(ring_sum, 1, 1, value, sum, signal);
    CHECK(check_read(sum) == 10 * n + n * (n - 1) / 2);
    nvshmem_barrier_all();
    nvshmem_free(value);
    nvshmem_free(sum);
    nvshmem_free(signal);
}

// ---- 3: halos of a row of cells, announced by signals; a mean of three, some times ----

enum { CELLS = 16, STEPS = 6 };

__global__ void halo(float *cells, float *next, uint64_t *from_left, uint64_t *from_right)
{
    int mine = nvshmem_my_pe(), pes = nvshmem_n_pes();
    int left = (mine + pes - 1) % pes, right = (mine + 1) % pes;
    for (int step = 1; step <= STEPS; step++) {
        nvshmemx_float_put_signal_nbi_block(cells + CELLS + 1, cells + 1, 1, from_right, step,
                                            NVSHMEM_SIGNAL_SET, left);
        nvshmemx_float_put_signal_nbi_block(cells, cells + CELLS, 1, from_left, step,
                                            NVSHMEM_SIGNAL_SET, right);
        if (threadIdx.x == 0) {
            nvshmem_signal_wait_until(from_left, NVSHMEM_CMP_GE, step);
            nvshmem_signal_wait_until(from_right, NVSHMEM_CMP_GE, step);
            nvshmem_quiet(); // the borders are sent, and may change
        }
        __syncthreads();
        for (int i = 1 + threadIdx.x; i <= CELLS; i += blockDim.x)
            next[i] = (cells[i - 1] + cells[i] + cells[i + 1]) / 3;
        __syncthreads();
        for (int i = 1 + threadIdx.x; i <= CELLS; i += blockDim.x)
            cells[i] = next[i];
        // neighbours have read their halos before the next ones come
        nvshmemx_barrier_all_block();
    }
}

static void program_halo(void)
{
    float *cells = shared_array<float>(CELLS + 2), *next = shared_array<float>(CELLS + 2);
    uint64_t *signals = shared_array<uint64_t>(2);
    std::vector<float> mine(CELLS + 2), world(CELLS * n), after(CELLS * n);
    for (int i = 0; i < CELLS * n; i++)
        world[i] = (float)(i * 7 % 13);
    for (int i = 0; i < CELLS; i++)
        mine[i + 1] = world[me * CELLS + i];
    fill(cells, mine);
    NV_RUN(halo, 1, 3, cells, next, signals, signals + 1);
    for (int step = 0; step < STEPS; step++) {
        for (int i = 0; i < CELLS * n; i++)
            after[i] = (world[(i + CELLS * n - 1) % (CELLS * n)] + world[i] +
                        world[(i + 1) % (CELLS * n)]) /
                       3;
        world = after;
    }
    std::vector<float> have = read_back(cells, CELLS + 2);
    for (int i = 0; i < CELLS; i++)
        CHECK(have[i + 1] - world[me * CELLS + i] < 1e-5f &&
              world[me * CELLS + i] - have[i + 1] < 1e-5f);
    nvshmem_barrier_all();
    nvshmem_free(cells);
    nvshmem_free(next);
    nvshmem_free(signals);
}

// ---- 4: all to all, a block for each peer, a signal from each ----

enum { CHUNK = 10 };

__global__ void all_to_all(double *dest, const double *source, uint64_t *signals)
{
    int mine = nvshmem_my_pe(), pes = nvshmem_n_pes();
    for (int k = blockIdx.x; k < pes; k += gridDim.x) {
        int peer = (mine + k) % pes;
        nvshmemx_double_put_signal_nbi_block(dest + mine * CHUNK, source + peer * CHUNK, CHUNK,
                                             signals + mine, 1, NVSHMEM_SIGNAL_SET, peer);
    }
    if (blockIdx.x == 0 && threadIdx.x == 0)
        for (int pe = 0; pe < pes; pe++)
            nvshmem_signal_wait_until(signals + pe, NVSHMEM_CMP_EQ, 1);
}

static void program_all_to_all(void)
{
    double *dest = shared_array<double>(CHUNK * n), *source = shared_array<double>(CHUNK * n);
    uint64_t *signals = shared_array<uint64_t>(n);
    std::vector<double> mine(CHUNK * n);
    for (int i = 0; i < CHUNK * n; i++)
        mine[i] = 1000 * me + i;
    fill(source, mine);
    NV_RUN(all_to_all, 2, 2, dest, source, signals);
    std::vector<double> have = read_back(dest, CHUNK * n);
    for (int i = 0; i < CHUNK * n; i++)
        CHECK(have[i] == 1000 * (i / CHUNK) + me * CHUNK + i % CHUNK);
    nvshmem_barrier_all();
    nvshmem_free(dest);
    nvshmem_free(source);
    nvshmem_free(signals);
}

// ---- 5: a team for each block, which reduce side by side ----

__global__ void team_per_block(const nvshmem_team_t *teams, int *sums, const int *values)
{
    nvshmemx_int_sum_reduce_block(teams[blockIdx.x], sums + 4 * blockIdx.x, values + 4 * blockIdx.x,
                                  4);
}

static void program_team_per_block(void)
{
    enum { BLOCKS = 2 };
    nvshmem_team_t host[BLOCKS], *teams = shared_array<nvshmem_team_t>(BLOCKS);
    int *sums = shared_array<int>(4 * BLOCKS), *values = shared_array<int>(4 * BLOCKS);
    for (int i = 0; i < BLOCKS; i++)
        CHECK(nvshmem_team_split_strided(NVSHMEM_TEAM_WORLD, 0, 1, n, NULL, 0, &host[i]) == 0);
    nvshmem_putmem(teams, host, sizeof host, me);
    std::vector<int> mine(4 * BLOCKS);
    for (int i = 0; i < 4 * BLOCKS; i++)
        mine[i] = me + i;
    fill(values, mine);
    void *args[] = {&teams, &sums, &values};
    CHECK(nvshmemx_collective_launch(KERNEL(team_per_block), BLOCKS, 2, args, 0, NULL) == 0);
    CHECK_OK(gpushmem_launch_wait(NULL));
    std::vector<int> have = read_back(sums, 4 * BLOCKS);
    for (int i = 0; i < 4 * BLOCKS; i++)
        CHECK(have[i] == n * i + n * (n - 1) / 2);
    for (int i = 0; i < BLOCKS; i++)
        nvshmem_team_destroy(host[i]);
    nvshmem_free(teams);
    nvshmem_free(sums);
    nvshmem_free(values);
}

// ---- 5b: groups of PEs, each of which names its own ranks in one call for WORLD, as frameworks do
// ----

static void program_groups(void)
{
    int lower = (n + 1) / 2, start = me < lower ? 0 : lower, size = me < lower ? lower : n - lower;
    nvshmem_team_t team = NVSHMEM_TEAM_INVALID;
    int *sum = shared_array<int>(1), *value = shared_array<int>(1);
    fill(value, {me});
    CHECK(nvshmem_team_split_strided(NVSHMEM_TEAM_WORLD, start, 1, size, NULL, 0, &team) == 0);
    CHECK(nvshmem_team_n_pes(team) == size && nvshmem_team_my_pe(team) == me - start);
    CHECK(nvshmem_int_sum_reduce(team, sum, value, 1) == 0);
    CHECK(read_back(sum, 1)[0] == size * start + size * (size - 1) / 2);
    nvshmem_team_destroy(team);
    // every other PE downwards; those between are in no team, and need not name the same
    int last = (n - 1) / 2 * 2, count = last / 2 + 1, odd = me % 2;
    CHECK(nvshmem_team_split_strided(NVSHMEM_TEAM_WORLD, odd ? 0 : last, odd ? 1 : -2,
                                     odd ? 1 : count, NULL, 0, &team) == 0);
    CHECK(nvshmem_team_my_pe(team) == (odd ? -1 : (last - me) / 2));
    nvshmem_team_destroy(team);
    // PE 0 means a team with PE 1, which means one of its own
    if (n > 1) {
        CHECK(nvshmem_team_split_strided(NVSHMEM_TEAM_WORLD, me == 1, 1, me == 1 ? 1 : 2, NULL, 0,
                                         &team) != 0);
        CHECK(team == NVSHMEM_TEAM_INVALID);
    }
    nvshmem_free(sum);
    nvshmem_free(value);
}

// ---- 6: tokens to their experts: counts by p, tokens by puts of warps, then a signal ----

enum { TOKENS = 12, WIDTH = 8 };

__global__ void dispatch(const float *tokens, const int *expert_of, float *inbox, int *counts,
                         uint64_t *arrived)
{
    int mine = nvshmem_my_pe(), pes = nvshmem_n_pes();
    for (int expert = 0; expert < pes; expert++) {
        int sent = 0;
        for (int t = 0; t < TOKENS; t++)
            if (expert_of[t] == expert)
                nvshmemx_float_put_nbi_warp(inbox + (mine * TOKENS + sent++) * WIDTH,
                                            tokens + t * WIDTH, WIDTH, expert);
        if (threadIdx.x == 0) {
            nvshmem_int_p(counts + mine, sent, expert);
            nvshmem_fence();
            nvshmemx_signal_op(arrived, 1, NVSHMEM_SIGNAL_ADD, expert);
        }
    }
    if (threadIdx.x == 0)
        nvshmem_signal_wait_until(arrived, NVSHMEM_CMP_EQ, pes);
}

static void program_dispatch(void)
{
    float *tokens = shared_array<float>(TOKENS * WIDTH),
          *inbox = shared_array<float>(n * TOKENS * WIDTH);
    int *expert_of = shared_array<int>(TOKENS), *counts = shared_array<int>(n);
    uint64_t *arrived = shared_array<uint64_t>(1);
    std::vector<float> mine(TOKENS * WIDTH);
    std::vector<int> experts(TOKENS);
    for (int i = 0; i < TOKENS * WIDTH; i++)
        mine[i] = (float)(me * 1000 + i);
    for (int t = 0; t < TOKENS; t++)
        experts[t] = (t * t + me) % n;
    nvshmem_putmem(tokens, mine.data(), mine.size() * sizeof(float), me);
    fill(expert_of, experts);
    NV_RUN(dispatch, 1, 2, tokens, expert_of, inbox, counts, arrived);
    std::vector<float> have = read_back(inbox, n * TOKENS * WIDTH);
    std::vector<int> count = read_back(counts, n);
    for (int pe = 0; pe < n; pe++) {
        int k = 0;
        for (int t = 0; t < TOKENS; t++)
            if ((t * t + pe) % n == me) {
                for (int i = 0; i < WIDTH; i++)
                    CHECK(have[(pe * TOKENS + k) * WIDTH + i] == pe * 1000 + t * WIDTH + i);
                k++;
            }
        CHECK(count[pe] == k);
    }
    nvshmem_barrier_all();
    nvshmem_free(tokens);
    nvshmem_free(inbox);
    nvshmem_free(expert_of);
    nvshmem_free(counts);
    nvshmem_free(arrived);
}

// ---- 7: Jacobi in rows, with p for the borders and a norm over all PEs ----

enum { NX = 6, NY = 4 };

__global__ void jacobi(float *now, float *next, float *norm, float *all, float stop, int *steps)
{
    int mine = nvshmem_my_pe(), pes = nvshmem_n_pes(), k = 0;
    for (float error = stop + 1; error > stop && k < 1000; k++) {
        float sum = 0;
        for (int y = 1; y <= NY; y++)
            for (int x = 1; x < NX - 1; x++) {
                float value = (now[y * NX + x - 1] + now[y * NX + x + 1] + now[(y - 1) * NX + x] +
                               now[(y + 1) * NX + x]) /
                              4;
                sum += (value - now[y * NX + x]) * (value - now[y * NX + x]);
                next[y * NX + x] = value;
                if (y == 1 && mine > 0)
                    nvshmem_float_p(next + (NY + 1) * NX + x, value, mine - 1);
                if (y == NY && mine < pes - 1)
                    nvshmem_float_p(next + x, value, mine + 1);
            }
        *norm = sum;
        nvshmem_barrier_all();
        nvshmem_float_sum_reduce(NVSHMEM_TEAM_WORLD, all, norm, 1);
        error = *(volatile float *)all;
        float *swapped = now;
        now = next;
        next = swapped;
    }
    *steps = k;
}

static void program_jacobi(void)
{
    float *a = shared_array<float>((NY + 2) * NX), *b = shared_array<float>((NY + 2) * NX),
          *norm = shared_array<float>(2);
    int *steps = shared_array<int>(1);
    std::vector<float> border((NY + 2) * NX);
    for (int y = 0; y < NY + 2; y++)
        border[y * NX] = border[y * NX + NX - 1] = 1; // left and right; up and down 0
    fill(a, border);
    fill(b, border);
    NV_RUN(jacobi, 1, 1, a, b, norm, norm + 1, 1e-6f, steps);
    // the same on one: a field of n * NY rows
    std::vector<float> now((n * NY + 2) * NX), next;
    for (int y = 0; y < n * NY + 2; y++)
        now[y * NX] = now[y * NX + NX - 1] = 1;
    int want = 0;
    for (float error = 1; error > 1e-6f && want < 1000; want++) {
        error = 0;
        next = now;
        for (int y = 1; y <= n * NY; y++)
            for (int x = 1; x < NX - 1; x++) {
                float value = (now[y * NX + x - 1] + now[y * NX + x + 1] + now[(y - 1) * NX + x] +
                               now[(y + 1) * NX + x]) /
                              4;
                error += (value - now[y * NX + x]) * (value - now[y * NX + x]);
                next[y * NX + x] = value;
            }
        now = next;
    }
    int have_steps = check_read(steps);
    CHECK(have_steps >= want - 1 && have_steps <= want + 1);
    std::vector<float> have = read_back(have_steps % 2 ? b : a, (NY + 2) * NX);
    for (int y = 1; y <= NY; y++)
        for (int x = 1; x < NX - 1; x++) {
            float off = have[y * NX + x] - now[(me * NY + y) * NX + x];
            CHECK(off < 1e-3f && off > -1e-3f);
        }
    nvshmem_barrier_all();
    nvshmem_free(a);
    nvshmem_free(b);
    nvshmem_free(norm);
    nvshmem_free(steps);
}

// ---- 8: ping-pong of a flag between neighbours in pairs ----

__global__ void ping_pong(uint64_t *flag, int rounds)
{
    int mine = nvshmem_my_pe(), peer = mine ^ 1;
    if (peer >= nvshmem_n_pes())
        return;
    for (int i = 1; i <= rounds; i++) {
        if (mine % 2 == 0)
            nvshmem_uint64_p(flag, i, peer);
        nvshmem_uint64_wait_until(flag, NVSHMEM_CMP_EQ, i);
        if (mine % 2)
            nvshmem_uint64_p(flag, i, peer);
    }
    nvshmem_quiet();
}

static void program_ping_pong(void)
{
    uint64_t *flag = shared_array<uint64_t>(1);
    NV_RUN(ping_pong, 1, 1, flag, 20);
    CHECK(check_read(flag) == ((me ^ 1) < n ? 20u : 0u));
    nvshmem_barrier_all();
    nvshmem_free(flag);
}

// ---- 9: a histogram whose bins are spread over the PEs ----

enum { SAMPLES = 64 };

__global__ void histogram(int *bins, int bins_each)
{
    int mine = nvshmem_my_pe(), pes = nvshmem_n_pes();
    for (int i = threadIdx.x; i < SAMPLES; i += blockDim.x) {
        int bin = (i * i + mine) % (bins_each * pes);
        nvshmem_int_atomic_inc(bins + bin % bins_each, bin / bins_each);
    }
    nvshmemx_barrier_all_block();
}

static void program_histogram(void)
{
    enum { EACH = 5 };
    int *bins = shared_array<int>(EACH);
    NV_RUN(histogram, 1, 3, bins, EACH);
    std::vector<int> want(EACH * n), have = read_back(bins, EACH);
    for (int pe = 0; pe < n; pe++)
        for (int i = 0; i < SAMPLES; i++)
            want[(i * i + pe) % (EACH * n)]++;
    for (int i = 0; i < EACH; i++)
        CHECK(have[i] == want[me * EACH + i]);
    nvshmem_free(bins);
}

// ---- 10: work from one counter: each piece is done once ----

enum { PIECES = 40 };

__global__ void work_queue(int *counter, int *done)
{
    for (int piece; (piece = nvshmem_int_atomic_fetch_add(counter, 1, 0)) < PIECES;)
        nvshmem_int_atomic_add(done + piece, nvshmem_my_pe() + 1, 0);
    nvshmem_quiet();
}

static void program_work_queue(void)
{
    int *counter = shared_array<int>(1), *done = shared_array<int>(PIECES);
    NV_RUN(work_queue, 1, 2, counter, done);
    nvshmem_barrier_all();
    std::vector<int> have = read_back(done, PIECES);
    for (int i = 0; i < PIECES && me == 0; i++)
        CHECK(have[i] >= 1 && have[i] <= n);
    nvshmem_barrier_all();
    nvshmem_free(counter);
    nvshmem_free(done);
}

// ---- 11: a lock made of compare and swap guards a number that is no atomic ----

__global__ void locked(int *lock, int *number, int rounds)
{
    for (int i = 0; i < rounds; i++) {
        while (nvshmem_int_atomic_compare_swap(lock, 0, 1, 0))
            ;
        int value = nvshmem_int_g(number, 0);
        nvshmem_int_p(number, value + 1, 0);
        nvshmem_quiet();
        nvshmem_int_atomic_swap(lock, 0, 0);
    }
}

static void program_locked(void)
{
    int *lock = shared_array<int>(1), *number = shared_array<int>(1);
    NV_RUN(locked, 1, 1, lock, number, 10);
    nvshmem_barrier_all();
    CHECK(me != 0 || check_read(number) == 10 * n);
    nvshmem_barrier_all();
    nvshmem_free(lock);
    nvshmem_free(number);
}

// ---- 12: a matrix is turned: rows become columns on the other PEs ----

__global__ void transpose(int *dest, const int *source, int side)
{
    int mine = nvshmem_my_pe();
    // row `mine` of the matrix becomes column `mine`, an element on each PE's row
    for (int pe = 0; pe < side; pe++)
        nvshmem_int_iput(dest + mine, source + pe, side, side, 1, pe);
    nvshmem_barrier_all();
}

static void program_transpose(void)
{
    int *dest = shared_array<int>(n), *source = shared_array<int>(n);
    std::vector<int> row(n);
    for (int i = 0; i < n; i++)
        row[i] = me * n + i;
    fill(source, row);
    NV_RUN(transpose, 1, 1, dest, source, n);
    std::vector<int> have = read_back(dest, n);
    for (int i = 0; i < n; i++)
        CHECK(have[i] == i * n + me);
    nvshmem_free(dest);
    nvshmem_free(source);
}

// ---- 13: a broadcast down a tree, each PE tells two ----

__global__ void tree(int *data, int count, uint64_t *signal)
{
    int mine = nvshmem_my_pe(), pes = nvshmem_n_pes();
    if (mine && threadIdx.x == 0)
        nvshmem_signal_wait_until(signal, NVSHMEM_CMP_EQ, 7);
    __syncthreads();
    for (int child = 2 * mine + 1; child <= 2 * mine + 2 && child < pes; child++)
        nvshmemx_int_put_signal_nbi_warp(data, data, count, signal, 7, NVSHMEM_SIGNAL_SET, child);
    if (threadIdx.x == 0)
        nvshmem_quiet();
}

static void program_tree(void)
{
    int *data = shared_array<int>(9);
    uint64_t *signal = shared_array<uint64_t>(1);
    std::vector<int> mine(9, me ? 0 : 1234);
    fill(data, mine);
    NV_RUN(tree, 1, 2, data, 9, signal);
    for (int value : read_back(data, 9))
        CHECK(value == 1234);
    nvshmem_barrier_all();
    nvshmem_free(data);
    nvshmem_free(signal);
}

// ---- 14: everybody pulls from everybody, two blocks of warps, one quiet ----

__global__ void pull(short *dest, const short *source, int count)
{
    int pes = nvshmem_n_pes();
    for (int pe = blockIdx.x; pe < pes; pe += gridDim.x)
        nvshmemx_short_get_nbi_block(dest + pe * count, source, count, pe);
    if (threadIdx.x == 0)
        nvshmem_quiet();
}

static void program_pull(void)
{
    enum { COUNT = 33 };
    short *dest = shared_array<short>(COUNT * n), *source = shared_array<short>(COUNT);
    std::vector<short> mine(COUNT);
    for (int i = 0; i < COUNT; i++)
        mine[i] = (short)(100 * me + i);
    fill(source, mine);
    NV_RUN(pull, 2, 2, dest, source, COUNT);
    std::vector<short> have = read_back(dest, COUNT * n);
    for (int i = 0; i < COUNT * n; i++)
        CHECK(have[i] == 100 * (i / COUNT) + i % COUNT);
    nvshmem_barrier_all();
    nvshmem_free(dest);
    nvshmem_free(source);
}

// ---- 15: PE 0 takes what comes, from whoever is first ----

__global__ void mailbox(int *flags, int *boxes, int *order)
{
    int mine = nvshmem_my_pe(), pes = nvshmem_n_pes();
    nvshmem_int_p(boxes + mine, 50 + mine, 0);
    nvshmem_fence();
    nvshmem_int_p(flags + mine, 1, 0);
    if (mine)
        return nvshmem_quiet();
    for (int i = 0; i < pes; i++) {
        size_t who = nvshmem_int_wait_until_any(flags, pes, NULL, NVSHMEM_CMP_EQ, 1);
        order[i] = *(volatile int *)(boxes + who);
        nvshmem_int_p(flags + who, 2, 0);
        nvshmem_quiet();
    }
}

static void program_mailbox(void)
{
    int *flags = shared_array<int>(n), *boxes = shared_array<int>(n), *order = shared_array<int>(n);
    nvshmem_barrier_all();
    NV_RUN(mailbox, 1, 1, flags, boxes, order);
    if (me == 0) {
        int sum = 0;
        for (int value : read_back(order, n))
            sum += value;
        CHECK(sum == 50 * n + n * (n - 1) / 2);
    }
    nvshmem_barrier_all();
    nvshmem_free(flags);
    nvshmem_free(boxes);
    nvshmem_free(order);
}

// ---- 16: a grid of all blocks at once, by the library's count ----

__global__ void greet(int *count)
{
    if (threadIdx.x == 0)
        nvshmem_int_atomic_inc(count, (nvshmem_my_pe() + 1) % nvshmem_n_pes());
    nvshmem_quiet();
}

static void program_largest_grid(void)
{
    int *count = shared_array<int>(1), blocks = 0;
    void *args[] = {&count};
    CHECK(nvshmemx_collective_launch_query_gridsize(KERNEL(greet), 256, args, 0, &blocks) == 0);
    CHECK(blocks > 0);
    CHECK(nvshmemx_collective_launch(KERNEL(greet), dim3(2), dim3(2), args, 0, NULL) == 0);
    CHECK_OK(gpushmem_launch_wait(NULL));
    nvshmem_barrier_all();
    CHECK(check_read(count) == 2);
#if !defined(__CUDACC__)
    CHECK(nvshmemx_collective_launch((const void *)greet, 1, 1, args, 0, NULL) != 0);
    CHECK(nvshmemx_collective_launch_query_gridsize((const void *)greet, 1, args, 0, &blocks) != 0);
#endif
    nvshmem_barrier_all();
    nvshmem_free(count);
}

int main(void)
{
    nv_begin();
    me = nvshmem_my_pe();
    n = nvshmem_n_pes();
    program_ring_shift();
    program_ring_sum();
    program_halo();
    program_all_to_all();
    program_team_per_block();
    program_groups();
    program_dispatch();
    program_jacobi();
    program_ping_pong();
    program_histogram();
    program_work_queue();
    program_locked();
    program_transpose();
    program_tree();
    program_pull();
    program_mailbox();
    program_largest_grid();
    return nv_end("nvshmem_programs");
}
