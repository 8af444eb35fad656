// SPDX-License-Identifier: BSD-3-Clause
// After quiet a third PE sees what was put, although it looks by other rails than the data came by,
// and NICs acknowledge writes before they are visible. PE 0 puts to PE 2, and then tells PE 1. Over
// the software HCA with several rails.
#include "../../device/kernel_check.cuh"

enum { ROUNDS = 6, SMALL = 1, MIDDLE = 1000, STRIPED = 40000, WORDS = SMALL + MIDDLE + STRIPED };
enum { WRITER, READER, TARGET };

struct job {
    uint64_t *words;  // symmetric, [WORDS]
    uint64_t *source; // symmetric, [WORDS]
    uint64_t *flag;   // symmetric
};

__global__ void put_all(job j, uint64_t round)
{
    gpushmem_dev_uint64_p(j.words, round, TARGET);
    gpushmem_dev_uint64_put_nbi(j.words + SMALL, j.source + SMALL, MIDDLE, TARGET);
    gpushmem_dev_uint64_put_nbi(j.words + SMALL + MIDDLE, j.source + SMALL + MIDDLE, STRIPED,
                                TARGET);
    gpushmem_dev_quiet();
}

static void put_all_by_host(job j, uint64_t round)
{
    CHECK_OK(gpushmem_uint64_p(j.words, round, TARGET));
    CHECK_OK(gpushmem_uint64_put_nbi(j.words + SMALL, j.source + SMALL, MIDDLE, TARGET));
    CHECK_OK(gpushmem_uint64_put_nbi(j.words + SMALL + MIDDLE, j.source + SMALL + MIDDLE, STRIPED,
                                     TARGET));
    CHECK_OK(gpushmem_quiet());
}

static void tell_third(job j, uint64_t round)
{
    for (int i = 0; i < WORDS; i++)
        j.source[i] = round;
    if (round % 2)
        put_all_by_host(j, round);
    else
        RUN(put_all, 1, 1, j, round);
    CHECK_OK(gpushmem_uint64_atomic_set(j.flag, round, READER)); // at once, unlike a put
    CHECK_OK(gpushmem_quiet());
}

// The large get is divided over the rails otherwise than the puts were.
static void look(job j, uint64_t round)
{
    CHECK_OK(gpushmem_uint64_wait_until(j.flag, GPUSHMEM_CMP_EQ, round));
    CHECK_OK(gpushmem_uint64_get(j.source, j.words, WORDS, TARGET));
    int old = 0;
    for (int i = 0; i < WORDS; i++)
        old += j.source[i] != round;
    CHECK(old == 0);
    if (old)
        fprintf(stderr, "round %d: %d of %d words are older\n", (int)round, old, (int)WORDS);
    CHECK(gpushmem_uint64_g(j.words + SMALL, TARGET) == round);
}

int main(void)
{
    int me = check_begin();
    job j = {};
    j.words = (uint64_t *)gpushmem_calloc(WORDS, 8);
    j.source = (uint64_t *)gpushmem_calloc(WORDS, 8);
    j.flag = (uint64_t *)gpushmem_calloc(1, 8);
    CHECK(j.words && j.source && j.flag && gpushmem_n_pes() == 3);
    for (uint64_t round = 1; round <= ROUNDS; round++) {
        if (me == WRITER)
            tell_third(j, round);
        if (me == READER)
            look(j, round);
        CHECK_OK(gpushmem_barrier_all());
    }
    gpushmem_free(j.flag);
    gpushmem_free(j.source);
    gpushmem_free(j.words);
    return check_end("third_pe");
}
