// SPDX-License-Identifier: BSD-3-Clause
// What comes by TCP at the start: any bytes are refused, or are what they claim. As a unique id, a
// hello, a frame, and a bundle.
#include <stdlib.h>
#include <string.h>

#include "bootstrap/tcp_wire.h"
#include "fuzz.h"

enum { PES = 9 };

static const struct gpsh_uniqueid job = {.job = {1}, .secret = {2}, .n_addresses = 1};

static void try_id(const uint8_t *data, size_t bytes)
{
    struct gpushmem_uniqueid packed;
    struct gpsh_uniqueid id;
    if (bytes < sizeof packed)
        return;
    memcpy(&packed, data, sizeof packed);
    if (gpsh_uniqueid_parse(&packed, &id))
        return;
    if (id.n_addresses < 1 || id.n_addresses > GPSH_ID_ADDRESSES)
        abort();
}

// Nobody guesses the code: a hello that fits would be a broken HMAC.
static void try_hello(const uint8_t *data, size_t bytes)
{
    struct gpsh_hello hello;
    const struct gpsh_greeting greeting = {.magic = 1};
    if (bytes < sizeof hello)
        return;
    memcpy(&hello, data, sizeof hello);
    if (gpsh_hello_check(&job, &greeting, &hello))
        abort();
}

static void try_frame(const uint8_t *data, size_t bytes)
{
    struct gpsh_frame frame;
    char text[64];
    if (bytes < sizeof frame)
        return;
    memcpy(&frame, data, sizeof frame);
    if (gpsh_frame_check(&frame) && (frame.type < 1 || frame.type >= GPSH_FRAME_TYPES))
        abort();
    gpsh_frame_text(data, bytes, text, sizeof text);
    if (!memchr(text, '\0', sizeof text))
        abort();
}

static void try_bundle(const uint8_t *data, size_t bytes)
{
    struct gpsh_blob_place places[PES];
    int found = 0, said = gpsh_bundle_parse(data, bytes, places, PES);
    for (int pe = 0; pe < PES && said >= 0; pe++) {
        const uint8_t *start = places[pe].data;
        if (!start)
            continue;
        found++;
        if (start < data || places[pe].bytes > bytes || start + places[pe].bytes > data + bytes)
            abort();
    }
    if (said >= 0 && found != said)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    try_id(data, bytes);
    try_hello(data, bytes);
    try_frame(data, bytes);
    try_bundle(data, bytes);
    return 0;
}

static size_t sample_bundle(uint8_t *data)
{
    size_t at = 0;
    for (int pe = PES - 1; pe >= 0; pe--) {
        gpsh_record_write(data + at, pe, "0123456789abcdef", (size_t)pe);
        at += gpsh_record_room((size_t)pe);
    }
    return at;
}

size_t fuzz_sample(int index, uint8_t *data, size_t room)
{
    struct gpsh_uniqueid id = job;
    struct gpushmem_uniqueid packed;
    struct gpsh_parcel *parcel;
    size_t bytes = 0;
    id.address[0] = (struct gpsh_tcp_address){.version = 4, .port = 1};
    if (room < 512)
        abort();
    switch (index) {
    case 0:
        gpsh_uniqueid_pack(&id, &packed);
        memcpy(data, &packed, bytes = sizeof packed);
        return bytes;
    case 1: return sample_bundle(data);
    case 2:
        parcel = gpsh_parcel_text(GPSH_FRAME_FAIL, 1, 7, "a sentence");
        bytes = sizeof parcel->frame + parcel->frame.bytes;
        memcpy(data, &parcel->frame, sizeof parcel->frame);
        memcpy(data + sizeof parcel->frame, parcel->payload, parcel->frame.bytes);
        gpsh_parcel_release(parcel);
        return bytes;
    default: return 0;
    }
}
