// SPDX-License-Identifier: BSD-3-Clause
#include "comm/team_signal.h"

#include "comm/context.h"
#include "memory/heap.h"
#include "memory/word.h"

static _Atomic uint64_t *counters(struct gpsh_team_words *words, uint64_t epoch)
{
    return (_Atomic uint64_t *)(void *)gpsh_team_data(words, epoch % 2);
}

// Nobody else reads or writes them before the meeting: all have left the operation before the last.
void gpsh_team_signals_clear(struct gpsh_team *team)
{
    _Atomic uint64_t *mine = counters(team->mine, team->epoch + 1);
    for (size_t i = 0; i < gpsh_team_signals(); i++)
        atomic_store_explicit(mine + i, 0, memory_order_relaxed);
}

static int signal_far(struct gpsh_team *team, int rank, size_t index, uint64_t value)
{
    const char *mine = (const char *)(counters(team->mine, team->epoch) + index);
    const struct gpsh_op op = {
        .kind = GPSH_OP_PUT_SIGNAL,
        .flags = GPSH_OP_LOCAL_HOST,
        .region = GPSH_CONTROL,
        .pe = team->pes[rank],
        .signal = (uint64_t)(mine - (const char *)gpsh_heap()->control),
        .operand = value,
    };
    int status = gpsh_context_fence(&gpsh_default_context, team->pes[rank]);
    return status < 0 ? status : gpsh_context_submit(&gpsh_default_context, &op, GPSH_WAIT_NONE);
}

int gpsh_team_signal(struct gpsh_team *team, int rank, size_t index, uint64_t value)
{
    struct gpsh_team_words *theirs = team->words[rank];
    // A store of this processor overtakes data that a transport moves, as it does in GPU memory.
    if (!theirs || !gpsh_heap()->direct[team->pes[rank]])
        return signal_far(team, rank, index, value);
    atomic_store_explicit(counters(theirs, team->epoch) + index, value, memory_order_release);
    return 0;
}

int gpsh_team_signal_wait_at(struct gpsh_team *team, int at, int rank, size_t index, uint64_t least,
                             const char *what)
{
    struct gpsh_team_words *words = at == team->my_rank ? team->mine : team->words[at];
    const _Atomic uint64_t *word = counters(words, team->epoch) + index;
    int status = 0;
    if (atomic_load_explicit(word, memory_order_acquire) < least)
        status = gpsh_team_await(team, rank, word, least, what);
    if (status == 0)
        gpsh_acquire_remote();
    return status;
}

int gpsh_team_signal_wait(struct gpsh_team *team, int rank, size_t index, uint64_t least,
                          const char *what)
{
    return gpsh_team_signal_wait_at(team, team->my_rank, rank, index, least, what);
}
