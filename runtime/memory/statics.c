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

#include "core/clock.h"
#include "core/config.h"
#include "core/error.h"
#include "core/log.h"
#include "core/memory_file.h"
#include "memory/statics_image.h"

// A NIC pins what is shared: by itself the library does so up to this size only.
#define AUTO_BYTES (UINT64_C(1) << 30)

enum { STEP_BYTES = 1 << 16 }; // what is copied before it is mapped: short, for other threads' sake

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
    if (in_use && syscall(SYS_pwrite64, statics.fd, at, bytes, offset) != (long)bytes)
        return errno ? errno : EIO;
    long mapped = syscall(SYS_mmap, at, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
                          statics.fd, offset);
    return mapped == (long)(uintptr_t)at ? 0 : errno;
}

// Whether any of the pages was ever touched: a large array that nobody has used stays empty.
static bool is_in_use(int pagemap, const char *at, size_t bytes)
{
    enum { PAGES = STEP_BYTES / 4096 };
    uint64_t entries[PAGES];
    const uint64_t present_or_swapped = UINT64_C(3) << 62;
    size_t page = (size_t)sysconf(_SC_PAGESIZE), want = bytes / page * sizeof entries[0];
    off_t offset = (off_t)((uintptr_t)at / page * sizeof entries[0]);
    if (pagemap < 0 || pread(pagemap, entries, want, offset) != (ssize_t)want)
        return true;
    for (size_t i = 0; i < bytes / page; i++)
        if (entries[i] & present_or_swapped)
            return true;
    return false;
}

static int share_all(const struct gpsh_statics_image *image)
{
    int error = 0, pagemap = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &old); // handlers may write to static data
    for (uint64_t at = 0; at < image->bytes && !error; at += STEP_BYTES) {
        size_t bytes = image->bytes - at < STEP_BYTES ? image->bytes - at : STEP_BYTES;
        bool in_use = at < image->file_bytes || is_in_use(pagemap, image->base + at, bytes);
        error = share_step(image->base + at, bytes, (off_t)at, in_use);
        if (!error)
            shared_bytes = at + bytes;
    }
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (pagemap >= 0)
        close(pagemap);
    return error;
}

static int share(const struct gpsh_statics_image *image)
{
    uint64_t begin_ns = gpsh_clock_ns();
    int fd = memfd_create("gpushmem-static", MFD_CLOEXEC);
    int error = fd < 0 ? errno : gpsh_memory_file_grow(fd, image->bytes);
    void *alias = MAP_FAILED;
    if (!error) {
        alias = mmap(NULL, image->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        error = alias == MAP_FAILED ? errno : 0;
    }
    if (!error) {
        statics.fd = fd;
        statics.base = image->base; // the fork handlers need it from here on
        statics.bytes = image->bytes;
        error = share_all(image);
    } else if (fd >= 0) {
        close(fd);
    }
    if (error)
        return gpsh_fail(GPUSHMEM_ERR_NO_MEMORY, "%" PRIu64 " bytes could not be shared (%s)",
                         image->bytes, strerror(error));
    statics.alias = alias;
    statics.id = image->id;
    GPSH_LOG(INFO, "heap", "%" PRIu64 " KiB of static data at %p are symmetric, in %" PRIu64 " us",
             statics.bytes >> 10, (void *)statics.base, (gpsh_clock_ns() - begin_ns) / 1000);
    return 0;
}

static int try_share(void)
{
    bool demanded = gpsh_settings()->static_data == GPSH_STATIC_DATA_ON;
    struct gpsh_statics_image image;
    int status = forks_noticed ? gpsh_statics_image_find(&image)
                               : gpsh_fail(GPUSHMEM_ERR_NO_MEMORY,
                                           "no memory was left to notice forks of the process");
    if (!status && image.bytes > AUTO_BYTES && !demanded)
        status = gpsh_fail(GPUSHMEM_ERR_UNSUPPORTED,
                           "it has %" PRIu64 "M, more than the %lluM that are shared by default "
                           "(GPUSHMEM_STATIC_DATA=on shares it)",
                           image.bytes >> 20, (unsigned long long)AUTO_BYTES >> 20);
    return status ? status : share(&image);
}

int gpsh_statics_share(const struct gpsh_statics **out)
{
    static const struct gpsh_statics none = {.fd = -1};
    *out = &none;
    if (gpsh_settings()->static_data == GPSH_STATIC_DATA_OFF) {
        gpsh_statics_refuse("GPUSHMEM_STATIC_DATA=off");
        return 0;
    }
    int status = statics.alias ? 0 : try_share();
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
    off_t at = 0, end = (off_t)shared_bytes;
    while (at < end) {
        off_t data = lseek(statics.fd, at, SEEK_DATA);
        if (data < 0 || data >= end)
            return data >= 0 || errno == ENXIO;
        off_t hole = lseek(statics.fd, data, SEEK_HOLE);
        for (at = data; at < hole && at < end;) {
            ssize_t got = pread(statics.fd, to + at, (size_t)((hole < end ? hole : end) - at), at);
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
                0);
    snapshot = NULL;
    shared_bytes = 0;
}

static __attribute__((constructor(101))) void watch_forks(void)
{
    forks_noticed = pthread_atfork(before_fork, in_parent, in_child) == 0;
}
