// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE // gethostname
#include "connect/peers.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "bootstrap/agree.h"
#include "bootstrap/fd_exchange.h"
#include "connect/atomics.h"
#include "connect/net.h"
#include "connect/records.h"
#include "connect/ways.h"
#include "core/config.h"
#include "gpu/gpu.h"
#include "job/failure.h"
#include "job/job.h"
#include "memory/heap.h"
#include "memory/regions.h"
#include "memory/statics.h"
#include "memory/symmetric.h"

enum { CONNECT_LAZILY, CONNECT_AT_INIT }; // GPUSHMEM_CONNECT
enum { ABOUT_BYTES = 640, ATOMICS_BYTES = 224 };

// What wiring up needs besides the state it fills.
struct wiring {
    struct gpsh_fd_exchange exchange;
    struct gpsh_records records;
    struct gpsh_ways ways;
    const char *collectives; // GPUSHMEM_COLLECTIVES in full
    int other_heap;          // first PE whose heap has not the size of this one's, -1: none
};

static uint32_t reach; // gpsh_peers_reach

static bool is_whole_job_here(void)
{
    return gpsh_job()->boot->node_n_pes == gpsh_job()->n_pes;
}

static int describe_transports(struct gpsh_peer_blob *blob)
{
    for (int i = 0; i < gpsh_net()->n_transports; i++) {
        struct gpsh_transport *t = gpsh_net()->transports[i];
        int64_t bytes = t->ops->describe(t, NULL, 0);
        if (bytes < 0)
            return (int)bytes;
        void *data = malloc((size_t)bytes + 1);
        if (!data)
            return gpsh_fail(GPUSHMEM_ERR_NO_MEMORY,
                             "no memory for %" PRId64 " bytes of connection data", bytes);
        struct gpsh_blob_section *section = &blob->section[blob->sections++];
        snprintf(section->name, sizeof section->name, "%s", t->ops->name);
        section->data = data;
        section->bytes = (uint64_t)bytes;
        int64_t written = t->ops->describe(t, data, (size_t)bytes);
        if (written < 0)
            return (int)written;
    }
    return 0;
}

// Returns what the others now know of this PE, too, if it is no success.
static int publish(struct wiring *w, int my_status)
{
    struct gpsh_peer_blob blob = {
        .pe = gpsh_job()->my_pe,
        .device_heap = gpsh_heap()->device,
        .pid = (int32_t)getpid(),
        .node = gpsh_job()->boot->node_pes[0],
        .node_pe = gpsh_job()->boot->node_my_pe,
        .static_id = gpsh_regions_static_id(),
        .team_epoch = gpsh_settings()->team_epoch,
        .teams = (int32_t)gpsh_settings()->teams,
        .team_memory = gpsh_settings()->team_memory,
        .heap_fits = gpsh_regions_heap_fits(),
        .page_bytes = (uint32_t)gpsh_regions_page_bytes(gpsh_regions_host()),
    };
    for (int r = 0; r < GPSH_REGIONS; r++) {
        blob.region_bytes[r] = gpsh_regions_get(r).bytes;
        blob.region_at[r] = gpsh_regions_file_offset(r);
        blob.region_file[r] = gpsh_regions_shared_file(r);
    }
    gethostname(blob.hostname, sizeof blob.hostname - 1);
    if (gpsh_heap()->device)
        snprintf(blob.gpu, sizeof blob.gpu, "%.40s at %s", gpsh_gpu.name, gpsh_gpu.pci);
    snprintf(blob.socket_path, sizeof blob.socket_path, "%s", w->exchange.path);
    snprintf(blob.collectives, sizeof blob.collectives, "%s", w->collectives);
    gpsh_atomics_offer(&blob);
    if (!my_status)
        my_status = describe_transports(&blob);
    blob.status = my_status;
    snprintf(blob.sentence, sizeof blob.sentence, "%.*s", (int)sizeof blob.sentence - 1,
             my_status ? gpsh_last_error() : gpsh_statics_why());
    void *packed = NULL;
    size_t bytes = 0;
    int status = gpsh_peer_blob_pack(&blob, &packed, &bytes);
    if (!status)
        status = gpsh_bootstrap_put(gpsh_job()->boot, packed, bytes);
    free(packed);
    for (int i = 0; i < blob.sections; i++)
        free((void *)blob.section[i].data);
    if (!status)
        status = gpsh_bootstrap_exchange(gpsh_job()->boot);
    return status ? status : my_status;
}

// What teams and their collectives need alike: where their memory lies, and which PE sends what,
// and when.
static int check_collectives(const struct wiring *w, const struct gpsh_peer_blob *blob)
{
    const struct gpsh_settings *settings = gpsh_settings();
    if (blob->teams != settings->teams || blob->team_memory != settings->team_memory)
        return gpsh_fail(GPUSHMEM_ERR_PEER_DATA,
                         "PE %d has GPUSHMEM_TEAMS=%d and GPUSHMEM_TEAM_MEMORY=%" PRIu64
                         ", this PE %" PRId64 " and %" PRIu64 "; set them alike for all PEs",
                         blob->pe, blob->teams, blob->team_memory, settings->teams,
                         settings->team_memory);
    if (blob->team_epoch != settings->team_epoch)
        return gpsh_fail(GPUSHMEM_ERR_PEER_DATA,
                         "PE %d has GPUSHMEM_TEST_TEAM_EPOCH=%" PRId64 ", this PE %" PRId64
                         "; set it alike for all PEs",
                         blob->pe, blob->team_epoch, settings->team_epoch);
    if (strcmp(blob->collectives, w->collectives) != 0)
        return gpsh_fail(GPUSHMEM_ERR_PEER_DATA,
                         "PE %d carries out collectives of streams by GPUSHMEM_COLLECTIVES=%s, "
                         "this PE by %s; set it alike for all PEs",
                         blob->pe, blob->collectives, w->collectives);
    return 0;
}

static int check_blob(const struct wiring *w, const struct gpsh_peer_blob *blob)
{
    if (blob->status && blob->pe != gpsh_job()->my_pe)
        return gpsh_fail(blob->status, "PE %d on %s could not initialise: %s", blob->pe,
                         blob->hostname, blob->sentence);
    if (blob->device_heap != gpsh_heap()->device)
        return gpsh_fail(GPUSHMEM_ERR_PEER_DATA,
                         "PE %d on %s has its heap in %s memory, this PE in %s memory; set "
                         "GPUSHMEM_HEAP_KIND to device or host on all PEs",
                         blob->pe, blob->hostname, blob->device_heap ? "GPU" : "host",
                         gpsh_heap()->device ? "GPU" : "host");
    int status = check_collectives(w, blob);
    if (!status)
        status = gpsh_atomics_check(blob);
    if (status)
        return status;
    if (blob->region_bytes[GPSH_CONTROL] != gpsh_regions_get(GPSH_CONTROL).bytes)
        return gpsh_fail(GPUSHMEM_ERR_PEER_DATA,
                         "PE %d has a control region of another size: start all PEs with the same "
                         "gpushmem library and GPUSHMEM_* settings",
                         blob->pe);
    uint64_t heap_at = blob->region_at[GPSH_HEAP];
    if (heap_at && heap_at < gpsh_regions_get(GPSH_CONTROL).bytes)
        return gpsh_fail(GPUSHMEM_ERR_PEER_DATA,
                         "PE %d says that its heap begins at byte %" PRIu64
                         " of its memory, within "
                         "the control region: start all PEs with the same gpushmem library",
                         blob->pe, heap_at);
    return 0;
}

static int first_of_gpu(const struct wiring *w, const struct gpsh_peer_blob *blob)
{
    int first = blob->gpu[0] ? blob->node : blob->pe;
    while (first < blob->pe && (gpsh_job()->peers[first].node != blob->node ||
                                strcmp(gpsh_records_get(&w->records, first).gpu, blob->gpu) != 0))
        first++;
    return first;
}

static int take_record(void *arg, const struct gpsh_peer_blob *blob)
{
    struct wiring *w = arg;
    struct gpsh_peer *peer = &gpsh_job()->peers[blob->pe];
    int status = check_blob(w, blob);
    if (status)
        return status;
    peer->node = blob->node;
    peer->node_pe = blob->node_pe;
    peer->gpu_pe = first_of_gpu(w, blob);
    if (w->other_heap < 0 && blob->region_bytes[GPSH_HEAP] != gpsh_regions_get(GPSH_HEAP).bytes)
        w->other_heap = blob->pe;
    return 0;
}

// Sizes that nobody has chosen are settled by all; others have to be alike. No PE goes on where
// another one stops: what is compared is the same on all, and if they differ, each finds one that
// has another size.
static int check_heaps(const struct wiring *w)
{
    const struct gpsh_records *r = &w->records;
    if (r->least_heap >= 0 &&
        gpsh_regions_heap_settle(gpsh_records_get(r, r->least_heap).heap_fits,
                                 gpsh_records_get(r, r->most_heap).heap_fits, r->least_heap))
        return GPSH_PEERS_ANEW;
    if (w->other_heap < 0)
        return 0;
    return gpsh_fail(GPUSHMEM_ERR_PEER_DATA,
                     "PE %d has a heap of %" PRIu64 " bytes, this PE of %zu; set "
                     "GPUSHMEM_HEAP_SIZE and GPUSHMEM_HUGE_PAGES alike for all PEs",
                     w->other_heap, gpsh_records_get(r, w->other_heap).region_bytes[GPSH_HEAP],
                     gpsh_regions_get(GPSH_HEAP).bytes);
}

static int collect(struct wiring *w)
{
    w->other_heap = -1;
    int status = gpsh_records_read(&w->records, gpsh_job()->boot, take_record, w);
    if (!status)
        gpsh_regions_settle_pages(w->records.page_bytes);
    return status ? status : check_heaps(w);
}

// The same offset is the same variable only in processes of one program.
static void settle_static(const struct wiring *w)
{
    char why[320] = "";
    int pe = w->records.other_static;
    const struct gpsh_peer_blob theirs = gpsh_records_get(&w->records, pe < 0 ? 0 : pe);
    if (pe >= 0 && !theirs.static_id)
        snprintf(why, sizeof why, "PE %d does not share it: %.200s", pe, theirs.sentence);
    else if (pe >= 0)
        snprintf(why, sizeof why, "PE %d runs another program than PE 0", pe);
    gpsh_regions_use_static(why[0] ? why : NULL);
}

static int map_peer(void *arg, int index, const struct gpsh_fd_set *set)
{
    const struct wiring *w = arg;
    int pe = gpsh_job()->boot->node_pes[index];
    gpsh_job()->peers[pe].pid = set->pid ? set->pid : gpsh_bootstrap_pid_of(gpsh_job()->boot, pe);
    const struct gpsh_peer_blob theirs = gpsh_records_get(&w->records, pe);
    return gpsh_regions_map_peer(pe, set, theirs.region_at);
}

// Every PE of the node says that its region is in the same file, and where: all of them find that
// so, or none does.
static bool is_shared(const struct wiring *w, int r)
{
    const struct gpsh_bootstrap *b = gpsh_job()->boot;
    uint32_t file = gpsh_regions_shared_file(r);
    bool shared = file != 0;
    for (int i = 0; i < b->node_n_pes && shared; i++) {
        const struct gpsh_peer_blob theirs = gpsh_records_get(&w->records, b->node_pes[i]);
        shared = theirs.region_file[r] == file && theirs.region_at[r] == gpsh_regions_part_at(r, i);
    }
    return shared;
}

// What is in files that all PEs of the node share. *handed: there is something else, which all
// find.
static int map_shared(const struct wiring *w, bool *handed)
{
    const struct gpsh_bootstrap *b = gpsh_job()->boot;
    int status = 0;
    *handed = false;
    for (int r = 0; r < GPSH_REGIONS; r++) {
        bool shared = is_shared(w, r);
        *handed |= gpsh_regions_is_apart(r) && !shared;
        if (shared && gpsh_regions_is_apart(r) && !status)
            status = gpsh_regions_map_shared(r);
    }
    for (int i = 0; i < b->node_n_pes; i++)
        gpsh_job()->peers[b->node_pes[i]].pid =
            gpsh_bootstrap_pid_of(gpsh_job()->boot, b->node_pes[i]);
    return status;
}

// Each region that is not mapped yet has a file of its own, which its PE hands to the others.
static int map_handed(struct wiring *w)
{
    const struct gpsh_bootstrap *b = gpsh_job()->boot;
    int n = b->node_n_pes;
    const char **paths = calloc((size_t)n, sizeof *paths);
    char(*sockets)[GPSH_FD_PATH_BYTES] = calloc((size_t)n, sizeof *sockets);
    if (!paths || !sockets) {
        free(paths);
        free(sockets);
        return gpsh_fail(GPUSHMEM_ERR_NO_MEMORY, "no memory for %d PEs of this node", n);
    }
    for (int i = 0; i < n; i++) {
        const struct gpsh_peer_blob theirs = gpsh_records_get(&w->records, b->node_pes[i]);
        memcpy(sockets[i], theirs.socket_path, sizeof sockets[i]);
        paths[i] = sockets[i];
    }
    struct gpsh_fd_set mine = gpsh_regions_fds();
    int status = gpsh_fd_exchange_run(&w->exchange, gpsh_job()->my_pe, b->node_pes, paths, n, &mine,
                                      map_peer, w, gpsh_fd_exchange_ms(b));
    free(sockets);
    free(paths);
    return status;
}

static int map_node(struct wiring *w)
{
    const struct gpsh_bootstrap *b = gpsh_job()->boot;
    for (int i = 0; i < b->node_n_pes; i++)
        gpsh_job()->peers[b->node_pes[i]].same_node = true;
    bool handed;
    int status = gpsh_regions_map_self(), shared = map_shared(w, &handed);
    if (handed) { // though something has failed: the others wait for what this PE hands over
        int other = map_handed(w);
        status = status ? status : other;
    }
    return status ? status : shared;
}

// Opens what was spared, on every PE: the first that is there, or all.
static int open_spared(struct wiring *w, bool all)
{
    char names[64];
    snprintf(names, sizeof names, "%s", w->ways.spared);
    int status = publish(w, gpsh_ways_open(&w->ways, names, all));
    return status ? status : collect(w);
}

// Whether a way by which PEs reach each other is open on every PE.
static bool has_common_way(const struct wiring *w)
{
    bool near = is_whole_job_here() && !w->ways.apart, common = gpsh_job()->n_pes == 1;
    uint32_t wanted = GPSH_CAP_REMOTE_NODE | (near ? GPSH_CAP_MAPPED : 0);
    for (int i = 0; gpsh_transports[i]; i++)
        common |= gpsh_transports[i]->caps & wanted && w->records.ways >> i & 1;
    return common;
}

// GPUs of one node may not reach each other's memory. If that is so anywhere in the job, a
// transport that was spared is opened after all, on every PE.
static int open_for_gpus(struct wiring *w, int my_status)
{
    enum { EVERY_HEAP_IS_MAPPED = 1 };
    uint32_t all, mine = EVERY_HEAP_IS_MAPPED;
    for (int pe = 0; pe < gpsh_job()->n_pes && !my_status; pe++)
        if (!gpsh_heap()->mapped[GPSH_HEAP][pe])
            mine = 0;
    int status = gpsh_agree(gpsh_job()->boot, my_status, mine, &all);
    if (status || all & EVERY_HEAP_IS_MAPPED)
        return status;
    w->ways.apart = true;
    return open_spared(w, false);
}

// Everything that was spared, where the first way is not open on every PE.
static int open_common_way(struct wiring *w)
{
    return has_common_way(w) ? 0 : open_spared(w, true);
}

// Agents for atomics, which every PE then publishes as well.
static int serve_atomics(struct wiring *w, int my_status)
{
    int status = publish(w, my_status ? my_status : gpsh_atomics_serve());
    return status ? status : collect(w);
}

// A way that this PE has open and that one has not; NULL: there is none.
static const char *missing_way(const struct gpsh_peer_blob *theirs)
{
    for (int i = 0; i < gpsh_net()->n_transports; i++) {
        const struct gpsh_transport_ops *ops = gpsh_net()->transports[i]->ops;
        if (ops->caps & GPSH_CAP_REMOTE_NODE && !gpsh_peer_blob_find(theirs, ops->name))
            return ops->name;
    }
    return NULL;
}

// why: what the transport between nodes says of that PE, or "".
static int unreachable(const struct wiring *w, int pe, const char *why)
{
    const struct gpsh_peer_blob mine = gpsh_records_get(&w->records, gpsh_job()->my_pe),
                                theirs = gpsh_records_get(&w->records, pe);
    const char *failures = gpsh_ways_failures();
    const char *open = failures[0] ? " (" : "", *close = failures[0] ? ")" : "";
    const char *way = missing_way(&theirs);
    char lacks[96] = "";
    if (way)
        snprintf(lacks, sizeof lacks, ", as PE %d has no %s open: see what it says and its setting",
                 pe, way);
    if (gpsh_job()->peers[pe].same_node && gpsh_heap()->device)
        return gpsh_fail(
            GPUSHMEM_ERR_UNREACHABLE,
            "PE %d (%s) and PE %d (%s) of this node do not reach each other: %.150s; nor by "
            "GPUSHMEM_TRANSPORTS=%s%s%.80s%s%s. It takes peer access (nvidia-smi topo -p2p rw), "
            "verbs and an RDMA "
            "device, or GPUSHMEM_HEAP_KIND=host",
            gpsh_job()->my_pe, mine.gpu, pe, theirs.gpu, gpsh_job()->peers[pe].reason,
            gpsh_settings()->transports, open, failures, close, lacks);
    if (why[0] && w->ways.spared[0])
        return gpsh_fail(GPUSHMEM_ERR_UNREACHABLE,
                         "%s. Or go another way: %s was not opened, as every PE has the one before "
                         "it, and is with GPUSHMEM_TRANSPORTS=p2p,%s on all PEs",
                         why, w->ways.spared, w->ways.spared);
    if (why[0])
        return gpsh_fail(GPUSHMEM_ERR_UNREACHABLE, "%s", why);
    return gpsh_fail(
        GPUSHMEM_ERR_UNREACHABLE,
        "PE %d on %s is reached by none of GPUSHMEM_TRANSPORTS=%s%s%s%s%s. p2p reaches "
        "PEs of this node alone; add ofi, or verbs where there are RDMA devices%s",
        pe, theirs.hostname, gpsh_settings()->transports, open, failures, close, lacks,
        strstr(gpsh_settings()->transports, "loop") ? "; loop is for a job of one PE" : "");
}

// First transport in the order of GPUSHMEM_TRANSPORTS that connects serves the data; the first one
// with NIC atomics stands by for atomics.
static int connect_peer(struct wiring *w, int pe)
{
    struct gpsh_peer *peer = &gpsh_job()->peers[pe];
    const struct gpsh_peer_blob blob = gpsh_records_get(&w->records, pe);
    int nic = -1;
    char why[GPSH_ERROR_BYTES] = "";
    peer->data = peer->amo = -1;
    for (int i = 0; i < gpsh_net()->n_transports; i++) {
        struct gpsh_transport *t = gpsh_net()->transports[i];
        const struct gpsh_blob_section *section = gpsh_peer_blob_find(&blob, t->ops->name);
        if (!section)
            continue;
        int status = t->ops->connect(t, pe, section->data, section->bytes);
        if (status && status != GPUSHMEM_ERR_UNREACHABLE)
            return status;
        if (status && t->ops->caps & GPSH_CAP_REMOTE_NODE)
            snprintf(why, sizeof why, "%s", gpsh_last_error());
        if (status)
            continue;
        if (peer->data < 0)
            peer->data = (int8_t)i;
        if (nic < 0 && (t->ops->caps & GPSH_CAP_NIC_ATOMICS))
            nic = i;
    }
    if (peer->data < 0)
        return unreachable(w, pe, why);
    peer->amo = (int8_t)nic;
    return 0;
}

static bool uses(const struct gpsh_peer *peer, int transport)
{
    return peer->data == transport || peer->amo == transport;
}

int gpsh_peer_establish(int pe, bool begin)
{
    int all = 1;
    for (int i = 0; i < gpsh_net()->n_transports && all >= 0; i++) {
        struct gpsh_transport *t = gpsh_net()->transports[i];
        if (!t->ops->establish || !uses(&gpsh_job()->peers[pe], i))
            continue;
        int stands = t->ops->establish(t, pe, begin);
        all = stands < all ? stands : all;
    }
    return all;
}

int gpsh_peers_establish(void)
{
    const struct timespec nap = {.tv_nsec = 100000};
    int status = 0, n_pes = gpsh_job()->n_pes;
    if (gpsh_settings()->connect != CONNECT_AT_INIT)
        return 0;
    for (int pe = 0; pe < n_pes && status >= 0; pe++)
        status = gpsh_peer_establish(pe, true);
    for (int pe = 0; pe < n_pes && status >= 0; pe += status) {
        status = gpsh_peer_establish(pe, false);
        if (!status)
            nanosleep(&nap, NULL);
    }
    return status < 0 ? status : 0;
}

static void fill_direct(void)
{
    for (int pe = 0; pe < gpsh_job()->n_pes; pe++)
        if (gpsh_net()->transports[gpsh_job()->peers[pe].data]->ops->caps & GPSH_CAP_MAPPED &&
            !gpsh_heap()->device)
            gpsh_heap()->direct[pe] = gpsh_heap()->mapped[GPSH_HEAP][pe];
}

void gpsh_peer_explain(int pe, char *line, size_t bytes)
{
    struct gpsh_transport *t = gpsh_net()->transports[gpsh_job()->peers[pe].data];
    char detail[200] = "";
    t->ops->explain(t, pe, detail, sizeof detail);
    snprintf(line, bytes, "PE %d by %s (%s), atomics by %s", pe, t->ops->name, detail,
             gpsh_atomics_agent(pe));
}

bool gpsh_peer_kernels_post(int pe)
{
    struct gpsh_transport *t = gpsh_net()->transports[gpsh_job()->peers[pe].data];
    return t->ops->kernels_post && t->ops->kernels_post(t, pe);
}

void gpsh_self_explain(char *line, size_t bytes)
{
    char host[64] = "?", where[128] = "in host memory", about[ABOUT_BYTES] = "";
    char atomics[ATOMICS_BYTES];
    gethostname(host, sizeof host - 1);
    if (gpsh_heap()->device)
        snprintf(where, sizeof where, "on %s at %s", gpsh_gpu.name, gpsh_gpu.pci);
    for (int i = 0; i < gpsh_net()->n_transports && !about[0]; i++)
        if (gpsh_net()->transports[i]->ops->about)
            gpsh_net()->transports[i]->ops->about(gpsh_net()->transports[i], about, sizeof about);
    gpsh_atomics_explain(atomics, sizeof atomics);
    snprintf(
        line, bytes, "PE %d on %s: %" PRIu64 " MiB %s; %s; %s", gpsh_job()->my_pe, host,
        gpsh_settings()->heap_size >> 20, where,
        about[0]
            ? about
            : "no NIC is open: every PE is reached without (GPUSHMEM_TRANSPORTS=verbs opens those "
              "that are there)",
        atomics);
}

static void log_choices(void)
{
    if (gpsh_log_threshold < GPSH_LOG_INFO)
        return;
    char atomics[ATOMICS_BYTES];
    gpsh_atomics_explain(atomics, sizeof atomics);
    GPSH_LOG(INFO, "peers", "%s", atomics);
    for (int pe = 0; pe < gpsh_job()->n_pes; pe++) {
        char line[256];
        gpsh_peer_explain(pe, line, sizeof line);
        GPSH_LOG(INFO, "peers", "%s", line);
    }
}

// From the memory of the node's PEs to all PEs. What fails here is this PE's own trouble, and told
// to the others later.
static int connect_all(struct wiring *w, int status)
{
    for (int pe = 0; pe < gpsh_job()->n_pes && !status; pe++)
        status = connect_peer(w, pe);
    reach = status ? 0 : gpsh_atomics_reach(&w->records);
    return status;
}

// Returns what all PEs know of; *mine is what the others have to be told.
static int wire(struct wiring *w, int my_status, int *mine)
{
    int status = gpsh_records_open(&w->records, gpsh_job()->n_pes);
    if (status)
        return status;
    w->exchange.socket = -1;
    if (!my_status)
        my_status = gpsh_fd_exchange_open(&w->exchange, gpsh_job()->boot, gpsh_job()->generation);
    w->exchange.waits = gpsh_job()->boot->waits;
    if (!my_status)
        my_status = gpsh_ways_open(&w->ways, gpsh_settings()->transports, false);
    status = publish(w, my_status);
    if (my_status)
        return my_status;
    if (!status)
        status = collect(w);
    if (!status)
        status = open_common_way(w);
    if (status)
        return status;
    settle_static(w);
    *mine = map_node(w);
    if (gpsh_heap()->device && is_whole_job_here() && gpsh_job()->n_pes > 1) {
        status = open_for_gpus(w, *mine);
        if (!status && w->ways.apart)
            status = open_common_way(w);
        if (status)
            return status; // everybody's
    }
    if (gpsh_atomics_need_agents(&w->records))
        *mine = serve_atomics(w, *mine);
    *mine = connect_all(w, *mine);
    return 0;
}

// Against a loss that the launcher's thread tells while the transports are closed.
static pthread_mutex_t wired_lock = PTHREAD_MUTEX_INITIALIZER;
static int n_wired; // transports that may be told of losses

void gpsh_peers_gone(int pe)
{
    pthread_mutex_lock(&wired_lock);
    for (int i = 0; i < n_wired && (unsigned)pe < (unsigned)gpsh_job()->n_pes; i++)
        if (gpsh_net()->transports[i]->ops->peer_lost)
            gpsh_net()->transports[i]->ops->peer_lost(gpsh_net()->transports[i], pe);
    pthread_mutex_unlock(&wired_lock);
}

// The memory of a lost PE stays mapped, and nobody answers for what is in it: calls that would load
// and store there go by the checks that refuse them.
static void close_memory(int pe)
{
    pthread_mutex_lock(&wired_lock);
    if (n_wired)
        __atomic_store_n(&gpsh_heap()->direct[pe], NULL, __ATOMIC_RELAXED);
    pthread_mutex_unlock(&wired_lock);
}

static void on_failure(int pe, int code)
{
    (void)code;
    close_memory(pe);
    gpsh_peers_gone(pe);
}

static void set_wired(int n)
{
    pthread_mutex_lock(&wired_lock);
    n_wired = n;
    pthread_mutex_unlock(&wired_lock);
}

// What NICs write to the GPU's memory is to be flushed before it is read.
static bool must_flush(void)
{
    bool must = false, nic = false;
    for (int i = 0; i < gpsh_net()->n_transports; i++) {
        must |= gpsh_net()->transports[i]->must_flush;
        nic |= gpsh_net()->transports[i]->ops->caps & GPSH_CAP_REMOTE_NODE;
    }
    return must || (nic && gpsh_gpu_needs_flush());
}

int gpsh_peers_connect(int my_status, const char *collectives, int *mine)
{
    struct wiring w = {.collectives = collectives};
    gpsh_ways_begin(&w.ways);
    *mine = 0;
    int status = wire(&w, my_status, mine);
    gpsh_fd_exchange_close(&w.exchange);
    gpsh_records_close(&w.records);
    if (status || *mine)
        return status;
    fill_direct();
    set_wired(gpsh_net()->n_transports);
    gpsh_failure_observe_first(on_failure);
    return 0;
}

uint32_t gpsh_peers_reach(void)
{
    return reach;
}

int gpsh_peers_settle(uint32_t common)
{
    int status = gpsh_atomics_choose(common, gpsh_ways_failures());
    if (status)
        return status;
    log_choices();
    gpsh_heap_flush_writes(gpsh_heap()->device && must_flush());
    return 0;
}

void gpsh_peers_disconnect(void)
{
    set_wired(0);
    for (int i = gpsh_net()->n_transports - 1; i >= 0; i--)
        gpsh_net()->transports[i]->ops->close(gpsh_net()->transports[i]);
    gpsh_net_state.n_transports = 0;
    gpsh_net_state.cpu_atomics = false;
    gpsh_regions_unmap_peers();
}
