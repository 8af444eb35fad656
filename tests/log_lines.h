// SPDX-License-Identifier: BSD-3-Clause
// What the library's log says, for tests that count it. It is a memory file, so that nothing stays
// of a test that is killed. From C and C++; needs _GNU_SOURCE.
#ifndef TESTS_LOG_LINES_H
#define TESTS_LOG_LINES_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static char log_name[64];
static char log_text[1 << 16];

// Before init.
static inline void log_begin(void)
{
    snprintf(log_name, sizeof log_name, "/proc/self/fd/%d", memfd_create("log", MFD_CLOEXEC));
    setenv("GPUSHMEM_LOG_FILE", log_name, 1);
}

// How many times the log has this text.
static inline int lines_with(const char *text)
{
    int count = 0;
    FILE *log = fopen(log_name, "r");
    size_t bytes = log ? fread(log_text, 1, sizeof log_text - 1, log) : 0;
    log_text[bytes] = '\0';
    if (log)
        fclose(log);
    for (char *at = log_text; (at = strstr(at, text)); at += strlen(text))
        count++;
    return count;
}

#endif
