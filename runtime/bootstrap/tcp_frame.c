// SPDX-License-Identifier: BSD-3-Clause
#define _POSIX_C_SOURCE 200809L // strnlen
#include "bootstrap/tcp_frame.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "bootstrap/tcp_address.h"

enum { FRAME_MAGIC = 0x4d524647, MOST_TEXT = 4096, MOST_CODE = 255 };
static const uint64_t most_bundle = (uint64_t)1 << 36;

static_assert(offsetof(struct gpsh_parcel, payload) ==
                  offsetof(struct gpsh_parcel, frame) + sizeof(struct gpsh_frame),
              "frame and payload are sent as one");

struct gpsh_parcel *gpsh_parcel_create(enum gpsh_frame_type type, int pe, uint32_t round,
                                       size_t bytes)
{
    struct gpsh_parcel *parcel = malloc(sizeof *parcel + bytes);
    if (!parcel)
        return NULL;
    atomic_init(&parcel->references, 1);
    parcel->frame = (struct gpsh_frame){
        .magic = FRAME_MAGIC, .type = type, .pe = pe, .round = round, .bytes = bytes};
    return parcel;
}

struct gpsh_parcel *gpsh_parcel_text(enum gpsh_frame_type type, int pe, uint32_t round,
                                     const char *text)
{
    size_t bytes = strnlen(text, GPSH_SENTENCE_BYTES - 1);
    struct gpsh_parcel *parcel = gpsh_parcel_create(type, pe, round, bytes);
    if (parcel)
        memcpy(parcel->payload, text, bytes);
    return parcel;
}

void gpsh_parcel_release(struct gpsh_parcel *parcel)
{
    if (parcel && atomic_fetch_sub(&parcel->references, 1) == 1)
        free(parcel);
}

bool gpsh_frame_check(const struct gpsh_frame *frame)
{
    if (frame->magic != FRAME_MAGIC)
        return false;
    switch (frame->type) {
    case GPSH_FRAME_PARENT: return frame->bytes == sizeof(struct gpsh_tcp_address);
    case GPSH_FRAME_UP:
    case GPSH_FRAME_DOWN: return frame->bytes <= most_bundle;
    case GPSH_FRAME_FAIL:
        return frame->bytes <= MOST_TEXT && frame->round > 0 && frame->round <= MOST_CODE;
    case GPSH_FRAME_DEAD:
    case GPSH_FRAME_END: return frame->bytes <= MOST_TEXT;
    case GPSH_FRAME_BYE: return frame->bytes == 0;
    default: return false;
    }
}

void gpsh_frame_text(const void *payload, size_t bytes, char *text, size_t room)
{
    size_t n = bytes < room ? bytes : room - 1;
    memcpy(text, payload, n);
    text[n] = '\0';
    for (char *c = text; *c; c++)
        if ((unsigned char)*c < ' ' || *c == 0x7f)
            *c = '?';
}

size_t gpsh_record_room(size_t bytes)
{
    return sizeof(struct gpsh_record) + ((bytes + 7) & ~(size_t)7);
}

void gpsh_record_write(void *at, int pe, const void *blob, size_t bytes)
{
    struct gpsh_record record = {.pe = pe, .bytes = bytes};
    uint8_t *to = at;
    memset(to, 0, gpsh_record_room(bytes));
    memcpy(to, &record, sizeof record);
    if (bytes)
        memcpy(to + sizeof record, blob, bytes);
}

int gpsh_bundle_parse(const void *bundle, size_t bytes, struct gpsh_blob_place *places, int n_pes)
{
    const uint8_t *at = bundle;
    int found = 0;
    memset(places, 0, sizeof *places * (size_t)n_pes);
    for (; bytes > 0; found++) {
        struct gpsh_record record;
        if (bytes < sizeof record)
            return -1;
        memcpy(&record, at, sizeof record);
        if (record.pe < 0 || record.pe >= n_pes || places[record.pe].data ||
            record.bytes > bytes - sizeof record || gpsh_record_room(record.bytes) > bytes)
            return -1;
        places[record.pe] =
            (struct gpsh_blob_place){.data = at + sizeof record, .bytes = record.bytes};
        at += gpsh_record_room(record.bytes);
        bytes -= gpsh_record_room(record.bytes);
    }
    return found;
}
