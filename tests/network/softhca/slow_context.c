// SPDX-License-Identifier: BSD-3-Clause
// One context's operation is under way for as long as this program likes; another context's quiet,
// and the default one's, do not wait for it. Two PEs, over the software HCA.
#include <dlfcn.h>
#include <stdatomic.h>

#include "../../pes/check.h"

enum { LARGE = 1 << 20, WORDS = LARGE / 8 };

static uint64_t *words;
static uint64_t last_word(void)
{
    return gpushmem_uint64_g(&words[WORDS - 1], 1);
}

// PE 0 alone. With queues of their own the contexts do not wait for each other.
static void slow_and_quick(_Atomic uint64_t *hold)
{
    static uint64_t source[WORDS];
    gpushmem_ctx_t slow, quick;
    CHECK_OK(gpushmem_ctx_create(0, &slow));
    CHECK_OK(gpushmem_ctx_create(0, &quick));
    for (uint64_t round = 1; round <= 3; round++) {
        source[WORDS - 1] = round;
        atomic_store(hold, LARGE / 16);
        CHECK_OK(gpushmem_ctx_uint64_put_nbi(slow, words, source, WORDS, 1));
        CHECK_OK(gpushmem_ctx_uint64_p(quick, &words[WORDS], round, 1));
        CHECK_OK(gpushmem_ctx_quiet(quick));
        CHECK_OK(gpushmem_uint64_p(&words[WORDS + 1], round, 1));
        CHECK_OK(gpushmem_quiet());
        CHECK(gpushmem_uint64_g(&words[WORDS], 1) == round);
        CHECK(gpushmem_uint64_g(&words[WORDS + 1], 1) == round);
        CHECK(last_word() == round - 1);
        atomic_store(hold, 0);
        CHECK_OK(gpushmem_ctx_quiet(slow));
        CHECK(last_word() == round);
    }
    CHECK_OK(gpushmem_ctx_destroy(quick));
    CHECK_OK(gpushmem_ctx_destroy(slow));
}

int main(void)
{
    CHECK_OK(gpushmem_init());
    _Atomic uint64_t *hold = (_Atomic uint64_t *)dlsym(RTLD_DEFAULT, "gpushmem_softhca_hold_bytes");
    CHECK_THAT(hold != NULL && gpushmem_n_pes() == 2, "two PEs, and the software HCA preloaded");
    words = gpushmem_calloc(WORDS + 2, sizeof *words);
    CHECK(words != NULL);
    if (gpushmem_my_pe() == 0)
        slow_and_quick(hold);
    CHECK_OK(gpushmem_free(words));
    CHECK_OK(gpushmem_finalize());
    return 0;
}
