// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE // fstatat
#include "observe/boards.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/error.h"

enum { MOST_PES = 1 << 20, SHEET_FIXED = offsetof(struct gpsh_sheet, transports) };

static const char link_start[] = "/memfd:" GPSH_BOARD_NAME;

static bool read_whole(int fd, void *to, size_t bytes)
{
    size_t got = 0;
    for (ssize_t n = 1; got < bytes && n > 0; got += n > 0 ? (size_t)n : 0)
        n = pread(fd, (char *)to + got, bytes - got, (off_t)got);
    return got == bytes;
}

// A copy of `bytes`, taken as it stands. Each wait that changed meanwhile is left out.
static bool board_copy(int fd, struct gpsh_board *copy, size_t bytes)
{
    if (!read_whole(fd, copy, bytes))
        return false;
    for (int i = 0; i < GPSH_BOARD_WAITS; i++) {
        uint32_t before = atomic_load(&copy->waits[i].turn), after = 0;
        off_t at = (off_t)((char *)&copy->waits[i].turn - (char *)copy);
        bool read = pread(fd, &after, sizeof after, at) == sizeof after;
        struct gpsh_wait_record *record = &copy->waits[i].record;
        if (!read || before != after || before & 1)
            atomic_store(&copy->waits[i].turn, 0);
        record->what[sizeof record->what - 1] = '\0';
        record->text[sizeof record->text - 1] = '\0';
    }
    copy->job[sizeof copy->job - 1] = '\0';
    for (int i = 0; i < GPSH_SHEET_TRANSPORTS; i++)
        copy->sheet.transports[i][GPSH_SHEET_NAME - 1] = '\0';
    return true;
}

static bool board_sound(const struct gpsh_board *b)
{
    return b->magic == GPSH_BOARD_MAGIC && b->pe >= 0 && b->pe < b->n_pes && b->n_pes < MOST_PES;
}

static bool board_known(const struct gpsh_board *b)
{
    return b->version == GPSH_BOARD_VERSION && b->head_bytes == sizeof *b &&
           b->sheet.n_pes == b->n_pes && gpsh_sheet_sound(&b->sheet, sizeof *b);
}

// A child of a fork that has not become another program has the descriptor, too.
static bool board_seen(const struct gpsh_boards *boards, const struct gpsh_board *b)
{
    for (int i = 0; i < boards->n; i++) {
        const struct gpsh_board *seen = boards->list[i];
        if (!strcmp(seen->job, b->job) && seen->pe == b->pe && seen->pid == b->pid)
            return true;
    }
    return false;
}

static int boards_add(struct gpsh_boards *boards, const struct gpsh_board *b, int fd, pid_t pid)
{
    size_t n = (size_t)boards->n + 1;
    struct gpsh_board **list = realloc(boards->list, n * sizeof *list);
    boards->list = list ? list : boards->list;
    pid_t *pids = realloc(boards->pids, n * sizeof *pids);
    boards->pids = pids ? pids : boards->pids;
    int *fds = realloc(boards->fds, n * sizeof *fds);
    boards->fds = fds ? fds : boards->fds;
    struct gpsh_board *copy = malloc(b->sheet.bytes);
    if (!list || !pids || !fds || !copy) {
        free(copy);
        return gpsh_fail(GPUSHMEM_ERR_NO_MEMORY, "no memory for what %zu PEs show", n);
    }
    // It ended meanwhile, or its file is shorter than it says.
    if (!board_copy(fd, copy, b->sheet.bytes) ||
        memcmp(&copy->sheet, &b->sheet, SHEET_FIXED) != 0) {
        free(copy);
        return 0;
    }
    list[n - 1] = copy;
    pids[n - 1] = pid;
    fds[n - 1] = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    boards->n = (int)n;
    return 0;
}

struct search {
    struct gpsh_boards *boards;
    gpsh_board_wanted *wanted;
    const void *arg;
};

static int take_board(const struct search *s, int fd, pid_t pid)
{
    struct gpsh_board copy;
    if (!board_copy(fd, &copy, sizeof copy) || !board_sound(&copy))
        return 0;
    if (!board_known(&copy)) {
        s->boards->others++;
        return 0;
    }
    bool wanted = !s->wanted || s->wanted(&copy, pid, s->arg);
    return wanted && !board_seen(s->boards, &copy) ? boards_add(s->boards, &copy, fd, pid) : 0;
}

static int look_at_link(const struct search *s, int dir, const char *name, pid_t pid)
{
    char target[sizeof link_start];
    ssize_t n = readlinkat(dir, name, target, sizeof target);
    if (n < (ssize_t)sizeof link_start - 1 ||
        memcmp(target, link_start, sizeof link_start - 1) != 0)
        return 0;
    int fd = openat(dir, name, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0; // it has ended meanwhile
    int status = take_board(s, fd, pid);
    close(fd);
    return status;
}

static int look_at_process(const struct search *s, int proc, pid_t pid)
{
    char path[32];
    struct stat st;
    snprintf(path, sizeof path, "%d", (int)pid);
    if (fstatat(proc, path, &st, 0) < 0 || st.st_uid != geteuid())
        return 0;
    snprintf(path, sizeof path, "%d/fd", (int)pid);
    int fd = openat(proc, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC), status = 0;
    DIR *links = fd < 0 ? NULL : fdopendir(fd);
    if (!links) {
        if (fd >= 0)
            close(fd);
        return 0; // it has ended, or does not let itself be looked at
    }
    for (const struct dirent *e; !status && (e = readdir(links));)
        if (isdigit((unsigned char)e->d_name[0]))
            status = look_at_link(s, dirfd(links), e->d_name, pid);
    closedir(links);
    return status;
}

static bool is_before(const struct gpsh_board *a, const struct gpsh_board *b)
{
    int jobs = strcmp(a->job, b->job);
    return jobs < 0 || (jobs == 0 && a->pe < b->pe);
}

// /proc lists processes in about the order of their start, so that most are in their place.
static void boards_sort(struct gpsh_boards *boards)
{
    for (int i = 1; i < boards->n; i++) {
        struct gpsh_board *board = boards->list[i];
        pid_t pid = boards->pids[i];
        int fd = boards->fds[i], at = i;
        for (; at > 0 && is_before(board, boards->list[at - 1]); at--) {
            boards->list[at] = boards->list[at - 1];
            boards->pids[at] = boards->pids[at - 1];
            boards->fds[at] = boards->fds[at - 1];
        }
        boards->list[at] = board;
        boards->pids[at] = pid;
        boards->fds[at] = fd;
    }
}

bool gpsh_board_is_of_job(const struct gpsh_board *board, pid_t pid, const void *job)
{
    (void)pid;
    return strcmp(board->job, job) == 0;
}

int gpsh_boards_read(struct gpsh_boards *out, gpsh_board_wanted *wanted, const void *arg)
{
    *out = (struct gpsh_boards){0};
    const struct search search = {out, wanted, arg};
    DIR *proc = opendir("/proc");
    if (!proc)
        return gpsh_fail(GPUSHMEM_ERR_SYSTEM,
                         "/proc cannot be read (%s), so that PEs are not found; mount it",
                         strerror(errno));
    int status = 0;
    for (const struct dirent *e; !status && (e = readdir(proc));)
        if (isdigit((unsigned char)e->d_name[0]))
            status = look_at_process(&search, dirfd(proc), (pid_t)atoi(e->d_name));
    closedir(proc);
    boards_sort(out);
    return status;
}

void gpsh_boards_again(struct gpsh_boards *boards)
{
    for (int i = 0; i < boards->n; i++) {
        struct gpsh_sheet sheet = boards->list[i]->sheet;
        bool read = board_copy(boards->fds[i], boards->list[i], sheet.bytes);
        boards->list[i]->sheet = sheet; // what was checked
        (void)read;                     // a part may be older
    }
}

bool gpsh_boards_alive(const struct gpsh_boards *boards, int i)
{
    char path[32], program[1];
    uint64_t magic;
    snprintf(path, sizeof path, "/proc/%d/exe", (int)boards->pids[i]); // a zombie has none
    return pread(boards->fds[i], &magic, sizeof magic, 0) == sizeof magic &&
           magic == GPSH_BOARD_MAGIC && readlink(path, program, sizeof program) > 0;
}

void gpsh_boards_free(struct gpsh_boards *boards)
{
    for (int i = 0; i < boards->n; i++) {
        free(boards->list[i]);
        if (boards->fds && boards->fds[i] >= 0)
            close(boards->fds[i]);
    }
    free(boards->fds);
    free(boards->list);
    free(boards->pids);
    *boards = (struct gpsh_boards){0};
}

const struct gpsh_wait_record *gpsh_board_longest_wait(const struct gpsh_board *board)
{
    const struct gpsh_wait_record *longest = NULL;
    for (int i = 0; i < GPSH_BOARD_WAITS; i++) {
        const struct gpsh_wait_slot *slot = &board->waits[i];
        if (atomic_load(&slot->turn) && (!longest || slot->record.since_ns < longest->since_ns))
            longest = &slot->record;
    }
    return longest;
}
