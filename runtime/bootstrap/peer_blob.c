// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE // strnlen
#include "bootstrap/peer_blob.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"

// Layout: header; texts, each with its end, in the order of texts(), padded to 8 together; then per
// section a section header and its bytes, padded to 8. Native byte order: a job runs on machines of
// one architecture, and a foreign one shows as a wrong magic.
struct packed_header {
    uint32_t magic, version;
    uint64_t total_bytes;
    int32_t pe, status;
    uint64_t region_bytes[GPSH_REGIONS];
    uint64_t heap_at, static_at;
    uint32_t heap_file, static_file;
    uint64_t static_id;
    int32_t device_heap, pid, node, node_pe;
    int64_t team_epoch;
    uint64_t team_memory, heap_fits;
    int32_t teams;
    int16_t amo_agent;
    uint8_t nic_atomics, page_bits;
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

// Most of them are short, or empty.
enum { TEXTS = 5 };
struct text {
    char *at;
    size_t room;
};

static void texts(struct gpsh_peer_blob *blob, struct text list[TEXTS])
{
    list[0] = (struct text){blob->hostname, sizeof blob->hostname};
    list[1] = (struct text){blob->gpu, sizeof blob->gpu};
    list[2] = (struct text){blob->socket_path, sizeof blob->socket_path};
    list[3] = (struct text){blob->collectives, sizeof blob->collectives};
    list[4] = (struct text){blob->sentence, sizeof blob->sentence};
}

static size_t text_bytes(const struct text list[TEXTS])
{
    size_t bytes = 0;
    for (int i = 0; i < TEXTS; i++)
        bytes += strnlen(list[i].at, list[i].room - 1) + 1;
    return padded(bytes);
}

static void write_texts(char *to, const struct text list[TEXTS])
{
    for (int i = 0; i < TEXTS; i++) {
        size_t length = strnlen(list[i].at, list[i].room - 1);
        memcpy(to, list[i].at, length); // the memory is zero
        to += length + 1;
    }
}

// How many bytes they take, 0 if they are none.
static size_t read_texts(const char *from, size_t bytes, const struct text list[TEXTS])
{
    size_t at = 0;
    for (int i = 0; i < TEXTS; i++) {
        size_t most = bytes - at < list[i].room ? bytes - at : list[i].room;
        const char *end = memchr(from + at, '\0', most);
        if (!end)
            return 0;
        size_t length = (size_t)(end - (from + at)) + 1;
        memcpy(list[i].at, from + at, length);
        at += length;
    }
    return padded(at) <= bytes ? padded(at) : 0;
}

// Of a power of two: which.
static uint8_t bits_of(uint64_t bytes)
{
    return bytes ? (uint8_t)__builtin_ctzll(bytes) : 0;
}

int gpsh_peer_blob_pack(const struct gpsh_peer_blob *blob, void **packed, size_t *bytes)
{
    struct gpsh_peer_blob copy = *blob;
    struct text list[TEXTS];
    texts(&copy, list);
    size_t total = padded(sizeof(struct packed_header)) + text_bytes(list);
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
                                   .heap_at = blob->region_at[GPSH_HEAP],
                                   .heap_file = blob->region_file[GPSH_HEAP],
                                   .static_at = blob->region_at[GPSH_STATIC],
                                   .static_file = blob->region_file[GPSH_STATIC],
                                   .static_id = blob->static_id,
                                   .team_epoch = blob->team_epoch,
                                   .teams = blob->teams,
                                   .team_memory = blob->team_memory,
                                   .heap_fits = blob->heap_fits,
                                   .amo_agent = (int16_t)blob->amo_agent,
                                   .nic_atomics = (uint8_t)blob->nic_atomics,
                                   .page_bits = bits_of(blob->page_bytes),
                                   .node = blob->node,
                                   .node_pe = blob->node_pe,
                                   .sections = (uint32_t)blob->sections};
    memcpy(header.region_bytes, blob->region_bytes, sizeof header.region_bytes);
    memcpy(memory, &header, sizeof header);
    write_texts(memory + padded(sizeof header), list);
    size_t at = padded(sizeof header) + text_bytes(list);
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

static void read_header(const struct packed_header *header, struct gpsh_peer_blob *out)
{
    out->status = header->status;
    out->device_heap = header->device_heap;
    out->pid = header->pid;
    out->region_at[GPSH_HEAP] = header->heap_at;
    out->region_file[GPSH_HEAP] = header->heap_file;
    out->region_at[GPSH_STATIC] = header->static_at;
    out->region_file[GPSH_STATIC] = header->static_file;
    out->static_id = header->static_id;
    out->team_epoch = header->team_epoch;
    out->teams = header->teams;
    out->team_memory = header->team_memory;
    out->heap_fits = header->heap_fits;
    out->amo_agent = header->amo_agent;
    out->nic_atomics = header->nic_atomics;
    out->page_bytes = UINT64_C(1) << header->page_bits;
    out->node = header->node;
    out->node_pe = header->node_pe;
    out->sections = (int)header->sections;
    memcpy(out->region_bytes, header->region_bytes, sizeof out->region_bytes);
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
    if (header.page_bits >= 48)
        return gpsh_fail(GPUSHMEM_ERR_PEER_DATA,
                         "PE %d's connection data says that its pages have 2^%d bytes", pe,
                         header.page_bits);
    struct gpsh_peer_blob read = {.pe = pe};
    struct text list[TEXTS];
    texts(&read, list);
    size_t at = padded(sizeof header);
    size_t in_texts = read_texts((const char *)packed + at, bytes - at, list);
    if (header.sections > GPSH_BLOB_SECTIONS || !in_texts)
        return gpsh_fail(GPUSHMEM_ERR_PEER_DATA,
                         "PE %d's connection data is damaged (%" PRIu32 " sections)", pe,
                         header.sections);
    *out = read;
    read_header(&header, out);
    return parse_sections(pe, packed, bytes, at + in_texts, out);
}

const struct gpsh_blob_section *gpsh_peer_blob_find(const struct gpsh_peer_blob *blob,
                                                    const char *name)
{
    for (int i = 0; i < blob->sections; i++)
        if (!strcmp(blob->section[i].name, name))
            return &blob->section[i];
    return NULL;
}
