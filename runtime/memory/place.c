// SPDX-License-Identifier: BSD-3-Clause
#include "memory/place.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>

#include "core/cpu.h"
#include "memory/heap.h"

// ---- The table ----
//
// Readers take no lock: they look again if the version has changed or was odd. Fields are atomic,
// and acquired before the version is read again.

static struct gpsh_segment segments[GPSH_MAX_SEGMENTS];
static _Atomic unsigned segments_version;
static _Atomic int n_segments;
static pthread_mutex_t writers = PTHREAD_MUTEX_INITIALIZER;

static struct gpsh_segment read_segment(int i)
{
    const struct gpsh_segment *from = &segments[i];
    return (struct gpsh_segment){.base = __atomic_load_n(&from->base, __ATOMIC_ACQUIRE),
                                 .bytes = __atomic_load_n(&from->bytes, __ATOMIC_ACQUIRE),
                                 .offset = __atomic_load_n(&from->offset, __ATOMIC_ACQUIRE),
                                 .name = __atomic_load_n(&from->name, __ATOMIC_ACQUIRE),
                                 .region = __atomic_load_n(&from->region, __ATOMIC_ACQUIRE)};
}

// Pairs with read_segment: the odd version is visible before any of it.
static void write_segment(int i, const struct gpsh_segment *from)
{
    struct gpsh_segment *to = &segments[i];
    __atomic_store_n(&to->base, from->base, __ATOMIC_RELEASE);
    __atomic_store_n(&to->bytes, from->bytes, __ATOMIC_RELEASE);
    __atomic_store_n(&to->offset, from->offset, __ATOMIC_RELEASE);
    __atomic_store_n(&to->name, from->name, __ATOMIC_RELEASE);
    __atomic_store_n(&to->region, from->region, __ATOMIC_RELEASE);
}

typedef bool match_fn(const struct gpsh_segment *segment, const void *base, size_t bytes);

static bool holds(const struct gpsh_segment *segment, const void *base, size_t bytes)
{
    uint64_t offset = (uint64_t)((uintptr_t)base - (uintptr_t)segment->base);
    return offset <= segment->bytes && bytes <= segment->bytes - offset;
}

static bool overlaps(const struct gpsh_segment *segment, const void *base, size_t bytes)
{
    uintptr_t first = (uintptr_t)base, theirs = (uintptr_t)segment->base;
    return first >= theirs ? first - theirs < segment->bytes : theirs - first < bytes;
}

static int look(match_fn *matches, const void *base, size_t bytes, struct gpsh_segment *found)
{
    int n = atomic_load_explicit(&n_segments, memory_order_acquire);
    for (int i = 0; i < n; i++) {
        struct gpsh_segment segment = read_segment(i);
        if (!matches(&segment, base, bytes))
            continue;
        if (found)
            *found = segment;
        return i;
    }
    return -1;
}

static int look_steadily(match_fn *matches, const void *base, size_t bytes,
                         struct gpsh_segment *found)
{
    for (;;) {
        unsigned version = atomic_load_explicit(&segments_version, memory_order_acquire);
        int i = look(matches, base, bytes, found);
        if (GPSH_LIKELY(!(version & 1) &&
                        version == atomic_load_explicit(&segments_version, memory_order_relaxed)))
            return i;
        gpsh_cpu_relax();
    }
}

bool gpsh_segment_find(const void *sym, size_t bytes, struct gpsh_segment *segment)
{
    return look_steadily(holds, sym, bytes, segment) >= 0;
}

bool gpsh_segment_overlaps(const void *base, size_t bytes)
{
    return look_steadily(overlaps, base, bytes, NULL) >= 0;
}

bool gpsh_segment_add(const struct gpsh_segment *segment)
{
    pthread_mutex_lock(&writers);
    int n = atomic_load(&n_segments);
    if (n < GPSH_MAX_SEGMENTS) {
        atomic_fetch_add(&segments_version, 1);
        write_segment(n, segment);
        atomic_store(&n_segments, n + 1);
        atomic_fetch_add(&segments_version, 1);
    }
    pthread_mutex_unlock(&writers);
    return n < GPSH_MAX_SEGMENTS;
}

// The last one takes its place.
void gpsh_segment_remove(const void *base)
{
    pthread_mutex_lock(&writers);
    int i = look(holds, base, 1, NULL), last = atomic_load(&n_segments) - 1;
    if (i >= 0) {
        struct gpsh_segment moved = read_segment(last);
        atomic_fetch_add(&segments_version, 1);
        write_segment(i, &moved);
        atomic_store(&n_segments, last);
        atomic_fetch_add(&segments_version, 1);
    }
    pthread_mutex_unlock(&writers);
}

void gpsh_segments_clear(void)
{
    atomic_store(&n_segments, 0);
}

// ---- Places ----

bool gpsh_place_find(const void *sym, size_t bytes, int pe, struct gpsh_place *place)
{
    uint64_t offset = gpsh_offset(sym);
    uint8_t region = GPSH_HEAP;
    if (!gpsh_in_user_heap(offset, bytes)) {
        struct gpsh_segment segment;
        if (!gpsh_segment_find(sym, bytes, &segment))
            return false;
        region = segment.region;
        offset = segment.offset + (uint64_t)((uintptr_t)sym - (uintptr_t)segment.base);
    }
    // Where the heap goes by a transport, all goes: one path keeps one order.
    char *base = gpsh_direct_base(pe) ? gpsh_heap()->mapped[region][pe] : NULL;
    *place = (struct gpsh_place){
        .offset = offset, .direct = base ? base + offset : NULL, .region = region};
    return true;
}

void gpsh_place_range(char text[GPSH_PLACE_RANGE_BYTES])
{
    int n = snprintf(text, GPSH_PLACE_RANGE_BYTES, "%p to %p", (void *)gpsh_heap()->base,
                     (void *)(gpsh_heap()->base + gpsh_heap()->user_bytes));
    if (gpsh_heap_bytes() > gpsh_heap()->first_bytes)
        snprintf(text + n, GPSH_PLACE_RANGE_BYTES - (size_t)n, ", and %p to %p",
                 (void *)(gpsh_heap()->base + gpsh_heap()->first_bytes),
                 (void *)(gpsh_heap()->base + gpsh_heap_bytes()));
}

void gpsh_place_name(const void *sym, char *text, size_t bytes)
{
    struct gpsh_segment segment;
    if (gpsh_offset(sym) <= gpsh_heap_bytes())
        snprintf(text, bytes, "heap offset %" PRIu64, gpsh_offset(sym));
    else if (gpsh_segment_find(sym, 0, &segment))
        snprintf(text, bytes, "%p in %s", sym, segment.name);
    else
        snprintf(text, bytes, "%p", sym);
}
