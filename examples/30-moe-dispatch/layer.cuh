// SPDX-License-Identifier: BSD-3-Clause
// The kernels of one step, in their order. Each token travels once per chosen expert, straight from
// the layer's input to the expert's PE and from the expert's output back. No counts are exchanged
// beforehand: every pair of PEs has its own part of the inbox, and the signal behind the data
// carries the count. Grids of n_pes * slices blocks: block (PE, slice).
#ifndef MOE_LAYER_CUH
#define MOE_LAYER_CUH

#include <gpushmem/device.cuh>
#include <gpushmem/gpushmem.h>

#include "moe.h"

// Makes the tokens, as the layer before would, and lists each for the PEs of its experts.
__global__ void route(struct moe m, uint64_t step)
{
    int me = gpushmem_dev_my_pe(), n = gpushmem_dev_n_pes();
    for (uint32_t token = blockIdx.x; token < m.tokens; token += gridDim.x) {
        for (uint32_t i = threadIdx.x; i < m.width; i += blockDim.x)
            m.x[(size_t)token * m.width + i] = moe_value(step, me, token, i);
        for (uint32_t k = threadIdx.x; k < TOP; k += blockDim.x) {
            uint32_t expert = moe_expert_of(&m, step, me, token, k, n), pe = expert / m.experts;
            uint32_t slot = atomicAdd(&m.count[pe], 1u);
            m.chosen[(size_t)pe * m.rows + slot] = {token * TOP + k, expert};
        }
    }
}

// Block (pe, slice) sends its slice of what goes to pe. All answers to the step before are back
// (combine waited for them), and each was sent after its token had arrived and been used. So
// nothing at pe is overwritten too early, and the router could write x and the lists again, the
// sources of puts that do not wait (_nbi), without a quiet.
__global__ void dispatch(struct moe m, uint64_t step)
{
    int pe = blockIdx.x / m.slices, slice = blockIdx.x % m.slices;
    uint64_t count = m.count[pe], first = count * slice / m.slices,
             end = count * (slice + 1) / m.slices;
    size_t from_here = (size_t)gpushmem_dev_my_pe() * m.rows; // my part of every PE's inbox
    const struct moe_choice *chosen = m.chosen + (size_t)pe * m.rows;
    gpushmem_dev_putmem_nbi_block(m.received + from_here + first, chosen + first,
                                  (end - first) * sizeof *chosen, pe);
    for (uint64_t slot = first; slot < end; slot++) {
        const float *x = m.x + (size_t)(chosen[slot].row / TOP) * m.width;
        gpushmem_dev_float_put_nbi_block(m.inbox + (from_here + slot) * m.width, x, m.width, pe);
    }
    if (threadIdx.x == 0) {
        // the block's puts arrive before the signal, which says how many there are in all slices
        gpushmem_dev_fence();
        gpushmem_dev_signal_op(&m.arrived[gpushmem_dev_my_pe() * m.slices + slice],
                               step << 32 | count, GPUSHMEM_SIGNAL_SET, pe);
    }
}

// Block (pe, slice) works on the slice that came from pe, as soon as that one is here. Its results
// may be written again in the next step: pe sends that after all answers have arrived.
__global__ void experts(struct moe m, uint64_t step)
{
    int pe = blockIdx.x / m.slices, slice = blockIdx.x % m.slices;
    GPUSHMEM_SHARED(uint64_t, signal, 1);
    if (threadIdx.x == 0)
        *signal =
            gpushmem_dev_signal_wait_until(&m.arrived[blockIdx.x], GPUSHMEM_CMP_GE, step << 32);
    __syncthreads(); // what the signal announced is visible to the whole block
    uint64_t count = (uint32_t)*signal, first = count * slice / m.slices,
             end = count * (slice + 1) / m.slices;
    for (uint64_t slot = first; slot < end; slot++) {
        size_t row = (size_t)pe * m.rows + slot;
        const float *x = m.inbox + row * m.width;
        float *result = m.results + row * m.width;
        struct moe_choice choice = m.received[row];
        for (uint32_t i = threadIdx.x; i < m.width; i += blockDim.x)
            result[i] = moe_expert(choice.expert, x, i, m.width);
        gpushmem_dev_float_put_nbi_block(m.answers + (size_t)choice.row * m.width, result, m.width,
                                         pe);
    }
    if (threadIdx.x == 0) {
        // answers before the signal. Also an empty slice is answered: then pe may send the next one
        gpushmem_dev_fence();
        gpushmem_dev_signal_op(&m.answered[gpushmem_dev_my_pe() * m.slices + slice], step,
                               GPUSHMEM_SIGNAL_SET, pe);
    }
}

// The weighted sum of the answers, when all of them are here. They say so in a word each: a counter
// would take turns, and where the host carries signals out, an addition in GPU memory is a kernel,
// for which these blocks, waiting, may leave no room.
__global__ void combine(struct moe m, uint64_t step)
{
    int n = gpushmem_dev_n_pes();
    for (uint32_t i = threadIdx.x; i < n * m.slices; i += blockDim.x)
        gpushmem_dev_signal_wait_until(&m.answered[i], GPUSHMEM_CMP_GE, step);
    __syncthreads();
    for (uint32_t token = blockIdx.x; token < m.tokens; token += gridDim.x)
        for (uint32_t i = threadIdx.x; i < m.width; i += blockDim.x)
            for (uint32_t k = 0; k < TOP; k++)
                m.out[(size_t)token * m.width + i] +=
                    moe_weight(token, k) * m.answers[((size_t)token * TOP + k) * m.width + i];
    for (int pe = threadIdx.x; blockIdx.x == 0 && pe < n; pe += blockDim.x)
        m.count[pe] = 0; // for the next step's router
}

#endif
