// SPDX-License-Identifier: BSD-3-Clause
// The same diffusion by one thread and without gpushmem, to compare with.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "heat.h"

static void step(const float *before, float *after, int width, int height)
{
    for (int y = 0; y < height; y++) {
        const float *row = before + (size_t)y * (size_t)width;
        const float *above = y ? row - width : row, *below = y + 1 < height ? row + width : row;
        for (int x = 0; x < width; x++)
            after[(size_t)y * (size_t)width + (size_t)x] = heat_cell(above, row, below, x, width);
    }
}

bool heat_check(const float *all, const struct picture *p, uint64_t steps)
{
    size_t pixels = (size_t)p->width * (size_t)p->height, different = 0;
    float *cells[2] = {malloc(pixels * sizeof(float)), malloc(pixels * sizeof(float))};
    bool good = cells[0] && cells[1];
    for (size_t i = 0; i < pixels && good; i++)
        cells[0][i] = (float)p->grey[i] + 1.0f;
    for (uint64_t s = 0; s < steps && good; s++)
        step(cells[s % 2], cells[(s + 1) % 2], p->width, p->height);
    for (size_t i = 0; i < pixels && good; i++)
        different += memcmp(&all[i], &cells[steps % 2][i], sizeof all[i]) != 0;
    if (!good)
        fprintf(stderr, "heat: no memory for the serial run\n");
    else if (different)
        printf("heat: %zu of %zu cells differ from the serial run\n", different, pixels);
    else
        printf("heat: %" PRIu64 " steps, %d x %d cells: equal to the serial run bit for bit\n",
               steps, p->width, p->height);
    free(cells[0]);
    free(cells[1]);
    return good && !different;
}
