// SPDX-License-Identifier: BSD-3-Clause
#include "bootstrap/node_memory.h"

#include <limits.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bootstrap/bootstrap.h"
#include "bootstrap/launcher_answer.h"
#include "core/clock.h"
#include "core/config.h"

enum { PES_PER_CPU = 16 };
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

// What the launcher has sent is looked at like anything else that comes from outside.
static bool is_whole(const struct gpsh_bootstrap *b, const struct gpsh_line_message *answer,
                     enum gpsh_line_share use, const struct gpsh_node_memory *memory)
{
    struct stat file;
    return answer->c == (int32_t)use && answer->b == b->node_my_pe && !fstat(memory->fd, &file) &&
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
    struct gpsh_line_message wish = {.word = GPSH_LINE_SHARE, .a = questions, .c = (int32_t)use},
                             answer;
    // As other waits of init.
    const struct gpsh_launcher_wait wait = {.line = b->line,
                                            .what = "asking for memory of the node",
                                            .began_ns = gpsh_clock_ns(),
                                            .limit_ms = b->wait_timeout_ms,
                                            .waits = b->waits};
    *out = (struct gpsh_node_memory){.fd = -1, .part = part};
    if (!is_wanted(b) || part / unit > INT32_MAX)
        return 0;
    wish.b = (int32_t)(part / unit);
    if (gpsh_launcher_send(b->line, &wish, NULL, 0, NULL, 0))
        return 0;
    int fd, n = gpsh_launcher_answer(&wait, GPSH_LINE_SHARED, questions, &answer, &fd, 1);
    if (n <= 0)
        return n;
    out->fd = fd;
    out->at = (uint64_t)b->node_my_pe * part;
    out->id = id_of(out->fd);
    if (out->id && is_whole(b, &answer, use, out))
        return 0;
    close(out->fd);
    *out = (struct gpsh_node_memory){.fd = -1};
    return 0;
}
