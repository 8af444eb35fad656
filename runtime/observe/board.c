// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE // memfd_create
#include "observe/board.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/error.h"
#include "core/memory_file.h"

static struct {
    struct gpsh_board *shown; // NULL: none
    int fd;
} board = {.fd = -1};

static struct gpsh_board *board_map(int fd)
{
    void *map = MAP_FAILED;
    errno = gpsh_memory_file_grow(fd, sizeof(struct gpsh_board));
    if (!errno && fchmod(fd, S_IRUSR | S_IWUSR) == 0)
        map = mmap(NULL, sizeof(struct gpsh_board), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    return map == MAP_FAILED ? NULL : map;
}

static void board_fill(struct gpsh_board *b, const struct gpsh_board_owner *owner)
{
    const char *run = getenv("GPUSHMEM_RUN_PID");
    b->version = GPSH_BOARD_VERSION;
    b->bytes = sizeof *b;
    b->pe = owner->pe;
    b->n_pes = owner->n_pes;
    b->pid = (int32_t)getpid();
    b->run_pid = run ? atoi(run) : 0;
    b->began_ns = gpsh_clock_ns();
    snprintf(b->job, sizeof b->job, "%s", owner->job);
    atomic_thread_fence(memory_order_release);
    b->magic = GPSH_BOARD_MAGIC; // a reader that sees it sees the rest
}

int gpsh_board_open(const struct gpsh_board_owner *owner)
{
    gpsh_board_close();
    board.fd = memfd_create(GPSH_BOARD_NAME, MFD_CLOEXEC);
    board.shown = board.fd < 0 ? NULL : board_map(board.fd);
    if (board.shown) {
        board_fill(board.shown, owner);
        return 0;
    }
    int error = errno;
    gpsh_board_close();
    return gpsh_fail(GPUSHMEM_ERR_SYSTEM,
                     "no memory file for `gpushmem stat` and reports of hangs: %s",
                     strerror(error));
}

void gpsh_board_close(void)
{
    if (board.shown)
        munmap(board.shown, sizeof *board.shown);
    if (board.fd >= 0)
        close(board.fd);
    board.shown = NULL;
    board.fd = -1;
}

static int wait_take(struct gpsh_wait_slot *slots)
{
    for (int i = 0; i < GPSH_BOARD_WAITS; i++) {
        uint32_t nobody = 0;
        if (atomic_compare_exchange_strong(&slots[i].taken, &nobody, 1))
            return i + 1;
    }
    return 0;
}

// Readers take a record whose turn is even, and was the same before and after they read it.
void gpsh_board_show_wait(int *slot, const struct gpsh_wait_record *record)
{
    if (!board.shown)
        return;
    if (!*slot)
        *slot = wait_take(board.shown->waits);
    if (!*slot)
        return;
    struct gpsh_wait_slot *s = &board.shown->waits[*slot - 1];
    atomic_fetch_or(&s->turn, 1);
    atomic_thread_fence(memory_order_seq_cst);
    s->record = *record;
    atomic_fetch_add(&s->turn, 1);
}

void gpsh_board_end_wait(int slot)
{
    if (!board.shown || !slot)
        return;
    struct gpsh_wait_slot *s = &board.shown->waits[slot - 1];
    atomic_store(&s->turn, 0);
    atomic_store(&s->taken, 0);
}
