// SPDX-License-Identifier: BSD-3-Clause
// A square matrix whose rows are split over the PEs is transposed: each PE packs a tile for each
// other one, an all-to-all exchanges the tiles, and each unpacks what it got. Twice: the host calls
// the all-to-all between two kernels, and one kernel does everything.
#include <gpushmem/device.cuh>
#include <stdio.h>

#include "../shared/example.h"

#if defined(__CUDACC__)
enum { BLOCKS = 8, THREADS = 512 };
#else
enum { BLOCKS = 2, THREADS = 2 }; // operating system threads
#endif

// Pointers are symmetric; passed to kernels by value. All PEs have tiles of one size, tile * tile;
// where `side` cannot be divided by the number of PEs, the last tiles are not full.
struct matrix {
    size_t side, tile, first, rows; // this PE has the rows first .. first + rows - 1
    double *before, *after;         // [rows][side]
    double *out, *in;               // [PEs][tile][tile], cut into bands (see pack)
};

// Rows begin .. end - 1 of every transposed tile.
struct band {
    size_t begin, end;
};

// Element i of a band lies in tile `pe`, at `row` and `column` of it.
struct place {
    size_t pe, row, column;
};

__device__ static struct place place_of(const struct matrix *m, struct band b, size_t i)
{
    size_t height = b.end - b.begin, row = i / m->tile;
    return {row / height, b.begin + row % height, i % m->tile};
}

// Copies a band of each tile so that it can be sent in one piece, already transposed. A band's
// parts for all PEs lie side by side: bands can be exchanged apart from each other. Thread `thread`
// of `threads` that share the work.
__device__ static void pack(const struct matrix *m, struct band b, size_t thread, size_t threads)
{
    size_t n = gpushmem_dev_n_pes(), count = n * (b.end - b.begin) * m->tile;
    double *out = m->out + n * b.begin * m->tile;
    for (size_t i = thread; i < count; i += threads) {
        struct place p = place_of(m, b, i);
        size_t column = p.pe * m->tile + p.row, row = p.column;
        out[i] = row < m->rows && column < m->side ? m->before[row * m->side + column] : 0.0;
    }
}

__device__ static void unpack(const struct matrix *m, struct band b, size_t thread, size_t threads)
{
    size_t n = gpushmem_dev_n_pes(), count = n * (b.end - b.begin) * m->tile;
    const double *in = m->in + n * b.begin * m->tile;
    for (size_t i = thread; i < count; i += threads) {
        struct place p = place_of(m, b, i);
        size_t column = p.pe * m->tile + p.column;
        if (p.row < m->rows && column < m->side)
            m->after[p.row * m->side + column] = in[i];
    }
}

// ---- The host calls the all-to-all ----

__global__ void pack_all(struct matrix m)
{
    pack(&m, {0, m.tile}, blockIdx.x * blockDim.x + threadIdx.x, gridDim.x * blockDim.x);
}

__global__ void unpack_all(struct matrix m)
{
    unpack(&m, {0, m.tile}, blockIdx.x * blockDim.x + threadIdx.x, gridDim.x * blockDim.x);
}

static int transpose_by_host(const struct matrix *m)
{
    TRY(GPUSHMEM_LAUNCH(pack_all, BLOCKS, THREADS, NULL, *m));
    TRY(gpushmem_launch_wait(NULL));
    TRY(gpushmem_double_alltoall(GPUSHMEM_TEAM_WORLD, m->in, m->out, m->tile * m->tile));
    TRY(GPUSHMEM_LAUNCH(unpack_all, BLOCKS, THREADS, NULL, *m));
    return gpushmem_launch_wait(NULL);
}

// ---- Everything in one kernel ----

// Each block does a band of its own, on a channel of its own, and need not wait for the others.
__global__ __launch_bounds__(THREADS) void transpose_band(struct matrix m)
{
    struct band b = {m.tile * blockIdx.x / gridDim.x, m.tile * (blockIdx.x + 1) / gridDim.x};
    size_t begin = gpushmem_dev_n_pes() * b.begin * m.tile;
    pack(&m, b, threadIdx.x, blockDim.x);
    gpushmem_dev_double_alltoall_block(GPUSHMEM_TEAM_CHANNEL(GPUSHMEM_TEAM_WORLD, blockIdx.x),
                                       m.in + begin, m.out + begin, (b.end - b.begin) * m.tile);
    unpack(&m, b, threadIdx.x, blockDim.x);
}

// Blocks wait for blocks of other PEs, so all of them have to run at once: a collective launch.
static int transpose_in_kernel(const struct matrix *m)
{
    TRY(GPUSHMEM_LAUNCH_COLLECTIVE(transpose_band, BLOCKS, THREADS, 0, NULL, *m));
    return gpushmem_launch_wait(NULL);
}

// ---- Memory, and what must come out ----

static double value_at(const struct matrix *m, size_t row, size_t column)
{
    return (double)(row * m->side + column);
}

// The heap may be GPU memory: put to oneself instead of storing.
static int fill(const struct matrix *m, double *row)
{
    for (size_t y = 0; y < m->rows; y++) {
        for (size_t x = 0; x < m->side; x++)
            row[x] = value_at(m, m->first + y, x);
        TRY(gpushmem_double_put(m->before + y * m->side, row, m->side, gpushmem_my_pe()));
    }
    return 0;
}

static int create(struct matrix *m, size_t side)
{
    size_t n = (size_t)gpushmem_n_pes(), me = (size_t)gpushmem_my_pe();
    m->side = side;
    m->tile = (side + n - 1) / n;
    m->first = me * m->tile < side ? me * m->tile : side;
    m->rows = m->first + m->tile < side ? m->tile : side - m->first;
    m->before = (double *)gpushmem_malloc(m->tile * side * sizeof(double));
    m->after = (double *)gpushmem_malloc(m->tile * side * sizeof(double));
    m->out = (double *)gpushmem_malloc(n * m->tile * m->tile * sizeof(double));
    m->in = (double *)gpushmem_malloc(n * m->tile * m->tile * sizeof(double));
    return m->before && m->after && m->out && m->in ? 0 : GPUSHMEM_ERR_NO_MEMORY;
}

static int destroy(struct matrix *m)
{
    TRY(gpushmem_free(m->in));
    TRY(gpushmem_free(m->out));
    TRY(gpushmem_free(m->after));
    return gpushmem_free(m->before);
}

// Overwrites the result, so that values of an earlier run are not taken for it.
static int spoil(const struct matrix *m, double *row)
{
    for (size_t x = 0; x < m->side; x++)
        row[x] = -1.0;
    for (size_t y = 0; y < m->rows; y++)
        TRY(gpushmem_double_put(m->after + y * m->side, row, m->side, gpushmem_my_pe()));
    return 0;
}

// Static variables are symmetric for the host: no memory of the heap is needed for one number.
static long wrong_here, wrong_everywhere;

static int count_wrong(const struct matrix *m, double *row)
{
    wrong_here = 0;
    for (size_t y = 0; y < m->rows; y++) {
        TRY(gpushmem_double_get(row, m->after + y * m->side, m->side, gpushmem_my_pe()));
        for (size_t x = 0; x < m->side; x++)
            wrong_here += row[x] != value_at(m, x, m->first + y);
    }
    return gpushmem_long_sum_reduce(GPUSHMEM_TEAM_WORLD, &wrong_everywhere, &wrong_here, 1);
}

// ---- Both ways, timed and checked ----

static int measure(const char *name, int (*transpose)(const struct matrix *), long rounds,
                   const struct matrix *m, double *row)
{
    TRY(spoil(m, row));
    TRY(transpose(m)); // loads the kernels
    TRY(gpushmem_barrier_all());
    double begin = example_now_s();
    for (long round = 0; round < rounds; round++)
        TRY(transpose(m));
    TRY(gpushmem_barrier_all());
    double seconds = (example_now_s() - begin) / (double)rounds;
    TRY(count_wrong(m, row));
    if (gpushmem_my_pe() == 0)
        printf("transpose: %s: %zu x %zu on %d PEs, %s: %.2f ms, %.2f GB/s, %ld of %zu values are "
               "wrong\n",
               wrong_everywhere ? "failed" : "ok", m->side, m->side, gpushmem_n_pes(), name,
               seconds * 1e3, (double)(m->side * m->side * sizeof(double)) / seconds * 1e-9,
               wrong_everywhere, m->side * m->side);
    return wrong_everywhere ? EXAMPLE_WRONG_RESULT : 0;
}

static int run(int argc, char **argv)
{
    long side = 1024, rounds = 5;
    const struct example_option options[] = {
        example_number("--size", &side, 1, 65536, "rows and columns of the matrix"),
        example_number("--rounds", &rounds, 1, 100000, "repetitions that are timed"),
    };
    TRY(example_options("transpose", argc, argv, options, sizeof options / sizeof *options));
    struct matrix m;
    double *row = (double *)malloc((size_t)side * sizeof *row);
    TRY(row ? create(&m, (size_t)side) : GPUSHMEM_ERR_NO_MEMORY);
    TRY(fill(&m, row));
    TRY(measure("all-to-all by the host", transpose_by_host, rounds, &m, row));
    TRY(measure("all-to-all in the kernel", transpose_in_kernel, rounds, &m, row));
    free(row);
    return destroy(&m);
}

int main(int argc, char **argv)
{
    int status = gpushmem_init();
    return example_end("transpose", status ? status : run(argc, argv));
}
