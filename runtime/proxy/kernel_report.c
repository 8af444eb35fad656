// SPDX-License-Identifier: BSD-3-Clause
#include "proxy/kernel_report.h"

#include <inttypes.h>
#include <stdbool.h>

#include "core/config.h"
#include "core/team_name.h"
#include "core/text.h"
#include "gpushmem/impl/team_layout.h"
#include "job/job.h"
#include "memory/blocks.h"
#include "memory/heap.h"
#include "memory/place.h"
#include "memory/team_scratch.h"
#include "proxy/device_teams.h"

// A word in the scratch of a team: of streams or of which channel, and where in that, in bytes.
struct place {
    struct gpushmem_dev_team team;
    int slot, channel, room;
    bool stream;
    uint64_t at;
};

static bool is_checked(const struct place *place)
{
    return (place->team.flags & GPUSHMEM_DEV_TEAM_CHECKED) != 0;
}

// Beyond what streams have, the further channels follow.
static bool find_in_streams(struct place *place, uint64_t at)
{
    uint64_t others = gpushmem_coll_channel_at(place->room, 1, is_checked(place));
    uint64_t channel = gpushmem_coll_channel_bytes(place->room, is_checked(place));
    if (at >= gpushmem_coll_stream_bytes(place->room, is_checked(place)))
        return false;
    uint64_t dense = gpushmem_coll_dense_at(place->room, false, 0);
    place->stream = at < others;
    place->channel = place->stream ? 0 : 1 + (int)((at - others) / channel);
    place->at = place->stream ? at : (at - others) % channel;
    if (place->room == 2 && place->stream && at >= dense) // a channel's dense packets
        place->channel = (int)((at - dense) / gpushmem_coll_dense_bytes(false));
    return true;
}

static bool find_in_team(struct place *place, const char *word)
{
    const struct gpushmem_dev_team *team = &place->team;
    place->room = (int)(team->flags >> GPUSHMEM_DEV_TEAM_ROOM_SHIFT);
    if (team->stream_scratch && word >= team->stream_scratch &&
        find_in_streams(place, (uint64_t)(word - team->stream_scratch)))
        return true;
    place->at = (uint64_t)(word - team->scratch);
    return team->scratch && word >= team->scratch &&
           place->at < gpushmem_coll_kernel_bytes(place->room, is_checked(place));
}

// `at`: in what is reserved of the heap. False: no team has it now.
static bool find_place(struct place *place, uint64_t at)
{
    const char *word = gpsh_heap()->base + gpsh_heap()->user_bytes + at;
    bool found = false;
    *place = (struct place){.slot = -1};
    while (!found && ++place->slot < (int)gpsh_settings()->teams)
        found = gpsh_device_teams_at(place->slot, &place->team) && find_in_team(place, word);
    return found;
}

// The member that comes 2^round before this one, in rounds of which each waits for the one before.
static int rank_before(int me, int n, uint64_t round)
{
    return (int)((me + n - (INT64_C(1) << round) % n) % n);
}

// A flag is in the row of the rank that tells by it. The pieces of a reduce by nodes are counted in
// the row of the rank whose share they are, by a PE of another node: -1, whatever is counted there.
static int rank_of_flag(const struct place *place)
{
    uint64_t members = gpushmem_coll_row(place->room);
    uint64_t flag = (place->at - GPUSHMEM_COLL_FLAGS_AT) / sizeof(uint64_t);
    uint64_t kind = flag / members / (place->stream ? GPUSHMEM_COLL_STREAM_BLOCKS : 1);
    bool by_nodes = place->stream && place->team.nodes && kind == GPUSHMEM_COLL_PROGRESS;
    return by_nodes ? -1 : (int)(flag % members);
}

// The rank that writes the word; -1: this PE does, or the word alone does not tell. *passes_on: it
// may wait for others itself before it does.
static int rank_of(const struct place *place, bool *passes_on)
{
    const struct gpushmem_dev_team *team = &place->team;
    int room = place->room, n = team->n, me = team->my_rank;
    uint64_t packets = gpushmem_coll_ll_at(room, place->stream), at = place->at;
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
        return rank_of_flag(place);
    if (at < gpushmem_coll_stage_at(room, place->stream) && slot) {
        int index = (int)((at - packets) / slot % (uint32_t)(n - 1));
        return index < me ? index : index + 1;
    }
    if (!place->stream && at >= gpushmem_coll_calls_at(room)) // GPUSHMEM_CHECK=1
        return (int)((at - gpushmem_coll_calls_at(room)) / sizeof(struct gpushmem_coll_call) %
                     (uint32_t)room);
    return -1;
}

// Words of the barrier of all PEs in kernels.
static void describe_all(uint64_t at, struct gpsh_text *t)
{
    uint64_t round = at / (sizeof(struct gpushmem_dev_sync) / GPUSHMEM_DEV_SYNC_ROUNDS);
    if (round < GPUSHMEM_DEV_SYNC_ROUNDS)
        gpsh_text_add(t, ", in a barrier or sync of all PEs, for PE %d%s",
                      rank_before(gpsh_job()->my_pe, gpsh_job()->n_pes, round),
                      gpsh_job()->n_pes > 2 ? " or a PE that it waits for" : "");
    else
        gpsh_text_add(t, ", in a barrier or sync of all PEs");
}

void gpsh_kernel_awaited(uint64_t at, struct gpsh_text *t)
{
    if (at < GPSH_DEVICE_SYNC_BYTES) {
        describe_all(at, t);
        return;
    }
    struct place place;
    bool passes_on = false;
    if (!find_place(&place, at)) {
        gpsh_text_add(t, ", in a collective operation of a team that was destroyed");
        return;
    }
    int rank = rank_of(&place, &passes_on);
    int pe = gpsh_device_teams_pe(place.slot, rank);
    gpsh_text_add(t, ", in a collective operation of ");
    if (place.channel)
        gpsh_text_add(t, "channel %d of ", place.channel);
    gpsh_text_add(t, "%s", gpsh_team_name(place.team.team).text);
    if (pe >= 0)
        gpsh_text_add(t, ", for PE %d, rank %d of %d%s", pe, rank, place.team.n,
                      passes_on && place.team.n > 2 ? ", or a member that it waits for" : "");
}

// ---- Words ----

static void add_number(struct gpsh_text *t, uint32_t word, uint64_t value)
{
    if (word == GPUSHMEM_FAULT_SIGNED)
        gpsh_text_add(t, "%" PRId64, (int64_t)value);
    else
        gpsh_text_add(t, "%" PRIu64, value);
}

// NULL, too: a program whose gpushmem_malloc failed passes that.
static bool is_outside(const struct gpushmem_device_fault *fault)
{
    const void *address = (const void *)(uintptr_t)fault->address;
    return fault->status == GPUSHMEM_ERR_ADDRESS && !fault->word && fault->bytes &&
           !gpsh_in_user_heap(gpsh_offset(address), fault->bytes);
}

// With GPUSHMEM_CHECK=1: in the heap, but in no block, if that is still so.
static bool is_unheld(const struct gpushmem_device_fault *fault)
{
    return gpsh_settings()->check && fault->status == GPUSHMEM_ERR_ADDRESS && !fault->word &&
           fault->bytes && !is_outside(fault) &&
           !gpsh_blocks_hold((const void *)(uintptr_t)fault->address, fault->bytes, NULL, 0);
}

static void describe_unheld(const struct gpushmem_device_fault *fault, struct gpsh_text *t)
{
    char why[256] = "";
    gpsh_blocks_hold((const void *)(uintptr_t)fault->address, fault->bytes, why, sizeof why);
    gpsh_text_add(t, ", %s", why);
}

// As the host's calls say it (api/argument.c).
static void describe_address(const struct gpushmem_device_fault *fault, struct gpsh_text *t)
{
    const void *address = (const void *)(uintptr_t)fault->address;
    char heap[GPSH_PLACE_RANGE_BYTES];
    gpsh_place_range(heap);
    if (fault->status == GPUSHMEM_ERR_ALIGNMENT && fault->pe >= 0)
        gpsh_text_add(t, ", %p is not a multiple of %" PRIu64 ", the size of its word", address,
                      fault->bytes);
    else if (fault->pe < 0 && fault->status != GPUSHMEM_ERR_ADDRESS &&
             fault->status != GPUSHMEM_ERR_ALIGNMENT)
        gpsh_text_add(t, ", for one of the words at %p (%" PRIu64 " bytes)", address, fault->bytes);
    else if (is_unheld(fault))
        describe_unheld(fault, t);
    else if (!is_outside(fault))
        gpsh_text_add(t, ", address %p (+%" PRIu64 " bytes)", address, fault->bytes);
    else if (!address)
        gpsh_text_add(t, ", NULL is not in the symmetric heap (%s); did gpushmem_malloc fail?",
                      heap);
    else if (gpsh_in_user_heap(gpsh_offset(address), 1))
        gpsh_text_add(t,
                      ", %" PRIu64 " bytes at %p reach beyond the end of the symmetric heap (%s)",
                      fault->bytes, address, heap);
    else
        gpsh_text_add(t,
                      ", address %p (+%" PRIu64 " bytes) is not in the symmetric heap (%s); "
                      "kernels pass addresses from gpushmem_malloc",
                      address, fault->bytes, heap);
}

// One word with all that is known of it, or only where it is.
static void describe_memory(const struct gpushmem_device_fault *fault, struct gpsh_text *t)
{
    static const char *const signs[] = {
        [GPUSHMEM_CMP_EQ] = "==", [GPUSHMEM_CMP_NE] = "!=", [GPUSHMEM_CMP_GT] = ">",
        [GPUSHMEM_CMP_LE] = "<=", [GPUSHMEM_CMP_LT] = "<",  [GPUSHMEM_CMP_GE] = ">=",
    };
    uint64_t offset = fault->address - (uint64_t)(uintptr_t)gpsh_heap()->base;
    bool known = (uint32_t)fault->cmp < sizeof signs / sizeof *signs && signs[fault->cmp];
    if (!fault->word || !known) {
        describe_address(fault, t);
    } else if (offset >= gpsh_heap()->user_bytes && offset < gpsh_heap()->first_bytes) {
        gpsh_kernel_awaited(offset - gpsh_heap()->user_bytes, t);
    } else {
        gpsh_text_add(t,
                      ", for the word at heap offset %" PRIu64 " (address %#" PRIx64 "), which is ",
                      offset, fault->address);
        add_number(t, fault->word, fault->seen);
        gpsh_text_add(t, ", to be %s ", signs[fault->cmp]);
        add_number(t, fault->word, fault->wanted);
    }
}

// What a member of a team calls. Types of C that are alike have one number here.
static void add_call(struct gpsh_text *t, uint64_t what)
{
    static const char *const types[GPUSHMEM_COLL_TYPES] = {
        "int8 (schar)",    "int16 (short)", "int32 (int)",    "int64 (long)", "uint8 (uchar)",
        "uint16 (ushort)", "uint32 (uint)", "uint64 (ulong)", "half",         "bfloat16",
        "float",           "double",        "complexf",       "complexd"};
    static const char *const folds[GPUSHMEM_COLL_FOLDS] = {"and", "or",  "xor", "min",
                                                           "max", "sum", "prod"};
    unsigned kind = what & 0xff, type = what >> 8 & 0xff, fold = what >> 16 & 0xff,
             width = what >> 32 & 0xff;
    const char *name = gpsh_coll_kind_name(kind < GPUSHMEM_COLL_KINDS ? (int)kind : 0);
    if (kind >= GPUSHMEM_COLL_KINDS || type >= GPUSHMEM_COLL_TYPES || fold >= GPUSHMEM_COLL_FOLDS)
        gpsh_text_add(t, "something else");
    else if (type == GPUSHMEM_COLL_COMPLEXD && fold == GPUSHMEM_COLL_MAX)
        gpsh_text_add(t, "maxloc_reduce of double2");
    else if (kind >= GPUSHMEM_COLL_REDUCE)
        gpsh_text_add(t, "%s_%s of %s", folds[fold], name, types[type]);
    else if (kind > GPUSHMEM_COLL_BARRIER && width)
        gpsh_text_add(t, "%s of elements of %u byte%s", name, width, width == 1 ? "" : "s");
    else
        gpsh_text_add(t, "%s", name);
    if (what >> 40)
        gpsh_text_add(t, " by a grid of %u block%s", (unsigned)(what >> 40),
                      what >> 40 == 1 ? "" : "s");
}

static void in_collective(struct gpsh_text *t, uint64_t what)
{
    gpsh_text_add(t, ", in a collective, ");
    add_call(t, what);
}

// Members of a team call differently, or one of them badly.
static void describe_call(const struct gpushmem_device_fault *fault, struct gpsh_text *t)
{
    static const char *const names[] = {
        "", "nelems", "root", "dst", "sst", "dest at heap offset", "source at heap offset"};
    int first_pe = (int)fault->bytes;
    if (fault->cmp == GPUSHMEM_COLL_CALL_WHAT) {
        gpsh_text_add(t, ", in a collective: PE %d calls ", fault->pe);
        add_call(t, fault->seen);
        gpsh_text_add(t, ", PE %d calls ", first_pe);
        add_call(t, fault->wanted);
        return;
    }
    in_collective(t, fault->address);
    if ((uint32_t)fault->cmp >= GPUSHMEM_COLL_CALL_WORDS)
        gpsh_text_add(t,
                      ": PE %d passes a bad argument, or calls it by some of its threads only; it "
                      "says which",
                      fault->pe);
    else
        gpsh_text_add(t, ": PE %d passes %s %" PRId64 ", PE %d passes %" PRId64, fault->pe,
                      names[fault->cmp], (int64_t)fault->seen, first_pe, (int64_t)fault->wanted);
}

// What a context holds that nobody has made.
static void describe_no_context(struct gpsh_text *t)
{
    gpsh_text_add(
        t, ", in a call on a context that was never filled in, at least for this thread: the "
           "_warp and _block forms of gpushmem_dev_ctx_create fill in one place for all threads, "
           "so keep it in shared memory (GPUSHMEM_SHARED)");
}

// Whether the number could be one of this job's teams.
static bool is_team_number(gpushmem_team_t handle)
{
    return handle >= 0 && handle < 1 << GPUSHMEM_TEAM_CHANNEL_SHIFT &&
           (handle & GPUSHMEM_TEAM_SLOT_MASK) < (int)gpsh_settings()->teams;
}

static void describe_rank(const struct gpushmem_device_fault *fault, struct gpsh_text *t)
{
    const struct gpsh_team_name name = gpsh_team_name((gpushmem_team_t)fault->seen);
    if (!fault->wanted && !is_team_number((gpushmem_team_t)fault->seen))
        describe_no_context(t);
    else if (fault->wanted)
        gpsh_text_add(
            t, ", towards rank %d in a call on a context of %s, whose ranks are 0 to %" PRIu64,
            fault->pe, name.text, fault->wanted - 1);
    else
        gpsh_text_add(
            t,
            ", towards rank %d in a call on a context of %s: the team was destroyed, or this "
            "PE is not in it",
            fault->pe, name.text);
}

// The team or channel of a collective. `wanted`: a grid called it.
static void describe_team(const struct gpushmem_device_fault *fault, struct gpsh_text *t)
{
    gpushmem_team_t handle = (gpushmem_team_t)fault->seen;
    int channel = handle >> GPUSHMEM_TEAM_CHANNEL_SHIFT & GPUSHMEM_TEAM_CHANNEL_MASK;
    const struct gpsh_team_name name =
        gpsh_team_name(handle & ((1 << GPUSHMEM_TEAM_CHANNEL_SHIFT) - 1));
    if (handle == GPUSHMEM_TEAM_INVALID)
        gpsh_text_add(
            t, ", in a collective: GPUSHMEM_TEAM_INVALID is no team: the split has failed, or "
               "this PE is in none of its teams");
    else if (channel >= GPUSHMEM_TEAM_CHANNELS)
        gpsh_text_add(t, ", in a collective: %s has no channel %d; channels are 0 to %d", name.text,
                      channel, GPUSHMEM_TEAM_CHANNELS - 1);
    else if (channel && fault->wanted)
        gpsh_text_add(t, ", in a collective of a grid: it takes a team, and not channel %d of %s",
                      channel, name.text);
    else if (channel)
        gpsh_text_add(
            t,
            ", in a collective: %s has no channel %d: it was destroyed, or is not among the "
            "teams that have any (GPUSHMEM_TEAM_MEMORY)",
            name.text, channel);
    else
        gpsh_text_add(
            t,
            ", in a collective: %s is no team of this PE: it was destroyed, or this PE is no "
            "member, or it was made when no memory was left for what %s need "
            "(GPUSHMEM_TEAM_MEMORY)",
            name.text, fault->wanted ? "grids" : "kernels");
}

static void describe_context(const struct gpushmem_device_fault *fault, struct gpsh_text *t)
{
    if (fault->seen == GPUSHMEM_DEV_CTX_NONE)
        gpsh_text_add(
            t, ", in a call on GPUSHMEM_DEV_CTX_INVALID: the context was not created, or that "
               "has failed");
    else if (fault->cmp || fault->seen > fault->wanted)
        describe_no_context(t);
    else
        gpsh_text_add(t,
                      ", context number %" PRIu64 " of %" PRIu64
                      ": it was destroyed, or is no context of this PE",
                      fault->seen, fault->wanted);
}

// What is wrong with an argument of a collective.
static void describe_argument(const struct gpushmem_device_fault *fault, struct gpsh_text *t)
{
    long long seen = (long long)fault->seen, members = (long long)fault->wanted;
    in_collective(t, fault->address);
    if (fault->cmp == GPUSHMEM_COLL_CALL_ROOT)
        gpsh_text_add(t, ": the team has no root %lld; ranks are 0 to %lld", seen, members - 1);
    else if (fault->cmp == GPUSHMEM_COLL_CALL_DEST)
        gpsh_text_add(t, ": dest overlaps source where it may not; use memory that does not");
    else
        gpsh_text_add(t, ": %s is %lld; strides are at least 1",
                      fault->cmp == GPUSHMEM_COLL_CALL_DST ? "dst" : "sst", seen);
}

static void describe_operator(const struct gpushmem_device_fault *fault, struct gpsh_text *t)
{
    if (fault->wanted)
        gpsh_text_add(
            t, ", comparison %" PRId64 " is none of GPUSHMEM_CMP_EQ (%d) to GPUSHMEM_CMP_GE (%d)",
            (int64_t)fault->seen, GPUSHMEM_CMP_EQ, GPUSHMEM_CMP_GE);
    else
        gpsh_text_add(t,
                      ", signal operation %" PRId64 " is neither GPUSHMEM_SIGNAL_SET (%d) nor "
                      "GPUSHMEM_SIGNAL_ADD (%d)",
                      (int64_t)fault->seen, GPUSHMEM_SIGNAL_SET, GPUSHMEM_SIGNAL_ADD);
}

static void describe_move(const struct gpushmem_device_fault *fault, struct gpsh_text *t)
{
    if (fault->word == GPUSHMEM_FAULT_STRIDE)
        gpsh_text_add(t,
                      ": strides are %" PRId64 " there and %" PRId64
                      " here; they count elements and start at 1",
                      (int64_t)fault->seen, (int64_t)fault->wanted);
    else
        gpsh_text_add(t, ", in a %s that is not empty: its %s is NULL",
                      fault->wanted ? "get" : "put", fault->wanted ? "dest" : "source");
}

bool gpsh_kernel_explained(const struct gpushmem_device_fault *fault)
{
    return fault->word >= GPUSHMEM_FAULT_CONTEXT || fault->status == GPUSHMEM_ERR_PE ||
           is_outside(fault) || is_unheld(fault) ||
           (fault->status == GPUSHMEM_ERR_ALIGNMENT && fault->pe >= 0);
}

void gpsh_kernel_describe(const struct gpushmem_device_fault *fault, char *text, size_t bytes)
{
    struct gpsh_text whole = {text, bytes, 0}, *t = &whole;
    gpsh_text_add(t, "block (%u,%u,%u), thread (%u,%u,%u)", fault->block[0], fault->block[1],
                  fault->block[2], fault->thread[0], fault->thread[1], fault->thread[2]);
    if (fault->word == GPUSHMEM_FAULT_TEAM)
        describe_team(fault, t);
    else if (fault->word == GPUSHMEM_FAULT_ARGUMENT)
        describe_argument(fault, t);
    else if (fault->word == GPUSHMEM_FAULT_CALL)
        describe_call(fault, t);
    else if (fault->word == GPUSHMEM_FAULT_RANK)
        describe_rank(fault, t);
    else if (fault->status == GPUSHMEM_ERR_PE)
        gpsh_text_add(t, ", towards PE %d, which is not among the job's PEs 0 to %d", fault->pe,
                      gpsh_job()->n_pes - 1);
    else if (fault->status == GPUSHMEM_ERR_ADDRESS && !fault->word && fault->seen)
        in_collective(t, fault->seen); // it was given the address
    else if (fault->pe >= 0)
        gpsh_text_add(t, ", towards PE %d", fault->pe);
    if (fault->word == GPUSHMEM_FAULT_CONTEXT)
        describe_context(fault, t);
    if (fault->word == GPUSHMEM_FAULT_STRIDE || fault->word == GPUSHMEM_FAULT_LOCAL)
        describe_move(fault, t);
    if (fault->word == GPUSHMEM_FAULT_OPERATOR)
        describe_operator(fault, t);
    if (fault->word == GPUSHMEM_FAULT_GRID)
        gpsh_text_add(
            t, ", in gpushmem_dev_grid_sync: this kernel has several blocks, and was not launched "
               "by GPUSHMEM_LAUNCH_COLLECTIVE");
    if (fault->word == GPUSHMEM_FAULT_BUSY)
        gpsh_text_add(t,
                      ", in a collective: another one of this team is under way here, in another "
                      "stream, graph or block; let one come after the other, or give each a team");
    if ((fault->address && fault->word < GPUSHMEM_FAULT_CONTEXT) || is_outside(fault))
        describe_memory(fault, t);
}
