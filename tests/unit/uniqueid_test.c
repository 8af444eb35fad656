// SPDX-License-Identifier: BSD-3-Clause
#include <criterion/criterion.h>
#include <string.h>

#include "bootstrap/tcp_wire.h"
#include "core/error.h"

static struct gpsh_uniqueid sample(void)
{
    struct gpsh_uniqueid id = {.job = {1, 2, 3}, .secret = {4, 5, 6}, .n_addresses = 2};
    id.address[0] = (struct gpsh_tcp_address){.version = 4, .port = 4242, .bytes = {10, 0, 0, 1}};
    id.address[1] = (struct gpsh_tcp_address){.version = 6, .port = 4243, .bytes = {0xfd, 1}};
    return id;
}

Test(uniqueid, parse__what_was_packed__the_same)
{
    struct gpsh_uniqueid in = sample(), out;
    struct gpushmem_uniqueid packed;
    gpsh_uniqueid_pack(&in, &packed);
    cr_assert_eq(gpsh_uniqueid_parse(&packed, &out), 0);
    cr_expect_eq(memcmp(&in, &out, sizeof in), 0);
}

Test(uniqueid, parse__any_byte_changed__refused)
{
    struct gpsh_uniqueid in = sample(), out;
    struct gpushmem_uniqueid packed;
    gpsh_uniqueid_pack(&in, &packed);
    for (size_t i = 0; i < sizeof packed; i++) {
        packed.bytes[i] ^= 0x10;
        cr_expect_eq(gpsh_uniqueid_parse(&packed, &out), GPUSHMEM_ERR_INVALID, "byte %zu", i);
        packed.bytes[i] ^= 0x10;
    }
}

Test(uniqueid, parse__no_addresses_or_too_many__refused)
{
    struct gpushmem_uniqueid packed;
    struct gpsh_uniqueid in = sample(), out;
    in.n_addresses = 0;
    gpsh_uniqueid_pack(&in, &packed);
    cr_expect_eq(gpsh_uniqueid_parse(&packed, &out), GPUSHMEM_ERR_INVALID);
    in = sample();
    in.address[1].port = 0;
    gpsh_uniqueid_pack(&in, &packed);
    cr_expect_eq(gpsh_uniqueid_parse(&packed, &out), GPUSHMEM_ERR_INVALID);
    in.address[1] = (struct gpsh_tcp_address){.version = 5, .port = 1};
    gpsh_uniqueid_pack(&in, &packed);
    cr_expect_eq(gpsh_uniqueid_parse(&packed, &out), GPUSHMEM_ERR_INVALID);
}

Test(uniqueid, parse__all_zero__says_so)
{
    const struct gpushmem_uniqueid zero = {{0}};
    struct gpsh_uniqueid out;
    cr_expect_eq(gpsh_uniqueid_parse(&zero, &out), GPUSHMEM_ERR_INVALID);
    cr_expect(strstr(gpsh_last_error(), "all zero"));
}
