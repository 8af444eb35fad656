// SPDX-License-Identifier: BSD-3-Clause
// What the parts of the example share: the stencil, a PE's band of rows, options.
#ifndef HEAT_HEAT_H
#define HEAT_HEAT_H

#include <stdbool.h>
#include <stdint.h>

#include "picture.h"

#if defined(__CUDACC__)
#define HEAT_FUNCTION static inline __host__ __device__
#else
#define HEAT_FUNCTION static inline
#endif

#ifdef __cplusplus
extern "C" {
#endif

// A cell takes up an eighth of the differences to its neighbours. Temperatures are 1 (black) to 256
// (white) and the factor is a power of two, so that every product is exact: compilers that fuse
// multiply and add compute the same bits.
HEAT_FUNCTION float heat_next(float here, float north, float south, float west, float east)
{
    return here + 0.125f * ((north + south) + (west + east) - 4.0f * here);
}

// The new temperature of column x. At the edges of the picture a missing neighbour is the cell
// itself: no heat gets out.
HEAT_FUNCTION float heat_cell(const float *above, const float *row, const float *below, int x,
                              int width)
{
    return heat_next(row[x], above[x], below[x], row[x ? x - 1 : 0],
                     row[x + 1 < width ? x + 1 : x]);
}

// The rows of one PE. Pointers are symmetric; passed to the kernel by value.
struct heat_band {
    int width, rows, first_row; // of the picture
    int up, down;               // neighbouring PEs, -1: none
    int rows_of_up;
    // [1 + rows + 1][width] before and after a step; rows 0 and rows + 1 belong to the neighbours
    float *cells[2];
    // of rows before and after a step, as cells: [0] from above, [1] from below: step number that
    // the halo row is good for
    uint64_t *arrived[2];
};

// Collective. 0 or a negative status.
int heat_band_create(struct heat_band *band, const struct picture *p);
int heat_band_free(struct heat_band *band);
// Gets every PE's rows after `steps` steps: [height][width].
int heat_band_collect(const struct heat_band *band, uint64_t steps, int height, float *all);

// Diffuses the picture without any gpushmem and compares bit for bit; says on stdout what came out.
bool heat_check(const float *all, const struct picture *start, uint64_t steps);
void heat_to_picture(const float *all, struct picture *p);

struct heat_options {
    const char *image, *out; // out: NULL for none
    uint64_t steps;
    bool check;
};
bool heat_options_parse(struct heat_options *options, int argc, char **argv); // false: said why
// A bar on the terminal, if there is one.
void heat_progress(uint64_t done, uint64_t all);

#ifdef __cplusplus
}
#endif

#endif
