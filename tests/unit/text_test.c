// SPDX-License-Identifier: BSD-3-Clause
#include <criterion/criterion.h>
#include <string.h>

#include "core/text.h"

static bool is_named(const void *set, int number)
{
    return ((const char *)set)[number] == 'x';
}

Test(text, gpsh_text_add_ranges__set__joins_neighbours_and_ends_with_dots)
{
    static const struct {
        const char *set, *said;
    } rows[] = {
        {"....", ""},
        {"x...", "0"},
        {"xxxx", "0-3"},
        {"x.xx", "0,2-3"},
        {".x.x.x.", "1,3,5"},
        {"xx.xx.x", "0-1,3-4,6"},
        {"xx.xx.xx.xx.xx", "0-1,3-4,6-7,..."},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char said[17] = "";
        struct gpsh_text text = {said, sizeof said, 0};
        gpsh_text_add_ranges(&text, (int)strlen(rows[i].set), is_named, rows[i].set);
        cr_expect_str_eq(said, rows[i].said);
    }
}

Test(text, gpsh_text_add__no_room__cuts_and_stays_within)
{
    char said[8] = "";
    struct gpsh_text text = {said, sizeof said, 0};
    gpsh_text_add(&text, "%s", "1234");
    gpsh_text_add(&text, "%d", 567890);
    gpsh_text_add(&text, "more");
    cr_expect_str_eq(said, "1234567");
}
