// SPDX-License-Identifier: BSD-3-Clause
#include "connect/records.h"

#include <stdlib.h>
#include <string.h>

#include "bootstrap/bootstrap.h"
#include "core/error.h"

int gpsh_records_open(struct gpsh_records *records, int n_pes)
{
    *records = (struct gpsh_records){.n_pes = n_pes};
    records->of = calloc((size_t)n_pes, sizeof *records->of);
    return records->of ? 0
                       : gpsh_fail(GPUSHMEM_ERR_NO_MEMORY,
                                   "no memory for the connection data of %d PEs", n_pes);
}

static void forget(struct gpsh_records *records)
{
    for (int pe = 0; records->of && pe < records->n_pes; pe++) {
        free(records->of[pe].packed);
        records->of[pe] = (struct gpsh_record){0};
    }
}

void gpsh_records_close(struct gpsh_records *records)
{
    forget(records);
    free(records->of);
    *records = (struct gpsh_records){0};
}

struct gpsh_peer_blob gpsh_records_get(const struct gpsh_records *records, int pe)
{
    struct gpsh_peer_blob blob = {.pe = pe};
    const struct gpsh_record *record = &records->of[pe];
    if (record->packed) // it was parsed before
        (void)gpsh_peer_blob_parse(pe, record->packed, record->bytes, &blob);
    return blob;
}

// What conclusions compare with, while they are drawn.
struct survey {
    uint64_t static_id, static_bytes; // of PE 0
    uint64_t least, most;             // heaps that nobody gave a size
};

static uint32_t ways_of(const struct gpsh_peer_blob *blob)
{
    uint32_t ways = 0;
    for (int i = 0; gpsh_transports[i]; i++)
        ways |= gpsh_peer_blob_find(blob, gpsh_transports[i]->name) ? 1u << i : 0;
    return ways;
}

static void note_heap(struct gpsh_records *records, struct survey *s,
                      const struct gpsh_peer_blob *blob)
{
    if (!blob->heap_fits)
        return;
    if (records->least_heap < 0 || blob->heap_fits < s->least) {
        records->least_heap = blob->pe;
        s->least = blob->heap_fits;
    }
    if (records->most_heap < 0 || blob->heap_fits > s->most) {
        records->most_heap = blob->pe;
        s->most = blob->heap_fits;
    }
}

static void note(struct gpsh_records *records, struct survey *s, const struct gpsh_peer_blob *blob)
{
    if (blob->pe == 0) {
        s->static_id = blob->static_id;
        s->static_bytes = blob->region_bytes[GPSH_STATIC];
    }
    bool same = blob->static_id && blob->static_id == s->static_id &&
                blob->region_bytes[GPSH_STATIC] == s->static_bytes;
    if (!same && records->other_static < 0)
        records->other_static = blob->pe;
    if (blob->nic_atomics == GPSH_NIC_NO_ATOMICS && records->without_atomics < 0)
        records->without_atomics = blob->pe;
    records->any_nic |= blob->nic_atomics != GPSH_NIC_NONE;
    records->ways &= ways_of(blob);
    if (blob->page_bytes > records->page_bytes)
        records->page_bytes = blob->page_bytes;
    note_heap(records, s, blob);
}

int gpsh_records_read(struct gpsh_records *records, struct gpsh_bootstrap *boot,
                      gpsh_record_check *check, void *arg)
{
    struct survey survey = {0};
    int status = 0;
    forget(records);
    records->without_atomics = records->other_static = -1;
    records->least_heap = records->most_heap = -1;
    records->any_nic = false;
    records->page_bytes = 0;
    records->ways = UINT32_MAX;
    for (int pe = 0; pe < records->n_pes && !status; pe++) {
        struct gpsh_record *record = &records->of[pe];
        struct gpsh_peer_blob blob;
        status = gpsh_bootstrap_get(boot, pe, &record->packed, &record->bytes);
        if (!status)
            status = gpsh_peer_blob_parse(pe, record->packed, record->bytes, &blob);
        if (!status)
            status = check(arg, &blob);
        if (!status)
            note(records, &survey, &blob);
    }
    return status;
}
