// SPDX-License-Identifier: BSD-3-Clause
#include "bootstrap/uniqueid.h"

#include <assert.h>
#include <string.h>

#include "core/error.h"
#include "core/sha256.h"

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
