// SPDX-License-Identifier: BSD-3-Clause
// What examples share: failures, options, a clock, a progress line, and the end of main. In C, a
// file that includes it defines _GNU_SOURCE first (clock_gettime, isatty).
#ifndef EXAMPLES_EXAMPLE_H
#define EXAMPLES_EXAMPLE_H

#include <gpushmem/gpushmem.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

// Leaves the function with the status of a call that failed. example_end prints the library's
// sentence and ends the program, so nothing is freed on the way.
#define TRY(CALL)                                                                                  \
    do {                                                                                           \
        int try_status = (CALL);                                                                   \
        if (try_status)                                                                            \
            return try_status;                                                                     \
    } while (0)

// What main's part may return besides 0 and the library's negative codes.
enum { EXAMPLE_WRONG_RESULT = 1, EXAMPLE_WRONG_OPTION = 2, EXAMPLE_HELP = 3 };

// ---- Options: --NAME NUMBER or --NAME TEXT ----

struct example_option {
    const char *name, *help;
    long *number, least, most; // number NULL: a text
    const char **text;
};

static inline struct example_option example_number(const char *name, long *number, long least,
                                                   long most, const char *help)
{
    struct example_option option = {name, help, number, least, most, NULL};
    return option;
}

static inline struct example_option example_text(const char *name, const char **text,
                                                 const char *help)
{
    struct example_option option = {name, help, NULL, 0, 0, text};
    return option;
}

static inline int example_help(const char *program, const struct example_option *options,
                               size_t count)
{
    if (gpushmem_my_pe())
        return EXAMPLE_HELP;
    printf("usage: %s [--OPTION VALUE]...\n", program);
    for (const struct example_option *o = options; o < options + count; o++) {
        printf("  %-12s %s", o->name, o->help);
        if (o->number)
            printf(" (%ld to %ld; default %ld)", o->least, o->most, *o->number);
        printf("\n");
    }
    return EXAMPLE_HELP;
}

static inline bool example_set(const struct example_option *o, const char *value)
{
    char *end = NULL;
    if (!value)
        return false;
    if (o->text) {
        *o->text = value;
        return true;
    }
    long number = strtol(value, &end, 10);
    if (end == value || *end || number < o->least || number > o->most)
        return false;
    *o->number = number;
    return true;
}

// Between init and finalize: all PEs read the same options, and PE 0 alone says what is wrong. 0,
// EXAMPLE_HELP or EXAMPLE_WRONG_OPTION.
static inline int example_options(const char *program, int argc, char **argv,
                                  const struct example_option *options, size_t count)
{
    bool speaks = gpushmem_my_pe() == 0;
    for (int i = 1; i < argc; i += 2) {
        const struct example_option *o = options, *end = options + count;
        const char *value = i + 1 < argc ? argv[i + 1] : NULL;
        if (!strcmp(argv[i], "--help"))
            return example_help(program, options, count);
        while (o < end && strcmp(argv[i], o->name))
            o++;
        if (o < end && example_set(o, value))
            continue;
        if (speaks && o == end)
            fprintf(stderr, "%s: there is no option '%s'; --help lists all\n", program, argv[i]);
        else if (speaks && o->number)
            fprintf(stderr, "%s: %s wants a whole number from %ld to %ld, not '%s'\n", program,
                    o->name, o->least, o->most, value ? value : "");
        else if (speaks)
            fprintf(stderr, "%s: %s wants a value: %s\n", program, o->name, o->help);
        return EXAMPLE_WRONG_OPTION;
    }
    return 0;
}

// ---- Time, progress, end ----

static inline double example_now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static inline bool example_shows_progress(void)
{
    return gpushmem_my_pe() == 0 && isatty(STDERR_FILENO);
}

// One line of PE 0, on a terminal only; it goes when all is done.
static inline void example_progress(const char *program, const char *what, long done, long all)
{
    if (!example_shows_progress())
        return;
    if (done < all)
        fprintf(stderr, "\r%s: %s %ld of %ld\033[K", program, what, done, all);
    else
        fprintf(stderr, "\r\033[K");
}

// A file for --csv, on PE 0; NULL, with a sentence, if it cannot be written.
static inline FILE *example_csv(const char *program, const char *path)
{
    FILE *file = fopen(path, "w");
    if (!file)
        fprintf(stderr, "%s: %s cannot be written: %m\n", program, path);
    return file;
}

// Finalizes, and turns what main's part returned into main's exit code. After a failure the PE does
// not wait for others, which might never come.
static inline int example_end(const char *program, int status)
{
    if (status >= 0 && gpushmem_finalize())
        status = -1;
    if (status < 0)
        dprintf(STDERR_FILENO, "%s: %s\n", program, gpushmem_last_error()); // whole: PEs share it
    return status < 0 ? 1 : status == EXAMPLE_HELP ? 0 : status;
}

#endif
