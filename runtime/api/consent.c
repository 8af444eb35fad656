// SPDX-License-Identifier: BSD-3-Clause
#include "api/consent.h"

#include <stddef.h>
#include <stdio.h>

#include "comm/context.h"
#include "comm/sync.h"
#include "job/job.h"
#include "memory/control.h"
#include "memory/heap.h"

static uint64_t consents; // asked for so far

void gpsh_consent_init(void)
{
    consents = 0;
}

static int read_consent(int pe, uint64_t number, struct gpsh_consent *theirs)
{
    const struct gpsh_op op = {.kind = GPSH_OP_GET,
                               .region = GPSH_CONTROL,
                               .pe = pe,
                               .local = (char *)theirs,
                               .bytes = sizeof *theirs,
                               .remote = offsetof(struct gpsh_control, consent) +
                                         number % 2 * sizeof *theirs};
    return gpsh_context_submit(&gpsh_default_context, &op, GPSH_WAIT_FETCH);
}

// PE 0 first, so that all say the same.
static int learn_of_all(uint64_t number)
{
    struct gpsh_consent theirs;
    for (int pe = 0; pe < gpsh_job()->n_pes; pe++) {
        int status = read_consent(pe, number, &theirs);
        if (status)
            return status;
        if (theirs.number == number && theirs.status < 0 && pe != gpsh_job()->my_pe)
            return gpsh_fail((int)theirs.status, "PE %d: %.*s", pe, (int)sizeof theirs.why - 1,
                             theirs.why);
    }
    return 0;
}

int gpsh_consent(const char *function, enum gpsh_collective_kind kind, uint64_t a, uint64_t b,
                 int here)
{
    uint64_t number = ++consents;
    struct gpsh_consent *mine = &gpsh_heap()->control->consent[number % 2];
    *mine = (struct gpsh_consent){.number = number, .status = here};
    if (here)
        snprintf(mine->why, sizeof mine->why, "%s", gpsh_last_error());
    int status = gpsh_barrier_as(kind, a, b, function);
    if (status == GPUSHMEM_ERR_ASYMMETRY)
        consents--; // as on PEs that are in another call
    if (status)
        return status;
    if (here)
        return gpsh_fail(here, "%s", mine->why);
    return learn_of_all(number);
}
