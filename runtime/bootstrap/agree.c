// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE // gethostname
#include "bootstrap/agree.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/error.h"

// What one PE says.
struct vote {
    int32_t status;
    uint32_t bits;
    char hostname[64];
    char sentence[512];
};

static int publish(struct gpsh_bootstrap *boot, int my_status, uint32_t bits)
{
    struct vote vote = {.status = my_status, .bits = bits};
    gethostname(vote.hostname, sizeof vote.hostname - 1);
    if (my_status)
        snprintf(vote.sentence, sizeof vote.sentence, "%.*s", (int)sizeof vote.sentence - 1,
                 gpsh_last_error());
    int status = gpsh_bootstrap_put(boot, &vote, sizeof vote);
    return status ? status : gpsh_bootstrap_exchange(boot);
}

static int read_vote(struct gpsh_bootstrap *boot, int pe, struct vote *vote)
{
    void *data = NULL;
    size_t bytes = 0;
    int status = gpsh_bootstrap_get(boot, pe, &data, &bytes);
    if (status)
        return status;
    if (bytes == sizeof *vote)
        memcpy(vote, data, sizeof *vote);
    free(data);
    if (bytes != sizeof *vote || !memchr(vote->hostname, '\0', sizeof vote->hostname) ||
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

static int read_number(struct gpsh_bootstrap *boot, int pe, uint64_t *number)
{
    void *data = NULL;
    size_t bytes = 0;
    int status = gpsh_bootstrap_get(boot, pe, &data, &bytes);
    if (status)
        return status;
    if (bytes == sizeof *number)
        memcpy(number, data, sizeof *number);
    free(data);
    if (bytes != sizeof *number)
        return gpsh_fail(GPUSHMEM_ERR_PEER_DATA,
                         "PE %d published %zu bytes where a number of %zu bytes was expected; "
                         "start all PEs with the same gpushmem library",
                         pe, bytes, sizeof *number);
    return 0;
}

int gpsh_agree_least(struct gpsh_bootstrap *boot, uint64_t mine, uint64_t *least, int *whose)
{
    int status = gpsh_bootstrap_put(boot, &mine, sizeof mine);
    if (!status)
        status = gpsh_bootstrap_exchange(boot);
    *least = UINT64_MAX;
    *whose = 0;
    for (int pe = 0; pe < boot->n_pes && !status; pe++) {
        uint64_t number = UINT64_MAX;
        status = read_number(boot, pe, &number);
        if (number < *least) {
            *least = number;
            *whose = pe;
        }
    }
    return status;
}
