// SPDX-License-Identifier: BSD-3-Clause
#ifndef GPSH_DEVICE_MEMORY_H
#define GPSH_DEVICE_MEMORY_H

#include <stdbool.h>
#include <stddef.h>

// Memory that device threads and the host share. All of it comes zeroed.
struct gpsh_device_memory {
    // Host memory the device reads and writes at the same address (pinned, where the device is a
    // GPU). NULL: exhausted.
    void *(*host_alloc)(size_t bytes);
    void (*host_free)(void *memory, size_t bytes);
    // Memory near the device. NULL: exhausted.
    void *(*device_alloc)(size_t bytes);
    void (*device_free)(void *memory, size_t bytes);
    // Writes device memory; 0 or a negative status.
    int (*device_write)(void *to, const void *from, size_t bytes);
    // Reads device memory into host_alloc's; 0 or a negative status. Words of 8 bytes come whole,
    // however kernels change them meanwhile. NULL: the host loads device memory itself.
    int (*device_read)(void *to, const void *from, size_t bytes);
    // Lets the device use host memory, or registers of another device (`registers`), at the same
    // address; where it may already, too. It may have to wait for kernels. 0 or a negative status
    // with a sentence. NULL, as unmap: nothing is needed.
    int (*map)(void *memory, size_t bytes, bool registers, bool *mapped);
    // For each that said `mapped`, while the memory is there.
    void (*unmap)(void *memory);
    // "device" threads are threads of this process (emulation): they can wake a sleeping proxy
    bool cpu_threads;
};

// everything in host memory, for the emulation
extern const struct gpsh_device_memory gpsh_device_memory_host;
// Zeroed memory of the host that other devices reach by a file, as GPU memory by a dma-buf. 0, or a
// negative status with a sentence.
int gpsh_host_shared_alloc(size_t bytes, void **memory, int *file);
void gpsh_host_shared_free(void *memory, size_t bytes, int file);
// pinned host memory and GPU memory
extern const struct gpsh_device_memory gpsh_device_memory_gpu;

#endif
