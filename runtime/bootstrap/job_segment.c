// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE // memfd_create, F_ADD_SEALS
#include "bootstrap/job_segment.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "core/error.h"
#include "core/memory_file.h"
#include "core/sha256.h"

// VERSION: also of the messages on PEs' lines (core/launcher.h).
enum { MAGIC = 0x47505347, VERSION = 4, MOST_PES = 1 << 20 };
enum { SEALS = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL };

static_assert(sizeof(struct gpsh_job_segment_pe) == 192, "three lines a PE");

// The part that is always mapped.
static size_t books_bytes(int n_pes)
{
    return gpsh_whole_pages(sizeof(struct gpsh_job_segment) +
                            (uint64_t)n_pes * sizeof(struct gpsh_job_segment_pe));
}

// Connection data has queue pair numbers for each other PE, some of them for each context and
// rail. Memory that nobody writes to costs nothing.
static uint64_t round_bytes(int n_pes)
{
    return gpsh_whole_pages((uint64_t)n_pes * (65536 + 256 * (uint64_t)n_pes));
}

// Random, so that two jobs are told apart whatever the machine does with process numbers.
static int name_job(struct gpsh_job_segment *s)
{
    uint64_t number;
    int error = gpsh_random(&number, sizeof number);
    snprintf(s->job_id, sizeof s->job_id, "run-%016llx", (unsigned long long)number);
    return error;
}

struct gpsh_job_segment *gpsh_job_segment_create(int n_pes, int n_nodes, int *fd)
{
    size_t books = books_bytes(n_pes);
    uint64_t round = round_bytes(n_pes);
    int error;
    *fd = memfd_create("gpushmem-job", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (*fd < 0)
        return NULL;
    // The mode counts where somebody opens /proc/PID/fd/N.
    if (fchmod(*fd, 0600) < 0 || ftruncate(*fd, (off_t)(books + 2 * round)) < 0 ||
        fcntl(*fd, F_ADD_SEALS, SEALS) < 0)
        goto err_close;
    struct gpsh_job_segment *s = mmap(NULL, books, PROT_READ | PROT_WRITE, MAP_SHARED, *fd, 0);
    if (s == MAP_FAILED)
        goto err_close;
    s->magic = MAGIC;
    s->version = VERSION;
    s->n_pes = n_pes;
    s->n_nodes = n_nodes;
    s->blobs_at = books;
    s->blobs_bytes = round;
    error = name_job(s);
    if (!error)
        return s;
    munmap(s, books);
    errno = error;

err_close:
    error = errno;
    close(*fd);
    *fd = -1;
    errno = error;
    return NULL;
}

static bool is_sound(const struct gpsh_job_segment *s, uint64_t file_bytes)
{
    return s->n_pes > 0 && s->n_pes <= MOST_PES && s->n_nodes > 0 && s->n_nodes <= s->n_pes &&
           s->blobs_at == books_bytes(s->n_pes) && s->blobs_bytes == round_bytes(s->n_pes) &&
           file_bytes == s->blobs_at + 2 * s->blobs_bytes &&
           memchr(s->job_id, '\0', sizeof s->job_id);
}

struct gpsh_job_segment *gpsh_job_segment_join(int fd, int *n_pes, int *n_nodes)
{
    struct stat st;
    struct gpsh_job_segment head;
    if (fstat(fd, &st) < 0 || (fcntl(fd, F_GET_SEALS) & SEALS) != SEALS ||
        pread(fd, &head, sizeof head, 0) != sizeof head || head.magic != MAGIC) {
        gpsh_fail(GPUSHMEM_ERR_BOOTSTRAP,
                  "descriptor %d is no segment of a job of gpushmem run: was its variable of the "
                  "environment changed?",
                  fd);
        return NULL;
    }
    if (st.st_uid != geteuid()) {
        gpsh_fail(GPUSHMEM_ERR_BOOTSTRAP,
                  "gpushmem run was started by user %u and this process is of user %u: all PEs "
                  "must be of the launcher's user; start gpushmem run as user %u",
                  (unsigned)st.st_uid, (unsigned)geteuid(), (unsigned)geteuid());
        return NULL;
    }
    if (head.version != VERSION || !is_sound(&head, (uint64_t)st.st_size)) {
        gpsh_fail(GPUSHMEM_ERR_BOOTSTRAP,
                  "gpushmem run is of another release than this program's library (version %u of "
                  "the job's segment, the library reads %d): use the program gpushmem that was "
                  "installed with the library",
                  head.version, VERSION);
        return NULL;
    }
    void *s = mmap(NULL, books_bytes(head.n_pes), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (s != MAP_FAILED) {
        *n_pes = head.n_pes;
        *n_nodes = head.n_nodes;
        return s;
    }
    gpsh_fail(GPUSHMEM_ERR_SYSTEM, "the job's segment cannot be mapped: %s", strerror(errno));
    return NULL;
}

void gpsh_job_segment_unmap(struct gpsh_job_segment *s, int n_pes)
{
    munmap(s, books_bytes(n_pes));
}

int gpsh_job_node_of(int pe, int n_pes, int n_nodes)
{
    return (int)((int64_t)pe * n_nodes / n_pes);
}

int gpsh_job_first_pe(int node, int n_pes, int n_nodes)
{
    return (int)(((int64_t)node * n_pes + n_nodes - 1) / n_nodes);
}

void gpsh_job_segment_tell_death(struct gpsh_job_segment *s, int n_pes, int pe, const char *reason)
{
    struct gpsh_job_segment_pe *dead = &s->pe[pe];
    snprintf(dead->reason, sizeof dead->reason, "%s", reason);
    atomic_store(&dead->died, 1);
    atomic_fetch_add(&s->deaths, 1);
    for (int other = 0; other < n_pes; other++)
        gpsh_job_segment_wake(&s->pe[other].news);
}

void gpsh_job_segment_sleep(_Atomic uint32_t *word, uint32_t seen, int ms)
{
    const struct timespec most = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L};
    syscall(SYS_futex, word, FUTEX_WAIT, seen, ms < 0 ? NULL : &most, NULL, 0);
}

void gpsh_job_segment_wake(_Atomic uint32_t *word)
{
    atomic_fetch_add(word, 1);
    syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}
