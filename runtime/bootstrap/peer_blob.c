// SPDX-License-Identifier: BSD-3-Clause
#include "bootstrap/peer_blob.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"

// Layout: header, then per section a section header and its bytes, padded to 8. Native byte order:
// a job runs on machines of one architecture, and a foreign one shows as a wrong magic.
struct packed_header {
    uint32_t magic, version;
    uint64_t total_bytes;
    int32_t pe, status;
    uint64_t region_bytes[GPSH_REGIONS];
    uint64_t heap_at;
    uint64_t static_id;
    int32_t device_heap, pid, node, node_pe;
    int64_t team_epoch;
    uint64_t team_memory;
    int32_t teams;
    int32_t amo_agent, nic_atomics;
    char hostname[64];
    char gpu[64];
    char socket_path[GPSH_FD_PATH_BYTES];
    char collectives[GPSH_COLLECTIVES_TEXT];
    char sentence[256];
    uint32_t sections;
};

struct packed_section {
    char name[16];
    uint64_t bytes;
};

static size_t padded(uint64_t bytes)
{
    return (size_t)((bytes + 7) & ~7ull);
}

int gpsh_peer_blob_pack(const struct gpsh_peer_blob *blob, void **packed, size_t *bytes)
{
    size_t total = padded(sizeof(struct packed_header));
    for (int i = 0; i < blob->sections; i++)
        total += sizeof(struct packed_section) + padded(blob->section[i].bytes);
    char *memory = calloc(1, total);
    if (!memory)
        return gpsh_fail(GPUSHMEM_ERR_NO_MEMORY, "no memory for %zu bytes of connection data",
                         total);
    struct packed_header header = {.magic = GPSH_BLOB_MAGIC,
                                   .version = GPSH_BLOB_VERSION,
                                   .total_bytes = total,
                                   .pe = blob->pe,
                                   .status = blob->status,
                                   .device_heap = blob->device_heap,
                                   .pid = blob->pid,
                                   .heap_at = blob->heap_at,
                                   .static_id = blob->static_id,
                                   .team_epoch = blob->team_epoch,
                                   .teams = blob->teams,
                                   .team_memory = blob->team_memory,
                                   .amo_agent = blob->amo_agent,
                                   .nic_atomics = blob->nic_atomics,
                                   .node = blob->node,
                                   .node_pe = blob->node_pe,
                                   .sections = (uint32_t)blob->sections};
    memcpy(header.region_bytes, blob->region_bytes, sizeof header.region_bytes);
    memcpy(header.hostname, blob->hostname, sizeof header.hostname);
    memcpy(header.gpu, blob->gpu, sizeof header.gpu);
    memcpy(header.socket_path, blob->socket_path, sizeof header.socket_path);
    memcpy(header.collectives, blob->collectives, sizeof header.collectives);
    memcpy(header.sentence, blob->sentence, sizeof header.sentence);
    memcpy(memory, &header, sizeof header);
    size_t at = padded(sizeof header);
    for (int i = 0; i < blob->sections; i++) {
        struct packed_section section = {.bytes = blob->section[i].bytes};
        memcpy(section.name, blob->section[i].name, sizeof section.name);
        memcpy(memory + at, &section, sizeof section);
        at += sizeof section;
        if (section.bytes)
            memcpy(memory + at, blob->section[i].data, section.bytes);
        at += padded(section.bytes);
    }
    *packed = memory;
    *bytes = total;
    return 0;
}

static int parse_sections(int pe, const char *memory, size_t bytes, size_t at,
                          struct gpsh_peer_blob *out)
{
    for (int i = 0; i < out->sections; i++) {
        struct packed_section section;
        if (bytes - at < sizeof section)
            return gpsh_fail(GPUSHMEM_ERR_PEER_DATA,
                             "PE %d's connection data ends inside section %d", pe, i);
        memcpy(&section, memory + at, sizeof section);
        at += sizeof section;
        if (section.bytes > bytes - at || padded(section.bytes) > bytes - at)
            return gpsh_fail(GPUSHMEM_ERR_PEER_DATA,
                             "PE %d's connection data claims %" PRIu64
                             " bytes in section %d, %zu are left",
                             pe, section.bytes, i, bytes - at);
        if (!memchr(section.name, '\0', sizeof section.name))
            return gpsh_fail(GPUSHMEM_ERR_PEER_DATA,
                             "PE %d's connection data has an unterminated name in section %d", pe,
                             i);
        memcpy(out->section[i].name, section.name, sizeof section.name);
        out->section[i].data = memory + at;
        out->section[i].bytes = section.bytes;
        at += padded(section.bytes);
    }
    return 0;
}

int gpsh_peer_blob_parse(int pe, const void *packed, size_t bytes, struct gpsh_peer_blob *out)
{
    struct packed_header header;
    if (bytes < padded(sizeof header))
        return gpsh_fail(GPUSHMEM_ERR_PEER_DATA,
                         "PE %d published %zu bytes of connection data; at least %zu are needed",
                         pe, bytes, padded(sizeof header));
    memcpy(&header, packed, sizeof header);
    if (header.magic != GPSH_BLOB_MAGIC)
        return gpsh_fail(
            GPUSHMEM_ERR_PEER_DATA,
            "PE %d published something that is no gpushmem connection data; does it run "
            "another library?",
            pe);
    if (header.version != GPSH_BLOB_VERSION)
        return gpsh_fail(GPUSHMEM_ERR_PEER_DATA,
                         "PE %d speaks version %" PRIu32
                         " of the connection data, this PE version %d; "
                         "start all PEs with the same gpushmem library",
                         pe, header.version, GPSH_BLOB_VERSION);
    if (header.total_bytes != bytes)
        return gpsh_fail(GPUSHMEM_ERR_PEER_DATA,
                         "PE %d published %" PRIu64 " bytes of connection data, %zu arrived", pe,
                         header.total_bytes, bytes);
    if (header.pe != pe)
        return gpsh_fail(GPUSHMEM_ERR_PEER_DATA,
                         "PE %d's connection data says it is of PE %" PRId32, pe, header.pe);
    if (header.node < 0 || header.node > pe || header.node_pe < 0 || header.node_pe > pe)
        return gpsh_fail(GPUSHMEM_ERR_PEER_DATA,
                         "PE %d's connection data says it is number %" PRId32
                         " of a node that begins with PE %" PRId32,
                         pe, header.node_pe, header.node);
    if (header.sections > GPSH_BLOB_SECTIONS ||
        !memchr(header.hostname, '\0', sizeof header.hostname) ||
        !memchr(header.gpu, '\0', sizeof header.gpu) ||
        !memchr(header.socket_path, '\0', sizeof header.socket_path) ||
        !memchr(header.collectives, '\0', sizeof header.collectives) ||
        !memchr(header.sentence, '\0', sizeof header.sentence))
        return gpsh_fail(GPUSHMEM_ERR_PEER_DATA,
                         "PE %d's connection data is damaged (%" PRIu32 " sections)", pe,
                         header.sections);
    *out = (struct gpsh_peer_blob){.pe = pe,
                                   .status = header.status,
                                   .device_heap = header.device_heap,
                                   .pid = header.pid,
                                   .heap_at = header.heap_at,
                                   .static_id = header.static_id,
                                   .team_epoch = header.team_epoch,
                                   .teams = header.teams,
                                   .team_memory = header.team_memory,
                                   .amo_agent = header.amo_agent,
                                   .nic_atomics = header.nic_atomics,
                                   .node = header.node,
                                   .node_pe = header.node_pe,
                                   .sections = (int)header.sections};
    memcpy(out->region_bytes, header.region_bytes, sizeof out->region_bytes);
    memcpy(out->hostname, header.hostname, sizeof out->hostname);
    memcpy(out->gpu, header.gpu, sizeof out->gpu);
    memcpy(out->socket_path, header.socket_path, sizeof out->socket_path);
    memcpy(out->collectives, header.collectives, sizeof out->collectives);
    memcpy(out->sentence, header.sentence, sizeof out->sentence);
    return parse_sections(pe, packed, bytes, padded(sizeof header), out);
}

const struct gpsh_blob_section *gpsh_peer_blob_find(const struct gpsh_peer_blob *blob,
                                                    const char *name)
{
    for (int i = 0; i < blob->sections; i++)
        if (!strcmp(blob->section[i].name, name))
            return &blob->section[i];
    return NULL;
}
