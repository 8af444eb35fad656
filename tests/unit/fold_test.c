// SPDX-License-Identifier: BSD-3-Clause
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "comm/fold.h"
#include "gpushmem/device_abi.h"

// One element from each of n sources.
static void fold(enum gpsh_type type, enum gpsh_fold_op op, void *dest, const void *values, int n)
{
    const char *sources[8];
    for (int i = 0; i < n; i++)
        sources[i] = (const char *)values + (size_t)i * gpsh_type_size(type);
    gpsh_fold_all(type, op, dest, sources, n, 0, 1);
}

// Through the accumulator and back.
static uint16_t rounded(enum gpsh_type type, float value)
{
    struct gpsh_fold acc;
    uint16_t bits;
    memcpy(acc.bytes, &value, sizeof value);
    gpsh_fold_store(type, &acc, &bits, 1);
    return bits;
}

static float widened(enum gpsh_type type, uint16_t bits)
{
    struct gpsh_fold acc;
    float value;
    gpsh_fold_load(type, &acc, &bits, 1);
    memcpy(&value, acc.bytes, sizeof value);
    return value;
}

Test(fold, half__each_value__comes_back)
{
    for (uint32_t bits = 0; bits < 65536; bits++) {
        bool nan = (bits & 0x7c00) == 0x7c00 && (bits & 0x3ff);
        float value = widened(GPSH_HALF, (uint16_t)bits);
        cr_assert_eq(nan, value != value);
        cr_assert_eq(rounded(GPSH_HALF, value), nan ? 0x7fff : bits, "%#x", bits);
    }
    cr_expect_eq(widened(GPSH_HALF, 0x3c00), 1.0f);
    cr_expect_eq(widened(GPSH_HALF, 0x7bff), 65504.0f);
    cr_expect_eq(widened(GPSH_HALF, 0x8001), -0x1p-24f);
}

Test(fold, split__any_bits__are_joined_again)
{
    const uint32_t bits[] = {0, 1, 0x80000000, 0x3f800001, 0x7f800000, 0x7fc01234, 0xffffffff};
    enum { COUNT = sizeof bits / sizeof *bits };
    struct gpsh_fold acc, joined;
    uint16_t upper[COUNT], lower[COUNT];
    memcpy(acc.bytes, bits, sizeof bits);
    gpsh_fold_split(&acc, upper, lower, COUNT);
    cr_expect_eq(upper[3], 0x3f80);
    cr_expect_eq(lower[3], 1);
    gpsh_fold_join(&joined, upper, lower, COUNT);
    cr_expect_arr_eq(joined.bytes, bits, sizeof bits);
}

Test(fold, half__between_two_values__goes_to_the_nearest_or_the_even_one)
{
    for (uint32_t bits = 0; bits < 0x7bff; bits++) {
        float low = widened(GPSH_HALF, (uint16_t)bits),
              high = widened(GPSH_HALF, (uint16_t)(bits + 1));
        float middle = (low + high) / 2; // exact
        cr_assert_eq(rounded(GPSH_HALF, middle), bits + bits % 2, "%#x", bits);
        cr_assert_eq(rounded(GPSH_HALF, nextafterf(middle, 0)), bits, "%#x", bits);
        cr_assert_eq(rounded(GPSH_HALF, -nextafterf(middle, high)), 0x8000 | (bits + 1), "%#x",
                     bits);
    }
    cr_expect_eq(rounded(GPSH_HALF, 65519.99f), 0x7bff);
    cr_expect_eq(rounded(GPSH_HALF, 65520.0f), 0x7c00);
    cr_expect_eq(rounded(GPSH_HALF, 1e30f), 0x7c00);
}

Test(fold, bfloat16__is_folded_in_float_and_rounded_once)
{
    const uint16_t values[] = {0x4380, 0x3f40, 0x3f40}; // 256, 0.75, 0.75
    uint16_t sum;
    fold(GPSH_BFLOAT16, GPSH_SUM, &sum, values, 3);
    cr_expect_eq(sum, 0x4381, "258 and not 256, which rounding each time gives");
    for (uint32_t bits = 0; bits < 65536; bits++) {
        bool nan = (bits & 0x7f80) == 0x7f80 && (bits & 0x7f);
        cr_assert_eq(rounded(GPSH_BFLOAT16, widened(GPSH_BFLOAT16, (uint16_t)bits)),
                     nan ? 0x7fff : bits);
    }
    cr_expect_eq(rounded(GPSH_BFLOAT16, 1.0f + 0x1p-8f), 0x3f80, "a tie goes to even");
    cr_expect_eq(rounded(GPSH_BFLOAT16, 1.0f + 0x3p-8f), 0x3f82);
}

Test(fold, floating_point__min_and_max__know_nan_and_signed_zero)
{
    const double with_nan[] = {1, NAN, 2}, nan_first[] = {NAN, 1, 2};
    double result;
    fold(GPSH_DOUBLE, GPSH_MIN, &result, with_nan, 3);
    cr_expect(isnan(result));
    fold(GPSH_DOUBLE, GPSH_MAX, &result, nan_first, 3);
    cr_expect(isnan(result));
    for (int order = 0; order < 2; order++) {
        const float zeros[] = {order ? -0.0f : 0.0f, order ? 0.0f : -0.0f};
        float zero;
        fold(GPSH_FLOAT, GPSH_MIN, &zero, zeros, 2);
        cr_expect(signbit(zero));
        fold(GPSH_FLOAT, GPSH_MAX, &zero, zeros, 2);
        cr_expect(!signbit(zero));
    }
}

Test(fold, integers__wrap)
{
    const int32_t values[] = {INT32_MAX, INT32_MAX, 7};
    const uint16_t shorts[] = {65535, 65535};
    int32_t result;
    uint16_t product;
    fold(GPSH_INT32, GPSH_SUM, &result, values, 3);
    cr_expect_eq(result, 5);
    fold(GPSH_INT32, GPSH_PROD, &result, values, 3);
    cr_expect_eq(result, 7);
    fold(GPSH_UINT16, GPSH_PROD, &product, shorts, 2);
    cr_expect_eq(product, 1);
}

Test(fold, signed_and_unsigned__differ)
{
    const uint8_t values[] = {200, 100};
    uint8_t result;
    fold(GPSH_UINT8, GPSH_MAX, &result, values, 2);
    cr_expect_eq(result, 200);
    fold(GPSH_INT8, GPSH_MAX, &result, values, 2);
    cr_expect_eq(result, 100);
}

Test(fold, complex_product__each_part_is_rounded)
{
    // With a fused multiply-add the real part would not be 0.
    const float values[] = {1 + 0x1p-12f, 1, 1, 1 + 0x1p-12f};
    float result[2];
    fold(GPSH_COMPLEXF, GPSH_PROD, result, values, 2);
    cr_expect_eq(result[0], 0);
    const float fused[] = {1 + 0x1p-23f, 1, 1 + 0x1p-23f, 1};
    fold(GPSH_COMPLEXF, GPSH_PROD, result, fused, 2);
    const volatile float square = (1 + 0x1p-23f) * (1 + 0x1p-23f);
    cr_expect_eq(result[0], square - 1);
}

Test(fold, many_elements_and_an_offset__in_place)
{
    enum { N = 1000 };
    static int64_t a[N + 3], b[N + 3];
    const char *sources[] = {(char *)a, (char *)b};
    for (int i = 0; i < N + 3; i++) {
        a[i] = i;
        b[i] = 1000 * i;
    }
    gpsh_fold_all(GPSH_INT64, GPSH_SUM, a + 3, sources, 2, 3 * sizeof *a, N);
    for (int i = 3; i < N + 3; i++)
        cr_assert_eq(a[i], 1001 * i);
    cr_assert_eq(a[2], 2);
}

// Kernels fetch pieces of all members into their staging memory: a slot of no bytes would never
// end.
Test(fold, staging_memory_of_kernels__any_team__holds_16_bytes_of_each_member)
{
    const int sizes[] = {2, 3, 512, 1024, 1025, 4096, 4097, 16384};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        int n = sizes[i];
        uint64_t slot = gpushmem_coll_fetch_slot(n, n, false);
        uint64_t stage = gpushmem_coll_calls_at(n) - gpushmem_coll_stage_at(n, false);
        cr_expect(slot >= 16 && slot * (unsigned)n <= stage, "kernels, %d members", n);
        slot = gpushmem_coll_fetch_slot(n, n, true);
        stage = gpushmem_coll_channel_at(n, 1, false) - gpushmem_coll_stage_at(n, true);
        cr_expect(slot >= 16 && slot * (unsigned)n <= stage, "streams, %d members", n);
    }
}
