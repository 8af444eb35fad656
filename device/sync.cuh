// SPDX-License-Identifier: BSD-3-Clause
// Waiting on words of this PE's heap, fence, quiet and the device barrier: the bodies.
#ifndef GPUSHMEM_DEVICE_SYNC_CUH
#define GPUSHMEM_DEVICE_SYNC_CUH

#include "gpushmem/device/amo.cuh"

// ---- Words ----

template <typename T> GPSH_DEV T gpsh_dev_load_acquire(const T *word)
{
    static_assert(sizeof(T) == 2 || sizeof(T) == 4 || sizeof(T) == 8, "a word");
    if (sizeof(T) == 8)
        return gpsh_dev_from_bits<T>(gpsh_dev_load64_acquire_sys(word));
    if (sizeof(T) == 4)
        return gpsh_dev_from_bits<T>(gpsh_dev_load32_acquire_sys(word));
    return gpsh_dev_from_bits<T>(gpsh_dev_load16_acquire_sys(word));
}

template <typename T> GPSH_DEV bool gpsh_dev_compare(T a, int cmp, T b)
{
    switch (cmp) {
    case GPUSHMEM_CMP_EQ: return a == b;
    case GPUSHMEM_CMP_NE: return a != b;
    case GPUSHMEM_CMP_GT: return a > b;
    case GPUSHMEM_CMP_LE: return a <= b;
    case GPUSHMEM_CMP_LT: return a < b;
    default: return a >= b;
    }
}

template <typename T> GPSH_DEV struct gpsh_dev_wanted gpsh_dev_wants(int cmp, T value, T seen)
{
    const bool is_signed = (T)-1 < (T)0;
    return {is_signed ? GPUSHMEM_FAULT_SIGNED : GPUSHMEM_FAULT_UNSIGNED, cmp,
            is_signed ? (uint64_t)(int64_t)value : (uint64_t)value,
            is_signed ? (uint64_t)(int64_t)seen : (uint64_t)seen};
}

// 0, or a negative status (recorded): the wait ended for another reason than its condition. *seen:
// the last value. The word may be one of the library's own.
template <typename T>
GPSH_DEV int gpsh_dev_wait_word(const struct gpushmem_dev &dev, const T *word, int cmp, T value,
                                T *seen)
{
    struct gpsh_dev_wait wait = gpsh_dev_wait_begin(dev);
    int status = 0;
    while (!status) {
        *seen = gpsh_dev_load_acquire(word);
        if (gpsh_dev_compare(*seen, cmp, value))
            return 0;
        status = gpsh_dev_spin(&wait, true);
        if (status || wait.asked)
            gpsh_dev_tell(dev, status ? status : wait.asked, word, sizeof(T),
                          gpsh_dev_wants(cmp, value, *seen));
        wait.asked = 0;
    }
    return status;
}

// The same for a word that the program names. *seen is 0 if it may not be read.
template <typename T>
GPSH_DEV int gpsh_dev_wait_until(const struct gpushmem_dev &dev, const T *word, int cmp, T value,
                                 T *seen)
{
    *seen = 0;
    int status = gpsh_dev_check_cmp(dev, cmp) ? gpsh_dev_check_wait(dev, word, 1, sizeof(T))
                                              : (int)GPUSHMEM_ERR_INVALID;
    return status ? status : gpsh_dev_wait_word(dev, word, cmp, value, seen);
}

// For those that look at the value alone.
template <typename T>
GPSH_DEV T gpsh_dev_wait_value(const struct gpushmem_dev &dev, const T *word, int cmp, T value)
{
    T seen;
    gpsh_dev_wait_until(dev, word, cmp, value, &seen);
    return seen;
}

// By all threads of the scope: one waits, and what it has acquired is visible to the others.
template <class Scope>
GPSH_DEV void gpsh_dev_wait_together(const struct gpushmem_dev &dev, const uint64_t *word, int cmp,
                                     uint64_t value)
{
    Scope::sync();
    if (Scope::rank() == 0)
        gpsh_dev_wait_value<uint64_t>(dev, word, cmp, value);
    Scope::sync();
}

template <typename T>
GPSH_DEV int gpsh_dev_wait_status(const struct gpushmem_dev &dev, const T *word, int cmp, T value)
{
    T seen;
    return gpsh_dev_wait_until(dev, word, cmp, value, &seen);
}

template <typename T>
GPSH_DEV bool gpsh_dev_test(const struct gpushmem_dev &dev, const T *word, int cmp, T value)
{
    return gpsh_dev_check_cmp(dev, cmp) &&
           gpsh_dev_compare(gpsh_dev_load_acquire(word), cmp, value);
}

// Words words[i] for which skip is NULL or skip[i] is 0, against value or, if not NULL, values[i].
template <typename T> struct gpsh_dev_words {
    const T *words;
    size_t n;
    const int *skip;
    int cmp;
    T value;
    const T *values;
};

template <typename T> GPSH_DEV bool gpsh_dev_words_test(const gpsh_dev_words<T> &w, size_t i)
{
    return gpsh_dev_compare(gpsh_dev_load_acquire(&w.words[i]), w.cmp,
                            w.values ? w.values[i] : w.value);
}

// The first word from `start` (cyclically) that satisfies the comparison; SIZE_MAX: none. *any:
// whether one takes part at all.
template <typename T>
GPSH_DEV size_t gpsh_dev_words_find(const gpsh_dev_words<T> &w, size_t start, bool *any)
{
    *any = false;
    for (size_t k = 0, i = start; k < w.n; k++, i = i + 1 < w.n ? i + 1 : 0) {
        if (w.skip && w.skip[i])
            continue;
        *any = true;
        if (gpsh_dev_words_test(w, i))
            return i;
    }
    return SIZE_MAX;
}

template <typename T>
GPSH_DEV bool gpsh_dev_words_test_all(const struct gpushmem_dev &dev, const gpsh_dev_words<T> &w)
{
    if (!gpsh_dev_check_cmp(dev, w.cmp))
        return false;
    for (size_t i = 0; i < w.n; i++)
        if (!(w.skip && w.skip[i]) && !gpsh_dev_words_test(w, i))
            return false;
    return true;
}

// Where a search starts, so that no word is favoured: it moves on with the caller's time and place.
GPSH_DEV size_t gpsh_dev_fair_start(size_t n)
{
    return n ? (size_t)(gpsh_dev_now_ns() >> 5) % n : 0;
}

template <typename T>
GPSH_DEV size_t gpsh_dev_test_any(const struct gpushmem_dev &dev, const gpsh_dev_words<T> &w)
{
    bool any;
    return gpsh_dev_check_cmp(dev, w.cmp) ? gpsh_dev_words_find(w, gpsh_dev_fair_start(w.n), &any)
                                          : SIZE_MAX;
}

template <typename T>
GPSH_DEV size_t gpsh_dev_test_some(const struct gpushmem_dev &dev, const gpsh_dev_words<T> &w,
                                   size_t *indices)
{
    if (!gpsh_dev_check_cmp(dev, w.cmp))
        return 0;
    size_t found = 0;
    for (size_t i = 0; i < w.n; i++)
        if (!(w.skip && w.skip[i]) && gpsh_dev_words_test(w, i))
            indices[found++] = i;
    return found;
}

template <typename T>
GPSH_DEV int gpsh_dev_wait_all(const struct gpushmem_dev &dev, const gpsh_dev_words<T> &w)
{
    int status = 0; // a wait that failed is the last: the next would take as long again
    for (size_t i = 0; i < w.n && !status; i++)
        if (!(w.skip && w.skip[i]))
            status =
                gpsh_dev_wait_status(dev, &w.words[i], w.cmp, w.values ? w.values[i] : w.value);
    return status;
}

// *index: SIZE_MAX if there is none.
template <typename T>
GPSH_DEV int gpsh_dev_wait_any_status(const struct gpushmem_dev &dev, const gpsh_dev_words<T> &w,
                                      size_t *index)
{
    struct gpsh_dev_wait wait = gpsh_dev_wait_begin(dev);
    size_t start = gpsh_dev_fair_start(w.n);
    int status = gpsh_dev_check_cmp(dev, w.cmp) ? gpsh_dev_check_wait(dev, w.words, w.n, sizeof(T))
                                                : (int)GPUSHMEM_ERR_INVALID;
    while (!status) {
        bool any;
        size_t found = gpsh_dev_words_find(w, start, &any);
        if (found != SIZE_MAX || !any) {
            *index = found;
            return 0;
        }
        status = gpsh_dev_spin(&wait, true);
        if (status || wait.asked)
            gpsh_dev_tell(dev, status ? status : wait.asked, w.words, w.n * sizeof(T),
                          {GPUSHMEM_FAULT_NO_WORD, 0, 0, 0});
        wait.asked = 0;
    }
    return status;
}

template <typename T>
GPSH_DEV size_t gpsh_dev_wait_any(const struct gpushmem_dev &dev, const gpsh_dev_words<T> &w)
{
    size_t index = SIZE_MAX;
    gpsh_dev_wait_any_status(dev, w, &index);
    return index;
}

template <typename T>
GPSH_DEV int gpsh_dev_wait_some_status(const struct gpushmem_dev &dev, const gpsh_dev_words<T> &w,
                                       size_t *indices, size_t *count)
{
    // still so after a look at all if the word that ended the wait has changed again
    size_t found = 0, one = 0;
    int status = 0;
    while (!status && !found && one != SIZE_MAX) {
        status = gpsh_dev_wait_any_status(dev, w, &one);
        if (!status && one != SIZE_MAX)
            found = gpsh_dev_test_some(dev, w, indices);
    }
    if (!status)
        *count = found;
    return status;
}

template <typename T>
GPSH_DEV size_t gpsh_dev_wait_some(const struct gpushmem_dev &dev, const gpsh_dev_words<T> &w,
                                   size_t *indices)
{
    size_t count = 0;
    gpsh_dev_wait_some_status(dev, w, indices, &count);
    return count;
}

// ---- Order and completion ----

// Where atomics on a mapped PE are not ours they go through a ring, the stores to it do not: only
// completion orders the two. False: that failed, which is recorded.
GPSH_DEV_CALL bool gpsh_dev_await_mixed(const struct gpushmem_dev &dev, uint32_t first, uint32_t n)
{
    GPSH_DEV_BOUNDS();
    uint64_t any = 0;
    for (uint32_t number = first; number < first + n; number++) {
        const struct gpushmem_ring ring = gpsh_dev_ring_at(dev, number);
        uint64_t mixed = gpsh_dev_load64_relaxed_gpu(ring.mixed),
                 seen = gpsh_dev_load64_relaxed_gpu(ring.completed_seen);
        if (mixed > seen && gpsh_dev_await_completed(*dev.self, number, mixed))
            return false;
        any |= mixed;
    }
    if (any)
        gpsh_dev_fence_acquire_sys();
    return true;
}

// What went through the rings, and by queues of the NIC.
GPSH_DEV void gpsh_dev_fence_rings(const struct gpushmem_dev &dev, const struct gpushmem_dev &via)
{
    if (dev.flags & GPUSHMEM_DEV_ALL_DIRECT)
        return;
    if (dev.flags & GPUSHMEM_DEV_DIRECT_ATOMICS || gpsh_dev_await_mixed(*via.self, 0, via.n_rings))
        gpsh_dev_ring_fence_all(*via.self);
    if (gpsh_dev_posts(via))
        gpsh_dev_add64_relaxed_gpu(&via.nic->fences, 1);
}

// The calling thread's block: its threads share a ring.
GPSH_DEV void gpsh_dev_fence_block(const struct gpushmem_dev &dev)
{
    gpsh_dev_fence_sys();
    if (dev.flags & GPUSHMEM_DEV_ALL_DIRECT)
        return;
    if (gpsh_dev_posts(dev))
        return gpsh_dev_fence_rings(dev, dev); // a block has no queue of its own
    if (dev.flags & GPUSHMEM_DEV_DIRECT_ATOMICS ||
        gpsh_dev_await_mixed(*dev.self, gpsh_dev_ring_number(dev), 1))
        gpsh_dev_ring_fence(*dev.self, -1);
}

// What went by rings and queues of the NIC is complete. Not 0: it gave up, for that reason.
GPSH_DEV int gpsh_dev_quiet_away(const struct gpushmem_dev &via)
{
    const int status = gpsh_dev_rings_quiet(via),
              posted = gpsh_dev_posts(via) ? gpsh_dev_nic_quiet(via.nic, via.n_pes) : 0;
    return status ? status : posted;
}

// All kernels of the PE.
GPSH_DEV void gpsh_dev_fence(const struct gpushmem_dev &dev, const struct gpushmem_dev &via)
{
    gpsh_dev_fence_sys();
    gpsh_dev_fence_rings(dev, via);
}

// One fence, after the waits for the rings: it completes this thread's own stores to mapped peers,
// and after it, data that was fetched into memory is visible. Before the waits, the fence would
// delay the first look until the commands have arrived.
GPSH_DEV void gpsh_dev_quiet(const struct gpushmem_dev &dev, const struct gpushmem_dev &via)
{
    if (!(dev.flags & GPUSHMEM_DEV_ALL_DIRECT))
        gpsh_dev_quiet_away(via);
    gpsh_dev_fence_full_sys();
}

GPSH_DEV void gpsh_dev_pe_quiet(const struct gpushmem_dev &dev, const struct gpushmem_dev &via,
                                int pe)
{
    if ((unsigned)pe >= (unsigned)dev.n_pes) { // no answer would come from a ring
        gpsh_dev_fail(dev, GPUSHMEM_ERR_PE, pe, nullptr, 0);
        return;
    }
    if (!gpsh_dev_away_amo(dev, pe)) {
        if (gpsh_dev_posts(via))
            gpsh_dev_nic_quiet_pe(*via.self, pe);
        gpsh_dev_ring_quiet_pe(*via.self, pe);
    }
    gpsh_dev_fence_full_sys();
}

// ---- Barrier ----

// Every block uses the first ring, and puts a fence before the number: otherwise the number of an
// earlier barrier, which may still be on its way, could overwrite this one, and the PE that waits
// for this one would never see it.
GPSH_DEV_CALL void gpsh_dev_announce_by_ring(const struct gpushmem_dev &dev, uint64_t *word,
                                             uint64_t sequence, int pe)
{
    GPSH_DEV_BOUNDS();
    const struct gpushmem_ring ring = gpsh_dev_ring_at(dev, 0);
    struct gpushmem_command put =
        gpsh_dev_command(GPUSHMEM_CMD_PUT_INLINE, pe, word, nullptr, sizeof sequence);
    uint64_t index;
    put.operand = sequence;
    if (!gpsh_dev_push(dev, ring, gpsh_dev_command(GPUSHMEM_CMD_FENCE, pe, nullptr, nullptr, 0),
                       &index))
        gpsh_dev_push(dev, ring, put, &index);
}

// Dissemination over symmetric words: in round r this PE tells the PE 2^r after it. Sequence
// numbers only grow, so a PE may enter the next barrier at once. Called by one thread, after a
// fence, which makes the relaxed store a release.
GPSH_DEV void gpsh_dev_disseminate(const struct gpushmem_dev &dev, uint64_t sequence)
{
    gpsh_dev_store64_relaxed_gpu(dev.sync_sequence, sequence);
    for (int64_t round = 0, distance = 1; distance < dev.n_pes; round++, distance *= 2) {
        int to = (int)((dev.my_pe + distance) % dev.n_pes);
        uint64_t *word = &dev.sync->arrived[round].sequence;
        if (uint64_t away = gpsh_dev_away(dev, to))
            gpsh_dev_store64_sys(gpsh_dev_at(away, word), sequence);
        else
            gpsh_dev_announce_by_ring(*dev.self, word, sequence, to);
        uint64_t seen;
        if (gpsh_dev_wait_word<uint64_t>(dev, word, GPUSHMEM_CMP_GE, sequence, &seen))
            return;
    }
}

template <class Scope> GPSH_DEV void gpsh_dev_sync_all(const struct gpushmem_dev &dev)
{
    Scope::sync();
    if (Scope::rank() == 0) {
        // arrives while the fence waits
        uint64_t sequence = gpsh_dev_load64_relaxed_gpu(dev.sync_sequence) + 1;
        gpsh_dev_fence_sys(); // for all threads of the scope: they came through its barrier
        gpsh_dev_disseminate(dev, sequence);
    }
    Scope::sync();
}

template <class Scope> GPSH_DEV void gpsh_dev_barrier_all(const struct gpushmem_dev &dev)
{
    Scope::sync();
    if (Scope::rank() == 0) {
        uint64_t sequence = gpsh_dev_load64_relaxed_gpu(dev.sync_sequence) + 1;
        // Release here and acquire in the wait make stores visible to threads that have passed the
        // barrier; only rings need more.
        if (dev.flags & GPUSHMEM_DEV_ALL_DIRECT)
            gpsh_dev_fence_sys();
        else
            gpsh_dev_quiet(dev, dev);
        gpsh_dev_disseminate(dev, sequence);
    }
    Scope::sync();
}

#endif
