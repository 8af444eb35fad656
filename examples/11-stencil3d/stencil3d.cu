// SPDX-License-Identifier: BSD-3-Clause
// Heat diffusion in a cube that is cut in all three directions. One kernel does all steps: its
// blocks put the faces of the box into the neighbours' memory, wait for theirs, and compute.
#include <gpushmem/device.cuh>
#include <gpushmem/grid_sync.cuh>
#include <stdio.h>

#include "../shared/example.h"
#include "box.h"

#if defined(__CUDACC__)
enum { BLOCKS = 0, THREADS = 256 }; // 0: as many as fit onto the GPU
#else
enum { BLOCKS = 2, THREADS = 2 }; // operating system threads
#endif

__device__ static size_t face_cells(const struct box *b, int face)
{
    int d = face / 2;
    return (size_t)b->size[d == 0 ? 1 : 0] * b->size[d == 2 ? 1 : 2];
}

// Where cell i of a face lies: the outer cells of the box, or the ghosts beyond them.
__device__ static size_t face_cell(const struct box *b, int face, size_t i, bool ghost)
{
    int d = face / 2, u = d == 0 ? 1 : 0, v = d == 2 ? 1 : 2, at[DIMENSIONS];
    at[d] = face % 2 ? b->size[d] + ghost : 1 - ghost;
    at[u] = 1 + (int)(i % b->size[u]);
    at[v] = 1 + (int)(i / b->size[u]);
    return box_cell(b, at[0], at[1], at[2]);
}

// A piece of a face: cells first to end - 1.
struct piece {
    int face, number;
    size_t first, end;
};

// Empty if the face has fewer pieces.
__device__ static struct piece piece_of(const struct box *b, int job)
{
    int face = job / PIECES, number = job % PIECES;
    size_t all = face_cells(b, face), pieces = 1 + all / PIECE_CELLS;
    pieces = pieces < PIECES ? pieces : +PIECES;
    if ((size_t)number >= pieces)
        return {face, number, 0, 0};
    return {face, number, all * number / pieces, all * (number + 1) / pieces};
}

// The neighbour knows the face by the opposite number. `out` may be written again at once: the
// block form of put waits until it has been read.
__device__ static void send_piece(const struct box *b, const struct piece &p, int step)
{
    const float *cells = b->cells[step % 2];
    float *out = b->out + p.face * b->face_room;
    for (size_t i = p.first + threadIdx.x; i < p.end; i += blockDim.x)
        out[i] = cells[face_cell(b, p.face, i, false)];
    gpushmem_dev_float_put_signal_block(b->in[step % 2] + (p.face ^ 1) * b->face_room + p.first,
                                        out + p.first, p.end - p.first,
                                        &b->arrived[step % 2][(p.face ^ 1) * PIECES + p.number],
                                        step + 1, GPUSHMEM_SIGNAL_SET, b->neighbour[p.face]);
}

__device__ static void receive_piece(const struct box *b, const struct piece &p, int step)
{
    float *cells = b->cells[step % 2];
    const float *in = b->in[step % 2] + p.face * b->face_room;
    if (threadIdx.x == 0)
        gpushmem_dev_signal_wait_until(&b->arrived[step % 2][p.face * PIECES + p.number],
                                       GPUSHMEM_CMP_GE, step + 1);
    __syncthreads(); // what the signal announced is visible to the whole block
    for (size_t i = p.first + threadIdx.x; i < p.end; i += blockDim.x)
        cells[face_cell(b, p.face, i, true)] = in[i];
}

// What this block sends or receives, unless it is empty or at the cube's outer side.
template <class Work> __device__ static void for_pieces(const struct box *b, const Work &work)
{
    for (int job = blockIdx.x; job < FACES * PIECES; job += gridDim.x) {
        struct piece p = piece_of(b, job);
        if (b->neighbour[p.face] >= 0 && p.first < p.end)
            work(p);
    }
}

__device__ static void compute(const struct box *b, int step)
{
    const float *now = b->cells[step % 2];
    float *next = b->cells[(step + 1) % 2];
    size_t row = box_cell(b, 0, 1, 0), layer = box_cell(b, 0, 0, 1);
    size_t all = (size_t)b->size[0] * b->size[1] * b->size[2], threads = gridDim.x * blockDim.x;
    for (size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < all; i += threads) {
        int x = (int)(i % b->size[0]), y = (int)(i / b->size[0] % b->size[1]),
            z = (int)(i / b->size[0] / b->size[1]);
        size_t cell = box_cell(b, x + 1, y + 1, z + 1);
        next[cell] = box_next(&now[cell], row, layer);
    }
}

// Two sets of inboxes and signals are enough. A neighbour sends the face of step s + 2 when it has
// mine of s + 1, and I sent that after I had used what it sent for step s. With one set the face of
// s + 1 could arrive while that of s is still read; and with one signal word for both, s + 1 might
// be announced first, since nothing orders two puts.
__global__ void stencil(struct box b, int steps)
{
    for (int step = 0; step < steps; step++) {
        for_pieces(&b, [&](const struct piece &p) { send_piece(&b, p, step); });
        for_pieces(&b, [&](const struct piece &p) { receive_piece(&b, p, step); });
        gpushmem_dev_grid_sync(); // all ghosts are there
        compute(&b, step);
        gpushmem_dev_grid_sync(); // all cells are there
        if (blockIdx.x == 0 && threadIdx.x == 0)
            gpushmem_dev_uint64_atomic_set(b.done, step + 1, gpushmem_dev_my_pe());
    }
}

// The host looks at the kernel while it runs. A kernel that failed says so at once.
static int watch(const struct box *b, int steps)
{
    uint64_t done = 0;
    while (done < (uint64_t)steps) {
        struct timespec pause = {0, 50 * 1000 * 1000};
        example_progress("stencil3d", "step", (long)done, steps);
        nanosleep(&pause, NULL);
        TRY(gpushmem_uint64_atomic_fetch_status(b->done, gpushmem_my_pe(), &done));
        TRY(gpushmem_device_error());
    }
    example_progress("stencil3d", "step", steps, steps);
    return 0;
}

static int diffuse(const struct box *b, int steps, double *seconds)
{
    double begin = example_now_s();
    TRY(GPUSHMEM_LAUNCH_COLLECTIVE(stencil, BLOCKS, THREADS, 0, NULL, *b, steps));
    if (example_shows_progress())
        TRY(watch(b, steps));
    TRY(gpushmem_launch_wait(NULL));
    TRY(gpushmem_barrier_all());
    *seconds = example_now_s() - begin;
    return 0;
}

static int report(const struct box *b, int side, int steps, bool compare, double seconds)
{
    size_t different = 0;
    if (compare)
        TRY(box_compare(b, side, steps, &different));
    printf("stencil3d: %s: %d steps of %d x %d x %d cells on %d x %d x %d PEs, %.1f million "
           "cells/s",
           different ? "failed" : "ok", steps, side, side, side, b->grid[0], b->grid[1], b->grid[2],
           (double)side * side * side * steps / seconds * 1e-6);
    if (different)
        printf(": %zu cells differ from the serial run\n", different);
    else
        printf("%s\n", compare ? ": equal to the serial run bit for bit" : "");
    return different ? EXAMPLE_WRONG_RESULT : 0;
}

static int run(int argc, char **argv)
{
    long side = 64, steps = 100, compare = 1;
    const struct example_option options[] = {
        example_number("--size", &side, 1, 1024, "cells on each side of the cube"),
        example_number("--steps", &steps, 0, 1000000, "steps"),
        example_number("--check", &compare, 0, 1, "1: compare with a serial run"),
    };
    TRY(example_options("stencil3d", argc, argv, options, sizeof options / sizeof *options));
    struct box box;
    if (!box_cut(&box, (int)side, gpushmem_my_pe(), gpushmem_n_pes())) {
        if (gpushmem_my_pe() == 0)
            fprintf(stderr, "stencil3d: %ld cells a side are too few for %d x %d x %d PEs\n", side,
                    box.grid[0], box.grid[1], box.grid[2]);
        return EXAMPLE_WRONG_OPTION;
    }
    double seconds = 0;
    TRY(box_create(&box, (int)side));
    TRY(diffuse(&box, (int)steps, &seconds));
    int status = 0;
    if (gpushmem_my_pe() == 0)
        status = report(&box, (int)side, (int)steps, compare, seconds);
    return status < 0 ? status : box_free(&box) ? -1 : status;
}

int main(int argc, char **argv)
{
    int status = gpushmem_init();
    return example_end("stencil3d", status ? status : run(argc, argv));
}
