// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE // mremap, syscall
#include "memory/adopted.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "core/error.h"
#include "core/log.h"
#include "memory/heap.h"
#include "memory/local_memory.h"
#include "memory/place.h"
#include "memory/regions.h"

// ---- What is mapped into this process, as /proc/self/maps tells it ----

struct mapping {
    uint64_t first, end;
    char rights[8]; // "rw-p"
    uint64_t offset, inode;
    unsigned major, minor; // device of the file
    const char *name;      // path, "[stack]" or "": valid during the visit
};
typedef bool mapping_fn(const struct mapping *mapping, void *arg);

enum { LINE_BYTES = 4096 + 256 }; // a path and what stands before it

struct reader {
    int fd;
    size_t begin, end;
    char text[2 * LINE_BYTES];
};

// The next line without its newline, or NULL: the end, or an error in errno.
static char *next_line(struct reader *r)
{
    for (;;) {
        char *line = r->text + r->begin, *newline = memchr(line, '\n', r->end - r->begin);
        if (newline) {
            *newline = '\0';
            r->begin = (size_t)(newline + 1 - r->text);
            return line;
        }
        memmove(r->text, line, r->end - r->begin);
        r->end -= r->begin;
        r->begin = 0;
        ssize_t got = read(r->fd, r->text + r->end, sizeof r->text - 1 - r->end);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return NULL;
        r->end += (size_t)got;
    }
}

static bool parse_mapping(const char *line, struct mapping *out)
{
    int name = 0;
    int n =
        sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s %" SCNx64 " %x:%x %" SCNu64 " %n", &out->first,
               &out->end, out->rights, &out->offset, &out->major, &out->minor, &out->inode, &name);
    out->name = n == 7 && name ? line + name : "";
    return n == 7;
}

// Calls `visit` for each mapping that has a byte of [first, end), by address, until it returns
// false. 0 or an errno. Takes no memory: children of a process with threads call it.
static int mappings_visit(uint64_t first, uint64_t end, mapping_fn *visit, void *arg)
{
    struct reader r = {.fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC)};
    struct mapping mapping;
    char *line;
    if (r.fd < 0)
        return errno;
    errno = 0;
    while ((line = next_line(&r)))
        if (parse_mapping(line, &mapping) && mapping.end > first &&
            (mapping.first >= end || !visit(&mapping, arg)))
            break;
    int error = line ? 0 : errno;
    close(r.fd);
    return error;
}

// Whether it is the file `fd`, and `at` shows the file's byte `offset`.
static bool mapping_shows(const struct mapping *mapping, int fd, uint64_t at, uint64_t offset)
{
    struct stat info;
    return !fstat(fd, &info) && mapping->inode == info.st_ino &&
           mapping->major == major(info.st_dev) && mapping->minor == minor(info.st_dev) &&
           mapping->offset + (at - mapping->first) == offset;
}

// ---- The buffers ----

enum {
    MAX_ADOPTED = GPSH_MAX_SEGMENTS - 2, // static data, host memory
    STEP_BYTES = 1 << 16
};

// Changed with the lock held; the lock is free in a child that is forked.
static struct gpsh_adopted adopted[MAX_ADOPTED];
static int n_adopted;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static struct gpsh_adopted *adopted_of(const void *address)
{
    for (int i = 0; i < n_adopted; i++)
        if (adopted[i].base == address || (adopted[i].block && adopted[i].block == address))
            return &adopted[i];
    return NULL;
}

static bool adopted_overlap(const char *base, size_t bytes)
{
    for (int i = 0; i < n_adopted; i++)
        if (base < adopted[i].base + adopted[i].bytes && adopted[i].base < base + bytes)
            return true;
    return false;
}

bool gpsh_adopted_find(const void *address, struct gpsh_adopted *out)
{
    pthread_mutex_lock(&lock);
    const struct gpsh_adopted *found = adopted_of(address);
    if (found)
        *out = *found;
    pthread_mutex_unlock(&lock);
    return found != NULL;
}

bool gpsh_adopted_overlaps(const void *base, size_t bytes)
{
    pthread_mutex_lock(&lock);
    bool does = adopted_overlap(base, bytes);
    pthread_mutex_unlock(&lock);
    return does;
}

// ---- What may be adopted ----

struct verdict {
    uint64_t at; // everything below it is good
    char why[160];
};

static bool judge_mapping(const struct mapping *m, void *arg)
{
    struct verdict *v = arg;
    if (m->first > v->at)
        return false; // a hole
    if (m->rights[0] != 'r' || m->rights[1] != 'w')
        snprintf(v->why, sizeof v->why, "it cannot be both read and written (%s)", m->rights);
    else if (m->rights[2] == 'x')
        snprintf(v->why, sizeof v->why, "it is executable");
    else if (m->rights[3] != 'p')
        snprintf(v->why, sizeof v->why,
                 "it is shared memory already, of others or of a file (%.60s), and its pages "
                 "cannot move",
                 m->name[0] ? m->name : "no name");
    else if (!strncmp(m->name, "[stack", 6))
        snprintf(v->why, sizeof v->why, "it holds a stack");
    else
        v->at = m->end;
    return !v->why[0];
}

static int check_pages(const char *function, const char *base, size_t bytes)
{
    struct verdict v = {.at = (uintptr_t)base};
    uint64_t end = (uintptr_t)base + bytes, here = (uintptr_t)__builtin_frame_address(0);
    int error = mappings_visit((uintptr_t)base, end, judge_mapping, &v);
    if (v.at >= end && here - (uintptr_t)base < bytes)
        snprintf(v.why, sizeof v.why, "it holds the stack of the calling thread");
    if (error)
        return gpsh_fail(GPUSHMEM_ERR_SYSTEM,
                         "%s(%p, %zu): /proc/self/maps, which says what memory this is, cannot be "
                         "read (%s)",
                         function, (const void *)base, bytes, strerror(error));
    if (!v.why[0] && v.at >= end)
        return 0;
    return gpsh_fail(GPUSHMEM_ERR_INVALID,
                     "%s(%p, %zu): %s; pass private memory that can be read and written, as of "
                     "mmap or aligned_alloc",
                     function, (const void *)base, bytes,
                     v.why[0] ? v.why : "not all of it is memory of this process");
}

static int check_range(const char *function, const char *base, size_t bytes)
{
    uint64_t page = gpsh_regions_page_bytes(gpsh_regions_host()),
             heap = (uintptr_t)gpsh_heap()->base;
    uint64_t first = (uintptr_t)base;
    if (!base || !bytes || bytes > UINTPTR_MAX - first)
        return gpsh_fail(GPUSHMEM_ERR_INVALID, "%s(%p, %zu): %s cannot be symmetric", function,
                         (const void *)base, bytes,
                         base && bytes ? "what reaches beyond the address space"
                                       : "an empty buffer");
    if (first % page || bytes % page)
        return gpsh_fail(GPUSHMEM_ERR_ALIGNMENT,
                         "%s(%p, %zu): whole pages move into the heap, so address and size must be "
                         "multiples of %" PRIu64 ", as those of mmap and aligned_alloc can be",
                         function, (const void *)base, bytes, page);
    if ((first >= heap ? first - heap < gpsh_heap_bytes() : heap - first < bytes) ||
        gpsh_segment_overlaps(base, bytes))
        return gpsh_fail(GPUSHMEM_ERR_INVALID,
                         "%s(%p, %zu): overlaps memory that is symmetric already", function,
                         (const void *)base, bytes);
    if (gpsh_local_overlaps(base, bytes))
        return gpsh_fail(GPUSHMEM_ERR_INVALID,
                         "%s(%p, %zu): overlaps a buffer of gpushmem_buffer_register, whose pages "
                         "NICs use; call gpushmem_buffer_unregister before",
                         function, (const void *)base, bytes);
    return check_pages(function, base, bytes);
}

// The caller holds the lock.
static int adopted_book(const char *function, char *base, size_t bytes)
{
    if (adopted_overlap(base, bytes))
        return gpsh_fail(GPUSHMEM_ERR_INVALID,
                         "%s(%p, %zu): overlaps a buffer that another thread registers", function,
                         (void *)base, bytes);
    if (n_adopted == MAX_ADOPTED)
        return gpsh_fail(GPUSHMEM_ERR_NO_MEMORY,
                         "%s(%p, %zu): %d buffers are symmetric already, and more cannot be; "
                         "unregister some, or register fewer and larger ones",
                         function, (void *)base, bytes, MAX_ADOPTED);
    adopted[n_adopted++] = (struct gpsh_adopted){.base = base, .bytes = bytes};
    return 0;
}

int gpsh_adopt_claim(const char *function, void *base, size_t bytes)
{
    int status = check_range(function, base, bytes);
    if (status)
        return status;
    pthread_mutex_lock(&lock);
    status = adopted_book(function, base, bytes);
    pthread_mutex_unlock(&lock);
    return status;
}

// ---- There ----

static uint64_t region_offset(const char *block)
{
    return (uint64_t)(block - gpsh_regions_get(gpsh_regions_host()).base);
}

static uint64_t file_offset(const char *block)
{
    return gpsh_regions_file_offset(gpsh_regions_host()) + region_offset(block);
}

static long map_heap(char *at, size_t bytes, const char *block, int kind)
{
    return syscall(SYS_mmap, at, bytes, PROT_READ | PROT_WRITE, kind | MAP_FIXED,
                   gpsh_regions_fd(gpsh_regions_host()), (off_t)file_offset(block));
}

// Written through the file: what cannot be read is an error then, and not a signal. Files of huge
// pages cannot be written. Plain system calls, as in statics.c.
static int move_step(char *at, size_t bytes, char *block)
{
    int fd = gpsh_regions_fd(gpsh_regions_host());
    long wrote = syscall(SYS_pwrite64, fd, at, bytes, (off_t)file_offset(block));
    if (wrote < 0 && errno == EINVAL)
        memcpy(block, at, bytes);
    else if (wrote != (long)bytes)
        return wrote < 0 ? errno : EFAULT;
    return map_heap(at, bytes, block, MAP_SHARED) < 0 ? errno : 0;
}

// Short steps, for other threads' sake, unless pages are larger than that: the memory's, which only
// the failure tells, or the heap's.
static int move_pages(const struct gpsh_adopted *a, char *block, uint64_t *moved)
{
    uint64_t page = gpsh_regions_page_bytes(gpsh_regions_host()),
             step = page > STEP_BYTES ? page : STEP_BYTES;
    int error = 0;
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &old);
    for (*moved = 0; *moved < a->bytes && !error;) {
        uint64_t rest = a->bytes - *moved, bytes = rest < step ? rest : step;
        error = move_step(a->base + *moved, bytes, block + *moved);
        if (error == EINVAL && bytes < rest) {
            step = rest;
            error = 0;
        } else if (!error) {
            *moved += bytes;
        }
    }
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return error;
}

static void drop_spare(struct gpsh_adopted *a)
{
    if (a->spare)
        munmap(a->spare, a->bytes);
    a->spare = NULL;
}

// Taken before it is needed: what cannot go back later stays the heap's.
static int get_spare(const char *function, struct gpsh_adopted *a)
{
    void *spare = mmap(NULL, a->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (spare == MAP_FAILED)
        return gpsh_fail(GPUSHMEM_ERR_NO_MEMORY,
                         "%s(%p): the %" PRIu64
                         " bytes that it takes to move the buffer out of the "
                         "heap cannot be had (%s)",
                         function, (void *)a->base, a->bytes, strerror(errno));
    a->spare = spare;
    return 0;
}

int gpsh_adopt_move(const char *function, void *base, char *block)
{
    uint64_t moved = 0;
    pthread_mutex_lock(&lock);
    struct gpsh_adopted *a = adopted_of(base);
    int status = get_spare(function, a), error = status ? 0 : move_pages(a, block, &moved);
    a->block = moved ? block : NULL; // after a failure half-way undoing needs it, too
    uint64_t bytes = a->bytes;
    pthread_mutex_unlock(&lock);
    if (error)
        status = gpsh_fail(GPUSHMEM_ERR_NO_MEMORY,
                           "%s(%p, %" PRIu64 "): the pages cannot move into the heap (%s)",
                           function, base, bytes, strerror(error));
    return status;
}

int gpsh_adopt_settle(const char *function, void *base)
{
    pthread_mutex_lock(&lock);
    const struct gpsh_adopted *a = adopted_of(base);
    const struct gpsh_segment segment = {.base = a->base,
                                         .bytes = a->bytes,
                                         .offset = region_offset(a->block),
                                         .name = "the registered buffer",
                                         .region = (uint8_t)gpsh_regions_host()};
    pthread_mutex_unlock(&lock);
    return gpsh_segment_add(&segment)
               ? 0
               : gpsh_fail(GPUSHMEM_ERR_NO_MEMORY, "%s(%p): the table of segments is full",
                           function, base);
}

void gpsh_adopt_keep(void *base)
{
    pthread_mutex_lock(&lock);
    drop_spare(adopted_of(base));
    pthread_mutex_unlock(&lock);
}

// ---- And back ----

int gpsh_adopt_prepare_return(const char *function, void *base)
{
    pthread_mutex_lock(&lock);
    int status = get_spare(function, adopted_of(base));
    pthread_mutex_unlock(&lock);
    return status;
}

// A part of the program's addresses that still shows the block: the program may have unmapped some,
// and something else may be there.
struct span {
    const struct gpsh_adopted *of;
    uint64_t first, end;
    bool found;
};

static bool take_span(const struct mapping *m, void *arg)
{
    struct span *s = arg;
    uint64_t at = m->first > s->first ? m->first : s->first;
    uint64_t offset = file_offset(s->of->block) + (at - (uintptr_t)s->of->base);
    if (!mapping_shows(m, gpsh_regions_fd(gpsh_regions_host()), at, offset))
        return true;
    s->first = at;
    s->end = m->end < s->end ? m->end : s->end;
    s->found = true;
    return false;
}

// The first one from `from` on.
static bool next_span(const struct gpsh_adopted *a, uint64_t from, struct span *s)
{
    *s = (struct span){.of = a, .first = from, .end = (uintptr_t)a->base + a->bytes};
    return from < s->end && !mappings_visit(from, s->end, take_span, s) && s->found;
}

static void drop_part(char *from, const char *end)
{
    if (from < end)
        munmap(from, (size_t)(end - from));
}

static void move_back(struct gpsh_adopted *a)
{
    struct span s;
    char *kept = a->spare; // below it nothing of the spare is left
    for (uint64_t from = (uintptr_t)a->base; next_span(a, from, &s); from = s.end) {
        uint64_t at = s.first - (uintptr_t)a->base, bytes = s.end - s.first;
        drop_part(kept, a->spare + at);
        memcpy(a->spare + at, a->block + at, bytes);
        syscall(SYS_mremap, a->spare + at, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, s.first);
        kept = a->spare + at + bytes;
    }
    drop_part(kept, a->spare + a->bytes);
    a->spare = NULL;
}

// The caller holds the lock.
static void adopted_end(struct gpsh_adopted *a)
{
    if (a->block && a->spare) {
        sigset_t all, old;
        sigfillset(&all);
        pthread_sigmask(SIG_BLOCK, &all, &old); // handlers may write to it
        move_back(a);
        pthread_sigmask(SIG_SETMASK, &old, NULL);
    }
    drop_spare(a);
    *a = adopted[--n_adopted];
}

void gpsh_adopt_end(void *base)
{
    if (gpsh_segment_find(base, 1, NULL))
        gpsh_segment_remove(base);
    pthread_mutex_lock(&lock);
    adopted_end(adopted_of(base));
    pthread_mutex_unlock(&lock);
}

bool gpsh_adopted_end_one(char **block)
{
    if (!n_adopted)
        return false;
    char *base = adopted[0].base;
    *block = adopted[0].block;
    if (*block && gpsh_adopt_prepare_return("gpushmem_finalize", base))
        GPSH_LOG(WARN, "heap", "%s: it stays shared memory", gpsh_last_error());
    gpsh_adopt_end(base);
    return true;
}

// ---- Children ----
//
// A forked child would go on sharing the buffers with its parent. What it writes is its own; what
// it has not written to follows the parent.

static void before_fork(void)
{
    pthread_mutex_lock(&lock);
}

static void in_parent(void)
{
    pthread_mutex_unlock(&lock);
}

static void in_child(void)
{
    struct span s;
    int error = errno;
    for (int i = 0; i < n_adopted; i++) {
        const struct gpsh_adopted *a = &adopted[i];
        for (uint64_t from = (uintptr_t)a->base; a->block && next_span(a, from, &s); from = s.end)
            map_heap((char *)(uintptr_t)s.first, s.end - s.first,
                     a->block + (s.first - (uintptr_t)a->base), MAP_PRIVATE);
    }
    n_adopted = 0;
    pthread_mutex_unlock(&lock);
    errno = error;
}

static __attribute__((constructor(102))) void watch_forks(void)
{
    (void)pthread_atfork(before_fork, in_parent, in_child);
}
