// SPDX-License-Identifier: BSD-3-Clause
// Atomics and signals: the bodies. One agent per word: this processor only where it may be
// everybody's, else the proxy and its transport.
#ifndef GPUSHMEM_DEVICE_AMO_CUH
#define GPUSHMEM_DEVICE_AMO_CUH

#include "gpushmem/device/rma.cuh"

// ---- Atomics ----

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
    if (!away && gpsh_dev_posts_to(via, pe)) {
        const struct gpsh_dev_taken got = gpsh_dev_nic_try(via, pe, [=, &via](bool prepared) {
            return gpsh_dev_nic_amo(*via.self, via.nic, amo, target, width, operand, compare, pe,
                                    fetch, prepared);
        });
        if (got.how == GPSH_NIC_TAKEN)
            return got.value;
        const uint64_t before =
            gpsh_dev_ring_amo(via, amo, target, width, operand, compare, pe, fetch);
        if (!fetch)
            gpsh_dev_nic_after_ring(*via.self);
        return before;
    }
    if (!away)
        return gpsh_dev_ring_amo(via, amo, target, width, operand, compare, pe, fetch);
    char *direct = gpsh_dev_at(away, target);
    gpsh_dev_count(dev, pe, width);
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

// ---- Signals ----

// Data and its signal by the NIC's queue, or through a ring.
GPSH_DEV void gpsh_dev_put_signal_away(const struct gpushmem_dev &via, void *to, const void *from,
                                       size_t bytes, uint64_t *signal, uint64_t value, int op,
                                       int pe, bool blocking)
{
    const auto became = gpsh_dev_nic_try(via, pe, [=, &via](bool prepared) {
        return gpsh_dev_nic_put_signal(*via.self, via.nic, to, from, bytes, signal, value, op, pe,
                                       blocking, prepared);
    });
    if (became != GPSH_NIC_TAKEN)
        gpsh_dev_ring_put_signal(*via.self, to, from, bytes, signal, value, op, pe, blocking);
}

// The signal's word, which was checked.
GPSH_DEV void gpsh_dev_signal_word(const struct gpushmem_dev &dev, const struct gpushmem_dev &via,
                                   uint64_t *signal, uint64_t value, int op, int pe)
{
    uint64_t away = gpsh_dev_away_amo(dev, pe);
    if (!away)
        gpsh_dev_put_signal_away(via, signal, nullptr, 0, signal, value, op, pe, false);
    else if (op == GPUSHMEM_SIGNAL_ADD)
        gpsh_dev_reduce64(gpsh_dev_at(away, signal), GPUSHMEM_AMO_ADD, value);
    else
        gpsh_dev_store64_sys(gpsh_dev_at(away, signal), value);
}

// The signal word alone, by one thread. Nothing is implied about what came before it
// (docs/memory-model.md, "signal alone"): a program that needs an order calls fence, which costs a
// trip to the peer, and so pays for it only where it is needed.
GPSH_DEV void gpsh_dev_signal(const struct gpushmem_dev &dev, const struct gpushmem_dev &via,
                              uint64_t *signal, uint64_t value, int op, int pe)
{
    if (!gpsh_dev_check_signal_op(dev, op) || !gpsh_dev_check_word(dev, signal, sizeof *signal, pe))
        return;
    if (gpsh_dev_away_amo(dev, pe))
        gpsh_dev_count(dev, pe, 0);
    gpsh_dev_signal_word(dev, via, signal, value, op, pe);
}

// The word, checked, ordered after everything that this thread stored and, if it comes after a
// barrier of its scope, after what the scope's other threads stored (PTX memory model: causality
// order is transitive). A releasing store is cheaper than a fence, which would also empty the
// first-level cache.
GPSH_DEV void gpsh_dev_signal_released(const struct gpushmem_dev &dev,
                                       const struct gpushmem_dev &via, uint64_t *signal,
                                       uint64_t value, int op, int pe)
{
    uint64_t away = op == GPUSHMEM_SIGNAL_SET ? gpsh_dev_away_amo(dev, pe) : 0;
    if (away) {
        gpsh_dev_store64_release_sys(gpsh_dev_at(away, signal), value);
        return;
    }
    gpsh_dev_fence_sys();
    gpsh_dev_signal_word(dev, via, signal, value, op, pe);
}

template <class Scope>
GPSH_DEV void gpsh_dev_put_signal(const struct gpushmem_dev &dev, const struct gpushmem_dev &via,
                                  void *to, const void *from, size_t bytes, uint64_t *signal,
                                  uint64_t value, int op, int pe, bool blocking)
{
    if (!bytes)
        to = signal; // no data: any address is legal then
    if (!gpsh_dev_check_signal_op(dev, op) || !gpsh_dev_check(dev, to, bytes, pe) ||
        (bytes && !gpsh_dev_check_local(dev, from, pe, true)) ||
        !gpsh_dev_check_word(dev, signal, sizeof *signal, pe))
        return Scope::sync();
    Scope::sync();
    if (uint64_t away = gpsh_dev_away(dev, pe)) {
        gpsh_dev_copy<Scope, gpsh_way_put>(gpsh_dev_at(away, to), (const char *)from, bytes);
        if (Scope::rank() == 0)
            gpsh_dev_count(dev, pe, bytes);
        Scope::sync();
        if (Scope::rank() == 0)
            gpsh_dev_signal_released(dev, via, signal, value, op, pe);
    } else if (Scope::rank() == 0) {
        gpsh_dev_put_signal_away(via, to, from, bytes, signal, value, op, pe, blocking);
    }
    Scope::sync();
}

#endif
