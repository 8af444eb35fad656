// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE // cpu_set_t
#include <criterion/criterion.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bind.h"
#include "say.h"

static char said[256];

void gpsh_cli_say(const char *command, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(said, sizeof(said), format, args);
    va_end(args);
}

// The plan for two sockets of two NUMA nodes of two cores of two threads, as "0-1 2-3 ...".
static const char *plan(enum gpsh_bind to, int cores, int n_pes)
{
    static char text[512];
    size_t used = 0;
    setenv("HWLOC_SYNTHETIC", "pack:2 group:2 [numa] core:2 pu:2", 1);
    cpu_set_t *sets = gpsh_bind_plan(to, cores, n_pes);
    text[0] = '\0';
    for (int pe = 0; sets && pe < n_pes; pe++) {
        char cpus[64];
        gpsh_bind_print(&sets[pe], cpus, sizeof(cpus));
        used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%s", pe ? " " : "", cpus);
    }
    free(sets);
    return sets ? text : NULL;
}

Test(bind, cores__are_spread_and_whole)
{
    cr_expect_str_eq(plan(GPSH_BIND_CORE, 1, 2), "0-1 8-9");
    cr_expect_str_eq(plan(GPSH_BIND_CORE, 1, 8), "0-1 2-3 4-5 6-7 8-9 10-11 12-13 14-15");
}

Test(bind, more_pes_than_cores__share_in_turn)
{
    cr_expect_str_eq(plan(GPSH_BIND_CORE, 1, 10), "0-1 2-3 4-5 6-7 8-9 10-11 12-13 14-15 0-1 2-3");
}

Test(bind, several_cores__are_neighbours)
{
    cr_expect_str_eq(plan(GPSH_BIND_CORE, 2, 4), "0-3 4-7 8-11 12-15");
    cr_expect_str_eq(plan(GPSH_BIND_CORE, 3, 3), "0-5 6-11 0-5");
}

Test(bind, nodes_and_sockets__are_shared_by_consecutive_pes)
{
    cr_expect_str_eq(plan(GPSH_BIND_NUMA, 1, 4), "0-3 4-7 8-11 12-15");
    cr_expect_str_eq(plan(GPSH_BIND_SOCKET, 1, 4), "0-7 0-7 8-15 8-15");
    cr_expect_str_eq(plan(GPSH_BIND_SOCKET, 1, 3), "0-7 0-7 8-15");
}

Test(bind, more_cores_than_there_are__is_refused)
{
    cr_expect_null(plan(GPSH_BIND_CORE, 9, 1));
    cr_expect_str_eq(said, "--bind: a PE needs 9 cores, and this process may use 8");
}

// A folder like /sys for CPUs 0 to 7: two packages, whose cores take turns as some firmware numbers
// them, and two threads each, n and n + 4.
static const char *make_sysfs(void)
{
    static char folder[64];
    char path[256];
    snprintf(folder, sizeof folder, "/tmp/bind_test.%d", (int)getpid());
    cr_assert_eq(mkdir(folder, 0700), 0, "%s: %s", folder, strerror(errno));
    for (int cpu = 0; cpu < 8; cpu++) {
        snprintf(path, sizeof path, "%s/devices/system/cpu/cpu%d/topology", folder, cpu);
        for (char *slash = path + strlen(folder); slash; slash = strchr(slash + 1, '/')) {
            *slash = '\0';
            mkdir(path, 0700);
            *slash = '/';
        }
        mkdir(path, 0700);
        strcat(path, "/thread_siblings_list");
        FILE *file = fopen(path, "w");
        fprintf(file, "%d,%d\n", cpu % 4, cpu % 4 + 4);
        fclose(file);
        strcpy(strrchr(path, '/'), "/physical_package_id");
        file = fopen(path, "w");
        fprintf(file, "%d\n", cpu % 2);
        fclose(file);
    }
    return folder;
}

// The shares of the CPUs of `mask`, as plan().
static const char *shares_of(const char *sysfs, unsigned mask, int n_pes, int least)
{
    static char text[512];
    cpu_set_t mine, sets[16];
    size_t used = 0;
    CPU_ZERO(&mine);
    for (int cpu = 0; cpu < 16; cpu++)
        if (mask >> cpu & 1)
            CPU_SET(cpu, &mine);
    int bound = gpsh_bind_shares(sysfs, &mine, n_pes, least, sets);
    text[0] = '\0';
    for (int pe = 0; pe < n_pes; pe++) {
        char cpus[64];
        gpsh_bind_print(&sets[pe], cpus, sizeof cpus);
        cr_expect_eq(bound, CPU_COUNT(&sets[pe]) > 0);
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%s", pe ? " " : "", cpus);
    }
    return text;
}

static const char *shares(const char *sysfs, unsigned mask, int n_pes)
{
    return shares_of(sysfs, mask, n_pes, 1);
}

Test(bind, shares__are_all_cores_divided_by_packages)
{
    const char *sysfs = make_sysfs();
    char command[64];
    cr_expect_str_eq(shares(sysfs, 0xff, 2), "0,2,4,6 1,3,5,7");
    cr_expect_str_eq(shares(sysfs, 0xff, 4), "0,4 2,6 1,5 3,7");
    cr_expect_str_eq(shares(sysfs, 0xff, 3), "0,4 2,6 1,3,5,7");
    cr_expect_str_eq(shares(sysfs, 0xff, 5), "    "); // more PEs than cores
    cr_expect_str_eq(shares(sysfs, 0x0f, 4), "0 2 1 3");
    cr_expect_str_eq(shares(sysfs, 0x11, 2), " "); // two threads of one core
    cr_expect_str_eq(shares(sysfs, 0x33, 2), "0,4 1,5");
    cr_expect_str_eq(shares_of(sysfs, 0xff, 2, 2), "0,2,4,6 1,3,5,7");
    cr_expect_str_eq(shares_of(sysfs, 0xff, 3, 2), "  "); // a core for each, not two
    cr_expect_str_eq(shares_of(sysfs, 0x33, 2, 2), " ");
    snprintf(command, sizeof command, "rm -r %s", sysfs);
    cr_expect_eq(system(command), 0);
    cr_expect_str_eq(shares(sysfs, 0x0f, 2), "0-1 2-3"); // no such folder: each CPU is a core
}

Test(bind, print__joins_ranges_and_cuts_what_does_not_fit)
{
    cpu_set_t cpus;
    char text[32];
    CPU_ZERO(&cpus);
    for (int cpu = 0; cpu < 40; cpu += 1 + cpu % 3)
        CPU_SET(cpu, &cpus);
    CPU_SET(1023, &cpus);
    gpsh_bind_print(&cpus, text, sizeof(text));
    cr_expect(strncmp(text, "0-1,3-4,6-7,", 12) == 0, "%s", text);
    cr_expect_lt(strlen(text), sizeof(text));
}
