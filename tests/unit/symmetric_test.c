// SPDX-License-Identifier: BSD-3-Clause
#include <criterion/criterion.h>
#include <string.h>

#include "core/error.h"
#include "memory/symmetric.h"

Test(symmetric, create_and_map__share_bytes)
{
    struct gpsh_symmetric region;
    cr_assert_eq(gpsh_symmetric_create(&region, 1 << 20, 4096, GPSH_PAGES_AUTO, 1), 0, "%s",
                 gpsh_last_error());
    char *twin;
    cr_assert_eq(gpsh_symmetric_map(region.fd, region.bytes, 0, &twin), 0);
    region.base[12345] = 42;
    cr_expect_eq(twin[12345], 42);
    cr_expect(strlen(region.pages) > 0);
    gpsh_symmetric_unmap(twin, region.bytes);
    gpsh_symmetric_destroy(&region);
    gpsh_symmetric_destroy(&region);
}

Test(symmetric, larger_than_the_machine__is_refused_with_the_limit)
{
    struct gpsh_symmetric region;
    cr_expect_eq(gpsh_symmetric_create(&region, 16ull << 40, 4096, GPSH_PAGES_AUTO, 1),
                 GPUSHMEM_ERR_NO_MEMORY);
    cr_expect(strstr(gpsh_last_error(), "GPUSHMEM_HEAP_SIZE"), "%s", gpsh_last_error());
    cr_expect_eq(gpsh_symmetric_create(&region, 1ull << 40, 4096, GPSH_PAGES_AUTO, 1 << 10),
                 GPUSHMEM_ERR_NO_MEMORY);
    cr_expect(strstr(gpsh_last_error(), "there are 1024"), "%s", gpsh_last_error());
    cr_expect_eq(gpsh_symmetric_create(&region, 1ull << 30, 4096, GPSH_PAGES_AUTO, 1 << 30),
                 GPUSHMEM_ERR_NO_MEMORY);
    cr_expect(strstr(gpsh_last_error(), "GPUSHMEM_TEAMS"), "%s", gpsh_last_error());
}

Test(symmetric, giant_pages_that_are_not_there__sentence_names_the_fix)
{
    struct gpsh_symmetric region;
    int status = gpsh_symmetric_create(&region, 1 << 20, 4096, GPSH_PAGES_1G, 1);
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
    char *base = NULL;
    cr_assert_eq(gpsh_symmetric_create(&region, 1 << 20, 4096, GPSH_PAGES_OFF, 1), 0);
    cr_expect_eq(gpsh_symmetric_map(region.fd, 2 << 20, 5, &base), GPUSHMEM_ERR_PEER_DATA);
    cr_expect(strstr(gpsh_last_error(), "PE 5"));
    cr_expect_null(base);
    gpsh_symmetric_destroy(&region);
}
