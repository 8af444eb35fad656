// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE // what pmix.h needs
#include "bootstrap/bootstrap_job.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bootstrap/kvs_job.h"
#include "core/error.h"
#include "core/log.h"

enum { LONGEST_DIR = 80 }; // so that a socket's path below it fits into 107 bytes

// Value of a job attribute, or NULL. Never waits for anything remote.
static pmix_value_t *job_value(const pmix_proc_t *proc, const char *key)
{
    pmix_value_t *value = NULL;
    pmix_info_t optional;
    PMIX_INFO_LOAD(&optional, PMIX_OPTIONAL, NULL, PMIX_BOOL);
    pmix_status_t rc = PMIx_Get(proc, key, &optional, 1, &value);
    PMIX_INFO_DESTRUCT(&optional);
    return rc == PMIX_SUCCESS ? value : NULL;
}

// Launchers differ in the integer type of one and the same attribute.
static bool value_number(const pmix_value_t *v, uint64_t *number)
{
    switch (v->type) {
    case PMIX_UINT16: *number = v->data.uint16; return true;
    case PMIX_UINT32: *number = v->data.uint32; return true;
    case PMIX_UINT64: *number = v->data.uint64; return true;
    case PMIX_SIZE: *number = v->data.size; return true;
    case PMIX_INT: *number = (uint64_t)v->data.integer; return v->data.integer >= 0;
    case PMIX_INT32: *number = (uint64_t)v->data.int32; return v->data.int32 >= 0;
    default: return false;
    }
}

static bool job_number(const pmix_proc_t *proc, const char *key, uint64_t *number)
{
    pmix_value_t *v = job_value(proc, key);
    bool found = v && value_number(v, number);
    if (v)
        PMIX_VALUE_RELEASE(v);
    return found;
}

// malloc'ed, or NULL if there is none, or an empty or nonsensical one.
static char *job_string(const pmix_proc_t *proc, const char *key)
{
    pmix_value_t *v = job_value(proc, key);
    char *text = NULL;
    if (v && v->type == PMIX_STRING && v->data.string && v->data.string[0] &&
        strcmp(v->data.string, "(null)") != 0)
        text = strdup(v->data.string);
    if (v)
        PMIX_VALUE_RELEASE(v);
    return text;
}

static pmix_proc_t whole_job(const pmix_proc_t *me)
{
    pmix_proc_t all;
    PMIX_LOAD_PROCID(&all, me->nspace, PMIX_RANK_WILDCARD);
    return all;
}

static int compare_pes(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

// Fills node_pes from "3,0,2": launchers give the ranks in any order. False: not a list of distinct
// PEs with ours in it.
static bool node_pes_parse(struct gpsh_bootstrap *b, const char *text)
{
    int n = 0;
    bool mine = false;
    while (*text && n < b->n_pes) {
        char *end;
        long pe = strtol(text, &end, 10);
        if (end == text || pe < 0 || pe >= b->n_pes || (*end != ',' && *end != '\0'))
            return false;
        b->node_pes[n++] = (int)pe;
        mine |= pe == b->my_pe;
        text = end + (*end == ',');
    }
    if (*text || !mine)
        return false;
    qsort(b->node_pes, (size_t)n, sizeof(*b->node_pes), compare_pes);
    for (int i = 1; i < n; i++) {
        if (b->node_pes[i] == b->node_pes[i - 1])
            return false;
    }
    b->node_n_pes = n;
    return true;
}

// For a launcher that does not list the local peers: those with our host name.
static bool node_pes_by_hostname(struct gpsh_bootstrap *b, const pmix_proc_t *me)
{
    char *mine = job_string(me, PMIX_HOSTNAME);
    b->node_n_pes = 0;
    for (int pe = 0; mine && pe < b->n_pes; pe++) {
        pmix_proc_t proc;
        PMIX_LOAD_PROCID(&proc, me->nspace, (pmix_rank_t)pe);
        char *theirs = job_string(&proc, PMIX_HOSTNAME);
        if (theirs && strcmp(mine, theirs) == 0)
            b->node_pes[b->node_n_pes++] = pe;
        free(theirs);
    }
    free(mine);
    return b->node_n_pes > 0;
}

static int find_node(struct gpsh_bootstrap *b, const pmix_proc_t *me)
{
    pmix_proc_t all = whole_job(me);
    b->node_pes = malloc((size_t)b->n_pes * sizeof(*b->node_pes));
    if (!b->node_pes)
        return gpsh_fail(GPUSHMEM_ERR_NO_MEMORY, "no memory for the list of %d PEs", b->n_pes);
    char *peers = job_string(&all, PMIX_LOCAL_PEERS);
    bool found = (peers && node_pes_parse(b, peers)) || node_pes_by_hostname(b, me);
    if (!found)
        gpsh_fail(
            GPUSHMEM_ERR_BOOTSTRAP,
            "the launcher does not tell which of the %d PEs are on this node (its list is '%s')",
            b->n_pes, peers ? peers : "");
    free(peers);
    if (!found)
        return GPUSHMEM_ERR_BOOTSTRAP;
    for (int i = 0; i < b->node_n_pes; i++) {
        if (b->node_pes[i] == b->my_pe)
            b->node_my_pe = i;
    }
    return 0;
}

// The launcher's session directory, if it is what we need: ours alone, and short enough for a
// socket's path.
static void find_dir(struct gpsh_bootstrap *b, const pmix_proc_t *me)
{
    struct stat st;
    pmix_proc_t all = whole_job(me);
    char *dir = job_string(&all, PMIX_NSDIR);
    if (dir && strlen(dir) <= LONGEST_DIR && lstat(dir, &st) == 0 && S_ISDIR(st.st_mode) &&
        st.st_uid == geteuid() && (st.st_mode & 077) == 0 && access(dir, W_OK | X_OK) == 0)
        snprintf(b->dir, sizeof(b->dir), "%s", dir);
    free(dir);
}

int gpsh_bootstrap_job_read(struct gpsh_bootstrap *b, const pmix_proc_t *me)
{
    uint64_t n_pes;
    pmix_proc_t all = whole_job(me);
    if (!job_number(&all, PMIX_JOB_SIZE, &n_pes))
        return gpsh_fail(GPUSHMEM_ERR_BOOTSTRAP,
                         "the launcher does not tell the size of this job: libpmix joins a job "
                         "once in a process, so a program that replaced itself by exec after init, "
                         "or after PMIx_Finalize by other code, cannot join again");
    if (n_pes == 0 || n_pes > INT32_MAX || me->rank >= n_pes)
        return gpsh_fail(GPUSHMEM_ERR_BOOTSTRAP, "the launcher calls this process rank %u of %llu",
                         me->rank, (unsigned long long)n_pes);
    b->n_pes = (int)n_pes;
    b->my_pe = (int)me->rank;
    gpsh_kvs_job_id(b, me->nspace);
    find_dir(b, me);
    return find_node(b, me);
}
