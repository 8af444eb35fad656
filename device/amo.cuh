// SPDX-License-Identifier: BSD-3-Clause
// Atomics: the body. One agent per word: this processor only where it may be everybody's, else the
// proxy and its transport.
#ifndef GPUSHMEM_DEVICE_AMO_CUH
#define GPUSHMEM_DEVICE_AMO_CUH

#include "gpushmem/device/rma.cuh"

// gpsh_dev_away for atomics and signals.
GPSH_DEV uint64_t gpsh_dev_away_amo(const struct gpushmem_dev &dev, int pe)
{
    return dev.flags & GPUSHMEM_DEV_DIRECT_ATOMICS ? gpsh_dev_away(dev, pe) : 0;
}

// `width` = 4 or 8; returns the previous value if `fetch` (0 if it failed), and does not wait
// otherwise.
GPSH_DEV uint64_t gpsh_dev_amo(const struct gpushmem_dev &dev, const struct gpushmem_dev &via,
                               enum gpushmem_amo amo, void *target, size_t width, uint64_t operand,
                               uint64_t compare, int pe, bool fetch)
{
    if (!gpsh_dev_check_word(dev, target, width, pe))
        return 0;
    uint64_t away = gpsh_dev_away_amo(dev, pe);
    if (!away)
        return gpsh_dev_ring_amo(via, amo, target, width, operand, compare, pe, fetch);
    char *direct = gpsh_dev_at(away, target);
    if (!fetch) {
        width == 8 ? gpsh_dev_reduce64(direct, amo, operand)
                   : gpsh_dev_reduce32(direct, amo, (uint32_t)operand);
        return 0;
    }
    return width == 8
               ? gpsh_dev_atomic<uint64_t>(direct, amo, operand, compare)
               : gpsh_dev_atomic<uint32_t>(direct, amo, (uint32_t)operand, (uint32_t)compare);
}

template <typename T>
GPSH_DEV T gpsh_dev_amo_typed(const struct gpushmem_dev &dev, const struct gpushmem_dev &via,
                              enum gpushmem_amo amo, T *target, T operand, T compare, int pe,
                              bool fetch)
{
    return gpsh_dev_from_bits<T>(gpsh_dev_amo(dev, via, amo, target, sizeof(T),
                                              gpsh_dev_to_bits(operand), gpsh_dev_to_bits(compare),
                                              pe, fetch));
}

#endif
