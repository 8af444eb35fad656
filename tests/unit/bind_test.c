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

// A folder like /sys.
static const char *sysfs(void)
{
    static char folder[64];
    snprintf(folder, sizeof folder, "/tmp/bind_test.%d", (int)getpid());
    return folder;
}

// A file of a line below it.
static void say_there(const char *name, const char *format, ...)
{
    char path[256];
    va_list args;
    snprintf(path, sizeof path, "%s/devices/system/%s", sysfs(), name);
    for (char *slash = path + 1; (slash = strchr(slash, '/')); *slash++ = '/') {
        *slash = '\0';
        cr_assert(mkdir(path, 0700) == 0 || errno == EEXIST, "%s: %s", path, strerror(errno));
    }
    FILE *file = fopen(path, "w");
    cr_assert(file, "%s: %s", path, strerror(errno));
    va_start(args, format);
    vfprintf(file, format, args);
    va_end(args);
    fputc('\n', file);
    fclose(file);
}

static void remove_sysfs(void)
{
    char command[64];
    snprintf(command, sizeof command, "rm -r %s", sysfs());
    cr_expect_eq(system(command), 0);
}

// The sets of a plan, as "0-1 2-3 ...".
static const char *text_of(const cpu_set_t *sets, int n_pes)
{
    static char text[512];
    size_t used = 0;
    text[0] = '\0';
    for (int pe = 0; pe < n_pes; pe++) {
        char cpus[64];
        gpsh_bind_print(&sets[pe], cpus, sizeof cpus);
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%s", pe ? " " : "", cpus);
    }
    return text;
}

// With the CPUs of `mask`.
static const char *fill(unsigned mask, enum gpsh_bind to, int cores, int n_pes)
{
    cpu_set_t mine, sets[16];
    CPU_ZERO(&mine);
    for (int cpu = 0; cpu < 16; cpu++)
        if (mask >> cpu & 1)
            CPU_SET(cpu, &mine);
    int status = gpsh_bind_fill(sysfs(), &mine, to, cores, n_pes, sets);
    return status ? NULL : text_of(sets, n_pes);
}

// For two sockets of two NUMA nodes of two cores of two threads.
static const char *plan_of(unsigned mask, enum gpsh_bind to, int cores, int n_pes)
{
    char name[96];
    for (int cpu = 0; cpu < 16; cpu++) {
        snprintf(name, sizeof name, "cpu/cpu%d/topology/thread_siblings_list", cpu);
        say_there(name, "%d-%d", cpu / 2 * 2, cpu / 2 * 2 + 1);
        snprintf(name, sizeof name, "cpu/cpu%d/topology/physical_package_id", cpu);
        say_there(name, "%d", cpu / 8);
    }
    say_there("node/has_cpu", "0-3");
    for (int node = 0; node < 4; node++) {
        snprintf(name, sizeof name, "node/node%d/cpulist", node);
        say_there(name, "%d-%d", 4 * node, 4 * node + 3);
    }
    const char *text = fill(mask, to, cores, n_pes);
    remove_sysfs();
    return text;
}

static const char *plan(enum gpsh_bind to, int cores, int n_pes)
{
    return plan_of(0xffff, to, cores, n_pes);
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

Test(bind, processors_that_may_not_be_used__are_left_out)
{
    cr_expect_str_eq(plan_of(0x0ff2, GPSH_BIND_CORE, 1, 3), "1 4-5 8-9");
    cr_expect_str_eq(plan_of(0x0ff2, GPSH_BIND_NUMA, 1, 3), "1 4-7 8-11");
    cr_expect_str_eq(plan_of(0x0ff2, GPSH_BIND_SOCKET, 1, 2), "1,4-7 8-11");
}

Test(bind, more_cores_than_there_are__is_refused)
{
    cr_expect_null(plan(GPSH_BIND_CORE, 9, 1));
    cr_expect_str_eq(said, "--bind: a PE needs 9 cores, and this process may use 8");
}

// CPUs 0 to 7: two packages, whose cores take turns as some firmware numbers them, and two threads
// each, n and n + 4.
static void make_turns(void)
{
    char name[96];
    for (int cpu = 0; cpu < 8; cpu++) {
        snprintf(name, sizeof name, "cpu/cpu%d/topology/thread_siblings_list", cpu);
        say_there(name, "%d,%d", cpu % 4, cpu % 4 + 4);
        snprintf(name, sizeof name, "cpu/cpu%d/topology/physical_package_id", cpu);
        say_there(name, "%d", cpu % 2);
    }
}

static const char *shares(unsigned mask, int n_pes)
{
    return fill(mask, GPSH_BIND_SHARE, 0, n_pes);
}

Test(bind, shares__are_all_cores_divided_by_packages)
{
    make_turns();
    cr_expect_str_eq(shares(0xff, 2), "0,2,4,6 1,3,5,7");
    cr_expect_str_eq(shares(0xff, 4), "0,4 2,6 1,5 3,7");
    cr_expect_str_eq(shares(0xff, 3), "0,4 2,6 1,3,5,7");
    cr_expect_str_eq(shares(0xff, 5), "    "); // more PEs than cores
    cr_expect_str_eq(shares(0x0f, 4), "0 2 1 3");
    cr_expect_str_eq(shares(0x11, 2), " "); // two threads of one core
    cr_expect_str_eq(shares(0x33, 2), "0,4 1,5");
    cr_expect_str_eq(fill(0xff, GPSH_BIND_UNSET, 0, 2), "0,2,4,6 1,3,5,7");
    cr_expect_str_eq(fill(0xff, GPSH_BIND_UNSET, 0, 3), "  "); // a core for each, not two
    cr_expect_str_eq(fill(0x33, GPSH_BIND_UNSET, 0, 2), " ");
    cr_expect_str_eq(fill(0xff, GPSH_BIND_SOCKET, 1, 2), "0,2,4,6 1,3,5,7");
    remove_sysfs();
    cr_expect_str_eq(shares(0x0f, 2), "0-1 2-3"); // no such folder: each CPU is a core
    cr_expect_str_eq(fill(0x0f, GPSH_BIND_NUMA, 1, 2), "0-3 0-3"); // of one node
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
