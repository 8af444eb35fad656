// SPDX-License-Identifier: BSD-3-Clause
// Three jobs of the same PEs, one after the other. PE 0 replaces itself by exec after each, and the
// others go on: they are older processes, and mean the same job all the same.
#define _POSIX_C_SOURCE 200809L // execv
#include <unistd.h>

#include "../check.h"

enum { JOBS = 3 };

static void be_in_job(uint64_t job)
{
    CHECK_OK(gpushmem_init());
    int n = gpushmem_n_pes(), next = (gpushmem_my_pe() + 1) % n;
    uint64_t *word = gpushmem_calloc(1, sizeof *word);
    CHECK(word);
    CHECK_OK(gpushmem_uint64_p(word, job, next));
    CHECK_OK(gpushmem_uint64_wait_until(word, GPUSHMEM_CMP_EQ, job));
    CHECK_OK(gpushmem_free(word));
    CHECK_OK(gpushmem_finalize());
}

int main(int argc, char **argv)
{
    const char *pe = getenv("GPUSHMEM_RUN_PE");
    CHECK(pe);
    uint64_t job = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
    for (; job <= JOBS; job++) {
        be_in_job(job);
        char next[] = {(char)('1' + job), '\0'};
        if (!strcmp(pe, "0") && job < JOBS)
            execv(argv[0], (char *[]){argv[0], next, NULL});
    }
    return 0;
}
