// SPDX-License-Identifier: BSD-3-Clause
// What the PMIx server tells its clients about their job: sizes, nodes, who is where.
#ifndef GPSH_JOB_INFO_H
#define GPSH_JOB_INFO_H

#include <pmix.h>
#include <stddef.h>

// A growing list of attributes that remembers its first failure, so that only the end needs a
// check.
struct gpsh_info_list {
    void *items;
    pmix_status_t status;
};

void gpsh_info_list_begin(struct gpsh_info_list *l);
void gpsh_info_list_add(struct gpsh_info_list *l, const char *key, const void *value,
                        pmix_data_type_t type);
// Turns the list into an array, to be released with PMIX_DATA_ARRAY_DESTRUCT. The list is gone in
// any case.
pmix_status_t gpsh_info_list_end(struct gpsh_info_list *l, pmix_data_array_t *infos);

struct gpsh_job_layout {
    const char *nspace;
    const char *hostname; // of the only node; several pretended nodes have names of their own
    const char *dir;
    int n_pes;
    int n_nodes;
};

pmix_status_t gpsh_job_info_build(const struct gpsh_job_layout *job, pmix_data_array_t *infos);

int gpsh_job_node_of(int pe, int n_pes, int n_nodes);
void gpsh_job_node_name(char *name, size_t bytes, int node);

#endif
