// SPDX-License-Identifier: BSD-3-Clause
// Protection domains and memory regions.
#define _GNU_SOURCE // F_DUPFD_CLOEXEC, DIR
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "softhca.h"

static pthread_mutex_t pds_lock = PTHREAD_MUTEX_INITIALIZER;
static struct shca_pd *pds;

SHCA_EXPORT struct ibv_pd *ibv_alloc_pd(struct ibv_context *context)
{
    struct shca_pd *pd = calloc(1, sizeof *pd);
    if (!pd)
        return NULL;
    struct shca_segment *segment = shca_device_of(context)->segment;
    shca_lock(&segment->tables);
    pd->id = segment->next_pd++;
    pthread_mutex_unlock(&segment->tables);
    pd->ibv.context = context;
    pd->ibv.handle = pd->id;
    shca_context_use(context, 1);
    pthread_mutex_lock(&pds_lock);
    pd->next = pds;
    pds = pd;
    pthread_mutex_unlock(&pds_lock);
    return &pd->ibv;
}

struct ibv_pd *shca_pd_numbered(struct ibv_context *context, uint32_t number)
{
    pthread_mutex_lock(&pds_lock);
    struct shca_pd *pd = pds;
    while (pd && (pd->id != number || shca_device_of(pd->ibv.context) != shca_device_of(context)))
        pd = pd->next;
    pthread_mutex_unlock(&pds_lock);
    return pd ? &pd->ibv : NULL;
}

SHCA_EXPORT int ibv_dealloc_pd(struct ibv_pd *ibv)
{
    struct shca_pd *pd = (struct shca_pd *)ibv;
    if (atomic_load(&pd->users))
        return EBUSY;
    shca_context_use(ibv->context, -1);
    pthread_mutex_lock(&pds_lock);
    struct shca_pd **at = &pds;
    while (*at != pd)
        at = &(*at)->next;
    *at = pd->next;
    pthread_mutex_unlock(&pds_lock);
    free(pd);
    return 0;
}

struct vma {
    unsigned long start, end, offset, inode;
    dev_t device;
    bool shared;
};

// The mapping of this process that holds the whole range.
static bool vma_find(uintptr_t address, size_t bytes, struct vma *vma)
{
    FILE *maps = fopen("/proc/self/maps", "re");
    char line[512], mode[8];
    unsigned major_number, minor_number;
    bool found = false;
    while (maps && !found && fgets(line, sizeof line, maps)) {
        if (sscanf(line, "%lx-%lx %7s %lx %x:%x %lu", &vma->start, &vma->end, mode, &vma->offset,
                   &major_number, &minor_number, &vma->inode) != 7)
            continue;
        vma->device = makedev(major_number, minor_number);
        vma->shared = mode[3] == 's';
        found = address >= vma->start && address < vma->end && bytes <= vma->end - address;
    }
    if (maps)
        fclose(maps);
    return found;
}

static int descriptor_find(const struct vma *vma)
{
    DIR *list = opendir("/proc/self/fd");
    struct dirent *item;
    int found = -1;
    while (list && found < 0 && (item = readdir(list))) {
        char *end;
        struct stat status;
        int fd = (int)strtol(item->d_name, &end, 10);
        if (*end || end == item->d_name || fstat(fd, &status))
            continue;
        if (status.st_ino == vma->inode && status.st_dev == vma->device &&
            (fcntl(fd, F_GETFL) & O_ACCMODE) == O_RDWR)
            found = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    }
    if (list)
        closedir(list);
    return found;
}

// If the range is a shared mapping of a file of which there is a descriptor, peers can map it too.
static int file_behind(struct shca_mr_entry *entry)
{
    struct vma vma;
    entry->file = -1;
    if (entry->kind == SHCA_GPU || !vma_find(entry->address, entry->bytes, &vma) || !vma.shared ||
        !vma.inode)
        return -1;
    entry->file = descriptor_find(&vma);
    entry->file_offset = vma.offset;
    entry->file_start = vma.start;
    entry->file_bytes = vma.end - vma.start;
    return entry->file;
}

// A kernel pins the pages, so every one of them must exist.
static bool range_exists(const void *address, size_t bytes)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), first = (uintptr_t)address & ~(page - 1);
    size_t span = ((uintptr_t)address + bytes - first + page - 1) & ~(page - 1);
    return !msync((void *)first, span, MS_ASYNC) || errno != ENOMEM;
}

static bool fails_now(void)
{
    static atomic_long registered;
    return shca_settings.reg_fail_after >= 0 &&
           atomic_fetch_add(&registered, 1) >= shca_settings.reg_fail_after;
}

static struct ibv_mr *mr_new(struct ibv_pd *pd, struct shca_mr *mr,
                             const struct shca_mr_entry *what)
{
    struct shca_device *device = shca_device_of(pd->context);
    uint32_t key;
    mr->entry = shca_mr_entry_new(device, &key);
    if (!mr->entry) {
        free(mr);
        errno = ENOMEM;
        return NULL;
    }
    mr->entry->pd = ((struct shca_pd *)pd)->id;
    mr->entry->access = what->access;
    mr->entry->kind = what->kind;
    mr->entry->address = what->address;
    mr->entry->iova = what->iova;
    mr->entry->bytes = what->bytes;
    mr->file = file_behind(mr->entry);
    mr->ibv.context = pd->context;
    mr->ibv.pd = pd;
    mr->ibv.length = what->bytes;
    mr->ibv.handle = key >> 16;
    mr->ibv.lkey = mr->ibv.rkey = key;
    atomic_store(&mr->entry->key, key);
    atomic_fetch_add(&((struct shca_pd *)pd)->users, 1);
    shca_context_use(pd->context, 1);
    return &mr->ibv;
}

static bool access_valid(unsigned access)
{
    const unsigned remote_change = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;
    return !(access & remote_change) || (access & IBV_ACCESS_LOCAL_WRITE);
}

static struct ibv_mr *refuse(int error)
{
    errno = error;
    return NULL;
}

SHCA_EXPORT struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *address, size_t bytes,
                                            uint64_t iova, unsigned access)
{
    bool gpu = shca_gpu_owns(address, bytes);
    if (!access_valid(access) || !bytes)
        return refuse(EINVAL);
    if (access & IBV_ACCESS_ON_DEMAND)
        return refuse(EOPNOTSUPP);
    if (fails_now() || (shca_settings.reg_limit && bytes > (size_t)shca_settings.reg_limit))
        return refuse(ENOMEM);
    if (gpu ? !shca_settings.peermem : !range_exists(address, bytes))
        return refuse(EFAULT);
    if (gpu && shca_gpu_use(shca_device_of(pd->context), (uintptr_t)address))
        return refuse(EIO);
    struct shca_mr *mr = calloc(1, sizeof *mr);
    if (!mr)
        return NULL;
    struct shca_mr_entry what = {
        .access = access, .kind = gpu ? SHCA_GPU : SHCA_HOST, .iova = iova, .bytes = bytes};
    what.address = (uintptr_t)address;
    mr->ibv.addr = address;
    return mr_new(pd, mr, &what);
}

#undef ibv_reg_mr
SHCA_EXPORT struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *address, size_t bytes, int access)
{
    return ibv_reg_mr_iova2(pd, address, bytes, (uintptr_t)address, (unsigned)access);
}

#undef ibv_reg_mr_iova
SHCA_EXPORT struct ibv_mr *ibv_reg_mr_iova(struct ibv_pd *pd, void *address, size_t bytes,
                                           uint64_t iova, int access)
{
    return ibv_reg_mr_iova2(pd, address, bytes, iova, (unsigned)access);
}

// ---- dma-bufs of GPU memory that are registered ----

static pthread_mutex_t dmabufs_lock = PTHREAD_MUTEX_INITIALIZER;
static struct shca_mr *dmabufs;

static struct shca_dmabuf dmabuf_of(int fd)
{
    struct stat status;
    off_t bytes = lseek(fd, 0, SEEK_END); // which dma-bufs have for that
    if (bytes < 0 || fstat(fd, &status))
        return (struct shca_dmabuf){0};
    return (struct shca_dmabuf){status.st_dev, status.st_ino, bytes};
}

static void dmabuf_note(struct shca_mr *mr, int fd)
{
    mr->dmabuf = dmabuf_of(fd);
    pthread_mutex_lock(&dmabufs_lock);
    mr->next_dmabuf = dmabufs;
    dmabufs = mr;
    pthread_mutex_unlock(&dmabufs_lock);
}

static void dmabuf_forget(const struct shca_mr *mr)
{
    pthread_mutex_lock(&dmabufs_lock);
    struct shca_mr **at = &dmabufs;
    while (*at && *at != mr)
        at = &(*at)->next_dmabuf;
    if (*at)
        *at = mr->next_dmabuf;
    pthread_mutex_unlock(&dmabufs_lock);
}

char *shca_dmabuf_pointer(int fd, uint64_t offset)
{
    struct shca_dmabuf wanted = dmabuf_of(fd);
    pthread_mutex_lock(&dmabufs_lock);
    const struct shca_mr *mr = wanted.bytes ? dmabufs : NULL;
    while (mr && (mr->dmabuf.inode != wanted.inode || mr->dmabuf.device != wanted.device ||
                  mr->dmabuf.bytes != wanted.bytes))
        mr = mr->next_dmabuf;
    uint64_t first = mr ? mr->entry->address - (uintptr_t)mr->ibv.addr : 0;
    pthread_mutex_unlock(&dmabufs_lock);
    return mr ? (char *)(uintptr_t)(first + offset) : NULL;
}

// A dma-buf of a GPU can only be reached through the pointer it was made from, which by convention
// is the iova. Any other file that can be mapped (a udmabuf, a memfd) stands in for one in host
// memory.
static int dmabuf_place(struct shca_mr *mr, struct shca_mr_entry *what, uint64_t offset, int fd)
{
    if (shca_gpu_owns((void *)(uintptr_t)what->iova, what->bytes)) {
        what->kind = SHCA_GPU;
        what->address = what->iova;
        return 0;
    }
    struct stat status;
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), start = offset & ~(page - 1);
    if (fstat(fd, &status))
        return EBADF;
    if ((uint64_t)status.st_size < offset + what->bytes)
        return EINVAL;
    mr->mapped_bytes = offset - start + what->bytes;
    mr->mapped = mmap(NULL, mr->mapped_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)start);
    if (mr->mapped == MAP_FAILED)
        return EINVAL;
    what->kind = SHCA_HOST;
    what->address = (uintptr_t)mr->mapped + (offset - start);
    return 0;
}

SHCA_EXPORT struct ibv_mr *ibv_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t bytes,
                                             uint64_t iova, int fd, int access)
{
    if (!shca_settings.dmabuf)
        return refuse(EOPNOTSUPP);
    if (!access_valid((unsigned)access) || !bytes)
        return refuse(EINVAL);
    if (fails_now())
        return refuse(ENOMEM);
    struct shca_mr *mr = calloc(1, sizeof *mr);
    if (!mr)
        return NULL;
    struct shca_mr_entry what = {.access = (uint32_t)access, .iova = iova, .bytes = bytes};
    mr->ibv.addr = (void *)(uintptr_t)offset;
    int error = dmabuf_place(mr, &what, offset, fd);
    if (!error && what.kind == SHCA_GPU && shca_gpu_use(shca_device_of(pd->context), iova))
        error = EIO;
    if (error) {
        free(mr);
        return refuse(error);
    }
    struct ibv_mr *made = mr_new(pd, mr, &what);
    if (made && what.kind == SHCA_GPU)
        dmabuf_note(mr, fd);
    return made;
}

// After it nothing touches the memory: waits for engines in the middle of an access, but not for
// dead ones.
SHCA_EXPORT int ibv_dereg_mr(struct ibv_mr *ibv)
{
    struct shca_mr *mr = (struct shca_mr *)ibv;
    dmabuf_forget(mr);
    atomic_store(&mr->entry->key, ibv->rkey & 0xffff0000u);
    for (uint64_t until = shca_now_ns() + 1000000000u;
         atomic_load(&mr->entry->users) && shca_now_ns() < until;)
        sched_yield();
    if (atomic_load(&mr->entry->users)) // an engine was killed in the middle of one
        atomic_store(&mr->entry->users, 0);
    atomic_store(&mr->entry->key, 0);
    if (mr->file >= 0)
        close(mr->file);
    if (mr->mapped)
        munmap(mr->mapped, mr->mapped_bytes);
    atomic_fetch_sub(&((struct shca_pd *)ibv->pd)->users, 1);
    shca_context_use(ibv->context, -1);
    free(mr);
    return 0;
}

SHCA_EXPORT int ibv_rereg_mr(struct ibv_mr *mr, int flags, struct ibv_pd *pd, void *address,
                             size_t bytes, int access)
{
    errno = EOPNOTSUPP;
    return IBV_REREG_MR_ERR_INPUT;
}

// The count goes up before the key is looked at, and dereg clears the key before it looks at the
// count.
struct shca_mr_entry *shca_mr_begin(struct shca_segment *segment, uint32_t key)
{
    uint32_t index = key >> 16;
    if (!index || index >= SHCA_MRS || !(key & 1))
        return NULL;
    struct shca_mr_entry *entry = &segment->mrs[index];
    atomic_fetch_add(&entry->users, 1);
    if (atomic_load(&entry->key) == key)
        return entry;
    atomic_fetch_sub(&entry->users, 1);
    return NULL;
}

void shca_mr_end(struct shca_mr_entry *entry)
{
    atomic_fetch_sub(&entry->users, 1);
}
