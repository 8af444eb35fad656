// SPDX-License-Identifier: BSD-3-Clause
#include "proxy/kernel_awaited.h"

#include <stdbool.h>
#include <stdio.h>

#include "core/settings.h"
#include "core/team_name.h"
#include "job/job.h"
#include "memory/team_scratch.h"
#include "proxy/device_teams.h"

// A word in the scratch of a team: of streams or of which channel, and where in that, in bytes.
struct place {
    int slot, channel;
    bool stream;
    uint64_t at;
};

static struct place place_of(uint64_t at)
{
    uint64_t first = gpsh_kernel_scratch(gpsh_settings(), 0);
    uint64_t bytes = at < first ? gpsh_team_stream_bytes() : gpsh_team_kernel_bytes();
    uint64_t from_slot_0 = at - (at < first ? gpsh_stream_scratch(0) : first);
    uint64_t others = gpushmem_coll_channel_at(gpsh_job()->n_pes, 1);
    struct place place = {.slot = (int)(from_slot_0 / bytes), .at = from_slot_0 % bytes};
    place.stream = at < first && place.at < others;
    if (at < first && !place.stream) {
        uint64_t channel = gpushmem_coll_channel_bytes(gpsh_job()->n_pes);
        place.channel = 1 + (int)((place.at - others) / channel);
        place.at = (place.at - others) % channel;
    }
    return place;
}

// The member that comes 2^round before this one, in rounds of which each waits for the one before.
static int rank_before(int me, int n, uint64_t round)
{
    return (int)((me + n - (INT64_C(1) << round) % n) % n);
}

// A flag is in the row of the rank that tells by it. The pieces of a reduce by nodes are counted in
// the row of the rank whose share they are, by a PE of another node: -1, whatever is counted there.
static int rank_of_flag(const struct place *place, const struct gpushmem_dev_team *team)
{
    uint64_t members = gpushmem_coll_row(gpsh_job()->n_pes);
    uint64_t flag = (place->at - GPUSHMEM_COLL_FLAGS_AT) / sizeof(uint64_t);
    uint64_t kind = flag / members / (place->stream ? GPUSHMEM_COLL_STREAM_BLOCKS : 1);
    bool by_nodes = place->stream && team->nodes && kind == GPUSHMEM_COLL_PROGRESS;
    return by_nodes ? -1 : (int)(flag % members);
}

// The rank that writes the word; -1: this PE does, or the word alone does not tell. *passes_on: it
// may wait for others itself before it does.
static int rank_of(const struct place *place, const struct gpushmem_dev_team *team, bool *passes_on)
{
    int pes = gpsh_job()->n_pes, n = team->n, me = team->my_rank;
    uint64_t packets = gpushmem_coll_ll_at(pes, place->stream), at = place->at;
    uint64_t slot = 2 * gpushmem_coll_ll_most(n, place->stream);
    *passes_on = false;
    if (at < GPUSHMEM_COLL_SYNC_AT)
        return -1;
    if (n == 2)
        return 1 - me;
    if (at < GPUSHMEM_COLL_FLAGS_AT) {
        uint64_t round = (at - GPUSHMEM_COLL_SYNC_AT) / sizeof(uint64_t);
        *passes_on = true;
        return team->flags & GPUSHMEM_DEV_TEAM_DIRECT || round >= 2 * GPUSHMEM_COLL_ROUNDS_MOST
                   ? -1
                   : rank_before(me, n, round % GPUSHMEM_COLL_ROUNDS_MOST);
    }
    if (at < packets)
        return rank_of_flag(place, team);
    if (at < gpushmem_coll_stage_at(pes, place->stream) && slot) {
        int index = (int)((at - packets) / slot % (uint32_t)(n - 1));
        return index < me ? index : index + 1;
    }
    if (!place->stream && at >= gpushmem_coll_calls_at(pes)) // GPUSHMEM_CHECK=1
        return (int)((at - gpushmem_coll_calls_at(pes)) / sizeof(struct gpushmem_coll_call) %
                     (uint32_t)pes);
    return -1;
}

// Words of the barrier of all PEs in kernels.
static void describe_all(uint64_t at, char *text, size_t bytes)
{
    uint64_t round = at / (sizeof(struct gpushmem_dev_sync) / GPUSHMEM_DEV_SYNC_ROUNDS);
    if (round < GPUSHMEM_DEV_SYNC_ROUNDS)
        snprintf(text, bytes, ", in a barrier or sync of all PEs, for PE %d%s",
                 rank_before(gpsh_job()->my_pe, gpsh_job()->n_pes, round),
                 gpsh_job()->n_pes > 2 ? " or a PE that it waits for" : "");
    else
        snprintf(text, bytes, ", in a barrier or sync of all PEs");
}

void gpsh_kernel_awaited(uint64_t at, char *text, size_t bytes)
{
    if (at < GPSH_DEVICE_SYNC_BYTES) {
        describe_all(at, text, bytes);
        return;
    }
    const struct place place = place_of(at);
    struct gpushmem_dev_team team;
    char channel[32] = "";
    bool passes_on = false;
    if (!gpsh_device_teams_at(place.slot, &team)) {
        snprintf(text, bytes, ", in a collective operation of a team that was destroyed");
        return;
    }
    if (place.channel)
        snprintf(channel, sizeof channel, "channel %d of ", place.channel);
    int rank = rank_of(&place, &team, &passes_on);
    int pe = gpsh_device_teams_pe(place.slot, rank);
    int used = snprintf(text, bytes, ", in a collective operation of %s%s", channel,
                        gpsh_team_name(team.team).text);
    if (pe >= 0 && used > 0 && (size_t)used < bytes)
        snprintf(text + used, bytes - (size_t)used, ", for PE %d, rank %d of %d%s", pe, rank,
                 team.n, passes_on && team.n > 2 ? ", or a member that it waits for" : "");
}
