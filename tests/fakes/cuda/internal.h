// SPDX-License-Identifier: BSD-3-Clause
// What the files of the fake CUDA driver share (fake_cuda.h says what it is).
//
// Locks: `fake.lock` guards every table and is held while an operation touches memory, so that
// nothing is unmapped under it; a stream's lock guards its queue. Neither is ever taken with the
// other held.
#ifndef FAKE_CUDA_INTERNAL_H
#define FAKE_CUDA_INTERNAL_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gpu/gpu_driver.h"

#define FAKE_EXPORT __attribute__((visibility("default")))

// The library's own declarations: a function that differs from them does not compile.
#define FAKE_PROTOTYPE(field, symbol, parameters) FAKE_EXPORT gpsh_cu_result symbol parameters;
GPSH_CU_FUNCTIONS(FAKE_PROTOTYPE)
GPSH_CU_OPTIONAL_FUNCTIONS(FAKE_PROTOTYPE)
// What only the software HCA and its tests use.
FAKE_EXPORT gpsh_cu_result cuDevicePrimaryCtxRelease_v2(gpsh_cu_device device);
FAKE_EXPORT gpsh_cu_result cuMemcpy(gpsh_cu_ptr to, gpsh_cu_ptr from, size_t bytes);
FAKE_EXPORT gpsh_cu_result cuMemsetD8_v2(gpsh_cu_ptr to, unsigned char value, size_t bytes);

enum {
    FAKE_NOT_INITIALISED = 3,
    FAKE_INVALID_DEVICE = 101,
    FAKE_INVALID_CONTEXT = 201,
    FAKE_PEER_UNSUPPORTED = 217,
    FAKE_INVALID_PTX = 218,
    FAKE_INVALID_HANDLE = 400,
    FAKE_NOT_FOUND = 500,
    FAKE_ILLEGAL_ADDRESS = 700,
    FAKE_ALREADY_REGISTERED = 712,
    FAKE_NOT_SUPPORTED = 801,
};

enum { FAKE_ATTRIBUTE_PCIE_DMABUF = 100000 }; // of the fake only
enum { FAKE_DEVICES = 16, FAKE_GRAIN = 2 << 20, FAKE_PAGE = 4096 };

struct gpsh_cu_context_opaque {
    int device;
    int retained;
    unsigned flags;
    gpsh_cu_result broken; // sticky
    struct CUstream_st *first_stream;
    unsigned long pending; // operations in all streams
};

struct fake_settings {
    int devices, version;
    size_t memory;
    bool peer, visible, leaks;
    unsigned delay_us;
};

extern struct fake {
    pthread_mutex_t lock;
    pthread_cond_t idle; // some context has nothing pending
    struct fake_settings settings;
    struct gpsh_cu_context_opaque contexts[FAKE_DEVICES];
} fake;

// ---- driver.c ----
enum fake_needs { NEEDS_INIT, NEEDS_CONTEXT };
// Counts the call, fails it if the environment says so, checks what it needs.
gpsh_cu_result fake_enter(const char *function, enum fake_needs needs);
#define ENTER(needs)                                                                               \
    do {                                                                                           \
        gpsh_cu_result refused = fake_enter(__func__, needs);                                      \
        if (refused)                                                                               \
            return refused;                                                                        \
    } while (0)
gpsh_cu_context fake_current(void);
int fake_attribute(int which);
_Noreturn void fake_misuse(const char *format, ...) __attribute__((format(printf, 1, 2)));

// ---- memory.c; the caller holds fake.lock ----
// Physical memory: an anonymous file. Alive while a handle or a mapping refers to it.
struct fake_block {
    int fd, device, references;
    size_t bytes;
    bool exportable;
    bool ours; // counts against this process's memory
};
// Memory that is mapped in a range of device addresses, all of it.
struct fake_mapping {
    struct fake_mapping *next; // of the range
    uintptr_t base;
    size_t bytes;
    struct fake_block *block;
    bool access;
};
// A range of device addresses, and what is mapped there: of a reservation one block or several.
struct fake_range {
    struct fake_range *next; // by address
    uintptr_t base;
    size_t bytes;
    enum { RANGE_RESERVED, RANGE_ALLOCATED, RANGE_IPC } kind;
    struct fake_mapping *mappings;
};
// fd < 0: new memory; NULL: there is none left
struct fake_block *fake_block_new(size_t bytes, int device, int fd);
void fake_block_release(struct fake_block *block);
struct fake_range *fake_range_new(size_t bytes);  // NULL: there are no addresses left
struct fake_range *fake_range_at(uintptr_t base); // that begins there
struct fake_range *fake_range_around(uintptr_t at);
void fake_range_delete(struct fake_range *range); // unmaps, too
bool fake_range_is_free(const struct fake_range *range, uintptr_t base, size_t bytes);
struct fake_mapping *fake_range_map(struct fake_range *range, uintptr_t base, size_t bytes,
                                    struct fake_block *block);
void fake_range_unmap(struct fake_range *range, struct fake_mapping *mapping);
struct fake_mapping *fake_mapping_around(uintptr_t at); // NULL: nothing is mapped there
enum fake_place { PLACE_PAGEABLE, PLACE_PINNED, PLACE_DEVICE, PLACE_BAD };
// What memory that is; *host: where the driver reaches it.
enum fake_place fake_place(uintptr_t at, size_t bytes, char **host);
void fake_memory_report(int *leaks);
void fake_leak(int *leaks, const char *format, ...) __attribute__((format(printf, 2, 3)));

// ---- vmm.c ----
void fake_vmm_report(int *leaks);

// ---- stream.c ----
struct fake_operation {
    struct fake_operation *next;
    // With fake.lock held. 0, or what breaks the context.
    gpsh_cu_result (*run)(struct fake_operation *self);
    uintptr_t to, from;
    size_t bytes;
    uint64_t value, compare;
    const struct fake_atomic *atomic;
    char staged[]; // what a copy from pageable memory read ahead
};
struct fake_operation *fake_operation_new(gpsh_cu_result (*run)(struct fake_operation *),
                                          size_t staged_bytes);
// Takes the operation. NULL is the context's default stream.
gpsh_cu_result fake_submit(gpsh_cu_stream stream, struct fake_operation *operation);
bool fake_stream_is_current(gpsh_cu_stream stream); // of the current context: kernels want that
void fake_wait_context(gpsh_cu_context context);    // without fake.lock
void fake_stream_report(int *leaks);

// ---- kernel.c ----
// The operation adds, and-s or or-s; its word's address, operand and stream are set. False: no such
// one.
bool fake_reduction(struct fake_operation *operation, const union gpsh_cu_memory_op *from);
void fake_kernel_report(int *leaks);

#endif
