// SPDX-License-Identifier: BSD-3-Clause
// Heat diffusion over a picture whose rows are split over the PEs. The kernel of each step computes
// the new rows and puts the outer two, each with a signal, straight into the neighbours' memory;
// their next kernel waits for the signal.
#include <gpushmem/device.cuh>
#include <gpushmem/gpushmem.h>
#include <stdio.h>
#include <stdlib.h>

#include "heat.h"

#if defined(__CUDACC__)
enum { BLOCKS = 64, THREADS = 128 };
#else
enum { BLOCKS = 2, THREADS = 2 }; // operating system threads
#endif

__global__ void heat_step(struct heat_band b, uint64_t step)
{
    const float *before = b.cells[step % 2];
    float *after = b.cells[(step + 1) % 2];
    uint64_t *arrived = b.arrived[step % 2], *arrives = b.arrived[(step + 1) % 2];
    int first = 1 + b.rows * blockIdx.x / gridDim.x, last = b.rows * (blockIdx.x + 1) / gridDim.x;
    bool top = first == 1 && b.up >= 0, bottom = last == b.rows && b.down >= 0;
    if (threadIdx.x == 0 && top)
        gpushmem_dev_signal_wait_until(&arrived[0], GPUSHMEM_CMP_GE, step);
    if (threadIdx.x == 0 && bottom)
        gpushmem_dev_signal_wait_until(&arrived[1], GPUSHMEM_CMP_GE, step);
    __syncthreads();
    for (int y = first; y <= last; y++) {
        const float *row = before + (size_t)y * b.width;
        const float *above = y == 1 && b.up < 0 ? row : row - b.width;
        const float *below = y == b.rows && b.down < 0 ? row : row + b.width;
        for (int x = threadIdx.x; x < b.width; x += blockDim.x)
            after[(size_t)y * b.width + x] = heat_cell(above, row, below, x, b.width);
    }
    // A neighbour cannot overwrite a halo that is still being read: for its next but one put it
    // needs these rows first. Its next one may be on its way already, and nothing orders two puts,
    // so even and odd steps have signals of their own, as they have rows.
    if (top)
        gpushmem_dev_float_put_signal_block(after + (size_t)(b.rows_of_up + 1) * b.width,
                                            after + b.width, b.width, &arrives[1], step + 1,
                                            GPUSHMEM_SIGNAL_SET, b.up);
    if (bottom)
        gpushmem_dev_float_put_signal_block(after, after + (size_t)b.rows * b.width, b.width,
                                            &arrives[0], step + 1, GPUSHMEM_SIGNAL_SET, b.down);
}

static int diffuse(const struct heat_band *b, uint64_t steps)
{
    // kernels of a stream run one after the other; the host runs ahead of them a little
    const uint64_t queued = 16;
    int blocks = b->rows < BLOCKS ? b->rows : BLOCKS, status = 0;
    for (uint64_t step = 0; step < steps && !status; step++) {
        status = GPUSHMEM_LAUNCH(heat_step, blocks, THREADS, NULL, *b, step);
        if (!status && ((step + 1) % queued == 0 || step + 1 == steps)) {
            status = gpushmem_launch_wait(NULL);
            if (gpushmem_my_pe() == 0)
                heat_progress(step + 1, steps);
        }
    }
    return status ? status : gpushmem_barrier_all();
}

// On PE 0: 0 if all is well, 1 if not, negative if gpushmem failed.
static int finish(const struct heat_band *b, const struct heat_options *o, struct picture *p)
{
    float *all = (float *)malloc((size_t)p->width * p->height * sizeof *all);
    int status = all ? heat_band_collect(b, o->steps, p->height, all) : GPUSHMEM_ERR_NO_MEMORY;
    if (!status && o->check)
        status = !heat_check(all, p, o->steps);
    if (status >= 0 && o->out) {
        heat_to_picture(all, p);
        status |= !picture_write(p, o->out);
    }
    free(all);
    return status;
}

static int run(const struct heat_options *o, struct picture *p)
{
    struct heat_band band;
    if (p->height < gpushmem_n_pes()) {
        fprintf(stderr, "heat: %d rows cannot be split over %d PEs\n", p->height, gpushmem_n_pes());
        return 1;
    }
    int status = heat_band_create(&band, p);
    if (!status)
        status = diffuse(&band, o->steps);
    if (!status && gpushmem_my_pe() == 0)
        status = finish(&band, o, p);
    return status < 0 ? status : heat_band_free(&band) ? -1 : status;
}

int main(int argc, char **argv)
{
    struct heat_options options;
    struct picture picture;
    if (!heat_options_parse(&options, argc, argv))
        return 2;
    if (!picture_read(&picture, options.image))
        return 1;
    int status = gpushmem_init();
    if (!status)
        status = run(&options, &picture);
    if (status >= 0 && gpushmem_finalize())
        status = -1;
    if (status < 0)
        fprintf(stderr, "heat: %s\n", gpushmem_last_error());
    picture_free(&picture);
    return status != 0;
}
