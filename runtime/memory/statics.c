// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE // memfd_create, mremap, syscall
#include "memory/statics.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "bootstrap/node_memory.h"
#include "core/clock.h"
#include "core/config.h"
#include "core/error.h"
#include "core/log.h"
#include "core/memory_file.h"
#include "job/job.h"
#include "memory/memory_limit.h"
#include "memory/statics_image.h"

// What is copied before it is mapped, and what is mapped at once where nothing has to be copied:
// short, for other threads' sake.
enum { STEP_BYTES = 1 << 16, EMPTY_STEP_BYTES = 1 << 24 };

static struct gpsh_statics statics = {.fd = -1};
static uint64_t shared_bytes; // from `base`; less than statics.bytes after a failure half-way
static bool forks_noticed;
static char why[256] = "the library is not initialised";

const char *gpsh_statics_why(void)
{
    return why;
}

void gpsh_statics_refuse(const char *reason)
{
    snprintf(why, sizeof why, "%s", reason);
}

// ---- Sharing ----

// Copies and maps one step. Plain system calls: a sanitizer's versions would look at what lies
// between the program's objects. If libgpushmem is linked into the program itself, the pages hold
// its own variables, which must not change between the two calls.
static int share_step(char *at, size_t bytes, off_t offset, bool in_use)
{
    offset += (off_t)statics.at;
    if (in_use && syscall(SYS_pwrite64, statics.fd, at, bytes, offset) != (long)bytes)
        return errno ? errno : EIO;
    long mapped = syscall(SYS_mmap, at, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
                          statics.fd, offset);
    return mapped == (long)(uintptr_t)at ? 0 : errno;
}

// The pages from `at` on that nobody has ever touched, up to `bytes`: they stay empty. An array of
// gigabytes costs what the program uses of it.
static size_t untouched_bytes(int pagemap, const char *at, size_t bytes)
{
    enum { ENTRIES = 512 };
    uint64_t entries[ENTRIES];
    const uint64_t present_or_swapped = UINT64_C(3) << 62;
    size_t page = (size_t)sysconf(_SC_PAGESIZE), n = 0, read = STEP_BYTES / 4096;
    while (n < bytes / page) {
        size_t want = bytes / page - n < read ? bytes / page - n : read;
        off_t offset = (off_t)(((uintptr_t)at / page + n) * sizeof entries[0]);
        if (pread(pagemap, entries, want * sizeof entries[0], offset) !=
            (ssize_t)(want * sizeof entries[0]))
            return n * page;
        for (size_t i = 0; i < want; i++)
            if (entries[i] & present_or_swapped)
                return (n + i) * page;
        n += want;
        read = ENTRIES;
    }
    return n * page;
}

// The next step of it: what may hold something is copied, what nobody has touched is not.
static int share_next(const struct gpsh_statics_image *image, int pagemap)
{
    uint64_t at = shared_bytes, left = image->bytes - at;
    uint64_t empty = left < EMPTY_STEP_BYTES ? left : EMPTY_STEP_BYTES;
    uint64_t step = left < STEP_BYTES ? left : STEP_BYTES;
    empty = at < image->file_bytes || pagemap < 0
                ? 0
                : untouched_bytes(pagemap, image->base + at, empty);
    bool in_use = empty < step;
    step = in_use ? step : empty;
    int error = share_step(image->base + at, step, (off_t)at, in_use);
    if (!error)
        shared_bytes = at + step;
    return error;
}

static int share_all(const struct gpsh_statics_image *image)
{
    int error = 0, pagemap = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &old); // handlers may write to static data
    while (shared_bytes < image->bytes && !error)
        error = share_next(image, pagemap);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (pagemap >= 0)
        close(pagemap);
    return error;
}

// Where the pages go: the node's file if there is one, else one of their own. 0 or an errno.
static int open_file(uint64_t bytes, struct gpsh_node_memory *file)
{
    if (gpsh_node_memory_ask(gpsh_job()->boot, GPSH_SHARE_STATIC, bytes, file))
        gpsh_clear_error();
    if (file->fd >= 0)
        return 0;
    *file = (struct gpsh_node_memory){.fd = memfd_create("gpushmem-static", MFD_CLOEXEC)};
    if (file->fd < 0)
        return errno;
    return gpsh_memory_file_grow(file->fd, bytes);
}

static int share(const struct gpsh_statics_image *image)
{
    uint64_t begin_ns = gpsh_clock_ns();
    struct gpsh_node_memory file;
    int error = open_file(image->bytes, &file), fd = file.fd;
    void *alias = MAP_FAILED;
    if (!error) {
        alias = mmap(NULL, image->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)file.at);
        error = alias == MAP_FAILED ? errno : 0;
    }
    if (!error) {
        statics.fd = fd;
        statics.file = file.id;
        statics.part = file.part;
        statics.at = file.at;
        statics.base = image->base; // the fork handlers need it from here on
        statics.bytes = image->bytes;
        error = share_all(image);
    } else if (fd >= 0) {
        close(fd);
    }
    if (error)
        return gpsh_fail(GPUSHMEM_ERR_NO_MEMORY, "its %" PRIu64 "M could not be shared (%s)%s",
                         image->bytes >> 20, strerror(error),
                         error == ENOMEM  ? "; raise the limit of address space (ulimit -v)"
                         : error == EFBIG ? "; raise the limit of file sizes (ulimit -f)"
                                          : "");
    statics.alias = alias;
    statics.id = image->id;
    GPSH_LOG(INFO, "heap", "%" PRIu64 " KiB of static data at %p are symmetric, in %" PRIu64 " us",
             statics.bytes >> 10, (void *)statics.base, (gpsh_clock_ns() - begin_ns) / 1000);
    return 0;
}

// NICs pin all of what is shared, touched or not: then it has to fit beside the heap into what this
// PE may have of its node's memory. PEs of one node map each other's, which costs nothing.
static int check_pinned(const struct gpsh_statics_image *image, uint64_t heap_bytes)
{
    const struct gpsh_bootstrap *boot = gpsh_job()->boot;
    uint64_t share = gpsh_memory_limit() / (uint64_t)boot->node_n_pes;
    uint64_t room = share > heap_bytes ? share - heap_bytes : 0;
    if (boot->node_n_pes == gpsh_job()->n_pes || image->bytes <= room)
        return 0;
    return gpsh_fail(GPUSHMEM_ERR_UNSUPPORTED,
                     "it has %" PRIu64 "M, which NICs pin, more than the %" PRIu64
                     "M that each PE of the node has for it beside its heap; start fewer PEs "
                     "there, lower GPUSHMEM_HEAP_SIZE, or set GPUSHMEM_STATIC_DATA=on to share "
                     "it all the same",
                     image->bytes >> 20, room >> 20);
}

static int try_share(uint64_t heap_bytes)
{
    bool demanded = gpsh_settings()->static_data == GPSH_STATIC_DATA_ON;
    struct gpsh_statics_image image;
    int status = forks_noticed ? gpsh_statics_image_find(&image)
                               : gpsh_fail(GPUSHMEM_ERR_NO_MEMORY,
                                           "no memory was left to notice forks of the process");
    if (!status && !demanded)
        status = check_pinned(&image, heap_bytes);
    return status ? status : share(&image);
}

int gpsh_statics_share(uint64_t heap_bytes, const struct gpsh_statics **out)
{
    static const struct gpsh_statics none = {.fd = -1};
    *out = &none;
    if (gpsh_settings()->static_data == GPSH_STATIC_DATA_OFF) {
        gpsh_statics_refuse("GPUSHMEM_STATIC_DATA=off");
        return 0;
    }
    int status = statics.alias ? 0 : try_share(heap_bytes);
    if (!status) {
        *out = &statics;
        gpsh_statics_refuse("");
        return 0;
    }
    gpsh_statics_refuse(gpsh_last_error());
    if (gpsh_settings()->static_data == GPSH_STATIC_DATA_ON)
        return gpsh_fail(status,
                         "GPUSHMEM_STATIC_DATA=on: the static data of this program cannot "
                         "be symmetric: %s",
                         why);
    GPSH_LOG(INFO, "heap", "static data is not symmetric: %s", why);
    gpsh_clear_error();
    return 0;
}

// ---- Children ----
//
// A forked child would share its static data with its parent. It gets a copy of its own, made just
// before the fork, when the other threads still run: what these store meanwhile is in it or not, as
// if the fork came a moment earlier. The handlers are registered when the library is loaded: the
// last ones to run before a fork, and the first in the child, before the program's own, which
// may touch static data.

static _Thread_local char *snapshot;

// Sparse: holes in the file are pages that nobody has touched.
static bool copy_file(char *to)
{
    const off_t begin = (off_t)statics.at, end = begin + (off_t)shared_bytes;
    off_t at = begin;
    while (at < end) {
        off_t data = lseek(statics.fd, at, SEEK_DATA);
        if (data < 0 || data >= end)
            return data >= 0 || errno == ENXIO;
        off_t hole = lseek(statics.fd, data, SEEK_HOLE);
        for (at = data; at < hole && at < end;) {
            ssize_t got =
                pread(statics.fd, to + (at - begin), (size_t)((hole < end ? hole : end) - at), at);
            if (got <= 0)
                return false;
            at += got;
        }
    }
    return true;
}

static void before_fork(void)
{
    int error = errno;
    snapshot = NULL;
    if (!shared_bytes)
        return;
    char *copy = mmap(NULL, shared_bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (copy != MAP_FAILED && copy_file(copy))
        snapshot = copy;
    else if (copy != MAP_FAILED)
        munmap(copy, shared_bytes);
    errno = error;
}

static void in_parent(void)
{
    int error = errno;
    if (snapshot)
        munmap(snapshot, shared_bytes);
    snapshot = NULL;
    errno = error;
}

// Without a copy, for lack of memory: the pages of the file, of which the child has its own as soon
// as it writes to them; those it has not written to follow the parent.
static void in_child(void)
{
    char *copy = snapshot, *base = statics.base;
    uint64_t bytes = shared_bytes;
    if (!bytes)
        return;
    if (copy)
        syscall(SYS_mremap, copy, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, base);
    else
        syscall(SYS_mmap, base, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED, statics.fd,
                statics.at);
    snapshot = NULL;
    shared_bytes = 0;
}

static __attribute__((constructor(101))) void watch_forks(void)
{
    forks_noticed = pthread_atfork(before_fork, in_parent, in_child) == 0;
}
