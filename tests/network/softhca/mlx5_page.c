// SPDX-License-Identifier: BSD-3-Clause
// The memory of mlx5 queues: rings in whole pages of their own; doorbell records and doorbell
// registers in pages that several queues share. A program that registers a page for each queue
// with a GPU's driver must cope with that: the second time the driver refuses.
#define _GNU_SOURCE // MAP_ANONYMOUS
#include <sys/mman.h>

#include "mlx5.h"

enum { PAGE = 4096 };

struct page {
    struct page *next;
    char *memory;
    uint64_t used; // a bit for each slot
    enum shca_mlx5_page_kind kind;
};

static const struct {
    uint32_t slots, bytes, first; // first: where slot 0 begins
} layouts[] = {
    [SHCA_MLX5_RECORDS] = {PAGE / 64, 64, 0},
    [SHCA_MLX5_REGISTERS] = {2, 2 * SHCA_MLX5_BLUEFLAME, 0x800},
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct page *pages;

void *shca_mlx5_ring_new(size_t bytes)
{
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return at == MAP_FAILED ? NULL : at;
}

void shca_mlx5_ring_free(void *ring, size_t bytes)
{
    if (ring)
        munmap(ring, bytes);
}

static struct page *page_new(enum shca_mlx5_page_kind kind)
{
    struct page *page = calloc(1, sizeof *page);
    if (!page)
        return NULL;
    page->memory = shca_mlx5_ring_new(PAGE);
    if (!page->memory) {
        free(page);
        return NULL;
    }
    page->kind = kind;
    page->next = pages;
    pages = page;
    return page;
}

static char *slot_of(struct page *page)
{
    uint32_t slots = layouts[page->kind].slots;
    for (uint32_t i = 0; i < slots; i++)
        if (!(page->used >> i & 1)) {
            page->used |= UINT64_C(1) << i;
            char *slot = page->memory + layouts[page->kind].first + i * layouts[page->kind].bytes;
            return memset(slot, 0, layouts[page->kind].bytes);
        }
    return NULL;
}

void *shca_mlx5_slot_take(enum shca_mlx5_page_kind kind)
{
    char *slot = NULL;
    pthread_mutex_lock(&lock);
    for (struct page *page = pages; page && !slot; page = page->next)
        slot = page->kind == kind ? slot_of(page) : NULL;
    if (!slot) {
        struct page *page = page_new(kind);
        slot = page ? slot_of(page) : NULL;
    }
    pthread_mutex_unlock(&lock);
    return slot;
}

void shca_mlx5_slot_give(enum shca_mlx5_page_kind kind, void *slot)
{
    if (!slot)
        return;
    pthread_mutex_lock(&lock);
    for (struct page **at = &pages; *at; at = &(*at)->next) {
        struct page *page = *at;
        if ((char *)slot < page->memory || (char *)slot >= page->memory + PAGE)
            continue;
        uint32_t offset = (uint32_t)((char *)slot - page->memory) - layouts[kind].first;
        page->used &= ~(UINT64_C(1) << offset / layouts[kind].bytes);
        if (!page->used) {
            *at = page->next;
            shca_mlx5_ring_free(page->memory, PAGE);
            free(page);
        }
        break;
    }
    pthread_mutex_unlock(&lock);
}
