// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE // what pmix.h needs
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../fakes/fake_pmix.h"
#include "bootstrap/bootstrap_job.h"
#include "bootstrap/bootstrap_ways.h"
#include "core/error.h"
#include "core/log.h"
#include "core/scratch.h"

static struct gpsh_bootstrap boot;

static int read_as_named(int rank, const char *nspace)
{
    pmix_proc_t me;
    memset(&boot, 0, sizeof(boot));
    PMIX_LOAD_PROCID(&me, nspace, (pmix_rank_t)rank);
    return gpsh_bootstrap_job_read(&boot, &me);
}

static int read_as(int rank)
{
    return read_as_named(rank, "job-1");
}

static void job_of(int n_pes, const char *local_peers)
{
    fake_pmix_number(FAKE_PMIX_ALL, PMIX_JOB_SIZE, PMIX_UINT32, n_pes);
    if (local_peers)
        fake_pmix_string(FAKE_PMIX_ALL, PMIX_LOCAL_PEERS, local_peers);
}

static void expect_node(int n, const int *pes, int mine)
{
    cr_assert_eq(boot.node_n_pes, n);
    cr_expect_eq(boot.node_my_pe, mine);
    for (int i = 0; i < n; i++)
        cr_expect_eq(boot.node_pes[i], pes[i]);
    free(boot.node_pes);
}

Test(bootstrap_job, read__peers_in_any_order__sorted)
{
    job_of(12, "10,2,7");
    cr_assert_eq(read_as(7), 0, "%s", gpsh_last_error());
    expect_node(3, (int[]){2, 7, 10}, 1);
    cr_expect_eq(boot.my_pe, 7);
    cr_expect_eq(boot.n_pes, 12);
    cr_expect(!boot.singleton && !boot.launched_by_us);
}

static void size_of_type(pmix_data_type_t type)
{
    fake_pmix_number(FAKE_PMIX_ALL, PMIX_JOB_SIZE, type, 2);
    fake_pmix_string(FAKE_PMIX_ALL, PMIX_LOCAL_PEERS, "0,1");
    cr_assert_eq(read_as(0), 0, "%s", gpsh_last_error());
    expect_node(2, (int[]){0, 1}, 0);
}

Test(bootstrap_job, read__size_is_a_size_t__understood)
{
    size_of_type(PMIX_SIZE);
}

Test(bootstrap_job, read__size_is_an_int__understood)
{
    size_of_type(PMIX_INT);
}

Test(bootstrap_job, read__size_is_16_bits__understood)
{
    size_of_type(PMIX_UINT16);
}

Test(bootstrap_job, read__no_job_size__error)
{
    fake_pmix_string(FAKE_PMIX_ALL, PMIX_LOCAL_PEERS, "0");
    cr_assert_eq(read_as(0), GPUSHMEM_ERR_BOOTSTRAP);
    cr_expect(strstr(gpsh_last_error(), "the size of this job"));
}

Test(bootstrap_job, read__rank_outside_the_job__error)
{
    job_of(4, "0,1,2,3");
    cr_assert_eq(read_as(4), GPUSHMEM_ERR_BOOTSTRAP);
    cr_expect(strstr(gpsh_last_error(), "rank 4 of 4"));
}

Test(bootstrap_job, read__negative_job_size__error)
{
    fake_pmix_number(FAKE_PMIX_ALL, PMIX_JOB_SIZE, PMIX_INT, -4);
    cr_assert_eq(read_as(0), GPUSHMEM_ERR_BOOTSTRAP);
}

// Lists that are no use, with and without host names to fall back to.
static const char *const bad_peers[] = {NULL,
                                        "",
                                        "(null)",
                                        "0,1",
                                        "2,2,3",
                                        "2,9",
                                        "2,-1",
                                        "2;3",
                                        "two",
                                        "0x2,3",
                                        "2,3,99999999999999999999",
                                        "2,3,4,5,6,7"};
enum { N_BAD_PEERS = sizeof(bad_peers) / sizeof(bad_peers[0]) };

Test(bootstrap_job, read__bad_peer_list_and_no_host_names__error)
{
    static char list[64];
    job_of(4, NULL);
    fake_pmix_string(FAKE_PMIX_ALL, PMIX_LOCAL_PEERS, list);
    for (int i = 0; i < N_BAD_PEERS; i++) {
        snprintf(list, sizeof(list), "%s", bad_peers[i] ? bad_peers[i] : "");
        cr_expect_eq(read_as(2), GPUSHMEM_ERR_BOOTSTRAP, "'%s' was accepted", list);
        cr_expect(strstr(gpsh_last_error(), "which of the 4 PEs are on this node"));
        free(boot.node_pes);
    }
}

Test(bootstrap_job, read__bad_peer_list__host_names_decide)
{
    static char list[64];
    job_of(4, NULL);
    fake_pmix_string(FAKE_PMIX_ALL, PMIX_LOCAL_PEERS, list);
    for (int pe = 0; pe < 4; pe++)
        fake_pmix_string(pe, PMIX_HOSTNAME, pe % 2 ? "odd" : "even");
    for (int i = 0; i < N_BAD_PEERS; i++) {
        snprintf(list, sizeof(list), "%s", bad_peers[i] ? bad_peers[i] : "");
        cr_assert_eq(read_as(2), 0, "%s", gpsh_last_error());
        expect_node(2, (int[]){0, 2}, 1);
    }
}

Test(bootstrap_job, read__name_of_the_job__fit_for_file_names)
{
    job_of(1, "0");
    cr_assert_eq(read_as_named(0, "prterun-host/17@1 x"), 0);
    cr_expect_str_eq(boot.job_id, "prterun-host_17_1_x");
    free(boot.node_pes);
}

Test(bootstrap_job, read__long_names__stay_different)
{
    char name[128], first[sizeof(boot.job_id)];
    memset(name, 'x', sizeof(name));
    name[120] = '\0';
    job_of(1, "0");
    cr_assert_eq(read_as_named(0, name), 0);
    snprintf(first, sizeof(first), "%s", boot.job_id);
    free(boot.node_pes);
    name[119] = 'y';
    cr_assert_eq(read_as_named(0, name), 0);
    cr_expect_str_neq(boot.job_id, first);
    cr_expect_lt(strlen(boot.job_id), sizeof(boot.job_id));
    free(boot.node_pes);
}

// The session directory is taken only if it is ours alone.
static void expect_dir(const char *dir, const char *expected)
{
    static char told[256];
    static bool known;
    snprintf(told, sizeof(told), "%s", dir);
    if (!known)
        fake_pmix_string(FAKE_PMIX_ALL, PMIX_NSDIR, told);
    known = true;
    cr_assert_eq(read_as(0), 0);
    cr_expect_str_eq(boot.dir, expected, "'%s' for %s", boot.dir, dir);
    free(boot.node_pes);
}

Test(bootstrap_job, read__session_directory__only_if_private)
{
    char dir[48], file[64], name[64], deep[128];
    job_of(1, "0");
    cr_assert_eq(gpsh_scratch_dir("bootstrap_job", 16, dir, sizeof dir), 0);
    expect_dir(dir, dir);
    chmod(dir, 0755);
    expect_dir(dir, "");
    chmod(dir, 0700);
    snprintf(name, sizeof(name), "%s/link", dir);
    cr_assert_eq(symlink(dir, name), 0);
    expect_dir(name, "");
    unlink(name);
    snprintf(file, sizeof(file), "%s/file", dir);
    fclose(fopen(file, "w"));
    expect_dir(file, "");
    unlink(file);
    snprintf(deep, sizeof(deep), "%s/%060d", dir, 0);
    cr_assert_eq(mkdir(deep, 0700), 0);
    expect_dir(deep, "");
    rmdir(deep);
    rmdir(dir);
    expect_dir(dir, "");
}

Test(bootstrap_job, alone__is_a_job_of_one)
{
    void *blob;
    size_t bytes;
    cr_assert_eq(gpsh_bootstrap_alone_init(&boot), 0);
    cr_expect(boot.singleton);
    cr_expect_eq(boot.n_pes, 1);
    cr_expect_eq(boot.node_n_pes, 1);
    cr_expect_eq(gpsh_bootstrap_get(&boot, 0, &blob, &bytes), GPUSHMEM_ERR_STATE);
    cr_expect_eq(gpsh_bootstrap_put(&boot, "first", 6), 0);
    cr_expect_eq(gpsh_bootstrap_put(&boot, "own", 4), 0);
    cr_assert_eq(gpsh_bootstrap_get(&boot, 0, &blob, &bytes), 0);
    cr_expect_eq(bytes, 4);
    cr_expect_str_eq(blob, "own");
    free(blob);
    cr_expect_eq(gpsh_bootstrap_get(&boot, 1, &blob, &bytes), GPUSHMEM_ERR_PE);
    gpsh_bootstrap_finalize(&boot);
}
