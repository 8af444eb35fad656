// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE // gethostname
#include "bootstrap/agree.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/error.h"

// What one PE says. The texts are published only with a status that is not 0.
struct vote {
    int32_t status;
    uint32_t bits;
    char hostname[64];
    char sentence[512];
};
enum { VOTE_WITHOUT_TEXTS = offsetof(struct vote, hostname) };

static int publish(struct gpsh_bootstrap *boot, int my_status, uint32_t bits)
{
    struct vote vote = {.status = my_status, .bits = bits};
    if (my_status) {
        gethostname(vote.hostname, sizeof vote.hostname - 1);
        snprintf(vote.sentence, sizeof vote.sentence, "%.*s", (int)sizeof vote.sentence - 1,
                 gpsh_last_error());
    }
    int status =
        gpsh_bootstrap_put(boot, &vote, my_status ? sizeof vote : (size_t)VOTE_WITHOUT_TEXTS);
    return status ? status : gpsh_bootstrap_exchange(boot);
}

static int read_vote(struct gpsh_bootstrap *boot, int pe, struct vote *vote)
{
    void *data = NULL;
    size_t bytes = 0;
    int status = gpsh_bootstrap_get(boot, pe, &data, &bytes);
    if (status)
        return status;
    *vote = (struct vote){0};
    bool sized = bytes == sizeof *vote || bytes == VOTE_WITHOUT_TEXTS;
    if (sized)
        memcpy(vote, data, bytes);
    free(data);
    if (!sized || (vote->status && bytes < sizeof *vote) ||
        !memchr(vote->hostname, '\0', sizeof vote->hostname) ||
        !memchr(vote->sentence, '\0', sizeof vote->sentence) || vote->status > 0)
        return gpsh_fail(GPUSHMEM_ERR_PEER_DATA,
                         "PE %d published %zu bytes that are no status of its init; start all PEs "
                         "with the same gpushmem library",
                         pe, bytes);
    return 0;
}

int gpsh_agree(struct gpsh_bootstrap *boot, int my_status, uint32_t mine, uint32_t *all)
{
    char sentence[GPSH_ERROR_BYTES];
    if (my_status)
        snprintf(sentence, sizeof sentence, "%.*s", (int)sizeof sentence - 1, gpsh_last_error());
    int status = publish(boot, my_status, mine);
    if (my_status) // whatever became of the exchange, this PE's own trouble is what is to be told
        return gpsh_fail(my_status, "%s", sentence);
    uint32_t common = mine;
    for (int pe = 0; pe < boot->n_pes && !status; pe++) {
        struct vote vote;
        status = read_vote(boot, pe, &vote);
        if (!status && vote.status)
            return gpsh_fail(vote.status, "PE %d on %s could not initialise: %s", pe, vote.hostname,
                             vote.sentence);
        common &= status ? 0 : vote.bits;
    }
    if (!status && all)
        *all = common;
    return status;
}
