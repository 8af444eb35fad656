// SPDX-License-Identifier: BSD-3-Clause
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "core/sha256.h"

static const char *hex(const uint8_t digest[GPSH_SHA256_BYTES])
{
    static char text[2 * GPSH_SHA256_BYTES + 1];
    for (int i = 0; i < GPSH_SHA256_BYTES; i++)
        snprintf(text + (size_t)2 * i, 3, "%02x", digest[i]);
    return text;
}

// Examples of FIPS 180-4, and lengths around the block's.
Test(sha256, digest__known_texts__known_digests)
{
    uint8_t digest[GPSH_SHA256_BYTES];
    gpsh_sha256("", 0, digest);
    cr_expect_str_eq(hex(digest),
                     "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    gpsh_sha256("abc", 3, digest);
    cr_expect_str_eq(hex(digest),
                     "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    gpsh_sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 56, digest);
    cr_expect_str_eq(hex(digest),
                     "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
}

Test(sha256, digest__a_million_letters__known_digest)
{
    static char text[1000000];
    uint8_t digest[GPSH_SHA256_BYTES];
    memset(text, 'a', sizeof text);
    gpsh_sha256(text, sizeof text, digest);
    cr_expect_str_eq(hex(digest),
                     "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

Test(sha256, mark__known_text__its_digest_begins_so)
{
    char mark[GPSH_SHA256_MARK];
    gpsh_sha256_mark("abc", mark);
    cr_expect_str_eq(mark, "ba7816bf8f01cfea");
}

// Cases 1 and 2 of RFC 4231.
Test(sha256, hmac__known_keys__known_codes)
{
    uint8_t key[20], mac[GPSH_SHA256_BYTES];
    memset(key, 0x0b, sizeof key);
    gpsh_hmac_sha256(key, sizeof key, "Hi There", 8, mac);
    cr_expect_str_eq(hex(mac), "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
    gpsh_hmac_sha256("Jefe", 4, "what do ya want for nothing?", 28, mac);
    cr_expect_str_eq(hex(mac), "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
}

Test(sha256, secret_equal__differs_anywhere__false)
{
    uint8_t a[16] = {0}, b[16] = {0};
    cr_expect(gpsh_secret_equal(a, b, sizeof a));
    for (size_t i = 0; i < sizeof a; i++) {
        b[i] = 0x80;
        cr_expect_not(gpsh_secret_equal(a, b, sizeof a));
        b[i] = 0;
    }
}

Test(sha256, random__twice__differs)
{
    uint8_t a[16], b[16];
    cr_assert_eq(gpsh_random(a, sizeof a), 0);
    cr_assert_eq(gpsh_random(b, sizeof b), 0);
    cr_expect_not(gpsh_secret_equal(a, b, sizeof a));
}
