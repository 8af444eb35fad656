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

// Programs of OpenSHMEM load and store their symmetric memory, which they could not if it were a
// GPU's. Settings of gpushmem that are there already stay.
int gpsh_shmem_take_environment(void)
{
    static const char size[] = "SHMEM_SYMMETRIC_SIZE";
    gpsh_setting_aliases_begin();
    int status = gpsh_setting_alias("GPUSHMEM_HEAP_KIND", "host", "OpenSHMEM's heap");
    if (!status && getenv("SHMEM_DEBUG"))
        status = gpsh_setting_alias("GPUSHMEM_LOG_LEVEL", "debug", "SHMEM_DEBUG");
    if (!status && getenv(size) && *getenv(size))
        status = gpsh_compat_heap_size(size, getenv(size));
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

bool gpsh_shmem_variable(int row, struct gpsh_compat_variable *out)
{
    static const struct gpsh_compat_variable variables[] = {
        {"SHMEM_SYMMETRIC_SIZE", "size", "GPUSHMEM_HEAP_SIZE",
         "bytes of symmetric heap of each PE, like 512M or 1.5G"},
        {"SHMEM_DEBUG", "translated", "GPUSHMEM_LOG_LEVEL", "log what the library does"},
        {"SHMEM_VERSION", "obeyed", "", "PE 0 prints the version at the start"},
        {"SHMEM_INFO", "obeyed", "", "PE 0 prints these four at the start"},
    };
    bool known = row >= 0 && row < (int)(sizeof variables / sizeof variables[0]);
    if (known)
        *out = variables[row];
    return known;
}

static void print_asked(void)
{
    struct gpsh_compat_variable v;
    if (gpsh_job()->my_pe)
        return;
    if (getenv("SHMEM_VERSION"))
        puts(SHMEM_VENDOR_STRING ", OpenSHMEM 1.6");
    for (int row = 0; getenv("SHMEM_INFO") && gpsh_shmem_variable(row, &v); row++)
        printf("%-21s %s\n", v.name, v.help);
    if (getenv("SHMEM_INFO"))
        puts("`gpushmem info` prints the library's own settings.");
    fflush(stdout);
}

int gpushmem_shmem_init(int requested, int *provided)
{
    bool first = !gpsh_job()->n_pes;
    int status = first ? gpsh_shmem_take_environment() : 0;
    bool said = status == 0;
    gpsh_memory_leave_blocks();
    gpsh_compat_begin("shmem");
    if (status == 0)
        status = gpushmem_init_thread((enum gpushmem_thread_level)requested, provided);
    said &= status != GPUSHMEM_ERR_INVALID && status != GPUSHMEM_ERR_STATE; // init logs the others
    if (status < 0)
        gpsh_compat_init_failed("shmem", said, provided != NULL);
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
