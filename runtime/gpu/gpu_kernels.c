// SPDX-License-Identifier: BSD-3-Clause
#include "gpu/gpu_kernels.h"

#include <pthread.h>

#include "core/error.h"
#include "gpu/gpu.h"

// One kernel per operation and width: (word, result or 0, operand, compare). The driver compiles
// them when they are loaded.
#define AMO_HEAD(NAME)                                                                             \
    ".visible .entry " NAME                                                                        \
    "(.param .u64 word, .param .u64 result, .param .u64 operand, .param .u64 compare)\n"           \
    "{ .reg .pred %none; .reg .b64 %word, %result, %x, %c, %old; .reg .b32 %x32, %c32, %old32;\n"  \
    "  ld.param.u64 %word, [word]; ld.param.u64 %result, [result];\n"                              \
    "  ld.param.u64 %x, [operand]; ld.param.u64 %c, [compare];\n"
#define AMO_TAIL                                                                                   \
    "  setp.eq.u64 %none, %result, 0; @%none ret; st.global.u64 [%result], %old; ret; }\n"
#define AMO_64(NAME, WHAT)                                                                         \
    AMO_HEAD(NAME) "  atom.global.sys." WHAT "64 %old, [%word], %x;\n" AMO_TAIL
#define AMO_32(NAME, WHAT)                                                                         \
    AMO_HEAD(NAME)                                                                                 \
    "  cvt.u32.u64 %x32, %x; atom.global.sys." WHAT "32 %old32, [%word], %x32; "                   \
    "cvt.u64.u32 %old, %old32;\n" AMO_TAIL
#define PREAMBLE ".version 6.4\n.target sm_70\n.address_size 64\n"

static const char ptx64[] = PREAMBLE AMO_64("add", "add.u") AMO_64("swap", "exch.b")
    AMO_64("and", "and.b") AMO_64("or", "or.b") AMO_64("xor", "xor.b")
        AMO_HEAD("cswap") "  atom.global.sys.cas.b64 %old, [%word], %c, %x;\n" AMO_TAIL;
static const char ptx32[] = PREAMBLE AMO_32("add", "add.u") AMO_32("swap", "exch.b")
    AMO_32("and", "and.b") AMO_32("or", "or.b") AMO_32("xor", "xor.b")
        AMO_HEAD("cswap") "  cvt.u32.u64 %x32, %x; cvt.u32.u64 %c32, %c;\n"
                          "  atom.global.sys.cas.b32 %old32, [%word], %c32, %x32; cvt.u64.u32 "
                          "%old, %old32;\n" AMO_TAIL;

// A fetch is an add of 0; a store is a swap whose previous value nobody wants.
static const char *const names[] = {
    [GPSH_AMO_FETCH] = "add", [GPSH_AMO_SET] = "swap",    [GPSH_AMO_ADD] = "add",
    [GPSH_AMO_SWAP] = "swap", [GPSH_AMO_CSWAP] = "cswap", [GPSH_AMO_AND] = "and",
    [GPSH_AMO_OR] = "or",     [GPSH_AMO_XOR] = "xor",
};
enum { N_AMOS = sizeof names / sizeof *names };

static struct {
    pthread_mutex_t lock;
    gpsh_cu_module modules[2]; // 32 and 64 bits
    gpsh_cu_function amo[2][N_AMOS];
} kernels = {.lock = PTHREAD_MUTEX_INITIALIZER};

static gpsh_cu_result load_module(int wide)
{
    gpsh_cu_result code = gpsh_cu.module_load(&kernels.modules[wide], wide ? ptx64 : ptx32);
    for (int i = 0; i < N_AMOS && !code; i++)
        code = gpsh_cu.module_function(&kernels.amo[wide][i], kernels.modules[wide], names[i]);
    return code;
}

// The driver loads a kernel at its first launch, and may wait for running kernels then: one of the
// program's that waits for the proxy would wait for ever. So each is launched once now, on a word
// of its own.
static gpsh_cu_result warm_up(void)
{
    gpsh_cu_ptr word = 0, none = 0;
    uint64_t zero = 0;
    void *parameters[] = {&word, &none, &zero, &zero};
    gpsh_cu_result code = gpsh_cu.memory_alloc(&word, 8);
    for (int i = 0; i < 2 * N_AMOS && !code; i++)
        code =
            gpsh_cu.launch(kernels.amo[i % 2][i / 2], 1, 1, 1, 1, 1, 1, 0, NULL, parameters, NULL);
    if (word)
        gpsh_cu.memory_free(word); // waits for them
    return code;
}

static void unload(void)
{
    for (int i = 0; i < 2; i++) {
        if (kernels.modules[i])
            gpsh_cu.module_unload(kernels.modules[i]);
        kernels.modules[i] = NULL;
    }
}

static int load(void)
{
    gpsh_gpu_on_close(unload);
    gpsh_cu_result code = load_module(0);
    if (!code)
        code = load_module(1);
    if (!code)
        code = warm_up();
    if (!code)
        return 0;
    int status = gpsh_gpu_fail(code, "loading the library's kernels on %s", gpsh_gpu.name);
    unload();
    return status;
}

int gpsh_gpu_kernels_load(void)
{
    pthread_mutex_lock(&kernels.lock);
    GPSH_IN_GPU;
    int status = kernels.modules[1] ? 0 : load();
    pthread_mutex_unlock(&kernels.lock);
    return status;
}

int gpsh_gpu_launch_amo(gpsh_cu_stream stream, void *word, const struct gpsh_op *op,
                        uint64_t *result)
{
    int status = gpsh_gpu_kernels_load();
    if (status)
        return status;
    gpsh_cu_ptr at = (gpsh_cu_ptr)(uintptr_t)word, to = (gpsh_cu_ptr)(uintptr_t)result;
    uint64_t operand = op->amo == GPSH_AMO_FETCH ? 0 : op->operand, compare = op->compare;
    void *parameters[] = {&at, &to, &operand, &compare};
    gpsh_cu_result code = gpsh_cu.launch(kernels.amo[op->width == 8][op->amo], 1, 1, 1, 1, 1, 1, 0,
                                         stream, parameters, NULL);
    return code ? gpsh_gpu_fail(code, "launching an atomic on %p", word) : 0;
}
