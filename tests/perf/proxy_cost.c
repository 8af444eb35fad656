// SPDX-License-Identifier: BSD-3-Clause
// What one proxy thread spends on a command: rings are filled first, then the passes are timed
// until all commands are complete. "warm": filled by the same core; "cold": by another one, so that
// each slot comes from its cache, as it comes from a GPU. Once on memory that is mapped, and once
// by the verbs transport over the software HCA's null mode, so that all of it is this library's
// own.
//
//   perf_proxy_cost [rounds [FILE]]
//
// With FILE the columns are without and with what GPUSHMEM_TRACE=FILE records, round by round in
// turn, on the same queues.
#define _GNU_SOURCE // CPU sets, setenv
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpushmem/gpushmem.h"
#include "observe/trace.h"
#include "ring_rig.h"
#include "samples.h"

enum { ENTRIES_LOG2 = 12, COMMANDS = 1 << ENTRIES_LOG2 };
static int rounds = 400;

static const char *trace_file; // NULL: warm and cold

static struct ring_rig *rig;
static uint64_t heads[8];

struct filling {
    struct gpushmem_command command;
    int rings, per_ring;
};

static void *fill(void *arg)
{
    const struct filling *f = arg;
    for (int r = 0; r < f->rings; r++) {
        const struct gpushmem_ring *ring = ring_rig_ring(rig, r);
        for (int i = 0; i < f->per_ring; i++) {
            uint64_t index = heads[r]++, words[GPUSHMEM_COMMAND_WORDS];
            struct gpushmem_command c = f->command;
            if (c.opcode != GPUSHMEM_CMD_NOP)
                c.remote += 8 * (uint64_t)(i % 512);
            gpushmem_command_pack(&c, gpushmem_ring_lap(index, ENTRIES_LOG2), words);
            memcpy(ring->slots + (index % COMMANDS) * GPUSHMEM_COMMAND_WORDS, words, sizeof words);
        }
    }
    return NULL;
}

static void run_on(int cpu)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    pthread_setaffinity_np(pthread_self(), sizeof set, &set);
}

static void *fill_elsewhere(void *arg)
{
    run_on(1);
    return fill(arg);
}

static double measure_round(struct filling *f, bool cold)
{
    pthread_t filler;
    if (cold && pthread_create(&filler, NULL, fill_elsewhere, f) == 0)
        pthread_join(filler, NULL);
    else
        fill(f);
    uint64_t begin = perf_now_ns();
    while (ring_rig_step(rig) > 0)
        ;
    return (double)(perf_now_ns() - begin) / COMMANDS;
}

static void measure(const char *name, struct gpushmem_command command, int rings)
{
    struct perf_samples samples[2] = {0};
    double median[2];
    struct filling f = {command, rings, COMMANDS / rings};
    for (int i = 0; i < 2 * rounds; i++) {
        int column = trace_file ? i % 2 : i / rounds;
        if (trace_file)
            ring_rig_trace(rig, column);
        perf_samples_add(&samples[column], measure_round(&f, column && !trace_file));
    }
    for (int i = 0; i < 2; i++) {
        median[i] = perf_samples_percentile(&samples[i], 50);
        perf_samples_clear(&samples[i]);
    }
    printf("| %-19s | %5d | %6.2f | %6.2f |\n", name, rings, median[0], median[1]);
}

typedef struct ring_rig *open_rig(const struct gpsh_device_memory *memory, int rings, int proxies,
                                  unsigned entries_log2, bool started);

static void measure_all(open_rig *open, int rings)
{
    const struct gpsh_trace_owner owner = {.file = trace_file,
                                           .job = "proxy-cost",
                                           .n_pes = RING_RIG_PES,
                                           .n_channels = 2,
                                           .n_proxies = 1,
                                           .lane_records = 16384};
    if (trace_file && gpsh_trace_open(&owner)) {
        fprintf(stderr, "%s\n", gpushmem_last_error());
        exit(1);
    }
    rig = open(&gpsh_device_memory_host, rings, 1, ENTRIES_LOG2, false);
    if (!rig)
        exit(1);
    memset(heads, 0, sizeof heads);
    uint64_t heap = (uint64_t)(uintptr_t)ring_rig_heap(rig, 0);
    struct gpushmem_command c = {.opcode = GPUSHMEM_CMD_NOP, .pe = 1};
    measure("empty", c, rings);
    c = (struct gpushmem_command){
        .opcode = GPUSHMEM_CMD_PUT_INLINE, .pe = 1, .remote = heap, .bytes = 8, .operand = 7};
    measure("p, 8 bytes", c, rings);
    c.bytes = GPUSHMEM_INLINE_BYTES;
    measure("p, 40 bytes", c, rings);
    c.bytes = 8;
    c.opcode = GPUSHMEM_CMD_PUT;
    c.local = heap + 8192;
    measure("put, 8 bytes", c, rings);
    c.opcode = GPUSHMEM_CMD_PUT_SIGNAL;
    c.compare = heap + 65536;
    measure("put_signal", c, rings);
    c.opcode = GPUSHMEM_CMD_PUT_SIGNAL_INLINE;
    measure("put_signal, carried", c, rings);
    c = (struct gpushmem_command){.opcode = GPUSHMEM_CMD_AMO,
                                  .pe = 1,
                                  .remote = heap,
                                  .bytes = 8,
                                  .operand = 7,
                                  .extra = GPUSHMEM_AMO_ADD};
    measure("atomic add", c, rings);
    c.flags = GPUSHMEM_CMD_REPLY;
    c.reply = 1;
    measure("atomic fetch_add", c, rings);
    if (trace_file)
        ring_rig_trace(rig, true); // as it was opened
    ring_rig_close(rig);
    gpsh_trace_close();
}

static void print_heading(const char *what)
{
    printf(
        "\n%s, ns per command, medians of %d rounds of %d commands\n\n"
        "| command             | rings | %s |\n|---------------------|------:|-------:|-------:|\n",
        what, rounds, COMMANDS, trace_file ? "   off |     on" : "  warm |   cold");
}

int main(int argc, char **argv)
{
    rounds = argc > 1 ? atoi(argv[1]) : rounds;
    trace_file = argc > 2 ? argv[2] : NULL;
    setenv("GPUSHMEM_SOFTHCA_NULL", "1", 1);
    setenv("GPUSHMEM_SOFTHCA_QUIET", "1", 1);
    run_on(0);
    print_heading("mapped memory");
    measure_all(ring_rig_open, 1);
    measure_all(ring_rig_open, 8);
    print_heading("verbs over a NIC that moves nothing");
    measure_all(ring_rig_open_verbs, 1);
    measure_all(ring_rig_open_verbs, 8);
    return 0;
}
