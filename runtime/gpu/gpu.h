// SPDX-License-Identifier: BSD-3-Clause
// The GPU of this PE: which one, its context, copies and memory that host and device share.
#ifndef GPSH_GPU_H
#define GPSH_GPU_H

#include "gpu/device_memory.h"
#include "gpu/gpu_driver.h"
#include "transport/transport.h"

struct gpsh_gpu {
    gpsh_cu_device device;
    int ordinal;
    gpsh_cu_context context;
    bool chosen_by_program; // a context was current when the library was initialised
    char name[96];
    char pci[16]; // "0000:3b:00.0"
    struct gpsh_cu_uuid uuid;
    int vmm, posix_fd, rdma_vmm, rdma, dmabuf, writes_ordering, flush_options, pageable, reduction;
    const char *heap; // of this PE, on this GPU
    uint64_t heap_bytes;
};
extern struct gpsh_gpu gpsh_gpu;

// Takes the GPU of the calling thread's current context or, if there is none, GPU number node_pe
// modulo their count, whose primary context (the one of the runtime API and PyTorch) then becomes
// this thread's current one, so that the program's kernels run where its heap is.
// GPUSHMEM_ERR_UNSUPPORTED with a sentence where no GPU can be used.
int gpsh_gpu_open(int node_pe);
// The program names the GPU, for the next gpsh_gpu_open; -1: it does not.
void gpsh_gpu_prefer(int ordinal);
// True where gpsh_gpu_open would choose a GPU: there is one, and none is current in this thread.
bool gpsh_gpu_would_choose(void);
// Bytes of the opened GPU that are free now, divided among those of the node's PEs that may share
// it. UINT64_MAX: the driver does not say.
uint64_t gpsh_gpu_room(int node_pes);
void gpsh_gpu_close(void); // legal if it was never opened
// Modules that were loaded into the context: each `unload` is called by every gpsh_gpu_close, with
// the context current. It may find nothing to unload. Registering a function again changes nothing.
void gpsh_gpu_on_close(void (*unload)(void));

// From here to the end of the block the GPU's context is current for the calling thread. Such
// blocks may nest. While the program captures a stream into a graph, the driver may refuse to
// allocate, to wait and to ask, in all threads of the process: here it does not, as nothing that
// the library asks for has to do with the captured stream.
#define GPSH_IN_GPU                                                                                \
    __attribute__((cleanup(gpsh_gpu_leave), unused)) struct gpsh_gpu_entry gpsh_gpu_entry =        \
        gpsh_gpu_enter()
struct gpsh_gpu_entry {
    bool pushed;      // another context was current
    int capture_mode; // of the thread, before
};
struct gpsh_gpu_entry gpsh_gpu_enter(void); // these two for the macro alone
void gpsh_gpu_leave(struct gpsh_gpu_entry *entry);

// Copies where either side may be GPU memory, fills; complete on return. Any thread.
int gpsh_gpu_copy(void *to, const void *from, size_t bytes);
int gpsh_gpu_fill(void *memory, int byte, size_t bytes);
// Some GPUs do not order what NICs write to them: a signal may become visible before data that was
// sent earlier. True if this GPU needs flush() for that reason; if it has no flush, a warning is
// logged.
bool gpsh_gpu_needs_flush(void);
// Whether gpsh_gpu_flush can make visible what NICs wrote.
bool gpsh_gpu_can_flush(void);
// What NICs wrote before this call is visible to all that the GPU and its copy engines do after it.
void gpsh_gpu_flush(void);
bool gpsh_gpu_is_device_memory(const void *memory);

// The allocation of GPU memory or pinned host memory that holds the address. False: CUDA knows
// nothing there.
bool gpsh_gpu_allocation(const void *address, char **base, size_t *bytes);

// In-order queues of operations on GPU memory, for the transports.
extern const struct gpsh_queue_ops gpsh_gpu_queue_ops;

#endif
