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

// Readers rely on the size.
enum { SEALS = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL };

static struct {
    struct gpsh_board *shown; // NULL: none
    size_t bytes;
    int fd;
} board = {.fd = -1};

static struct gpsh_board *board_map(int fd, size_t bytes)
{
    void *map = MAP_FAILED;
    errno = gpsh_memory_file_grow(fd, bytes);
    if (!errno && fchmod(fd, S_IRUSR | S_IWUSR) == 0 && fcntl(fd, F_ADD_SEALS, SEALS) == 0)
        map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    return map == MAP_FAILED ? NULL : map;
}

static struct gpsh_sheet sheet_of(const struct gpsh_board_owner *owner)
{
    struct gpsh_sheet sheet = {.n_rings = owner->n_rings,
                               .n_contexts = owner->n_contexts,
                               .n_channels = owner->n_channels,
                               .n_proxies = owner->n_proxies,
                               .n_pes = owner->n_pes,
                               .counts_direct = owner->counts_direct};
    gpsh_sheet_plan(&sheet, sizeof(struct gpsh_board));
    return sheet;
}

static void board_fill(struct gpsh_board *b, const struct gpsh_board_owner *owner)
{
    const char *run = getenv("GPUSHMEM_RUN_PID");
    b->version = GPSH_BOARD_VERSION;
    b->head_bytes = sizeof *b;
    b->pe = owner->pe;
    b->n_pes = owner->n_pes;
    b->sheet = sheet_of(owner);
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
    board.fd = memfd_create(GPSH_BOARD_NAME, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    board.bytes = sheet_of(owner).bytes;
    board.shown = board.fd < 0 ? NULL : board_map(board.fd, board.bytes);
    if (board.shown) {
        board_fill(board.shown, owner);
        if (owner->counts_direct)
            gpsh_direct_counts = (struct gpsh_direct_counts){
                (char *)board.shown + board.shown->sheet.direct, board.shown->sheet.flow_stride};
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
    gpsh_direct_counts.flows = NULL;
    if (board.shown) {
        board.shown->magic = 0; // for readers that have it open
        munmap(board.shown, board.bytes);
    }
    if (board.fd >= 0)
        close(board.fd);
    board.shown = NULL;
    board.fd = -1;
}

char *gpsh_board_flows(int transport, const char *name, size_t *stride)
{
    if (!board.shown || transport >= GPSH_SHEET_TRANSPORTS)
        return NULL;
    struct gpsh_sheet *sheet = &board.shown->sheet;
    snprintf(sheet->transports[transport], sizeof sheet->transports[transport], "%s", name);
    *stride = sheet->flow_stride;
    uint64_t before = sheet->flow_stride * (uint64_t)sheet->n_channels * (uint64_t)transport;
    return (char *)board.shown + sheet->flows + before;
}

struct gpsh_ring_counters *gpsh_board_rings(void)
{
    if (!board.shown)
        return NULL;
    void *rings = (char *)board.shown + board.shown->sheet.rings;
    return rings;
}

const struct gpsh_board *gpsh_board_own(void)
{
    return board.shown;
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
