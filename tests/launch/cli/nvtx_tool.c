// SPDX-License-Identifier: BSD-3-Clause
// A tool as NVTX_INJECTION64_PATH names it: counts the ranges of the library's domain, and says at
// exit how many there were, and which.
#include <nvtx3/nvToolsExt.h>
#include <stdio.h>
#include <string.h>

static int domain, pushed, popped, depth, barriers;
static char name[32];

static nvtxDomainHandle_t NVTX_API on_domain(const char *of)
{
    snprintf(name, sizeof name, "%s", of);
    return (nvtxDomainHandle_t)(void *)&domain;
}

static int NVTX_API on_push(nvtxDomainHandle_t where, const nvtxEventAttributes_t *range)
{
    pushed++;
    barriers += strcmp(range->message.ascii, "gpushmem_barrier_all") == 0;
    return where == (nvtxDomainHandle_t)(void *)&domain ? depth++ : -1;
}

static int NVTX_API on_pop(nvtxDomainHandle_t where)
{
    popped++;
    return where == (nvtxDomainHandle_t)(void *)&domain ? --depth : -1;
}

static __attribute__((destructor)) void report(void)
{
    if (pushed)
        fprintf(stderr, "nvtx: domain %s, %s ranges of which %s are barriers, depth %d\n", name,
                pushed == popped ? "closed" : "open", barriers ? "some" : "none", depth);
}

int NVTX_API InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get_table);
__attribute__((visibility("default"))) int NVTX_API
InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get_table)
{
    const NvtxExportTableCallbacks *callbacks = get_table(NVTX_ETID_CALLBACKS);
    NvtxFunctionTable table = NULL;
    unsigned n = 0;
    if (!callbacks || !callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE2, &table, &n) ||
        n <= NVTX_CBID_CORE2_DomainCreateA)
        return 0;
    *table[NVTX_CBID_CORE2_DomainCreateA] = (NvtxFunctionPointer)on_domain;
    *table[NVTX_CBID_CORE2_DomainRangePushEx] = (NvtxFunctionPointer)on_push;
    *table[NVTX_CBID_CORE2_DomainRangePop] = (NvtxFunctionPointer)on_pop;
    return 1;
}
