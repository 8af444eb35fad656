// SPDX-License-Identifier: BSD-3-Clause
// What CPU threads do not feel, and a GPU does: the scope of the fence before a command, and when
// the next kernel of a stream may start. Without a job; for CPU threads only.
#include <stdio.h>

#include "gpushmem/device.cuh"
#include "gpushmem/device/stream.cuh"

enum { HEAP_BYTES = 4096 };

static char heap[HEAP_BYTES], beside[64];
static int failures;

static void expect(bool good, const char *what)
{
    if (!good)
        fprintf(stderr, "not true: %s\n", what);
    failures += !good;
}

static void test_payload(gpushmem_dev dev)
{
    expect(!gpsh_dev_payload_wants_system(dev, (uint64_t)heap),
           "first byte of a GPU heap: GPU scope");
    expect(!gpsh_dev_payload_wants_system(dev, (uint64_t)heap + HEAP_BYTES - 1),
           "last byte: GPU scope");
    expect(gpsh_dev_payload_wants_system(dev, (uint64_t)heap + HEAP_BYTES),
           "past the end: system scope");
    expect(gpsh_dev_payload_wants_system(dev, (uint64_t)beside), "host memory: system scope");
    dev.flags |= GPUSHMEM_DEV_SYSTEM_SCOPE;
    expect(gpsh_dev_payload_wants_system(dev, (uint64_t)heap), "a host heap: system scope");
}

// Whether the word that the kernel waits for, or writes, had its value when the next one was let
// go.
static int value_at_start(const gpushmem_dev &dev, int kind, uint64_t *word)
{
    struct gpushmem_stream_op op = {};
    int seen = -1;
    op.kind = kind;
    op.signal = word;
    op.op = kind == GPUSHMEM_STREAM_WAIT ? (int)GPUSHMEM_CMP_EQ : (int)GPUSHMEM_SIGNAL_SET;
    op.value = 7;
    gpsh_emu_submit(2, 1, NULL, [&] {
        if (blockIdx.x == 0)
            gpsh_dev_stream_kernel(dev, op, kind, [&] { seen = (int)gpsh_dev_load_acquire(word); });
        else if (kind == GPUSHMEM_STREAM_WAIT) {
            for (int i = 0; i < 100; i++)
                sched_yield();
            gpsh_dev_store64_sys(word, 7);
        }
    });
    gpsh_emu_wait(NULL);
    return seen;
}

static void test_start(const gpushmem_dev &dev)
{
    uint64_t *word = (uint64_t *)heap;
    *word = 0;
    expect(value_at_start(dev, GPUSHMEM_STREAM_WAIT, word) == 7,
           "a wait lets nothing start before its end");
    *word = 0;
    expect(value_at_start(dev, GPUSHMEM_STREAM_SIGNAL, word) == 0,
           "a store lets the next start at once");
    expect(*word == 7, "and stores");
    gpushmem_dev far = dev;
    far.near_away[0] = 0;
    expect(gpsh_dev_stream_waits(far, 0, GPUSHMEM_STREAM_PUT), "a put through a ring waits");
    expect(!gpsh_dev_stream_waits(dev, 0, GPUSHMEM_STREAM_PUT_SIGNAL), "stores do not");
    far = dev;
    far.flags = 0;
    expect(gpsh_dev_stream_waits(far, 0, GPUSHMEM_STREAM_PUT_SIGNAL),
           "a signal by another agent waits");
    expect(gpsh_dev_stream_waits(dev, -1, GPUSHMEM_STREAM_BARRIER), "so does a barrier");
}

int main(void)
{
    static gpushmem_device_control control;
    static gpushmem_device_fault fault;
    static uint32_t claim;
    gpushmem_dev dev = {};
    dev.flags = GPUSHMEM_DEV_DIRECT_ATOMICS | GPUSHMEM_DEV_ALL_DIRECT;
    dev.n_pes = 1;
    dev.heap = heap;
    dev.heap_bytes = HEAP_BYTES;
    dev.near_away[0] = 1; // no way away
    dev.sync = (gpushmem_dev_sync *)(heap + HEAP_BYTES);
    dev.control = &control;
    dev.fault = &fault;
    dev.fault_claim = &claim;
    dev.self = &dev;
    test_payload(dev);
    test_start(dev);
    return failures != 0;
}
