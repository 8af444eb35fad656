// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE // F_GET_SEALS
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

#include "core/clock.h"
#include "core/error.h"
#include "core/printable.h"

enum { MOST_PES = 1 << 20, SEALS = F_SEAL_SHRINK | F_SEAL_GROW };

static const char link_start[] = "/memfd:" GPSH_BOARD_NAME;

static bool read_part(int fd, void *to, size_t bytes, size_t at)
{
    size_t got = 0;
    for (ssize_t n = 1; got < bytes && n > 0; got += n > 0 ? (size_t)n : 0)
        n = pread(fd, (char *)to + got, bytes - got, (off_t)(at + got));
    return got == bytes;
}

#define END_TEXT(text)                                                                             \
    do {                                                                                           \
        (text)[sizeof(text) - 1] = '\0';                                                           \
        gpsh_printable(text, sizeof(text));                                                        \
    } while (0)

// A copy of the head, taken as it stands; its texts have an end, and may be printed. Each wait that
// changed meanwhile is left out. Nothing else is known of it yet.
static bool head_read(int fd, struct gpsh_board *copy)
{
    if (!read_part(fd, copy, sizeof *copy, 0))
        return false;
    for (int i = 0; i < GPSH_BOARD_WAITS; i++) {
        uint32_t before = atomic_load(&copy->waits[i].turn), after = 0;
        size_t at = (size_t)((char *)&copy->waits[i].turn - (char *)copy);
        struct gpsh_wait_record *record = &copy->waits[i].record;
        if (!read_part(fd, &after, sizeof after, at) || before != after || before & 1)
            atomic_store(&copy->waits[i].turn, 0);
        END_TEXT(record->what);
        END_TEXT(record->text);
    }
    END_TEXT(copy->job);
    for (int i = 0; i < GPSH_SHEET_TRANSPORTS; i++)
        END_TEXT(copy->sheet.transports[i]);
    return true;
}

// What follows the head: numbers, of which any value will do.
static bool counters_read(int fd, struct gpsh_board *copy)
{
    return read_part(fd, copy + 1, copy->sheet.bytes - sizeof *copy, sizeof *copy);
}

// Descriptors are inherited: a process of this user may have that of a file that somebody else
// made, who became this user by `su`, for example. The file's owner stays who it was.
static bool is_own_file(const struct stat *st)
{
    return S_ISREG(st->st_mode) && st->st_uid == geteuid();
}

static bool board_sound(const struct gpsh_board *b)
{
    return b->magic == GPSH_BOARD_MAGIC && b->pe >= 0 && b->pe < b->n_pes && b->n_pes < MOST_PES;
}

// The file has just the size that the head says, for good.
static bool board_known(const struct gpsh_board *b, int fd, const struct stat *st)
{
    return b->version == GPSH_BOARD_VERSION && b->head_bytes == sizeof *b &&
           b->sheet.n_pes == b->n_pes && gpsh_sheet_sound(&b->sheet, sizeof *b) &&
           (uint64_t)st->st_size == b->sheet.bytes && (fcntl(fd, F_GET_SEALS) & SEALS) == SEALS;
}

// A child of a fork that has not become another program has the descriptor, too.
static bool board_seen(const struct gpsh_boards *boards, const struct gpsh_board *b)
{
    for (int i = 0; i < boards->n; i++) {
        const struct gpsh_board *seen = boards->list[i].board;
        if (!strcmp(seen->job, b->job) && seen->pe == b->pe && seen->pid == b->pid)
            return true;
    }
    return false;
}

// `head` has been read and judged, and is not read again: its process may change it at any time.
static int boards_add(struct gpsh_boards *boards, const struct gpsh_board *head, int fd, pid_t pid)
{
    size_t n = (size_t)boards->n + 1;
    struct gpsh_board_copy *list = realloc(boards->list, n * sizeof *list);
    struct gpsh_board *copy = malloc(head->sheet.bytes);
    boards->list = list ? list : boards->list;
    if (!list || !copy) {
        free(copy);
        return gpsh_fail(GPUSHMEM_ERR_NO_MEMORY, "no memory for what %zu PEs show", n);
    }
    memcpy(copy, head, sizeof *head);
    if (!counters_read(fd, copy)) {
        free(copy);
        return 0;
    }
    list[boards->n++] = (struct gpsh_board_copy){copy, pid, fcntl(fd, F_DUPFD_CLOEXEC, 0)};
    return 0;
}

struct search {
    struct gpsh_boards *boards;
    gpsh_board_wanted *wanted;
    const void *arg;
};

static int take_board(const struct search *s, int fd, pid_t pid)
{
    struct gpsh_board head;
    struct stat st;
    if (fstat(fd, &st) < 0 || !is_own_file(&st) || !head_read(fd, &head) || !board_sound(&head))
        return 0;
    bool wanted = !s->wanted || s->wanted(&head, pid, s->arg);
    if (!board_known(&head, fd, &st)) {
        s->boards->others += wanted && head.version != GPSH_BOARD_VERSION;
        return 0;
    }
    return wanted && !board_seen(s->boards, &head) ? boards_add(s->boards, &head, fd, pid) : 0;
}

static int look_at_link(const struct search *s, int dir, const char *name, pid_t pid)
{
    char target[sizeof link_start];
    ssize_t n = readlinkat(dir, name, target, sizeof target);
    if (n < (ssize_t)sizeof link_start - 1 ||
        memcmp(target, link_start, sizeof link_start - 1) != 0)
        return 0;
    int fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK); // it may be a pipe so called
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

static int by_job_and_pe(const void *a, const void *b)
{
    const struct gpsh_board *left = ((const struct gpsh_board_copy *)a)->board,
                            *right = ((const struct gpsh_board_copy *)b)->board;
    int jobs = strcmp(left->job, right->job);
    return jobs ? jobs : left->pe - right->pe;
}

bool gpsh_board_is_of_job(const struct gpsh_board *board, pid_t pid, const void *job)
{
    char name[sizeof board->job];
    (void)pid;
    snprintf(name, sizeof name, "%s", (const char *)job);
    gpsh_printable(name, sizeof name);
    return strcmp(board->job, name) == 0;
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
    if (out->n)
        qsort(out->list, (size_t)out->n, sizeof *out->list, by_job_and_pe);
    return status;
}

// Who they are stays as it was judged.
void gpsh_boards_again(struct gpsh_boards *boards)
{
    for (int i = 0; i < boards->n; i++) {
        struct gpsh_board *copy = boards->list[i].board, head;
        if (head_read(boards->list[i].fd, &head)) {
            memcpy(copy->waits, head.waits, sizeof copy->waits);
            memcpy(copy->sheet.transports, head.sheet.transports, sizeof copy->sheet.transports);
        }
        (void)counters_read(boards->list[i].fd, copy); // those of an old copy will do
    }
}

bool gpsh_boards_alive(const struct gpsh_boards *boards, int i)
{
    char path[32], program[1];
    uint64_t magic;
    snprintf(path, sizeof path, "/proc/%d/exe", (int)boards->list[i].pid); // a zombie has none
    return pread(boards->list[i].fd, &magic, sizeof magic, 0) == sizeof magic &&
           magic == GPSH_BOARD_MAGIC && readlink(path, program, sizeof program) > 0;
}

void gpsh_boards_free(struct gpsh_boards *boards)
{
    for (int i = 0; i < boards->n; i++) {
        free(boards->list[i].board);
        if (boards->list[i].fd >= 0)
            close(boards->list[i].fd);
    }
    free(boards->list);
    *boards = (struct gpsh_boards){0};
}

static bool for_kernel(const struct gpsh_wait_record *record)
{
    return record->awaited == GPSH_AWAITED_KERNEL;
}

static bool tells_more(const struct gpsh_wait_record *record, const struct gpsh_wait_record *other)
{
    return for_kernel(record) != for_kernel(other) ? for_kernel(other)
                                                   : record->since_ns < other->since_ns;
}

const struct gpsh_wait_record *gpsh_board_longest_wait(const struct gpsh_board *board)
{
    enum { SHOWN_NS = 1000000000 };
    const struct gpsh_wait_record *longest = NULL;
    uint64_t now_ns = gpsh_clock_ns();
    for (int i = 0; i < GPSH_BOARD_WAITS; i++) {
        const struct gpsh_wait_record *record = &board->waits[i].record;
        bool young = for_kernel(record) && record->since_ns + SHOWN_NS > now_ns;
        if (atomic_load(&board->waits[i].turn) && !young &&
            (!longest || tells_more(record, longest)))
            longest = record;
    }
    return longest;
}
