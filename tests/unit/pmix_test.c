// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE // sem_t
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <pmix.h>
#include <semaphore.h>
#include <string.h>

#include "bootstrap/bootstrap_ways.h"
#include "core/error.h"
#include "gpushmem/gpushmem.h"

static sem_t server; // that answers when this says so
static int calls;

pmix_status_t PMIx_Init(pmix_proc_t *proc, pmix_info_t *info, size_t n)
{
    (void)proc, (void)info, (void)n;
    calls++;
    while (sem_wait(&server))
        continue;
    return PMIX_ERR_UNREACH;
}

Test(pmix, init__server_that_never_answers__given_up)
{
    struct gpsh_bootstrap b;
    const struct gpsh_settings settings = {.wait_timeout_ms = 30};
    sem_init(&server, 0, 0);
    cr_assert(eq(int, gpsh_bootstrap_pmix_init(&b, &settings), GPUSHMEM_ERR_TIMEOUT));
    cr_assert(strstr(gpsh_last_error(), "GPUSHMEM_WAIT_TIMEOUT_MS") != NULL);
    cr_assert(b.ops == NULL);
    sem_post(&server);
    // the same call is waited for again
    const struct gpsh_settings patient = {.wait_timeout_ms = 0};
    cr_assert(eq(int, gpsh_bootstrap_pmix_init(&b, &patient), GPUSHMEM_ERR_BOOTSTRAP));
    cr_assert(strstr(gpsh_last_error(), "does not answer") != NULL);
    cr_assert(eq(int, calls, 1));
}
