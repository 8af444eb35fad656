// SPDX-License-Identifier: BSD-3-Clause
#include "comm/team_alone.h"

#include <string.h>

// What the members ask each other: first the slots, then about the one that is free on all.
enum { SLOT_WORDS = GPUSHMEM_TEAM_SLOTS / 64 };
enum { EPOCH, KERNELS_EPOCH, GENERATION, LACKS, FAILED };
_Static_assert((int)SLOT_WORDS <= (int)GPSH_TEAM_ASK_WORDS, "all slots can be asked for");

static void fold_slots(uint64_t *words, const uint64_t *other)
{
    for (int i = 0; i < SLOT_WORDS; i++)
        words[i] &= other[i];
}

static void fold_terms(uint64_t *words, const uint64_t *other)
{
    for (int i = EPOCH; i <= GENERATION; i++)
        words[i] = other[i] > words[i] ? other[i] : words[i];
    words[LACKS] |= other[LACKS];
    words[FAILED] |= other[FAILED];
}

static int ask_slot(const struct gpsh_team_asking *asking, const char *what, int n, int *slot)
{
    uint64_t words[GPSH_TEAM_ASK_WORDS] = {0};
    const struct gpsh_team_slots mine = gpsh_team_free_slots();
    memcpy(words, mine.bits, sizeof mine.bits);
    int status = asking->ask(asking->self, words, fold_slots);
    if (status)
        return status;
    for (int i = 0; i < SLOT_WORDS; i++)
        if (words[i]) {
            *slot = i * 64 + __builtin_ctzll(words[i]);
            return 0;
        }
    char advice[160];
    return gpsh_fail(GPUSHMEM_ERR_NO_MEMORY,
                     "%s: no slot is free on all of %d PEs for one team more: %s", what, n,
                     gpsh_team_slots_advice(advice));
}

// `mine`: what this PE failed with. The members have to hear of it before it gives up.
static int ask_terms(const struct gpsh_team_asking *asking, const char *what,
                     struct gpsh_team *team, int mine)
{
    struct gpsh_team_count count = {0, 0, 0};
    if (!mine)
        mine = gpsh_team_count(team->slot, &count);
    uint64_t words[GPSH_TEAM_ASK_WORDS] = {count.epoch, count.kernels_epoch, count.generation,
                                           mine ? 0 : gpsh_team_lacks(team->pes, team->n),
                                           mine != 0};
    int status = asking->ask(asking->self, words, fold_terms);
    if (status || mine)
        return mine ? mine : status;
    if (words[FAILED])
        return gpsh_fail(GPUSHMEM_ERR_NO_MEMORY, "%s: another member could not make the team",
                         what);
    count =
        (struct gpsh_team_count){words[EPOCH], words[KERNELS_EPOCH], (uint32_t)words[GENERATION]};
    return gpsh_team_enter_above(team, count, (uint32_t)words[LACKS]);
}

int gpsh_team_of_pes(const char *what, const int *pes, int n, const struct gpsh_team_asking *asking,
                     gpushmem_team_t *out)
{
    struct gpsh_team *team = NULL;
    int slot = -1, status = ask_slot(asking, what, n, &slot);
    if (!status) {
        status = gpsh_team_new(slot, pes, n, &team);
        status = ask_terms(asking, what, team, status);
    }
    if (status)
        gpsh_team_delete(team);
    else
        *out = team->handle;
    return status;
}
