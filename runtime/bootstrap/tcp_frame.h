// SPDX-License-Identifier: BSD-3-Clause
// What travels between PEs that recognised each other: frames, and in some of them bundles of
// blobs.
#ifndef GPSH_TCP_FRAME_H
#define GPSH_TCP_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum gpsh_frame_type {
    GPSH_FRAME_PARENT = 1, // of the meeting: pe is the parent; payload: where it listens
    GPSH_FRAME_FAIL = 2,   // the start is given up; round: a code; payload: a sentence
    GPSH_FRAME_UP = 3,     // a bundle of the sender and all below it
    GPSH_FRAME_DOWN = 4,   // the bundle of all PEs
    GPSH_FRAME_DEAD = 5,   // pe has died; payload: how that is known
    GPSH_FRAME_END = 6,    // the job ends; round: exit status; pe: 1, each by that; payload: why
    GPSH_FRAME_BYE = 7,    // the sender leaves in order
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
