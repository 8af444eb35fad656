// SPDX-License-Identifier: BSD-3-Clause
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "core/printable.h"

static const char *printable(const char *from, size_t bytes)
{
    static char *text;
    free(text);
    text = malloc(bytes); // of just that size, so that a sanitizer sees what is beyond
    memcpy(text, from, strlen(from) + 1);
    gpsh_printable(text, bytes);
    return text;
}

Test(printable, gpsh_printable__text__stays)
{
    static const char *const texts[] = {"", "plain ~ \\x1b",
                                        "\303\274 \342\202\254 \360\237\230\200 \302\240"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        cr_expect_str_eq(printable(texts[i], strlen(texts[i]) + 1), texts[i]);
}

Test(printable, gpsh_printable__what_a_terminal_obeys__becomes_an_escape)
{
    static const char *const rows[][2] = {
        {"\033[2J", "\\x1b[2J"},
        {"a\nb\r\tc\177", "a\\x0ab\\x0d\\x09c\\x7f"},
        {"\233A", "\\x9bA"},                 // a control character of 8-bit terminals
        {"\302\233A", "\\xc2\\x9bA"},        // the same in UTF-8
        {"\300\233", "\\xc0\\x9b"},          // longer than needed
        {"\340\202\233", "\\xe0\\x82\\x9b"}, // likewise
        {"\342\202", "\\xe2\\x82"},          // too short
        {"\342\202\033", "\\xe2\\x82\\x1b"}, // likewise
        {"\365\200\200\200", "\\xf5\\x80\\x80\\x80"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        cr_expect_str_eq(printable(rows[i][0], 32), rows[i][1]);
        cr_expect_str_eq(printable(rows[i][1], 32), rows[i][1], "twice is once");
    }
}

// In each room that there may be the result has an end and is the beginning of the whole.
Test(printable, gpsh_printable__no_room__is_cut)
{
    static const char from[] = "\033\033ab\n";
    for (size_t bytes = sizeof from; bytes < 20; bytes++) {
        const char *text = printable(from, bytes);
        cr_expect_lt(strlen(text), bytes);
        cr_expect_eq(strncmp(text, "\\x1b\\x1bab\\x0a", strlen(text)), 0, "'%s'", text);
    }
}
