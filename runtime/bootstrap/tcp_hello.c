// SPDX-License-Identifier: BSD-3-Clause
#include "bootstrap/tcp_hello.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>

enum { HELLO_MAGIC = 0x4f4c4c48, GREETING_MAGIC = 0x59414448 };

static_assert(sizeof(struct gpsh_greeting) == 32 && sizeof(struct gpsh_hello) == 92,
              "no padding, which would be sent as it is");

// What is signed: everything that both sides have said, and who says it, so that the code of one
// side cannot be sent back as that of the other.
static void sign(const struct gpsh_uniqueid *id, const char *side,
                 const struct gpsh_greeting *greeting, const struct gpsh_hello *hello,
                 uint8_t mac[GPSH_SHA256_BYTES])
{
    struct {
        char side[8];
        struct gpsh_greeting greeting;
        uint8_t hello[offsetof(struct gpsh_hello, mac)];
    } said = {.side = "", .greeting = *greeting};
    memcpy(said.side, side, strlen(side));
    memcpy(said.hello, hello, sizeof said.hello);
    gpsh_hmac_sha256(id->secret, sizeof id->secret, &said, sizeof said, mac);
}

int gpsh_greeting_make(const struct gpsh_uniqueid *id, struct gpsh_greeting *greeting)
{
    *greeting = (struct gpsh_greeting){.magic = GREETING_MAGIC, .version = GPSH_ID_VERSION};
    memcpy(greeting->job, id->job, sizeof greeting->job);
    return gpsh_random(greeting->nonce, sizeof greeting->nonce);
}

int gpsh_hello_make(const struct gpsh_uniqueid *id, const struct gpsh_greeting *greeting,
                    struct gpsh_hello *hello)
{
    hello->magic = HELLO_MAGIC;
    hello->version = GPSH_ID_VERSION;
    hello->zero = 0;
    int error = gpsh_random(hello->nonce, sizeof hello->nonce);
    sign(id, "caller", greeting, hello, hello->mac);
    return error;
}

void gpsh_confirmation_make(const struct gpsh_uniqueid *id, const struct gpsh_greeting *greeting,
                            const struct gpsh_hello *hello, struct gpsh_confirmation *answer)
{
    sign(id, "host", greeting, hello, answer->mac);
}

enum gpsh_greeted gpsh_greeting_check(const struct gpsh_uniqueid *id,
                                      const struct gpsh_greeting *greeting)
{
    if (greeting->magic != GREETING_MAGIC)
        return GPSH_GREETED_STRANGE;
    if (greeting->version != GPSH_ID_VERSION)
        return GPSH_GREETED_VERSION;
    return memcmp(greeting->job, id->job, sizeof id->job) == 0 ? GPSH_GREETED_OK : GPSH_GREETED_JOB;
}

bool gpsh_hello_check(const struct gpsh_uniqueid *id, const struct gpsh_greeting *greeting,
                      const struct gpsh_hello *hello)
{
    uint8_t mac[GPSH_SHA256_BYTES];
    sign(id, "caller", greeting, hello, mac);
    return hello->magic == HELLO_MAGIC && hello->version == GPSH_ID_VERSION &&
           gpsh_secret_equal(mac, hello->mac, sizeof mac);
}

bool gpsh_confirmation_check(const struct gpsh_uniqueid *id, const struct gpsh_greeting *greeting,
                             const struct gpsh_hello *hello, const struct gpsh_confirmation *answer)
{
    uint8_t mac[GPSH_SHA256_BYTES];
    sign(id, "host", greeting, hello, mac);
    return gpsh_secret_equal(mac, answer->mac, sizeof mac);
}
