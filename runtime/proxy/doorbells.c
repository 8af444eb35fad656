// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE // nanosleep
#include "proxy/doorbells.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include "core/clock.h"
#include "core/config.h"
#include "core/error.h"
#include "core/thread.h"
#include "gpushmem/gpushmem.h"

enum { WORDS = 32 }; // of a page, each on a line of its own

// Words that kernels store to. Pages and words are only added while the thread runs.
struct page {
    struct page *next;
    struct line {
        uint64_t word; // 0: nobody has rung; no ring is 0, since no queue pair has the number 0
        uint64_t pad[15];
    } * lines; // [WORDS] host memory that the device reaches
    uint64_t *registers[WORDS];
    _Atomic int n;
};

static struct {
    const struct gpsh_device_memory *memory;
    _Atomic(struct page *) pages;
    struct gpsh_thread thread;
    atomic_bool stop;
} bells;

// A register may be mapped so that the processor gathers stores to it: a fence sends them off.
static bool ring(struct page *page, int i)
{
    uint64_t *word = &page->lines[i].word;
    if (!__atomic_load_n(word, __ATOMIC_RELAXED))
        return false;
    // What is stored meanwhile is found the next time. Acquires: the kernel has written requests
    // and record before the word.
    uint64_t value = __atomic_exchange_n(word, 0, __ATOMIC_ACQUIRE);
    __atomic_store_n(page->registers[i], value, __ATOMIC_RELEASE);
    atomic_thread_fence(memory_order_seq_cst);
    return true;
}

static bool ring_all(void)
{
    bool any = false;
    for (struct page *page = atomic_load(&bells.pages); page; page = page->next)
        for (int i = 0, n = atomic_load(&page->n); i < n; i++)
            any |= ring(page, i);
    return any;
}

// As an idle proxy thread: nobody wakes this one.
static void *run(void *arg)
{
    const uint64_t spin_ns = (uint64_t)gpsh_settings()->proxy_spin_us * 1000;
    const struct timespec nap = {0, (long)gpsh_settings()->proxy_nap_us * 1000};
    uint64_t rung_ns = gpsh_clock_ns();
    (void)arg;
    while (!atomic_load(&bells.stop)) {
        if (ring_all())
            rung_ns = gpsh_clock_ns();
        else if (gpsh_clock_ns() - rung_ns > spin_ns)
            nanosleep(&nap, NULL);
        else
            sched_yield();
    }
    return NULL;
}

static int start(const struct gpsh_device_memory *memory)
{
    bells.memory = memory;
    atomic_store(&bells.stop, false);
    return gpsh_thread_start(&bells.thread, "gpshmem-bells", run, NULL);
}

static struct page *add_page(void)
{
    struct page *page = calloc(1, sizeof *page);
    if (page)
        page->lines = bells.memory->host_alloc(WORDS * sizeof *page->lines);
    if (!page || !page->lines) {
        free(page);
        gpsh_fail(GPUSHMEM_ERR_NO_MEMORY, "no memory for doorbells that the host rings");
        return NULL;
    }
    page->next = atomic_load(&bells.pages);
    atomic_store(&bells.pages, page);
    return page;
}

uint64_t *gpsh_doorbells_add(const struct gpsh_device_memory *memory, void *doorbell)
{
    if (!bells.thread.runs && start(memory))
        return NULL;
    struct page *page = atomic_load(&bells.pages);
    if (!page || atomic_load(&page->n) == WORDS)
        page = add_page();
    if (!page)
        return NULL;
    int i = atomic_load(&page->n);
    page->registers[i] = doorbell;
    atomic_store(&page->n, i + 1);
    return &page->lines[i].word;
}

void gpsh_doorbells_stop(void)
{
    atomic_store(&bells.stop, true);
    gpsh_thread_join(&bells.thread);
    for (struct page *page = atomic_load(&bells.pages), *next; page; page = next) {
        next = page->next;
        bells.memory->host_free(page->lines, WORDS * sizeof *page->lines);
        free(page);
    }
    atomic_store(&bells.pages, NULL);
}
