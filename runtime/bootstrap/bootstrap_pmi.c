// SPDX-License-Identifier: BSD-3-Clause
// The bootstrap over PMI-1. A launcher keeps short texts under short keys, so a blob is put in
// pieces. A conversation can be begun and ended once (Hydra hangs up after "finalize", Slurm does
// not answer a second "init"), so it lasts from the first init to the end of the process.
#define _GNU_SOURCE // getpid
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bootstrap/bootstrap_ways.h"
#include "bootstrap/kvs_job.h"
#include "bootstrap/node_key.h"
#include "bootstrap/node_watch.h"
#include "bootstrap/pmi_wire.h"
#include "core/clock.h"
#include "core/error.h"
#include "core/log.h"

enum {
    KVS_BYTES = 257, // of the name of the store
    KEY_BYTES = 48,
    LEAST_VALUE = 8,
    FAREWELL_MS = 1000,
};

// A process has one conversation.
static struct {
    pid_t pid;   // of the process that began it, 0: nobody did
    bool active; // between our init and finalize
    struct gpsh_pmi_wire wire;
    bool in_barrier; // which was given up, and may still end
    int64_t answer_ms;
    char kvs[KVS_BYTES];
    long key_limit;     // characters of a key, with its end
    size_t piece_bytes; // of a blob under one key
    struct gpsh_kvs_job job;
} client = {.job = GPSH_KVS_JOB_INITIALIZER};

// ------------------------------------------------------------------------------------------
// requests

static bool barrier_arrived(void *status, long ms)
{
    char *line, cmd[16];
    int come = gpsh_pmi_receive(&client.wire, ms, &line);
    if (come == 0)
        return false;
    *(int *)status = come < 0 ? come : 0;
    if (come > 0 &&
        (!gpsh_pmi_field(line, "cmd", cmd, sizeof cmd) || strcmp(cmd, "barrier_out") != 0))
        *(int *)status = gpsh_pmi_fail_answer(&client.wire, line, "barrier_out");
    client.in_barrier = false;
    return true;
}

// The answers come in the order of the requests.
static int be_out_of_barrier(void)
{
    int status = 0;
    if (!client.in_barrier || barrier_arrived(&status, 0))
        return status;
    return gpsh_fail(
        GPUSHMEM_ERR_STATE,
        "a barrier of the launcher that this PE gave up has not ended, and PMI-1 takes "
        "no other request before");
}

static int ask(const char *request, const char *cmd, char **line)
{
    int status = be_out_of_barrier();
    return status ? status : gpsh_pmi_ask(&client.wire, request, cmd, client.answer_ms, line);
}

static int pmi_exchange(struct gpsh_bootstrap *b)
{
    gpsh_node_watch_settle(client.job.nodes);
    int status = be_out_of_barrier();
    if (!status)
        status = gpsh_pmi_send(&client.wire, "cmd=barrier_in\n", gpsh_clock_in(client.answer_ms));
    if (status)
        return status;
    client.in_barrier = true;
    bool came = gpsh_kvs_wait(&client.job, b, GPSH_BOOTSTRAP_EXCHANGE, barrier_arrived, &status);
    return came ? status : gpsh_kvs_given_up(&client.job, b);
}

// ------------------------------------------------------------------------------------------
// blobs, in pieces

static int piece_key(int pe, unsigned piece, char *key)
{
    int n = snprintf(key, KEY_BYTES, "gpsh-%u-%d-%u", client.job.round, pe, piece);
    return n < client.key_limit
               ? 0
               : gpsh_fail(GPUSHMEM_ERR_BOOTSTRAP,
                           "the launcher takes keys of %ld characters (PMI-1), and %d are needed",
                           client.key_limit - 1, n);
}

static int put_piece(int pe, unsigned piece, const void *data, size_t bytes)
{
    char key[KEY_BYTES], value[GPSH_PMI_LINE], request[2 * GPSH_PMI_LINE], *line;
    int status = piece_key(pe, piece, key);
    if (status)
        return status;
    gpsh_pmi_encode(data, bytes, value);
    snprintf(request, sizeof request, "cmd=put kvsname=%s key=%s value=%s\n", client.kvs, key,
             value);
    return ask(request, "put_result", &line);
}

static int pmi_put(struct gpsh_bootstrap *b, const void *blob, size_t bytes)
{
    void *packed;
    size_t left;
    int status = gpsh_kvs_pack(&client.job, b->my_pe, blob, bytes, &packed, &left);
    if (status)
        return status;
    const char *from = packed;
    for (unsigned piece = 0; left && !status; piece++) {
        size_t n = left < client.piece_bytes ? left : client.piece_bytes;
        status = put_piece(b->my_pe, piece, from, n);
        from += n;
        left -= n;
    }
    free(packed);
    return status;
}

static int ask_value(const char *key, char *value, size_t bytes)
{
    char request[GPSH_PMI_LINE], *line;
    snprintf(request, sizeof request, "cmd=get kvsname=%s key=%s\n", client.kvs, key);
    int status = ask(request, "get_result", &line);
    if (status)
        return status;
    return gpsh_pmi_field(line, "value", value, bytes)
               ? 0
               : gpsh_pmi_fail_answer(&client.wire, line, "a value");
}

// Appends to data[*have], which has `room`. Returns the number of bytes, or a negative status.
static long get_piece(int pe, unsigned piece, char *data, size_t room)
{
    char key[KEY_BYTES], value[GPSH_PMI_ANSWER];
    int status = piece_key(pe, piece, key);
    if (!status)
        status = ask_value(key, value, sizeof value);
    if (status && client.wire.wrong)
        return status;
    int dead =
        status ? gpsh_deaths_check(&client.job.deaths, GPSH_BOOTSTRAP_EXCHANGE, GPSH_DEATHS_NEWS_MS)
               : 0;
    if (dead)
        return dead;
    if (status)
        return gpsh_fail(GPUSHMEM_ERR_PEER_DATA,
                         "PE %d did not publish its data of round %u (the launcher has no '%s')",
                         pe, client.job.round, key);
    long bytes = gpsh_pmi_decode(value, data, room);
    return bytes > 0 ? bytes
                     : gpsh_fail(GPUSHMEM_ERR_PEER_DATA,
                                 "what PE %d published arrived damaged: piece %u begins with "
                                 "'%.20s'",
                                 pe, piece, value);
}

// All pieces of a blob, malloc'ed. Its beginning says how long it is; memory is taken for what has
// arrived.
static int get_packed(int pe, char **packed, size_t *have)
{
    size_t room = 0, whole = 0;
    *have = 0;
    *packed = NULL;
    for (unsigned piece = 0; !whole || *have < whole; piece++) {
        if (room - *have < GPSH_PMI_ANSWER) {
            room = 2 * room + 2 * GPSH_PMI_ANSWER;
            char *more = realloc(*packed, room);
            if (!more)
                return gpsh_fail(GPUSHMEM_ERR_NO_MEMORY, "no memory for %zu bytes of PE %d", room,
                                 pe);
            *packed = more;
        }
        long bytes = get_piece(pe, piece, *packed + *have, room - *have);
        if (bytes < 0)
            return (int)bytes;
        *have += (size_t)bytes;
        int status = whole ? 0 : gpsh_kvs_packed_bytes(pe, *packed, *have, &whole);
        if (status)
            return status;
    }
    return 0;
}

static int pmi_get(struct gpsh_bootstrap *b, int pe, void **blob, size_t *bytes)
{
    char *packed;
    size_t have;
    (void)b;
    int status = get_packed(pe, &packed, &have);
    if (!status)
        status = gpsh_kvs_unpack(&client.job, pe, packed, have, blob, bytes);
    free(packed);
    return status;
}

// ------------------------------------------------------------------------------------------
// trouble, and the end

// The launcher ends the caller with the others.
static int pmi_abort(struct gpsh_bootstrap *b, int status, const char *why, bool all)
{
    char request[64];
    (void)b, (void)all;
    (void)why; // PMI-1 has no place for it
    snprintf(request, sizeof request, "cmd=abort exitcode=%d\n", status);
    return gpsh_pmi_send(&client.wire, request, gpsh_clock_in(client.answer_ms));
}

static void pmi_finalize(struct gpsh_bootstrap *b)
{
    gpsh_kvs_job_leave(&client.job);
    (void)b;
    client.active = false;
}

// At the end of the process, which ends in order only if our finalize was called: else the launcher
// shall see a PE that left its job.
static void leave_pmi(void)
{
    char *line;
    if (client.pid != getpid() || client.active || client.in_barrier || client.wire.wrong)
        return;
    gpsh_pmi_ask(&client.wire, "cmd=finalize\n", "finalize_ack", FAREWELL_MS, &line);
    gpsh_pmi_wire_close(&client.wire);
}

// Comes after the handler, which has found the PE in its job.
static void pmi_goodbye(void)
{
    client.active = false;
    leave_pmi();
}

static const struct gpsh_bootstrap_ops pmi_ops = {
    .put = pmi_put,
    .exchange = pmi_exchange,
    .get = pmi_get,
    .abort = pmi_abort,
    .watch_nodes = gpsh_kvs_watch_nodes,
    .tree = gpsh_kvs_tree,
    .goodbye = pmi_goodbye,
    .finalize = pmi_finalize,
};

// ------------------------------------------------------------------------------------------
// joining

static bool number_field(const char *line, const char *name, long *number)
{
    char text[24], *end;
    if (!gpsh_pmi_field(line, name, text, sizeof text))
        return false;
    *number = strtol(text, &end, 10);
    return end != text && !*end && *number >= 0;
}

static int ask_limits(void)
{
    long value;
    char *line;
    int status = ask("cmd=get_maxes\n", "maxes", &line);
    if (status)
        return status;
    if (!number_field(line, "keylen_max", &client.key_limit) ||
        !number_field(line, "vallen_max", &value) || value < LEAST_VALUE)
        return gpsh_pmi_fail_answer(&client.wire, line, "keylen_max and a vallen_max of 8 or more");
    status = ask("cmd=get_my_kvsname\n", "my_kvsname", &line);
    if (status)
        return status;
    if (!gpsh_pmi_field(line, "kvsname", client.kvs, sizeof client.kvs) || !client.kvs[0])
        return gpsh_pmi_fail_answer(&client.wire, line, "a name of up to 256 characters");
    size_t other = strlen("cmd=put kvsname= key= value=\n") + strlen(client.kvs) + KEY_BYTES;
    size_t most = GPSH_PMI_LINE - 1 - other;
    client.piece_bytes = ((size_t)value - 1 < most ? (size_t)value - 1 : most) / 4 * 3;
    return 0;
}

static int begin_conversation(const char *pmi_fd)
{
    long version;
    char *line;
    int status = gpsh_pmi_wire_open(&client.wire, pmi_fd);
    if (status)
        return status;
    status = ask("cmd=init pmi_version=1 pmi_subversion=1\n", "response_to_init", &line);
    if (!status && (!number_field(line, "pmi_version", &version) || version != 1))
        status = gpsh_pmi_fail_answer(&client.wire, line, "pmi_version=1");
    if (!status)
        status = ask_limits();
    if (!status && atexit(leave_pmi))
        status = gpsh_fail(GPUSHMEM_ERR_NO_MEMORY, "no memory for one more exit handler");
    if (status)
        gpsh_pmi_wire_close(&client.wire);
    else
        client.pid = getpid();
    return status;
}

static int join_pmi(const struct gpsh_settings *settings)
{
    client.answer_ms = settings->bootstrap_timeout_ms;
    if (client.pid == getpid())
        return 0;
    if (client.pid != 0)
        return gpsh_fail(GPUSHMEM_ERR_STATE,
                         "process %d initialised the library and forked this one, which cannot "
                         "take part in the job: start PEs with the launcher only, or init after "
                         "fork",
                         (int)client.pid);
    return begin_conversation(getenv("PMI_FD"));
}

static bool read_variable(const char *name, int *number)
{
    const char *text = getenv(name);
    char *end;
    long value = text ? strtol(text, &end, 10) : -1;
    if (value < 0 || value >= INT_MAX || end == text || *end)
        return false;
    *number = (int)value;
    return true;
}

static int read_place(struct gpsh_bootstrap *b)
{
    const char *rank = getenv("PMI_RANK"), *size = getenv("PMI_SIZE");
    if (read_variable("PMI_RANK", &b->my_pe) && read_variable("PMI_SIZE", &b->n_pes) &&
        b->my_pe < b->n_pes)
        return 0;
    return gpsh_fail(GPUSHMEM_ERR_BOOTSTRAP,
                     "PMI_FD is set, so a launcher with PMI-1 started this process, but PMI_RANK "
                     "is '%.20s' and PMI_SIZE is '%.20s', which is no rank in a job",
                     rank ? rank : "", size ? size : "");
}

static void node_add(struct gpsh_bootstrap *b, int pe)
{
    if (pe == b->my_pe)
        b->node_my_pe = b->node_n_pes;
    b->node_pes[b->node_n_pes++] = pe;
}

// 0 with *found, if the launcher says which PEs share a node.
static int node_by_mapping(struct gpsh_bootstrap *b, bool *found)
{
    char text[GPSH_PMI_ANSWER];
    *found = false;
    int status = ask_value("PMI_process_mapping", text, sizeof text);
    if (status)
        return client.wire.wrong ? status : 0; // it has none
    int *node = malloc((size_t)b->n_pes * sizeof *node);
    if (!node)
        return gpsh_fail(GPUSHMEM_ERR_NO_MEMORY, "no memory for the nodes of %d PEs", b->n_pes);
    *found = gpsh_pmi_mapping_read(text, b->n_pes, node);
    for (int pe = 0; *found && pe < b->n_pes; pe++)
        if (node[pe] == node[b->my_pe])
            node_add(b, pe);
    free(node);
    return 0;
}

static int node_by_key(struct gpsh_bootstrap *b, const char *name)
{
    struct gpsh_node_key mine = gpsh_node_key(name);
    int status = pmi_put(b, &mine, sizeof mine);
    if (!status)
        status = pmi_exchange(b);
    for (int pe = 0; pe < b->n_pes && !status; pe++) {
        void *key;
        size_t bytes;
        status = pmi_get(b, pe, &key, &bytes);
        if (status)
            break;
        if (pe == b->my_pe || (bytes == sizeof mine && memcmp(key, &mine, sizeof mine) == 0))
            node_add(b, pe);
        free(key);
    }
    return status;
}

static int find_node(struct gpsh_bootstrap *b, const char *name)
{
    bool found;
    b->node_pes = malloc((size_t)b->n_pes * sizeof *b->node_pes);
    if (!b->node_pes)
        return gpsh_fail(GPUSHMEM_ERR_NO_MEMORY, "no memory for the list of %d PEs", b->n_pes);
    int status = node_by_mapping(b, &found);
    return status || found ? status : node_by_key(b, name);
}

int gpsh_bootstrap_pmi_init(struct gpsh_bootstrap *b, const struct gpsh_settings *settings)
{
    *b = (struct gpsh_bootstrap){.ops = &pmi_ops,
                                 .data = &client.job,
                                 .deaths = &client.job.deaths,
                                 .wait_timeout_ms = settings->wait_timeout_ms};
    int status = read_place(b);
    if (!status)
        status = join_pmi(settings);
    if (!status)
        status = gpsh_kvs_job_open(&client.job, b->n_pes);
    if (!status)
        status = find_node(b, settings->bootstrap_node);
    if (status) {
        gpsh_bootstrap_finalize(b);
        return status;
    }
    gpsh_kvs_job_id(b, client.kvs);
    client.active = true;
    GPSH_LOG(DEBUG, "bootstrap", "PE %d of %d, number %d of %d on this node, by PMI-1 ('%s')",
             b->my_pe, b->n_pes, b->node_my_pe, b->node_n_pes, b->job_id);
    return 0;
}
