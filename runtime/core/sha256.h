// SPDX-License-Identifier: BSD-3-Clause
// SHA-256 (FIPS 180-4) and HMAC (RFC 2104) with it, for proving that a secret is known without
// sending it; and what goes with that.
#ifndef GPSH_SHA256_H
#define GPSH_SHA256_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { GPSH_SHA256_BYTES = 32, GPSH_SHA256_MARK = 17 };

void gpsh_sha256(const void *data, size_t bytes, uint8_t digest[GPSH_SHA256_BYTES]);
// The first 8 bytes of a text's digest in hexadecimal digits: enough to tell names apart, and
// nobody finds the text by it.
void gpsh_sha256_mark(const char *text, char mark[GPSH_SHA256_MARK]);
// `key` has at most 64 bytes.
void gpsh_hmac_sha256(const void *key, size_t key_bytes, const void *data, size_t bytes,
                      uint8_t mac[GPSH_SHA256_BYTES]);
// Takes the same time wherever the two differ.
bool gpsh_secret_equal(const void *a, const void *b, size_t bytes);
// Random bytes that nobody can guess. 0, or an errno value.
int gpsh_random(void *out, size_t bytes);

#endif
