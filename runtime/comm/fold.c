// SPDX-License-Identifier: BSD-3-Clause
#include "comm/fold.h"

#include <math.h>
#include <string.h>

// ---- half and bfloat16 ----

static uint32_t bits_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static float float_of(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

enum { NAN_BITS = 0x7fff }; // the NaN that GPUs give, too

static float from_bfloat16(gpushmem_bfloat16 value)
{
    return float_of((uint32_t)value.bits << 16);
}

// To the nearest, ties to even.
static gpushmem_bfloat16 to_bfloat16(float value)
{
    uint32_t bits = bits_of(value);
    if (value != value)
        return (gpushmem_bfloat16){NAN_BITS};
    return (gpushmem_bfloat16){(uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16)};
}

static float from_half(gpushmem_half value)
{
    uint32_t sign = (uint32_t)(value.bits & 0x8000) << 16, exponent = value.bits >> 10 & 31,
             mantissa = value.bits & 0x3ff;
    if (exponent == 31)
        return float_of(sign | 0x7f800000 | mantissa << 13);
    if (exponent != 0)
        return float_of(sign | (exponent + 112) << 23 | mantissa << 13);
    float tiny = (float)mantissa * 0x1p-24f; // exact
    return sign ? -tiny : tiny;
}

static gpushmem_half to_half(float value)
{
    uint32_t bits = bits_of(value), magnitude = bits & 0x7fffffff, sign = bits >> 16 & 0x8000;
    if (value != value)
        return (gpushmem_half){NAN_BITS};
    if (magnitude >= 0x477ff000) // 65520 and above round to infinity
        return (gpushmem_half){(uint16_t)(sign | 0x7c00)};
    if (magnitude < 0x38800000) { // below 2^-14: a multiple of 2^-24, which the adder rounds to
        uint32_t steps = bits_of(float_of(magnitude) + 0.5f) - bits_of(0.5f);
        return (gpushmem_half){(uint16_t)(sign | steps)};
    }
    uint32_t rounded = magnitude + 0xfff + (magnitude >> 13 & 1) - (112u << 23);
    return (gpushmem_half){(uint16_t)(sign | rounded >> 13)};
}

// ---- Operators ----

// NaN wins; -0 is less than +0.
#define FLOAT_MIN(a, b)                                                                            \
    ((a) != (a)   ? (a)                                                                            \
     : (b) != (b) ? (b)                                                                            \
     : (a) < (b)  ? (a)                                                                            \
     : (b) < (a)  ? (b)                                                                            \
     : signbit(a) ? (a)                                                                            \
                  : (b))
#define FLOAT_MAX(a, b)                                                                            \
    ((a) != (a)   ? (a)                                                                            \
     : (b) != (b) ? (b)                                                                            \
     : (a) > (b)  ? (a)                                                                            \
     : (b) > (a)  ? (b)                                                                            \
     : signbit(a) ? (b)                                                                            \
                  : (a))
#define PLAIN_MIN(a, b) ((b) < (a) ? (b) : (a))
#define PLAIN_MAX(a, b) ((b) > (a) ? (b) : (a))

#if defined(__clang__)
#define INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define INDEPENDENT _Pragma("GCC ivdep")
#endif

// to = left op right. Any two of them may be the same array: no element depends on another one.
#define STEP(NAME, OP, ACC, FROM, EXPRESSION)                                                      \
    static void step_##NAME##_##OP(void *to_bytes, const void *left_bytes,                         \
                                   const void *right_bytes, size_t nelems)                         \
    {                                                                                              \
        ACC *to = to_bytes;                                                                        \
        const ACC *left = left_bytes;                                                              \
        const FROM *right = right_bytes;                                                           \
        INDEPENDENT                                                                                \
        for (size_t i = 0; i < nelems; i++) {                                                      \
            const ACC a = left[i], b = CONVERT_##NAME(right[i]);                                   \
            to[i] = (EXPRESSION);                                                                  \
        }                                                                                          \
    }

// WIDE: unsigned, and at least as wide as int, so that sums and products wrap.
#define INTEGERS(X)                                                                                \
    X(int8, int8_t, uint32_t)                                                                      \
    X(int16, int16_t, uint32_t)                                                                    \
    X(int32, int32_t, uint32_t)                                                                    \
    X(int64, int64_t, uint64_t)                                                                    \
    X(uint8, uint8_t, uint32_t)                                                                    \
    X(uint16, uint16_t, uint32_t)                                                                  \
    X(uint32, uint32_t, uint32_t)                                                                  \
    X(uint64, uint64_t, uint64_t)
#define CONVERT_int8(x)   (x)
#define CONVERT_int16(x)  (x)
#define CONVERT_int32(x)  (x)
#define CONVERT_int64(x)  (x)
#define CONVERT_uint8(x)  (x)
#define CONVERT_uint16(x) (x)
#define CONVERT_uint32(x) (x)
#define CONVERT_uint64(x) (x)
#define INTEGER_STEPS(NAME, TYPE, WIDE)                                                            \
    STEP(NAME, and, TYPE, TYPE, (TYPE)(a & b))                                                     \
    STEP(NAME, or, TYPE, TYPE, (TYPE)(a | b))                                                      \
    STEP(NAME, xor, TYPE, TYPE, (TYPE)(a ^ b))                                                     \
    STEP(NAME, min, TYPE, TYPE, PLAIN_MIN(a, b))                                                   \
    STEP(NAME, max, TYPE, TYPE, PLAIN_MAX(a, b))                                                   \
    STEP(NAME, sum, TYPE, TYPE, (TYPE)((WIDE)a + (WIDE)b))                                         \
    STEP(NAME, prod, TYPE, TYPE, (TYPE)((WIDE)a * (WIDE)b))
INTEGERS(INTEGER_STEPS)

// What members show each other is aligned to 8 bytes.
typedef long double loose_longdouble __attribute__((aligned(8)));

#define FLOATS(X)                                                                                  \
    X(half, float, gpushmem_half)                                                                  \
    X(bfloat16, float, gpushmem_bfloat16)                                                          \
    X(float, float, float)                                                                         \
    X(double, double, double)                                                                      \
    X(longdouble, long double, loose_longdouble)
#define CONVERT_half(x)       from_half(x)
#define CONVERT_bfloat16(x)   from_bfloat16(x)
#define CONVERT_float(x)      (x)
#define CONVERT_double(x)     (x)
#define CONVERT_longdouble(x) (x)
#define FLOAT_STEPS(NAME, ACC, FROM)                                                               \
    STEP(NAME, min, ACC, FROM, FLOAT_MIN(a, b))                                                    \
    STEP(NAME, max, ACC, FROM, FLOAT_MAX(a, b))                                                    \
    STEP(NAME, sum, ACC, FROM, a + b)                                                              \
    STEP(NAME, prod, ACC, FROM, a *b)
FLOATS(FLOAT_STEPS)

// Real and imaginary part, each product and sum rounded by itself (the file is compiled without
// contraction).
struct complexf {
    float re, im;
};
struct complexd {
    double re, im;
};
#define CONVERT_complexf(x) (x)
#define CONVERT_complexd(x) (x)
#define COMPLEX_STEPS(NAME)                                                                        \
    STEP(NAME, sum, struct NAME, struct NAME, ((struct NAME){a.re + b.re, a.im + b.im}))           \
    STEP(NAME, prod, struct NAME, struct NAME,                                                     \
         ((struct NAME){a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re}))
COMPLEX_STEPS(complexf)
COMPLEX_STEPS(complexd)
// Of pairs of a value and its place: the larger value, of equal ones the smaller place. A NaN
// stays.
STEP(complexd, maxloc, struct complexd, struct complexd,
     a.re == a.re && (b.re != b.re || b.re > a.re || (b.re == a.re && b.im < a.im)) ? b : a)

// ---- The table ----

typedef void step_fn(void *to, const void *left, const void *right, size_t nelems);

#define ORDERED_ROW(NAME)                                                                          \
    [GPSH_MIN] = step_##NAME##_min, [GPSH_MAX] = step_##NAME##_max,                                \
    [GPSH_SUM] = step_##NAME##_sum, [GPSH_PROD] = step_##NAME##_prod
#define INTEGER_ROW(NAME)                                                                          \
    {                                                                                              \
        [GPSH_AND] = step_##NAME##_and, [GPSH_OR] = step_##NAME##_or,                              \
        [GPSH_XOR] = step_##NAME##_xor, ORDERED_ROW(NAME)                                          \
    }

static step_fn *const steps[GPSH_TYPES][GPSH_FOLD_OPS] = {
    [GPSH_INT8] = INTEGER_ROW(int8),
    [GPSH_INT16] = INTEGER_ROW(int16),
    [GPSH_INT32] = INTEGER_ROW(int32),
    [GPSH_INT64] = INTEGER_ROW(int64),
    [GPSH_UINT8] = INTEGER_ROW(uint8),
    [GPSH_UINT16] = INTEGER_ROW(uint16),
    [GPSH_UINT32] = INTEGER_ROW(uint32),
    [GPSH_UINT64] = INTEGER_ROW(uint64),
    [GPSH_HALF] = {ORDERED_ROW(half)},
    [GPSH_BFLOAT16] = {ORDERED_ROW(bfloat16)},
    [GPSH_FLOAT] = {ORDERED_ROW(float)},
    [GPSH_DOUBLE] = {ORDERED_ROW(double)},
    [GPSH_LONGDOUBLE] = {ORDERED_ROW(longdouble)},
    [GPSH_COMPLEXF] = {[GPSH_SUM] = step_complexf_sum, [GPSH_PROD] = step_complexf_prod},
    [GPSH_COMPLEXD] = {[GPSH_SUM] = step_complexd_sum,
                       [GPSH_PROD] = step_complexd_prod,
                       [GPSH_MAX] = step_complexd_maxloc},
};

size_t gpsh_type_size(enum gpsh_type type)
{
    static const unsigned char sizes[GPSH_TYPES] = {
        [GPSH_INT8] = 1,
        [GPSH_INT16] = 2,
        [GPSH_INT32] = 4,
        [GPSH_INT64] = 8,
        [GPSH_UINT8] = 1,
        [GPSH_UINT16] = 2,
        [GPSH_UINT32] = 4,
        [GPSH_UINT64] = 8,
        [GPSH_HALF] = 2,
        [GPSH_BFLOAT16] = 2,
        [GPSH_FLOAT] = 4,
        [GPSH_DOUBLE] = 8,
        [GPSH_LONGDOUBLE] = sizeof(long double),
        [GPSH_COMPLEXF] = 8,
        [GPSH_COMPLEXD] = 16,
    };
    return sizes[type];
}

void gpsh_fold_load(enum gpsh_type type, struct gpsh_fold *acc, const void *from, size_t nelems)
{
    float *wide = (float *)(void *)acc->bytes;
    if (type == GPSH_HALF)
        for (size_t i = 0; i < nelems; i++)
            wide[i] = from_half(((const gpushmem_half *)from)[i]);
    else if (type == GPSH_BFLOAT16)
        for (size_t i = 0; i < nelems; i++)
            wide[i] = from_bfloat16(((const gpushmem_bfloat16 *)from)[i]);
    else
        memcpy(acc->bytes, from, nelems * gpsh_type_size(type));
}

void gpsh_fold_step(enum gpsh_type type, enum gpsh_fold_op op, struct gpsh_fold *acc,
                    const void *from, size_t nelems)
{
    steps[type][op](acc->bytes, acc->bytes, from, nelems);
}

void gpsh_fold_store(enum gpsh_type type, const struct gpsh_fold *acc, void *to, size_t nelems)
{
    const float *wide = (const float *)(const void *)acc->bytes;
    if (type == GPSH_HALF)
        for (size_t i = 0; i < nelems; i++)
            ((gpushmem_half *)to)[i] = to_half(wide[i]);
    else if (type == GPSH_BFLOAT16)
        for (size_t i = 0; i < nelems; i++)
            ((gpushmem_bfloat16 *)to)[i] = to_bfloat16(wide[i]);
    else
        memcpy(to, acc->bytes, nelems * gpsh_type_size(type));
}

void gpsh_fold_split(const struct gpsh_fold *acc, uint16_t *upper, uint16_t *lower, size_t nelems)
{
    const uint32_t *bits = (const uint32_t *)(const void *)acc->bytes;
    for (size_t i = 0; i < nelems; i++) {
        upper[i] = (uint16_t)(bits[i] >> 16);
        lower[i] = (uint16_t)bits[i];
    }
}

void gpsh_fold_join(struct gpsh_fold *acc, const uint16_t *upper, const uint16_t *lower,
                    size_t nelems)
{
    uint32_t *bits = (uint32_t *)(void *)acc->bytes;
    for (size_t i = 0; i < nelems; i++)
        bits[i] = (uint32_t)upper[i] << 16 | lower[i];
}

bool gpsh_fold_is_plain(enum gpsh_type type)
{
    return type != GPSH_HALF && type != GPSH_BFLOAT16 && type != GPSH_LONGDOUBLE;
}

void gpsh_fold_pair(enum gpsh_type type, enum gpsh_fold_op op, void *to, const void *left,
                    const void *right, size_t nelems)
{
    steps[type][op](to, left, right, nelems);
}

// Only the values between the first and the last step go through the accumulator.
static void fold_plain(step_fn *step, struct gpsh_fold *acc, char *dest, const char *const *sources,
                       int n, size_t where, size_t nelems)
{
    const void *left = sources[0] + where;
    for (int i = 1; i < n; i++) {
        void *to = i == n - 1 ? (void *)dest : acc->bytes;
        step(to, left, sources[i] + where, nelems);
        left = to;
    }
}

static void fold_wide(enum gpsh_type type, enum gpsh_fold_op op, struct gpsh_fold *acc, char *dest,
                      const char *const *sources, int n, size_t where, size_t nelems)
{
    gpsh_fold_load(type, acc, sources[0] + where, nelems);
    for (int i = 1; i < n; i++)
        gpsh_fold_step(type, op, acc, sources[i] + where, nelems);
    gpsh_fold_store(type, acc, dest, nelems);
}

void gpsh_fold_all(enum gpsh_type type, enum gpsh_fold_op op, void *dest,
                   const char *const *sources, int n, size_t offset, size_t nelems)
{
    struct gpsh_fold acc;
    size_t size = gpsh_type_size(type), part;
    for (size_t at = 0; at < nelems; at += part) {
        part = nelems - at < GPSH_FOLD_BLOCK ? nelems - at : GPSH_FOLD_BLOCK;
        char *to = (char *)dest + at * size;
        size_t where = offset + at * size;
        if (n > 1 && gpsh_fold_is_plain(type))
            fold_plain(steps[type][op], &acc, to, sources, n, where, part);
        else
            fold_wide(type, op, &acc, to, sources, n, where, part);
    }
}
