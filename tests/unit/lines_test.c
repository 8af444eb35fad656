// SPDX-License-Identifier: BSD-3-Clause
// The launcher's ends of the lines, with this process as the PEs.
#define _POSIX_C_SOURCE 200809L
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lines.h"

enum { N_PES = 2, MOST_QUEUED = 4096, ENOUGH = 100000 };

static struct gpsh_lines lines;
static int pe_ends[N_PES], heard[N_PES];

static void setup(void)
{
    cr_assert(eq(int, gpsh_lines_open(&lines, N_PES, 1, pe_ends), 0));
}

static void teardown(void)
{
    for (int pe = 0; pe < N_PES; pe++)
        close(pe_ends[pe]);
}

static bool say(int pe, int flags)
{
    const struct gpsh_line_message message = {.word = GPSH_LINE_CALL};
    return send(pe_ends[pe], &message, sizeof(message), MSG_NOSIGNAL | flags) > 0;
}

static void count(int pe, const struct gpsh_line_message *message, const char *text, void *arg)
{
    heard[pe]++;
}

// As one that says more than the launcher can take.
static void count_and_say_more(int pe, const struct gpsh_line_message *message, const char *text,
                               void *arg)
{
    count(pe, message, text, arg);
    if (pe == 0 && heard[0] < ENOUGH)
        say(0, 0);
}

TestSuite(lines, .init = setup, .fini = teardown, .timeout = 20);

Test(lines, read__a_pe_floods__others_are_heard)
{
    say(0, 0);
    say(1, 0);
    gpsh_lines_read(&lines, count_and_say_more, NULL);
    cr_assert(eq(int, heard[1], 1));
    cr_assert(lt(int, heard[0], ENOUGH));
    int before = heard[0];
    gpsh_lines_read(&lines, count_and_say_more, NULL);
    cr_assert(gt(int, heard[0], before));
}

Test(lines, read__as_much_as_the_buffer_takes__all_in_one_visit)
{
    int said = 0;
    while (said < MOST_QUEUED && say(0, MSG_DONTWAIT))
        said++;
    gpsh_lines_read(&lines, count, NULL);
    cr_assert(lt(int, said, MOST_QUEUED));
    cr_assert(eq(int, heard[0], said));
}

Test(lines, read__larger_buffer_and_a_pe_that_has_ended__nothing_is_lost)
{
    int bytes = 4 << 20, said = 0;
    setsockopt(pe_ends[0], SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
    while (said < MOST_QUEUED && say(0, MSG_DONTWAIT))
        said++;
    close(pe_ends[0]);
    pe_ends[0] = -1;
    for (int visits = 0; visits < 64; visits++)
        gpsh_lines_read(&lines, count, NULL);
    cr_assert(eq(int, heard[0], said));
}

static void tell(int pe, struct gpsh_line_message message, int fd)
{
    cr_assert(eq(int, gpsh_launcher_send(pe_ends[pe], &message, NULL, 0, &fd, fd >= 0), 0));
}

// The round of the descriptors that a PE has been given; 0: none are there.
static int given(int pe)
{
    struct gpsh_line_message answer = {.a = 0};
    bool is = recv(pe_ends[pe], &answer, sizeof(answer), MSG_DONTWAIT) == sizeof(answer);
    return is && answer.word == GPSH_LINE_GIVEN ? answer.a : 0;
}

Test(lines, take__of_the_next_round__waits_for_those_and_never_gets_earlier_ones)
{
    int fd = STDIN_FILENO;
    tell(0, (struct gpsh_line_message){.word = GPSH_LINE_GIVE, .a = 1}, fd);
    tell(1, (struct gpsh_line_message){.word = GPSH_LINE_TAKE, .a = 1, .b = 0, .c = 1}, -1);
    gpsh_lines_read(&lines, count, NULL);
    cr_assert(eq(int, given(1), 1));
    tell(1, (struct gpsh_line_message){.word = GPSH_LINE_TAKE, .a = 2, .b = 0, .c = 1}, -1);
    gpsh_lines_read(&lines, count, NULL);
    cr_assert(eq(int, given(1), 0));
    tell(0, (struct gpsh_line_message){.word = GPSH_LINE_GIVE, .a = 2}, fd);
    gpsh_lines_read(&lines, count, NULL);
    cr_assert(eq(int, given(1), 2));
}

// ---- Files of a node ----

static void ask(int pe, int use, int units)
{
    tell(pe, (struct gpsh_line_message){.word = GPSH_LINE_SHARE, .b = units, .c = use}, -1);
    gpsh_lines_read(&lines, count, NULL);
}

// The file in which a PE has been given its part, for the caller to close; -1: it has been told
// that there is none; -2: it has not been told anything.
static int shared(int pe)
{
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control;
    struct gpsh_line_message answer = {.b = -1};
    struct iovec part = {.iov_base = &answer, .iov_len = sizeof(answer)};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = &control,
                             .msg_controllen = sizeof(control)};
    if (recvmsg(pe_ends[pe], &message, MSG_DONTWAIT) != sizeof(answer))
        return -2;
    cr_assert(eq(int, answer.word, GPSH_LINE_SHARED));
    cr_assert(eq(int, answer.b, pe));
    const struct cmsghdr *c = CMSG_FIRSTHDR(&message);
    int fd = -1;
    if (c)
        memcpy(&fd, CMSG_DATA(c), sizeof(fd));
    return fd;
}

static struct stat stat_of(int fd)
{
    struct stat file = {0};
    cr_assert(eq(int, fstat(fd, &file), 0));
    return file;
}

Test(lines, share__one_size__one_file_with_a_part_for_each_that_cannot_shrink)
{
    ask(0, GPSH_SHARE_HEAP, 3);
    ask(1, GPSH_SHARE_HEAP, 3);
    int fds[] = {shared(0), shared(1)};
    struct stat first = stat_of(fds[0]);
    cr_expect(eq(ulong, stat_of(fds[1]).st_ino, first.st_ino));
    cr_expect(eq(long, first.st_size, 2 * 3 * GPSH_SHARE_UNIT));
    cr_expect(lt(int, ftruncate(fds[1], 0), 0));
    cr_expect(eq(int, lines.lines[0].files[GPSH_SHARE_HEAP].fd, -1), "the launcher keeps nothing");
    close(fds[0]);
    close(fds[1]);
}

Test(lines, share__another_size_or_nonsense__no_part)
{
    ask(0, GPSH_SHARE_STATIC, 3);
    ask(1, GPSH_SHARE_STATIC, 4);
    close(shared(0));
    cr_expect(eq(int, shared(1), -1));
    cr_expect(eq(int, lines.lines[0].files[GPSH_SHARE_STATIC].fd, -1), "nor is it kept for that");
    ask(1, GPSH_SHARES, 3);
    ask(1, -1, 3);
    ask(1, GPSH_SHARE_HEAP, 0);
    ask(1, GPSH_SHARE_HEAP, -7);
    cr_expect(eq(int, shared(1), -2));
}

Test(lines, share__asked_again__a_new_file)
{
    ask(0, GPSH_SHARE_HEAP, 3);
    int before = shared(0);
    ask(0, GPSH_SHARE_HEAP, 3); // the other one has not asked yet: it gets the new one, too
    ask(1, GPSH_SHARE_HEAP, 3);
    int fds[] = {shared(0), shared(1)};
    cr_expect(ne(ulong, stat_of(fds[0]).st_ino, stat_of(before).st_ino));
    cr_expect(eq(ulong, stat_of(fds[0]).st_ino, stat_of(fds[1]).st_ino));
    ask(1, GPSH_SHARE_HEAP, 3);
    int next = shared(1);
    cr_expect(ne(ulong, stat_of(next).st_ino, stat_of(fds[1]).st_ino));
    close(before);
    close(next);
    close(fds[0]);
    close(fds[1]);
}

Test(lines, share__a_pe_ends_before_it_asks__the_file_is_not_kept_for_it)
{
    ask(0, GPSH_SHARE_HEAP, 3);
    cr_assert(ge(int, lines.lines[0].files[GPSH_SHARE_HEAP].fd, 0));
    gpsh_lines_forget(&lines, 1);
    cr_expect(eq(int, lines.lines[0].files[GPSH_SHARE_HEAP].fd, -1));
    ask(0, GPSH_SHARE_STATIC, 3); // after its end
    cr_expect(eq(int, lines.lines[0].files[GPSH_SHARE_STATIC].fd, -1));
    close(shared(0));
    close(shared(0));
}

Test(lines, share__the_answer_says_which_question_it_is_to)
{
    tell(0, (struct gpsh_line_message){.word = GPSH_LINE_SHARE, .a = 77, .b = 3, .c = 0}, -1);
    gpsh_lines_read(&lines, count, NULL);
    struct gpsh_line_message answer = {.a = -1};
    cr_assert(eq(long, recv(pe_ends[0], &answer, sizeof(answer), MSG_DONTWAIT), sizeof(answer)));
    cr_expect(eq(int, answer.a, 77));
}
