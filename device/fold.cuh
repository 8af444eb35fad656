// SPDX-License-Identifier: BSD-3-Clause
// Reduction operators on 8 or 16 bytes at a time, chosen at run time by a function that is not
// inlined: the type and the operator are the same for a whole launch, so the branches cost little,
// and there is one copy of the 50 cases, not one for each way, scope and unrolled step.
// Folding is from the left, in the order of the calls; half and bfloat16 are kept as float between
// the first and the last.
#ifndef GPUSHMEM_DEVICE_FOLD_CUH
#define GPUSHMEM_DEVICE_FOLD_CUH

#include "gpushmem/device/atomics.cuh"

// WORDS of 4 bytes, or twice as many while they are kept as float.
template <int WORDS> struct gpsh_dev_acc {
    uint32_t w[2 * WORDS];
};
template <int WORDS> struct gpsh_dev_unit {
    uint32_t w[WORDS];
};

// ---- Values ----

GPSH_DEV float gpsh_dev_float_of(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}
GPSH_DEV uint32_t gpsh_dev_bits_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

#if defined(__CUDACC__)
GPSH_DEV float gpsh_dev_half_value(uint16_t bits)
{
    return __half2float(__ushort_as_half(bits));
}
GPSH_DEV uint16_t gpsh_dev_half_bits(float value)
{
    return __half_as_ushort(__float2half_rn(value));
}
#else
GPSH_DEV float gpsh_dev_half_value(uint16_t bits)
{
    uint32_t sign = (uint32_t)(bits & 0x8000) << 16, exponent = bits >> 10 & 31,
             fraction = bits & 0x3ff;
    if (exponent == 31)
        return gpsh_dev_float_of(sign | 0x7f800000 | fraction << 13);
    if (exponent)
        return gpsh_dev_float_of(sign | (exponent + 112) << 23 | fraction << 13);
    float small = (float)fraction * 0x1p-24f; // exact
    return sign ? -small : small;
}
// Round to nearest, ties to even.
GPSH_DEV uint16_t gpsh_dev_half_bits(float value)
{
    uint32_t bits = gpsh_dev_bits_of(value), sign = bits >> 16 & 0x8000, rest = bits & 0x7fffffff;
    if (rest > 0x7f800000)
        return 0x7fff; // as the GPU's NaN
    if (rest >= 0x477ff000)
        return (uint16_t)(sign | 0x7c00); // 65520 and more
    if (rest < 0x38800000) {              // subnormal: the sum rounds at the right bit
        float sum = gpsh_dev_float_of(rest) + 0.5f;
        return (uint16_t)(sign | (gpsh_dev_bits_of(sum) - 0x3f000000));
    }
    rest += 0xfff + (rest >> 13 & 1);
    return (uint16_t)(sign | (rest - 0x38000000) >> 13);
}
#endif

GPSH_DEV float gpsh_dev_bfloat16_value(uint16_t bits)
{
    return gpsh_dev_float_of((uint32_t)bits << 16);
}
GPSH_DEV uint16_t gpsh_dev_bfloat16_bits(float value)
{
    uint32_t bits = gpsh_dev_bits_of(value);
    if ((bits & 0x7fffffff) > 0x7f800000)
        return 0x7fff;
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

// ---- Operators ----

// NaN propagates, and -0 is less than +0.
template <typename T> GPSH_DEV T gpsh_dev_float_min(T a, T b, bool a_negative)
{
    // NOLINTNEXTLINE(misc-redundant-expression): a NaN alone differs from itself
    return a != a ? a : b != b ? b : a < b ? a : b < a ? b : a_negative ? a : b;
}
template <typename T> GPSH_DEV T gpsh_dev_float_max(T a, T b, bool a_negative)
{
    // NOLINTNEXTLINE(misc-redundant-expression): a NaN alone differs from itself
    return a != a ? a : b != b ? b : a > b ? a : b > a ? b : a_negative ? b : a;
}

template <typename T> GPSH_DEV T gpsh_dev_fold_float(T a, T b, int fold, bool a_negative)
{
    switch (fold) {
    case GPUSHMEM_COLL_MIN: return gpsh_dev_float_min(a, b, a_negative);
    case GPUSHMEM_COLL_MAX: return gpsh_dev_float_max(a, b, a_negative);
    case GPUSHMEM_COLL_SUM: return a + b;
    default: return a * b;
    }
}

GPSH_DEV uint32_t gpsh_dev_fold_float_bits(uint32_t a, uint32_t b, int fold)
{
    return gpsh_dev_bits_of(
        gpsh_dev_fold_float<float>(gpsh_dev_float_of(a), gpsh_dev_float_of(b), fold, a >> 31));
}

GPSH_DEV void gpsh_dev_fold_double(uint32_t *a, const uint32_t *b, int fold)
{
    double x, y;
    memcpy(&x, a, sizeof x);
    memcpy(&y, b, sizeof y);
    x = gpsh_dev_fold_float<double>(x, y, fold, a[1] >> 31);
    memcpy(a, &x, sizeof x);
}

// ---- Complex numbers ----

// Each product and difference is rounded by itself, as on the host: the compiler is not to make one
// instruction of two.
#if defined(__CUDA_ARCH__)
GPSH_DEV float gpsh_dev_cross(float a, float b, float c, float d, float sign)
{
    return __fadd_rn(__fmul_rn(a, b), sign * __fmul_rn(c, d));
}
GPSH_DEV double gpsh_dev_cross(double a, double b, double c, double d, double sign)
{
    return __dadd_rn(__dmul_rn(a, b), sign * __dmul_rn(c, d));
}
#else
template <typename T> GPSH_DEV T gpsh_dev_cross(T a, T b, T c, T d, T sign)
{
    volatile T first = a * b, second = c * d;
    return first + sign * second;
}
#endif

// a = a * b, of a real and an imaginary part each.
template <typename T> GPSH_DEV void gpsh_dev_complex_times(uint32_t *a, const uint32_t *b)
{
    T x[2], y[2], product[2];
    memcpy(x, a, sizeof x);
    memcpy(y, b, sizeof y);
    product[0] = gpsh_dev_cross(x[0], y[0], x[1], y[1], (T)-1);
    product[1] = gpsh_dev_cross(x[0], y[1], x[1], y[0], (T)1);
    memcpy(a, product, sizeof product);
}

// Of two pairs of a value and its place the one with the larger value; of equal values the one with
// the smaller place. A NaN stays.
GPSH_DEV void gpsh_dev_fold_maxloc(uint32_t *a, const uint32_t *b)
{
    double x[2], y[2];
    memcpy(x, a, sizeof x);
    memcpy(y, b, sizeof y);
    bool other = y[0] != y[0] || y[0] > x[0] || (y[0] == x[0] && y[1] < x[1]);
    if (x[0] == x[0] && other)
        memcpy(a, y, sizeof y);
}

// One lane of an unsigned word; T says the width and the sign. Wraps.
template <typename T, typename U> GPSH_DEV U gpsh_dev_fold_lane(U a, U b, int fold)
{
    switch (fold) {
    case GPUSHMEM_COLL_MIN: return (T)b < (T)a ? b : a;
    case GPUSHMEM_COLL_MAX: return (T)b > (T)a ? b : a;
    case GPUSHMEM_COLL_SUM: return (U)(a + b);
    default: return (U)((uint64_t)a * b);
    }
}

// All lanes of a word. U: unsigned, of T's width.
template <typename T, typename U>
GPSH_DEV uint32_t gpsh_dev_fold_lanes(uint32_t a, uint32_t b, int fold)
{
    uint32_t result = 0;
    GPSH_UNROLL
    for (unsigned at = 0; at < 32; at += 8 * sizeof(U))
        result |= (uint32_t)gpsh_dev_fold_lane<T, U>((U)(a >> at), (U)(b >> at), fold) << at;
    return result;
}

template <typename T> GPSH_DEV void gpsh_dev_fold_wide(uint32_t *a, const uint32_t *b, int fold)
{
    uint64_t x = a[0] | (uint64_t)a[1] << 32, y = b[0] | (uint64_t)b[1] << 32;
    x = gpsh_dev_fold_lane<T, uint64_t>(x, y, fold);
    a[0] = (uint32_t)x;
    a[1] = (uint32_t)(x >> 32);
}

GPSH_DEV uint32_t gpsh_dev_fold_bits(uint32_t a, uint32_t b, int fold)
{
    return fold == GPUSHMEM_COLL_AND ? a & b : fold == GPUSHMEM_COLL_OR ? a | b : a ^ b;
}

// ---- Units ----

GPSH_DEV bool gpsh_dev_is_short_float(int type)
{
    return type == GPUSHMEM_COLL_HALF || type == GPUSHMEM_COLL_BFLOAT16;
}

template <int WORDS>
GPSH_DEV void gpsh_dev_widen(gpsh_dev_acc<WORDS> *acc, const gpsh_dev_unit<WORDS> &in, int type)
{
    GPSH_UNROLL
    for (int i = 0; i < WORDS; i++) {
        uint16_t low = (uint16_t)in.w[i], high = (uint16_t)(in.w[i] >> 16);
        bool is_half = type == GPUSHMEM_COLL_HALF;
        acc->w[2 * i] =
            gpsh_dev_bits_of(is_half ? gpsh_dev_half_value(low) : gpsh_dev_bfloat16_value(low));
        acc->w[2 * i + 1] =
            gpsh_dev_bits_of(is_half ? gpsh_dev_half_value(high) : gpsh_dev_bfloat16_value(high));
    }
}

// As 16-bit floats again.
template <int WORDS>
GPSH_DEV gpsh_dev_unit<WORDS> gpsh_dev_narrow_here(const gpsh_dev_acc<WORDS> &acc, int type)
{
    gpsh_dev_unit<WORDS> out;
    bool is_half = type == GPUSHMEM_COLL_HALF;
    GPSH_UNROLL
    for (int i = 0; i < WORDS; i++) {
        float low = gpsh_dev_float_of(acc.w[2 * i]), high = gpsh_dev_float_of(acc.w[2 * i + 1]);
        out.w[i] = is_half
                       ? gpsh_dev_half_bits(low) | (uint32_t)gpsh_dev_half_bits(high) << 16
                       : gpsh_dev_bfloat16_bits(low) | (uint32_t)gpsh_dev_bfloat16_bits(high) << 16;
    }
    return out;
}

template <int WORDS>
GPSH_DEV_CALL gpsh_dev_unit<WORDS> gpsh_dev_narrow(gpsh_dev_acc<WORDS> acc, int type)
{
    GPSH_DEV_BOUNDS();
    return gpsh_dev_narrow_here<WORDS>(acc, type);
}

template <int WORDS>
GPSH_DEV gpsh_dev_unit<WORDS> gpsh_dev_fold_result(const gpsh_dev_acc<WORDS> &acc, int type)
{
    if (gpsh_dev_is_short_float(type))
        return gpsh_dev_narrow<WORDS>(acc, type);
    gpsh_dev_unit<WORDS> out;
    GPSH_UNROLL
    for (int i = 0; i < WORDS; i++)
        out.w[i] = acc.w[i];
    return out;
}

#define GPSH_EACH_WORD(EXPRESSION)                                                                 \
    GPSH_UNROLL                                                                                    \
    for (int i = 0; i < WORDS; i++)                                                                \
    acc->w[i] = EXPRESSION
#define GPSH_EACH_PAIR(CALL)                                                                       \
    GPSH_UNROLL                                                                                    \
    for (int i = 0; i < WORDS; i += 2)                                                             \
    CALL(&acc->w[i], &in.w[i], fold)

// sum is that of the parts. Products and maxima of two doubles each take units of 16 bytes
// (gpushmem_coll_is_wide).
template <int WORDS>
GPSH_DEV void gpsh_dev_fold_complex(gpsh_dev_acc<WORDS> *acc, const gpsh_dev_unit<WORDS> &in,
                                    int type, int fold)
{
    if (fold == GPUSHMEM_COLL_SUM && type == GPUSHMEM_COLL_COMPLEXF) {
        GPSH_EACH_WORD(gpsh_dev_fold_float_bits(acc->w[i], in.w[i], fold));
    } else if (fold == GPUSHMEM_COLL_SUM) {
        GPSH_EACH_PAIR(gpsh_dev_fold_double);
    } else if (type == GPUSHMEM_COLL_COMPLEXF) {
        GPSH_UNROLL
        for (int i = 0; i < WORDS; i += 2)
            gpsh_dev_complex_times<float>(&acc->w[i], &in.w[i]);
    } else if constexpr (WORDS == 4) {
        if (fold == GPUSHMEM_COLL_MAX)
            gpsh_dev_fold_maxloc(acc->w, in.w);
        else
            gpsh_dev_complex_times<double>(acc->w, in.w);
    }
}

// *acc = *acc fold in, of a TYPE that is known.
template <int TYPE, int WORDS>
GPSH_DEV void gpsh_dev_fold_as(gpsh_dev_acc<WORDS> *acc, const gpsh_dev_unit<WORDS> &in, int fold)
{
    if constexpr (TYPE == GPUSHMEM_COLL_HALF || TYPE == GPUSHMEM_COLL_BFLOAT16) {
        gpsh_dev_acc<WORDS> wide;
        gpsh_dev_widen(&wide, in, TYPE);
        GPSH_UNROLL
        for (int i = 0; i < 2 * WORDS; i++)
            acc->w[i] = gpsh_dev_fold_float_bits(acc->w[i], wide.w[i], fold);
    } else if constexpr (TYPE == GPUSHMEM_COLL_COMPLEXF || TYPE == GPUSHMEM_COLL_COMPLEXD) {
        gpsh_dev_fold_complex(acc, in, TYPE, fold);
    } else if constexpr (TYPE == GPUSHMEM_COLL_FLOAT) {
        GPSH_EACH_WORD(gpsh_dev_fold_float_bits(acc->w[i], in.w[i], fold));
    } else if constexpr (TYPE == GPUSHMEM_COLL_DOUBLE) {
        GPSH_EACH_PAIR(gpsh_dev_fold_double);
    } else if constexpr (TYPE == GPUSHMEM_COLL_INT8) {
        GPSH_EACH_WORD((gpsh_dev_fold_lanes<int8_t, uint8_t>(acc->w[i], in.w[i], fold)));
    } else if constexpr (TYPE == GPUSHMEM_COLL_UINT8) {
        GPSH_EACH_WORD((gpsh_dev_fold_lanes<uint8_t, uint8_t>(acc->w[i], in.w[i], fold)));
    } else if constexpr (TYPE == GPUSHMEM_COLL_INT16) {
        GPSH_EACH_WORD((gpsh_dev_fold_lanes<int16_t, uint16_t>(acc->w[i], in.w[i], fold)));
    } else if constexpr (TYPE == GPUSHMEM_COLL_UINT16) {
        GPSH_EACH_WORD((gpsh_dev_fold_lanes<uint16_t, uint16_t>(acc->w[i], in.w[i], fold)));
    } else if constexpr (TYPE == GPUSHMEM_COLL_INT32) {
        GPSH_EACH_WORD((gpsh_dev_fold_lane<int32_t, uint32_t>(acc->w[i], in.w[i], fold)));
    } else if constexpr (TYPE == GPUSHMEM_COLL_UINT32) {
        GPSH_EACH_WORD((gpsh_dev_fold_lane<uint32_t, uint32_t>(acc->w[i], in.w[i], fold)));
    } else if constexpr (TYPE == GPUSHMEM_COLL_INT64) {
        GPSH_EACH_PAIR(gpsh_dev_fold_wide<int64_t>);
    } else {
        GPSH_EACH_PAIR(gpsh_dev_fold_wide<uint64_t>);
    }
}
#undef GPSH_EACH_WORD
#undef GPSH_EACH_PAIR

#define GPSH_FOLD_AS(TYPE)                                                                         \
    case GPUSHMEM_COLL_##TYPE: gpsh_dev_fold_as<GPUSHMEM_COLL_##TYPE>(acc, in, fold); break
// For a constant `fold`.
template <int WORDS>
GPSH_DEV void gpsh_dev_fold_typed(gpsh_dev_acc<WORDS> *acc, const gpsh_dev_unit<WORDS> &in,
                                  int type, int fold)
{
    switch (type) {
        GPSH_FOLD_AS(INT8);
        GPSH_FOLD_AS(INT16);
        GPSH_FOLD_AS(INT32);
        GPSH_FOLD_AS(INT64);
        GPSH_FOLD_AS(UINT8);
        GPSH_FOLD_AS(UINT16);
        GPSH_FOLD_AS(UINT32);
        GPSH_FOLD_AS(HALF);
        GPSH_FOLD_AS(BFLOAT16);
        GPSH_FOLD_AS(FLOAT);
        GPSH_FOLD_AS(DOUBLE);
        GPSH_FOLD_AS(COMPLEXF);
        GPSH_FOLD_AS(COMPLEXD);
    default: gpsh_dev_fold_as<GPUSHMEM_COLL_UINT64>(acc, in, fold); break;
    }
}
#undef GPSH_FOLD_AS

// ---- Single units ----

// acc fold in; `first`: in, there is nothing in acc.
template <int WORDS>
GPSH_DEV_CALL gpsh_dev_acc<WORDS>
gpsh_dev_fold_step(gpsh_dev_acc<WORDS> acc, gpsh_dev_unit<WORDS> in, int type, int fold, bool first)
{
    GPSH_DEV_BOUNDS();
    if (first && gpsh_dev_is_short_float(type)) {
        gpsh_dev_widen(&acc, in, type);
        return acc;
    }
    if (first || fold <= GPUSHMEM_COLL_XOR) {
        GPSH_UNROLL
        for (int i = 0; i < WORDS; i++)
            acc.w[i] = first ? in.w[i] : gpsh_dev_fold_bits(acc.w[i], in.w[i], fold);
        return acc;
    }
    switch (fold) {
    case GPUSHMEM_COLL_MIN: gpsh_dev_fold_typed(&acc, in, type, GPUSHMEM_COLL_MIN); break;
    case GPUSHMEM_COLL_MAX: gpsh_dev_fold_typed(&acc, in, type, GPUSHMEM_COLL_MAX); break;
    case GPUSHMEM_COLL_SUM: gpsh_dev_fold_typed(&acc, in, type, GPUSHMEM_COLL_SUM); break;
    default: gpsh_dev_fold_typed(&acc, in, type, GPUSHMEM_COLL_PROD); break;
    }
    return acc;
}

// How units are folded: any operator, by calls, or one that the compiler knows and puts in place.
struct gpsh_dev_fold_any {
    int type, fold;
};
template <int TYPE, int FOLD> struct gpsh_dev_fold_one {
};

template <int WORDS>
GPSH_DEV gpsh_dev_acc<WORDS> gpsh_dev_fold_with(const gpsh_dev_fold_any &any,
                                                const gpsh_dev_acc<WORDS> &acc,
                                                const gpsh_dev_unit<WORDS> &in, bool first)
{
    return gpsh_dev_fold_step<WORDS>(acc, in, any.type, any.fold, first);
}

template <int TYPE, int FOLD, int WORDS>
GPSH_DEV gpsh_dev_acc<WORDS> gpsh_dev_fold_with(gpsh_dev_fold_one<TYPE, FOLD>,
                                                gpsh_dev_acc<WORDS> acc,
                                                const gpsh_dev_unit<WORDS> &in, bool first)
{
    if (!first) {
        gpsh_dev_fold_as<TYPE>(&acc, in, FOLD);
    } else if (gpsh_dev_is_short_float(TYPE)) {
        gpsh_dev_widen<WORDS>(&acc, in, TYPE);
    } else {
        GPSH_UNROLL
        for (int i = 0; i < WORDS; i++)
            acc.w[i] = in.w[i];
    }
    return acc;
}

GPSH_DEV gpsh_dev_unit<4> gpsh_dev_folded(const gpsh_dev_fold_any &any, const gpsh_dev_acc<4> &acc)
{
    return gpsh_dev_fold_result<4>(acc, any.type);
}

template <int TYPE, int FOLD>
GPSH_DEV gpsh_dev_unit<4> gpsh_dev_folded(gpsh_dev_fold_one<TYPE, FOLD>, const gpsh_dev_acc<4> &acc)
{
    if (gpsh_dev_is_short_float(TYPE))
        return gpsh_dev_narrow_here<4>(acc, TYPE);
    gpsh_dev_unit<4> out;
    GPSH_UNROLL
    for (int i = 0; i < 4; i++)
        out.w[i] = acc.w[i];
    return out;
}

#endif
