// SPDX-License-Identifier: BSD-3-Clause
#include "observe/call.h"

#include "observe/trace.h"

// ---- Ranges for tools such as Nsight Systems ----

// A tool is injected by NVTX_INJECTION64_PATH, or not at all. A range is of the calling thread.
#ifdef GPSH_HAVE_NVTX

#include <nvtx3/nvToolsExt.h>

static nvtxDomainHandle_t domain; // of a process: a tool that is there stays

// Without a tool there is no domain.
static bool nvtx_open(void)
{
    if (!domain)
        domain = nvtxDomainCreateA("gpushmem");
    return domain;
}

static void nvtx_push(const char *name, uint64_t bytes)
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

static void nvtx_pop(void)
{
    nvtxDomainRangePop(domain);
}

#else

static bool nvtx_open(void)
{
    return false;
}

static void nvtx_push(const char *name, uint64_t bytes)
{
    (void)name;
    (void)bytes;
}

static void nvtx_pop(void)
{
}

#endif

// ---- Calls ----

unsigned gpsh_calls_watched;

void gpsh_calls_open(void)
{
    unsigned watched = gpsh_trace_is_open() ? GPSH_CALL_TRACE : 0;
    watched |= nvtx_open() ? GPSH_CALL_NVTX : 0;
    __atomic_store_n(&gpsh_calls_watched, watched, __ATOMIC_RELEASE);
}

void gpsh_calls_close(void)
{
    __atomic_store_n(&gpsh_calls_watched, 0, __ATOMIC_RELEASE);
}

void gpsh_call_enter(struct gpsh_call *call)
{
    call->watchers &= __atomic_load_n(&gpsh_calls_watched, __ATOMIC_ACQUIRE);
    if (call->watchers & GPSH_CALL_NVTX)
        nvtx_push(call->name, call->bytes);
    if (call->watchers & GPSH_CALL_TRACE)
        call->began_ns = gpsh_clock_ns();
}

static void record(const struct gpsh_call *call)
{
    struct gpsh_trace_lane *lane = gpsh_trace_host_lane();
    if (!lane)
        return;
    *gpsh_trace_next(lane) = (struct gpsh_trace_record){
        .at_ns = call->began_ns,
        .took_ns = gpsh_trace_span(call->began_ns, gpsh_clock_ns()),
        .bytes = call->bytes < UINT32_MAX ? (uint32_t)call->bytes : UINT32_MAX,
        .index = gpsh_trace_name(call->name),
        .pe = call->pe,
        .ring = GPSH_TRACE_NO_RING,
        .what = GPSH_TRACE_CALL << 4};
    gpsh_trace_commit(lane);
}

// The trace may have ended since: a call that was in it is left out then.
void gpsh_call_leave(const struct gpsh_call *call)
{
    if (call->watchers & GPSH_CALL_NVTX)
        nvtx_pop();
    if (call->watchers & GPSH_CALL_TRACE && !__atomic_load_n(&gpsh_trace_stopped, __ATOMIC_ACQUIRE))
        record(call);
}
