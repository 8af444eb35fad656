// SPDX-License-Identifier: BSD-3-Clause
// The memory of other processes. Where a region is a shared mapping of a file (the symmetric heap
// is), the same file is mapped here too, so that a word is written whole; elsewhere
// process_vm_readv and process_vm_writev do the copying.
#define _GNU_SOURCE // syscall
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "softhca.h"

struct shca_map {
    uint32_t key;
    char *base;
    size_t bytes;
    struct shca_map *next;
};

// Whole aligned words where possible, as a NIC writes them: a reader that polls a word never sees
// half of it. Not instrumented, because a race detector must not take DMA for an access of this
// process's threads.
__attribute__((no_sanitize("thread", "address", "undefined"))) void
shca_copy(void *to, const void *from, size_t bytes)
{
    if ((((uintptr_t)to | (uintptr_t)from) & 7) == 0 && bytes <= 64) {
        uint64_t *to_words = to;
        const uint64_t *from_words = from;
        for (; bytes >= 8; bytes -= 8, to_words++, from_words++)
            __atomic_store_n(to_words, __atomic_load_n(from_words, __ATOMIC_RELAXED),
                             __ATOMIC_RELEASE);
        to = to_words;
        from = from_words;
    } else if (bytes == 8 && ((uintptr_t)to & 7) == 0) {
        uint64_t word;
        __builtin_memcpy(&word, from, 8);
        __atomic_store_n((uint64_t *)to, word, __ATOMIC_RELEASE);
        return;
    }
    if (bytes == 4 && ((uintptr_t)to & 3) == 0) {
        uint32_t word;
        __builtin_memcpy(&word, from, 4);
        __atomic_store_n((uint32_t *)to, word, __ATOMIC_RELEASE);
        return;
    }
#if defined(__x86_64__)
    __asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(bytes) : : "memory");
#else
    volatile char *to_bytes = to;
    const volatile char *from_bytes = from;
    while (bytes--)
        *to_bytes++ = *from_bytes++;
#endif
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
}

static struct shca_peer *peer_new(struct shca_segment *segment, int device, int proc)
{
    struct shca_peer *peer = calloc(1, sizeof *peer);
    if (!peer)
        return NULL;
    peer->segment = segment;
    peer->device = device;
    peer->proc = proc;
    peer->pid = atomic_load(&segment->procs[proc].pid);
    peer->own = peer->pid == (uint32_t)getpid();
    peer->start_time = segment->procs[proc].start_time;
    peer->pidfd = (int)syscall(SYS_pidfd_open, (pid_t)peer->pid, 0);
    return peer;
}

// The process that owns that QP. NULL if there is no such QP (yet).
struct shca_peer *shca_peer_get(struct shca_device *device, int remote_device, uint32_t qpn)
{
    struct shca_segment *segment = shca_segment_map(remote_device);
    if (!segment)
        return NULL;
    const struct shca_qp_entry *entry = &segment->qps[qpn & (SHCA_QPS - 1)];
    if (atomic_load(&entry->qpn) != qpn)
        return NULL;
    int proc = (int)entry->proc;
    uint32_t pid = atomic_load(&segment->procs[proc].pid);
    for (struct shca_peer *peer = device->peers; peer; peer = peer->next)
        if (peer->segment == segment && peer->proc == proc && peer->pid == pid &&
            peer->start_time == segment->procs[proc].start_time)
            return peer;
    struct shca_peer *peer = peer_new(segment, remote_device, proc);
    if (peer) {
        peer->next = device->peers;
        device->peers = peer;
    }
    return peer;
}

void shca_packets_taken(struct shca_qp *qp, struct shca_wqe *wqe)
{
    if (wqe->counted || !qp->peer)
        return;
    uint64_t packet = 128u << qp->attr.path_mtu;
    bool atomic =
        wqe->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD || wqe->opcode == IBV_WR_ATOMIC_CMP_AND_SWP;
    uint64_t packets = atomic || !wqe->bytes ? 1 : (wqe->bytes - 1) / packet + 1;
    wqe->counted = true;
    atomic_fetch_add(&qp->peer->segment->qps[qp->attr.dest_qp_num & (SHCA_QPS - 1)].rq_psn,
                     (uint32_t)packets);
}

bool shca_peer_alive(struct shca_peer *peer)
{
    if (atomic_load(&peer->segment->procs[peer->proc].pid) != peer->pid)
        return false;
    if (peer->own)
        return true;
    struct pollfd ended = {.fd = peer->pidfd, .events = POLLIN};
    if (peer->pidfd >= 0)
        return poll(&ended, 1, 0) == 0;
    return shca_start_time(peer->pid) == peer->start_time;
}

static void map_free(struct shca_map *map)
{
    if (map->base)
        munmap(map->base, map->bytes);
    free(map);
}

void shca_peers_free(struct shca_device *device)
{
    while (device->peers) {
        struct shca_peer *peer = device->peers;
        device->peers = peer->next;
        while (peer->maps) {
            struct shca_map *map = peer->maps;
            peer->maps = map->next;
            map_free(map);
        }
        if (peer->pidfd >= 0)
            close(peer->pidfd);
        free(peer);
    }
}

static char *map_file(const struct shca_peer *peer, const struct shca_mr_entry *entry)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%u/fd/%d", peer->pid, entry->file);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0)
        return NULL;
    void *at = mmap(NULL, entry->file_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
                    (off_t)entry->file_offset);
    close(fd);
    return at == MAP_FAILED ? NULL : at;
}

// Regions that are gone are unmapped when the next one is mapped.
static void drop_stale(struct shca_peer *peer)
{
    for (struct shca_map **at = &peer->maps; *at;) {
        struct shca_map *map = *at;
        if (atomic_load(&peer->segment->mrs[map->key >> 16].key) == map->key) {
            at = &map->next;
            continue;
        }
        *at = map->next;
        map_free(map);
    }
}

// Where the address is in this process; NULL if it cannot be mapped.
void *shca_peer_map(struct shca_peer *peer, const struct shca_mr_entry *entry, uint32_t key,
                    uint64_t address)
{
    if (peer->own)
        return (void *)(uintptr_t)address;
    if (entry->file < 0)
        return NULL;
    struct shca_map *map = peer->maps;
    while (map && map->key != key)
        map = map->next;
    if (!map) {
        drop_stale(peer);
        map = calloc(1, sizeof *map);
        if (!map)
            return NULL;
        map->key = key;
        map->bytes = entry->file_bytes;
        map->base = map_file(peer, entry);
        map->next = peer->maps;
        peer->maps = map;
    }
    return map->base ? map->base + (address - entry->file_start) : NULL;
}

static int vm_status(ssize_t moved)
{
    if (moved < 0 && errno == ESRCH)
        return SHCA_NO_ANSWER;
    if (moved < 0 && errno == EPERM) {
        static atomic_flag said = ATOMIC_FLAG_INIT;
        if (!atomic_flag_test_and_set(&said))
            shca_say("this system forbids process_vm_writev between processes of one user (ptrace "
                     "restrictions)");
    }
    return IBV_WC_REM_ACCESS_ERR; // EFAULT: the owner unmapped what it had registered
}

// System calls and not their wrappers, which race detectors intercept: this is DMA, see shca_copy.
int shca_peer_read(struct shca_peer *peer, void *to, uint64_t from, size_t bytes)
{
    while (bytes) {
        struct iovec here = {to, bytes}, there = {(void *)(uintptr_t)from, bytes};
        ssize_t moved = syscall(SYS_process_vm_readv, (pid_t)peer->pid, &here, 1, &there, 1, 0);
        if (moved <= 0)
            return vm_status(moved);
        to = (char *)to + moved;
        from += (uint64_t)moved;
        bytes -= (size_t)moved;
    }
    return IBV_WC_SUCCESS;
}

int shca_peer_write(struct shca_peer *peer, uint64_t to, const void *from, size_t bytes)
{
    while (bytes) {
        struct iovec here = {(void *)(uintptr_t)from, bytes},
                     there = {(void *)(uintptr_t)to, bytes};
        ssize_t moved = syscall(SYS_process_vm_writev, (pid_t)peer->pid, &here, 1, &there, 1, 0);
        if (moved <= 0)
            return vm_status(moved);
        from = (const char *)from + moved;
        to += (uint64_t)moved;
        bytes -= (size_t)moved;
    }
    return IBV_WC_SUCCESS;
}
