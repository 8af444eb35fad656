// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE // getrandom
#include "core/sha256.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

enum { BLOCK = 64, ROUNDS = 64 };

struct hash {
    uint32_t state[8];
    uint64_t bytes;
    uint8_t block[BLOCK];
};

static const uint32_t sha_round[ROUNDS] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

static uint32_t rotate(uint32_t x, unsigned by)
{
    return x >> by | x << (32 - by);
}

static void expand(const uint8_t *block, uint32_t w[ROUNDS])
{
    for (int i = 0; i < 16; i++)
        w[i] = (uint32_t)block[4 * i] << 24 | (uint32_t)block[4 * i + 1] << 16 |
               (uint32_t)block[4 * i + 2] << 8 | block[4 * i + 3];
    for (int i = 16; i < ROUNDS; i++) {
        uint32_t a = w[i - 15], b = w[i - 2];
        w[i] = w[i - 16] + (rotate(a, 7) ^ rotate(a, 18) ^ a >> 3) + w[i - 7] +
               (rotate(b, 17) ^ rotate(b, 19) ^ b >> 10);
    }
}

// The letters are those of the standard.
static void compress(uint32_t state[8], const uint8_t *block)
{
    uint32_t w[ROUNDS], s[8];
    expand(block, w);
    memcpy(s, state, sizeof s);
    for (int i = 0; i < ROUNDS; i++) {
        uint32_t a = s[0], e = s[4];
        uint32_t t1 = s[7] + (rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25)) +
                      ((e & s[5]) ^ (~e & s[6])) + sha_round[i] + w[i];
        uint32_t t2 = (rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22)) +
                      ((a & s[1]) ^ (a & s[2]) ^ (s[1] & s[2]));
        memmove(s + 1, s, 7 * sizeof *s);
        s[4] += t1;
        s[0] = t1 + t2;
    }
    for (int i = 0; i < 8; i++)
        state[i] += s[i];
}

static void hash_begin(struct hash *h)
{
    static const uint32_t first[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                      0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    memcpy(h->state, first, sizeof first);
    h->bytes = 0;
}

static void hash_add(struct hash *h, const void *data, size_t bytes)
{
    const uint8_t *from = data;
    while (bytes > 0) {
        size_t used = h->bytes % BLOCK, part = BLOCK - used < bytes ? BLOCK - used : bytes;
        memcpy(h->block + used, from, part);
        h->bytes += part;
        from += part;
        bytes -= part;
        if (used + part == BLOCK)
            compress(h->state, h->block);
    }
}

static void hash_end(struct hash *h, uint8_t digest[GPSH_SHA256_BYTES])
{
    static const uint8_t padding[BLOCK] = {0x80};
    uint64_t bits = h->bytes * 8;
    uint8_t length[8];
    for (int i = 0; i < 8; i++)
        length[i] = (uint8_t)(bits >> (56 - 8 * i));
    size_t used = h->bytes % BLOCK;
    hash_add(h, padding, used < BLOCK - 8 ? BLOCK - 8 - used : 2 * BLOCK - 8 - used);
    hash_add(h, length, sizeof length);
    for (int i = 0; i < GPSH_SHA256_BYTES; i++)
        digest[i] = (uint8_t)(h->state[i / 4] >> (24 - 8 * (i % 4)));
}

void gpsh_sha256(const void *data, size_t bytes, uint8_t digest[GPSH_SHA256_BYTES])
{
    struct hash h;
    hash_begin(&h);
    hash_add(&h, data, bytes);
    hash_end(&h, digest);
}

void gpsh_sha256_mark(const char *text, char mark[GPSH_SHA256_MARK])
{
    uint8_t digest[GPSH_SHA256_BYTES];
    gpsh_sha256(text, strlen(text), digest);
    for (int i = 0; i < (GPSH_SHA256_MARK - 1) / 2; i++)
        snprintf(mark + 2 * (size_t)i, 3, "%02x", digest[i]);
}

void gpsh_hmac_sha256(const void *key, size_t key_bytes, const void *data, size_t bytes,
                      uint8_t mac[GPSH_SHA256_BYTES])
{
    uint8_t inner[BLOCK] = {0}, outer[BLOCK];
    struct hash h;
    memcpy(inner, key, key_bytes < BLOCK ? key_bytes : BLOCK);
    for (int i = 0; i < BLOCK; i++) {
        outer[i] = inner[i] ^ 0x5c;
        inner[i] ^= 0x36;
    }
    hash_begin(&h);
    hash_add(&h, inner, BLOCK);
    hash_add(&h, data, bytes);
    hash_end(&h, mac);
    hash_begin(&h);
    hash_add(&h, outer, BLOCK);
    hash_add(&h, mac, GPSH_SHA256_BYTES);
    hash_end(&h, mac);
}

bool gpsh_secret_equal(const void *a, const void *b, size_t bytes)
{
    const volatile uint8_t *x = a, *y = b;
    uint8_t differs = 0;
    for (size_t i = 0; i < bytes; i++)
        differs |= x[i] ^ y[i];
    return differs == 0;
}

int gpsh_random(void *out, size_t bytes)
{
    uint8_t *next = out;
    while (bytes > 0) {
        ssize_t got = getrandom(next, bytes, 0);
        if (got < 0 && errno != EINTR)
            return errno;
        next += got > 0 ? got : 0;
        bytes -= got > 0 ? (size_t)got : 0;
    }
    return 0;
}
