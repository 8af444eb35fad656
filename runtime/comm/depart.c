// SPDX-License-Identifier: BSD-3-Clause
#include "comm/depart.h"

#include <stdio.h>

#include "comm/context.h"
#include "core/clock.h"
#include "job/job.h"
#include "memory/control.h"
#include "memory/heap.h"
#include "progress/waiter.h"

// A PE that took this one for lost has left without telling it. So this PE repeats its message,
// when the last one was acknowledged: if the other PE is gone, its NIC does not answer, and that
// shows it.
enum { REMIND_NS = 500000000 };

static void tell(int pe)
{
    const uint64_t word = 1;
    char *mapped = gpsh_heap()->mapped[GPSH_CONTROL][pe];
    if (mapped) {
        struct gpsh_control *control = (struct gpsh_control *)(void *)mapped;
        atomic_store_explicit(&control->departed[gpsh_job()->my_pe], word, memory_order_release);
        return;
    }
    const struct gpsh_op op = {
        .kind = GPSH_OP_PUT,
        .flags = GPSH_OP_CAPTURE | GPSH_OP_LAST,
        .region = GPSH_CONTROL,
        .pe = pe,
        .local = (char *)(uintptr_t)&word,
        .remote = (uint64_t)((char *)&gpsh_heap()->control->departed[gpsh_job()->my_pe] -
                             (char *)gpsh_heap()->control),
        .bytes = sizeof word,
    };
    // A PE that cannot be told is lost; the transport has reported that already.
    if (gpsh_context_submit(&gpsh_default_context, &op, GPSH_WAIT_SOURCE))
        gpsh_clear_error();
}

void gpsh_depart_tell_node(void)
{
    if (gpsh_bootstrap_leave(gpsh_job()->boot))
        return;
    for (int pe = 0; pe < gpsh_job()->n_pes; pe++)
        if (gpsh_heap()->mapped[GPSH_CONTROL][pe])
            tell(pe);
}

bool gpsh_depart_has_told(int pe)
{
    return atomic_load_explicit(&gpsh_heap()->control->departed[pe], memory_order_acquire);
}

// Whether everything sent there was.
static bool is_acknowledged(int pe)
{
    const struct gpsh_channel *channel = gpsh_default_context.channels[gpsh_job()->peers[pe].data];
    return channel->flows[pe].completed == channel->flows[pe].posted;
}

static void remind(int pe)
{
    if (gpsh_heap()->mapped[GPSH_CONTROL][pe] || !is_acknowledged(pe))
        return;
    gpsh_job()->peers[pe].reminded = true;
    tell(pe);
}

static bool is_awaited(int pe)
{
    return pe != gpsh_job()->my_pe && !atomic_load(&gpsh_job()->peers[pe].error) &&
           !gpsh_depart_has_told(pe);
}

static void awaited(const void *subject, char *text, size_t bytes)
{
    snprintf(text, bytes, " for PE %d", *(const int *)subject);
}

static int await_departure(int pe, struct gpsh_waiter *waiter)
{
    uint64_t told_ns = gpsh_clock_ns();
    waiter->subject = &pe;
    waiter->awaited = GPSH_AWAITED_PE;
    waiter->awaited_pe = pe;
    while (is_awaited(pe)) {
        int status = gpsh_waiter_step(waiter);
        if (status < 0)
            return status;
        if (gpsh_clock_ns() - told_ns < REMIND_NS)
            continue;
        remind(pe);
        told_ns = gpsh_clock_ns();
    }
    return 0;
}

// A PE that has this one's word may leave at any time. A reminder that comes later finds nobody,
// and may have no end: a NIC can be told to try for ever.
int gpsh_depart_see_off(void)
{
    int result = 0;
    for (int pe = 0; pe < gpsh_job()->n_pes && result != GPUSHMEM_ERR_TIMEOUT; pe++) {
        int status =
            gpsh_job()->peers[pe].reminded ? 0 : gpsh_context_quiet(&gpsh_default_context, pe);
        result = status ? status : result;
    }
    return result;
}

int gpsh_depart(const char *what)
{
    int n = gpsh_job()->n_pes, me = gpsh_job()->my_pe, lost = -1;
    GPSH_WAIT(waiter, what);
    waiter.flows_tell = true;
    waiter.about = awaited;
    for (int i = 1; i < n; i++)
        tell((me + i) % n);
    for (int i = 1; i < n; i++) {
        int pe = (me + i) % n;
        int status = await_departure(pe, &waiter);
        if (status < 0)
            return status;
        if (!gpsh_depart_has_told(pe))
            lost = pe;
    }
    if (lost < 0)
        return 0;
    return gpsh_fail(GPUSHMEM_ERR_PE_FAILED, "%s: PE %d was lost before it came: %s", what, lost,
                     gpsh_job()->peers[lost].reason);
}
