// SPDX-License-Identifier: BSD-3-Clause
#include "box.h"

#include <gpushmem/gpushmem.h>
#include <stdlib.h>

static int first_cell(int side, int place, int places)
{
    return (int)((int64_t)side * place / places);
}

static int largest_factor(int n)
{
    int factor = 2;
    while (n > 1 && n % factor)
        factor++;
    return n > factor ? largest_factor(n / factor) : factor;
}

// Gives the largest factors first, each to the direction with the fewest PEs: boxes like cubes have
// the smallest faces.
static void choose_grid(int *grid, int n_pes)
{
    grid[0] = grid[1] = grid[2] = 1;
    for (int left = n_pes; left > 1;) {
        int factor = largest_factor(left), fewest = 2;
        for (int d = 1; d >= 0; d--)
            fewest = grid[d] < grid[fewest] ? d : fewest;
        grid[fewest] *= factor;
        left /= factor;
    }
}

static int pe_at(const struct box *b, const int *at)
{
    return (at[2] * b->grid[1] + at[1]) * b->grid[0] + at[0];
}

static int find_neighbour(const struct box *b, int face)
{
    int d = face / 2, there[] = {b->at[0], b->at[1], b->at[2]};
    there[d] += face % 2 ? 1 : -1;
    return there[d] < 0 || there[d] == b->grid[d] ? -1 : pe_at(b, there);
}

bool box_cut(struct box *b, int side, int pe, int n_pes)
{
    choose_grid(b->grid, n_pes);
    b->at[0] = pe % b->grid[0];
    b->at[1] = pe / b->grid[0] % b->grid[1];
    b->at[2] = pe / b->grid[0] / b->grid[1];
    for (int d = 0; d < DIMENSIONS; d++)
        b->size[d] =
            first_cell(side, b->at[d] + 1, b->grid[d]) - first_cell(side, b->at[d], b->grid[d]);
    for (int face = 0; face < FACES; face++)
        b->neighbour[face] = find_neighbour(b, face);
    return b->grid[0] <= side && b->grid[1] <= side && b->grid[2] <= side;
}

static size_t cells_of(const struct box *b)
{
    return box_cell(b, b->size[0] + 1, b->size[1] + 1, b->size[2] + 1) + 1;
}

// Hot and cold spots: whole numbers up to 255.
static float first_value(int x, int y, int z)
{
    uint32_t h = (uint32_t)x * 0x9e3779b1u ^ (uint32_t)y * 0x85ebca77u ^ (uint32_t)z * 0xc2b2ae3du;
    return (float)((h ^ h >> 15) * 0x2c1b3c6du >> 24);
}

// The own cells of even step 0. The heap may be GPU memory: put to oneself instead of storing.
static int load(const struct box *b, int side)
{
    int first[DIMENSIONS];
    float *host = calloc(cells_of(b), sizeof *host);
    if (!host)
        return GPUSHMEM_ERR_NO_MEMORY;
    for (int d = 0; d < DIMENSIONS; d++)
        first[d] = first_cell(side, b->at[d], b->grid[d]);
    for (int z = 0; z < b->size[2]; z++)
        for (int y = 0; y < b->size[1]; y++)
            for (int x = 0; x < b->size[0]; x++)
                host[box_cell(b, x + 1, y + 1, z + 1)] =
                    first_value(first[0] + x, first[1] + y, first[2] + z);
    int status = gpushmem_float_put(b->cells[0], host, cells_of(b), gpushmem_my_pe());
    free(host);
    return status ? status : gpushmem_barrier_all();
}

// All PEs allocate alike: as much as the largest box takes.
int box_create(struct box *b, int side)
{
    size_t most[DIMENSIONS], cells = 1;
    for (int d = 0; d < DIMENSIONS; d++) {
        most[d] = (size_t)((side + b->grid[d] - 1) / b->grid[d]);
        cells *= most[d] + 2;
    }
    b->face_room = most[1] * most[2];
    for (int d = 1; d < DIMENSIONS; d++)
        if (most[0] * most[3 - d] > b->face_room)
            b->face_room = most[0] * most[3 - d];
    b->cells[0] = gpushmem_calloc(2 * cells, sizeof(float));
    b->out = gpushmem_malloc(3 * FACES * b->face_room * sizeof(float));
    b->arrived[0] = gpushmem_calloc(2 * FACES * PIECES + 1, sizeof(uint64_t));
    if (!b->cells[0] || !b->out || !b->arrived[0])
        return GPUSHMEM_ERR_NO_MEMORY;
    b->cells[1] = b->cells[0] + cells;
    b->in[0] = b->out + FACES * b->face_room;
    b->in[1] = b->in[0] + FACES * b->face_room;
    b->arrived[1] = b->arrived[0] + FACES * PIECES;
    b->done = b->arrived[1] + FACES * PIECES;
    return load(b, side);
}

int box_free(struct box *b)
{
    int status = gpushmem_free(b->arrived[0]);
    if (!status)
        status = gpushmem_free(b->out);
    return status ? status : gpushmem_free(b->cells[0]);
}

// The whole cube on one PE is a box without neighbours.
static void run_serially(const struct box *cube, float **cells, int side, int steps)
{
    size_t row = box_cell(cube, 0, 1, 0), layer = box_cell(cube, 0, 0, 1);
    for (int z = 1; z <= side; z++)
        for (int y = 1; y <= side; y++)
            for (int x = 1; x <= side; x++)
                cells[0][box_cell(cube, x, y, z)] = first_value(x - 1, y - 1, z - 1);
    for (int step = 0; step < steps; step++)
        for (int z = 1; z <= side; z++)
            for (int y = 1; y <= side; y++)
                for (int x = 1; x <= side; x++) {
                    size_t i = box_cell(cube, x, y, z);
                    cells[(step + 1) % 2][i] = box_next(&cells[step % 2][i], row, layer);
                }
}

static size_t count_different(const struct box *b, const float *got, const struct box *cube,
                              const float *wanted, int side)
{
    int first[DIMENSIONS];
    size_t different = 0;
    for (int d = 0; d < DIMENSIONS; d++)
        first[d] = first_cell(side, b->at[d], b->grid[d]);
    for (int z = 1; z <= b->size[2]; z++)
        for (int y = 1; y <= b->size[1]; y++)
            for (int x = 1; x <= b->size[0]; x++)
                different += got[box_cell(b, x, y, z)] !=
                             wanted[box_cell(cube, first[0] + x, first[1] + y, first[2] + z)];
    return different;
}

static int compare_all(const struct box *b, const struct box *cube, const float *wanted, float *got,
                       int side, int steps, size_t *different)
{
    int status = 0;
    for (int pe = 0; pe < gpushmem_n_pes() && !status; pe++) {
        struct box theirs;
        box_cut(&theirs, side, pe, gpushmem_n_pes());
        status = gpushmem_float_get(got, b->cells[steps % 2], cells_of(&theirs), pe);
        if (!status)
            *different += count_different(&theirs, got, cube, wanted, side);
    }
    return status;
}

int box_compare(const struct box *b, int side, int steps, size_t *different)
{
    struct box cube;
    box_cut(&cube, side, 0, 1);
    size_t bytes = cells_of(&cube) * sizeof(float);
    float *cells[] = {calloc(1, bytes), calloc(1, bytes)}, *got = malloc(bytes);
    int status = cells[0] && cells[1] && got ? 0 : GPUSHMEM_ERR_NO_MEMORY;
    *different = 0;
    if (!status) {
        run_serially(&cube, cells, side, steps);
        status = compare_all(b, &cube, cells[steps % 2], got, side, steps, different);
    }
    free(got);
    free(cells[1]);
    free(cells[0]);
    return status;
}
