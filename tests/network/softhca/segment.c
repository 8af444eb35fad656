// SPDX-License-Identifier: BSD-3-Clause
// The segment: a device's tables in a file that all processes map. The directory is its lock
// (flock), which the kernel releases when a process dies; entries of dead processes are taken back
// by the next one that attaches.
#define _GNU_SOURCE // flock, robust mutexes
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "softhca.h"

enum { NAME = 32 };
#define SEGMENT_MAGIC 0x6163687466736867u

static const char *directory(void)
{
    return shca_settings.dir;
}

// Opens and locks the directory, which must be this user's alone.
static int directory_lock(void)
{
    for (;;) {
        const char *path = directory();
        if (mkdir(path, 0700) && errno != EEXIST) {
            shca_say("cannot make the directory %s: %s (set GPUSHMEM_SOFTHCA_DIR)", path,
                     strerror(errno));
            return -1;
        }
        int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        struct stat status;
        if (fd < 0 && errno == ENOENT)
            continue; // the last user removed it just now
        if (fd < 0 || fstat(fd, &status) || status.st_uid != getuid() || (status.st_mode & 022)) {
            shca_say("%s is no directory that only this user can write to", path);
            if (fd >= 0)
                close(fd);
            return -1;
        }
        flock(fd, LOCK_EX);
        if (!fstat(fd, &status) && status.st_nlink)
            return fd;
        close(fd);
    }
}

static void mutex_init(pthread_mutex_t *mutex)
{
    pthread_mutexattr_t attr;
    pthread_mutexattr_init(&attr);
    pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
    pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(mutex, &attr);
    pthread_mutexattr_destroy(&attr);
}

// The tables stay usable when a process dies in the middle: an entry is written before its key or
// number is.
void shca_lock(pthread_mutex_t *robust)
{
    if (pthread_mutex_lock(robust) == EOWNERDEAD)
        pthread_mutex_consistent(robust);
}

uint64_t shca_start_time(uint32_t pid)
{
    char path[64], text[1024];
    snprintf(path, sizeof path, "/proc/%u/stat", pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    ssize_t n = read(fd, text, sizeof text - 1);
    close(fd);
    text[n > 0 ? n : 0] = 0;
    // Fields from the third on follow the last parenthesis: state first, the start time is
    // field 22.
    char *field = strrchr(text, ')');
    if (field && (field[2] == 'Z' || field[2] == 'X'))
        return 0;
    for (int i = 2; field && i < 22; i++)
        field = strchr(field + 1, ' ');
    return field ? strtoull(field, NULL, 10) : 0;
}

static bool proc_alive(const struct shca_proc *proc)
{
    uint32_t pid = atomic_load(&proc->pid);
    return pid && shca_start_time(pid) == proc->start_time;
}

static int live_procs(struct shca_segment *segment)
{
    int n = 0;
    for (int i = 0; i < SHCA_PROCS; i++)
        n += proc_alive(&segment->procs[i]);
    return n;
}

static int segment_check(struct shca_segment *segment, int device)
{
    if (atomic_load(&segment->magic) == SEGMENT_MAGIC && segment->layout == SHCA_LAYOUT)
        return 0;
    if (atomic_load(&segment->magic)) {
        shca_say("%s/softhca%d.v%d is of something else: remove it", directory(), device,
                 SHCA_LAYOUT);
        return -1;
    }
    mutex_init(&segment->tables);
    mutex_init(&segment->atomics);
    segment->layout = SHCA_LAYOUT;
    segment->next_pd = 1;
    segment->qp_top = segment->mr_top = 1;
    atomic_store(&segment->magic, SEGMENT_MAGIC);
    return 0;
}

// What another version has left behind is in nobody's way.
static void name_of(char name[NAME], int device)
{
    snprintf(name, NAME, "softhca%d.v%d", device, SHCA_LAYOUT);
}

static struct shca_segment *segment_map_at(int directory_fd, int device)
{
    char name[NAME];
    name_of(name, device);
    int fd = openat(directory_fd, name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    struct stat status;
    if (fd < 0 || fstat(fd, &status) ||
        (status.st_size != sizeof(struct shca_segment) &&
         ftruncate(fd, sizeof(struct shca_segment)))) {
        shca_say("cannot open %s/%s: %s", directory(), name, strerror(errno));
        if (fd >= 0)
            close(fd);
        return NULL;
    }
    void *at = mmap(NULL, sizeof(struct shca_segment), PROT_READ | PROT_WRITE,
                    MAP_SHARED | MAP_NORESERVE, fd, 0);
    close(fd);
    if (at == MAP_FAILED)
        return NULL;
    madvise(at, sizeof(struct shca_segment), MADV_DONTDUMP);
    if (!segment_check(at, device))
        return at;
    munmap(at, sizeof(struct shca_segment));
    return NULL;
}

// A segment that was only looked at may have been removed and made anew since; then the old mapping
// stays for whoever still points into it.
static struct shca_segment *segment_of(int directory_fd, int device)
{
    struct shca_device *self = &shca_devices[device];
    char name[NAME];
    struct stat status = {0};
    name_of(name, device);
    if (self->segment && (self->proc >= 0 || (!fstatat(directory_fd, name, &status, 0) &&
                                              status.st_ino == self->segment_inode)))
        return self->segment;
    self->segment = segment_map_at(directory_fd, device);
    if (self->segment && !fstatat(directory_fd, name, &status, 0))
        self->segment_inode = status.st_ino;
    return self->segment;
}

// The segment of a device, for looking at: only attaching makes this process a user of it.
struct shca_segment *shca_segment_map(int device)
{
    int fd = directory_lock();
    if (fd < 0)
        return NULL;
    struct shca_segment *segment = segment_of(fd, device);
    close(fd);
    return segment;
}

static void release_entries(struct shca_segment *segment, uint32_t proc)
{
    for (uint32_t i = 1; i < segment->qp_top; i++)
        if (atomic_load(&segment->qps[i].qpn) && segment->qps[i].proc == proc)
            atomic_store(&segment->qps[i].qpn, 0);
    for (uint32_t i = 1; i < segment->mr_top; i++)
        if (atomic_load(&segment->mrs[i].key) && segment->mrs[i].proc == proc)
            atomic_store(&segment->mrs[i].key, 0);
    for (int i = 0; i < SHCA_MAILS; i++)
        atomic_store(&segment->procs[proc].mails[i].state, SHCA_MAIL_FREE);
    atomic_store(&segment->procs[proc].pid, 0);
}

static int slot_take(struct shca_segment *segment)
{
    for (int i = 0; i < SHCA_PROCS; i++)
        if (atomic_load(&segment->procs[i].pid) && !proc_alive(&segment->procs[i]))
            release_entries(segment, (uint32_t)i);
    for (int i = 0; i < SHCA_PROCS; i++) {
        struct shca_proc *proc = &segment->procs[i];
        if (atomic_load(&proc->pid))
            continue;
        proc->start_time = shca_start_time((uint32_t)getpid());
        atomic_store(&proc->asleep, 0);
        atomic_store(&proc->pid, (uint32_t)getpid());
        return i;
    }
    shca_say("all %d process slots of the device are in use", SHCA_PROCS);
    return -1;
}

int shca_segment_attach(struct shca_device *device)
{
    int fd = directory_lock();
    if (fd < 0)
        return -1;
    if (segment_of(fd, device->index))
        device->proc = slot_take(device->segment);
    close(fd);
    return device->proc < 0 ? -1 : 0;
}

static bool is_attached(const struct shca_device *device)
{
    return device->proc >= 0 &&
           atomic_load(&device->segment->procs[device->proc].pid) == (uint32_t)getpid();
}

static void segment_unlink(int directory_fd, int device)
{
    char name[NAME];
    name_of(name, device);
    unlinkat(directory_fd, name, 0);
}

// Devices whose last user was killed: it could not remove them.
static void sweep(int directory_fd, int own)
{
    for (int device = 0; device < SHCA_DEVICES; device++) {
        char name[NAME];
        name_of(name, device);
        if (device == own || faccessat(directory_fd, name, F_OK, 0))
            continue;
        struct shca_segment *segment = segment_map_at(directory_fd, device);
        if (!segment)
            continue;
        if (!live_procs(segment))
            segment_unlink(directory_fd, device);
        munmap(segment, sizeof *segment);
    }
}

// True if nobody uses the segment any more: the file is gone then.
static bool release(struct shca_device *device)
{
    struct shca_segment *segment = device->segment;
    int fd = directory_lock();
    shca_lock(&segment->tables);
    release_entries(segment, (uint32_t)device->proc);
    pthread_mutex_unlock(&segment->tables);
    if (fd < 0)
        return false;
    bool last = !live_procs(segment);
    if (last) {
        // Whoever still looks at it finds an empty device; the next user makes a new one.
        segment_unlink(fd, device->index);
        sweep(fd, device->index);
        rmdir(directory()); // fails as long as another device is in use
    }
    close(fd);
    return last;
}

void shca_segment_detach(struct shca_device *device)
{
    if (!is_attached(device))
        return;
    if (release(device))
        device->segment = NULL;
    device->proc = -1;
}

static uint32_t next_index(uint32_t *hint, uint32_t room)
{
    *hint = *hint + 1 < room ? *hint + 1 : 1;
    return *hint;
}

struct shca_qp_entry *shca_qp_entry_new(struct shca_device *device, uint32_t pd)
{
    struct shca_segment *segment = device->segment;
    struct shca_qp_entry *found = NULL;
    shca_lock(&segment->tables);
    for (uint32_t tries = 1; tries < SHCA_QPS && !found; tries++) {
        uint32_t i = next_index(&segment->qp_hint, SHCA_QPS);
        struct shca_qp_entry *entry = &segment->qps[i];
        if (atomic_load(&entry->qpn))
            continue;
        found = entry;
        entry->proc = (uint32_t)device->proc;
        entry->pd = pd;
        entry->access = entry->dest_qpn = entry->qkey = 0;
        atomic_store(&entry->state, IBV_QPS_RESET);
        atomic_store(&entry->insulted, 0);
        // The upper bits change each time, so that a stale number meets nobody, and are never 0:
        // numbers 0 and 1 are the specification's own.
        uint32_t lap = 1 + (uint32_t)((shca_now_ns() >> 10) % 511);
        atomic_store(&entry->qpn, lap << 15 | i);
        if (i >= segment->qp_top)
            segment->qp_top = i + 1;
    }
    pthread_mutex_unlock(&segment->tables);
    return found;
}

// The entry is filled by the caller, who writes the key when it is complete.
struct shca_mr_entry *shca_mr_entry_new(struct shca_device *device, uint32_t *key)
{
    struct shca_segment *segment = device->segment;
    struct shca_mr_entry *found = NULL;
    shca_lock(&segment->tables);
    for (uint32_t tries = 1; tries < SHCA_MRS && !found; tries++) {
        uint32_t i = next_index(&segment->mr_hint, SHCA_MRS);
        if (atomic_load(&segment->mrs[i].key))
            continue;
        found = &segment->mrs[i];
        *key = i << 16 | (uint32_t)(shca_random(i, shca_now_ns()) & 0xfffe) | 1;
        found->proc = (uint32_t)device->proc;
        atomic_store(&found->key, i << 16); // taken; no key ends in zeros
        if (i >= segment->mr_top)
            segment->mr_top = i + 1;
    }
    pthread_mutex_unlock(&segment->tables);
    return found;
}

// The program exits with the device open. Its threads may be anywhere, so everything stays where
// they find it, but they make no more passes: the entries are the next process's.
static void abandon(struct shca_device *device)
{
    struct timespec limit;
    clock_gettime(CLOCK_REALTIME, &limit);
    limit.tv_sec++; // exit from within a pass
    bool locked = !pthread_mutex_timedlock(&device->engine_lock, &limit);
    atomic_store(&device->abandoned, true);
    if (locked)
        pthread_mutex_unlock(&device->engine_lock);
    release(device);
}

static __attribute__((destructor)) void leave(void)
{
    for (int i = 0; i < SHCA_DEVICES; i++)
        if (shca_devices[i].segment && is_attached(&shca_devices[i]))
            abandon(&shca_devices[i]);
}
