// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE // open_memstream, and what pmix.h needs
#include "job_info.h"

#include <pmix_server.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void gpsh_info_list_begin(struct gpsh_info_list *l)
{
    l->items = PMIx_Info_list_start();
    l->status = l->items ? PMIX_SUCCESS : PMIX_ERR_NOMEM;
}

void gpsh_info_list_add(struct gpsh_info_list *l, const char *key, const void *value,
                        pmix_data_type_t type)
{
    if (l->status == PMIX_SUCCESS)
        l->status = PMIx_Info_list_add(l->items, key, value, type);
}

pmix_status_t gpsh_info_list_end(struct gpsh_info_list *l, pmix_data_array_t *infos)
{
    PMIX_DATA_ARRAY_INIT(infos, PMIX_INFO);
    if (l->status == PMIX_SUCCESS)
        l->status = PMIx_Info_list_convert(l->items, infos);
    if (l->items)
        PMIx_Info_list_release(l->items);
    return l->status;
}

int gpsh_job_node_of(int pe, int n_pes, int n_nodes)
{
    return (int)((int64_t)pe * n_nodes / n_pes);
}

// The first PE of a node: the smallest with gpsh_job_node_of(pe) >= node.
static int first_pe_of(int node, const struct gpsh_job_layout *job)
{
    return (int)(((int64_t)node * job->n_pes + job->n_nodes - 1) / job->n_nodes);
}

void gpsh_job_node_name(char *name, size_t bytes, int node)
{
    snprintf(name, bytes, "pretended%d", node);
}

static void node_name(char *name, size_t bytes, int node, const struct gpsh_job_layout *job)
{
    if (job->n_nodes == 1)
        snprintf(name, bytes, "%s", job->hostname);
    else
        gpsh_job_node_name(name, bytes, node);
}

// The texts from which PMIx derives who is where: nodes "a,b", and their PEs "0,1;2,3".
struct maps {
    char *nodes;
    char *pes;
    char *node_regex;
    char *pe_regex;
};

static void print_pes(FILE *out, int node, const struct gpsh_job_layout *job)
{
    int end = first_pe_of(node + 1, job);
    for (int pe = first_pe_of(node, job); pe < end; pe++)
        fprintf(out, "%s%d", pe == first_pe_of(node, job) ? "" : ",", pe);
}

static pmix_status_t maps_print(struct maps *m, const struct gpsh_job_layout *job)
{
    size_t bytes;
    char name[256];
    FILE *nodes = open_memstream(&m->nodes, &bytes);
    FILE *pes = open_memstream(&m->pes, &bytes);
    for (int node = 0; nodes && pes && node < job->n_nodes; node++) {
        node_name(name, sizeof(name), node, job);
        fprintf(nodes, "%s%s", node ? "," : "", name);
        fputs(node ? ";" : "", pes);
        print_pes(pes, node, job);
    }
    bool failed = !nodes || !pes || ferror(nodes) || ferror(pes);
    failed |= nodes && fclose(nodes) != 0;
    failed |= pes && fclose(pes) != 0;
    return failed ? PMIX_ERR_NOMEM : PMIX_SUCCESS;
}

static void maps_release(struct maps *m)
{
    free(m->nodes);
    free(m->pes);
    free(m->node_regex);
    free(m->pe_regex);
}

static pmix_status_t maps_make(struct maps *m, const struct gpsh_job_layout *job)
{
    *m = (struct maps){0};
    pmix_status_t rc = maps_print(m, job);
    if (rc == PMIX_SUCCESS)
        rc = PMIx_generate_regex(m->nodes, &m->node_regex);
    if (rc == PMIX_SUCCESS)
        rc = PMIx_generate_ppn(m->pes, &m->pe_regex);
    if (rc != PMIX_SUCCESS)
        maps_release(m);
    return rc;
}

static void add_u32(struct gpsh_info_list *l, const char *key, int number)
{
    uint32_t value = (uint32_t)number;
    gpsh_info_list_add(l, key, &value, PMIX_UINT32);
}

static void add_array(struct gpsh_info_list *l, const char *key, struct gpsh_info_list *inner)
{
    pmix_data_array_t array;
    pmix_status_t rc = gpsh_info_list_end(inner, &array);
    if (rc == PMIX_SUCCESS)
        gpsh_info_list_add(l, key, &array, PMIX_DATA_ARRAY);
    else
        l->status = rc;
    PMIX_DATA_ARRAY_DESTRUCT(&array);
}

static void add_pe(struct gpsh_info_list *l, int pe, const struct gpsh_job_layout *job)
{
    char name[256];
    int node = gpsh_job_node_of(pe, job->n_pes, job->n_nodes);
    pmix_rank_t rank = (pmix_rank_t)pe;
    uint16_t local_rank = (uint16_t)(pe - first_pe_of(node, job));
    struct gpsh_info_list inner;

    node_name(name, sizeof(name), node, job);
    gpsh_info_list_begin(&inner);
    gpsh_info_list_add(&inner, PMIX_RANK, &rank, PMIX_PROC_RANK); // must come first
    gpsh_info_list_add(&inner, PMIX_GLOBAL_RANK, &rank, PMIX_PROC_RANK);
    gpsh_info_list_add(&inner, PMIX_LOCAL_RANK, &local_rank, PMIX_UINT16);
    gpsh_info_list_add(&inner, PMIX_NODE_RANK, &local_rank, PMIX_UINT16);
    gpsh_info_list_add(&inner, PMIX_HOSTNAME, name, PMIX_STRING);
    add_u32(&inner, PMIX_NODEID, node);
    add_u32(&inner, PMIX_APPNUM, 0);
    add_array(l, PMIX_PROC_INFO_ARRAY, &inner);
}

// With one node its numbers are those of the job; clients of pretended nodes ask for them by node.
static void add_only_node(struct gpsh_info_list *l, const struct maps *m,
                          const struct gpsh_job_layout *job)
{
    add_u32(l, PMIX_LOCAL_SIZE, job->n_pes);
    add_u32(l, PMIX_NODE_SIZE, job->n_pes);
    gpsh_info_list_add(l, PMIX_LOCAL_PEERS, m->pes, PMIX_STRING);
}

pmix_status_t gpsh_job_info_build(const struct gpsh_job_layout *job, pmix_data_array_t *infos)
{
    struct maps m;
    pmix_status_t rc = maps_make(&m, job);
    if (rc != PMIX_SUCCESS)
        return rc;
    struct gpsh_info_list l;
    gpsh_info_list_begin(&l);
    gpsh_info_list_add(&l, PMIX_JOBID, job->nspace, PMIX_STRING);
    add_u32(&l, PMIX_UNIV_SIZE, job->n_pes);
    add_u32(&l, PMIX_JOB_SIZE, job->n_pes);
    add_u32(&l, PMIX_MAX_PROCS, job->n_pes);
    add_u32(&l, PMIX_NUM_NODES, job->n_nodes);
    add_u32(&l, PMIX_JOB_NUM_APPS, 1);
    gpsh_info_list_add(&l, PMIX_NODE_MAP, m.node_regex, PMIX_REGEX);
    gpsh_info_list_add(&l, PMIX_PROC_MAP, m.pe_regex, PMIX_REGEX);
    gpsh_info_list_add(&l, PMIX_NODE_LIST, m.nodes, PMIX_STRING);
    gpsh_info_list_add(&l, PMIX_NSDIR, job->dir, PMIX_STRING);
    gpsh_info_list_add(&l, PMIX_TMPDIR, job->dir, PMIX_STRING);
    if (job->n_nodes == 1)
        add_only_node(&l, &m, job);
    for (int pe = 0; pe < job->n_pes; pe++)
        add_pe(&l, pe, job);
    maps_release(&m);
    rc = gpsh_info_list_end(&l, infos);
    return rc;
}
