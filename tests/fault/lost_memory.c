// SPDX-License-Identifier: BSD-3-Clause
// PE 1 of three kills itself. Who has heard of it gets an error from each call towards it, and no
// output, though the memory of that PE may still be mapped; calls towards the other one work. Run
// under GPUSHMEM_ON_PE_FAILURE=notify.
#define _POSIX_C_SOURCE 200809L // kill
#include <signal.h>
#include <unistd.h>

#include "../pes/check.h"

enum { VICTIM = 1, UNTOUCHED = 77 };

static uint64_t *words; // [4]

static void lost(const char *call, int status)
{
    CHECK_THAT(status == GPUSHMEM_ERR_PE_FAILED && strstr(gpushmem_last_error(), "PE 1") != NULL,
               "%s: %d, %s", call, status, gpushmem_last_error());
}
#define LOST(call) lost(#call, gpushmem_##call)

// By the last error, since it returns a value.
static int by_value(uint64_t value)
{
    return value ? 0 : gpushmem_last_error_code();
}

static void refused(void)
{
    uint64_t here[4] = {UNTOUCHED, UNTOUCHED, UNTOUCHED, UNTOUCHED};
    LOST(getmem(here, words, sizeof here, VICTIM));
    LOST(getmem_nbi(here, words, 8, VICTIM));
    LOST(uint64_get(here, words, 2, VICTIM));
    LOST(uint64_iget(here, words, 1, 2, 2, VICTIM));
    LOST(putmem(words, here, sizeof here, VICTIM));
    LOST(putmem_nbi(words, here, 8, VICTIM));
    LOST(uint64_p(words, 3, VICTIM));
    LOST(uint64_iput(words, here, 2, 1, 2, VICTIM));
    LOST(putmem_signal(words, here, 8, words + 1, 1, GPUSHMEM_SIGNAL_SET, VICTIM));
    LOST(signal_op(words, 1, GPUSHMEM_SIGNAL_ADD, VICTIM));
    LOST(uint64_atomic_add(words, 1, VICTIM));
    LOST(uint64_atomic_fetch_add_status(words, 1, VICTIM, here));
    LOST(uint64_atomic_compare_swap_nbi(here, words, 0, 1, VICTIM));
    gpushmem_clear_error();
    lost("g", by_value(gpushmem_uint64_g(words, VICTIM)));
    CHECK(!gpushmem_pe_accessible(VICTIM) && gpushmem_ptr(words, VICTIM) == NULL);
    for (int i = 0; i < 4; i++)
        CHECK(here[i] == UNTOUCHED);
}

static void others_live(int other)
{
    uint64_t here = 0;
    CHECK_OK(gpushmem_uint64_atomic_add(&words[2], 5, other));
    CHECK_OK(gpushmem_uint64_p(&words[3], 9, other));
    CHECK_OK(gpushmem_uint64_wait_until(&words[3], GPUSHMEM_CMP_EQ, 9));
    CHECK_OK(gpushmem_getmem(&here, &words[3], sizeof here, other));
    CHECK(here == 9);
}

int main(void)
{
    CHECK_OK(gpushmem_init());
    int me = gpushmem_my_pe();
    CHECK(gpushmem_n_pes() == 3);
    words = gpushmem_malloc(4 * sizeof *words);
    CHECK(words);
    words[0] = 4;
    words[1] = words[2] = words[3] = 0;
    CHECK_OK(gpushmem_barrier_all());
    CHECK(gpushmem_uint64_g(words, VICTIM) == 4);
    CHECK_OK(gpushmem_barrier_all());
    if (me == VICTIM)
        kill(getpid(), SIGKILL);
    LOST(uint64_wait_until(&words[1], GPUSHMEM_CMP_NE, 0)); // nobody makes that true
    refused();
    others_live(2 - me);
    (void)gpushmem_finalize();
    printf("PE %d: lost_memory: ok\n", me);
    return 0;
}
