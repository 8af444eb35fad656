// SPDX-License-Identifier: BSD-3-Clause
// wait_until and test, for one word and for sets of words.
#include "api/wait.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "api/argument.h"
#include "api/compat.h"
#include "api/family.h"
#include "comm/contexts.h"
#include "comm/sync.h"
#include "core/cpu.h"
#include "core/error.h"
#include "memory/heap.h"
#include "memory/place.h"
#include "observe/call.h"
#include "progress/waiter.h"

// How the bytes of a word become a number. All types are compared as uint64_t: signed ones are
// shifted by 2^63, which keeps their order.
struct kind {
    uint8_t width; // 2, 4 or 8
    bool is_signed;
};
static const uint64_t SHIFT = UINT64_C(1) << 63;

// `raw` is zero-extended.
GPSH_ALWAYS_INLINE uint64_t ordered(struct kind kind, uint64_t raw)
{
    if (!kind.is_signed)
        return raw;
    int unused = 64 - 8 * kind.width;
    return (uint64_t)((int64_t)(raw << unused) >> unused) ^ SHIFT;
}

GPSH_ALWAYS_INLINE uint64_t load(struct kind kind, const void *word)
{
    return ordered(kind, gpsh_word_load(word, kind.width));
}

GPSH_ALWAYS_INLINE bool holds(uint64_t word, int cmp, uint64_t value)
{
    switch (cmp) {
    case GPUSHMEM_CMP_EQ: return word == value;
    case GPUSHMEM_CMP_NE: return word != value;
    case GPUSHMEM_CMP_GT: return word > value;
    case GPUSHMEM_CMP_LE: return word <= value;
    case GPUSHMEM_CMP_LT: return word < value;
    default: return word >= value;
    }
}

// Whether the word that was just loaded is none: a GPU that failed is a reason to end a wait, not
// to wait on.
GPSH_ALWAYS_INLINE int unread(void)
{
    return GPSH_UNLIKELY(gpsh_heap()->device) ? gpsh_word_unread() : 0;
}

static int check(const char *function, const void *vars, size_t nelems, struct kind kind, int cmp)
{
    return gpsh_check_words(function, vars, nelems, kind.width, cmp);
}

// The common case of check() in line: one word in the heap, aligned.
GPSH_ALWAYS_INLINE bool sound(const void *var, struct kind kind, int cmp)
{
    return gpsh_heap()->quick_pes > 0 && (unsigned)cmp <= GPUSHMEM_CMP_GE &&
           gpsh_in_user_heap(gpsh_offset(var), kind.width) &&
           ((uintptr_t)var & (kind.width - 1u)) == 0;
}

static void print_number(char *text, size_t bytes, struct kind kind, uint64_t number)
{
    if (kind.is_signed)
        snprintf(text, bytes, "%" PRId64, (int64_t)(number ^ SHIFT));
    else
        snprintf(text, bytes, "%" PRIu64, number);
}

static const char *const signs[] = {
    [GPUSHMEM_CMP_EQ] = "==", [GPUSHMEM_CMP_NE] = "!=", [GPUSHMEM_CMP_GT] = ">",
    [GPUSHMEM_CMP_LE] = "<=", [GPUSHMEM_CMP_LT] = "<",  [GPUSHMEM_CMP_GE] = ">=",
};

// One word and what it is to become. `value` is ordered.
struct wanted {
    const void *var;
    struct kind kind;
    int cmp;
    uint64_t value;
};

static void about_word(const void *subject, char *text, size_t bytes)
{
    const struct wanted *wanted = subject;
    char is[24], value[24], where[64];
    gpsh_place_name(wanted->var, where, sizeof where);
    print_number(is, sizeof is, wanted->kind, load(wanted->kind, wanted->var));
    print_number(value, sizeof value, wanted->kind, wanted->value);
    snprintf(text, bytes, " for the word at %s, which is %s, to be %s %s", where, is,
             signs[wanted->cmp], value);
}

// *seen: the value that ended the wait, ordered.
static int await_with(struct gpsh_waiter *waiter, const struct wanted *wanted, uint64_t *seen)
{
    for (;;) {
        int status = unread();
        if (status == 0)
            status = gpsh_waiter_step(waiter);
        if (GPSH_UNLIKELY(status < 0))
            return status;
        *seen = load(wanted->kind, wanted->var);
        if (unread() == 0 && holds(*seen, wanted->cmp, wanted->value))
            return 0;
    }
}

// After a first look that found another value.
static __attribute__((noinline)) int await_change(const char *function, const struct wanted *wanted,
                                                  uint64_t *seen)
{
    GPSH_CALL(function, -1, 0);
    GPSH_WAIT(waiter, function);
    waiter.about = about_word;
    waiter.subject = wanted;
    return await_with(&waiter, wanted, seen);
}

int gpsh_wait_int32_ge(const struct gpsh_wait_reason *reason, const int32_t *var, int32_t value)
{
    const struct kind kind = {.width = sizeof *var, .is_signed = true};
    const struct wanted wanted = {var, kind, GPUSHMEM_CMP_GE, ordered(kind, (uint32_t)value)};
    uint64_t seen = load(kind, var);
    if (unread() == 0 && holds(seen, wanted.cmp, wanted.value))
        return 0;
    GPSH_WAIT(waiter, reason->function);
    waiter.about = reason->about;
    waiter.subject = reason->subject;
    waiter.awaited = reason->pe < 0 ? GPSH_AWAITED_UNKNOWN : GPSH_AWAITED_PE;
    waiter.awaited_pe = reason->pe;
    return await_with(&waiter, &wanted, &seen);
}

// Arguments were checked.
GPSH_ALWAYS_INLINE int await(const char *function, const void *var, struct kind kind, int cmp,
                             uint64_t value, uint64_t *seen)
{
    *seen = load(kind, var);
    if (GPSH_LIKELY(unread() == 0 && holds(*seen, cmp, value)))
        return 0;
    const struct wanted wanted = {var, kind, cmp, value};
    return await_change(function, &wanted, seen);
}

// A test that found nothing drives what this PE has outstanding, so that loops around it make
// progress.
static void missed(void)
{
    gpsh_contexts_progress();
    gpsh_waiter_miss();
}

GPSH_ALWAYS_INLINE int wait_until(const char *function, const void *var, struct kind kind, int cmp,
                                  uint64_t value)
{
    uint64_t seen;
    int status = GPSH_LIKELY(sound(var, kind, cmp)) ? 0 : check(function, var, 1, kind, cmp);
    return status < 0 ? status : await(function, var, kind, cmp, value, &seen);
}

GPSH_ALWAYS_INLINE int test(const char *function, const void *var, struct kind kind, int cmp,
                            uint64_t value)
{
    int status = GPSH_LIKELY(sound(var, kind, cmp)) ? 0 : check(function, var, 1, kind, cmp);
    if (status < 0)
        return status;
    uint64_t word = load(kind, var);
    if (GPSH_UNLIKELY(unread() < 0))
        return unread();
    if (holds(word, cmp, value))
        return 1;
    missed();
    return 0;
}

// ----------------------------------------------------------------------------------- sets of words

struct set {
    const char *function;
    const char *vars;
    size_t nelems;
    const int *status; // NULL: nothing is excluded
    int cmp;
    struct kind kind;
    uint64_t value;     // ordered; for all elements if `values` is NULL
    const char *values; // one for each element
    bool vector;
    bool blocking;
};

static int check_set(const struct set *set)
{
    int status = check(set->function, set->vars, set->nelems, set->kind, set->cmp);
    if (status < 0 || set->nelems == 0 || !set->vector || set->values != NULL)
        return status;
    return gpsh_fail(GPUSHMEM_ERR_INVALID, "%s: the values to compare with are NULL",
                     set->function);
}

static inline bool excluded(const struct set *set, size_t i)
{
    return set->status != NULL && set->status[i] != 0;
}

static inline uint64_t value_of(const struct set *set, size_t i)
{
    if (!set->vector)
        return set->value;
    uint64_t raw = 0;
    memcpy(&raw, set->values + i * set->kind.width, set->kind.width);
    return ordered(set->kind, raw);
}

static inline bool satisfied(const struct set *set, size_t i)
{
    uint64_t word = load(set->kind, set->vars + i * set->kind.width);
    return unread() == 0 && holds(word, set->cmp, value_of(set, i));
}

static int set_all(const struct set *set)
{
    int status = check_set(set);
    for (size_t i = 0; i < set->nelems && status == 0; ++i) {
        if (excluded(set, i))
            continue;
        uint64_t seen;
        if (set->blocking)
            status = await(set->function, set->vars + i * set->kind.width, set->kind, set->cmp,
                           value_of(set, i), &seen);
        else if (!satisfied(set, i)) {
            missed();
            return unread();
        }
    }
    return status < 0 || set->blocking ? status : 1;
}

// One pass over the set, beginning at `start`; *left counts what is not excluded.
static size_t find_any(const struct set *set, size_t start, size_t *left)
{
    *left = 0;
    for (size_t k = 0; k < set->nelems; ++k) {
        size_t i = k < set->nelems - start ? start + k : k - (set->nelems - start);
        if (excluded(set, i))
            continue;
        ++*left;
        if (satisfied(set, i))
            return i;
    }
    return SIZE_MAX;
}

static size_t find_some(const struct set *set, size_t *indices, size_t *left)
{
    size_t found = 0;
    *left = 0;
    for (size_t i = 0; i < set->nelems; ++i) {
        if (excluded(set, i))
            continue;
        ++*left;
        if (satisfied(set, i))
            indices[found++] = i;
    }
    return found;
}

static void about_set(const void *subject, char *text, size_t bytes)
{
    const struct set *set = subject;
    size_t left = 0;
    char where[64];
    gpsh_place_name(set->vars, where, sizeof where);
    for (size_t i = 0; i < set->nelems; ++i)
        left += !excluded(set, i);
    snprintf(text, bytes, " for one of %zu words from %s to be %s its value", left, where,
             signs[set->cmp]);
}

static void wait_for_set(struct gpsh_waiter *waiter, const struct set *set)
{
    waiter->about = about_set;
    waiter->subject = set;
}

// After a look in vain: whether there is to be another one.
static bool look_again(const struct set *set, struct gpsh_waiter *waiter, int *status)
{
    if (!set->blocking) {
        missed();
        return false;
    }
    *status = unread();
    if (*status == 0)
        *status = gpsh_waiter_step(waiter);
    return *status == 0;
}

// *index: SIZE_MAX if there is none.
static int set_any(const struct set *set, size_t *index)
{
    // fair: the search begins after the element that was found last
    static _Thread_local size_t turn;
    GPSH_WAIT(waiter, set->function);
    wait_for_set(&waiter, set);
    size_t left = 0, found = SIZE_MAX;
    int status = check_set(set);
    while (status == 0 && set->nelems != 0) {
        found = find_any(set, turn % set->nelems, &left);
        if (found != SIZE_MAX)
            turn = found + 1;
        if (found != SIZE_MAX || left == 0)
            break;
        if (!look_again(set, &waiter, &status))
            break;
    }
    if (status == 0)
        *index = found;
    return status;
}

static int set_some(const struct set *set, size_t *indices, size_t *count)
{
    GPSH_WAIT(waiter, set->function);
    wait_for_set(&waiter, set);
    size_t left = 0, found = 0;
    int status = check_set(set);
    if (status == 0 && set->nelems != 0 && indices == NULL)
        status =
            gpsh_fail(GPUSHMEM_ERR_INVALID, "%s: no place for the indices (NULL)", set->function);
    while (status == 0 && set->nelems != 0) {
        found = find_some(set, indices, &left);
        if (found != 0 || left == 0)
            break;
        if (!look_again(set, &waiter, &status))
            break;
    }
    if (status == 0)
        *count = found;
    return status;
}

// The forms that return what they found, and those with a status.
static size_t set_any_value(const struct set *set)
{
    size_t index = SIZE_MAX;
    if (set_any(set, &index) < 0)
        gpsh_value_failed(false);
    return index;
}

static size_t set_some_value(const struct set *set, size_t *indices)
{
    size_t count = 0;
    if (set_some(set, indices, &count) < 0)
        gpsh_value_failed(false);
    return count;
}

static int set_any_status(const struct set *set, size_t *index)
{
    int status = gpsh_check_local(set->function, index);
    return status < 0 ? status : set_any(set, index);
}

static int set_some_status(const struct set *set, size_t *indices, size_t *count)
{
    int status = gpsh_check_local(set->function, count);
    return status < 0 ? status : set_some(set, indices, count);
}

// -------------------------------------------------------------------------------- public functions

#define KIND(TYPE) ((struct kind){sizeof(TYPE), (TYPE)-1 < (TYPE)1})
#define ORDERED(TYPE, value)                                                                       \
    (KIND(TYPE).is_signed ? (uint64_t)(int64_t)(value) ^ SHIFT : (uint64_t)(value))
#define SET(TYPE, ...)                                                                             \
    (&(const struct set){.function = __func__,                                                     \
                         .vars = (const char *)vars,                                               \
                         .nelems = nelems,                                                         \
                         .status = status,                                                         \
                         .cmp = cmp,                                                               \
                         .kind = KIND(TYPE),                                                       \
                         __VA_ARGS__})

// The rows of gpushmem/impl/signatures.h. VECTOR, with what it is compared with: nothing, TYPE
// value; or _vector, const TYPE *values.
#define BLOCKING_wait_until true
#define BLOCKING_test       false
#define DEFINE_all(NAME, WORDS, ...)                                                               \
    int gpushmem_##NAME(__VA_ARGS__)                                                               \
    {                                                                                              \
        return set_all(WORDS);                                                                     \
    }
#define DEFINE_any(NAME, WORDS, ...)                                                               \
    size_t gpushmem_##NAME(__VA_ARGS__)                                                            \
    {                                                                                              \
        return set_any_value(WORDS);                                                               \
    }                                                                                              \
    int gpushmem_##NAME##_status(__VA_ARGS__, size_t *index)                                       \
    {                                                                                              \
        return set_any_status(WORDS, index);                                                       \
    }
#define DEFINE_some(NAME, WORDS, ...)                                                              \
    size_t gpushmem_##NAME(__VA_ARGS__)                                                            \
    {                                                                                              \
        return set_some_value(WORDS, indices);                                                     \
    }                                                                                              \
    int gpushmem_##NAME##_status(__VA_ARGS__, size_t *count)                                       \
    {                                                                                              \
        return set_some_status(WORDS, indices, count);                                             \
    }
#define DEFINE_SET(VERB, WHICH, FORM, NAME, TYPE, VECTOR, VALUE, ...)                              \
    DEFINE_##WHICH(NAME##_##VERB##_##WHICH##VECTOR,                                                \
                   SET(TYPE, .blocking = BLOCKING_##VERB, __VA_ARGS__),                            \
                   GPSH_P_##FORM(const volatile TYPE *vars, enum gpushmem_cmp, VALUE))

#define DEFINE(NAME, TYPE)                                                                         \
    int gpushmem_##NAME##_wait_until(const volatile TYPE *var, enum gpushmem_cmp cmp, TYPE value)  \
    {                                                                                              \
        return wait_until(__func__, (const void *)var, KIND(TYPE), cmp, ORDERED(TYPE, value));     \
    }                                                                                              \
    int gpushmem_##NAME##_test(const volatile TYPE *var, enum gpushmem_cmp cmp, TYPE value)        \
    {                                                                                              \
        return test(__func__, (const void *)var, KIND(TYPE), cmp, ORDERED(TYPE, value));           \
    }                                                                                              \
    GPSH_WAITS(DEFINE_SET, NAME, TYPE, , TYPE value, .value = ORDERED(TYPE, value))                \
    GPSH_WAITS(DEFINE_SET, NAME, TYPE, _vector, const TYPE *values, .vector = true,                \
               .values = (const char *)values)
GPUSHMEM_SYNC_TYPES(DEFINE)

static int signal_fetch(const char *function, const uint64_t *sig, uint64_t *value)
{
    const struct kind kind = KIND(uint64_t);
    int status = GPSH_LIKELY(sound(sig, kind, GPUSHMEM_CMP_EQ))
                     ? 0
                     : check(function, sig, 1, kind, GPUSHMEM_CMP_EQ);
    if (status < 0)
        return status;
    uint64_t word = gpsh_word_load(sig, sizeof *sig);
    status = unread();
    if (status == 0)
        *value = word;
    return status;
}

uint64_t gpushmem_signal_fetch(const uint64_t *sig)
{
    uint64_t value = 0;
    if (signal_fetch(__func__, sig, &value) == 0)
        return value;
    gpsh_value_failed(false);
    return 0;
}

int gpushmem_signal_fetch_status(const uint64_t *sig, uint64_t *value)
{
    int status = gpsh_check_local(__func__, value);
    return status < 0 ? status : signal_fetch(__func__, sig, value);
}

// *seen: the value that ended the wait, not what the word is by now.
static int signal_wait(const char *function, const uint64_t *sig, enum gpushmem_cmp cmp,
                       uint64_t value, uint64_t *seen)
{
    const struct kind kind = KIND(uint64_t);
    int status = GPSH_LIKELY(sound(sig, kind, cmp)) ? 0 : check(function, sig, 1, kind, cmp);
    return status < 0 ? status : await(function, sig, kind, cmp, value, seen);
}

uint64_t gpushmem_signal_wait_until(uint64_t *sig, enum gpushmem_cmp cmp, uint64_t value)
{
    uint64_t seen;
    if (signal_wait(__func__, sig, cmp, value, &seen) == 0)
        return seen;
    gpsh_value_failed(false);
    return 0;
}

int gpushmem_signal_wait_until_status(const uint64_t *sig, enum gpushmem_cmp cmp, uint64_t value,
                                      uint64_t *seen)
{
    uint64_t last;
    int status = signal_wait(__func__, sig, cmp, value, &last);
    if (status == 0 && seen != NULL)
        *seen = last;
    return status;
}

int gpushmem_set_wait_hook(int (*hook)(void *argument), void *argument)
{
    gpsh_waiter_ask(hook, argument);
    return 0;
}
