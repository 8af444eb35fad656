// SPDX-License-Identifier: BSD-3-Clause
// Atomics, p and g, of every type that has all of them.
#include "rma_random.h"

enum operation { FETCH, SET, SWAP, COMPARE_SWAP, ADD, INC, AND, OR, XOR, P, G, OPERATIONS };
enum form { UPDATE, FETCHING, LATER }; // LATER: the fetch is _nbi

static const char *const names[] = {
    "fetch", "set", "swap", "compare_swap", "add", "inc", "and", "or", "xor", "p", "g"};

struct atomic {
    enum operation operation;
    enum form form;
    struct place word;
    gpushmem_ctx_t ctx;
    int context, rank;
};

static enum form draw_form(enum operation operation)
{
    switch (operation) {
    case SET:
    case P: return UPDATE;
    case G: return FETCHING;
    case FETCH:
    case SWAP:
    case COMPARE_SWAP: return one_in(3) ? LATER : FETCHING;
    default: return (enum form)below(3);
    }
}

static bool draw_atomic(struct atomic *a, size_t bytes, int context)
{
    a->operation = (enum operation)below(OPERATIONS);
    a->form = draw_form(a->operation);
    a->context = context;
    a->ctx = contexts[context];
    if (!draw_place(&a->word, context, bytes, bytes))
        return false;
    a->rank = rank_in(context, a->word.pe);
    if (a->operation == G)
        return may_read(&a->word);
    return a->form == LATER ? is_quiet(&a->word) : may_write(&a->word, context);
}

// What the word becomes.
static uint64_t result(enum operation operation, uint64_t old, uint64_t value, bool equal)
{
    switch (operation) {
    case SET:
    case SWAP:
    case P: return value;
    case COMPARE_SWAP: return equal ? value : old;
    case ADD: return old + value;
    case INC: return old + 1;
    case AND: return old & value;
    case OR: return old | value;
    case XOR: return old ^ value;
    default: return old;
    }
}

static void about_atomic(const struct atomic *a, const char *type)
{
    about_to("%s_%s%s, zone %d at %zu of PE %d, context %d", type,
             a->form == UPDATE     ? ""
             : a->form == FETCHING ? "fetch:"
                                   : "nbi fetch:",
             names[a->operation], a->word.zone, a->word.at, a->word.pe, a->context);
}

// The arguments end with the PE.
#define FETCH_CASE(NAME, OP, CALL, ...)                                                            \
    case OP:                                                                                       \
        return gpushmem_ctx_##NAME##_atomic_##CALL(a->ctx, word, __VA_ARGS__);
#define LATER_CASE(NAME, OP, CALL, ...)                                                            \
    case OP:                                                                                       \
        CHECK_OK(gpushmem_ctx_##NAME##_atomic_##CALL##_nbi(a->ctx, to, word, __VA_ARGS__));        \
        break;
#define UPDATE_CASE(NAME, OP, CALL, ...)                                                           \
    case OP:                                                                                       \
        CHECK_OK(gpushmem_ctx_##NAME##_##CALL(a->ctx, word, __VA_ARGS__));                         \
        break;
#define FETCHES(CASE, NAME)                                                                        \
    CASE(NAME, FETCH, fetch, a->rank)                                                              \
    CASE(NAME, SWAP, swap, value, a->rank)                                                         \
    CASE(NAME, COMPARE_SWAP, compare_swap, cond, value, a->rank)                                   \
    CASE(NAME, ADD, fetch_add, value, a->rank)                                                     \
    CASE(NAME, INC, fetch_inc, a->rank)                                                            \
    CASE(NAME, AND, fetch_and, value, a->rank)                                                     \
    CASE(NAME, OR, fetch_or, value, a->rank)                                                       \
    CASE(NAME, XOR, fetch_xor, value, a->rank)

#define ATOMICS(NAME, TYPE)                                                                        \
    static TYPE NAME##_fetch(const struct atomic *a, TYPE *word, TYPE cond, TYPE value)            \
    {                                                                                              \
        switch (a->operation) {                                                                    \
            FETCHES(FETCH_CASE, NAME)                                                              \
        default: return gpushmem_ctx_##NAME##_g(a->ctx, word, a->rank);                            \
        }                                                                                          \
    }                                                                                              \
    static void NAME##_later(const struct atomic *a, TYPE *to, TYPE *word, TYPE cond, TYPE value)  \
    {                                                                                              \
        switch (a->operation) {                                                                    \
            FETCHES(LATER_CASE, NAME)                                                              \
        default: break;                                                                            \
        }                                                                                          \
    }                                                                                              \
    static void NAME##_update(const struct atomic *a, TYPE *word, TYPE value)                      \
    {                                                                                              \
        switch (a->operation) {                                                                    \
            UPDATE_CASE(NAME, SET, atomic_set, value, a->rank)                                     \
            UPDATE_CASE(NAME, ADD, atomic_add, value, a->rank)                                     \
            UPDATE_CASE(NAME, INC, atomic_inc, a->rank)                                            \
            UPDATE_CASE(NAME, AND, atomic_and, value, a->rank)                                     \
            UPDATE_CASE(NAME, OR, atomic_or, value, a->rank)                                       \
            UPDATE_CASE(NAME, XOR, atomic_xor, value, a->rank)                                     \
        default: CHECK_OK(gpushmem_ctx_##NAME##_p(a->ctx, word, value, a->rank));                  \
        }                                                                                          \
    }                                                                                              \
    static void NAME##_atomic(int context)                                                         \
    {                                                                                              \
        struct atomic a;                                                                           \
        if (!draw_atomic(&a, sizeof(TYPE), context))                                               \
            return;                                                                                \
        TYPE *to = a.form == LATER ? (TYPE *)(void *)local(sizeof(TYPE), sizeof(TYPE)) : NULL;     \
        TYPE old, got, cond, value = (TYPE)draw(), *word = symmetric(&a.word);                     \
        memcpy(&old, modelled(&a.word), sizeof old);                                               \
        cond = one_in(2) ? old : (TYPE)draw();                                                     \
        TYPE wanted = (TYPE)result(a.operation, (uint64_t)old, (uint64_t)value, old == cond);      \
        about_atomic(&a, #NAME);                                                                   \
        if (a.form == FETCHING) {                                                                  \
            got = NAME##_fetch(&a, word, cond, value);                                             \
            AGREE(got == old, "it fetched %" PRIx64 ", not %" PRIx64, (uint64_t)got,               \
                  (uint64_t)old);                                                                  \
        } else if (a.form == LATER) {                                                              \
            NAME##_later(&a, to, word, cond, value);                                               \
            expect_later(context, a.word.pe, to, &old, sizeof old);                                \
        } else {                                                                                   \
            NAME##_update(&a, word, value);                                                        \
        }                                                                                          \
        memcpy(modelled(&a.word), &wanted, sizeof wanted);                                         \
        if (a.form == LATER || (a.operation != FETCH && a.operation != G))                         \
            begin(&a.word, context, a.form == LATER ? CHANGING : WRITING);                         \
    }
GPUSHMEM_AMO_BITWISE_TYPES(ATOMICS)

#define ROW(NAME, TYPE) NAME##_atomic,
void any_atomic(int context)
{
    static void (*const types[])(int) = {GPUSHMEM_AMO_BITWISE_TYPES(ROW)};
    types[below(sizeof types / sizeof *types)](context);
}
