// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE // setenv
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/scratch.h"

static char dir[128];

static void expect_in(const char *parent)
{
    struct stat info;
    cr_assert_eq(gpsh_scratch_dir("scratch-test", 40, dir, sizeof dir), 0, "%s: %s", dir,
                 strerror(errno));
    cr_expect_eq(strncmp(dir, parent, strlen(parent)), 0, "%s is not in %s", dir, parent);
    cr_assert_eq(stat(dir, &info), 0);
    cr_expect_eq(info.st_mode & 0777, 0700);
    rmdir(dir);
}

Test(scratch, without_TMPDIR__in_tmp)
{
    unsetenv("TMPDIR");
    expect_in("/tmp/scratch-test-");
}

Test(scratch, TMPDIR__is_taken_if_absolute_and_short)
{
    setenv("TMPDIR", "/dev/shm", 1);
    expect_in("/dev/shm/scratch-test-");
    setenv("TMPDIR", "here", 1);
    expect_in("/tmp/");
    setenv("TMPDIR", "", 1);
    expect_in("/tmp/");
    setenv("TMPDIR", "/dev/shm/../shm/../shm/../shm/../shm/../shm", 1);
    expect_in("/tmp/");
}

Test(scratch, twice__two_directories)
{
    char other[128];
    unsetenv("TMPDIR");
    cr_assert_eq(gpsh_scratch_dir("scratch-test", 40, dir, sizeof dir), 0);
    cr_assert_eq(gpsh_scratch_dir("scratch-test", 40, other, sizeof other), 0);
    cr_expect(strcmp(dir, other));
    rmdir(dir);
    rmdir(other);
}

Test(scratch, TMPDIR_that_cannot_be_written__in_tmp)
{
    setenv("TMPDIR", "/nowhere/at/all", 1);
    expect_in("/tmp/scratch-test-");
    setenv("TMPDIR", "/proc", 1);
    expect_in("/tmp/scratch-test-");
}

Test(scratch, what_cannot_be__is_told)
{
    char little[16];
    cr_expect_eq(gpsh_scratch_dir("no/such", 40, dir, sizeof dir), -1);
    cr_expect_eq(errno, ENOENT);
    cr_expect(strstr(dir, "/tmp/no/such-"), "%s", dir);
    unsetenv("TMPDIR");
    cr_expect_eq(gpsh_scratch_dir("scratch-test", 40, little, sizeof little), -1);
    cr_expect_eq(errno, ENAMETOOLONG);
}
