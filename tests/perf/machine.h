// SPDX-License-Identifier: BSD-3-Clause
// What a run was measured on: without this, figures of two runs cannot be compared.
#ifndef PERF_MACHINE_H
#define PERF_MACHINE_H

#include <stdbool.h>
#include <stdint.h>

enum { PERF_MACHINE_TEXT = 160 };

// A text that nobody can tell is "unknown"; "none" where there is no such device.
struct perf_machine {
    char cpu[PERF_MACHINE_TEXT];        // of the first processor
    char system[PERF_MACHINE_TEXT];     // kernel, release, architecture
    char gpus[PERF_MACHINE_TEXT];       // "2 x NVIDIA H200"
    char gpu_driver[PERF_MACHINE_TEXT]; // its release
    char nics[PERF_MACHINE_TEXT];       // verbs devices: "mlx5_0, mlx5_1"
    int cores;                          // that the system has online
    uint64_t memory_bytes;
    double load; // of the last minute
};

void perf_machine_read(struct perf_machine *machine);

#endif
