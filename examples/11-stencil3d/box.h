// SPDX-License-Identifier: BSD-3-Clause
// A cube of cells that is cut into boxes, one for each PE: where they lie, their memory, the serial
// run.
#ifndef STENCIL3D_BOX_H
#define STENCIL3D_BOX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__CUDACC__)
#define BOX_FUNCTION static inline __host__ __device__
#else
#define BOX_FUNCTION static inline
#endif

#ifdef __cplusplus
extern "C" {
#endif

// Of a box: 2 * dimension, plus 1 for the upper side. face ^ 1 is the opposite one.
enum { DIMENSIONS = 3, FACES = 6 };
// A face travels in so many pieces at most, of so many cells or more, each by a block: one block
// would take longer for a large face than all others for the cells.
enum { PIECES = 64, PIECE_CELLS = 4096 };

// Pointers are symmetric; passed to the kernel by value. Around a box lies a layer of ghost cells:
// copies of the neighbours' outer cells, or 0 outside of the cube.
struct box {
    int grid[DIMENSIONS], at[DIMENSIONS]; // PEs in each direction, and this one's place among them
    int size[DIMENSIONS];                 // own cells
    int neighbour[FACES];                 // PEs, -1 for none
    size_t face_room;                     // cells of the largest face of any PE
    float *cells[2];                      // [2 + size][2 + size][2 + size] of even and odd steps
    float *out;                           // [FACES][face_room] outer cells on their way
    float *in[2];                         // [FACES][face_room] those of the neighbours
    uint64_t *arrived[2];                 // [FACES][PIECES] 1 + the step that they are for
    uint64_t *done;                       // steps, for the progress line
};

// Ghosts have the indices 0 and 1 + size.
BOX_FUNCTION size_t box_cell(const struct box *b, int x, int y, int z)
{
    size_t row = 2 + (size_t)b->size[0], rows = 2 + (size_t)b->size[1];
    return ((size_t)z * rows + (size_t)y) * row + (size_t)x;
}

// `here` is a cell of a cube or box whose rows and layers are so many cells apart. A cell takes up
// an eighth of the differences to its neighbours. That product is exact: compilers that fuse
// multiply and add compute the same bits.
BOX_FUNCTION float box_next(const float *here, size_t row, size_t layer)
{
    float h = *here, along = (here[1] - h) + (*(here - 1) - h),
          across = (here[row] - h) + (*(here - row) - h),
          upright = (here[layer] - h) + (*(here - layer) - h);
    return h + 0.125f * (along + across + upright);
}

// A cube of side^3 cells. false: it cannot be cut into so many boxes. Local.
bool box_cut(struct box *b, int side, int pe, int n_pes);
// Memory, and the first values. Collective. 0 or a negative status.
int box_create(struct box *b, int side);
int box_free(struct box *b);
// Gets all boxes, and counts cells that differ from a serial run in any bit. 0 or a negative
// status.
int box_compare(const struct box *b, int side, int steps, size_t *different);

#ifdef __cplusplus
}
#endif

#endif
