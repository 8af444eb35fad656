// SPDX-License-Identifier: BSD-3-Clause
// put_signal and signal_op: data, then a word that tells of it.
#include "api/argument.h"
#include "api/family.h"
#include "comm/context.h"
#include "connect/net.h"
#include "core/cpu.h"
#include "job/job.h"
#include "memory/heap.h"
#include "memory/place.h"
#include "observe/counters.h"
#include "transport/direct.h"

struct signal {
    uint64_t *word; // symmetric
    uint64_t value;
    int op;
};

static int check(const char *function, const struct signal *s, const void *dest, const void *source,
                 size_t bytes, int pe)
{
    int status = gpsh_check_remote(function, dest, bytes, pe);
    if (status == 0 && bytes != 0)
        status = gpsh_check_local(function, source);
    return status < 0 ? status : gpsh_check_signal(function, s->word, s->op, pe);
}

// Stores or adds the signal by the processor. False if adding is the NIC's.
GPSH_ALWAYS_INLINE bool signal_here(uint64_t *word, const struct signal *s)
{
    if (s->op == GPUSHMEM_SIGNAL_ADD && !gpsh_net()->cpu_atomics)
        return false;
    gpsh_direct_signal(word, s->op == GPUSHMEM_SIGNAL_ADD, s->value);
    return true;
}

// The word, and the data unless it is empty.
struct places {
    struct gpsh_place data, word;
};

static int add_by_transport(struct gpsh_context *ctx, const struct signal *s,
                            const struct gpsh_place *word, int pe)
{
    const struct gpsh_op op = {
        .kind = GPSH_OP_AMO,
        .amo = GPSH_AMO_ADD,
        .width = sizeof *s->word,
        .region = word->region,
        .pe = pe,
        .remote = word->offset,
        .operand = s->value,
    };
    return gpsh_context_submit(ctx, &op, GPSH_WAIT_NONE);
}

// Data by the processor; the signal too, unless adding is the NIC's.
static int send_direct(struct gpsh_context *ctx, const struct signal *s,
                       const struct places *places, const void *source, size_t bytes, int pe)
{
    if (bytes != 0)
        gpsh_direct_copy(places->data.direct, source, bytes);
    gpsh_count_direct(pe, bytes);
    if (signal_here((uint64_t *)(void *)places->word.direct, s))
        return 0;
    gpsh_full_fence(); // the data is in memory before the NIC adds
    return add_by_transport(ctx, s, &places->word, pe);
}

// The data as a put of its own, and then the signal.
static int send_in_two(struct gpsh_context *ctx, const struct signal *s, const struct gpsh_op *both,
                       const struct gpsh_place *word, enum gpsh_wait wait)
{
    const struct gpsh_peer *peer = &gpsh_job()->peers[both->pe];
    bool add = s->op == GPUSHMEM_SIGNAL_ADD;
    // Two transports do not order their operations: then the data is completed before the signal is
    // sent.
    bool two_transports = add && peer->amo != peer->data;
    struct gpsh_op op = *both;
    op.kind = GPSH_OP_PUT;
    op.flags = 0;
    int status = 0;
    if (op.bytes != 0)
        status = gpsh_context_submit(ctx, &op, two_transports ? GPSH_WAIT_COMPLETE : wait);
    if (status == 0 && !two_transports)
        status = gpsh_context_fence(ctx, op.pe);
    if (status < 0 || add)
        return status < 0 ? status : add_by_transport(ctx, s, word, op.pe);
    op.kind = GPSH_OP_PUT_SIGNAL;
    op.region = word->region;
    op.remote = op.bytes = 0;
    return gpsh_context_submit(ctx, &op, GPSH_WAIT_NONE);
}

static int send_by_transport(struct gpsh_context *ctx, const struct signal *s,
                             const struct places *places, const void *source, size_t bytes, int pe,
                             enum gpsh_wait wait)
{
    const struct gpsh_peer *peer = &gpsh_job()->peers[pe];
    bool add = s->op == GPUSHMEM_SIGNAL_ADD;
    const struct gpsh_op op = {
        .kind = GPSH_OP_PUT_SIGNAL,
        .flags = add ? GPSH_OP_SIGNAL_ADD : 0,
        .region = bytes != 0 ? places->data.region : places->word.region,
        .pe = pe,
        .local = (char *)(uintptr_t)source,
        .remote = bytes != 0 ? places->data.offset : 0,
        .bytes = bytes,
        .operand = s->value,
        .signal = places->word.offset,
    };
    if ((add && peer->amo != peer->data) || op.region != places->word.region)
        return send_in_two(ctx, s, &op, &places->word, wait);
    return gpsh_context_submit(ctx, &op, wait);
}

static int send_slow(const char *function, gpushmem_ctx_t handle, const struct signal *s,
                     void *dest, const void *source, size_t bytes, int pe, enum gpsh_wait wait)
{
    struct gpsh_context *ctx;
    struct places places = {0};
    int status = check(function, s, dest, source, bytes, pe);
    if (status == 0)
        status = gpsh_check_context(function, handle, &ctx);
    if (status < 0)
        return status;
    if (bytes != 0)
        gpsh_place_find(dest, bytes, pe, &places.data);
    gpsh_place_find(s->word, sizeof *s->word, pe, &places.word);
    if (places.word.direct != NULL)
        return send_direct(ctx, s, &places, source, bytes, pe);
    return send_by_transport(ctx, s, &places, source, bytes, pe, wait);
}

GPSH_ALWAYS_INLINE int put_signal(const char *function, gpushmem_ctx_t ctx, void *dest,
                                  const void *source, size_t bytes, uint64_t *sig, uint64_t value,
                                  int op, int pe, enum gpsh_wait wait)
{
    const struct signal s = {.word = sig, .value = value, .op = op};
    char *to = gpsh_direct(dest, bytes, pe);
    char *word = gpsh_direct(sig, sizeof *sig, pe);
    bool plain =
        op == GPUSHMEM_SIGNAL_SET || (op == GPUSHMEM_SIGNAL_ADD && gpsh_net()->cpu_atomics);
    if (GPSH_UNLIKELY(to == NULL || word == NULL || (source == NULL && bytes != 0) || !plain ||
                      ((uintptr_t)sig & 7) != 0 || ctx == GPUSHMEM_CTX_INVALID))
        return send_slow(function, ctx, &s, dest, source, bytes, pe, wait);
    gpsh_direct_copy(to, source, bytes);
    (void)signal_here((uint64_t *)(void *)word, &s);
    return 0;
}

#define DO(SIZE, WAIT)                                                                             \
    put_signal(__func__, ctx, dest, source, gpsh_bytes(nelems, SIZE), sig, signal, sig_op, pe,     \
               GPSH_WAIT_##WAIT)
#define DO_put_signal(SIZE)     DO(SIZE, SOURCE)
#define DO_put_signal_nbi(SIZE) DO(SIZE, NONE)
#define DEFINE_TYPE(NAME, TYPE) GPSH_SIGNAL_MOVES(GPSH_MOVE_TYPE, NAME, TYPE)
#define DEFINE_SIZE(BITS)       GPSH_SIGNAL_MOVES(GPSH_MOVE_SIZE, BITS, BITS / 8)
GPUSHMEM_RMA_TYPES(DEFINE_TYPE)
GPUSHMEM_RMA_SIZES(DEFINE_SIZE)
GPSH_SIGNAL_MOVES(GPSH_MOVE_SIZE, mem, 1)

#undef gpushmem_signal_op // the type-generic name of C
GPSH_FUNCTION(int, signal_op,
              (uint64_t * sig, uint64_t signal, enum gpushmem_signal_op sig_op, int pe),
              put_signal(__func__, ctx, gpsh_heap()->base, NULL, 0, sig, signal, sig_op, pe,
                         GPSH_WAIT_NONE))

#undef gpushmem_signal_set
#undef gpushmem_signal_add
GPSH_FUNCTION(int, signal_set, (uint64_t * sig, uint64_t signal, int pe),
              put_signal(__func__, ctx, gpsh_heap()->base, NULL, 0, sig, signal,
                         GPUSHMEM_SIGNAL_SET, pe, GPSH_WAIT_NONE))
GPSH_FUNCTION(int, signal_add, (uint64_t * sig, uint64_t signal, int pe),
              put_signal(__func__, ctx, gpsh_heap()->base, NULL, 0, sig, signal,
                         GPUSHMEM_SIGNAL_ADD, pe, GPSH_WAIT_NONE))
