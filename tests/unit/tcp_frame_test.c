// SPDX-License-Identifier: BSD-3-Clause
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "bootstrap/tcp_wire.h"

enum { PES = 4 };

static struct gpsh_blob_place places[PES];
static _Alignas(8) uint8_t bundle[512];

static size_t add(size_t at, int pe, const char *blob)
{
    gpsh_record_write(bundle + at, pe, blob, strlen(blob));
    return at + gpsh_record_room(strlen(blob));
}

Test(tcp_frame, bundle__all_pes_in_any_order__found)
{
    size_t bytes = add(add(add(add(0, 2, "two"), 0, ""), 3, "three and more"), 1, "12345678");
    cr_assert_eq(gpsh_bundle_parse(bundle, bytes, places, PES), PES);
    cr_expect_eq(places[0].bytes, 0);
    cr_expect_eq(places[1].bytes, 8);
    cr_expect_eq(memcmp(places[2].data, "two", 3), 0);
    cr_expect_eq(memcmp(places[3].data, "three and more", 14), 0);
}

Test(tcp_frame, bundle__one_missing__counted)
{
    cr_expect_eq(gpsh_bundle_parse(bundle, add(0, 1, "one"), places, PES), 1);
    cr_expect_null(places[0].data);
    cr_expect_eq(gpsh_bundle_parse(bundle, 0, places, PES), 0);
}

Test(tcp_frame, bundle__twice_or_of_nobody__refused)
{
    cr_expect_eq(gpsh_bundle_parse(bundle, add(add(0, 1, ""), 1, ""), places, PES), -1);
    cr_expect_eq(gpsh_bundle_parse(bundle, add(0, PES, "x"), places, PES), -1);
    cr_expect_eq(gpsh_bundle_parse(bundle, add(0, -1, "x"), places, PES), -1);
}

Test(tcp_frame, bundle__cut_anywhere__refused)
{
    size_t bytes = add(0, 1, "123456789");
    for (size_t cut = 1; cut < bytes; cut++)
        cr_expect_eq(gpsh_bundle_parse(bundle, cut, places, PES), -1, "%zu bytes", cut);
}

Test(tcp_frame, bundle__claims_more_than_there_is__refused)
{
    static const uint64_t claims[] = {17, 1u << 31, UINT64_MAX, UINT64_MAX - 7, UINT64_MAX - 15};
    size_t bytes = add(0, 1, "0123456789abcdef");
    for (size_t i = 0; i < sizeof claims / sizeof claims[0]; i++) {
        memcpy(bundle + offsetof(struct gpsh_record, bytes), &claims[i], sizeof claims[i]);
        cr_expect_eq(gpsh_bundle_parse(bundle, bytes, places, PES), -1, "claim %zu", i);
    }
}

Test(tcp_frame, check__what_nobody_sends__refused)
{
    struct gpsh_parcel *good = gpsh_parcel_text(GPSH_FRAME_DEAD, 1, 0, "why");
    struct gpsh_frame frame = good->frame;
    const uint32_t magic = frame.magic;
    gpsh_parcel_release(good);
    cr_expect(gpsh_frame_check(&frame));
    frame.bytes = 5000;
    cr_expect_not(gpsh_frame_check(&frame), "a text of 5000 bytes");
    frame.type = GPSH_FRAME_BYE;
    cr_expect_not(gpsh_frame_check(&frame), "a goodbye with a payload");
    frame.type = GPSH_FRAME_DOWN;
    cr_expect(gpsh_frame_check(&frame));
    frame.bytes = UINT64_MAX;
    cr_expect_not(gpsh_frame_check(&frame), "a bundle that no memory holds");
    frame = (struct gpsh_frame){.magic = frame.magic, .type = GPSH_FRAME_TYPES};
    cr_expect_not(gpsh_frame_check(&frame), "a type that does not exist");
    frame = (struct gpsh_frame){.type = GPSH_FRAME_BYE};
    cr_expect_not(gpsh_frame_check(&frame), "no magic");
    static const uint32_t codes[] = {0, 1000, INT32_MAX, (uint32_t)INT32_MIN, UINT32_MAX};
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++) {
        frame = (struct gpsh_frame){.magic = magic, .type = GPSH_FRAME_FAIL, .round = codes[i]};
        cr_expect_not(gpsh_frame_check(&frame), "a failure by the code %u", codes[i]);
    }
    frame.round = 8;
    cr_expect(gpsh_frame_check(&frame));
}

Test(tcp_frame, text__controls_and_length__tamed)
{
    char text[8];
    gpsh_frame_text("a\033[2Jb\n", 7, text, sizeof text);
    cr_expect_str_eq(text, "a?[2Jb?");
    gpsh_frame_text("0123456789", 10, text, sizeof text);
    cr_expect_str_eq(text, "0123456");
}
