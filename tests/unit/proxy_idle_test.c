// SPDX-License-Identifier: BSD-3-Clause
// Where a proxy thread runs, and how it passes the time when it is idle: who is woken naps never,
// and who is not sleeps never.
#define _GNU_SOURCE // CPU sets
#include <linux/futex.h>
#include <sched.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "proxy_rig.h"

TestSuite(proxy_idle, .init = set_up, .fini = tear_down);

static atomic_int naps, sleeps, odd_naps, slack_ns;

int __real_nanosleep(const struct timespec *request, struct timespec *remain);
int __wrap_nanosleep(const struct timespec *request, struct timespec *remain);
int __wrap_nanosleep(const struct timespec *request, struct timespec *remain)
{
    odd_naps += request->tv_nsec != (long)proxy->env.nap_ns;
    slack_ns = prctl(PR_GET_TIMERSLACK); // of the thread that calls
    naps++;
    return __real_nanosleep(request, remain);
}

long __real_syscall(long number, ...);
long __wrap_syscall(long number, ...);
long __wrap_syscall(long number, ...)
{
    va_list list;
    va_start(list, number);
    void *word = va_arg(list, void *);
    int operation = va_arg(list, int), value = va_arg(list, int);
    void *time = va_arg(list, void *), *word2 = va_arg(list, void *);
    int value3 = va_arg(list, int);
    va_end(list);
    sleeps += number == SYS_futex && operation == FUTEX_WAIT_PRIVATE;
    return __real_syscall(number, word, operation, value, time, word2, value3);
}

static void idle_until(const atomic_int *count, int least)
{
    cr_assert_eq(gpsh_proxy_start(proxy), 0);
    while (atomic_load(count) < least)
        sched_yield();
    gpsh_proxy_stop(proxy);
}

Test(proxy_idle, gpu__it_naps_as_long_as_the_setting_says__without_the_kernels_slack)
{
    proxy->env.helpers = false;
    proxy->env.wakers = NULL;
    proxy->env.nap_ns = 12345;
    idle_until(&naps, 3);
    cr_expect_eq(odd_naps, 0);
    cr_expect_eq(sleeps, 0);
    cr_expect_eq(slack_ns, 1);
}

// GPU kernels on a machine whose GPUs reach all memory of the process.
Test(proxy_idle, host_heap__no_kernel_on_cpu_threads_is_known__it_naps)
{
    atomic_store(&kernels_wake, false);
    idle_until(&naps, 3);
    cr_expect_eq(sleeps, 0);
}

Test(proxy_idle, host_heap__kernels_on_cpu_threads__it_sleeps_until_woken)
{
    idle_until(&sleeps, 2);
    cr_expect_eq(naps, 0);
}

Test(proxy_idle, host_heap__the_first_kernel_comes_while_it_naps__it_sleeps_from_then_on)
{
    atomic_store(&kernels_wake, false);
    cr_assert_eq(gpsh_proxy_start(proxy), 0);
    while (atomic_load(&naps) < 2)
        sched_yield();
    atomic_store(&kernels_wake, true);
    while (atomic_load(&sleeps) < 1)
        sched_yield();
    gpsh_proxy_stop(proxy);
}

// The CPUs that a proxy thread may use when the file says `list`.
static cpu_set_t cpus_with(const char *list)
{
    int fd = memfd_create("cpus", 0);
    char path[32];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    cpu_set_t cpus;
    cr_assert(fd >= 0 && write(fd, list, strlen(list)) == (ssize_t)strlen(list));
    proxy->env.near_cpus_file = path;
    cr_assert_eq(gpsh_proxy_start(proxy), 0);
    while (atomic_load(&sleeps) < 1) // it has found its place
        sched_yield();
    cr_assert_eq(pthread_getaffinity_np(proxy->threads[0].thread.id, sizeof cpus, &cpus), 0);
    gpsh_proxy_stop(proxy);
    close(fd);
    return cpus;
}

static int first_cpu(const cpu_set_t *cpus)
{
    int cpu = 0;
    while (!CPU_ISSET(cpu, cpus))
        cpu++;
    return cpu;
}

Test(proxy_idle, place__cpus_near_the_gpu__those_of_them_that_are_allowed)
{
    cpu_set_t allowed, cpus;
    char list[64];
    sched_getaffinity(0, sizeof allowed, &allowed);
    int first = first_cpu(&allowed);
    snprintf(list, sizeof list, "1000-1007,%d\n", first);
    cpus = cpus_with(list);
    cr_expect_eq(CPU_COUNT(&cpus), 1);
    cr_expect(CPU_ISSET(first, &cpus));
}

Test(proxy_idle, place__no_cpu_near_the_gpu_is_allowed__stays)
{
    cpu_set_t allowed, cpus;
    sched_getaffinity(0, sizeof allowed, &allowed);
    cpus = cpus_with("1000-1007\n");
    cr_expect(CPU_EQUAL(&cpus, &allowed));
}

Test(proxy_idle, place__a_list_that_is_none__stays)
{
    cpu_set_t allowed, cpus;
    sched_getaffinity(0, sizeof allowed, &allowed);
    cpus = cpus_with("0-x\n");
    cr_expect(CPU_EQUAL(&cpus, &allowed));
}
