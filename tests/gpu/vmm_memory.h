// SPDX-License-Identifier: BSD-3-Clause
// Memory of cuMemCreate and of cudaMalloc as a program allocates it: through libcuda.so.1, a GPU's
// or the one of tests/fakes/cuda, which the library has loaded in gpushmem_init. For C and C++.
#ifndef TESTS_GPU_VMM_MEMORY_H
#define TESTS_GPU_VMM_MEMORY_H

#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef unsigned long long vmm_word; // a device address or a handle, as the driver has them

// As CUmemAllocationProp and CUmemAccessDesc.
struct vmm_properties {
    int type, handle_types, location_type, location;
    void *unused;
    unsigned char compression, rdma_capable, rest[6];
};
struct vmm_access {
    int location_type, location, flags;
};

static struct {
    int (*device)(int *device);
    int (*create)(vmm_word *handle, size_t bytes, const struct vmm_properties *p, vmm_word flags);
    int (*release)(vmm_word handle);
    int (*reserve)(vmm_word *at, size_t bytes, size_t alignment, vmm_word wish, vmm_word flags);
    int (*unreserve)(vmm_word at, size_t bytes);
    int (*map)(vmm_word at, size_t bytes, size_t offset, vmm_word handle, vmm_word flags);
    int (*unmap)(vmm_word at, size_t bytes);
    int (*access)(vmm_word at, size_t bytes, const struct vmm_access *access, size_t count);
    int (*alloc)(vmm_word *at, size_t bytes);
    int (*free)(vmm_word at);
    int (*copy)(vmm_word to, vmm_word from, size_t bytes);
    int (*synchronize)(void *stream);
} vmm;

static inline void vmm_must(int good, const char *what)
{
    if (good)
        return;
    fprintf(stderr, "%s failed\n", what);
    exit(1);
}

static inline void vmm_load(void)
{
    static const char *const names[] = {
        "cuCtxGetDevice",   "cuMemCreate",  "cuMemRelease", "cuMemAddressReserve",
        "cuMemAddressFree", "cuMemMap",     "cuMemUnmap",   "cuMemSetAccess",
        "cuMemAlloc_v2",    "cuMemFree_v2", "cuMemcpy",     "cuStreamSynchronize"};
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    vmm_must(library != NULL, "loading libcuda.so.1");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        void *symbol = dlsym(library, names[i]);
        vmm_must(symbol != NULL, names[i]);
        memcpy((char *)&vmm + i * sizeof symbol, &symbol, sizeof symbol);
    }
}

// `bytes` are a multiple of 2 MiB.
static inline char *vmm_new(size_t bytes, int exportable)
{
    struct vmm_properties p;
    struct vmm_access access = {1, 0, 3}; // a GPU, read and write
    vmm_word handle = 0, at = 0;
    memset(&p, 0, sizeof p);
    p.type = p.location_type = 1; // pinned, on a GPU
    p.handle_types = exportable;  // a file descriptor, or none
    p.rdma_capable = 1;
    vmm_must(!vmm.device(&p.location), "cuCtxGetDevice");
    access.location = p.location;
    vmm_must(!vmm.create(&handle, bytes, &p, 0), "cuMemCreate");
    vmm_must(!vmm.reserve(&at, bytes, 0, 0, 0), "cuMemAddressReserve");
    vmm_must(!vmm.map(at, bytes, 0, handle, 0), "cuMemMap");
    vmm_must(!vmm.access(at, bytes, &access, 1), "cuMemSetAccess");
    vmm_must(!vmm.release(handle), "cuMemRelease");
    return (char *)(size_t)at;
}

static inline void vmm_delete(char *memory, size_t bytes)
{
    vmm_must(!vmm.unmap((size_t)memory, bytes), "cuMemUnmap");
    vmm_must(!vmm.unreserve((size_t)memory, bytes), "cuMemAddressFree");
}

// Ends when the bytes are there: a small copy to a GPU by cuMemcpy alone may return before, and
// lets another process read what was there.
static inline void vmm_copy(void *to, const void *from, size_t bytes)
{
    vmm_must(!vmm.copy((size_t)to, (size_t)from, bytes), "cuMemcpy");
    vmm_must(!vmm.synchronize(NULL), "cuStreamSynchronize");
}

#endif
