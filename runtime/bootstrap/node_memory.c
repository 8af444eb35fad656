// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE // what poll.h needs
#include "bootstrap/node_memory.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bootstrap/bootstrap.h"
#include "core/clock.h"
#include "core/config.h"
#include "core/error.h"

enum { LOOK_MS = 200, PES_PER_CPU = 16 };
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

// As other waits of init: as long as GPUSHMEM_WAIT_TIMEOUT_MS, if that is set, and told meanwhile.
static int await_answer(const struct gpsh_bootstrap *b, uint64_t began_ns)
{
    struct pollfd ready = {.fd = b->line, .events = POLLIN};
    const uint64_t limit_ns = (uint64_t)b->wait_timeout_ms * 1000000;
    bool waited = false;
    int status = 0;
    // Not by the number of looks: each signal of the program ends one.
    while (!status && poll(&ready, 1, LOOK_MS) <= 0) {
        waited = true;
        if (b->waits)
            b->waits(false);
        status = gpsh_bootstrap_check("asking for memory of the node", false);
        if (!status && b->wait_timeout_ms > 0 && gpsh_clock_ns() - began_ns > limit_ns)
            status = gpsh_fail(GPUSHMEM_ERR_TIMEOUT,
                               "the launcher has not answered for %lld ms "
                               "(GPUSHMEM_WAIT_TIMEOUT_MS): is gpushmem run stopped?",
                               (long long)b->wait_timeout_ms);
    }
    if (waited && b->waits)
        b->waits(true);
    return status;
}

// The answer to that question; one to a question that was given up may come before it. *fd: -1 if
// there is none, or no room for a descriptor.
static int receive(const struct gpsh_bootstrap *b, int32_t question,
                   struct gpsh_line_message *answer, int *fd)
{
    const uint64_t began_ns = gpsh_clock_ns();
    for (;;) {
        *fd = -1;
        int status = await_answer(b, began_ns);
        int n = status ? 0 : gpsh_launcher_receive(b->line, answer, fd, 1);
        if (n < 0)
            return gpsh_fail(GPUSHMEM_ERR_SYSTEM,
                             "the launcher does not say where this PE's memory is (%s)",
                             n == -EPIPE ? "it has ended" : strerror(-n));
        if (status || (answer->word == GPSH_LINE_SHARED && answer->c == question))
            return status;
        if (n)
            close(*fd);
    }
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
    static int32_t questions; // of this process; what it was before exec has begun elsewhere
    questions = questions ? questions + 1 : (int32_t)(gpsh_clock_ns() >> 10 & 0xffffff);
    struct gpsh_line_message wish = {.word = GPSH_LINE_SHARE, .a = (int32_t)use, .c = questions},
                             answer;
    *out = (struct gpsh_node_memory){.fd = -1, .part = part};
    if (!is_wanted(b) || part / unit > INT32_MAX)
        return 0;
    wish.b = (int32_t)(part / unit);
    if (gpsh_launcher_send(b->line, &wish, NULL, 0, NULL, 0))
        return 0;
    int status = receive(b, questions, &answer, &out->fd);
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
