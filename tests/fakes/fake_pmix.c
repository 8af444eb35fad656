// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE // what pmix.h needs
#include "fake_pmix.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static struct entry {
    pmix_rank_t rank;
    const char *key;
    const char *text;
    pmix_data_type_t type;
    long number;
} entries[64];
static int n_entries;

static struct entry *add(int rank, const char *key)
{
    if (n_entries == sizeof(entries) / sizeof(entries[0]))
        abort();
    struct entry *e = &entries[n_entries++];
    e->rank = rank == FAKE_PMIX_ALL ? PMIX_RANK_WILDCARD : (pmix_rank_t)rank;
    e->key = key;
    return e;
}

void fake_pmix_string(int rank, const char *key, const char *text)
{
    struct entry *e = add(rank, key);
    e->type = PMIX_STRING;
    e->text = text;
}

void fake_pmix_number(int rank, const char *key, pmix_data_type_t type, long number)
{
    struct entry *e = add(rank, key);
    e->type = type;
    e->number = number;
}

static pmix_value_t *value_of(const struct entry *e)
{
    pmix_value_t *v = calloc(1, sizeof(*v));
    v->type = e->type;
    switch (e->type) {
    case PMIX_STRING: v->data.string = strdup(e->text); break;
    case PMIX_UINT16: v->data.uint16 = (uint16_t)e->number; break;
    case PMIX_UINT32: v->data.uint32 = (uint32_t)e->number; break;
    case PMIX_INT: v->data.integer = (int)e->number; break;
    case PMIX_SIZE: v->data.size = (size_t)e->number; break;
    default: abort();
    }
    return v;
}

// Stands in for libpmix's. A key is only ever looked up where it must not be waited for.
pmix_status_t PMIx_Get(const pmix_proc_t *proc, const char key[], const pmix_info_t info[],
                       size_t n_info, pmix_value_t **value)
{
    bool optional = false;
    for (size_t i = 0; i < n_info; i++)
        optional |= PMIX_CHECK_KEY(&info[i], PMIX_OPTIONAL);
    if (!optional)
        abort();
    for (int i = 0; i < n_entries; i++) {
        if (entries[i].rank == proc->rank && strcmp(entries[i].key, key) == 0) {
            *value = value_of(&entries[i]);
            return PMIX_SUCCESS;
        }
    }
    return PMIX_ERR_NOT_FOUND;
}
