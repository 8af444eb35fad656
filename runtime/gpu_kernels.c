// SPDX-License-Identifier: BSD-3-Clause
#include "gpu_kernels.h"

#include <pthread.h>
#include <stdio.h>

#include "error.h"
#include "gpu.h"

// One kernel per operation and width: (word, result or 0, operand, compare). The driver compiles them when they are loaded.
#define AMO_HEAD(NAME)                                                                                      \
    ".visible .entry " NAME "(.param .u64 word, .param .u64 result, .param .u64 operand, .param .u64 compare)\n" \
    "{ .reg .pred %none; .reg .b64 %word, %result, %x, %c, %old; .reg .b32 %x32, %c32, %old32;\n"           \
    "  ld.param.u64 %word, [word]; ld.param.u64 %result, [result];\n"                                       \
    "  ld.param.u64 %x, [operand]; ld.param.u64 %c, [compare];\n"
#define AMO_TAIL                                                                                            \
    "  setp.eq.u64 %none, %result, 0; @%none ret; st.global.u64 [%result], %old; ret; }\n"
#define AMO_64(NAME, WHAT) AMO_HEAD(NAME "_64") "  atom.global.sys." WHAT "64 %old, [%word], %x;\n" AMO_TAIL
#define AMO_32(NAME, WHAT)                                                                                  \
    AMO_HEAD(NAME "_32") "  cvt.u32.u64 %x32, %x; atom.global.sys." WHAT "32 %old32, [%word], %x32; "       \
                         "cvt.u64.u32 %old, %old32;\n" AMO_TAIL
#define AMO(NAME, WHAT) AMO_64(NAME, WHAT) AMO_32(NAME, WHAT)

static const char ptx[] =
    ".version 6.4\n.target sm_70\n.address_size 64\n"
    AMO("add", "add.u") AMO("swap", "exch.b") AMO("and", "and.b") AMO("or", "or.b") AMO("xor", "xor.b")
    AMO_HEAD("cswap_64") "  atom.global.sys.cas.b64 %old, [%word], %c, %x;\n" AMO_TAIL
    AMO_HEAD("cswap_32") "  cvt.u32.u64 %x32, %x; cvt.u32.u64 %c32, %c;\n"
                         "  atom.global.sys.cas.b32 %old32, [%word], %c32, %x32; cvt.u64.u32 %old, %old32;\n" AMO_TAIL;

// A fetch is an add of 0; a store is a swap whose previous value nobody wants.
static const char *const names[] = {
    [GPSH_AMO_FETCH] = "add", [GPSH_AMO_SET] = "swap", [GPSH_AMO_ADD] = "add", [GPSH_AMO_SWAP] = "swap",
    [GPSH_AMO_CSWAP] = "cswap", [GPSH_AMO_AND] = "and", [GPSH_AMO_OR] = "or", [GPSH_AMO_XOR] = "xor",
};
enum { N_AMOS = sizeof names / sizeof *names };

static struct {
    pthread_mutex_t lock;
    gpsh_cu_module module;
    gpsh_cu_function amo[N_AMOS][2]; // [amo][width 8]
} kernels = {.lock = PTHREAD_MUTEX_INITIALIZER};

static int load(void)
{
    gpsh_cu_result code = gpsh_cu.module_load(&kernels.module, ptx);
    for (int i = 0; i < 2 * N_AMOS && !code; i++) {
        char name[16];
        snprintf(name, sizeof name, "%s_%d", names[i / 2], i % 2 ? 64 : 32);
        code = gpsh_cu.module_function(&kernels.amo[i / 2][i % 2], kernels.module, name);
    }
    if (!code)
        return 0;
    int status = gpsh_gpu_fail(code, "loading the library's kernels on %s", gpsh_gpu.name);
    if (kernels.module)
        gpsh_cu.module_unload(kernels.module);
    kernels.module = NULL;
    return status;
}

int gpsh_gpu_kernels_load(void)
{
    pthread_mutex_lock(&kernels.lock);
    bool entered = gpsh_gpu_enter();
    int status = kernels.module ? 0 : load();
    gpsh_gpu_leave(entered);
    pthread_mutex_unlock(&kernels.lock);
    return status;
}

void gpsh_gpu_kernels_unload(void)
{
    if (kernels.module)
        gpsh_cu.module_unload(kernels.module);
    kernels.module = NULL;
}

int gpsh_gpu_launch_amo(gpsh_cu_stream stream, void *word, const struct gpsh_op *op, uint64_t *result)
{
    int status = gpsh_gpu_kernels_load();
    if (status)
        return status;
    gpsh_cu_ptr at = (gpsh_cu_ptr)(uintptr_t)word, to = (gpsh_cu_ptr)(uintptr_t)result;
    uint64_t operand = op->amo == GPSH_AMO_FETCH ? 0 : op->operand, compare = op->compare;
    void *parameters[] = {&at, &to, &operand, &compare};
    gpsh_cu_result code = gpsh_cu.launch(kernels.amo[op->amo][op->width == 8], 1, 1, 1, 1, 1, 1, 0, stream, parameters, NULL);
    return code ? gpsh_gpu_fail(code, "launching an atomic on %p", word) : 0;
}
