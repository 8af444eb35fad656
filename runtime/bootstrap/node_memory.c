// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE // MSG_CMSG_CLOEXEC
#include "bootstrap/node_memory.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bootstrap/bootstrap.h"
#include "core/clock.h"
#include "core/config.h"
#include "core/error.h"

enum { LOOK_MS = 200, PATIENCE_MS = 60000, PES_PER_CPU = 16 };
enum { SHARED_AUTO, SHARED_ON, SHARED_OFF }; // GPUSHMEM_TEST_SHARED_FILE

// Pages are added to a file under a lock: processors that touch their heaps for the first time get
// no more than some 5 GB/s in one file, and ten times that in files of their own. Where many PEs
// share a processor they would wait for it anyway, and what a mapping of each by each costs counts.
static bool is_wanted(const struct gpsh_bootstrap *b)
{
    long cpus = sysconf(_SC_NPROCESSORS_ONLN);
    int64_t choice = gpsh_settings()->shared_file;
    bool many = b->node_n_pes > PES_PER_CPU * (cpus > 0 ? cpus : 1);
    return b->launched_by_us && b->node_n_pes > 1 && choice != SHARED_OFF &&
           (many || choice == SHARED_ON);
}

static int await_answer(int line)
{
    struct pollfd ready = {.fd = line, .events = POLLIN};
    // Not by the number of looks: each signal of the program ends one.
    const uint64_t deadline_ns = gpsh_clock_ns() + PATIENCE_MS * UINT64_C(1000000);
    while (poll(&ready, 1, LOOK_MS) <= 0) {
        int status = gpsh_bootstrap_check("asking for memory of the node", false);
        if (status < 0)
            return status;
        if (gpsh_clock_ns() > deadline_ns)
            return gpsh_fail(GPUSHMEM_ERR_TIMEOUT,
                             "the launcher has not answered for %d s: is gpushmem run stopped?",
                             PATIENCE_MS / 1000);
    }
    return 0;
}

// *fd: -1 if there is none, or no room for a descriptor.
static int receive(int line, struct gpsh_line_message *answer, int *fd)
{
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control;
    struct iovec part = {.iov_base = answer, .iov_len = sizeof *answer};
    struct msghdr header = {.msg_iov = &part,
                            .msg_iovlen = 1,
                            .msg_control = &control,
                            .msg_controllen = sizeof control.bytes};
    ssize_t got;
    while ((got = recvmsg(line, &header, MSG_CMSG_CLOEXEC)) < 0 && errno == EINTR)
        continue;
    const struct cmsghdr *c = got < 0 ? NULL : CMSG_FIRSTHDR(&header);
    *fd = -1;
    if (c && c->cmsg_type == SCM_RIGHTS && c->cmsg_len == CMSG_LEN(sizeof(int)))
        memcpy(fd, CMSG_DATA(c), sizeof(int));
    if (got == sizeof *answer && answer->word == GPSH_LINE_SHARED)
        return 0;
    if (*fd >= 0)
        close(*fd);
    return gpsh_fail(GPUSHMEM_ERR_SYSTEM,
                     "the launcher does not say where this PE's memory is (%s)",
                     got < 0 ? strerror(errno) : "is it of another release?");
}

// What the launcher has sent is looked at like anything else that comes from outside.
static bool is_whole(const struct gpsh_bootstrap *b, const struct gpsh_line_message *answer,
                     enum gpsh_line_share use, const struct gpsh_node_memory *memory)
{
    struct stat file;
    return answer->a == (int32_t)use && answer->b == b->node_my_pe && !fstat(memory->fd, &file) &&
           file.st_size >= 0 && (uint64_t)file.st_size / memory->part >= (uint64_t)b->node_n_pes;
}

// 0: none.
static uint32_t id_of(int fd)
{
    struct stat file;
    return fstat(fd, &file) ? 0 : (uint32_t)file.st_ino;
}

int gpsh_node_memory_ask(const struct gpsh_bootstrap *b, enum gpsh_line_share use, uint64_t bytes,
                         struct gpsh_node_memory *out)
{
    const uint64_t unit = GPSH_SHARE_UNIT, round = 2 << 20;
    const uint64_t part = (bytes + round - 1) / round * round;
    struct gpsh_line_message wish = {.word = GPSH_LINE_SHARE, .a = (int32_t)use}, answer;
    *out = (struct gpsh_node_memory){.fd = -1, .part = part};
    if (!is_wanted(b) || part / unit > INT32_MAX)
        return 0;
    wish.b = (int32_t)(part / unit);
    if (gpsh_launcher_send(b->line, &wish, NULL, 0, NULL, 0))
        return 0;
    int status = await_answer(b->line);
    if (!status)
        status = receive(b->line, &answer, &out->fd);
    if (status || out->fd < 0)
        return status;
    out->at = (uint64_t)b->node_my_pe * part;
    out->id = id_of(out->fd);
    if (out->id && is_whole(b, &answer, use, out))
        return 0;
    close(out->fd);
    *out = (struct gpsh_node_memory){.fd = -1};
    return 0;
}
