// SPDX-License-Identifier: BSD-3-Clause
#define _POSIX_C_SOURCE 200809L // sigaction
#include "proxy/emulation.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <unistd.h>

#include "core/error.h"
#include "core/log.h"
#include "core/thread.h"
#include "gpushmem/device_host.h"
#include "job/job.h"
#include "memory/blocks.h"
#include "observe/counters.h"
#include "observe/trace.h"
#include "proxy/proxy.h"

static gpsh_enqueue *_Atomic emulation; // of the program's kernels, once it has any

_Atomic bool gpsh_kernels_wake;

void gpushmem_stream_serve(int (*function)(gpushmem_stream_t stream,
                                           const struct gpushmem_stream_op *op))
{
    atomic_store_explicit(&emulation, function, memory_order_release);
    atomic_store_explicit(&gpsh_kernels_wake, true, memory_order_release);
}

gpsh_enqueue *gpsh_emulation(void)
{
    return atomic_load_explicit(&emulation, memory_order_acquire);
}

void gpsh_emulation_await_kernels(void)
{
    const struct gpushmem_stream_op end = {.kind = GPUSHMEM_STREAM_END};
    gpsh_enqueue *emulated = gpsh_emulation();
    if (emulated)
        (void)emulated(NULL, &end);
}

int gpushmem_launch_refused(int status, const char *sentence)
{
    return gpsh_fail(status, "a kernel was not launched: %s", sentence);
}

int gpushmem_launch_failed(int status, const struct gpushmem_launch_shape *shape,
                           const char *sentence)
{
    const unsigned *grid = shape->grid, *block = shape->block;
    return gpsh_fail(status,
                     "a kernel was not launched (grid %u x %u x %u, block %u x %u x %u, %zu bytes "
                     "of dynamic shared memory): %s",
                     grid[0], grid[1], grid[2], block[0], block[1], block[2], shape->shared_bytes,
                     sentence);
}

int gpushmem_call_failed(int status, const char *function, const char *sentence)
{
    return gpsh_fail(status, "%s: %s", function, sentence);
}

static _Atomic uint64_t missed; // 0: none; else of the first block or warp, of which none `came`
enum { MISSED_BITS = 21 };      // of each number: more threads than a block may have

void gpushmem_warp_missed(unsigned calling, unsigned threads)
{
    gpushmem_block_missed(calling, 0, threads);
}

void gpushmem_block_missed(unsigned calling, unsigned came, unsigned threads)
{
    uint64_t none = 0,
             here = (uint64_t)threads << 2 * MISSED_BITS | (uint64_t)came << MISSED_BITS | calling;
    atomic_compare_exchange_strong(&missed, &none, here);
}

void gpushmem_sync_missed(unsigned came, unsigned threads)
{
    static atomic_flag told = ATOMIC_FLAG_INIT;
    if (!atomic_flag_test_and_set(&told))
        GPSH_LOG(WARN, "kernel",
                 "%u of the %u threads of a block were in __syncthreads when the others had left "
                 "the kernel; CUDA wants all of them there, and on a GPU the kernel may hang or go "
                 "on with wrong data: move the __syncthreads out of the branch, and let no thread "
                 "return before it",
                 came, threads);
}

void gpushmem_outside_kernel(const char *function)
{
    enum { TOLD = 16 };
    static atomic_int told;
    gpsh_fail(GPUSHMEM_ERR_STATE,
              "%s was called by host code, which does nothing: it is for kernels. The host's "
              "functions have no _dev_ in their names (gpushmem.h)",
              function);
    if (atomic_fetch_add(&told, 1) < TOLD) {
        GPSH_LOG(ERROR, "kernel", "%s", gpsh_last_error());
        gpsh_error_mark_said();
    } else {
        atomic_store(&told, TOLD);
    }
}

int gpsh_emulation_take_missed(void)
{
    const uint64_t mask = (1 << MISSED_BITS) - 1, found = atomic_exchange(&missed, 0);
    if (!found)
        return 0;
    unsigned calling = found & mask, came = found >> MISSED_BITS & mask,
             threads = (unsigned)(found >> 2 * MISSED_BITS);
    if (!came)
        return gpsh_fail(GPUSHMEM_ERR_INVALID,
                         "a kernel on PE %d failed: %u of the %u threads of a warp made a call of "
                         "the warp (..._warp): only their part was moved; all threads of the warp "
                         "make such a call, or one makes that without _warp",
                         gpsh_job()->my_pe, calling, threads);
    return gpsh_fail(GPUSHMEM_ERR_INVALID,
                     "a kernel on PE %d failed: %u of the %u threads of a block made a call of the "
                     "block (..._block), %u were in __syncthreads, %u had left the kernel: only "
                     "their part was moved; all threads of the block make such a call, or one "
                     "makes that without _block",
                     gpsh_job()->my_pe, calling, threads, came - calling, threads - came);
}

void gpushmem_proxy_help(uint32_t *sleeping)
{
    gpsh_proxy_help(sleeping);
}

void gpushmem_proxy_wake(uint32_t *sleeping)
{
    gpsh_proxy_wake(sleeping);
}

void gpushmem_direct_counted(int pe, uint64_t bytes)
{
    if (gpsh_direct_counts.flows && pe >= 0 && pe < gpsh_job()->n_pes)
        gpsh_direct_add(GPSH_DIRECT_KERNELS, pe, bytes);
}

int gpushmem_block_holds(const void *address, uint64_t bytes)
{
    return gpsh_blocks_hold(address, bytes, NULL, 0);
}

uint64_t gpushmem_kernel_begins(void)
{
    return gpsh_trace_kernel_begin();
}

// "kernel<int, 4>" of "kernel<int, 4>, 1, 2, NULL, x".
static int name_length(const char *text)
{
    int depth = 0, n = 0;
    for (; text[n] && (text[n] != ',' || depth); n++)
        depth += (text[n] == '<' || text[n] == '(') - (text[n] == '>' || text[n] == ')');
    return n;
}

void gpushmem_kernel_ends(uint64_t began, const char *text, unsigned threads, int stream)
{
    const char *name = text ? text : "operation of a stream";
    const struct gpsh_trace_kernel kernel = {.name = name,
                                             .name_length = name_length(name),
                                             .began_ns = began,
                                             .threads = threads,
                                             .stream = stream};
    gpsh_trace_kernel(&kernel);
}

struct kernel_thread {
    void *(*run)(void *);
    void *arg;
    size_t stack_bytes;
};

static int start_detached(void *arg)
{
    const struct kernel_thread *wanted = arg;
    pthread_t thread;
    pthread_attr_t attributes;
    int error = pthread_attr_init(&attributes);
    if (error)
        return error;
    pthread_attr_setstacksize(&attributes, wanted->stack_bytes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    error = pthread_create(&thread, &attributes, wanted->run, wanted->arg);
    pthread_attr_destroy(&attributes);
    return error;
}

int gpushmem_kernel_thread_start(void *(*run)(void *), void *arg, size_t stack_bytes)
{
    return gpsh_without_signals(start_detached, &(struct kernel_thread){run, arg, stack_bytes});
}

static int (*_Atomic tell_fault)(char *text, size_t bytes, const void *address);

static void on_fault(int number, siginfo_t *info, void *context)
{
    char text[256];
    // SI_KERNEL: outside the address space, as a pointer of stale bytes is; si_addr says 0.
    bool unknown = info->si_code == SI_KERNEL;
    int length = tell_fault(text, sizeof text, unknown ? (void *)UINTPTR_MAX : info->si_addr);
    if (length > 0 && write(STDERR_FILENO, text, (size_t)length) < 0)
        length = 0; // there is nobody to tell
    sigaction(number, &(struct sigaction){.sa_handler = SIG_DFL}, NULL);
    (void)context;
}

void gpushmem_faults_watch(int (*tell)(char *text, size_t bytes, const void *address))
{
    static const int numbers[] = {SIGSEGV, SIGBUS};
    struct sigaction now;
    tell_fault = tell;
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        if (!sigaction(numbers[i], NULL, &now) && !(now.sa_flags & SA_SIGINFO) &&
            now.sa_handler == SIG_DFL)
            sigaction(numbers[i],
                      &(struct sigaction){.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO}, NULL);
}
