// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE // strnlen
#include "bootstrap/peer_blob.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"

// Layout: the first part of the struct; texts, each with its end, in the order of texts(), padded
// to 8 together; then per section a section header and its bytes, padded to 8. Native byte order: a
// job runs on machines of one architecture, and a foreign one shows as a wrong magic.
enum { HEAD_BYTES = offsetof(struct gpsh_peer_blob, hostname) };
_Static_assert(HEAD_BYTES == 136, "no padding is published");

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

int gpsh_peer_blob_pack(const struct gpsh_peer_blob *blob, void **packed, size_t *bytes)
{
    struct gpsh_peer_blob copy = *blob;
    struct text list[TEXTS];
    texts(&copy, list);
    size_t total = HEAD_BYTES + text_bytes(list);
    for (int i = 0; i < blob->sections; i++)
        total += sizeof(struct packed_section) + padded(blob->section[i].bytes);
    char *memory = calloc(1, total);
    if (!memory)
        return gpsh_fail(GPUSHMEM_ERR_NO_MEMORY, "no memory for %zu bytes of connection data",
                         total);
    copy.magic = GPSH_BLOB_MAGIC;
    copy.version = GPSH_BLOB_VERSION;
    copy.total_bytes = (uint32_t)total;
    memcpy(memory, &copy, HEAD_BYTES);
    write_texts(memory + HEAD_BYTES, list);
    size_t at = HEAD_BYTES + text_bytes(list);
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
    struct gpsh_peer_blob read = {.pe = pe};
    if (bytes < HEAD_BYTES)
        return gpsh_fail(GPUSHMEM_ERR_PEER_DATA,
                         "PE %d published %zu bytes of connection data; at least %d are needed", pe,
                         bytes, HEAD_BYTES);
    memcpy(&read, packed, HEAD_BYTES);
    if (read.magic != GPSH_BLOB_MAGIC)
        return gpsh_fail(
            GPUSHMEM_ERR_PEER_DATA,
            "PE %d published something that is no gpushmem connection data; does it run "
            "another library?",
            pe);
    if (read.version != GPSH_BLOB_VERSION)
        return gpsh_fail(GPUSHMEM_ERR_PEER_DATA,
                         "PE %d speaks version %" PRIu32
                         " of the connection data, this PE version %d; "
                         "start all PEs with the same gpushmem library",
                         pe, read.version, GPSH_BLOB_VERSION);
    if (read.total_bytes != bytes)
        return gpsh_fail(GPUSHMEM_ERR_PEER_DATA,
                         "PE %d published %" PRIu32 " bytes of connection data, %zu arrived", pe,
                         read.total_bytes, bytes);
    if (read.pe != pe)
        return gpsh_fail(GPUSHMEM_ERR_PEER_DATA,
                         "PE %d's connection data says it is of PE %" PRId32, pe, read.pe);
    if (read.node < 0 || read.node > pe || read.node_pe < 0 || read.node_pe > pe)
        return gpsh_fail(GPUSHMEM_ERR_PEER_DATA,
                         "PE %d's connection data says it is number %" PRId32
                         " of a node that begins with PE %" PRId32,
                         pe, read.node_pe, read.node);
    if (read.page_bytes & (read.page_bytes - 1))
        return gpsh_fail(GPUSHMEM_ERR_PEER_DATA,
                         "PE %d's connection data says that its pages have %" PRIu32 " bytes", pe,
                         read.page_bytes);
    struct text list[TEXTS];
    texts(&read, list);
    size_t in_texts = read_texts((const char *)packed + HEAD_BYTES, bytes - HEAD_BYTES, list);
    if (read.sections > GPSH_BLOB_SECTIONS || !in_texts)
        return gpsh_fail(GPUSHMEM_ERR_PEER_DATA, "PE %d's connection data is damaged (%d sections)",
                         pe, read.sections);
    *out = read;
    return parse_sections(pe, packed, bytes, HEAD_BYTES + in_texts, out);
}

const struct gpsh_blob_section *gpsh_peer_blob_find(const struct gpsh_peer_blob *blob,
                                                    const char *name)
{
    for (int i = 0; i < blob->sections; i++)
        if (!strcmp(blob->section[i].name, name))
            return &blob->section[i];
    return NULL;
}
