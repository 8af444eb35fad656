// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE // MFD_HUGETLB
#include <criterion/criterion.h>
#include <linux/memfd.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "bootstrap/bootstrap.h"
#include "core/config.h"
#include "core/error.h"
#include "memory/symmetric.h"

// Stands in for the C library's: files of huge pages that no machine needs to have.
static bool pages_are_small;

int memfd_create(const char *name, unsigned flags)
{
    unsigned huge = MFD_HUGETLB | (unsigned)MFD_HUGE_2MB | (unsigned)MFD_HUGE_1GB;
    return (int)syscall(SYS_memfd_create, name, pages_are_small ? flags & ~huge : flags);
}

static const struct gpsh_bootstrap alone = {.n_pes = 1, .node_n_pes = 1};

// The region as a peer knows it before it is mapped there.
static struct gpsh_symmetric peer_of(const struct gpsh_symmetric *region)
{
    return (struct gpsh_symmetric){.fd = region->fd,
                                   .bytes = region->bytes,
                                   .room = region->room,
                                   .front = region->front,
                                   .at = region->at};
}

Test(symmetric, create_and_map__share_bytes)
{
    struct gpsh_symmetric region;
    cr_assert_eq(gpsh_symmetric_create(&region, 1 << 20, 0, 0, GPSH_PAGES_AUTO, &alone), 0, "%s",
                 gpsh_last_error());
    struct gpsh_symmetric twin = peer_of(&region);
    cr_assert_eq(gpsh_symmetric_map(&twin, 0, NULL), 0);
    region.base[12345] = 42;
    cr_expect_eq(twin.base[12345], 42);
    cr_expect(strlen(region.pages) > 0);
    gpsh_symmetric_unmap(twin.base, region.bytes);
    gpsh_symmetric_destroy(&region);
    gpsh_symmetric_destroy(&region);
}

Test(symmetric, larger_than_the_machine__is_refused_with_the_limit)
{
    cr_expect_eq(gpsh_symmetric_check(16ull << 40, 4096, 1), GPUSHMEM_ERR_NO_MEMORY);
    cr_expect(strstr(gpsh_last_error(), "GPUSHMEM_HEAP_SIZE"), "%s", gpsh_last_error());
    cr_expect_eq(gpsh_symmetric_check(1ull << 40, 4096, 1 << 10), GPUSHMEM_ERR_NO_MEMORY);
    cr_expect(strstr(gpsh_last_error(), "there are 1024"), "%s", gpsh_last_error());
    cr_expect_eq(gpsh_symmetric_check(1ull << 30, 4096, 1 << 30), GPUSHMEM_ERR_NO_MEMORY);
    cr_expect(strstr(gpsh_last_error(), "GPUSHMEM_TEAM_MEMORY"), "%s", gpsh_last_error());
}

Test(symmetric, giant_pages_that_are_not_there__sentence_names_the_fix)
{
    struct gpsh_symmetric region;
    int status = gpsh_symmetric_create(&region, 1 << 20, 0, 0, GPSH_PAGES_1G, &alone);
    if (!status) { // this machine has them
        gpsh_symmetric_destroy(&region);
        return;
    }
    cr_expect_eq(status, GPUSHMEM_ERR_NO_MEMORY);
    cr_expect(strstr(gpsh_last_error(), "nr_hugepages"), "%s", gpsh_last_error());
}

Test(symmetric, peer_memory_too_small__is_refused)
{
    struct gpsh_symmetric region;
    cr_assert_eq(gpsh_symmetric_create(&region, 1 << 20, 0, 0, GPSH_PAGES_OFF, &alone), 0);
    struct gpsh_symmetric twin = peer_of(&region);
    twin.bytes = twin.room = 2 << 20;
    cr_expect_eq(gpsh_symmetric_map(&twin, 5, NULL), GPUSHMEM_ERR_PEER_DATA);
    cr_expect(strstr(gpsh_last_error(), "PE 5"));
    cr_expect_null(twin.base);
    gpsh_symmetric_destroy(&region);
}

Test(symmetric, front__is_before_the_region_in_one_mapping)
{
    struct gpsh_symmetric region;
    cr_assert_eq(gpsh_symmetric_create(&region, 4 << 20, 8 << 20, 5000, GPSH_PAGES_OFF, &alone), 0);
    cr_expect_eq(region.front, 8192);
    cr_expect_eq(region.at, 2 << 20);
    cr_expect_eq((uintptr_t)region.base % (4 << 20), 0);
    struct gpsh_symmetric twin = peer_of(&region);
    cr_assert_eq(gpsh_symmetric_map(&twin, 0, NULL), 0);
    for (uint64_t at = 0; at < region.front + region.bytes; at += 4096)
        region.base[at - region.front] = (char)(at / 4096 + 1);
    cr_assert_eq(gpsh_symmetric_resize(&region, 8 << 20, 1), 0, "%s", gpsh_last_error());
    region.base[(8 << 20) - 1] = 42;
    cr_expect_arr_eq(twin.base - twin.front, region.base - region.front, 8192 + (8 << 20));
    cr_assert_eq(gpsh_symmetric_resize(&region, 4 << 20, 1), 0);
    gpsh_symmetric_unmap(twin.base - twin.front, twin.front + twin.room);
    twin = peer_of(&region);
    twin.at = UINT64_MAX - 4095;
    cr_expect_eq(gpsh_symmetric_map(&twin, 3, NULL), GPUSHMEM_ERR_PEER_DATA);
    gpsh_symmetric_destroy(&region);
}

Test(symmetric, resize__reaches_mappings_that_are_there)
{
    struct gpsh_symmetric region;
    cr_assert_eq(gpsh_symmetric_create(&region, 1 << 20, 8 << 20, 0, GPSH_PAGES_OFF, &alone), 0);
    struct gpsh_symmetric twin = peer_of(&region);
    cr_assert_eq(gpsh_symmetric_map(&twin, 0, NULL), 0);
    cr_expect_eq(region.room, 8 << 20);
    cr_assert_eq(gpsh_symmetric_resize(&region, 8 << 20, 1), 0, "%s", gpsh_last_error());
    region.base[(8 << 20) - 1] = 42;
    cr_expect_eq(twin.base[(8 << 20) - 1], 42);
    cr_expect_eq(gpsh_symmetric_resize(&region, 9 << 20, 1), GPUSHMEM_ERR_NO_MEMORY);
    cr_expect_eq(gpsh_symmetric_resize(&region, 8 << 20, 1 << 30), 0, "no larger than it is");
    gpsh_symmetric_unmap(twin.base, twin.room);
    gpsh_symmetric_destroy(&region);
}

static uint64_t length_of(int fd)
{
    struct stat info;
    cr_assert_eq(fstat(fd, &info), 0);
    return (uint64_t)info.st_size;
}

Test(symmetric, resize_of_huge_pages__reaches_mappings_and_goes_back)
{
    struct gpsh_symmetric region;
    pages_are_small = true;
    cr_assert_eq(gpsh_symmetric_create(&region, 3 << 20, 17 << 20, 0, GPSH_PAGES_2M, &alone), 0,
                 "%s", gpsh_last_error());
    cr_expect_eq(region.bytes, 4 << 20);
    cr_expect_eq(region.page, 2 << 20);
    cr_expect_eq(region.room, 16 << 20, "whole pages");
    cr_expect_eq((uintptr_t)region.base % (4 << 20), 0);
    cr_expect_eq(length_of(region.fd), 4 << 20);
    struct gpsh_symmetric twin = peer_of(&region);
    cr_assert_eq(gpsh_symmetric_map(&twin, 0, NULL), 0);
    cr_assert_eq(gpsh_symmetric_resize(&region, 16 << 20, 1), 0, "%s", gpsh_last_error());
    region.base[(16 << 20) - 1] = 42;
    cr_expect_eq(twin.base[(16 << 20) - 1], 42);
    cr_expect_eq(gpsh_symmetric_resize(&region, 18 << 20, 1), GPUSHMEM_ERR_NO_MEMORY);
    cr_assert_eq(gpsh_symmetric_resize(&region, 4 << 20, 1), 0, "taken back");
    cr_expect_eq(length_of(region.fd), 4 << 20);
    gpsh_symmetric_unmap(twin.base, twin.room);
    gpsh_symmetric_destroy(&region);
}
