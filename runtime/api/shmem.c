// SPDX-License-Identifier: BSD-3-Clause
// What gpushmem/compat/shmem.h calls beside the library's own functions.
// docs/adr/0034-openshmem.md.
#define _GNU_SOURCE // setenv
#include "gpushmem/compat/shmem.h"

#include <ctype.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/log.h"
#include "state/state.h"

// ---- Failures of functions that return none ----

// Sentences that were logged, by their hash. A program that fails in ever new ways is told once
// that this is enough.
enum { LOGGED = 256 };
static _Atomic uint64_t logged[LOGGED];
static atomic_flag enough = ATOMIC_FLAG_INIT;

static bool is_new(const char *sentence)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (const char *c = sentence; *c; c++)
        hash = (hash ^ (unsigned char)*c) * UINT64_C(0x100000001b3);
    for (unsigned i = 0; i < LOGGED; i++) {
        uint64_t found = 0;
        if (atomic_compare_exchange_strong(&logged[(hash + i) % LOGGED], &found, hash))
            return true;
        if (found == hash)
            return false;
    }
    if (!atomic_flag_test_and_set(&enough))
        GPSH_LOG(ERROR, "shmem",
                 "%d different failures were logged; GPUSHMEM_LOG_LEVEL=debug logs further ones",
                 LOGGED);
    return false;
}

// The program knows gpushmem_X as shmem_X, and knows no gpushmem_X_status.
static void log_failure(const char *sentence)
{
    const char status[] = "_status";
    const size_t prefix = strlen("gpu"), suffix = strlen(status);
    size_t end = strcspn(sentence, ":,( ");
    if (strncmp(sentence, "gpushmem_", 9) != 0) {
        GPSH_LOG(ERROR, "shmem", "%s", sentence);
        return;
    }
    size_t name = end - prefix;
    if (name > suffix && strncmp(sentence + end - suffix, status, suffix) == 0)
        name -= suffix;
    GPSH_LOG(ERROR, "shmem", "%.*s%s", (int)name, sentence + prefix, sentence + end);
}

void gpushmem_shmem_failed(void)
{
    const char *sentence = gpsh_last_error();
    if (gpsh_last_error_code() && is_new(sentence))
        log_failure(sentence);
    gpsh_clear_error();
}

void gpushmem_shmem_zero(void)
{
    if (gpsh_last_error_code())
        gpushmem_shmem_failed();
}

// ---- Init ----

// A number, which may have a fraction, and a suffix; false if it is neither.
static bool parse_symmetric_size(const char *text, uint64_t *bytes)
{
    char *end;
    double value = strtod(text, &end);
    const char *suffixes = "KMGT", *suffix = *end ? strchr(suffixes, toupper(*end)) : NULL;
    for (const char *s = suffixes; suffix && s <= suffix; s++)
        value *= 1024;
    end += suffix != NULL;
    if (end == text || *end || !(value >= 1) || value > 1e15)
        return false;
    *bytes = (uint64_t)value;
    return true;
}

static int take_symmetric_size(void)
{
    const char *text = getenv("SHMEM_SYMMETRIC_SIZE");
    uint64_t bytes;
    char value[32];
    if (!text || !*text)
        return 0;
    if (!parse_symmetric_size(text, &bytes))
        return gpsh_fail(GPUSHMEM_ERR_SETTING,
                         "SHMEM_SYMMETRIC_SIZE=%s is no size; write bytes, or a number with K, M, "
                         "G or T, like 512M",
                         text);
    snprintf(value, sizeof value, "%llu", (unsigned long long)bytes);
    setenv("GPUSHMEM_HEAP_SIZE", value, 0);
    return 0;
}

// Programs of OpenSHMEM load and store their symmetric memory, which they could not if it were a
// GPU's. Settings of gpushmem that are there already stay.
static int take_environment(void)
{
    setenv("GPUSHMEM_HEAP_KIND", "host", 0);
    if (getenv("SHMEM_DEBUG"))
        setenv("GPUSHMEM_LOG_LEVEL", "debug", 0);
    return take_symmetric_size();
}

static void print_asked(void)
{
    if (gpsh.my_pe)
        return;
    if (getenv("SHMEM_VERSION"))
        puts(SHMEM_VENDOR_STRING ", OpenSHMEM 1.5");
    if (getenv("SHMEM_INFO"))
        puts("SHMEM_SYMMETRIC_SIZE  size of the symmetric heap of each PE, like 512M\n"
             "SHMEM_DEBUG           log what the library does\n"
             "SHMEM_VERSION         print the version at the start\n"
             "SHMEM_INFO            print this text\n"
             "`gpushmem info` prints the library's own settings.");
    fflush(stdout);
}

int gpushmem_shmem_init(int requested, int *provided)
{
    bool first = !gpsh.n_pes;
    int status = first ? take_environment() : 0;
    if (status < 0)
        gpushmem_shmem_failed();
    gpsh.openshmem = true;
    if (status == 0)
        status = gpushmem_init_thread((enum gpushmem_thread_level)requested, provided);
    if (status == GPUSHMEM_ERR_INVALID || status == GPUSHMEM_ERR_STATE)
        gpushmem_shmem_failed();
    else if (status < 0)
        gpsh_clear_error(); // init has logged it
    else if (first)
        print_asked();
    return status;
}

static void leave_at_exit(void)
{
    if (gpushmem_initialized())
        gpushmem_shmem_check(gpushmem_finalize());
}

void gpushmem_shmem_start(void)
{
    static atomic_flag registered = ATOMIC_FLAG_INIT;
    if (!gpushmem_initialized() && gpushmem_shmem_init(GPUSHMEM_THREAD_SINGLE, NULL) == 0 &&
        !atomic_flag_test_and_set(&registered))
        atexit(leave_at_exit);
}
