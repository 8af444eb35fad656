// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE // memmem
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bootstrap/peer_blob.h"
#include "core/error.h"

static struct gpsh_peer_blob sample(void)
{
    struct gpsh_peer_blob blob = {.pe = 3,
                                  .region_bytes = {1 << 20, 4096},
                                  .region_at = {2 << 20},
                                  .region_file = {77, 0, 78},
                                  .pid = 77,
                                  .page_bytes = 65536,
                                  .hostname = "node7",
                                  .socket_path = "/tmp/x",
                                  .sections = 2};
    blob.section[0] = (struct gpsh_blob_section){.name = "verbs", .data = "hello", .bytes = 5};
    blob.section[1] = (struct gpsh_blob_section){.name = "p2p"};
    return blob;
}

static void pack_sample(char **packed, size_t *bytes)
{
    struct gpsh_peer_blob blob = sample();
    cr_assert_eq(gpsh_peer_blob_pack(&blob, (void **)packed, bytes), 0);
}

Test(peer_blob, round_trip__keeps_everything)
{
    char *packed;
    size_t bytes;
    struct gpsh_peer_blob out;
    pack_sample(&packed, &bytes);
    cr_assert_eq(gpsh_peer_blob_parse(3, packed, bytes, &out), 0, "%s", gpsh_last_error());
    cr_expect_eq(out.region_bytes[GPSH_HEAP], 1 << 20);
    cr_expect_eq(out.region_at[GPSH_HEAP], 2 << 20);
    cr_expect_eq(out.region_file[GPSH_HEAP], 77);
    cr_expect_eq(out.region_file[GPSH_STATIC], 78);
    cr_expect_str_eq(out.hostname, "node7");
    cr_expect_eq(out.pid, 77);
    cr_expect_eq(out.page_bytes, 65536);
    const struct gpsh_blob_section *verbs = gpsh_peer_blob_find(&out, "verbs");
    cr_assert(verbs && verbs->bytes == 5 && !memcmp(verbs->data, "hello", 5));
    cr_expect(gpsh_peer_blob_find(&out, "p2p"));
    cr_expect_null(gpsh_peer_blob_find(&out, "loop"));
    free(packed);
}

Test(peer_blob, truncated_anywhere__is_an_error)
{
    char *packed;
    size_t bytes;
    pack_sample(&packed, &bytes);
    for (size_t n = 0; n < bytes; n++) {
        char *part = malloc(n + 1); // its own block, so that a sanitizer sees every byte too far
        memcpy(part, packed, n);
        struct gpsh_peer_blob out;
        cr_expect_eq(gpsh_peer_blob_parse(3, part, n, &out), GPUSHMEM_ERR_PEER_DATA,
                     "%zu bytes accepted", n);
        free(part);
    }
    free(packed);
}

Test(peer_blob, wrong_version_magic_or_pe__sentence_says_so)
{
    char *packed;
    size_t bytes;
    struct gpsh_peer_blob out;
    pack_sample(&packed, &bytes);
    cr_expect_eq(gpsh_peer_blob_parse(4, packed, bytes, &out), GPUSHMEM_ERR_PEER_DATA);
    cr_expect(strstr(gpsh_last_error(), "PE 4") && strstr(gpsh_last_error(), "PE 3"));
    packed[4]++;
    cr_expect_eq(gpsh_peer_blob_parse(3, packed, bytes, &out), GPUSHMEM_ERR_PEER_DATA);
    cr_expect(strstr(gpsh_last_error(), "version"), "%s", gpsh_last_error());
    packed[0]++;
    cr_expect_eq(gpsh_peer_blob_parse(3, packed, bytes, &out), GPUSHMEM_ERR_PEER_DATA);
    free(packed);
}

Test(peer_blob, lying_section_length__is_an_error)
{
    char *packed;
    size_t bytes;
    struct gpsh_peer_blob out;
    pack_sample(&packed, &bytes);
    char *section = memmem(packed, bytes, "verbs", 5);
    cr_assert(section);
    static const uint64_t lies[] = {6 * 1024, UINT64_MAX, UINT64_MAX - 6, 1ull << 63};
    for (size_t i = 0; i < sizeof lies / sizeof lies[0]; i++) {
        memcpy(section + 16, &lies[i], 8);
        cr_expect_eq(gpsh_peer_blob_parse(3, packed, bytes, &out), GPUSHMEM_ERR_PEER_DATA);
    }
    free(packed);
}

// What a PE says in a job of one GPU-less host, without the data of transports.
Test(peer_blob, packed__short_texts_take_little)
{
    struct gpsh_peer_blob blob = sample(), out;
    void *packed;
    size_t bytes;
    blob.sections = 0;
    snprintf(blob.collectives, sizeof blob.collectives,
             "packets=131072,copies=4194304,blocks=16,nodes=1,round=64");
    cr_assert_eq(gpsh_peer_blob_pack(&blob, &packed, &bytes), 0);
    cr_expect_leq(bytes, 208, "%zu bytes", bytes);
    cr_assert_eq(gpsh_peer_blob_parse(3, packed, bytes, &out), 0, "%s", gpsh_last_error());
    cr_expect_str_eq(out.collectives, blob.collectives);
    cr_expect_str_eq(out.socket_path, "/tmp/x");
    free(packed);
}

// As long as they may be, and one that is longer than it may.
Test(peer_blob, texts__cut_where_their_room_ends)
{
    struct gpsh_peer_blob blob = sample(), out;
    void *packed;
    size_t bytes;
    memset(blob.sentence, 's', sizeof blob.sentence);
    memset(blob.hostname, 'h', sizeof blob.hostname - 1);
    cr_assert_eq(gpsh_peer_blob_pack(&blob, &packed, &bytes), 0);
    cr_assert_eq(gpsh_peer_blob_parse(3, packed, bytes, &out), 0, "%s", gpsh_last_error());
    cr_expect_eq(strlen(out.sentence), sizeof out.sentence - 1);
    cr_expect_str_eq(out.hostname, blob.hostname);
    cr_expect(gpsh_peer_blob_find(&out, "verbs"));
    free(packed);
}
