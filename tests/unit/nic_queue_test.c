// SPDX-License-Identifier: BSD-3-Clause
#include <criterion/criterion.h>

#include "gpushmem/device_abi.h"

static void check(uint64_t done, uint64_t close)
{
    uint64_t polled = gpushmem_nic_polled(done, 12345);
    cr_expect_eq(gpushmem_nic_polled_done(polled, close), done);
    cr_expect_eq(gpushmem_nic_polled_done(polled | GPUSHMEM_NIC_POLLING, close), done);
    cr_expect_eq((uint32_t)polled, 12345);
}

Test(nic_queue, polled_done__count_seen_before_or_after__the_one_that_was_polled)
{
    const uint64_t counts[] = {0, 1, 1000, 0x7ffffff0, 0x80000000, 0xfffffff0, 0x123456789abc};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        for (uint64_t apart = 0; apart < 0x3fffffff; apart = 3 * apart + 1) {
            check(counts[i] + apart, counts[i]); // it has moved on since the count was read
            check(counts[i], counts[i] + apart); // the count has, since
        }
}

Test(nic_queue, polled__more_than_2_to_the_32_completions__counts_modulo)
{
    cr_expect_eq((uint32_t)gpushmem_nic_polled(7, UINT32_MAX) + 1u, 0);
}

Test(nic_queue, written__any_position__has_its_end_and_its_kind)
{
    const uint32_t kind = gpushmem_nic_kind(0x15, 4);
    for (uint64_t end = 1; end < (uint64_t)1 << 55; end = 5 * end + 1) {
        uint64_t mark = gpushmem_nic_written(end, kind);
        cr_expect_eq(gpushmem_nic_end(mark), end);
        cr_expect_eq(mark & 31, 0x15);
        cr_expect_eq(mark >> 5 & 7, 4);
    }
    cr_expect_eq(gpushmem_nic_end(0), 0, "nothing is written where there was never a mark");
}
