// SPDX-License-Identifier: BSD-3-Clause
#include "proxy/kernel_fault.h"

#include <stdatomic.h>
#include <stdio.h>

#include "core/config.h"
#include "core/error.h"
#include "core/log.h"
#include "gpu/gpu_call.h"
#include "gpushmem/gpushmem.h"
#include "job/job.h"
#include "proxy/kernel_report.h"

// "; meanwhile the CUDA driver has kept ...": why a kernel that timed out may not have been served.
// The driver's call has just returned, or is about to, as the kernel is over.
static const char *meanwhile(char *text, size_t bytes)
{
    uint64_t waited_ns = (uint64_t)gpsh_settings()->wait_timeout_ms * 1000000;
    char why[GPSH_GPU_CALL_TEXT];
    struct gpsh_gpu_call call;
    text[0] = '\0';
    if (waited_ns && gpsh_gpu_long_call(waited_ns / 2, waited_ns, &call)) {
        gpsh_gpu_call_describe(&call, why, sizeof why);
        snprintf(text, bytes, "; meanwhile %s", why);
    }
    return text;
}

int gpsh_kernel_fault_of_ring(const struct gpsh_ring_set *rings, int status)
{
    char why[GPSH_GPU_CALL_TEXT + 16];
    for (int i = 0; i < rings->n_rings; i++)
        if (__atomic_load_n(&rings->rings[i].status->lost, __ATOMIC_ACQUIRE))
            return gpsh_fail(status,
                             "command ring %d is lost: a kernel's thread waited longer than "
                             "GPUSHMEM_WAIT_TIMEOUT_MS=%lld "
                             "for room in it, and what was written to it since is not carried out; "
                             "raise that, and initialise again%s",
                             i, (long long)gpsh_settings()->wait_timeout_ms,
                             meanwhile(why, sizeof why));
    return gpsh_fail(
        status,
        "a command ring is closed because of an earlier error, and kernels cannot use it any "
        "more; finalize and initialise again");
}

bool gpsh_kernel_fault_is_loss(const struct gpsh_handle_host *host, int status)
{
    return status == GPUSHMEM_ERR_PE_FAILED ||
           (status && status == __atomic_load_n(&host->control.peer_failed, __ATOMIC_ACQUIRE));
}

// A call of a kernel that has no status to tell by, like p; waits have one, and the
// loss of a PE is told by itself.
static bool is_mute(int status, uint32_t word)
{
    return status == GPUSHMEM_ERR_PE || status == GPUSHMEM_ERR_ADDRESS ||
           status == GPUSHMEM_ERR_ALIGNMENT || status == GPUSHMEM_ERR_UNREACHABLE ||
           status == GPUSHMEM_ERR_TRANSPORT ||
           (status && (word == GPUSHMEM_FAULT_OPERATOR || word == GPUSHMEM_FAULT_CONTEXT ||
                       word == GPUSHMEM_FAULT_RANK || word == GPUSHMEM_FAULT_STRIDE ||
                       word == GPUSHMEM_FAULT_LOCAL));
}

int gpsh_kernel_fault_take(const struct gpsh_device_memory *memory, struct gpsh_handle_host *host,
                           struct gpsh_handle_device *device, const struct gpsh_ring_set *rings,
                           bool *mute)
{
    struct gpushmem_device_fault *fault = &host->faults[GPUSHMEM_FAULT_FIRST];
    int status = __atomic_load_n(&fault->status, __ATOMIC_ACQUIRE);
    if (!status)
        return 0;
    *mute = is_mute(status, fault->word);
    char what[GPSH_KERNEL_TEXT], why[GPSH_GPU_CALL_TEXT + 16];
    gpsh_kernel_describe(fault, what, sizeof what);
    int lost = atomic_load(&gpsh_job()->failed_pe);
    if (gpsh_kernel_fault_is_loss(host, status) && lost >= 0)
        gpsh_fail(status, "a kernel on PE %d ended a wait: %s: PE %d %s: %.250s", gpsh_job()->my_pe,
                  what, lost, status == GPUSHMEM_ERR_PE_FAILED ? "failed" : "was cut off",
                  gpsh_job()->peers[lost].reason);
    else if (status == GPUSHMEM_ERR_RING)
        gpsh_kernel_fault_of_ring(rings, status);
    else if (status == GPUSHMEM_ERR_TIMEOUT)
        gpsh_fail(status,
                  "a kernel on PE %d timed out after %lld ms (GPUSHMEM_WAIT_TIMEOUT_MS): %s%s",
                  gpsh_job()->my_pe, (long long)gpsh_settings()->wait_timeout_ms, what,
                  meanwhile(why, sizeof why));
    else
        gpsh_fail(status, "a kernel on PE %d failed: %s%s%s", gpsh_job()->my_pe, what,
                  gpsh_kernel_explained(fault) ? "" : ": ",
                  gpsh_kernel_explained(fault) ? "" : gpushmem_strerror(status));
    uint32_t unclaimed = 0;
    __atomic_store_n(&fault->status, 0, __ATOMIC_RELEASE);
    memory->device_write(&device->fault_claims[GPUSHMEM_FAULT_FIRST], &unclaimed, sizeof unclaimed);
    return status;
}

void gpsh_kernel_fault_say(void)
{
    enum { SAID = 16 };
    static atomic_int said;
    int before = atomic_fetch_add(&said, 1);
    if (before < SAID)
        GPSH_LOG(ERROR, "kernel", "%s%s", gpsh_last_error(),
                 before + 1 < SAID ? "" : "; further ones are told by gpushmem_last_error alone");
    if (before < SAID)
        gpsh_error_mark_said();
    else
        atomic_store(&said, SAID);
}
