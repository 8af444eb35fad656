// SPDX-License-Identifier: BSD-3-Clause
// What an atomic makes of a word: of 8 bytes or 4, whole or by masks.
#define _DEFAULT_SOURCE // htobe32, nanosleep
#include <endian.h>
#include <time.h>

#include "softhca.h"

// Fields end at the bits of `boundaries`: there bits are added without a carry that leaves them.
static uint64_t sum(uint64_t a, uint64_t b, uint64_t boundaries)
{
    return ((a & ~boundaries) + (b & ~boundaries)) ^ ((a ^ b) & boundaries);
}

uint64_t shca_changed(const struct shca_change *change, uint64_t old)
{
    if (change->add)
        return sum(old, change->operand, change->operand_mask);
    uint64_t width_mask = change->width == 4 ? UINT32_MAX : UINT64_MAX;
    if ((old ^ change->compare) & change->compare_mask & width_mask)
        return old;
    return (old & ~change->operand_mask) | (change->operand & change->operand_mask);
}

static void leave_gap(void)
{
    if (shca_settings.atomic_gap_us)
        nanosleep(&(struct timespec){shca_settings.atomic_gap_us / 1000000,
                                     shca_settings.atomic_gap_us % 1000000 * 1000},
                  NULL);
}

// With ATOMIC_CAP=hca atomic to other NIC atomics only, by the device's lock: the processor's, and
// all writes, may come in between, as on real hardware.
#define CHANGE(type, change, word)                                                                 \
    do {                                                                                           \
        type old = __atomic_load_n((type *)(word), __ATOMIC_ACQUIRE);                              \
        if (shca_settings.atomic_cap == IBV_ATOMIC_HCA) {                                          \
            leave_gap();                                                                           \
            __atomic_store_n((type *)(word), (type)shca_changed(change, old), __ATOMIC_RELEASE);   \
            return old;                                                                            \
        }                                                                                          \
        while (!__atomic_compare_exchange_n((type *)(word), &old, (type)shca_changed(change, old), \
                                            false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))            \
            ;                                                                                      \
        return old;                                                                                \
    } while (0)

uint64_t shca_change_word(const struct shca_change *change, void *word)
{
    if (change->width == 4)
        CHANGE(uint32_t, change, word);
    CHANGE(uint64_t, change, word);
}

// A NIC that answers 8 bytes in the order of its host answers 4 in that of the network.
void shca_change_answer(const struct shca_change *change, uint64_t old, char bytes[8])
{
    uint32_t narrow = htobe32((uint32_t)old);
    if (change->width == 4)
        memcpy(bytes, &narrow, sizeof narrow);
    else
        memcpy(bytes, &old, sizeof old);
}
