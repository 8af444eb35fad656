// SPDX-License-Identifier: BSD-3-Clause
#include "comm/team_place.h"

#include "job/job.h"
#include "memory/heap.h"
#include "memory/regions.h"

static struct {
    // Not where teams are, or were that broke: messages may still come there.
    struct gpsh_team_free free;
    struct gpsh_team_free clean; // units that no team has had
    bool checked;                // calls in kernels are compared
} places;

struct gpsh_team_free gpsh_team_free(void)
{
    return places.free;
}

void gpsh_team_free_join(struct gpsh_team_free *all, const struct gpsh_team_free *one)
{
    for (size_t i = 0; i < sizeof all->slots / sizeof *all->slots; i++)
        all->slots[i] &= one->slots[i];
    for (size_t i = 0; i < sizeof all->units / sizeof *all->units; i++)
        all->units[i] &= one->units[i];
}

static bool is_set(const uint64_t *bits, int i)
{
    return bits[i / 64] >> i % 64 & 1;
}

static void set(uint64_t *bits, int first, int n, bool value)
{
    for (int i = first; i < first + n; i++)
        bits[i / 64] = (bits[i / 64] & ~((uint64_t)1 << i % 64)) | (uint64_t)value << i % 64;
}

void gpsh_team_places_init(bool checked)
{
    places.checked = checked;
    places.free = (struct gpsh_team_free){{0}, {0}};
    set(places.free.slots, GPUSHMEM_TEAM_PREDEFINED,
        (int)gpsh_settings()->teams - GPUSHMEM_TEAM_PREDEFINED, true);
    set(places.free.units, 0, GPSH_SCRATCH_UNITS, true);
    places.clean = places.free;
}

// The first of `length` that follow each other, or -1; and how many are set.
static int find_run(const uint64_t *bits, int n, int length, int *total)
{
    int found = -1, run = 0;
    *total = 0;
    for (int i = 0; i < n; i++) {
        run = is_set(bits, i) ? run + 1 : 0;
        *total += is_set(bits, i);
        if (run == length && found < 0)
            found = i + 1 - length;
    }
    return found;
}

static int units_of(uint64_t bytes)
{
    uint64_t unit = gpsh_scratch_unit(gpsh_settings()), units = (bytes + unit - 1) / unit;
    return units < GPSH_SCRATCH_UNITS + 1 ? (int)units : GPSH_SCRATCH_UNITS + 1;
}

// An eighth is kept for teams that use no streams.
static void place_scratch(const struct gpsh_team_free *free, int room,
                          struct gpsh_team_place *place)
{
    uint64_t kernels = gpushmem_coll_kernel_bytes(room, places.checked);
    uint64_t streams = gpushmem_coll_stream_bytes(room, places.checked);
    int left, units = units_of(kernels + streams);
    int first = find_run(free->units, GPSH_SCRATCH_UNITS, units, &left);
    place->has = GPSH_TEAM_KERNELS | GPSH_TEAM_STREAMS;
    if (first < 0 || left - units < GPSH_SCRATCH_UNITS / 8) {
        units = units_of(kernels);
        first = find_run(free->units, GPSH_SCRATCH_UNITS, units, &left);
        place->has = first < 0 ? 0 : GPSH_TEAM_KERNELS;
    }
    place->first = first;
    place->units = first < 0 ? 0 : units;
}

struct gpsh_team_place gpsh_team_place(const struct gpsh_team_free *free, int n)
{
    struct gpsh_team_place place = {0};
    int left;
    place.slots = gpsh_slots_of(gpsh_job()->n_pes, n);
    place.slot = find_run(free->slots, GPUSHMEM_TEAM_SLOTS, place.slots, &left);
    place_scratch(free, n, &place);
    return place;
}

struct gpsh_team_place gpsh_team_place_of(gpushmem_team_t predefined, int room)
{
    struct gpsh_team_place place = {.slot = predefined, .slots = 1};
    place_scratch(&places.free, room, &place);
    return place;
}

bool gpsh_team_is_free(const struct gpsh_team_place *place)
{
    bool all = true;
    for (int i = 0; i < place->slots; i++)
        all = all && is_set(places.free.slots, place->slot + i);
    for (int i = 0; i < place->units; i++)
        all = all && is_set(places.free.units, place->first + i);
    return all;
}

void gpsh_team_place_take(const struct gpsh_team_place *place)
{
    set(places.free.slots, place->slot, place->slots, false);
    set(places.free.units, place->first, place->units, false);
    set(places.clean.units, place->first, place->units, false);
}

void gpsh_team_place_give_back(const struct gpsh_team_place *place)
{
    set(places.free.slots, place->slot, place->slots, true);
    set(places.free.units, place->first, place->units, true);
}

static uint64_t place_at(const struct gpsh_team_place *place)
{
    return GPSH_DEVICE_SYNC_BYTES + (uint64_t)place->first * gpsh_scratch_unit(gpsh_settings());
}

static char *place_memory(const struct gpsh_team_place *place)
{
    return gpsh_heap()->base + gpsh_heap()->user_bytes + place_at(place);
}

struct gpsh_scratch gpsh_team_scratch(const struct gpsh_team_place *place, int room)
{
    struct gpsh_scratch scratch = {.room = room};
    uint64_t kernels = gpushmem_coll_kernel_bytes(room, places.checked);
    if (place->has & GPSH_TEAM_KERNELS)
        scratch.kernels = place_at(place);
    if (place->has & GPSH_TEAM_STREAMS)
        scratch.streams = scratch.kernels + kernels;
    return scratch;
}

int gpsh_team_place_clear(const struct gpsh_team_place *place)
{
    bool clean = true;
    for (int i = 0; i < place->units; i++)
        clean = clean && is_set(places.clean.units, place->first + i);
    return clean ? 0
                 : gpsh_regions_fill(place_memory(place), 0,
                                     (size_t)place->units * gpsh_scratch_unit(gpsh_settings()));
}

bool gpsh_team_gave_up(const struct gpsh_team_place *place, gpushmem_team_t team)
{
    uint64_t word = 0;
    if (place->units && gpsh_regions_copy(&word, place_memory(place), sizeof word))
        gpsh_clear_error();
    return (uint32_t)word == (uint32_t)gpushmem_team_poison(team, 0);
}
