// SPDX-License-Identifier: BSD-3-Clause
// The wire protocol of the TCP bootstrap: the unique id, the handshake, and frames.
#ifndef GPSH_TCP_WIRE_H
#define GPSH_TCP_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bootstrap/tcp_address.h"
#include "core/sha256.h"
#include "gpushmem/bootstrap.h"

// The unique id, taken apart: what makes a set of processes a job when nobody launched it as one.

enum { GPSH_ID_VERSION = 1, GPSH_ID_ADDRESSES = 4, GPSH_JOB_BYTES = 8, GPSH_SECRET_BYTES = 16 };

struct gpsh_uniqueid {
    uint8_t job[GPSH_JOB_BYTES];       // random; no secret
    uint8_t secret[GPSH_SECRET_BYTES]; // random; never sent
    int n_addresses;                   // at least 1
    struct gpsh_tcp_address address[GPSH_ID_ADDRESSES];
};

void gpsh_uniqueid_pack(const struct gpsh_uniqueid *id, struct gpushmem_uniqueid *packed);
// GPUSHMEM_ERR_INVALID with a sentence, if it is none, damaged, or of another version.
int gpsh_uniqueid_parse(const struct gpushmem_uniqueid *packed, struct gpsh_uniqueid *id);

// How two processes that know the same unique id recognise each other: the one that listens sends a
// greeting with a random number, the one that calls answers with a hello, whose code (an HMAC) only
// a holder of the secret can compute, and gets a confirmation of the same kind. The secret itself
// is never sent, and nothing that was recorded can be used again.

enum { GPSH_NONCE_BYTES = 16, GPSH_TCP_MOST_PES = 1 << 20 };

struct gpsh_greeting {
    uint32_t magic, version;
    uint8_t job[GPSH_JOB_BYTES];
    uint8_t nonce[GPSH_NONCE_BYTES];
};

// What the caller wants.
enum gpsh_purpose {
    GPSH_PURPOSE_REGISTER = 1,  // of the meeting: tell me my parent
    GPSH_PURPOSE_CHILD = 2,     // of its parent in the tree
    GPSH_PURPOSE_NEIGHBOUR = 3, // of another PE, after somebody died: be connected with me
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

// What travels between PEs that recognised each other: frames, and in some of them bundles of
// blobs.

enum gpsh_frame_type {
    GPSH_FRAME_PARENT = 1, // of the meeting: pe is the parent; payload: where it listens
    GPSH_FRAME_FAIL = 2,   // the start is given up; round: a code; payload: a sentence
    GPSH_FRAME_UP = 3,     // a bundle of the sender and all below it
    GPSH_FRAME_DOWN = 4,   // the bundle of all PEs
    GPSH_FRAME_DEAD = 5,   // pe has died; payload: how that is known
    GPSH_FRAME_END = 6,    // the job ends; round: exit status; pe: 1, each by that; payload: why
    GPSH_FRAME_BYE = 7,    // the sender leaves in order
    GPSH_FRAME_ASK = 8,    // whether the process of pe runs; round: the question's number
    GPSH_FRAME_RUNS = 9,   // pe's answer to the question of that number
    GPSH_FRAME_TYPES
};

struct gpsh_frame {
    uint32_t magic;
    uint32_t type;
    int32_t pe;
    uint32_t round;
    uint64_t bytes; // of what follows
};

enum { GPSH_SENTENCE_BYTES = 512 };

// A frame and what follows it, as it is sent; shared by all that send or read it.
struct gpsh_parcel {
    _Atomic size_t references;
    struct gpsh_frame frame;
    uint8_t payload[];
};

// With one reference. NULL: no memory.
struct gpsh_parcel *gpsh_parcel_create(enum gpsh_frame_type type, int pe, uint32_t round,
                                       size_t bytes);
struct gpsh_parcel *gpsh_parcel_text(enum gpsh_frame_type type, int pe, uint32_t round,
                                     const char *text);
void gpsh_parcel_release(struct gpsh_parcel *parcel); // NULL is legal

// False if no PE of ours sends such a frame: then the connection is of no use.
bool gpsh_frame_check(const struct gpsh_frame *frame);
// The text in a payload that is one, cut to `room` bytes, without control characters.
void gpsh_frame_text(const void *payload, size_t bytes, char *text, size_t room);

// A bundle is a row of these, each with its blob behind it, padded to 8 bytes.
struct gpsh_record {
    int32_t pe;
    int32_t zero;
    uint64_t bytes;
};

size_t gpsh_record_room(size_t bytes); // of a record with such a blob
// Writes a record to `at`, which has that room.
void gpsh_record_write(void *at, int pe, const void *blob, size_t bytes);

// Where in a bundle the blob of each PE is.
struct gpsh_blob_place {
    const void *data; // NULL: not there
    uint64_t bytes;
};
// Fills places[n_pes]. Returns how many blobs there are, or -1 if the bundle is damaged, or one PE
// is there twice.
int gpsh_bundle_parse(const void *bundle, size_t bytes, struct gpsh_blob_place *places, int n_pes);

#endif
