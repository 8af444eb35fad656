// SPDX-License-Identifier: BSD-3-Clause
// A heap in GPU memory for which nobody has set GPUSHMEM_HEAP_MAX: what the library asks of the
// driver for it, call by call, and that an allocation that does not fit asks for nothing.
#include "calls.h"

static int failures;

static void expect(const char *when, const char *function, unsigned long times)
{
    unsigned long seen = calls(function);
    if (seen == times)
        return;
    fprintf(stderr, "PE %d, %s: %lu calls of %s, not %lu\n", gpushmem_my_pe(), when, seen, function,
            times);
    failures++;
}

// Its own memory is made, mapped and exported; that of each peer is imported and mapped.
static void expect_all(const char *when)
{
    unsigned long n = (unsigned long)gpushmem_n_pes();
    expect(when, "cuMemGetAllocationGranularity", 1);
    expect(when, "cuMemCreate", 1);
    expect(when, "cuMemAddressReserve", n);
    expect(when, "cuMemMap", n);
    expect(when, "cuMemSetAccess", n);
    expect(when, "cuMemExportToShareableHandle", 1);
    expect(when, "cuMemImportFromShareableHandle", n - 1);
    expect(when, "cuMemRelease", n);
    expect(when, "cuMemGetHandleForAddressRange", 2); // by PCIe as well
    expect(when, "cuMemUnmap", 0);
    expect(when, "cuMemAddressFree", 0);
}

int main(void)
{
    if (gpushmem_init() || calls_find())
        return 1;
    expect_all("after init");
    unsigned long fills = calls("cuMemsetD8Async");
    if (gpushmem_malloc((size_t)1 << 30) ||
        !strstr(gpushmem_last_error(), "raise GPUSHMEM_HEAP_SIZE or GPUSHMEM_HEAP_MAX")) {
        fprintf(stderr, "PE %d: %s\n", gpushmem_my_pe(), gpushmem_last_error());
        failures++;
    }
    expect_all("after an allocation that does not fit");
    expect("after an allocation that does not fit", "cuMemsetD8Async", fills);
    return gpushmem_finalize() || failures;
}
