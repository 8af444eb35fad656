// SPDX-License-Identifier: BSD-3-Clause
// Boards that nobody should trust: their process changes them while they are read.
#define _GNU_SOURCE // memfd_create
#include <criterion/criterion.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/clock.h"
#include "observe/boards.h"
#include "observe/hang_report.h"

enum { PES = 4, READS = 100, SEALS = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL };

static struct gpsh_board *board; // of this process
static int board_fd;
static char job[32];

static void show(const char *name, int seals, uint64_t file_bytes)
{
    struct gpsh_sheet sheet = {.n_rings = 2, .n_channels = 2, .n_proxies = 1, .n_pes = PES};
    gpsh_sheet_plan(&sheet, sizeof *board);
    snprintf(job, sizeof job, "%s-%d", name, (int)getpid());
    board_fd = memfd_create(GPSH_BOARD_NAME, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    cr_assert_geq(board_fd, 0);
    cr_assert_eq(ftruncate(board_fd, (off_t)(sheet.bytes + file_bytes)), 0);
    board = mmap(NULL, sheet.bytes, PROT_READ | PROT_WRITE, MAP_SHARED, board_fd, 0);
    cr_assert_neq((void *)board, MAP_FAILED);
    cr_assert(!seals || !fcntl(board_fd, F_ADD_SEALS, seals));
    *board = (struct gpsh_board){.magic = GPSH_BOARD_MAGIC,
                                 .version = GPSH_BOARD_VERSION,
                                 .head_bytes = sizeof *board,
                                 .pe = 1,
                                 .n_pes = PES,
                                 .pid = (int)getpid(),
                                 .sheet = sheet};
    memcpy(board->job, job, sizeof job);
    memcpy(board->sheet.transports[0], "p2p", sizeof "p2p");
}

static int boards_seen(void)
{
    struct gpsh_boards boards;
    cr_assert_eq(gpsh_boards_read(&boards, gpsh_board_is_of_job, job), 0);
    int n = boards.n;
    gpsh_boards_free(&boards);
    return n;
}

Test(boards, gpsh_boards_read__a_board_as_the_library_makes_it__is_read)
{
    show("sealed", SEALS, 0);
    cr_expect_eq(boards_seen(), 1);
}

Test(boards, gpsh_boards_read__file_that_may_shrink__is_no_board)
{
    show("loose", 0, 0);
    cr_expect_eq(boards_seen(), 0);
}

Test(boards, gpsh_boards_read__file_of_another_size__is_no_board)
{
    show("long", SEALS, 1);
    cr_expect_eq(boards_seen(), 0);
}

Test(boards, gpsh_boards_read__numbers_out_of_range__are_refused)
{
    show("numbers", SEALS, 0);
    for (int i = 0; i < 4; i++) {
        board->pe = (const int32_t[]){-1, PES, INT32_MIN, INT32_MAX}[i];
        cr_expect_eq(boards_seen(), 0, "PE %d", board->pe);
    }
    board->pe = 0;
    board->n_pes = -1;
    cr_expect_eq(boards_seen(), 0);
}

Test(boards, gpsh_boards_read__another_version__is_counted_and_left_out)
{
    struct gpsh_boards boards;
    show("older", 0, 0);
    board->version = GPSH_BOARD_VERSION - 1;
    cr_assert_eq(gpsh_boards_read(&boards, gpsh_board_is_of_job, job), 0);
    cr_expect_eq(boards.n, 0);
    cr_expect_eq(boards.others, 1);
    gpsh_boards_free(&boards);
    cr_assert_eq(gpsh_boards_read(&boards, gpsh_board_is_of_job, "another"), 0);
    cr_expect_eq(boards.others, 0, "it is not of that job");
    gpsh_boards_free(&boards);
}

// ---- Texts ----

static void wait_show(const char *what, const char *text)
{
    struct gpsh_wait_slot *slot = &board->waits[0];
    slot->record.since_ns = 1;
    snprintf(slot->record.what, sizeof slot->record.what, "%s", what);
    snprintf(slot->record.text, sizeof slot->record.text, "%s", text);
    atomic_store(&slot->turn, 2);
}

Test(boards, gpsh_boards_read__control_characters__come_as_escapes)
{
    struct gpsh_boards boards;
    show("clean", SEALS, 0);
    strcpy(board->job, "red\033[31m\n");
    strcpy(board->sheet.transports[0], "\033c");
    wait_show("call\r", " for \033]0;title\a \302\233 \303\274");
    cr_assert_eq(gpsh_boards_read(&boards, gpsh_board_is_of_job, "red\033[31m\n"), 0);
    cr_assert_eq(boards.n, 1);
    const struct gpsh_wait_record *wait = gpsh_board_longest_wait(boards.list[0].board);
    cr_expect_str_eq(boards.list[0].board->job, "red\\x1b[31m\\x0a");
    cr_expect_str_eq(boards.list[0].board->sheet.transports[0], "\\x1bc");
    cr_expect_str_eq(wait->what, "call\\x0d");
    cr_expect_str_eq(wait->text, " for \\x1b]0;title\\x07 \\xc2\\x9b \303\274");
    gpsh_boards_free(&boards);
}

Test(boards, gpsh_board_longest_wait__for_a_kernel__counts_last_and_from_a_second_on)
{
    const uint64_t now_ns = gpsh_clock_ns(), second_ns = 1000000000;
    static struct gpsh_board b;
    struct gpsh_wait_slot *kernel = &b.waits[3], *word = &b.waits[5];
    kernel->record = (struct gpsh_wait_record){.since_ns = now_ns, .awaited = GPSH_AWAITED_KERNEL};
    word->record = (struct gpsh_wait_record){.since_ns = now_ns, .awaited = GPSH_AWAITED_UNKNOWN};
    atomic_store(&kernel->turn, 2);
    cr_expect_null(gpsh_board_longest_wait(&b));
    kernel->record.since_ns -= 2 * second_ns;
    cr_expect_eq(gpsh_board_longest_wait(&b), &kernel->record);
    atomic_store(&word->turn, 2);
    cr_expect_eq(gpsh_board_longest_wait(&b), &word->record);
}

// ---- Changes while it is read ----

static atomic_bool stop;

static void *flip_numbers(void *unused)
{
    volatile struct gpsh_board *b = board;
    for (unsigned i = 0; !atomic_load(&stop); i++) {
        b->pe = i % 2 ? -(1 << 20) : 1;
        b->n_pes = b->sheet.n_pes = i % 3 ? PES : 1 << 19;
        b->sheet.n_channels = i % 5 ? 2 : 1 << 19;
        b->magic = i % 7 ? GPSH_BOARD_MAGIC : 0;
    }
    return unused;
}

static void *flip_texts(void *unused)
{
    for (unsigned i = 0; !atomic_load(&stop); i++) {
        struct gpsh_wait_slot *slot = &board->waits[i % GPSH_BOARD_WAITS];
        memset(slot->record.what, i % 2 ? '\033' : 'x', sizeof slot->record.what);
        memset(slot->record.text, i % 2 ? 'x' : '\t', sizeof slot->record.text);
        slot->record.awaited = (int)(i % 9) - 1;
        slot->record.pe = (int)(i * 7919u);
        slot->record.number = i;
        atomic_store(&slot->turn, 2);
        memset(board->sheet.transports, i % 2 ? 'x' : '\a', sizeof board->sheet.transports);
    }
    return unused;
}

static void check_board(const struct gpsh_board *b)
{
    char text[640];
    struct gpushmem_counters row;
    cr_assert(b->pe >= 0 && b->pe < b->n_pes && gpsh_sheet_sound(&b->sheet, sizeof *b));
    struct gpsh_pe_view *views = calloc((size_t)b->n_pes, sizeof *views);
    const struct gpsh_boards one = {.n = 1, .list = &(struct gpsh_board_copy){.board = (void *)b}};
    gpsh_views_set(views, b->n_pes, &one);
    gpsh_hang_report(views, b->n_pes, text, sizeof text);
    for (const char *c = text; *c; c++)
        cr_assert(*c >= ' ', "the sentence has control character %d", *c);
    for (uint64_t at = 0; gpsh_sheet_next(&b->sheet, b, &at, &row);)
        for (const char *c = row.transport; *c; c++)
            cr_assert(*c >= ' ', "the table has control character %d", *c);
    free(views);
}

Test(boards, gpsh_boards_read__fields_that_change_meanwhile__what_was_checked_is_used)
{
    pthread_t threads[2];
    show("flips", SEALS, 0);
    pthread_create(&threads[0], NULL, flip_numbers, NULL);
    pthread_create(&threads[1], NULL, flip_texts, NULL);
    for (int i = 0, seen = 0; i < READS || (!seen && i < 10 * READS); i++) {
        struct gpsh_boards boards;
        cr_assert_eq(gpsh_boards_read(&boards, gpsh_board_is_of_job, job), 0);
        for (int k = 0; k < 2; k++, gpsh_boards_again(&boards)) {
            for (int b = 0; b < boards.n; b++)
                check_board(boards.list[b].board);
        }
        seen += boards.n;
        gpsh_boards_free(&boards);
    }
    atomic_store(&stop, true);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
}
