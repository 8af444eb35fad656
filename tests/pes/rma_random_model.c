// SPDX-License-Identifier: BSD-3-Clause
// What symmetric memory must hold, by PE, in memory that the PEs share behind the library's back;
// and what this PE has under way in it, by byte, which tells what it may begin.
#define _GNU_SOURCE // memfd_create
#include <fcntl.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <unistd.h>

#include "rma_random.h"

enum {
    ZONES = 3,
    SMALL = 40000,
    LARGE = 1500000,
    POOLS = 3,
    POOL_BYTES = 4 << 20,
    MOST_PENDING = 4096,
    LARGEST_ALIGN = 16
};

// A mark is 0, or (context + 1) << 24, the kind of operation, and how many fences came before it.
enum { MARK_CONTEXT = 24, MARK_READING = 1 << 23, MARK_CHANGING = 1 << 22, MARK_FENCES = 0x3fffff };

static struct zone {
    size_t bytes;
    unsigned char *here, *model; // model: of all PEs, one after another
    uint32_t *marks[MOST_PES];
} zones[ZONES] = {{.bytes = SMALL}, {.bytes = SMALL}, {.bytes = LARGE}};

static unsigned char statics[SMALL] __attribute__((aligned(64)));
static uint32_t fences[CONTEXTS][MOST_PES];
static struct place last_written[CONTEXTS];
static uint64_t *wide; // counters
static uint32_t *narrow;
static struct counted {
    _Atomic uint64_t wide;
    _Atomic uint32_t narrow;
} * counted; // by PE

static struct pool {
    unsigned char *base;
    size_t used;
} pools[POOLS];
static unsigned char static_pool[POOL_BYTES];

static struct pending {
    int context, pe;
    const unsigned char *to;
    unsigned char *wanted;
    size_t bytes;
} pending[MOST_PENDING];
static int n_pending;

// ---- Shared memory ----

// One file of PE 0, which the others find among its descriptors.
static unsigned char *share(size_t bytes)
{
    long *where = gpushmem_calloc(2, sizeof *where);
    char path[64];
    CHECK(where);
    if (me == 0) {
        where[0] = memfd_create("model", MFD_CLOEXEC);
        where[1] = getpid();
        CHECK(where[0] >= 0 && ftruncate((int)where[0], (off_t)bytes) == 0);
    }
    CHECK_OK(gpushmem_broadcastmem(GPUSHMEM_TEAM_WORLD, where, where, 2 * sizeof *where, 0));
    snprintf(path, sizeof path, "/proc/%ld/fd/%ld", where[1], where[0]);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    CHECK_THAT(fd >= 0, "%s", path);
    unsigned char *all = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    CHECK(all != MAP_FAILED);
    close(fd);
    gpushmem_free(where); // of all PEs: so all have it open
    return all;
}

static void open_zones(void)
{
    size_t total = (size_t)n_pes * sizeof *counted;
    zones[0].here = gpushmem_malloc(SMALL);
    zones[1].here = statics;
    zones[2].here = gpushmem_align(4096, LARGE);
    for (int z = 0; z < ZONES; z++)
        total += zones[z].bytes * (size_t)n_pes;
    unsigned char *at = share(total);
    counted = (struct counted *)(void *)at;
    at += (size_t)n_pes * sizeof *counted;
    for (struct zone *z = zones; z < zones + ZONES; z++) {
        CHECK(z->here);
        memset(z->here, 0, z->bytes);
        z->model = at;
        at += z->bytes * (size_t)n_pes;
        for (int pe = 0; pe < n_pes; pe++)
            CHECK(z->marks[pe] = calloc(z->bytes, sizeof *z->marks[pe]));
    }
}

void model_open(void)
{
    pools[0].base = gpushmem_malloc(POOL_BYTES);
    pools[1].base = malloc(POOL_BYTES);
    pools[2].base = static_pool;
    wide = gpushmem_calloc((size_t)n_pes, sizeof *wide);
    narrow = gpushmem_calloc((size_t)n_pes, sizeof *narrow);
    CHECK(pools[0].base && pools[1].base && wide && narrow);
    open_zones();
    CHECK_OK(gpushmem_barrier_all());
}

void model_close(void)
{
    gpushmem_free(zones[2].here);
    gpushmem_free(zones[0].here);
    gpushmem_free(narrow);
    gpushmem_free(wide);
    gpushmem_free(pools[0].base);
}

// ---- Places ----

// Where a PE's slice of a zone begins: at no round number, so that neighbours share words and
// lines.
static size_t slice_begin(int zone, int pe)
{
    size_t even = zones[zone].bytes / (size_t)n_pes * (size_t)pe;
    if (pe == n_pes)
        return zones[zone].bytes;
    return pe ? even + (size_t)(pe * 37 + zone * 11) % 61 : 0;
}

// Few elements mostly; a few hundred, some thousands, and in the large zone up to 400000.
static size_t draw_count(int zone)
{
    switch (below(5)) {
    case 0: return 1 + below(3);
    case 1: return 1 + below(16);
    case 2: return 1 + below(600);
    case 3: return 1 + below(one_in(2) ? 9000 : 40);
    default: return 1 + below(zone == 2 && one_in(3) ? 400000 : 64);
    }
}

bool draw_place(struct place *place, int context, size_t unit, size_t most)
{
    const struct place *last = &last_written[context];
    bool again = last->bytes && one_in(2);
    int zone = again ? last->zone : one_in(8) ? 2 : (int)below(2);
    size_t begin = again ? last->at : slice_begin(zone, me);
    begin = (begin + unit - 1) / unit * unit;
    size_t end = slice_begin(zone, me + 1), room = begin < end ? (end - begin) / unit : 0;
    size_t n = draw_count(zone);
    if (n > most / unit)
        n = most / unit;
    if (n > room)
        n = room;
    place->zone = zone;
    place->pe = again ? last->pe : (int)below((size_t)n_pes);
    place->at = begin + (again ? 0 : below(room - n + 1) * unit);
    place->bytes = n * unit;
    return n > 0;
}

void *symmetric(const struct place *place)
{
    return zones[place->zone].here + place->at;
}

unsigned char *modelled(const struct place *p)
{
    const struct zone *zone = &zones[p->zone];
    return zone->model + (size_t)p->pe * zone->bytes + p->at;
}

// ---- What is under way ----

static uint32_t *marks_of(const struct place *place)
{
    return zones[place->zone].marks[place->pe] + place->at;
}

bool may_write(const struct place *place, int context)
{
    const uint32_t *marks = marks_of(place), now = fences[context][place->pe];
    for (size_t i = 0; i < place->bytes; i++)
        if (marks[i] && ((marks[i] & MARK_READING) || (marks[i] & MARK_FENCES) >= now ||
                         marks[i] >> MARK_CONTEXT != (uint32_t)context + 1))
            return false;
    return true;
}

bool may_read(const struct place *place)
{
    const uint32_t *marks = marks_of(place);
    for (size_t i = 0; i < place->bytes; i++)
        if (marks[i] && (marks[i] & (MARK_READING | MARK_CHANGING)) != MARK_READING)
            return false;
    return true;
}

bool is_quiet(const struct place *place)
{
    const uint32_t *marks = marks_of(place);
    for (size_t i = 0; i < place->bytes; i++)
        if (marks[i])
            return false;
    return true;
}

void begin(const struct place *place, int context, enum under_way what)
{
    static const uint32_t kinds[] = {0, MARK_READING, MARK_READING | MARK_CHANGING};
    uint32_t *marks = marks_of(place);
    uint32_t mark = (uint32_t)(context + 1) << MARK_CONTEXT | kinds[what];
    for (size_t i = 0; i < place->bytes; i++)
        marks[i] = mark | fences[context][place->pe];
    if (what == WRITING)
        last_written[context] = *place;
}

void fenced(int context, int pe)
{
    fences[context][pe]++;
}

static void clear_marks(int context, int pe)
{
    for (int z = 0; z < ZONES; z++) {
        uint32_t *marks = zones[z].marks[pe];
        size_t end = slice_begin(z, me + 1);
        for (size_t i = slice_begin(z, me); i < end; i++)
            if (marks[i] >> MARK_CONTEXT == (uint32_t)context + 1)
                marks[i] = 0;
    }
}

void quieted(int context, int pe)
{
    int kept = 0;
    clear_marks(context, pe);
    for (int i = 0; i < n_pending; i++) {
        struct pending *p = &pending[i];
        if (p->context != context || p->pe != pe) {
            pending[kept++] = *p;
            continue;
        }
        AGREE(memcmp(p->to, p->wanted, p->bytes) == 0,
              "%zu bytes fetched from PE %d on context %d differ after its quiet", p->bytes, pe,
              context);
        free(p->wanted);
    }
    n_pending = kept;
}

void expect_later(int context, int pe, const void *to, const void *wanted, size_t bytes)
{
    unsigned char *copy = malloc(bytes);
    CHECK(copy && n_pending < MOST_PENDING);
    memcpy(copy, wanted, bytes);
    pending[n_pending++] = (struct pending){context, pe, to, copy, bytes};
}

unsigned char *local(size_t bytes, size_t align)
{
    struct pool *pool = &pools[below(POOLS)];
    size_t at = (pool->used + align - 1) / align * align + (align == 1 ? below(9) : 0);
    if (at + bytes > POOL_BYTES || n_pending == MOST_PENDING) {
        quiet_all();
        for (int i = 0; i < POOLS; i++)
            pools[i].used = 0;
        at = 0;
    }
    CHECK(bytes <= POOL_BYTES && align <= LARGEST_ALIGN);
    pool->used = at + bytes;
    return pool->base + at;
}

// ---- Counters, and the comparison ----

void count(int context, int pe)
{
    size_t at = below((size_t)n_pes);
    uint32_t value = (uint32_t)draw();
    about_to("add %" PRIu32 " to counters %zu of PE %d, context %d", value, at, pe, context);
    int rank = rank_in(context, pe);
    CHECK_OK(gpushmem_ctx_uint64_atomic_add(contexts[context], &wide[at], value, rank));
    CHECK_OK(gpushmem_ctx_uint32_atomic_add(contexts[context], &narrow[at], value, rank));
    atomic_fetch_add(&counted[pe].wide, value);
    atomic_fetch_add(&counted[pe].narrow, value);
}

static void compare_zone(int z)
{
    struct place first = {z, me, 0, 0};
    const unsigned char *here = zones[z].here, *want = modelled(&first);
    size_t from = 0, to;
    int writer = 0;
    if (memcmp(here, want, zones[z].bytes) == 0)
        return;
    while (here[from] == want[from])
        from++;
    for (to = from; to < zones[z].bytes && here[to] != want[to];)
        to++;
    while (writer + 1 < n_pes && slice_begin(z, writer + 1) <= from)
        writer++;
    disagree("zone %d, bytes %zu to %zu, which PE %d writes: %02x, not %02x", z, from, to, writer,
             here[from], want[from]);
}

void compare_with_model(void)
{
    uint64_t sum = 0;
    uint32_t narrow_sum = 0;
    for (int z = 0; z < ZONES; z++)
        compare_zone(z);
    for (int i = 0; i < n_pes; i++) {
        sum += wide[i];
        narrow_sum += narrow[i];
    }
    AGREE(sum == counted[me].wide, "counters sum up to %" PRIu64 ", not %" PRIu64, sum,
          counted[me].wide);
    AGREE(narrow_sum == counted[me].narrow, "narrow counters sum up to %" PRIu32 ", not %" PRIu32,
          narrow_sum, counted[me].narrow);
}
