// SPDX-License-Identifier: BSD-3-Clause
// What a PE keeps of peers that it has nothing to do with, in bytes of its heap and of libfabric's;
// and that libfabric takes addresses one by one as they are used, or all in one call.
//   ofi_books [PES]
#define _GNU_SOURCE
#include <malloc.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "core/config.h"
#include "core/error.h"
#include "transports/ofi/ofi_state.h"

#define CHECK_THAT(condition, ...)                                                                 \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: not true: %s: ", __FILE__, __LINE__, #condition);              \
            fprintf(stderr, __VA_ARGS__);                                                          \
            fprintf(stderr, " (%s)\n", gpsh_last_error());                                         \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

enum { CHANNELS = 3, FEW = 64, HEAP = 1 << 20, MOST_BYTES = 64, MOST_RECORD = 256 };

static struct gpsh_settings settings;
static int record_bytes; // of what a PE publishes

// ---- libfabric's calls for addresses, counted ----

static struct fi_ops_av counting;
static const struct fi_ops_av *counted;
static size_t calls, addresses;

static int count_insert(struct fid_av *av, const void *addr, size_t count, fi_addr_t *fi_addr,
                        uint64_t flags, void *context)
{
    calls++;
    addresses += count;
    return counted->insert(av, addr, count, fi_addr, flags, context);
}

static void count_from_now(struct gpsh_ofi *ofi)
{
    calls = addresses = 0;
    counted = ofi->av->ops;
    counting = *counted;
    counting.insert = count_insert;
    ofi->av->ops = &counting;
}

// ---- One PE, and records of others ----

struct job {
    struct gpsh_transport *transport;
    char *heap;
    double bytes; // that it takes
};

static double in_use(void)
{
    struct mallinfo2 all = mallinfo2();
    return (double)all.uordblks + (double)all.hblkhd;
}

static void *map(size_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    CHECK_THAT(memory != MAP_FAILED, "%zu bytes", bytes);
    return memory;
}

// Each has another port than all others: libfabric would keep one address for those that are alike.
static void connect_all(struct gpsh_transport *transport, int n_pes)
{
    struct ofi_blob blob;
    unsigned char record[sizeof blob];
    struct sockaddr_in address;
    int64_t bytes = transport->ops->describe(transport, record, sizeof record);
    CHECK_THAT(bytes > 0 && bytes <= MOST_RECORD, "%lld bytes", (long long)bytes);
    CHECK_THAT(!gpsh_ofi_blob_parse(record, (size_t)bytes, &blob), "own record");
    memcpy(&address, blob.address, sizeof address);
    CHECK_THAT(address.sin_family == AF_INET, "family %d", address.sin_family);
    for (int pe = 0; pe < n_pes; pe++) {
        struct sockaddr_in other = address;
        other.sin_port = pe ? htons((uint16_t)(1024 + pe)) : address.sin_port;
        blob.pe = (uint32_t)pe;
        memcpy(blob.address, &other, sizeof other);
        bytes = (int64_t)gpsh_ofi_blob_write(&blob, record);
        CHECK_THAT(!transport->ops->connect(transport, pe, record, (size_t)bytes), "PE %d", pe);
    }
    record_bytes = (int)bytes;
}

static struct job make(int n_pes)
{
    size_t stride = (size_t)n_pes * sizeof(struct gpsh_flow);
    struct job job = {.heap = map(HEAP)};
    struct gpsh_transport_env env = {
        .n_pes = n_pes,
        .settings = &settings,
        .channels = CHANNELS,
        .flows = map(CHANNELS * stride), // lent by the runtime: pages that come when written
        .flow_stride = stride,
        .regions = {{job.heap, HEAP, GPSH_MEMORY_HOST, -1, -1}}};
    double before = in_use();
    CHECK_THAT(!gpsh_ofi_ops.open(&env, &job.transport), "open");
    connect_all(job.transport, n_pes);
    job.bytes = in_use() - before;
    return job;
}

// To this PE itself, which is reached as others are.
static void put(struct job *job)
{
    struct gpsh_channel *channel;
    struct gpsh_op op = {.kind = GPSH_OP_PUT, .pe = 0, .local = job->heap, .remote = 8, .bytes = 8};
    CHECK_THAT(!job->transport->ops->channel_open(job->transport, 0, &channel), "channel");
    CHECK_THAT(job->transport->ops->post(channel, &op) >= 0, "post");
    while (channel->pending)
        job->transport->ops->progress(channel);
    CHECK_THAT(channel->flows[0].completed == 1 && !channel->flows[0].error, "put");
    job->transport->ops->channel_close(channel);
}

static void one_by_one(int n_pes)
{
    struct job job = make(n_pes);
    count_from_now((struct gpsh_ofi *)job.transport);
    put(&job);
    CHECK_THAT(calls == 1 && addresses == 1, "%zu calls for %zu addresses", calls, addresses);
    job.transport->ops->close(job.transport);
}

static void all_at_once(int n_pes)
{
    struct job job = make(n_pes);
    const struct gpsh_transport_ops *ops = job.transport->ops;
    double before = in_use();
    count_from_now((struct gpsh_ofi *)job.transport);
    for (int pe = 0; pe < n_pes; pe++)
        CHECK_THAT(ops->establish(job.transport, pe, true) >= 0, "PE %d", pe);
    for (int pe = 0; pe < n_pes; pe++)
        CHECK_THAT(ops->establish(job.transport, pe, false) == 1, "PE %d", pe);
    CHECK_THAT(calls == 1 && addresses == (size_t)n_pes, "%zu calls for %zu addresses", calls,
               addresses);
    printf("then, connected with all: %.0f more for each, libfabric's among them\n",
           (in_use() - before) / n_pes);
    put(&job);
    CHECK_THAT(calls == 1, "%zu calls", calls);
    ops->close(job.transport);
}

int main(int argc, char **argv)
{
    int n_pes = argc > 1 ? atoi(argv[1]) : 4096;
    char *set[] = {"GPUSHMEM_OFI_PROVIDER=tcp", "GPUSHMEM_OFI_DOMAIN=lo", NULL};
    CHECK_THAT(n_pes > FEW && n_pes < 60000, "%d PEs", n_pes);
    CHECK_THAT(!gpsh_settings_read(set, &settings), "settings");
    one_by_one(FEW); // what libfabric keeps for itself is made
    struct job few = make(FEW), many = make(n_pes);
    double each = (many.bytes - few.bytes) / (n_pes - FEW);
    printf("ofi: %.1f bytes for each of %d PEs that are not connected, %d in its record\n", each,
           n_pes, record_bytes);
    CHECK_THAT(each > 0 && each <= MOST_BYTES, "%.1f bytes, where %d are allowed", each,
               MOST_BYTES);
    few.transport->ops->close(few.transport);
    many.transport->ops->close(many.transport);
    one_by_one(n_pes);
    all_at_once(n_pes);
    return 0;
}
