// SPDX-License-Identifier: BSD-3-Clause
#include "observe/nvtx.h"

#ifdef GPSH_HAVE_NVTX

#include <nvtx3/nvToolsExt.h>

static nvtxDomainHandle_t domain; // of a process: a tool that is there stays

// Without a tool there is no domain.
bool gpsh_nvtx_open(void)
{
    if (!domain)
        domain = nvtxDomainCreateA("gpushmem");
    return domain;
}

void gpsh_nvtx_push(const char *name, uint64_t bytes)
{
    const nvtxEventAttributes_t range = {
        .version = NVTX_VERSION,
        .size = NVTX_EVENT_ATTRIB_STRUCT_SIZE,
        .payloadType = bytes ? NVTX_PAYLOAD_TYPE_UNSIGNED_INT64 : NVTX_PAYLOAD_UNKNOWN,
        .payload.ullValue = bytes,
        .messageType = NVTX_MESSAGE_TYPE_ASCII,
        .message.ascii = name,
    };
    nvtxDomainRangePushEx(domain, &range);
}

void gpsh_nvtx_pop(void)
{
    nvtxDomainRangePop(domain);
}

#else

bool gpsh_nvtx_open(void)
{
    return false;
}

void gpsh_nvtx_push(const char *name, uint64_t bytes)
{
    (void)name;
    (void)bytes;
}

void gpsh_nvtx_pop(void)
{
}

#endif
