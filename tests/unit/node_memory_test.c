// SPDX-License-Identifier: BSD-3-Clause
// A PE asks for its part of the node's memory file; the test is the launcher, early or late.
#define _GNU_SOURCE // memfd_create
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bootstrap/bootstrap.h"
#include "bootstrap/node_memory.h"
#include "core/config.h"
#include "core/error.h"

enum { BYTES = 2 << 20, PES = 2 };

static struct gpsh_bootstrap boot = {.node_n_pes = PES, .node_my_pe = 1, .launched_by_us = true};
static int launcher, looks;

static void count_looks(bool over)
{
    looks += !over;
}

static void setup(void)
{
    int ends[2];
    setenv("GPUSHMEM_TEST_SHARED_FILE", "on", 1);
    cr_assert_eq(gpsh_settings_open(), 0);
    cr_assert_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
    launcher = ends[0];
    boot.line = ends[1];
    boot.waits = count_looks;
}

static void teardown(void)
{
    close(launcher);
    close(boot.line);
    gpsh_settings_close();
}

TestSuite(node_memory, .init = setup, .fini = teardown, .timeout = 20);

static struct gpsh_line_message heard(void)
{
    struct gpsh_line_message question = {.word = -1};
    cr_assert_eq(recv(launcher, &question, sizeof question, MSG_DONTWAIT), sizeof question);
    cr_assert_eq(question.word, GPSH_LINE_SHARE);
    return question;
}

// With a file of its own, whose inode is returned.
static ino_t answer(const struct gpsh_line_message *question)
{
    struct stat file;
    int fd = memfd_create("node_memory_test", MFD_CLOEXEC);
    cr_assert_eq(ftruncate(fd, (off_t)PES * BYTES), 0);
    cr_assert_eq(fstat(fd, &file), 0);
    const struct gpsh_line_message said = {
        .word = GPSH_LINE_SHARED, .a = question->a, .b = boot.node_my_pe, .c = question->c};
    cr_assert_eq(gpsh_launcher_send(launcher, &said, NULL, 0, &fd, 1), 0);
    close(fd);
    return file.st_ino;
}

static int next_fd(void)
{
    int fd = dup(0);
    close(fd);
    return fd;
}

Test(node_memory, ask__no_answer__ends_with_the_setting_for_waits_and_is_told_meanwhile)
{
    struct gpsh_node_memory memory;
    boot.wait_timeout_ms = 300;
    cr_assert_eq(gpsh_node_memory_ask(&boot, GPSH_SHARE_HEAP, BYTES, &memory),
                 GPUSHMEM_ERR_TIMEOUT);
    cr_expect_eq(memory.fd, -1);
    cr_expect_gt(looks, 0);
    cr_expect(strstr(gpsh_last_error(), "for 300 ms (GPUSHMEM_WAIT_TIMEOUT_MS)"), "%s",
              gpsh_last_error());
}

// What was given up is answered after all, before what is asked next.
Test(node_memory, ask__answer_to_an_earlier_question__is_dropped_with_its_file)
{
    struct gpsh_node_memory memory;
    boot.wait_timeout_ms = 1;
    cr_assert_eq(gpsh_node_memory_ask(&boot, GPSH_SHARE_STATIC, BYTES, &memory),
                 GPUSHMEM_ERR_TIMEOUT);
    struct gpsh_line_message first = heard(), second = first;
    int before = next_fd();
    ino_t late = answer(&first);
    second.a++;
    second.c = GPSH_SHARE_HEAP;
    ino_t right = answer(&second);
    boot.wait_timeout_ms = 0;
    cr_assert_eq(gpsh_node_memory_ask(&boot, GPSH_SHARE_HEAP, BYTES, &memory), 0, "%s",
                 gpsh_last_error());
    cr_assert_neq(memory.id, (uint32_t)late);
    cr_expect_eq(memory.id, (uint32_t)right);
    cr_expect_eq(memory.at, BYTES);
    cr_expect_eq(heard().a, second.a);
    close(memory.fd);
    cr_expect_eq(next_fd(), before, "a descriptor stays open");
}

// The answer then is that this PE gets none: nothing of the late one stays.
Test(node_memory, ask__late_file_then_none__is_none)
{
    struct gpsh_node_memory memory;
    boot.wait_timeout_ms = 1;
    cr_assert_eq(gpsh_node_memory_ask(&boot, GPSH_SHARE_HEAP, BYTES, &memory),
                 GPUSHMEM_ERR_TIMEOUT);
    struct gpsh_line_message first = heard();
    answer(&first);
    const struct gpsh_line_message none = {.word = GPSH_LINE_SHARED, .a = first.a + 1, .b = 1};
    cr_assert_eq(gpsh_launcher_send(launcher, &none, NULL, 0, NULL, 0), 0);
    boot.wait_timeout_ms = 0;
    cr_assert_eq(gpsh_node_memory_ask(&boot, GPSH_SHARE_HEAP, BYTES, &memory), 0, "%s",
                 gpsh_last_error());
    cr_expect_eq(memory.fd, -1);
}

Test(node_memory, ask__launcher_has_ended__is_said)
{
    struct gpsh_node_memory memory;
    cr_assert_eq(shutdown(launcher, SHUT_WR), 0);
    cr_assert_eq(gpsh_node_memory_ask(&boot, GPSH_SHARE_HEAP, BYTES, &memory), GPUSHMEM_ERR_SYSTEM);
    cr_expect(strstr(gpsh_last_error(), "it has ended"), "%s", gpsh_last_error());
}
