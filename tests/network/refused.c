// SPDX-License-Identifier: BSD-3-Clause
// refused HOW: in the middle of a run PE 1's NIC makes no more queue pairs, and does again. Under
// GPUSHMEM_ON_PE_FAILURE=notify. HOW:
//   for_a_while   what needs a connection waits, and nothing is lost
//   here          PE 1's operation on a new context fails with the reason; all others go on
//   there         so does that of a PE which wants a connection with PE 1
// The reason is EMFILE, or ENOMEM with a second argument.
#define _GNU_SOURCE // RTLD_DEFAULT, usleep
#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <unistd.h>

#include "../pes/check.h"

enum { REFUSED = 1, OTHER = 2, PES = 3 };

static uint64_t *words; // [PES + 1]
static _Atomic int *refuses;

// Each adds to a word of each other one, in turn, and all sees all of it.
static void everybody_lives(uint64_t round)
{
    int me = gpushmem_my_pe();
    for (int pe = 0; pe < PES; pe++)
        CHECK_OK(gpushmem_uint64_atomic_add(&words[me], 1, pe));
    CHECK_OK(gpushmem_quiet());
    for (int pe = 0; pe < PES; pe++)
        CHECK_OK(gpushmem_uint64_wait_until(&words[pe], GPUSHMEM_CMP_GE, round));
}

// PE 1's NIC makes no queue pair from now on, or does again: 0.
static void refuse(int error)
{
    if (gpushmem_my_pe() == REFUSED)
        atomic_store(refuses, error);
}

// All PEs have the new context, which has no connection yet, when PE 1's NIC begins to refuse.
static gpushmem_ctx_t refused_context(int error)
{
    gpushmem_ctx_t ctx;
    CHECK_OK(gpushmem_ctx_create(0, &ctx));
    CHECK_OK(gpushmem_barrier_all());
    refuse(error);
    return ctx;
}

static void for_a_while(int error)
{
    static uint64_t value = 7;
    int me = gpushmem_my_pe();
    gpushmem_ctx_t ctx = refused_context(error);
    if (me == REFUSED) // is accepted, and waits
        CHECK_OK(gpushmem_ctx_putmem_nbi(ctx, &words[PES], &value, 8, OTHER));
    usleep(300000);
    refuse(0);
    CHECK_OK(gpushmem_ctx_quiet(ctx));
    if (me == OTHER)
        CHECK_OK(gpushmem_uint64_wait_until(&words[PES], GPUSHMEM_CMP_EQ, 7));
    everybody_lives(2);
    CHECK_OK(gpushmem_barrier_all());
    CHECK_OK(gpushmem_ctx_destroy(ctx));
}

static void expect_refusal(gpushmem_ctx_t ctx, int pe, int error, const char *who)
{
    uint64_t value = 7;
    int status = gpushmem_ctx_getmem(ctx, &value, &words[PES], 8, pe);
    const char *why = gpushmem_last_error();
    CHECK_THAT(status == GPUSHMEM_ERR_TRANSPORT && value == 7 && strstr(why, strerror(error)) &&
                   strstr(why, who),
               "%d: %s", status, why);
    printf("PE %d: %s\n", gpushmem_my_pe(), why);
}

// `pe` cannot connect with `to`. Meanwhile the others work with each other, and afterwards all do:
// what was closed for room is made again.
static void alone(int error, int pe, int to, const char *who)
{
    int me = gpushmem_my_pe();
    gpushmem_ctx_t ctx = refused_context(error);
    usleep(10000);
    if (me == pe)
        expect_refusal(ctx, to, error, who);
    for (uint64_t i = 0; i < 1000 && me != REFUSED; i++)
        CHECK_OK(gpushmem_uint64_atomic_add(&words[me], 0, OTHER - me));
    if (me == REFUSED && pe != REFUSED)
        CHECK_OK(gpushmem_uint64_wait_until(&words[PES], GPUSHMEM_CMP_EQ, 1));
    refuse(0);
    if (me == pe)
        CHECK_OK(gpushmem_uint64_p(&words[PES], 1, to));
    everybody_lives(2);
}

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "";
    int error = argc > 2 ? ENOMEM : EMFILE;
    refuses = (_Atomic int *)dlsym(RTLD_DEFAULT, "gpushmem_softhca_qp_error");
    CHECK(refuses);
    CHECK_OK(gpushmem_init());
    CHECK(gpushmem_n_pes() == PES);
    words = gpushmem_calloc(PES + 1, sizeof *words);
    CHECK(words);
    everybody_lives(1);
    if (!strcmp(how, "for_a_while"))
        for_a_while(error);
    else if (!strcmp(how, "here"))
        alone(error, REFUSED, OTHER, "cannot create a queue pair");
    else
        alone(error, OTHER, REFUSED, "PE 1 refuses a connection");
    (void)gpushmem_finalize();
    printf("PE %d: refused: ok\n", gpushmem_my_pe());
    return 0;
}
