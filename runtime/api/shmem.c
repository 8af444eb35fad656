// SPDX-License-Identifier: BSD-3-Clause
// What gpushmem/compat/shmem.h calls beside the library's own functions.
// docs/design/compatibility.md.
#include "gpushmem/compat/shmem.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "api/compat.h"
#include "api/memory.h"
#include "core/config.h"
#include "core/log.h"
#include "job/job.h"
#include "memory/statics.h"

// ---- Failures of functions that return none ----

void gpushmem_shmem_failed(void)
{
    gpsh_compat_failed("shmem");
}

void gpushmem_shmem_void_failed(void)
{
    gpsh_compat_lost("shmem");
}

void gpushmem_shmem_zero(void)
{
    if (gpsh_last_error_code())
        gpushmem_shmem_failed();
}

// ---- Init ----

static int take_symmetric_size(void)
{
    const char *text = getenv("SHMEM_SYMMETRIC_SIZE");
    unsigned long long bytes;
    char value[32];
    if (!text || !*text)
        return 0;
    if (!gpsh_compat_heap_size(text, &bytes))
        return gpsh_fail(GPUSHMEM_ERR_SETTING,
                         "SHMEM_SYMMETRIC_SIZE=%s is no size; write bytes, or a number with K, M, "
                         "G or T, like 512M",
                         text);
    snprintf(value, sizeof value, "%llu", bytes);
    return gpsh_setting_alias("GPUSHMEM_HEAP_SIZE", value, "SHMEM_SYMMETRIC_SIZE");
}

// Programs of OpenSHMEM load and store their symmetric memory, which they could not if it were a
// GPU's. Settings of gpushmem that are there already stay.
int gpsh_shmem_take_environment(void)
{
    gpsh_setting_aliases_begin();
    int status = gpsh_setting_alias("GPUSHMEM_HEAP_KIND", "host", "OpenSHMEM's heap");
    if (!status && getenv("SHMEM_DEBUG"))
        status = gpsh_setting_alias("GPUSHMEM_LOG_LEVEL", "debug", "SHMEM_DEBUG");
    if (!status)
        status = take_symmetric_size();
    gpsh_setting_aliases_end();
    return status;
}

// Half of the programs of OpenSHMEM name static variables: what makes that fail later is said here.
static void warn_of_statics(void)
{
    if (gpsh_statics_why()[0] && gpsh_settings()->static_data != GPSH_STATIC_DATA_OFF &&
        gpsh_job()->my_pe == 0)
        GPSH_LOG(WARN, "heap",
                 "static variables of this program are not symmetric: %s (GPUSHMEM_STATIC_DATA=on "
                 "makes that an error of init, =off says nothing)",
                 gpsh_statics_why());
}

static void print_asked(void)
{
    if (gpsh_job()->my_pe)
        return;
    if (getenv("SHMEM_VERSION"))
        puts(SHMEM_VENDOR_STRING ", OpenSHMEM 1.6");
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
    bool first = !gpsh_job()->n_pes;
    int status = first ? gpsh_shmem_take_environment() : 0;
    if (status < 0)
        gpushmem_shmem_failed();
    gpsh_memory_leave_blocks();
    gpsh_compat_begin("shmem");
    if (status == 0)
        status = gpushmem_init_thread((enum gpushmem_thread_level)requested, provided);
    if (status == GPUSHMEM_ERR_INVALID || status == GPUSHMEM_ERR_STATE)
        gpushmem_shmem_failed();
    else if (status < 0)
        gpsh_clear_error(); // init has logged it
    else if (first) {
        warn_of_statics();
        print_asked();
    }
    return status;
}

static void leave_at_exit(void)
{
    if (gpushmem_initialized())
        gpushmem_shmem_lost(gpushmem_finalize());
}

void gpushmem_shmem_start(void)
{
    static atomic_flag registered = ATOMIC_FLAG_INIT;
    if (!gpushmem_initialized() && gpushmem_shmem_init(GPUSHMEM_THREAD_SINGLE, NULL) == 0 &&
        !atomic_flag_test_and_set(&registered))
        atexit(leave_at_exit);
}
