// SPDX-License-Identifier: BSD-3-Clause
// What an idle proxy costs that nobody can wake (a GPU's): its share of a core, and how long the
// first command after a pause takes until it is complete.
//
//   perf_proxy_idle [nap in microseconds]...
#define _POSIX_C_SOURCE 200809L // clocks
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "ring_rig.h"
#include "samples.h"

enum { ENTRIES_LOG2 = 6, ENTRIES = 1 << ENTRIES_LOG2, PAUSE_US = 15000, ROUNDS = 150 };

static uint64_t cpu_ns(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

// Of all threads but this one.
static uint64_t others_cpu_ns(void)
{
    return cpu_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu_ns(CLOCK_THREAD_CPUTIME_ID);
}

static void pause_us(long us)
{
    nanosleep(&(struct timespec){.tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000}, NULL);
}

static void push(const struct gpushmem_ring *ring, uint64_t index, struct gpushmem_command c)
{
    uint64_t words[GPUSHMEM_COMMAND_WORDS];
    gpushmem_command_pack(&c, gpushmem_ring_lap(index, ENTRIES_LOG2), words);
    memcpy(ring->slots + index % ENTRIES * GPUSHMEM_COMMAND_WORDS, words, sizeof words);
}

static double first_command_us(const struct gpushmem_ring *ring, uint64_t index,
                               struct gpushmem_command c)
{
    pause_us(PAUSE_US + 13 * (long)index); // anywhere in a nap
    uint64_t begin = perf_now_ns();
    push(ring, index, c);
    while (__atomic_load_n(&ring->status->completed, __ATOMIC_ACQUIRE) <= index)
        ;
    return (double)(perf_now_ns() - begin) / 1e3;
}

static void measure(unsigned nap_us)
{
    struct gpsh_device_memory memory = gpsh_device_memory_host;
    memory.cpu_threads = false; // as if its producers were a GPU's
    struct ring_rig *rig = ring_rig_open(&memory, 4, 1, ENTRIES_LOG2, false);
    if (!rig)
        exit(1);
    ring_rig_nap(rig, nap_us * 1000u);
    if (ring_rig_start(rig))
        exit(1);
    struct gpushmem_command c = {.opcode = GPUSHMEM_CMD_PUT_INLINE,
                                 .pe = 1,
                                 .remote = (uint64_t)(uintptr_t)ring_rig_heap(rig, 0),
                                 .bytes = 8,
                                 .operand = 7};
    struct perf_samples samples = {0};
    pause_us(2 * PAUSE_US);
    uint64_t begin = perf_now_ns(), busy = others_cpu_ns();
    pause_us(1000000);
    double share = 100.0 * (double)(others_cpu_ns() - busy) / (double)(perf_now_ns() - begin);
    for (uint64_t i = 0; i < ROUNDS; i++)
        perf_samples_add(&samples, first_command_us(ring_rig_ring(rig, 0), i, c));
    printf("| %6u | %5.1f | %6.1f | %6.1f | %6.1f |\n", nap_us, share,
           perf_samples_percentile(&samples, 50), perf_samples_percentile(&samples, 90),
           perf_samples_percentile(&samples, 99));
    perf_samples_clear(&samples);
    ring_rig_close(rig);
}

int main(int argc, char **argv)
{
    printf("| nap, us | %% of a core | first command, p50 us | p90 | p99 |\n"
           "|--:|--:|--:|--:|--:|\n");
    for (int i = 1; i < argc; i++)
        measure((unsigned)atoi(argv[i]));
    if (argc < 2)
        measure(45);
    return 0;
}
