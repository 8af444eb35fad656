// SPDX-License-Identifier: BSD-3-Clause
// Which tests can do what the options ask. What cannot be measured is said, and gives no figure.
#include <stddef.h>

#include "bench.h"
#include "memory.h"
#include "tests.h"

static const char *unfit_together(const struct perf_options *o, unsigned fits, unsigned issuer)
{
    if (o->bidirectional && !(fits & PERF_FITS_BOTH_WAYS))
        return "it has no windows of operations that could go both ways at once";
    if (o->pairs > 1 && !(fits & PERF_FITS_PAIRS))
        return "it does not work in pairs of PEs";
    if (o->pairs > 1 && issuer == PERF_STREAM)
        return "on streams only one pair is measured";
    return NULL;
}

static const char *unfit_memory(const char *memory, unsigned fits, unsigned issuer)
{
    if (perf_memory_is_heap(memory))
        return NULL;
    if (!(fits & PERF_FITS_MEMORY))
        return "its buffers are always in the heap, which is in GPU memory";
    return issuer == PERF_HOST ? NULL
                               : "kernels and streams reach the heap only, which is in GPU memory";
}

const char *perf_unfit(const struct perf_bench *b, const struct perf_test *test, unsigned issuer)
{
    const char *why = unfit_together(b->options, test->fits, issuer);
    return why ? why : unfit_memory(b->memory, test->fits, issuer);
}
