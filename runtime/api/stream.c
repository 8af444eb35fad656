// SPDX-License-Identifier: BSD-3-Clause
// The calls of gpushmem/stream.h: arguments are checked, then the operation goes to a stream of the
// GPU, to one of the emulation, or is done at once.
#include <stdlib.h>
#include <string.h>

#include "api/argument.h"
#include "api/compat.h"
#include "core/cpu.h"
#include "gpu/gpu.h"
#include "gpushmem/compat/impl/nvshmem_calls.h"
#include "gpushmem/device_host.h"
#include "job/job.h"
#include "memory/heap.h"
#include "proxy/emulation.h"
#include "stream/stream_gpu.h"

static int strided_now(const struct gpushmem_stream_op *op)
{
    typedef int move_elements(void *, const void *, ptrdiff_t, ptrdiff_t, size_t, int);
    static move_elements *const of[2][5] = {
        {gpushmem_iput8, gpushmem_iput16, gpushmem_iput32, gpushmem_iput64, gpushmem_iput128},
        {gpushmem_iget8, gpushmem_iget16, gpushmem_iget32, gpushmem_iget64, gpushmem_iget128}};
    return of[op->kind == GPUSHMEM_STREAM_IGET][__builtin_ctz((unsigned)op->size)](
        op->dest, op->source, op->dest_stride, op->source_stride, op->bytes / (unsigned)op->size,
        op->pe);
}

static int wait_now(const struct gpushmem_stream_op *op)
{
    void *word = op->signal;
    switch (op->size) {
    case 2: return gpushmem_ushort_wait_until(word, op->op, (unsigned short)op->value);
    case 4: return gpushmem_uint32_wait_until(word, op->op, (uint32_t)op->value);
    case -2: return gpushmem_short_wait_until(word, op->op, (short)op->value);
    case -4: return gpushmem_int32_wait_until(word, op->op, (int32_t)op->value);
    case -8: return gpushmem_int64_wait_until(word, op->op, (int64_t)op->value);
    default: return gpushmem_uint64_wait_until(word, op->op, op->value);
    }
}

// Nothing can be in the only stream there is: the caller does it.
static int do_now(const struct gpushmem_stream_op *op)
{
    switch (op->kind) {
    case GPUSHMEM_STREAM_PUT: return gpushmem_putmem(op->dest, op->source, op->bytes, op->pe);
    case GPUSHMEM_STREAM_GET: return gpushmem_getmem(op->dest, op->source, op->bytes, op->pe);
    case GPUSHMEM_STREAM_PUT_SIGNAL:
        return gpushmem_putmem_signal(op->dest, op->source, op->bytes, op->signal, op->value,
                                      op->op, op->pe);
    case GPUSHMEM_STREAM_SIGNAL: return gpushmem_signal_op(op->signal, op->value, op->op, op->pe);
    case GPUSHMEM_STREAM_WAIT: return wait_now(op);
    case GPUSHMEM_STREAM_QUIET: return gpushmem_quiet();
    case GPUSHMEM_STREAM_BARRIER: return gpushmem_barrier_all();
    case GPUSHMEM_STREAM_P: return gpushmem_putmem(op->dest, &op->value, op->bytes, op->pe);
    case GPUSHMEM_STREAM_IPUT:
    case GPUSHMEM_STREAM_IGET: return strided_now(op);
    default: return gpushmem_sync_all();
    }
}

static int submit(const char *function, const struct gpushmem_stream_op *op,
                  gpushmem_stream_t stream)
{
    gpsh_enqueue *emulated = gpsh_emulation();
    if (emulated)
        return emulated(stream, op);
    if (GPSH_LIKELY(gpsh_heap()->device))
        return gpsh_stream_gpu_submit(op, stream);
    int status = gpsh_check_stream(function, stream);
    return status < 0 ? status : do_now(op);
}

static int check_signal(const char *function, const uint64_t *sig, int op, int pe)
{
    int status = gpsh_check_signal(function, sig, op, pe);
    return status < 0 ? status : gpsh_check_stream_object(function, sig, sizeof *sig);
}

// A PE, a range of its heap, and local memory of the same size.
static int check_transfer(const char *function, const void *sym, const void *local, size_t bytes,
                          int pe)
{
    int status = gpsh_check_remote(function, sym, bytes, pe);
    if (status == 0)
        status = gpsh_check_stream_object(function, sym, bytes);
    if (status == 0 && bytes != 0)
        status = gpsh_check_local(function, local);
    if (status == 0 && bytes != 0 && gpsh_heap()->device)
        status = gpsh_stream_gpu_check_local(function, local);
    return status;
}

static int move(const char *function, int kind, void *dest, const void *source, size_t bytes,
                int pe, gpushmem_stream_t stream)
{
    bool get = kind == GPUSHMEM_STREAM_GET;
    int status = check_transfer(function, get ? source : dest, get ? dest : source, bytes, pe);
    if (status < 0 || bytes == 0)
        return status;
    const struct gpushmem_stream_op op = {
        .kind = kind, .pe = pe, .dest = dest, .source = source, .bytes = bytes};
    return submit(function, &op, stream);
}

static int put_value(const char *function, void *dest, const void *value, size_t size, int pe,
                     gpushmem_stream_t stream)
{
    struct gpushmem_stream_op op = {
        .kind = GPUSHMEM_STREAM_P, .pe = pe, .dest = dest, .bytes = size};
    memcpy(&op.value, value, size);
    int status = gpsh_check_remote(function, dest, size, pe);
    if (status == 0)
        status = gpsh_check_stream_object(function, dest, size);
    return status < 0 ? status : submit(function, &op, stream);
}

static int check_strided(const char *function, const struct gpushmem_stream_op *op)
{
    bool get = op->kind == GPUSHMEM_STREAM_IGET;
    const void *sym = get ? op->source : op->dest, *local = get ? op->dest : op->source;
    size_t span, nelems = op->bytes / (unsigned)op->size;
    int status = gpsh_strided_check(function, sym, get ? op->source_stride : op->dest_stride, local,
                                    get ? op->dest_stride : op->source_stride, nelems,
                                    (unsigned)op->size, op->pe, &span);
    if (status == 0)
        status = gpsh_check_stream_object(function, sym, span);
    if (status == 0 && nelems != 0 && gpsh_heap()->device)
        status = gpsh_stream_gpu_check_local(function, local);
    return status;
}

static int move_strided(const char *function, struct gpushmem_stream_op op,
                        gpushmem_stream_t stream)
{
    int status = check_strided(function, &op);
    return status < 0 || op.bytes == 0 ? status : submit(function, &op, stream);
}

static int put_signal(const char *function, void *dest, const void *source, size_t bytes,
                      uint64_t *sig, uint64_t signal, enum gpushmem_signal_op how, int pe,
                      gpushmem_stream_t stream)
{
    int status = check_transfer(function, dest, source, bytes, pe);
    if (status == 0)
        status = check_signal(function, sig, how, pe);
    if (status < 0)
        return status;
    const struct gpushmem_stream_op op = {.kind = bytes ? GPUSHMEM_STREAM_PUT_SIGNAL
                                                        : GPUSHMEM_STREAM_SIGNAL,
                                          .pe = pe,
                                          .op = how,
                                          .dest = dest,
                                          .source = source,
                                          .bytes = bytes,
                                          .signal = sig,
                                          .value = signal};
    return submit(function, &op, stream);
}

static int together(const char *function, int kind, gpushmem_stream_t stream)
{
    const struct gpushmem_stream_op op = {.kind = kind, .pe = -1};
    int status = gpsh_check_ready(function);
    return status < 0 ? status : submit(function, &op, stream);
}

#define DO_put(SIZE)                                                                               \
    move(__func__, GPUSHMEM_STREAM_PUT, dest, source, gpsh_bytes(nelems, SIZE), pe, stream)
#define DO_get(SIZE)                                                                               \
    move(__func__, GPUSHMEM_STREAM_GET, dest, source, gpsh_bytes(nelems, SIZE), pe, stream)
#define DO_put_signal(SIZE)                                                                        \
    put_signal(__func__, dest, source, gpsh_bytes(nelems, SIZE), sig, signal, sig_op, pe, stream)
#define DO_STRIDED(KIND, SIZE)                                                                     \
    move_strided(__func__,                                                                         \
                 (struct gpushmem_stream_op){.kind = GPUSHMEM_STREAM_##KIND,                       \
                                             .pe = pe,                                             \
                                             .size = SIZE,                                         \
                                             .dest = dest,                                         \
                                             .source = source,                                     \
                                             .bytes = gpsh_bytes(nelems, SIZE),                    \
                                             .dest_stride = dst,                                   \
                                             .source_stride = sst},                                \
                 stream)
#define DO_iput(SIZE) DO_STRIDED(IPUT, SIZE)
#define DO_iget(SIZE) DO_STRIDED(IGET, SIZE)
#define DEFINE_ONE(NAME, VERB, FORM, TYPE, SIZE)                                                   \
    int gpushmem_##NAME##_on_stream(GPSH_P_##FORM(TYPE, enum gpushmem_signal_op),                  \
                                    gpushmem_stream_t stream)                                      \
    {                                                                                              \
        return DO_##VERB(SIZE);                                                                    \
    }
#define MOVE_TYPE(VERB, REST, FORM, NAME, TYPE)                                                    \
    DEFINE_ONE(NAME##_##VERB##REST, VERB##REST, FORM, TYPE, sizeof(TYPE))
#define MOVE_SIZE(VERB, REST, FORM, BITS, SIZE)                                                    \
    DEFINE_ONE(VERB##BITS##REST, VERB##REST, FORM, void, SIZE)
#define DEFINE_TYPE(NAME, TYPE)                                                                    \
    GPSH_STREAM_MOVES(MOVE_TYPE, NAME, TYPE)                                                       \
    int gpushmem_##NAME##_p_on_stream(TYPE *dest, TYPE value, int pe, gpushmem_stream_t stream)    \
    {                                                                                              \
        return put_value(__func__, dest, &value, sizeof value, pe, stream);                        \
    }                                                                                              \
    int gpushmem_##NAME##_g_on_stream(TYPE *dest, const TYPE *source, int pe,                      \
                                      gpushmem_stream_t stream)                                    \
    {                                                                                              \
        return move(__func__, GPUSHMEM_STREAM_GET, dest, source, sizeof *dest, pe, stream);        \
    }
#define DEFINE_SIZE(BITS) GPSH_STREAM_MOVES(MOVE_SIZE, BITS, BITS / 8)
GPUSHMEM_RMA_TYPES(DEFINE_TYPE)
GPUSHMEM_RMA_SIZES(DEFINE_SIZE)
MOVE_SIZE(put, , MOVE, mem, 1)
MOVE_SIZE(get, , MOVE, mem, 1)
MOVE_SIZE(put, _signal, SIGNAL, mem, 1)

int gpsh_stream_drain(const char *function, gpushmem_stream_t stream)
{
    static const struct gpushmem_stream_op drain = {.kind = GPUSHMEM_STREAM_DRAIN};
    gpsh_enqueue *emulated = gpsh_emulation();
    if (emulated)
        return emulated(stream, &drain);
    return gpsh_heap()->device ? gpsh_stream_gpu_drain(function, stream) : 0;
}

int gpushmem_signal_op_on_stream(uint64_t *sig, uint64_t signal, enum gpushmem_signal_op sig_op,
                                 int pe, gpushmem_stream_t stream)
{
    return put_signal(__func__, NULL, NULL, 0, sig, signal, sig_op, pe, stream);
}

static int wait_word(const char *function, void *word, int size, int cmp, uint64_t value,
                     gpushmem_stream_t stream)
{
    const struct gpushmem_stream_op op = {.kind = GPUSHMEM_STREAM_WAIT,
                                          .pe = gpsh_job()->my_pe,
                                          .op = cmp,
                                          .size = size,
                                          .signal = word,
                                          .value = value};
    return submit(function, &op, stream);
}

static int check_waited(const char *function, const void *words, size_t nelems, size_t width,
                        int cmp)
{
    int status = gpsh_check_words(function, words, nelems, width, cmp);
    return status || nelems == 0
               ? status
               : gpsh_check_stream_object(function, words, gpsh_bytes(nelems, width));
}

int gpushmem_signal_wait_until_on_stream(uint64_t *sig, enum gpushmem_cmp cmp, uint64_t value,
                                         gpushmem_stream_t stream)
{
    int status = check_waited(__func__, sig, 1, sizeof *sig, cmp);
    return status < 0 ? status : wait_word(__func__, sig, 8, cmp, value, stream);
}

// Number i of an array of integers of |size| bytes, which are signed where it is negative.
static uint64_t integer_at(const void *values, size_t i, int size)
{
    switch (size) {
    case 2: return ((const uint16_t *)values)[i];
    case 4: return ((const uint32_t *)values)[i];
    case -2: return (uint64_t)((const int16_t *)values)[i];
    case -4: return (uint64_t)((const int32_t *)values)[i];
    default: return ((const uint64_t *)values)[i];
    }
}

// What is to be read at the call may be in GPU memory.
static int read_here(void *to, const void *from, size_t bytes)
{
    if (gpsh_heap()->device && gpsh_gpu_is_device_memory(from))
        return gpsh_gpu_copy(to, from, bytes);
    memcpy(to, from, bytes);
    return 0;
}

// One word after the other: when the last one is as wanted, all have been.
int gpushmem_nvshmem_wait_on_stream(const char *function, void *words, size_t nelems,
                                    const int *skip, int cmp, const void *values, int many_values,
                                    int size, gpushmem_stream_t stream)
{
    const size_t width = (size_t)abs(size);
    int status = check_waited(function, words, nelems, width, cmp);
    for (size_t i = 0; i < nelems && status == 0; i++) {
        const size_t k = many_values ? i : 0;
        int skipped = 0;
        uint64_t value = 0;
        if (skip)
            status = read_here(&skipped, &skip[i], sizeof skipped);
        if (status == 0 && !skipped)
            status = read_here(&value, (const char *)values + k * width, width);
        if (status == 0 && !skipped)
            status = wait_word(function, (char *)words + i * width, size, cmp,
                               integer_at(&value, 0, size), stream);
    }
    return status;
}

int gpushmem_quiet_on_stream(gpushmem_stream_t stream)
{
    return together(__func__, GPUSHMEM_STREAM_QUIET, stream);
}

int gpushmem_barrier_all_on_stream(gpushmem_stream_t stream)
{
    return together(__func__, GPUSHMEM_STREAM_BARRIER, stream);
}

int gpushmem_sync_all_on_stream(gpushmem_stream_t stream)
{
    return together(__func__, GPUSHMEM_STREAM_SYNC, stream);
}
