// SPDX-License-Identifier: BSD-3-Clause
// What the library's log says, for tests that count it. From C and C++; setenv needs _GNU_SOURCE.
#ifndef TESTS_LOG_LINES_H
#define TESTS_LOG_LINES_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char log_name[64];
static char log_text[1 << 16];

// Before init.
static inline void log_begin(void)
{
    snprintf(log_name, sizeof log_name, "/tmp/gpushmem-log-%d", (int)getpid());
    unlink(log_name); // of an earlier process of this number
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

static inline void log_end(void)
{
    unlink(log_name);
}

#endif
