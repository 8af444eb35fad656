// SPDX-License-Identifier: BSD-3-Clause
// How two processes that know the same unique id recognise each other: the one that listens sends a
// greeting with a random number, the one that calls answers with a hello, whose code (an HMAC) only
// a holder of the secret can compute, and gets a confirmation of the same kind. The secret itself
// is never sent, and nothing that was recorded can be used again.
#ifndef GPSH_TCP_HELLO_H
#define GPSH_TCP_HELLO_H

#include "bootstrap/uniqueid.h"
#include "core/sha256.h"

enum { GPSH_NONCE_BYTES = 16, GPSH_TCP_MOST_PES = 1 << 20 };

struct gpsh_greeting {
    uint32_t magic, version;
    uint8_t job[GPSH_JOB_BYTES];
    uint8_t nonce[GPSH_NONCE_BYTES];
};

// What the caller wants.
enum gpsh_purpose {
    GPSH_PURPOSE_REGISTER = 1, // of the meeting: tell me my parent
    GPSH_PURPOSE_CHILD = 2,    // of its parent in the tree
    GPSH_PURPOSE_ORPHAN = 3,   // of another PE, after its parent died
    GPSH_PURPOSE_PROOF = 4,    // of another PE: show that you are it
};

struct gpsh_hello {
    uint32_t magic, version;
    uint8_t nonce[GPSH_NONCE_BYTES];
    int32_t purpose, pe, n_pes, zero;
    struct gpsh_tcp_address listens; // where the caller itself can be called
    uint8_t mac[GPSH_SHA256_BYTES];
};

struct gpsh_confirmation {
    uint8_t mac[GPSH_SHA256_BYTES];
};

// Each of these fills in everything; 0 or an errno value of the random numbers.
int gpsh_greeting_make(const struct gpsh_uniqueid *id, struct gpsh_greeting *greeting);
// `hello`: purpose, pe, n_pes and listens are set.
int gpsh_hello_make(const struct gpsh_uniqueid *id, const struct gpsh_greeting *greeting,
                    struct gpsh_hello *hello);
void gpsh_confirmation_make(const struct gpsh_uniqueid *id, const struct gpsh_greeting *greeting,
                            const struct gpsh_hello *hello, struct gpsh_confirmation *answer);

enum gpsh_greeted { GPSH_GREETED_OK, GPSH_GREETED_STRANGE, GPSH_GREETED_VERSION, GPSH_GREETED_JOB };

enum gpsh_greeted gpsh_greeting_check(const struct gpsh_uniqueid *id,
                                      const struct gpsh_greeting *greeting);
// True: the caller knows the secret, and what it says is as it sent it.
bool gpsh_hello_check(const struct gpsh_uniqueid *id, const struct gpsh_greeting *greeting,
                      const struct gpsh_hello *hello);
bool gpsh_confirmation_check(const struct gpsh_uniqueid *id, const struct gpsh_greeting *greeting,
                             const struct gpsh_hello *hello,
                             const struct gpsh_confirmation *answer);

#endif
