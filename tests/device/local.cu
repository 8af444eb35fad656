// SPDX-License-Identifier: BSD-3-Clause
// Kernels that name memory nobody has as the local side of an operation: that operation fails, with
// its place, and nothing else does. For heaps in GPU memory and GPUSHMEM_P2P=0: a kernel that
// copies by itself faults as any kernel would.
#include <string.h>
#include <unistd.h>

#include "kernel_check.cuh"

enum { BYTES = 5000 };

__global__ void put_from(char *to, const char *from, int pe)
{
    if (threadIdx.x == 0) {
        gpushmem_dev_putmem_nbi(to, from, BYTES, pe);
        gpushmem_dev_quiet();
    }
}

__global__ void get_to(char *to, const char *from, int pe)
{
    if (threadIdx.x == 0) {
        gpushmem_dev_getmem_nbi(to, from, BYTES, pe);
        gpushmem_dev_quiet();
    }
}

static char *inbox;
static int right;

static void good(const char *from)
{
    CHECK_OK(GPUSHMEM_LAUNCH(put_from, 1, 32, NULL, inbox, from, right));
    CHECK_OK(gpushmem_launch_wait(NULL));
}

static void bad_status(int status, const char *address)
{
    char place[32];
    snprintf(place, sizeof place, "[%p, +%d)", (const void *)address, BYTES);
    CHECK(status == GPUSHMEM_ERR_ADDRESS);
    CHECK(strstr(gpushmem_last_error(), place));
    CHECK(strstr(gpushmem_last_error(),
                 "is no memory that can be used; it may be in the symmetric heap, GPU memory"));
    if (check_failures)
        fprintf(stderr, "%s\n", gpushmem_last_error());
}

static void bad(char *address)
{
    CHECK_OK(GPUSHMEM_LAUNCH(put_from, 1, 32, NULL, inbox, address, right));
    bad_status(gpushmem_launch_wait(NULL), address);
    CHECK_OK(GPUSHMEM_LAUNCH(get_to, 1, 32, NULL, address, inbox, right));
    bad_status(gpushmem_launch_wait(NULL), address);
}

int main(void)
{
    int me = check_begin();
    struct gpushmem_heap_info info;
    gpushmem_dev dev;
    right = (me + 1) % gpushmem_n_pes();
    CHECK_OK(gpushmem_heap_info(&info));
    CHECK_OK(gpushmem_device_handle(&dev));
    if (strcmp(info.kind, "device") || (dev.flags & GPUSHMEM_DEV_ALL_DIRECT)) {
        printf("[SKIP] wants a heap in GPU memory and GPUSHMEM_P2P=0\n");
        return check_end("local");
    }
    inbox = (char *)gpushmem_malloc(BYTES);
    char *outbox = (char *)gpushmem_malloc(BYTES), *own = (char *)malloc(BYTES);
    good(outbox);
    bad((char *)0x10000);
    bad(dev.heap + dev.heap_bytes - 100); // leaves the heap
    bad(dev.heap + (1ull << 37));
    good(outbox);
    memset(own, 7, BYTES);
    CHECK_OK(gpushmem_buffer_register(own, BYTES));
    good(own);
    CHECK_OK(gpushmem_barrier_all());
    CHECK(check_read(inbox + BYTES - 1) == 7);
    CHECK_OK(gpushmem_barrier_all());
    CHECK_OK(gpushmem_buffer_unregister(own));
#if !defined(__CUDACC__) // there are GPUs that reach pageable memory
    usleep(2000);        // what was good stays so for a millisecond
    bad(own);
#endif
    good(outbox);
    CHECK_OK(gpushmem_barrier_all());
    free(own);
    gpushmem_free(outbox);
    gpushmem_free(inbox);
    return check_end("local");
}
