// SPDX-License-Identifier: BSD-3-Clause
// Puts, gets, and those with strides, of every width.
#include "rma_random.h"

enum { LARGEST = 1 << 20, LARGEST_STRIDED = 40000, GUARD = 16 };

typedef int move_fn(gpushmem_ctx_t ctx, void *dest, const void *source, size_t n, int pe);
typedef int signal_fn(gpushmem_ctx_t ctx, void *dest, const void *source, size_t n, uint64_t *sig,
                      uint64_t signal, enum gpushmem_signal_op op, int pe);
typedef int strided_fn(gpushmem_ctx_t ctx, void *dest, const void *source, ptrdiff_t dst,
                       ptrdiff_t sst, size_t n, int pe);
typedef int blocked_fn(gpushmem_ctx_t ctx, void *dest, const void *source, ptrdiff_t dst,
                       ptrdiff_t sst, size_t size, size_t n, int pe);

#define MOVES(W)                                                                                   \
    {gpushmem_ctx_put##W, gpushmem_ctx_put##W##_nbi},                                              \
        {gpushmem_ctx_get##W, gpushmem_ctx_get##W##_nbi},                                          \
    {                                                                                              \
        gpushmem_ctx_put##W##_signal, gpushmem_ctx_put##W##_signal_nbi                             \
    }
static const struct width {
    size_t unit;
    move_fn *put[2], *get[2]; // the second: _nbi
    signal_fn *put_signal[2];
} widths[] = {{1, MOVES(mem)}, {1, MOVES(8)},  {2, MOVES(16)},
              {4, MOVES(32)},  {8, MOVES(64)}, {16, MOVES(128)}};

#define STRIDES(BITS)                                                                              \
    {                                                                                              \
        BITS / 8, gpushmem_ctx_iput##BITS, gpushmem_ctx_iget##BITS, gpushmem_ctx_ibput##BITS,      \
            gpushmem_ctx_ibget##BITS                                                               \
    }
static const struct strides {
    size_t unit;
    strided_fn *put, *get;
    blocked_fn *put_blocks, *get_blocks;
} strides[] = {STRIDES(8), STRIDES(16), STRIDES(32), STRIDES(64), STRIDES(128)};

#define ANY_OF(table) (&(table)[below(sizeof(table) / sizeof *(table))])

// ---- Puts ----

struct signal {
    struct place word;
    uint64_t value;
    enum gpushmem_signal_op op;
};

static bool overlap(const struct place *a, const struct place *b)
{
    return a->zone == b->zone && a->at < b->at + b->bytes && b->at < a->at + a->bytes;
}

// A word that may be written, on the PE of `data` and beside it.
static bool draw_signal(struct signal *signal, const struct place *data, int context)
{
    if (!draw_place(&signal->word, context, sizeof(uint64_t), sizeof(uint64_t)))
        return false;
    signal->word.pe = data->pe;
    signal->value = draw();
    signal->op = one_in(2) ? GPUSHMEM_SIGNAL_SET : GPUSHMEM_SIGNAL_ADD;
    return may_write(&signal->word, context) && !overlap(&signal->word, data);
}

static void signalled(const struct signal *signal, int context)
{
    uint64_t value = 0;
    if (signal->op == GPUSHMEM_SIGNAL_ADD)
        memcpy(&value, modelled(&signal->word), sizeof value);
    value += signal->value;
    memcpy(modelled(&signal->word), &value, sizeof value);
    begin(&signal->word, context, WRITING);
}

static void put(const struct width *w, const struct place *to, const struct signal *signal,
                const void *from, int context, bool later)
{
    size_t n = to->bytes / w->unit;
    int rank = rank_in(context, to->pe);
    gpushmem_ctx_t ctx = contexts[context];
    about_to("put%s%s of %zu elements of %zu bytes to zone %d at %zu of PE %d, context %d",
             signal ? "_signal" : "", later ? "_nbi" : "", n, w->unit, to->zone, to->at, to->pe,
             context);
    if (signal)
        CHECK_OK(w->put_signal[later](ctx, symmetric(to), from, n, symmetric(&signal->word),
                                      signal->value, signal->op, rank));
    else
        CHECK_OK(w->put[later](ctx, symmetric(to), from, n, rank));
}

void any_put(int context)
{
    const struct width *w = ANY_OF(widths);
    bool later = one_in(3), signals = one_in(4);
    struct place to;
    struct signal signal;
    if (!draw_place(&to, context, w->unit, LARGEST) || !may_write(&to, context) ||
        (signals && !draw_signal(&signal, &to, context)))
        return;
    unsigned char *from = local(to.bytes, w->unit);
    draw_bytes(from, to.bytes);
    memcpy(modelled(&to), from, to.bytes);
    put(w, &to, signals ? &signal : NULL, from, context, later);
    begin(&to, context, WRITING);
    if (signals)
        signalled(&signal, context);
    if (!later) // it is the caller's again
        draw_bytes(from, to.bytes);
}

// ---- Gets ----

static void check_get(const struct place *from, const unsigned char *to, const char *guard)
{
    AGREE(memcmp(to, modelled(from), from->bytes) == 0, "%zu bytes from PE %d differ", from->bytes,
          from->pe);
    AGREE(memcmp(to + from->bytes, guard, GUARD) == 0, "a get of %zu bytes wrote more",
          from->bytes);
}

void any_get(int context)
{
    const struct width *w = ANY_OF(widths);
    bool later = one_in(3);
    struct place from;
    char guard[GUARD];
    if (!draw_place(&from, context, w->unit, LARGEST) ||
        !(later ? is_quiet(&from) : may_read(&from)))
        return;
    unsigned char *to = local(from.bytes + GUARD, w->unit);
    draw_bytes(to, from.bytes + GUARD);
    memcpy(guard, to + from.bytes, GUARD);
    about_to("get%s of %zu bytes by %zu from zone %d at %zu of PE %d, context %d",
             later ? "_nbi" : "", from.bytes, w->unit, from.zone, from.at, from.pe, context);
    CHECK_OK(w->get[later](contexts[context], to, symmetric(&from), from.bytes / w->unit,
                           rank_in(context, from.pe)));
    if (later) {
        expect_later(context, from.pe, to, modelled(&from), from.bytes);
        begin(&from, context, READING);
    } else {
        check_get(&from, to, guard);
    }
}

// ---- With strides ----

struct layout {
    const struct strides *width;
    struct place all;                  // of which every `there` elements `size` are moved
    size_t size, blocks, there, apart; // apart: in local memory
};

static struct place block_of(const struct layout *l, size_t i)
{
    struct place block = l->all;
    block.at += i * l->there * l->width->unit;
    block.bytes = l->size * l->width->unit;
    return block;
}

static bool draw_layout(struct layout *l, int context)
{
    l->width = ANY_OF(strides);
    l->size = one_in(2) ? 1 : 1 + below(5);
    l->there = l->size + below(4);
    l->apart = l->size + below(4);
    if (!draw_place(&l->all, context, l->width->unit, LARGEST_STRIDED))
        return false;
    size_t n = l->all.bytes / l->width->unit;
    l->blocks = n < l->size ? 0 : (n - l->size) / l->there + 1;
    return l->blocks > 0;
}

static void put_strided(const struct layout *l, const void *from, int context)
{
    int rank = rank_in(context, l->all.pe);
    ptrdiff_t there = (ptrdiff_t)l->there, apart = (ptrdiff_t)l->apart;
    gpushmem_ctx_t ctx = contexts[context];
    if (l->size == 1)
        CHECK_OK(l->width->put(ctx, symmetric(&l->all), from, there, apart, l->blocks, rank));
    else
        CHECK_OK(l->width->put_blocks(ctx, symmetric(&l->all), from, there, apart, l->size,
                                      l->blocks, rank));
}

static void get_strided(const struct layout *l, void *to, int context)
{
    int rank = rank_in(context, l->all.pe);
    ptrdiff_t there = (ptrdiff_t)l->there, apart = (ptrdiff_t)l->apart;
    gpushmem_ctx_t ctx = contexts[context];
    if (l->size == 1)
        CHECK_OK(l->width->get(ctx, to, symmetric(&l->all), apart, there, l->blocks, rank));
    else
        CHECK_OK(l->width->get_blocks(ctx, to, symmetric(&l->all), apart, there, l->size, l->blocks,
                                      rank));
}

static void strided_put(const struct layout *l, unsigned char *from, int context)
{
    for (size_t i = 0; i < l->blocks; i++) {
        struct place block = block_of(l, i);
        memcpy(modelled(&block), from + i * l->apart * l->width->unit, block.bytes);
        begin(&block, context, WRITING);
    }
    put_strided(l, from, context);
    draw_bytes(from, l->blocks * l->apart * l->width->unit);
}

static void strided_get(const struct layout *l, unsigned char *to, int context)
{
    size_t bytes = l->blocks * l->apart * l->width->unit;
    unsigned char *wanted = malloc(bytes);
    CHECK(wanted);
    memcpy(wanted, to, bytes);
    for (size_t i = 0; i < l->blocks; i++) {
        struct place block = block_of(l, i);
        memcpy(wanted + i * l->apart * l->width->unit, modelled(&block), block.bytes);
    }
    get_strided(l, to, context);
    AGREE(memcmp(to, wanted, bytes) == 0, "what was fetched from PE %d in %zu blocks differs",
          l->all.pe, l->blocks);
    free(wanted);
}

void any_strided(int context)
{
    struct layout l;
    bool puts = one_in(2);
    if (!draw_layout(&l, context))
        return;
    for (size_t i = 0; i < l.blocks; i++) {
        struct place block = block_of(&l, i);
        if (!(puts ? may_write(&block, context) : may_read(&block)))
            return;
    }
    unsigned char *here = local(l.blocks * l.apart * l.width->unit, l.width->unit);
    draw_bytes(here, l.blocks * l.apart * l.width->unit);
    about_to("%s of %zu blocks of %zu elements of %zu bytes, %zu apart, zone %d at %zu of PE %d, "
             "context %d",
             puts ? "put" : "get", l.blocks, l.size, l.width->unit, l.there, l.all.zone, l.all.at,
             l.all.pe, context);
    (puts ? strided_put : strided_get)(&l, here, context);
}
