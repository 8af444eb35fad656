// SPDX-License-Identifier: BSD-3-Clause
// What a PE keeps in a job of so many PEs: the library's own code makes it, for one PE whose peers
// are records, over NICs made of memory (tests/fakes). Fails if it is more than it may be.
//
//   perf_books [PES...]
//
// Memory is what the process has resident, where a registration of the fake NIC touches every page,
// as a real one pins it. The NIC's own (send queues, contexts of queue pairs) is not in it.
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "bootstrap/bootstrap.h"
#include "connect/records.h"
#include "core/config.h"
#include "core/error.h"
#include "job/job.h"
#include "memory/team_scratch.h"
#include "tests/fakes/fake_verbs.h"
#include "tests/perf/resident.h"
#include "transports/verbs/setup/verbs_message.h"
#include "transports/verbs/setup/verbs_setup.h"

enum { CHANNELS = 3, HEAP = 1 << 20, MOST_INIT_MIB = 64, MOST_RECORD = 256 };

static struct gpsh_settings settings;

// Every peer's end of a handshake.
static void answer(struct ibv_qp *from, const void *bytes, size_t n)
{
    struct gpsh_verbs_message message;
    unsigned char reply[GPSH_VERBS_MESSAGE_BYTES];
    if (!gpsh_verbs_message_parse(bytes, n, &message) || message.kind != GPSH_VERBS_GREETS)
        return;
    message.kind = GPSH_VERBS_READY;
    message.from = message.to;
    message.to = 0;
    message.yours = message.own;
    gpsh_verbs_message_write(&message, reply);
    fake_datagram(from, reply, sizeof reply);
}

static void peer_failed(void *arg, int pe, int code, const char *why)
{
    fprintf(stderr, "PE %d: %s\n", pe, why);
}

struct books {
    int n_pes, peers; // peers: that something was sent to
    int queue_pairs;  // towards PEs, at init
    int depth;        // of a send queue
    int64_t record;
    double init, per_peer, job;
    double read, read_s; // what all have published, while they are connected; how long that takes
    int gets;
};

// ---- What all PEs publish, as the launcher would give it ----

static struct {
    unsigned char verbs[1024];
    int64_t bytes;
    int gets;
} published;

static int give(struct gpsh_bootstrap *boot, int pe, void **packed, size_t *bytes)
{
    struct gpsh_peer_blob blob = {
        .pe = pe,
        .node = pe / 8 * 8,
        .node_pe = pe % 8,
        .static_id = 1,
        .nic_atomics = GPSH_NIC_ATOMICS,
        .hostname = "node-012345",
        .collectives = "packets=131072,copies=4194304,blocks=16,nodes=1,round=64",
        .sections = 2,
        .section = {{"p2p", "", 0}, {"verbs", published.verbs, (uint64_t)published.bytes}}};
    published.gets++;
    return gpsh_peer_blob_pack(&blob, packed, bytes);
}

static int accept_all(void *arg, const struct gpsh_peer_blob *blob)
{
    return blob->node_pe == blob->pe % 8 ? 0 : -1;
}

static double now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static int read_all(struct books *books)
{
    const struct gpsh_bootstrap_ops ops = {.get = give};
    struct gpsh_bootstrap boot = {.ops = &ops, .n_pes = books->n_pes};
    struct gpsh_records records;
    double before = perf_resident(), begun_s = now_s();
    published.gets = 0;
    int status = gpsh_records_open(&records, books->n_pes);
    if (!status)
        status = gpsh_records_read(&records, &boot, accept_all, NULL);
    books->read = perf_resident() - before;
    books->read_s = now_s() - begun_s;
    books->gets = published.gets;
    gpsh_records_close(&records);
    return status;
}

static int describe(struct gpsh_transport *transport, struct gpsh_verbs_blob *blob)
{
    unsigned char record[1024];
    int64_t bytes = transport->ops->describe(transport, record, sizeof record);
    return bytes < 0 ? (int)bytes : gpsh_verbs_blob_parse(record, (size_t)bytes, blob);
}

static int connect_all(struct gpsh_transport *transport, struct books *books)
{
    struct gpsh_verbs_blob blob;
    unsigned char record[1024];
    int status = describe(transport, &blob);
    for (int pe = 0; !status && pe < books->n_pes; pe++) {
        blob.pe = (uint32_t)pe;
        gpsh_verbs_blob_write(&blob, record);
        status = transport->ops->connect(transport, pe, record, gpsh_verbs_blob_bytes(&blob));
    }
    books->record = published.bytes = (int64_t)gpsh_verbs_blob_bytes(&blob);
    memcpy(published.verbs, record, (size_t)published.bytes);
    return status;
}

// To PEs at distances 1, 2, 4, ..., as barriers go.
static int send_all(struct gpsh_transport *transport, struct books *books, const char *heap)
{
    struct gpsh_channel *channel;
    int status = transport->ops->channel_open(transport, 0, &channel);
    for (int pe = 1; status >= 0 && pe < books->n_pes; pe *= 2, books->peers++) {
        struct gpsh_op op = {.kind = GPSH_OP_PUT, .pe = pe, .local = (char *)heap, .bytes = 8};
        status = transport->ops->post(channel, &op);
    }
    while (status >= 0 && channel->pending) {
        transport->ops->progress(channel);
        fake_run(FAKE_JOURNAL, IBV_WC_SUCCESS);
        nanosleep(&(struct timespec){.tv_nsec = 10000}, NULL);
    }
    return status < 0 ? status : 0;
}

static double job_books(int n_pes)
{
    double before = perf_resident();
    gpsh_job_state.boot->n_pes = n_pes;
    if (gpsh_job_open())
        return -1;
    return perf_resident() - before;
}

static int measure(struct books *books)
{
    char *heap = mmap(NULL, HEAP, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    size_t control_bytes = gpsh_control_bytes(books->n_pes);
    char *control =
        mmap(NULL, control_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    // In a file of the job's, as the board is, whose pages come when they are written.
    size_t stride = (size_t)books->n_pes * sizeof(struct gpsh_flow);
    char *flows = mmap(NULL, CHANNELS * stride, PROT_READ | PROT_WRITE,
                       MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    struct gpsh_transport *transport;
    fake_reset();
    fake.pins = true;
    fake.datagram = answer;
    memset(heap, 1, HEAP);
    memset(control, 0, control_bytes); // a row of its own
    struct gpsh_transport_env env = {
        .n_pes = books->n_pes,
        .settings = &settings,
        .channels = CHANNELS,
        .flows = flows,
        .flow_stride = stride,
        .peer_failed = peer_failed,
        .regions = {{heap, HEAP, GPSH_MEMORY_HOST, -1, -1},
                    {control, control_bytes, GPSH_MEMORY_HOST, -1, -1}}};
    books->job = job_books(books->n_pes);
    double before = perf_resident();
    int status = gpsh_verbs_ops.open(&env, &transport);
    if (!status)
        status = connect_all(transport, books);
    books->init = perf_resident() - before;
    books->queue_pairs = fake.qps - fake.n_devices; // but those of datagrams
    books->depth = status ? 0 : (int)((struct gpsh_verbs *)transport)->sq_depth;
    before = perf_resident();
    if (!status)
        status = send_all(transport, books, heap);
    books->per_peer = (perf_resident() - before) / (books->peers ? books->peers : 1);
    return status ? status : read_all(books);
}

static int print_row(struct books *books)
{
    int n = books->n_pes;
    double mib = 1 << 20;
    printf("%8d %5d %11.2f %11.2f %11.3f %11.1f %12.0f %12.0f %7.3f %7lld %8d %11.0f %6d\n", n,
           books->queue_pairs, books->init / mib, books->job / mib,
           (double)gpsh_control_total(n, &settings) / mib,
           (double)gpsh_heap_reserved(&settings) / mib, (double)(n * books->record) / 1e3,
           books->read / 1024, books->read_s, (long long)books->record, books->depth,
           books->per_peer / 1024, books->peers);
    bool fits = books->init + books->job <= MOST_INIT_MIB * mib && books->record <= MOST_RECORD &&
                books->init > 0 && books->read <= MOST_INIT_MIB * mib && books->gets == n &&
                !books->queue_pairs;
    if (!fits)
        fprintf(stderr,
                "more than %d MiB at init, or as much for all records, a record of more than %d "
                "bytes, %d records read of %d, or %d queue pairs towards PEs\n",
                MOST_INIT_MIB, MOST_RECORD, books->gets, n, books->queue_pairs);
    return fits ? 0 : 1;
}

static int row(int n_pes)
{
    struct books books = {.n_pes = n_pes};
    if (measure(&books)) {
        fprintf(stderr, "%d PEs: %s\n", n_pes, gpsh_last_error());
        return 1;
    }
    return print_row(&books);
}

// Each in a process of its own, whose memory nobody has used before.
static int row_apart(int n_pes)
{
    int status = 1;
    fflush(stdout);
    pid_t child = fork();
    if (!child) {
        status = row(n_pes);
        fflush(stdout);
        _exit(status);
    }
    return child < 0 || waitpid(child, &status, 0) != child || status;
}

int main(int argc, char **argv)
{
    static const int usual[] = {64, 1024, 16384, 131072};
    char *none[] = {NULL};
    int failed = gpsh_settings_read(none, &settings) ? 1 : 0;
    printf("%8s %5s %11s %11s %11s %11s %12s %12s %7s %7s %8s %11s %6s\n", "PEs", "QPs",
           "verbs_MiB", "peers_MiB", "control_MiB", "reserve_MiB", "records_KB", "all_said_KiB",
           "read_s", "record", "entries", "KiB_a_peer", "peers");
    for (int i = 1; i < argc; i++)
        failed |= row_apart(atoi(argv[i]));
    for (int i = 0; argc == 1 && i < 4; i++)
        failed |= row_apart(usual[i]);
    return failed;
}
