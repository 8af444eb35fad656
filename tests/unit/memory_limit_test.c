// SPDX-License-Identifier: BSD-3-Clause
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "memory/memory_limit.h"

static char tree[32];

static void make_tree(void)
{
    snprintf(tree, sizeof tree, "/tmp/gpushmem-groups-%d", (int)getpid());
    cr_assert_eq(mkdir(tree, 0700), 0);
}

static void remove_tree(void)
{
    char command[64];
    snprintf(command, sizeof(command), "rm -r %s", tree);
    cr_assert_eq(system(command), 0);
}

TestSuite(memory_limit, .init = make_tree, .fini = remove_tree);

// Writes a file below the tree; the folders on its way are made.
static const char *put(const char *name, const char *text)
{
    static char path[256];
    int length = snprintf(path, sizeof(path), "%s/", tree);
    snprintf(path + length, sizeof(path) - (size_t)length, "%s", name);
    for (char *slash = path + length; (slash = strchr(slash, '/')); *slash++ = '/') {
        *slash = '\0';
        mkdir(path, 0700);
    }
    FILE *file = fopen(path, "w");
    cr_assert(file);
    fputs(text, file);
    fclose(file);
    return path;
}

static uint64_t limit_with(const char *membership)
{
    return gpsh_memory_limit_of_groups(put("membership", membership), tree);
}

Test(memory_limit, own_group__is_found_below_the_root)
{
    put("memory.max", "max\n");
    put("job/memory.max", "max\n");
    put("job/step/memory.max", "4096000\n");
    cr_expect_eq(limit_with("0::/job/step\n"), 4096000);
    cr_expect_eq(limit_with("0::/job\n"), UINT64_MAX);
}

Test(memory_limit, group_above__holds_too)
{
    put("job/memory.max", "1000\n");
    put("job/step/memory.max", "2000\n");
    cr_expect_eq(limit_with("0::/job/step\n"), 1000);
}

Test(memory_limit, version_1__has_a_folder_of_its_own)
{
    put("memory/memory.limit_in_bytes", "9223372036854771712\n");
    put("memory/batch/memory.limit_in_bytes", "3000\n");
    put("cpu/batch/memory.limit_in_bytes", "7\n");
    cr_expect_eq(limit_with("5:cpu,cpuacct:/batch\n4:memory:/batch\n0::/\n"), 3000);
}

Test(memory_limit, path_from_outside_a_container__the_root_counts)
{
    put("memory.max", "5000\n");
    cr_expect_eq(limit_with("0::/docker/0123\n"), 5000);
}

Test(memory_limit, nothing_to_read__is_no_limit)
{
    cr_expect_eq(limit_with("nonsense\n:\n"), UINT64_MAX);
    cr_expect_eq(gpsh_memory_limit_of_groups("/no/such/file", tree), UINT64_MAX);
}

Test(memory_limit, machine__is_the_most)
{
    cr_expect_gt(gpsh_memory_limit(), 0);
    cr_expect_lt(gpsh_memory_limit(), UINT64_MAX);
}
