// SPDX-License-Identifier: BSD-3-Clause
#define _POSIX_C_SOURCE 200809L // what core/memory_file.h needs
#include "memory/regions.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/config.h"
#include "core/memory_file.h"
#include "gpu/gpu.h"
#include "gpu/gpu_heap.h"
#include "job/job.h"
#include "memory/control.h"
#include "memory/gpu_region.h"
#include "memory/heap.h"
#include "memory/memory_limit.h"
#include "memory/place.h"
#include "memory/statics.h"
#include "memory/symmetric.h"
#include "memory/team_scratch.h"

static struct gpsh_symmetric regions[GPSH_REGIONS] = {{.fd = -1}, {.fd = -1}, {.fd = -1}};
static bool static_used;                   // by operations
static const struct gpsh_statics *statics; // holds the memory of regions[GPSH_STATIC]

// auto takes the GPU where there is one that works; a GPU that is there but too full is an error,
// not a reason to go elsewhere.
static int choose_kind(void)
{
    gpsh_heap_state.device = false;
    if (gpsh_settings()->heap_kind == GPSH_HEAP_HOST)
        return 0;
    int status = gpsh_gpu_open(gpsh_job()->boot->node_my_pe);
    gpsh_heap_state.device = !status;
    if (!status)
        return 0;
    if (gpsh_settings()->heap_kind == GPSH_HEAP_DEVICE) {
        char why[256];
        snprintf(why, sizeof why, "%s", gpsh_last_error());
        return gpsh_fail(
            GPUSHMEM_ERR_UNSUPPORTED,
            "GPUSHMEM_HEAP_KIND=device, but no GPU can be used here: %s; set it to auto "
            "or host",
            why);
    }
    GPSH_LOG(INFO, "heap", "no GPU is used: %s", gpsh_last_error());
    gpsh_clear_error();
    return 0;
}

// Of a heap to which nobody gave a size.
static struct {
    uint64_t standard;
    bool agreed; // the size that comes is that of all PEs
    bool told;
} fit;

uint64_t gpsh_regions_heap_fits(void)
{
    return gpsh_setting_is_given("GPUSHMEM_HEAP_SIZE") ? 0 : gpsh_settings()->heap_size;
}

bool gpsh_regions_heap_settle(uint64_t least, uint64_t most, int whose)
{
    bool given = gpsh_setting_is_given("GPUSHMEM_HEAP_SIZE");
    fit.agreed = most > least;
    if (fit.agreed && !given)
        gpsh_settings_fit_heap(least);
    if (gpsh_job()->my_pe == 0 && !given && !fit.told && least < fit.standard) {
        fit.told = true;
        GPSH_LOG(WARN, "heap",
                 "each PE's heap has %lluM instead of the %lluM that are the default: PE %d has no "
                 "room for more; set GPUSHMEM_HEAP_SIZE to choose the size",
                 (unsigned long long)least >> 20, (unsigned long long)fit.standard >> 20, whose);
    }
    return fit.agreed;
}

// A further page of 1G for the library's part would be too much to ask: there it is within the
// size.
static uint64_t heap_bytes(void)
{
    const struct gpsh_settings *s = gpsh_settings();
    bool giant = !gpsh_heap()->device && s->huge_pages == GPSH_PAGES_1G;
    return s->heap_size + (giant ? 0 : gpsh_heap_reserved(s));
}

static uint64_t job_pages; // gpsh_regions_settle_pages

// The least room that a peer's heap could be mapped with.
static uint64_t mapped_room;

// With the library's own part, which GPUSHMEM_HEAP_MAX does not count. 0: nobody has set it.
static uint64_t chosen_max(uint64_t bytes)
{
    const struct gpsh_settings *s = gpsh_settings();
    return s->heap_max ? s->heap_max + (bytes - s->heap_size) : 0;
}

uint64_t gpsh_regions_heap_max(void)
{
    uint64_t bytes = gpsh_heap_bytes(); // a thread that makes the heap grow changes the region's
    uint64_t max = chosen_max(gpsh_heap()->device ? heap_bytes() : gpsh_heap()->first_bytes);
    uint64_t room = mapped_room < regions[GPSH_HEAP].room ? mapped_room : regions[GPSH_HEAP].room;
    if (room < bytes)
        return bytes;
    return max && max < room ? (max > bytes ? max : bytes) : room;
}

int gpsh_regions_heap_resize(uint64_t bytes)
{
    if (gpsh_heap()->device)
        return gpsh_gpu_region_resize(&regions[GPSH_HEAP], bytes);
    return gpsh_symmetric_resize(&regions[GPSH_HEAP], bytes, gpsh_job()->boot->node_n_pes);
}

int gpsh_regions_heap_adopt(const void *buffer, uint64_t bytes)
{
    uint64_t max = gpsh_regions_heap_max(), now = regions[GPSH_HEAP].bytes;
    if (bytes > max || now > max - bytes)
        return gpsh_fail(GPUSHMEM_ERR_NO_MEMORY,
                         "the heap has %" PRIu64 " bytes, and may have %" PRIu64
                         " in all; raise GPUSHMEM_HEAP_MAX",
                         now, max);
    return gpsh_gpu_region_adopt(&regions[GPSH_HEAP], buffer, bytes);
}

// Address space for a heap of `bytes`: it costs nothing but numbers. A heap whose size somebody has
// chosen grows only if its limit was chosen, too; one in GPU memory in no other case.
static uint64_t heap_room(uint64_t bytes)
{
    uint64_t share = gpsh_memory_limit() / (uint64_t)gpsh_job()->boot->node_n_pes;
    if (gpsh_settings()->heap_max)
        return chosen_max(bytes) > bytes ? chosen_max(bytes) : bytes;
    if (gpsh_heap()->device)
        return bytes;
    return gpsh_setting_is_given("GPUSHMEM_HEAP_SIZE") || share / 2 < bytes ? bytes : share / 2;
}

// The library's words in the control region.
static uint64_t control_words(void)
{
    return gpsh_control_total(gpsh_job()->boot->n_pes, gpsh_settings());
}

// Beside a heap in GPU memory, the control region goes on with host memory for the program, a page
// after the library's words. Where it begins.
static uint64_t host_part_offset(void)
{
    return gpsh_whole_pages(control_words()) + 4096;
}

static uint64_t host_part_bytes(void)
{
    return gpsh_heap()->device ? ((uint64_t)gpsh_settings()->host_heap_size + 4095) / 4096 * 4096
                               : 0;
}

static uint64_t control_bytes(void)
{
    return gpsh_whole_pages(host_part_bytes() ? host_part_offset() + host_part_bytes()
                                              : control_words());
}

// What is counted for the library's part of the heap. Teams take memory when they are made, and few
// jobs make so many that it is all used: where nobody asked for it, it may exceed half of what a PE
// has for itself, as long as nothing pins it, as NICs and large pages do.
static uint64_t counted_reserve(uint64_t share)
{
    const struct gpsh_settings *s = gpsh_settings();
    uint64_t all = heap_bytes() - s->heap_size;
    bool pinned = gpsh_heap()->device || s->huge_pages == GPSH_PAGES_2M ||
                  s->huge_pages == GPSH_PAGES_1G ||
                  gpsh_job()->boot->node_n_pes != gpsh_job()->n_pes;
    bool whole = pinned || gpsh_setting_is_given("GPUSHMEM_TEAM_MEMORY") || all < share / 2;
    return whole ? all : share / 2;
}

static uint64_t share_of_memory(void)
{
    return gpsh_memory_limit() / (uint64_t)gpsh_job()->boot->node_n_pes;
}

static void fit_heap_size(void)
{
    int node_pes = gpsh_job()->boot->node_n_pes;
    bool agreed = fit.agreed;
    fit.agreed = false;
    if (agreed)
        return;
    fit.told = false;
    fit.standard = gpsh_settings()->heap_size;
    if (gpsh_setting_is_given("GPUSHMEM_HEAP_SIZE"))
        return;
    bool device = gpsh_heap()->device;
    uint64_t room = device ? gpsh_gpu_room(node_pes) : share_of_memory();
    uint64_t beside = counted_reserve(room) + (device ? 0 : control_bytes());
    gpsh_settings_fit_heap(gpsh_heap_size_fitting(fit.standard, beside, room));
}

static int create_host_heap(struct gpsh_symmetric *region, uint64_t bytes, uint64_t room)
{
    const struct gpsh_settings *s = gpsh_settings();
    uint64_t beside = counted_reserve(share_of_memory()) + control_bytes();
    int status = gpsh_symmetric_check(s->heap_size + beside, beside, gpsh_job()->boot->node_n_pes);
    return status ? status
                  : gpsh_symmetric_create(region, bytes, room, control_bytes(), s->huge_pages,
                                          gpsh_job()->boot);
}

static int create_heap(void)
{
    const struct gpsh_settings *s = gpsh_settings();
    int status = choose_kind();
    if (status)
        return status;
    fit_heap_size();
    struct gpsh_symmetric *region = &regions[GPSH_HEAP];
    uint64_t bytes = heap_bytes(), room = heap_room(bytes);
    status = gpsh_heap()->device ? gpsh_gpu_region_create(region, bytes, bytes - s->heap_size, room)
                                 : create_host_heap(region, bytes, room);
    mapped_room = region->room;
    if (status || gpsh_heap()->device)
        return status;
    GPSH_LOG(INFO, "heap", "%llu bytes of host memory, %s",
             (unsigned long long)regions[GPSH_HEAP].bytes, regions[GPSH_HEAP].pages);
    return 0;
}

static int create_static(void)
{
    int status = gpsh_statics_share(gpsh_heap()->device ? 0 : regions[GPSH_HEAP].bytes, &statics);
    if (!status && statics->base)
        regions[GPSH_STATIC] = (struct gpsh_symmetric){.base = statics->alias,
                                                       .bytes = statics->bytes,
                                                       .room = statics->bytes,
                                                       .at = statics->at,
                                                       .file = statics->file,
                                                       .part = statics->part,
                                                       .fd = statics->fd};
    return status;
}

char *gpsh_regions_host_part(uint64_t *bytes)
{
    *bytes = host_part_bytes();
    return *bytes ? regions[GPSH_CONTROL].base + host_part_offset() : NULL;
}

int gpsh_regions_host(void)
{
    return gpsh_heap()->device ? GPSH_CONTROL : GPSH_HEAP;
}

static int create_control(void)
{
    const struct gpsh_symmetric *heap = &regions[GPSH_HEAP];
    uint64_t bytes = control_bytes();
    if (heap->front) {
        regions[GPSH_CONTROL] = (struct gpsh_symmetric){.base = heap->base - heap->front,
                                                        .bytes = heap->front,
                                                        .room = heap->front,
                                                        .page = heap->page,
                                                        .fd = heap->fd};
        return 0;
    }
    const struct gpsh_bootstrap *boot = gpsh_job()->boot;
    int status = gpsh_symmetric_check(bytes, bytes, boot->node_n_pes);
    if (!status)
        status = gpsh_symmetric_create(&regions[GPSH_CONTROL], bytes, 0, 0, GPSH_PAGES_OFF, NULL);
    struct gpsh_segment segment = {
        .offset = host_part_offset(), .region = GPSH_CONTROL, .name = "the symmetric host memory"};
    segment.base = status ? NULL : gpsh_regions_host_part(&segment.bytes);
    if (segment.base)
        (void)gpsh_segment_add(&segment); // the first
    return status;
}

static void free_tables(void)
{
    for (int r = 0; r < GPSH_REGIONS; r++) {
        free(gpsh_heap_state.mapped[r]);
        gpsh_heap_state.mapped[r] = NULL;
    }
    free(gpsh_heap_state.direct);
    gpsh_heap_state.direct = NULL;
}

static int make_tables(void)
{
    size_t n = (size_t)gpsh_job()->n_pes;
    gpsh_heap_state.direct = calloc(n, sizeof *gpsh_heap_state.direct);
    bool made = gpsh_heap_state.direct != NULL;
    for (int r = 0; r < GPSH_REGIONS; r++) {
        gpsh_heap_state.mapped[r] = calloc(n, sizeof *gpsh_heap_state.mapped[r]);
        made = made && gpsh_heap_state.mapped[r];
    }
    return made ? 0 : gpsh_fail(GPUSHMEM_ERR_NO_MEMORY, "no memory for the tables of %zu PEs", n);
}

int gpsh_regions_create(void)
{
    int status = make_tables();
    job_pages = 0;
    if (!status)
        status = create_heap();
    if (!status)
        status = create_control();
    if (!status)
        status = create_static();
    if (status) {
        gpsh_regions_destroy();
        return status;
    }
    gpsh_heap_state.base = regions[GPSH_HEAP].base;
    gpsh_heap_state.bytes = gpsh_heap_state.first_bytes = regions[GPSH_HEAP].bytes;
    gpsh_heap_state.user_bytes = gpsh_heap_bytes() - gpsh_heap_reserved(gpsh_settings());
    gpsh_heap_state.control = (struct gpsh_control *)regions[GPSH_CONTROL].base;
    gpsh_heap_state.control_bytes = regions[GPSH_CONTROL].bytes;
    gpsh_heap_state.copy = gpsh_regions_copy;
    gpsh_job_departures(gpsh_heap()->control->departed);
    return 0;
}

void gpsh_regions_destroy(void)
{
    if (gpsh_heap()->device) {
        gpsh_gpu_region_destroy(&regions[GPSH_HEAP]);
        gpsh_gpu_close();
        gpsh_heap_state.device = false;
    }
    regions[GPSH_STATIC] = (struct gpsh_symmetric){.fd = -1}; // the process keeps it
    if (regions[GPSH_HEAP].front)
        regions[GPSH_CONTROL] = (struct gpsh_symmetric){.fd = -1}; // goes with the heap
    static_used = false;
    gpsh_segments_clear();
    for (int r = 0; r < GPSH_REGIONS; r++)
        gpsh_symmetric_destroy(&regions[r]);
    gpsh_heap_state.base = NULL;
    gpsh_heap_state.bytes = gpsh_heap_state.first_bytes = gpsh_heap_state.user_bytes = 0;
    gpsh_heap_state.control = NULL;
    gpsh_heap_state.flush_writes = false;
    gpsh_job_departures(NULL);
    free_tables();
}

struct gpsh_region gpsh_regions_get(int region)
{
    bool device = region == GPSH_HEAP && gpsh_heap()->device;
    struct gpsh_region out = {.base = regions[region].base,
                              .bytes = regions[region].bytes,
                              .kind = device ? GPSH_MEMORY_DEVICE : GPSH_MEMORY_HOST,
                              .dmabuf_fd = -1,
                              .dmabuf_pcie_fd = -1};
    if (device)
        gpsh_gpu_region_dmabufs(false, &out);
    return out;
}

struct gpsh_region gpsh_regions_added(void)
{
    struct gpsh_region out = gpsh_regions_get(GPSH_HEAP);
    out.base += gpsh_heap_bytes();
    out.bytes -= gpsh_heap_bytes();
    if (gpsh_heap()->device)
        gpsh_gpu_region_dmabufs(true, &out);
    return out;
}

int gpsh_regions_fd(int region)
{
    return regions[region].fd;
}

uint64_t gpsh_regions_file_offset(int region)
{
    return regions[region].at;
}

uint64_t gpsh_regions_page_bytes(int region)
{
    bool settled = region == gpsh_regions_host() && job_pages > regions[region].page;
    return settled ? job_pages : regions[region].page;
}

void gpsh_regions_settle_pages(uint64_t bytes)
{
    job_pages = bytes;
}

struct gpsh_region gpsh_regions_buffer(void *buffer, size_t bytes)
{
    struct gpsh_region region = {.base = buffer,
                                 .bytes = bytes,
                                 .kind = GPSH_MEMORY_HOST,
                                 .dmabuf_fd = -1,
                                 .dmabuf_pcie_fd = -1};
    if (gpsh_heap()->device && gpsh_gpu_is_device_memory(buffer)) {
        region.kind = GPSH_MEMORY_DEVICE;
        region.dmabuf_fd = gpsh_gpu_dmabuf(buffer, bytes);
    }
    return region;
}

void gpsh_regions_buffer_release(struct gpsh_region *region)
{
    if (region->dmabuf_fd >= 0)
        close(region->dmabuf_fd);
}

uint64_t gpsh_regions_static_id(void)
{
    return regions[GPSH_STATIC].base ? statics->id : 0;
}

void gpsh_regions_spare_static(const char *why)
{
    gpsh_statics_refuse(why);
    regions[GPSH_STATIC] = (struct gpsh_symmetric){.fd = -1}; // the process keeps it
}

void gpsh_regions_use_static(const char *why_not)
{
    if (why_not) {
        gpsh_statics_refuse(why_not);
        GPSH_LOG(INFO, "heap", "static data is not symmetric: %s", why_not);
        return;
    }
    const struct gpsh_segment segment = {.base = statics->base,
                                         .bytes = statics->bytes,
                                         .region = GPSH_STATIC,
                                         .name = "the program's static data"};
    (void)gpsh_segment_add(&segment); // one of the first
    static_used = true;
}

// Where static data is not shared another descriptor takes its place: all PEs send as many.
struct gpsh_fd_set gpsh_regions_fds(void)
{
    int control = regions[GPSH_CONTROL].fd, shared = regions[GPSH_STATIC].fd;
    return (struct gpsh_fd_set){
        .fds = {regions[GPSH_HEAP].fd, control, shared >= 0 ? shared : control},
        .count = GPSH_REGIONS};
}

static bool is_used(int region)
{
    return region != GPSH_STATIC || static_used;
}

int gpsh_regions_map_self(void)
{
    for (int r = 0; r < GPSH_REGIONS; r++)
        if (is_used(r))
            gpsh_heap()->mapped[r][gpsh_job()->my_pe] =
                r == GPSH_STATIC ? statics->base : regions[r].base;
    return 0;
}

static void note_room(uint64_t room)
{
    mapped_room = room < mapped_room ? room : mapped_room;
}

static int map_device_heap(int pe, int fd)
{
    uint64_t room = regions[GPSH_HEAP].room;
    int status = gpsh_gpu_region_map(pe, fd, regions[GPSH_HEAP].bytes, &room);
    if (gpsh_heap()->mapped[GPSH_HEAP][pe])
        note_room(room);
    return status;
}

// What is mapped of peers lies together, one below the other: with 400 PEs on a node neighbours are
// mapped and unmapped in two thirds of the time. Huge pages have alignments of their own.
static char *peers_low;

// With room to grow where there is address space for it; how much, unmapping needs to know.
static int map_host_region(int pe, int r, int fd, uint64_t at)
{
    bool fronted = r == GPSH_HEAP && at;
    struct gpsh_symmetric theirs = {.fd = fd,
                                    .bytes = regions[r].bytes,
                                    .room = regions[r].room,
                                    .at = at,
                                    .front = fronted ? regions[GPSH_CONTROL].bytes : 0};
    char *end = regions[GPSH_HEAP].huge ? NULL : peers_low;
    int status = gpsh_symmetric_map(&theirs, pe, end);
    peers_low = status ? NULL : theirs.base - theirs.front;
    gpsh_heap()->mapped[r][pe] = theirs.base;
    if (!status && r == GPSH_HEAP) {
        gpsh_job()->peers[pe].heap_room = theirs.room;
        note_room(theirs.room);
    }
    return status;
}

static int map_region(int pe, int r, int fd, const uint64_t *at)
{
    if (gpsh_heap()->mapped[r][pe])
        return 0;
    if (r == GPSH_CONTROL && at[GPSH_HEAP]) { // has been mapped with the heap
        gpsh_heap()->mapped[r][pe] =
            gpsh_heap()->mapped[GPSH_HEAP][pe] - regions[GPSH_CONTROL].bytes;
        return 0;
    }
    if (r == GPSH_HEAP && gpsh_heap()->device)
        return map_device_heap(pe, fd);
    return map_host_region(pe, r, fd, at[r]);
}

int gpsh_regions_map_peer(int pe, const struct gpsh_fd_set *fds, const uint64_t *at)
{
    int status = 0;
    for (int r = 0; r < GPSH_REGIONS && is_used(r) && !status; r++)
        status = map_region(pe, r, fds->fds[r], at);
    return status;
}

bool gpsh_regions_is_apart(int region)
{
    return is_used(region) && (region != GPSH_CONTROL || !regions[GPSH_HEAP].front);
}

uint32_t gpsh_regions_shared_file(int region)
{
    return regions[region].file;
}

uint64_t gpsh_regions_part_at(int region, int i)
{
    const struct gpsh_symmetric *own = &regions[region];
    return own->at % own->part + (uint64_t)i * own->part;
}

// The parts of all PEs of the node side by side; NULL: each is mapped alone.
static char *all_parts[GPSH_REGIONS];

// One after the other where address space is scarce: what a heap may grow by needs most of it.
static int map_each_part(int r)
{
    const struct gpsh_bootstrap *boot = gpsh_job()->boot;
    int status = 0;
    for (int i = 0; i < boot->node_n_pes && !status; i++) {
        uint64_t at[GPSH_REGIONS] = {0};
        at[r] = gpsh_regions_part_at(r, i);
        status = map_region(boot->node_pes[i], r, regions[r].fd, at);
        if (!status && r == GPSH_HEAP)
            status = map_region(boot->node_pes[i], GPSH_CONTROL, regions[r].fd, at);
    }
    return status;
}

int gpsh_regions_map_shared(int region)
{
    const struct gpsh_bootstrap *boot = gpsh_job()->boot;
    const struct gpsh_symmetric *own = &regions[region];
    char *parts = gpsh_symmetric_map_all(own, boot->node_n_pes);
    if (!parts)
        return map_each_part(region);
    all_parts[region] = parts;
    for (int i = 0; i < boot->node_n_pes; i++) {
        int pe = boot->node_pes[i];
        char *base = parts + gpsh_regions_part_at(region, i);
        if (pe == gpsh_job()->my_pe)
            continue;
        gpsh_heap()->mapped[region][pe] = base;
        if (region == GPSH_HEAP) {
            gpsh_heap()->mapped[GPSH_CONTROL][pe] = base - own->front;
            gpsh_job()->peers[pe].heap_room = own->room;
        }
    }
    return 0;
}

static void unmap_with_neighbours(char *base, uint64_t bytes, char **low, char **high)
{
    if (base + bytes == *low) {
        *low = base;
        return;
    }
    gpsh_symmetric_unmap(*low, (uint64_t)(*high - *low));
    *low = base;
    *high = base + bytes;
}

static uint64_t mapped_bytes(int pe, int r)
{
    uint64_t bytes = r == GPSH_HEAP ? gpsh_job()->peers[pe].heap_room : regions[r].bytes,
             page = 4096;
    return (bytes + page - 1) / page * page;
}

static void forget_parts(int r)
{
    const struct gpsh_bootstrap *boot = gpsh_job()->boot;
    if (!all_parts[r])
        return;
    gpsh_symmetric_unmap(all_parts[r], (uint64_t)boot->node_n_pes * regions[r].part);
    all_parts[r] = NULL;
    for (int i = 0; i < boot->node_n_pes; i++) {
        gpsh_heap()->mapped[r][boot->node_pes[i]] = NULL;
        if (r == GPSH_HEAP)
            gpsh_heap()->mapped[GPSH_CONTROL][boot->node_pes[i]] = NULL;
    }
}

// In the order in which they were mapped.
void gpsh_regions_unmap_peers(void)
{
    for (int r = 0; r < GPSH_REGIONS; r++)
        forget_parts(r);
    char *low = NULL, *high = NULL;
    for (int pe = 0; pe < gpsh_job()->n_pes; pe++)
        for (int r = 0; r < GPSH_REGIONS; r++) {
            char *base = gpsh_heap()->mapped[r] ? gpsh_heap()->mapped[r][pe] : NULL;
            if (base && pe != gpsh_job()->my_pe && r == GPSH_HEAP && gpsh_heap()->device)
                gpsh_gpu_region_unmap(pe);
            else if (base && pe != gpsh_job()->my_pe)
                unmap_with_neighbours(base, mapped_bytes(pe, r), &low, &high);
            if (base)
                gpsh_heap()->mapped[r][pe] = NULL;
        }
    gpsh_symmetric_unmap(low, (uint64_t)(high - low));
    peers_low = NULL;
}

int gpsh_regions_copy(void *to, const void *from, size_t bytes)
{
    if (gpsh_heap()->device)
        return gpsh_gpu_copy(to, from, bytes);
    memcpy(to, from, bytes);
    return 0;
}

int gpsh_regions_fill(void *memory, int byte, size_t bytes)
{
    if (gpsh_heap()->device)
        return gpsh_gpu_fill(memory, byte, bytes);
    memset(memory, byte, bytes);
    return 0;
}

const struct gpsh_device_memory *gpsh_regions_device_memory(void)
{
    return gpsh_heap()->device ? &gpsh_device_memory_gpu : &gpsh_device_memory_host;
}

const char *gpsh_regions_pci(void)
{
    return gpsh_heap()->device ? gpsh_gpu.pci : NULL;
}

uint64_t gpsh_regions_alignment(void)
{
    if (gpsh_heap()->device)
        return 2 << 20;                                        // the driver's large pages
    return gpsh_symmetric_alignment(gpsh_heap()->first_bytes); // it begins where it did at first
}

const char *gpsh_regions_pages(void)
{
    return regions[GPSH_HEAP].pages;
}

uint64_t gpsh_heap_size_fitting(uint64_t standard, uint64_t reserved, uint64_t room)
{
    if (standard <= room && room - standard >= reserved)
        return standard;
    uint64_t rest = room > reserved ? room - reserved : 0;
    uint64_t mib = (rest < room / 2 ? rest : room / 2) >> 20;
    return (mib ? mib : 1) << 20;
}
