// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE // memfd_create, fallocate, MADV_HUGEPAGE
#include "memory/symmetric.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/falloc.h>
#include <linux/memfd.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bootstrap/bootstrap.h"
#include "bootstrap/node_memory.h"
#include "core/config.h"
#include "core/error.h"
#include "core/log.h"
#include "core/memory_file.h"
#include "memory/memory_limit.h"

int gpsh_symmetric_check(uint64_t bytes, uint64_t reserved, int node_pes)
{
    uint64_t limit = gpsh_memory_limit(), room = limit / (uint64_t)node_pes;
    if (bytes <= room)
        return 0;
    if (room < reserved + (1 << 20))
        return gpsh_fail(GPUSHMEM_ERR_NO_MEMORY,
                         "%" PRIu64 "M of memory for the %d PEs of this node is less than the "
                         "library and a heap of 1M for each need; start fewer, or lower "
                         "GPUSHMEM_TEAM_MEMORY",
                         limit >> 20, node_pes);
    return gpsh_fail(GPUSHMEM_ERR_NO_MEMORY,
                     "GPUSHMEM_HEAP_SIZE: %" PRIu64
                     "M for each PE of this node (there %s %d) does not fit "
                     "into its %" PRIu64 "M of memory; set it to at most %" PRIu64 "M",
                     (bytes - reserved) >> 20, node_pes == 1 ? "is" : "are", node_pes, limit >> 20,
                     (room - reserved) >> 20);
}

uint64_t gpsh_symmetric_alignment(uint64_t bytes)
{
    uint64_t alignment = GPSH_SYMMETRIC_ALIGNMENT;
    while (alignment > bytes)
        alignment /= 2;
    return alignment;
}

// Where blocks of the heap may have any alignment up to its size. NULL and errno if there is no
// room.
static char *map_aligned(const struct gpsh_symmetric *region, int flags)
{
    uint64_t alignment = gpsh_symmetric_alignment(region->bytes);
    uint64_t bytes = region->front + region->room;
    char *room = mmap(NULL, bytes + alignment, PROT_NONE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (room == MAP_FAILED)
        return NULL;
    uint64_t lead = -((uintptr_t)room + region->front) & (alignment - 1);
    char *front = mmap(room + lead, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED | flags,
                       region->fd, (off_t)(region->at - region->front));
    int error = errno;
    if (front == MAP_FAILED) {
        munmap(room, bytes + alignment);
        errno = error;
        return NULL;
    }
    if (lead)
        munmap(room, lead);
    munmap(front + bytes, alignment - lead);
    return front + region->front;
}

// With less room if there is not as much address space. 0 or an errno.
static int map_own(struct gpsh_symmetric *region, int flags)
{
    region->base = map_aligned(region, flags);
    if (!region->base && region->room > region->bytes) {
        region->room = region->bytes;
        region->base = map_aligned(region, flags);
    }
    return region->base ? 0 : errno;
}

// Sets the length of a hugetlb file and reserves its pages, so that a lack shows here and not as
// SIGBUS later: mapping them does, and the file keeps it when they are unmapped. 0 or an errno, and
// the file has `before` bytes again.
static int reserve_huge(int fd, uint64_t before, uint64_t bytes)
{
    int error = gpsh_memory_file_grow(fd, bytes);
    if (error || bytes <= before)
        return error;
    void *all = mmap(NULL, bytes - before, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)before);
    error = all == MAP_FAILED ? errno : 0;
    if (error)
        (void)gpsh_memory_file_grow(fd, before);
    else
        munmap(all, bytes - before);
    return error;
}

// Mapping it makes the file as long as the mapping.
static int map_huge(struct gpsh_symmetric *region)
{
    int error = map_own(region, MAP_NORESERVE);
    return error ? error : gpsh_memory_file_grow(region->fd, region->bytes);
}

// A hugetlb file of 2M or 1G pages.
static int create_hugetlb(struct gpsh_symmetric *region, uint64_t room, bool giant)
{
    uint64_t page = giant ? 1ull << 30 : 2ull << 20;
    region->bytes = (region->bytes + page - 1) / page * page;
    region->room = room > region->bytes ? room / page * page : region->bytes;
    region->page = page;
    region->fd = memfd_create("gpushmem-heap",
                              MFD_CLOEXEC | MFD_HUGETLB | (giant ? MFD_HUGE_1GB : MFD_HUGE_2MB));
    int error = region->fd < 0 ? errno : reserve_huge(region->fd, 0, region->bytes);
    if (!error)
        error = map_huge(region);
    uint64_t pages = region->bytes / page;
    if (error) {
        gpsh_symmetric_destroy(region);
        return gpsh_fail(
            GPUSHMEM_ERR_NO_MEMORY,
            "GPUSHMEM_HUGE_PAGES=%s: a heap of %" PRIu64 " such pages cannot be had (%s); "
            "raise nr_hugepages of that size under /sys/kernel/mm/hugepages, or set it to auto",
            giant ? "1g" : "2m", pages, strerror(error));
    }
    snprintf(region->pages, sizeof region->pages, "%s pages", giant ? "1G" : "2M");
    region->huge = true;
    return 0;
}

// Transparent huge pages come only if the kernel's policy for shared memory lets an madvise ask for
// them.
static void ask_for_thp(struct gpsh_symmetric *region)
{
    char policy[64] = "";
    FILE *file = fopen("/sys/kernel/mm/transparent_hugepage/shmem_enabled", "re");
    if (file) {
        if (!fgets(policy, sizeof policy, file))
            policy[0] = '\0';
        fclose(file);
    }
    bool possible =
        strstr(policy, "[advise]") || strstr(policy, "[always]") || strstr(policy, "[within_size]");
    region->huge = possible && !madvise(region->base, region->room, MADV_HUGEPAGE);
    if (region->huge)
        snprintf(region->pages, sizeof region->pages, "transparent huge pages");
    else
        snprintf(region->pages, sizeof region->pages,
                 "4K pages (huge ones need advise in "
                 "/sys/kernel/mm/transparent_hugepage/shmem_enabled)");
}

// A file of its own, as long as the region. 0 or an errno.
static int open_own_file(struct gpsh_symmetric *region)
{
    region->fd = memfd_create("gpushmem-heap", MFD_CLOEXEC);
    return region->fd < 0 ? errno : gpsh_memory_file_grow(region->fd, region->at + region->bytes);
}

static int open_file(struct gpsh_symmetric *region, const struct gpsh_bootstrap *boot)
{
    struct gpsh_node_memory shared = {.fd = -1};
    int status = 0;
    if (boot)
        status = gpsh_node_memory_ask(boot, GPSH_SHARE_HEAP, region->at + region->room, &shared);
    if (status)
        return status;
    if (shared.fd >= 0) {
        region->fd = shared.fd;
        region->file = shared.id;
        region->part = shared.part;
        region->at += shared.at;
        return 0;
    }
    int error = open_own_file(region);
    return !error ? 0
                  : gpsh_fail(GPUSHMEM_ERR_NO_MEMORY,
                              "shared memory of %" PRIu64 " bytes could not be made (%s)%s",
                              region->bytes, strerror(error),
                              error == EFBIG ? "; raise the limit of file sizes (ulimit -f)" : "");
}

int gpsh_symmetric_create(struct gpsh_symmetric *region, uint64_t bytes, uint64_t room,
                          uint64_t front, enum gpsh_huge_pages pages,
                          const struct gpsh_bootstrap *boot)
{
    const uint64_t huge = 2 << 20;
    *region = (struct gpsh_symmetric){
        .bytes = (bytes + 4095) / 4096 * 4096, .page = (uint64_t)sysconf(_SC_PAGESIZE), .fd = -1};
    if (pages == GPSH_PAGES_2M || pages == GPSH_PAGES_1G)
        return create_hugetlb(region, room, pages == GPSH_PAGES_1G);
    region->front = (front + 4095) / 4096 * 4096;
    region->at = (front + huge - 1) / huge * huge; // so that huge pages fit
    region->room = room > region->bytes ? room / 4096 * 4096 : region->bytes;
    int status = open_file(region, boot);
    if (status) {
        gpsh_symmetric_destroy(region);
        return status;
    }
    int error = map_own(region, 0);
    if (error) {
        status =
            gpsh_fail(GPUSHMEM_ERR_NO_MEMORY,
                      "%" PRIu64 " bytes of shared memory could not be mapped (%s); is the address "
                      "space limited (ulimit -v)?",
                      region->bytes, strerror(error));
        gpsh_symmetric_destroy(region);
        return status;
    }
    if (pages == GPSH_PAGES_OFF)
        snprintf(region->pages, sizeof region->pages, "4K pages");
    else
        ask_for_thp(region);
    return 0;
}

static bool is_huge(const struct gpsh_symmetric *region)
{
    return region->page > (uint64_t)sysconf(_SC_PAGESIZE);
}

// A part of a shared file has its length from the beginning. 0 or an errno.
static int set_length(const struct gpsh_symmetric *region, uint64_t bytes)
{
    uint64_t less = region->bytes > bytes ? region->bytes - bytes : 0;
    if (is_huge(region))
        return reserve_huge(region->fd, region->bytes, bytes);
    if (!region->file)
        return gpsh_memory_file_grow(region->fd, region->at + bytes);
    if (!less)
        return 0;
    int failed = fallocate(region->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                           (off_t)(region->at + bytes), (off_t)less);
    return failed ? errno : 0;
}

int gpsh_symmetric_resize(struct gpsh_symmetric *region, uint64_t bytes, int node_pes)
{
    uint64_t limit = gpsh_memory_limit() / (uint64_t)node_pes;
    if (bytes > region->room)
        return gpsh_fail(GPUSHMEM_ERR_NO_MEMORY,
                         "there is address space for %" PRIu64
                         " bytes of it; raise its limit (ulimit -v)",
                         region->room);
    if (bytes > region->bytes && bytes > limit)
        return gpsh_fail(GPUSHMEM_ERR_NO_MEMORY,
                         "%" PRIu64 "M for each PE of the node exceed the %" PRIu64
                         "M of memory that each has; start fewer PEs there, or allocate less",
                         bytes >> 20, limit >> 20);
    int error = set_length(region, bytes);
    if (error && is_huge(region))
        return gpsh_fail(GPUSHMEM_ERR_NO_MEMORY,
                         "%" PRIu64 " more pages of %" PRIu64 "M cannot be had (%s); raise "
                         "nr_hugepages of that size",
                         (bytes - region->bytes) / region->page, region->page >> 20,
                         strerror(error));
    if (error)
        return gpsh_fail(GPUSHMEM_ERR_NO_MEMORY, "shared memory of %" PRIu64 " bytes: %s%s", bytes,
                         strerror(error),
                         error == EFBIG ? "; raise the limit of file sizes (ulimit -f)" : "");
    region->bytes = bytes;
    return 0;
}

int gpsh_symmetric_map(struct gpsh_symmetric *theirs, int pe, char *end)
{
    struct stat info;
    // quicker than fstat; nobody reads at the file's position
    off_t size = lseek(theirs->fd, 0, SEEK_END);
    if (size < 0 || (uint64_t)size < theirs->at || (uint64_t)size - theirs->at < theirs->bytes)
        return gpsh_fail(GPUSHMEM_ERR_PEER_DATA,
                         "PE %d handed over memory that is smaller than the %" PRIu64 " bytes it "
                         "announced",
                         pe, theirs->bytes);
    const int flags = MAP_SHARED | MAP_NORESERVE; // huge pages: its owner has reserved them
    const uint64_t page = 4096, front = theirs->front;
    const off_t from = (off_t)(theirs->at - front);
    const uint64_t whole = (front + theirs->room + page - 1) / page * page;
    char *mapped = mmap(end ? end - whole : NULL, front + theirs->room, PROT_READ | PROT_WRITE,
                        flags, theirs->fd, from);
    if (mapped == MAP_FAILED && theirs->room > theirs->bytes) {
        theirs->room = theirs->bytes;
        mapped = mmap(NULL, front + theirs->bytes, PROT_READ | PROT_WRITE, flags, theirs->fd, from);
    }
    if (mapped == MAP_FAILED)
        return gpsh_fail(GPUSHMEM_ERR_NO_MEMORY,
                         "%" PRIu64
                         " bytes of PE %d's memory could not be mapped (%s); is the address "
                         "space limited (ulimit -v)?",
                         theirs->bytes, pe, strerror(errno));
    // Mapping a file of huge pages has made it as long: see map_huge.
    if (theirs->room > theirs->bytes && !theirs->at && !fstat(theirs->fd, &info) &&
        (uint64_t)info.st_size > theirs->bytes)
        (void)gpsh_memory_file_grow(theirs->fd, theirs->bytes);
    theirs->base = mapped + front;
    return 0;
}

char *gpsh_symmetric_map_all(const struct gpsh_symmetric *own, int n)
{
    void *parts = mmap(NULL, (uint64_t)n * own->part, PROT_READ | PROT_WRITE,
                       MAP_SHARED | MAP_NORESERVE, own->fd, 0);
    return parts == MAP_FAILED ? NULL : parts;
}

void gpsh_symmetric_unmap(char *base, uint64_t bytes)
{
    if (base)
        munmap(base, bytes);
}

void gpsh_symmetric_destroy(struct gpsh_symmetric *region)
{
    if (region->base)
        gpsh_symmetric_unmap(region->base - region->front, region->front + region->room);
    if (region->fd >= 0)
        close(region->fd);
    *region = (struct gpsh_symmetric){.fd = -1};
}
