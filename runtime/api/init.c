// SPDX-License-Identifier: BSD-3-Clause
// The lifecycle: from settings and launcher to connected transports, and back.
#define _DEFAULT_SOURCE // on_exit
#include "api/init.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/compat.h"
#include "api/counters.h"
#include "api/failed_calls.h"
#include "api/growth.h"
#include "api/memory.h"
#include "bootstrap/agree.h"
#include "bootstrap/bootstrap_ways.h"
#include "comm/context.h"
#include "comm/contexts.h"
#include "comm/depart.h"
#include "comm/sync.h"
#include "comm/team.h"
#include "connect/net.h"
#include "connect/peers.h"
#include "core/clock.h"
#include "core/config.h"
#include "core/error.h"
#include "core/log.h"
#include "core/standard_streams.h"
#include "gpu/gpu.h"
#include "gpushmem/gpushmem.h"
#include "job/failure.h"
#include "job/job.h"
#include "memory/regions.h"
#include "observe/board.h"
#include "observe/call.h"
#include "observe/status_request.h"
#include "observe/trace.h"
#include "observe/trace_merge.h"
#include "progress/cores.h"
#include "progress/waiter.h"
#include "progress/watch.h"
#include "proxy/device_side.h"
#include "stream/coll_choice.h"
#include "stream/coll_gpu.h"
#include "stream/stream_gpu.h"

static pthread_mutex_t lifecycle = PTHREAD_MUTEX_INITIALIZER;
static int init_depth; // init may be called several times; as many finalizes end the library

// In the child of a fork: the PE is its parent. The library's threads are not here, and a lock that
// one of them, or another thread of the program, held would never be free.
static void forget_job(void)
{
    pthread_mutex_init(&lifecycle, NULL);
    init_depth = 0;
    gpsh_job_partial(false);
    gpsh_calls_close();
    gpsh_trace_forget();
    if (!gpsh_job()->n_pes)
        return;
    gpsh_job_fork((int)getppid());
    gpsh_heap_serve(0);
}

// Once per process image: the C library keeps handlers for ever.
static void watch_forks(void)
{
    if (pthread_atfork(NULL, NULL, forget_job))
        GPSH_LOG(WARN, "init", "no memory to notice forks: children must not use the library");
}

// One that had told that it leaves is no failure, but its NIC answers no more all the same.
static void on_death(int pe, const char *reason)
{
    gpsh_peer_failed(pe, GPUSHMEM_ERR_PE_FAILED, reason);
    gpsh_peers_gone(pe);
}

// Other nodes may have no connection to that PE.
static void on_end(int pe)
{
    static const char *const reason = "its process ended without gpushmem_finalize";
    gpsh_peer_failed(pe, GPUSHMEM_ERR_PE_FAILED, reason);
    gpsh_peers_gone(pe);
    if (atomic_load(&gpsh_job()->peers[pe].error))
        gpsh_bootstrap_tell_death(gpsh_job()->boot, pe, reason);
}

// Launchers other than ours need not report deaths.
static void watch_node(void)
{
    const struct gpsh_bootstrap *boot = gpsh_job()->boot;
    if (boot->singleton || boot->launched_by_us || boot->node_n_pes < 2)
        return;
    pid_t *pids = calloc((size_t)boot->node_n_pes, sizeof *pids);
    for (int i = 0; pids && i < boot->node_n_pes; i++)
        pids[i] = gpsh_job()->peers[boot->node_pes[i]].pid;
    if (!pids || gpsh_watch_start(boot->node_pes, pids, boot->node_n_pes, on_end))
        GPSH_LOG(WARN, "init", "PEs of this node that die are noticed late: %s",
                 pids ? gpsh_last_error() : "no memory to watch them");
    free(pids);
}

// Undoes everything up from the bootstrap, whatever was reached.
static void tear_down(void)
{
    gpsh_watch_stop();
    gpsh_device_side_finalize();
    gpsh_teams_finalize();
    gpsh_contexts_finalize();
    gpsh_memory_finalize();
    gpsh_peers_disconnect();
    gpsh_regions_destroy();
    gpsh_board_close();
    gpsh_calls_close();
    gpsh_trace_close();
    gpsh_heap_serve(0);
    gpsh_job_close();
    gpsh_bootstrap_finalize(gpsh_job()->boot);
    gpsh_settings_close();
    gpsh_log_set_pe(-1);
    gpsh_log_close();
}

static int open_log(void)
{
    const char *file = gpsh_settings()->log_file;
    int error = gpsh_log_open((enum gpsh_log_level)gpsh_settings()->log_level, file);
    if (!error)
        return 0;
    return gpsh_setting_fail_at(
        "GPUSHMEM_LOG_FILE",
        gpsh_fail(GPUSHMEM_ERR_SETTING,
                  "GPUSHMEM_LOG_FILE=%s cannot be opened for writing (%s); name a regular file of "
                  "this user's own, in a directory that this user may write, or /dev/stderr; links "
                  "are not followed",
                  file, strerror(error)));
}

int gpsh_init_standard_streams(void)
{
    int error = gpsh_standard_streams_open();
    return !error ? 0
                  : gpsh_fail(GPUSHMEM_ERR_SYSTEM,
                              "one of the descriptors 0 to 2 is closed and /dev/null cannot be "
                              "opened in its place (%s); start the program with all three open",
                              strerror(error));
}

// A PE without a board works the same; `gpushmem stat` and hang reports do not see it.
static void open_board(void)
{
    const struct gpsh_settings *s = gpsh_settings();
    const struct gpsh_board_owner owner = {.pe = gpsh_job()->my_pe,
                                           .n_pes = gpsh_job()->n_pes,
                                           .job = gpsh_job()->boot->job_id,
                                           .n_rings = (int)(s->rings + s->contexts),
                                           .n_contexts = (int)s->contexts,
                                           .n_channels = gpsh_channel_count(s),
                                           .n_proxies = (int)s->proxy_threads,
                                           .counts_direct = s->stats};
    if (gpsh_board_open(&owner))
        GPSH_LOG(INFO, "init", "%s", gpsh_last_error());
}

static uint64_t power_of_two(int64_t at_least)
{
    uint64_t power = 1;
    while (power < (uint64_t)at_least)
        power *= 2;
    return power;
}

// A PE without a part works the same.
static void open_trace(void)
{
    const struct gpsh_settings *s = gpsh_settings();
    const struct gpsh_trace_owner owner = {.file = s->trace,
                                           .job = gpsh_job()->boot->job_id,
                                           .pe = gpsh_job()->my_pe,
                                           .n_pes = gpsh_job()->n_pes,
                                           .node = gpsh_job()->boot->node_pes[0],
                                           .n_channels = gpsh_channel_count(s),
                                           .n_proxies = (int)s->proxy_threads,
                                           .lane_records = power_of_two(s->trace_records)};
    if (s->trace[0] && gpsh_trace_open(&owner))
        GPSH_LOG(WARN, "trace", "%s", gpsh_last_error());
    gpsh_calls_open();
}

// Barriers tell how far the clocks of nodes are apart. All PEs have a trace.
static void compare_clocks(void)
{
    enum { BARRIERS = 16 };
    for (int i = 0; i < BARRIERS && gpsh_job()->boot->node_n_pes < gpsh_job()->n_pes; i++)
        if (gpsh_sync_as(GPSH_CALL_SYNC_ALL, 0, 0, "gpushmem_init"))
            return; // a PE is lost: others will say so
}

// After all PEs have stopped theirs.
static void join_trace(void)
{
    char sentence[1024];
    struct gpsh_trace_outcome outcome;
    const struct gpsh_trace_pick pick = {.job = gpsh_job()->boot->job_id};
    if (gpsh_trace_merge(gpsh_settings()->trace, &pick, true, &outcome)) {
        GPSH_LOG(WARN, "trace", "%s", gpsh_last_error());
        return;
    }
    if (!outcome.n_parts && gpsh_trace_is_open())
        GPSH_LOG(WARN, "trace",
                 "the trace is lost: somebody has deleted the parts of this job, %.200s.*.part; "
                 "name a file in a folder that nobody clears meanwhile",
                 gpsh_settings()->trace);
    gpsh_trace_outcome_print(gpsh_settings()->trace, &outcome, sentence, sizeof sentence);
    if (outcome.n_parts && (outcome.dropped || outcome.threads_left_out || outcome.elsewhere ||
                            outcome.others || outcome.refused))
        GPSH_LOG(WARN, "trace", "%s", sentence);
    else if (outcome.n_parts)
        GPSH_LOG(INFO, "trace", "%s", sentence);
}

static int join_job(const struct gpsh_join *join)
{
    return join->id ? gpsh_bootstrap_tcp_init(gpsh_job()->boot, join->id, join->rank, join->n_pes,
                                              gpsh_settings())
                    : gpsh_bootstrap_init(gpsh_job()->boot);
}

static void preload_kernels(void)
{
    gpsh_stream_gpu_preload();
    gpsh_coll_gpu_preload();
}

// The job goes on without: deaths on other nodes are noticed late then.
static void watch_other_nodes(void)
{
    if (!gpsh_settings()->watch_nodes)
        return;
    if (gpsh_bootstrap_watch_nodes(gpsh_job()->boot, gpsh_settings()->bootstrap_interface))
        GPSH_LOG(WARN, "init", "a PE that dies on another node may be noticed late: %s",
                 gpsh_last_error());
}

// From settings to a place in the job.
static int enter_job(const struct gpsh_join *join)
{
    int status = gpsh_init_standard_streams(); // before anything else opens a file
    if (!status)
        status = gpsh_settings_open();
    if (!status)
        status = gpsh_setting_fail_at("GPUSHMEM_COLLECTIVES",
                                      gpsh_coll_limits_read(gpsh_settings()->collectives));
    if (!status)
        status = open_log();
    if (!status)
        gpsh_settings_log_files();
    if (!status)
        status = join_job(join);
    if (status) {
        GPSH_LOG(ERROR, "init", "%s", gpsh_last_error());
        gpsh_settings_close();
        return status;
    }
    gpsh_job()->boot->wait_timeout_ms = gpsh_settings()->wait_timeout_ms;
    gpsh_log_set_pe(gpsh_job()->boot->my_pe);
    watch_other_nodes();
    return 0;
}

static void about_init(const void *subject, char *text, size_t bytes)
{
    (void)subject;
    snprintf(text, bytes, " for all PEs of the job to call it");
}

// While this PE waits for others through the launcher.
static void tell_wait(bool over)
{
    static struct gpsh_waiter waiter;
    if (over)
        gpsh_waiter_end(&waiter);
    if (over || !waiter.what)
        waiter = (struct gpsh_waiter){
            .what = "gpushmem_init", .about = about_init, .awaited = GPSH_AWAITED_INIT};
    if (!over)
        gpsh_waiter_tell(&waiter);
}

// What this PE says of itself: enum gpsh_common.
static uint32_t own_traits(void)
{
    bool notify = gpsh_settings()->on_pe_failure == GPSH_ON_FAILURE_NOTIFY;
    return (notify ? GPSH_COMMON_NOTIFY : 0) | (gpsh_heap_may_grow() ? GPSH_COMMON_GROWTH : 0) |
           (gpsh_waiter_shares() ? 0 : GPSH_COMMON_CORES) |
           (gpsh_trace_is_open() ? GPSH_COMMON_TRACE : 0) | gpsh_teams_reach() | gpsh_peers_reach();
}

// A peer that dies meanwhile would answer no more, which the NIC alone notices late. But later than
// this nobody may be told before all have agreed: a PE that fails with the others leaves the job.
static int establish(void)
{
    gpsh_bootstrap_on_death(gpsh_job()->boot, on_death);
    int status = gpsh_peers_establish();
    gpsh_bootstrap_on_death(gpsh_job()->boot, NULL);
    return status;
}

static int get_ready_here(void)
{
    int status = gpsh_memory_init();
    gpsh_sync_init((uint64_t)gpsh_settings()->team_epoch);
    gpsh_waiter_serve(gpsh_contexts_serve());
    gpsh_waiter_share(gpsh_cores_are_shared());
    gpsh_cores_begin();
    return status ? status : gpsh_contexts_init();
}

// The connected PEs: nobody uses what another one has not got ready. They agree once, on that and
// on whether they are connected.
static int get_ready(int mine)
{
    uint32_t all = 0;
    mine = mine ? mine : establish();
    mine = mine ? mine : get_ready_here();
    int status = gpsh_agree(gpsh_job()->boot, mine, mine ? 0 : own_traits(), &all);
    if (!status)
        status = gpsh_peers_settle(all);
    if (status)
        return status;
    gpsh_contexts_survey();
    gpsh_job_outlives(all & GPSH_COMMON_NOTIFY);
    gpsh_heap_allow_growth(all & GPSH_COMMON_GROWTH);
    gpsh_waiter_share(!(all & GPSH_COMMON_CORES));
    gpsh_cores_part(); // all have shown where they are
    gpsh_sync_share();
    status = gpsh_teams_init(all);
    if (!status && all & GPSH_COMMON_TRACE)
        compare_clocks();
    return status;
}

// From here on a failure of this PE is told to the others, which wait for it.
static int wire_up(const char *collectives, int *mine)
{
    int status = gpsh_peers_connect(gpsh_regions_create(), collectives, mine);
    if (status != GPSH_PEERS_ANEW)
        return status;
    gpsh_peers_disconnect();
    gpsh_regions_destroy();
    return gpsh_peers_connect(gpsh_regions_create(), collectives, mine);
}

static int bring_up(void)
{
    char collectives[GPSH_COLLECTIVES_TEXT];
    int status = gpsh_job_open();
    bool slowly = gpsh_settings()->check || gpsh_settings()->stats;
    gpsh_heap_serve(slowly ? 0 : gpsh_job()->n_pes);
    gpsh_device_side_on_make(preload_kernels);
    open_board();
    open_trace();
    gpsh_job()->boot->waits = tell_wait;
    gpsh_coll_limits_print(collectives, sizeof collectives);
    int mine = 0;
    if (!status)
        status = wire_up(collectives, &mine);
    if (!status)
        status = get_ready(mine);
    if (!status) {
        GPSH_LOG(DEBUG, "init", "%d exchanges between the PEs", gpsh_job()->boot->exchanges);
        gpsh_bootstrap_on_death(gpsh_job()->boot, on_death);
        watch_node();
    }
    if (status) {
        GPSH_LOG(ERROR, "init", "%s", gpsh_last_error()); // while the log still knows the PE
        gpsh_failures_end();
        tear_down();
    }
    return status;
}

// A further init of a PE that has joined.
static int check_same_job(const char *function, const struct gpsh_join *join)
{
    if (!join->id ||
        (join->rank == gpsh_job()->boot->my_pe && join->n_pes == gpsh_job()->boot->n_pes))
        return 0;
    return gpsh_fail(GPUSHMEM_ERR_STATE,
                     "%s: this process is PE %d of %d already, and cannot become PE %d of %d; call "
                     "gpushmem_finalize first",
                     function, gpsh_job()->boot->my_pe, gpsh_job()->boot->n_pes, join->rank,
                     join->n_pes);
}

// A library within the program may have threads where the program has none.
static void raise_level(int requested)
{
    if (requested <= gpsh_job()->thread_level)
        return;
    gpsh_job_raise_level(requested);
    gpsh_contexts_share_threads();
}

static bool waits_for_choice(void)
{
    return gpsh_settings()->heap_kind != GPSH_HEAP_HOST && gpsh_gpu_would_choose();
}

bool gpsh_init_is_partial(void)
{
    return atomic_load(&gpsh_job()->partial);
}

// What was tried in vain on the way, such as mapping a PE of another node, is no failure of init.
int gpsh_init_complete(void)
{
    struct gpsh_error before;
    gpsh_error_keep(&before);
    pthread_mutex_lock(&lifecycle);
    int status = 0;
    if (gpsh_job_partial(false)) {
        status = bring_up();
        if (status)
            init_depth = 0;
        else
            gpsh_error_put_back(&before);
    }
    pthread_mutex_unlock(&lifecycle);
    return status;
}

int gpsh_init_as(const char *function, const struct gpsh_join *join,
                 enum gpushmem_thread_level requested, int *provided)
{
    if ((int)requested < GPUSHMEM_THREAD_SINGLE || (int)requested > GPUSHMEM_THREAD_MULTIPLE)
        return gpsh_fail(GPUSHMEM_ERR_INVALID,
                         "%s: thread level %d is outside GPUSHMEM_THREAD_SINGLE (0) .. "
                         "GPUSHMEM_THREAD_MULTIPLE (3)",
                         function, (int)requested);
    static pthread_once_t forks = PTHREAD_ONCE_INIT;
    struct gpsh_error before;
    gpsh_error_keep(&before);
    pthread_once(&forks, watch_forks);
    pthread_mutex_lock(&lifecycle);
    int status = gpsh_job()->forked_from ? gpsh_check_initialised("init") : 0;
    if (!status && init_depth)
        status = check_same_job(function, join);
    if (!status && !init_depth) {
        gpsh_status_requests_open(); // a person may ask why init takes so long
        gpsh_job_join((int)requested);
        status = enter_job(join);
        gpsh_job_partial(!status && join->in_two_steps && waits_for_choice());
        if (!status && !gpsh_job()->partial)
            status = bring_up();
    }
    if (!status) {
        gpsh_error_put_back(&before); // as gpsh_init_complete
        raise_level((int)requested);
        init_depth++;
        if (provided)
            *provided = gpsh_job()->thread_level;
    }
    pthread_mutex_unlock(&lifecycle);
    return status;
}

int gpushmem_init_thread(enum gpushmem_thread_level requested, int *provided)
{
    const struct gpsh_join by_launcher = {.id = NULL};
    return gpsh_init_as("gpushmem_init_thread", &by_launcher, requested, provided);
}

int gpushmem_init(void)
{
    return gpushmem_init_thread(GPUSHMEM_THREAD_SINGLE, NULL);
}

// After the last barrier this PE's own word to another may still be on its way, and would go down
// with its queue pair. The PE that has got it may leave before its NIC's answer is here: that is
// the one failure that does not matter.
static void see_off(void)
{
    struct gpsh_error before;
    gpsh_error_keep(&before);
    if (gpsh_depart_see_off())
        gpsh_error_put_back(&before);
}

// The barrier fails when a PE is lost, and then says nothing about the others.
static int meet_survivors(int barrier)
{
    struct gpsh_error of_barrier;
    gpsh_error_keep(&of_barrier);
    int departed = gpsh_depart("gpushmem_finalize");
    if (departed || !barrier)
        return departed;
    gpsh_error_put_back(&of_barrier);
    return barrier;
}

// A program's last call, whose status few look at. The others may wait for this PE for ever.
static void say_left(int met)
{
    if (met != GPUSHMEM_ERR_ASYMMETRY || gpsh_failures_are_told())
        return;
    GPSH_LOG(WARN, "finalize", "this PE leaves the job without having met the others: %s",
             gpsh_last_error());
    gpsh_error_mark_said();
}

// This process ends by exit with what its parent reads as status 0. Only glibc says the status.
static bool ends_well;

#if defined(__GLIBC__)
// The words of the last collective, in which the others would stay for ever. In a handler:
// libraries of NICs may have ended when the destructor comes. Not long, as a NIC may try for ever.
static void send_off(void)
{
    const uint64_t most_ns = 2000000000;
    if (pthread_mutex_trylock(&lifecycle))
        return;
    if (init_depth && gpsh_job()->n_pes)
        gpsh_context_drive_until(&gpsh_default_context, gpsh_clock_ns() + most_ns);
    pthread_mutex_unlock(&lifecycle);
}

static void note_status(int status, void *unused)
{
    (void)unused;
    ends_well = (status & 0xff) == 0;
    if (ends_well)
        send_off();
}

static void register_exit(void)
{
    if (on_exit(note_status, NULL))
        GPSH_LOG(WARN, "init", "no memory to leave the job at exit: call finalize");
}
#else
static void register_exit(void)
{
}
#endif

// After all handlers of the program, and its destructors: they may communicate, and finalize. Those
// who wait for this PE do so until GPUSHMEM_WAIT_TIMEOUT_MS, and read of its end in reports.
__attribute__((destructor)) static void leave_at_exit(void)
{
    if (!ends_well || pthread_mutex_trylock(&lifecycle))
        return;
    if (init_depth) {
        gpsh_failures_end();
        gpsh_depart_tell_node();
        gpsh_bootstrap_say_goodbye(gpsh_job()->boot);
    }
    pthread_mutex_unlock(&lifecycle);
}

void gpsh_init_may_exit(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, register_exit);
}

int gpushmem_finalize(void)
{
    pthread_mutex_lock(&lifecycle); // first: another thread may be leaving the job
    int status = gpsh_check_initialised("finalize");
    if (!status && --init_depth == 0) {
        status = gpsh_contexts_quiet();
        gpsh_trace_stop();
        // nobody leaves before all have come here
        gpsh_bootstrap_expect_departures(gpsh_job()->boot,
                                         gpsh_job()->outlives ? gpsh_depart_has_told : NULL);
        int met = gpsh_barrier_as(GPSH_CALL_FINALIZE, 0, 0, __func__);
        if (gpsh_job()->outlives)
            met = meet_survivors(met);
        gpsh_bootstrap_expect_departures(gpsh_job()->boot, NULL); // their memory goes
        say_left(met);
        if (!status)
            status = met;
        if (gpsh_settings()->stats)
            gpsh_stats_print();
        gpsh_depart_tell_node();
        gpsh_failures_end();
        if (!met || gpsh_job()->outlives)
            see_off();
        if (!met && gpsh_job()->my_pe == 0 && gpsh_settings()->trace[0])
            join_trace();
        gpsh_lost_calls_tell();
        tear_down();
    }
    pthread_mutex_unlock(&lifecycle);
    return status;
}
