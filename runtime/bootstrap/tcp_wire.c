// SPDX-License-Identifier: BSD-3-Clause
#define _POSIX_C_SOURCE 200809L // strnlen
#include "bootstrap/tcp_wire.h"

#include <assert.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "bootstrap/tcp_address.h"
#include "core/error.h"
#include "core/sha256.h"

// ------------------------------------------------------------------------------------------
// the unique id

enum { ID_MAGIC = 0x44495047 };

// In native byte order: a job runs on machines of one architecture, and a foreign one shows as a
// wrong magic.
struct packed_id {
    uint32_t magic;
    uint16_t version, n_addresses;
    uint8_t job[GPSH_JOB_BYTES];
    uint8_t secret[GPSH_SECRET_BYTES];
    struct gpsh_tcp_address address[GPSH_ID_ADDRESSES];
    uint32_t checksum; // of the others
    uint8_t zero[12];
};

static_assert(sizeof(struct packed_id) == sizeof(struct gpushmem_uniqueid), "128 bytes");

static uint32_t checksum(struct packed_id packed)
{
    uint8_t digest[GPSH_SHA256_BYTES];
    uint32_t sum;
    packed.checksum = 0;
    gpsh_sha256(&packed, sizeof packed, digest);
    memcpy(&sum, digest, sizeof sum);
    return sum;
}

void gpsh_uniqueid_pack(const struct gpsh_uniqueid *id, struct gpushmem_uniqueid *packed)
{
    struct packed_id p = {
        .magic = ID_MAGIC, .version = GPSH_ID_VERSION, .n_addresses = (uint16_t)id->n_addresses};
    memcpy(p.job, id->job, sizeof p.job);
    memcpy(p.secret, id->secret, sizeof p.secret);
    memcpy(p.address, id->address, sizeof p.address[0] * (size_t)id->n_addresses);
    p.checksum = checksum(p);
    memcpy(packed, &p, sizeof p);
}

static bool is_zero(const void *data, size_t bytes)
{
    const uint8_t *byte = data;
    for (size_t i = 0; i < bytes; i++)
        if (byte[i])
            return false;
    return true;
}

static bool addresses_are_good(const struct packed_id *p)
{
    if (p->n_addresses < 1 || p->n_addresses > GPSH_ID_ADDRESSES)
        return false;
    for (int i = 0; i < p->n_addresses; i++)
        if ((p->address[i].version != 4 && p->address[i].version != 6) || !p->address[i].port)
            return false;
    return true;
}

int gpsh_uniqueid_parse(const struct gpushmem_uniqueid *packed, struct gpsh_uniqueid *id)
{
    struct packed_id p;
    memcpy(&p, packed, sizeof p);
    if (is_zero(&p, sizeof p))
        return gpsh_fail(GPUSHMEM_ERR_INVALID,
                         "the unique id is all zero: one process calls gpushmem_get_uniqueid, and "
                         "hands its 128 bytes over to all others");
    if (p.magic != ID_MAGIC)
        return gpsh_fail(GPUSHMEM_ERR_INVALID,
                         "these 128 bytes, which begin with %08x, are no unique id of "
                         "gpushmem_get_uniqueid: were they handed over as they are?",
                         p.magic);
    if (p.version != GPSH_ID_VERSION)
        return gpsh_fail(GPUSHMEM_ERR_INVALID,
                         "the unique id has version %u, this library reads version %d: use the "
                         "same release of gpushmem in all processes",
                         p.version, GPSH_ID_VERSION);
    if (p.checksum != checksum(p) || !addresses_are_good(&p))
        return gpsh_fail(GPUSHMEM_ERR_INVALID,
                         "the unique id is damaged (its checksum is wrong): hand over all of its "
                         "128 bytes as they are");
    *id = (struct gpsh_uniqueid){.n_addresses = p.n_addresses};
    memcpy(id->job, p.job, sizeof p.job);
    memcpy(id->secret, p.secret, sizeof p.secret);
    memcpy(id->address, p.address, sizeof p.address);
    return 0;
}

// ------------------------------------------------------------------------------------------
// the handshake

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

// ------------------------------------------------------------------------------------------
// frames

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
    case GPSH_FRAME_ASK:
    case GPSH_FRAME_RUNS:
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
