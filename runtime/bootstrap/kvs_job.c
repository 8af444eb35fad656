// SPDX-License-Identifier: BSD-3-Clause
#include "bootstrap/kvs_job.h"

#include <assert.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bootstrap/node_watch.h"
#include "core/error.h"
#include "core/hash.h"
#include "core/log.h"

enum {
    BLOB_MAGIC = 0x42535047,
    BLOB_VERSION = 2,
    REMARK_AFTER_MS = 10000,
    LOOK_MS = 20, // between two looks whether a PE that is waited for has died
};

// What goes in front of every blob.
struct blob_header {
    uint32_t magic;
    uint32_t version;
    uint32_t round;
    uint32_t pe;
    uint64_t bytes;
    struct gpsh_node_card card;
};
static_assert(sizeof(struct blob_header) == 64, "no padding, which would be published");

int gpsh_kvs_job_open(struct gpsh_kvs_job *job, int n_pes)
{
    return gpsh_deaths_open(&job->deaths, n_pes);
}

void gpsh_kvs_job_leave(struct gpsh_kvs_job *job)
{
    gpsh_node_watch_close(job->nodes);
    job->nodes = NULL;
    gpsh_deaths_on_death(&job->deaths, NULL);
}

// As far as the name fits, and as a file name may have it. A longer one is told apart by a hash.
// Launchers' names are no secrets: `squeue` and `ps` show them.
void gpsh_kvs_job_id(struct gpsh_bootstrap *b, const char *name)
{
    static const char allowed[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789.-_";
    const uint32_t hash = (uint32_t)gpsh_hash_more(GPSH_HASH_START, name, strlen(name));
    if (strlen(name) < sizeof(b->job_id))
        memcpy(b->job_id, name, strlen(name) + 1);
    else
        snprintf(b->job_id, sizeof(b->job_id), "%.50s-%08x", name, hash);
    for (char *c = b->job_id; *(c += strspn(c, allowed));)
        *c = '_';
}

// ------------------------------------------------------------------------------------------
// blobs

int gpsh_kvs_pack(struct gpsh_kvs_job *job, int my_pe, const void *blob, size_t bytes,
                  void **packed, size_t *packed_bytes)
{
    job->round++;
    struct blob_header header = {.magic = BLOB_MAGIC,
                                 .version = BLOB_VERSION,
                                 .round = job->round,
                                 .pe = (uint32_t)my_pe,
                                 .bytes = bytes};
    gpsh_node_watch_describe(job->nodes, &header.card);
    char *whole = malloc(sizeof(header) + bytes);
    if (!whole)
        return gpsh_fail(GPUSHMEM_ERR_NO_MEMORY, "no memory for %zu bytes to be published", bytes);
    memcpy(whole, &header, sizeof(header));
    if (bytes)
        memcpy(whole + sizeof(header), blob, bytes);
    *packed = whole;
    *packed_bytes = sizeof(header) + bytes;
    return 0;
}

static int header_check(int pe, const struct blob_header *header)
{
    return header->magic == BLOB_MAGIC && header->version == BLOB_VERSION
               ? 0
               : gpsh_fail(GPUSHMEM_ERR_PEER_DATA,
                           "PE %d published data of version %u (magic %08x), this library reads "
                           "version %d: all PEs must use the same release",
                           pe, header->version, header->magic, BLOB_VERSION);
}

int gpsh_kvs_packed_bytes(int pe, const void *begin, size_t bytes, size_t *packed_bytes)
{
    struct blob_header header;
    *packed_bytes = 0;
    if (bytes < sizeof(header))
        return 0;
    memcpy(&header, begin, sizeof(header));
    int status = header_check(pe, &header);
    if (!status && header.bytes > SIZE_MAX - sizeof(header))
        status = gpsh_fail(GPUSHMEM_ERR_PEER_DATA, "PE %d says that it published %llu bytes", pe,
                           (unsigned long long)header.bytes);
    if (!status)
        *packed_bytes = sizeof(header) + header.bytes;
    return status;
}

static int unpack_check(const struct gpsh_kvs_job *job, int pe, const void *packed,
                        size_t packed_bytes, struct blob_header *header)
{
    if (packed_bytes < sizeof(*header))
        return gpsh_fail(GPUSHMEM_ERR_PEER_DATA,
                         "PE %d published %zu bytes, less than the header of %zu", pe, packed_bytes,
                         sizeof(*header));
    memcpy(header, packed, sizeof(*header));
    int status = header_check(pe, header);
    if (status)
        return status;
    if (header->pe != (uint32_t)pe || header->round != job->round)
        return gpsh_fail(GPUSHMEM_ERR_PEER_DATA,
                         "PE %d published data of PE %u, round %u; this PE is in round %u", pe,
                         header->pe, header->round, job->round);
    if (header->bytes != packed_bytes - sizeof(*header))
        return gpsh_fail(GPUSHMEM_ERR_PEER_DATA, "PE %d published %llu bytes, but %zu arrived", pe,
                         (unsigned long long)header->bytes, packed_bytes - sizeof(*header));
    return 0;
}

int gpsh_kvs_unpack(struct gpsh_kvs_job *job, int pe, const void *packed, size_t packed_bytes,
                    void **blob, size_t *bytes)
{
    struct blob_header header;
    int status = unpack_check(job, pe, packed, packed_bytes, &header);
    if (status)
        return status;
    *bytes = header.bytes;
    status = gpsh_bootstrap_copy(pe, (const char *)packed + sizeof(header), header.bytes, blob);
    if (!status)
        gpsh_node_watch_hear(job->nodes, pe, &header.card);
    return status;
}

// ------------------------------------------------------------------------------------------
// deaths

void gpsh_kvs_note_death(struct gpsh_kvs_job *job, int pe, const char *reason)
{
    gpsh_deaths_note(&job->deaths, pe, reason);
    gpsh_deaths_tell(&job->deaths);
}

int gpsh_kvs_watch_nodes(struct gpsh_bootstrap *b, const char *interface)
{
    struct gpsh_kvs_job *job = b->data;
    if (b->node_n_pes == b->n_pes)
        return 0;
    job->nodes = gpsh_node_watch_open(b, interface, &job->deaths);
    return job->nodes ? 0 : gpsh_last_error_code();
}

struct gpsh_tcp_tree *gpsh_kvs_tree(const struct gpsh_bootstrap *b)
{
    const struct gpsh_kvs_job *job = b->data;
    return gpsh_node_watch_tree(job->nodes);
}

// ------------------------------------------------------------------------------------------
// waiting

// The wait also ends when a PE dies. A launcher need not report that, so a long wait is logged
// once, and GPUSHMEM_WAIT_TIMEOUT_MS can bound it.
bool gpsh_kvs_wait(struct gpsh_kvs_job *job, const struct gpsh_bootstrap *b, const char *what,
                   gpsh_kvs_arrived_fn *arrived, void *arg)
{
    long limit_ms = b->wait_timeout_ms > 0 ? b->wait_timeout_ms : LONG_MAX;
    bool remarked = false, came = false;
    for (long waited_ms = 0; waited_ms < limit_ms && !atomic_load(&job->deaths.first);
         waited_ms += LOOK_MS) {
        long left_ms = limit_ms - waited_ms;
        came = arrived(arg, left_ms < LOOK_MS ? left_ms : LOOK_MS);
        if (came)
            break;
        if (b->waits)
            b->waits(false);
        if (waited_ms < REMARK_AFTER_MS || remarked)
            continue;
        remarked = true;
        GPSH_LOG(WARN, "bootstrap",
                 "%s has been waiting for other PEs for %d s; did one of them end?", what,
                 REMARK_AFTER_MS / 1000);
    }
    if (b->waits)
        b->waits(true);
    return came;
}

int gpsh_kvs_given_up(struct gpsh_kvs_job *job, const struct gpsh_bootstrap *b)
{
    int dead = gpsh_deaths_check(&job->deaths, GPSH_BOOTSTRAP_EXCHANGE, 0);
    if (dead)
        return dead;
    return gpsh_fail(GPUSHMEM_ERR_TIMEOUT,
                     GPSH_BOOTSTRAP_EXCHANGE " timed out after %lld ms (GPUSHMEM_WAIT_TIMEOUT_MS): "
                                             "not all of the %d PEs came here",
                     (long long)b->wait_timeout_ms, b->n_pes);
}
