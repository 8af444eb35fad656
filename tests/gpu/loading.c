// SPDX-License-Identifier: BSD-3-Clause
// When CUDA loads kernels: with their modules if gpushmem_init comes before cuInit, as the user has
// chosen if so, and all of a module at once where CUDA began first and loads late.
// usage: loading first | chosen | late
#define _GNU_SOURCE // setenv
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpushmem/device_host.h"
#include "gpushmem/gpushmem.h"

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "line %d: not true: %s\n", __LINE__, #condition);                      \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

enum { EAGER = 1, LAZY = 2 };

static struct {
    void *library;
    int (*init)(unsigned flags);
    int (*mode)(int *mode);
    int (*load)(void **module, const void *image);
    int (*unload)(void *module);
    int (*function)(void **function, void *module, const char *name);
    unsigned long (*calls)(const char *function);
} cu;

static void cuda_find(void)
{
    cu.library = dlopen("libcuda.so.1", RTLD_NOW);
    CHECK(cu.library);
    *(void **)&cu.init = dlsym(cu.library, "cuInit");
    *(void **)&cu.mode = dlsym(cu.library, "cuModuleGetLoadingMode");
    *(void **)&cu.load = dlsym(cu.library, "cuModuleLoadData");
    *(void **)&cu.unload = dlsym(cu.library, "cuModuleUnload");
    *(void **)&cu.function = dlsym(cu.library, "cuModuleGetFunction");
    *(void **)&cu.calls = dlsym(cu.library, "fake_cuda_calls");
}

static int mode(void)
{
    int found = 0;
    CHECK(cu.mode(&found) == 0);
    return found;
}

static bool environment_says(const char *wanted)
{
    const char *value = getenv("CUDA_MODULE_LOADING");
    return wanted ? value && !strcmp(value, wanted) : !value;
}

static const char image[] = ".version 7.8\n"
                            ".visible .entry one(\n atom.global.sys.add.u64 \n"
                            ".visible .entry two(\n atom.global.sys.add.u64 \n"
                            ".visible .entry three(\n atom.global.sys.add.u64 \n";

static unsigned long kernels_load(void)
{
    void *module, *two;
    unsigned long before = cu.calls("cuFuncLoad");
    CHECK(cu.load(&module, image) == 0 && cu.function(&two, module, "two") == 0);
    gpushmem_kernels_load(two);
    unsigned long loaded = cu.calls("cuFuncLoad") - before;
    CHECK(cu.unload(module) == 0);
    return loaded;
}

int main(int argc, char **argv)
{
    const char *order = argc > 1 ? argv[1] : "";
    bool late = !strcmp(order, "late"), chosen = !strcmp(order, "chosen");
    CHECK(setenv("BEFORE", "kept", 1) == 0);
    cuda_find();
    CHECK(!late || cu.init(0) == 0);
    CHECK(gpushmem_init() == 0);
    CHECK(environment_says(late ? NULL : chosen ? "LAZY" : "EAGER"));
    CHECK(mode() == (late || chosen ? LAZY : EAGER));
    CHECK(kernels_load() == (late || chosen ? 3 : 0));
    CHECK(setenv("AFTER", "kept", 1) == 0 && !strcmp(getenv("BEFORE"), "kept"));
    CHECK(gpushmem_finalize() == 0 && gpushmem_init() == 0);
    CHECK(environment_says(late ? NULL : chosen ? "LAZY" : "EAGER") && getenv("AFTER"));
    CHECK(gpushmem_finalize() == 0);
    return 0;
}
