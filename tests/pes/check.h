// SPDX-License-Identifier: BSD-3-Clause
// What the programs of several PEs share. A failed check ends the PE at once: the launcher then
// ends the job.
#ifndef GPUSHMEM_TESTS_CHECK_H
#define GPUSHMEM_TESTS_CHECK_H

#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpushmem/gpushmem.h"

#define CHECK(condition) CHECK_THAT(condition, "%s", "")
#define CHECK_THAT(condition, ...)                                                                 \
    do {                                                                                           \
        if (!(condition))                                                                          \
            check_failed(__FILE__, __LINE__, #condition, __VA_ARGS__);                             \
    } while (0)
#define CHECK_OK(call) check_status((call), __FILE__, __LINE__, #call)

static inline int check_my_pe(void)
{
    return gpushmem_initialized() ? gpushmem_my_pe() : -1;
}

__attribute__((format(printf, 4, 5), noreturn)) static inline void
check_failed(const char *file, int line, const char *what, const char *format, ...)
{
    char detail[256];
    va_list args;
    va_start(args, format);
    vsnprintf(detail, sizeof detail, format, args);
    va_end(args);
    fprintf(stderr, "PE %d: %s:%d: not true: %s %s\n", check_my_pe(), file, line, what, detail);
    exit(1);
}

static inline void check_status(int status, const char *file, int line, const char *call)
{
    if (status == 0)
        return;
    fprintf(stderr, "PE %d: %s:%d: %s returned %d (%s): %s\n", check_my_pe(), file, line, call,
            status, gpushmem_strerror(status), gpushmem_last_error());
    exit(1);
}

// How often stress loops run, from argv[1]; slow machines (the guest) pass less.
static inline int check_rounds(int argc, char **argv, int standard)
{
    return argc > 1 ? atoi(argv[1]) : standard;
}

// Bytes that differ from place to place and from seed to seed.
static inline void fill(void *bytes, size_t n, unsigned seed)
{
    for (size_t i = 0; i < n; ++i)
        ((unsigned char *)bytes)[i] =
            (unsigned char)(seed * 151u + (unsigned)i * 29u + (unsigned)(i >> 8) + 1u);
}

#endif
