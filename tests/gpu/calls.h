// SPDX-License-Identifier: BSD-3-Clause
// What the library has called in the fake driver, for programs that count it.
#ifndef TESTS_GPU_CALLS_H
#define TESTS_GPU_CALLS_H

#include <dlfcn.h>
#include <gpushmem/gpushmem.h>
#include <stdio.h>
#include <string.h>

static unsigned long (*calls)(const char *function);

// Finds the counters in the driver, which the library has loaded in gpushmem_init. 0, or 1 after a
// sentence.
static int calls_find(void)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    void *symbol = library ? dlsym(library, "fake_cuda_calls") : NULL;
    if (!symbol) {
        fprintf(stderr, "this program needs the driver of tests/fakes/cuda\n");
        return 1;
    }
    memcpy(&calls, &symbol, sizeof symbol);
    return 0;
}

// How often `function` was called since the last look.
static inline unsigned long calls_since(const char *function)
{
    static unsigned long before;
    unsigned long now = calls(function), since = now - before;
    before = now;
    return since;
}

#endif
