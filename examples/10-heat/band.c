// SPDX-License-Identifier: BSD-3-Clause
// A PE's band of rows: symmetric memory, the start values, and collecting the result.
#include <gpushmem/gpushmem.h>
#include <stdlib.h>
#include <string.h>

#include "heat.h"

static int first_row(int height, int pe)
{
    return (int)((int64_t)height * pe / gpushmem_n_pes());
}

static float temperature(unsigned char grey)
{
    return (float)grey + 1.0f;
}

// Own rows and the halo around them; later halos come from the neighbours.
static int load(const struct heat_band *b, const struct picture *p)
{
    int above = b->up >= 0, below = b->down >= 0;
    size_t cells = (size_t)(above + b->rows + below) * (size_t)b->width;
    const unsigned char *grey = p->grey + (size_t)(b->first_row - above) * (size_t)b->width;
    float *start = malloc(cells * sizeof *start);
    if (!start)
        return GPUSHMEM_ERR_NO_MEMORY;
    for (size_t i = 0; i < cells; i++)
        start[i] = temperature(grey[i]);
    // The heap may be GPU memory: put to oneself instead of storing.
    int status =
        gpushmem_float_put(b->cells[0] + (above ? 0 : b->width), start, cells, gpushmem_my_pe());
    free(start);
    return status ? status : gpushmem_barrier_all();
}

int heat_band_create(struct heat_band *b, const struct picture *p)
{
    int me = gpushmem_my_pe(), n = gpushmem_n_pes(), most = p->height / n + 1;
    *b = (struct heat_band){.width = p->width,
                            .first_row = first_row(p->height, me),
                            .up = me - 1,
                            .down = me + 1 < n ? me + 1 : -1};
    b->rows = first_row(p->height, me + 1) - b->first_row;
    b->rows_of_up = me ? b->first_row - first_row(p->height, me - 1) : 0;
    size_t cells = (size_t)(most + 2) * (size_t)p->width; // the same on all PEs
    b->cells[0] = gpushmem_malloc(cells * sizeof(float));
    b->cells[1] = b->cells[0] ? gpushmem_malloc(cells * sizeof(float)) : NULL;
    b->arrived[0] = b->cells[1] ? gpushmem_calloc(4, sizeof **b->arrived) : NULL;
    b->arrived[1] = b->arrived[0] ? b->arrived[0] + 2 : NULL;
    return b->arrived[0] ? load(b, p) : GPUSHMEM_ERR_NO_MEMORY;
}

int heat_band_free(struct heat_band *b)
{
    int status = gpushmem_free(b->arrived[0]);
    if (!status)
        status = gpushmem_free(b->cells[1]);
    return status ? status : gpushmem_free(b->cells[0]);
}

int heat_band_collect(const struct heat_band *b, uint64_t steps, int height, float *all)
{
    const float *cells = b->cells[steps % 2] + b->width;
    int status = 0;
    for (int pe = 0; pe < gpushmem_n_pes() && !status; pe++) {
        size_t first = (size_t)first_row(height, pe),
               rows = (size_t)first_row(height, pe + 1) - first;
        status =
            gpushmem_float_get(all + first * (size_t)b->width, cells, rows * (size_t)b->width, pe);
    }
    return status;
}

void heat_to_picture(const float *all, struct picture *p)
{
    size_t pixels = (size_t)p->width * (size_t)p->height;
    for (size_t i = 0; i < pixels; i++)
        p->grey[i] = (unsigned char)(all[i] - 0.5f);
}
