// SPDX-License-Identifier: BSD-3-Clause
// The memory of staging: this PE's mailboxes, and its channels' queues of copies to and from their
// blocks.
#define _GNU_SOURCE // memfd_create
#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/memory_file.h"
#include "transports/verbs/stage/verbs_staging.h"

enum {
    LINE = 64,
    LEAST_SLOT = 4096,
    ATOMICS_SLOT = 2 * STAGE_HEADER, // with room for what was fetched
    ATOMICS_DEPTH = 32,
};

// Chunks shrink so that all mailboxes fit into stage_bytes, then mailboxes have fewer of them. One
// of the smallest kind each has, also where that takes more.
static void choose_slots(struct gpsh_verbs *verbs, uint32_t n_boxes)
{
    const struct gpsh_settings *settings = verbs->env.settings;
    bool heap = verbs->stage.mode == VERBS_STAGE_ALL;
    uint64_t room = settings->stage_bytes / n_boxes,
             depth = heap ? (uint64_t)settings->stage_depth : ATOMICS_DEPTH,
             least = heap ? LEAST_SLOT : ATOMICS_SLOT,
             most = heap ? settings->stage_chunk : ATOMICS_SLOT;
    room = room < least ? least : room;
    uint64_t slots = room / least < depth ? room / least : depth;
    uint64_t bytes = room / slots;
    bytes = most < bytes ? most : bytes;
    verbs->stage.slots = (uint32_t)slots;
    verbs->stage.slot_bytes = (uint32_t)(bytes / LINE * LINE);
}

// A file's pages, as a heap's are, with the descriptor at hand: a device made of software can map
// them.
static int map(struct verbs_stage *stage, size_t bytes)
{
    int fd = memfd_create("gpushmem-stage", MFD_CLOEXEC);
    int error = fd < 0 ? errno : gpsh_memory_file_grow(fd, bytes);
    void *base = error ? MAP_FAILED : mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (base != MAP_FAILED) {
        stage->area = (struct gpsh_region){base, bytes, GPSH_MEMORY_HOST, -1, -1};
        stage->area_fd = fd;
        return 0;
    }
    error = error ? error : errno;
    if (fd >= 0)
        close(fd);
    return gpsh_fail(GPUSHMEM_ERR_NO_MEMORY,
                     "no %zu bytes of memory for the mailboxes of an agent (%s): use "
                     "fewer channels (GPUSHMEM_CONTEXTS, GPUSHMEM_PROXY_THREADS)",
                     bytes, strerror(error));
}

static void pin(const struct gpsh_verbs *verbs, void *memory, size_t bytes)
{
    const struct gpsh_queue_ops *queues = verbs->stage.queues;
    if (queues->pin && queues->pin(memory, bytes)) {
        GPSH_LOG(WARN, "verbs", "staged copies will not overlap: %s", gpsh_last_error());
        gpsh_clear_error();
    }
}

static void unpin(const struct gpsh_verbs *verbs, void *memory)
{
    if (verbs->stage.queues && verbs->stage.queues->unpin)
        verbs->stage.queues->unpin(memory);
}

int gpsh_verbs_area_create(struct gpsh_verbs *verbs)
{
    struct verbs_stage *stage = &verbs->stage;
    uint32_t n_boxes = (uint32_t)(verbs->env.n_pes * verbs->env.channels);
    choose_slots(verbs, n_boxes);
    uint64_t bytes = gpsh_verbs_stage_layout(n_boxes, stage->slots, stage->slot_bytes).bytes;
    int status = map(stage, bytes);
    if (status)
        return status;
    pin(verbs, stage->area.base, bytes);
    return gpsh_verbs_region_register(verbs, GPSH_VERBS_STAGE, &stage->area);
}

// After the rails have given up their registrations.
void gpsh_verbs_area_destroy(struct gpsh_verbs *verbs)
{
    struct gpsh_region *area = &verbs->stage.area;
    if (!area->base)
        return;
    unpin(verbs, area->base);
    munmap(area->base, area->bytes);
    close(verbs->stage.area_fd);
    area->base = NULL;
}

int gpsh_verbs_copies_open(struct gpsh_verbs *verbs, struct verbs_channel *channel)
{
    if (channel->copies)
        return 0;
    int status = verbs->stage.queues->open(1, &channel->copies);
    if (!status)
        pin(verbs, channel->bounce.base, channel->bounce.bytes);
    return status;
}

void gpsh_verbs_copies_close(struct verbs_channel *channel)
{
    if (!channel->copies)
        return;
    channel->verbs->stage.queues->close(channel->copies);
    unpin(channel->verbs, channel->bounce.base);
    channel->copies = NULL;
}
