// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "bootstrap/node_key.h"
#include "bootstrap/tcp_address.h"
#include "core/error.h"

static struct gpsh_tcp_address found[4];
static char text[GPSH_TCP_TEXT_BYTES];

Test(tcp_address, choose__loopback_by_name__has_its_address)
{
    cr_assert_geq(gpsh_tcp_address_choose("lo", found, 4), 1);
    cr_expect_str_eq(gpsh_tcp_address_text(&found[0], text), "127.0.0.1");
}

Test(tcp_address, choose__by_address__that_one_alone)
{
    cr_assert_eq(gpsh_tcp_address_choose("127.0.0.1", found, 4), 1);
    cr_expect_eq(found[0].version, 4);
}

Test(tcp_address, choose__nothing_set__something_and_not_loopback_beside_others)
{
    int n = gpsh_tcp_address_choose("", found, 4);
    cr_assert_geq(n, 1);
    for (int i = 1; i < n; i++)
        if (found[i].version == 4 && found[i].bytes[0] == 127)
            cr_expect(found[0].version == 6 || found[0].bytes[0] == 127);
}

Test(tcp_address, choose__unknown__sentence_names_the_entry)
{
    cr_expect_eq(gpsh_tcp_address_choose("lo,nosuch0", found, 4), GPUSHMEM_ERR_SETTING);
    cr_expect(strstr(gpsh_last_error(), "'nosuch0'"));
    cr_expect_eq(gpsh_tcp_address_choose("203.0.113.77", found, 4), GPUSHMEM_ERR_SETTING);
    cr_expect_eq(gpsh_tcp_address_choose(",", found, 4), GPUSHMEM_ERR_SETTING);
}

Test(tcp_address, text__both_versions__as_people_write_them)
{
    struct gpsh_tcp_address six = {.version = 6, .port = 80, .bytes = {0xfd, [15] = 1}}, back;
    struct sockaddr_storage there;
    cr_expect_str_eq(gpsh_tcp_address_text(&six, text), "[fd00::1]:80");
    gpsh_tcp_address_to(&six, &there);
    cr_expect(gpsh_tcp_address_from((struct sockaddr *)&there, &back));
    cr_expect_eq(memcmp(&six, &back, sizeof six), 0);
    six.port = 0;
    cr_expect_str_eq(gpsh_tcp_address_text(&six, text), "fd00::1");
}

Test(node_key, key__same_place__equal_unless_named_apart)
{
    struct gpsh_node_key one = gpsh_node_key(""), two = gpsh_node_key(""), a = gpsh_node_key("a");
    cr_expect_eq(memcmp(&one, &two, sizeof one), 0);
    cr_expect_neq(memcmp(&one, &a, sizeof one), 0);
}
