// SPDX-License-Identifier: BSD-3-Clause
// What every launcher must provide, asked of it through the bootstrap alone. Every PE checks what
// it sees and prints one line "pe P of N node I of M on NODE: ok"; a difference is a sentence and
// exit code 1.
//   boot [CYCLES [PES_PER_NODE]]   init, three rounds of exchange, finalize, CYCLES times; 0: do
//   not check the nodes
// With GPUSHMEM_TEST_ID, a file with a unique id, the job is that of the id, once: PE
// GPUSHMEM_TEST_RANK of GPUSHMEM_TEST_SIZE.
#define _GNU_SOURCE // gethostname, environ
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bootstrap/bootstrap.h"
#include "bootstrap/bootstrap_ways.h"
#include "core/error.h"

enum { ROUNDS = 3 };

static struct gpsh_bootstrap boot;

static void check(int ok, const char *what, long long have, long long want)
{
    if (ok)
        return;
    fprintf(stderr, "pe %d: %s: have %lld, want %lld; last error: %s\n", boot.my_pe, what, have,
            want, gpsh_last_error());
    exit(1);
}

static unsigned char pattern(int pe, int round, size_t i)
{
    return (unsigned char)((size_t)pe * 31 + (size_t)round * 7 + i);
}

// Sizes differ between PEs and rounds, the first round of PE 0 is empty.
static size_t size_of_blob(int pe, int round)
{
    return (size_t)pe * 100 + (size_t)round * 1000;
}

static void put_round(int round)
{
    static unsigned char blob[1 << 20];
    size_t bytes = size_of_blob(boot.my_pe, round);
    for (size_t i = 0; i < bytes; i++)
        blob[i] = pattern(boot.my_pe, round, i);
    int rc = gpsh_bootstrap_put(&boot, blob, bytes);
    check(rc == 0, "put", rc, 0);
    rc = gpsh_bootstrap_exchange(&boot);
    check(rc == 0, "exchange", rc, 0);
}

static void get_round(int round)
{
    for (int pe = 0; pe < boot.n_pes; pe++) {
        void *blob;
        size_t bytes;
        int rc = gpsh_bootstrap_get(&boot, pe, &blob, &bytes);
        check(rc == 0, "get", rc, 0);
        check(bytes == size_of_blob(pe, round), "size of a blob", (long long)bytes,
              (long long)size_of_blob(pe, round));
        for (size_t i = 0; i < bytes; i++)
            check(((unsigned char *)blob)[i] == pattern(pe, round, i), "byte of a blob",
                  (long long)i, (long long)i);
        free(blob);
    }
    void *blob;
    size_t bytes;
    int rc = gpsh_bootstrap_get(&boot, boot.n_pes, &blob, &bytes);
    check(rc == GPUSHMEM_ERR_PE, "get of a PE that does not exist", rc, GPUSHMEM_ERR_PE);
}

static void check_node(int per_node)
{
    check(boot.node_pes[boot.node_my_pe] == boot.my_pe, "own place on the node",
          boot.node_pes[boot.node_my_pe], boot.my_pe);
    for (int i = 1; i < boot.node_n_pes; i++)
        check(boot.node_pes[i - 1] < boot.node_pes[i], "order of the node's PEs",
              boot.node_pes[i - 1], boot.node_pes[i]);
    if (per_node > 0)
        check(boot.node_n_pes == per_node, "PEs on this node", boot.node_n_pes, per_node);
}

// Everybody publishes its idea of its node; the ideas must agree.
static void check_nodes_agree(void)
{
    int mine[2] = {boot.node_n_pes, boot.node_pes[0]};
    int rc = gpsh_bootstrap_put(&boot, mine, sizeof(mine));
    check(rc == 0, "put of the node", rc, 0);
    rc = gpsh_bootstrap_exchange(&boot);
    check(rc == 0, "exchange of the nodes", rc, 0);
    int same = 0;
    for (int pe = 0; pe < boot.n_pes; pe++) {
        void *blob;
        size_t bytes;
        rc = gpsh_bootstrap_get(&boot, pe, &blob, &bytes);
        check(rc == 0 && bytes == sizeof(mine), "get of a node", rc, 0);
        same += memcmp(blob, mine, sizeof(mine)) == 0;
        free(blob);
    }
    check(same == boot.node_n_pes, "PEs that agree on this node", same, boot.node_n_pes);
}

static int join_by_id(const char *path)
{
    struct gpushmem_uniqueid id;
    struct gpsh_settings settings;
    FILE *file = fopen(path, "rb");
    check(file && fread(&id, sizeof(id), 1, file) == 1, "id in the file", errno, 0);
    fclose(file);
    int rc = gpsh_settings_read(environ, &settings);
    if (!rc)
        rc = gpsh_bootstrap_tcp_init(&boot, &id, atoi(getenv("GPUSHMEM_TEST_RANK")),
                                     atoi(getenv("GPUSHMEM_TEST_SIZE")), &settings);
    gpsh_settings_clear(&settings);
    return rc;
}

int main(int argc, char **argv)
{
    int cycles = argc > 1 ? atoi(argv[1]) : 1;
    int per_node = argc > 2 ? atoi(argv[2]) : 0;
    for (int cycle = 0; cycle < cycles; cycle++) {
        const char *id = getenv("GPUSHMEM_TEST_ID");
        int rc = id ? join_by_id(id) : gpsh_bootstrap_init(&boot);
        check(rc == 0, "init", rc, 0);
        check_node(per_node);
        for (int round = 0; round < ROUNDS; round++) {
            put_round(round);
            get_round(round);
        }
        check_nodes_agree();
        rc = gpsh_bootstrap_exchange(&boot);
        check(rc == 0, "fence", rc, 0);
        if (cycle == cycles - 1)
            printf("pe %d of %d node %d of %d job %s dir '%s': ok\n", boot.my_pe, boot.n_pes,
                   boot.node_my_pe, boot.node_n_pes, boot.job_id, boot.dir);
        gpsh_bootstrap_finalize(&boot);
    }
    return 0;
}
