// SPDX-License-Identifier: BSD-3-Clause
// PMI-1 with a launcher at the other end of a socketpair that is small, slow, or talks nonsense.
#define _GNU_SOURCE // MSG_NOSIGNAL
#include <criterion/criterion.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bootstrap/bootstrap_ways.h"
#include "bootstrap/pmi_wire.h"
#include "core/error.h"

enum { KEYS = 4096 };

static struct {
    int fd;
    int value_max;
    bool mapping;
    bool a_byte_at_a_time;
    const char *garbage;       // instead of the answer to the line that begins with...
    const char *garbage_after; // ...this one; NULL: the first
    const char *lost;          // a key that it does not have
    const char *damaged;       // or has with this value
    int barriers;              // that it ends
    long longest;              // line that came
    char key[KEYS][64], value[KEYS][GPSH_PMI_LINE];
    int keys;
} launcher = {.value_max = 1024, .mapping = true, .barriers = 1000};

static struct gpsh_bootstrap boot;
static struct gpsh_settings settings = {.bootstrap_timeout_ms = 300, .bootstrap_node = ""};

static void say(const char *text)
{
    size_t step = launcher.a_byte_at_a_time ? 1 : strlen(text);
    for (; *text; text += step)
        send(launcher.fd, text, step, MSG_NOSIGNAL);
}

static void say_value(const char *line)
{
    char key[64], answer[2 * GPSH_PMI_LINE];
    cr_assert(gpsh_pmi_field(line, "key", key, sizeof key));
    if (launcher.mapping && strcmp(key, "PMI_process_mapping") == 0) {
        say("cmd=get_result rc=0 msg=success value=(vector,(0,1,1))\n");
        return;
    }
    for (int i = 0; i < launcher.keys; i++) {
        if (strcmp(key, launcher.key[i]) != 0 || (launcher.lost && strstr(key, launcher.lost)))
            continue;
        snprintf(answer, sizeof answer, "cmd=get_result rc=0 msg=success value=%s\n",
                 launcher.damaged ? launcher.damaged : launcher.value[i]);
        say(answer);
        return;
    }
    say("cmd=get_result rc=-1 msg=key_not_found value=unknown\n");
}

static void put_value(const char *line)
{
    int i = launcher.keys++;
    cr_assert(gpsh_pmi_field(line, "key", launcher.key[i], sizeof launcher.key[i]));
    cr_assert(gpsh_pmi_field(line, "value", launcher.value[i], (size_t)launcher.value_max),
              "the value does not fit");
    say("cmd=put_result rc=0 msg=success\n");
}

static void answer(const char *line)
{
    char maxes[100];
    snprintf(maxes, sizeof maxes, "cmd=maxes kvsname_max=256 keylen_max=64 vallen_max=%d\n",
             launcher.value_max);
    if (launcher.garbage &&
        (!launcher.garbage_after ||
         strncmp(line, launcher.garbage_after, strlen(launcher.garbage_after)) == 0))
        say(launcher.garbage);
    else if (strncmp(line, "cmd=init", 8) == 0)
        say("cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\n");
    else if (strcmp(line, "cmd=get_maxes") == 0)
        say(maxes);
    else if (strcmp(line, "cmd=get_my_kvsname") == 0)
        say("cmd=my_kvsname kvsname=kvs_1_0\n");
    else if (strncmp(line, "cmd=put ", 8) == 0)
        put_value(line);
    else if (strncmp(line, "cmd=get ", 8) == 0)
        say_value(line);
    else if (strcmp(line, "cmd=barrier_in") == 0 && launcher.barriers-- > 0)
        say("cmd=barrier_out\n");
    else if (strcmp(line, "cmd=finalize") == 0)
        say("cmd=finalize_ack\n");
}

static void *serve(void *stream)
{
    static char line[65536];
    while (fgets(line, sizeof line, stream)) {
        long length = (long)strlen(line);
        launcher.longest = length > launcher.longest ? length : launcher.longest;
        line[strcspn(line, "\n")] = '\0';
        answer(line);
    }
    return NULL;
}

// The launcher that `launcher` describes begins, and this process is one that it started.
static void start(void)
{
    int ends[2];
    char text[16];
    pthread_t thread;
    cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    launcher.fd = ends[1];
    cr_assert_eq(pthread_create(&thread, NULL, serve, fdopen(ends[1], "r")), 0);
    pthread_detach(thread);
    snprintf(text, sizeof text, "%d", ends[0]);
    setenv("PMI_FD", text, 1);
    setenv("PMI_RANK", "0", 1);
    setenv("PMI_SIZE", "1", 1);
}

static void join(void)
{
    start();
    cr_assert_eq(gpsh_bootstrap_pmi_init(&boot, &settings), 0, "%s", gpsh_last_error());
}

static void exchange_of(size_t bytes)
{
    unsigned char *data = malloc(bytes + 1);
    void *blob;
    size_t have;
    for (size_t i = 0; i < bytes; i++)
        data[i] = (unsigned char)(i * 7 + bytes);
    cr_assert_eq(gpsh_bootstrap_put(&boot, data, bytes), 0, "%s", gpsh_last_error());
    cr_assert_eq(gpsh_bootstrap_exchange(&boot), 0, "%s", gpsh_last_error());
    cr_assert_eq(gpsh_bootstrap_get(&boot, 0, &blob, &have), 0, "%s", gpsh_last_error());
    cr_assert_eq(have, bytes);
    cr_expect_eq(memcmp(blob, data, bytes), 0);
    free(blob);
    free(data);
}

static void exchange_sizes(void)
{
    for (size_t bytes = 0; bytes < 200; bytes += 7)
        exchange_of(bytes);
    exchange_of(20000);
}

Test(pmi, exchange__any_size__comes_back)
{
    join();
    exchange_sizes();
    cr_expect_eq(boot.node_n_pes, 1);
    cr_expect_str_eq(boot.job_id, "kvs_1_0");
    cr_expect_leq(launcher.longest, GPSH_PMI_LINE);
    gpsh_bootstrap_finalize(&boot);
}

Test(pmi, exchange__values_of_64_bytes__comes_back)
{
    launcher.value_max = 64;
    join();
    exchange_sizes();
}

Test(pmi, exchange__values_of_8_bytes__comes_back)
{
    launcher.value_max = 8;
    join();
    exchange_of(1000);
}

Test(pmi, exchange__longest_values__lines_stay_short)
{
    launcher.value_max = 1 << 20;
    join();
    exchange_of(20000);
    cr_expect_leq(launcher.longest, GPSH_PMI_LINE);
}

Test(pmi, exchange__a_byte_at_a_time__comes_back)
{
    launcher.a_byte_at_a_time = true;
    join();
    exchange_of(3000);
}

Test(pmi, init__after_finalize__same_conversation)
{
    join();
    exchange_of(100);
    gpsh_bootstrap_finalize(&boot);
    cr_assert_eq(gpsh_bootstrap_pmi_init(&boot, &settings), 0, "%s", gpsh_last_error());
    exchange_of(200);
}

Test(pmi, init__no_mapping__nodes_by_their_keys)
{
    launcher.mapping = false;
    join();
    cr_expect_eq(boot.node_n_pes, 1);
    cr_expect_gt(launcher.keys, 0);
}

static const struct {
    const char *after, *says, *sentence;
} nonsense[] = {
    {NULL, "\n", "response_to_init"},
    {NULL, "HTTP/1.1 400 Bad Request\n", "answered 'HTTP/1.1 400"},
    {NULL, "cmd=response_to_init pmi_version=2 rc=0\n", "pmi_version=1"},
    {NULL, "cmd=response_to_init pmi_version=1 rc=-1\n", "refuses"},
    {NULL, "cmd=response_to_init pmi_version=1 rc=0\ncmd=maxes\n", "more than it was asked for"},
    {NULL, "\033[31m\001\377\n", "answered '?[31m?\?'"},
    {NULL, "cmd", "does not answer"},
    {NULL, "", "does not answer"},
    {"cmd=get_maxes", "cmd=maxes\n", "keylen_max and a vallen_max"},
    {"cmd=get_maxes", "cmd=maxes keylen_max=64 vallen_max=-5\n", "vallen_max"},
    {"cmd=get_maxes", "cmd=maxes keylen_max=64 vallen_max=7\n", "vallen_max"},
    {"cmd=get_maxes", "cmd=maxes keylen_max=64 vallen_max=12x\n", "vallen_max"},
    {"cmd=get_my_kvsname", "cmd=my_kvsname\n", "a name"},
    {"cmd=get_my_kvsname", "cmd=my_kvsname kvsname=\n", "a name"},
    {"cmd=get ", "cmd=barrier_out\n", "get_result"}, // the conversation has begun: it is the last
};

Test(pmi, init__nonsense__one_sentence)
{
    for (size_t i = 0; i < sizeof nonsense / sizeof nonsense[0]; i++) {
        launcher.garbage_after = nonsense[i].after;
        launcher.garbage = nonsense[i].says;
        start();
        cr_expect_eq(gpsh_bootstrap_pmi_init(&boot, &settings), GPUSHMEM_ERR_BOOTSTRAP,
                     "'%s' was accepted", nonsense[i].says);
        cr_expect(strstr(gpsh_last_error(), nonsense[i].sentence), "%s: %s", nonsense[i].says,
                  gpsh_last_error());
    }
}

Test(pmi, init__line_without_end__one_sentence)
{
    static char line[3 * GPSH_PMI_ANSWER];
    memset(line, 'x', sizeof line - 1);
    launcher.garbage = line;
    start();
    cr_expect_eq(gpsh_bootstrap_pmi_init(&boot, &settings), GPUSHMEM_ERR_BOOTSTRAP);
    cr_expect(strstr(gpsh_last_error(), "without an end"), "%s", gpsh_last_error());
}

Test(pmi, init__key_limit_too_small__one_sentence)
{
    launcher.garbage_after = "cmd=get_maxes";
    launcher.garbage = "cmd=maxes kvsname_max=9 keylen_max=8 vallen_max=1024\n";
    join();
    cr_expect_eq(gpsh_bootstrap_put(&boot, "a", 1), GPUSHMEM_ERR_BOOTSTRAP);
    cr_expect(strstr(gpsh_last_error(), "keys of 7 characters"), "%s", gpsh_last_error());
}

Test(pmi, init__no_socket__one_sentence)
{
    static const char *const bad[] = {"999", "-1", "", "six", "0x3", "99999999999999999999", NULL};
    char file[16];
    setenv("PMI_RANK", "0", 1);
    setenv("PMI_SIZE", "2", 1);
    snprintf(file, sizeof file, "%d", open("/dev/null", O_RDWR));
    for (int i = 0; i < 7; i++) {
        setenv("PMI_FD", bad[i] ? bad[i] : file, 1);
        cr_expect_eq(gpsh_bootstrap_pmi_init(&boot, &settings), GPUSHMEM_ERR_BOOTSTRAP);
        cr_expect(strstr(gpsh_last_error(), "no open socket"), "%s", gpsh_last_error());
    }
}

Test(pmi, init__no_rank_in_a_job__one_sentence)
{
    static const char *const bad[][2] = {{"1", "1"},  {"-1", "2"}, {"0", "0"},          {"x", "2"},
                                         {"0", "2x"}, {"", "2"},   {"0", "99999999999"}};
    start();
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        setenv("PMI_RANK", bad[i][0], 1);
        setenv("PMI_SIZE", bad[i][1], 1);
        cr_expect_eq(gpsh_bootstrap_pmi_init(&boot, &settings), GPUSHMEM_ERR_BOOTSTRAP);
        cr_expect(strstr(gpsh_last_error(), "no rank in a job"), "%s", gpsh_last_error());
    }
}

Test(pmi, get__a_piece_is_missing_or_damaged__names_the_pe)
{
    void *blob;
    size_t bytes;
    char data[3000] = "";
    join();
    cr_assert_eq(gpsh_bootstrap_put(&boot, data, sizeof data), 0);
    cr_assert_eq(gpsh_bootstrap_exchange(&boot), 0);
    launcher.lost = "gpsh-1-0-2";
    cr_expect_eq(gpsh_bootstrap_get(&boot, 0, &blob, &bytes), GPUSHMEM_ERR_PEER_DATA);
    cr_expect(strstr(gpsh_last_error(), "PE 0 did not publish"), "%s", gpsh_last_error());
    launcher.lost = NULL;
    launcher.damaged = "no;text";
    cr_expect_eq(gpsh_bootstrap_get(&boot, 0, &blob, &bytes), GPUSHMEM_ERR_PEER_DATA);
    cr_expect(strstr(gpsh_last_error(), "damaged"), "%s", gpsh_last_error());
    launcher.damaged =
        "QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVphYmNkZWZnaGlqa2xtbm9wcXJzdHV2d3h5ejAxMjM0"
        "NTY3ODkwMTIzNDU2Nzg5";
    cr_expect_eq(gpsh_bootstrap_get(&boot, 0, &blob, &bytes), GPUSHMEM_ERR_PEER_DATA);
    cr_expect(strstr(gpsh_last_error(), "the same release"), "%s", gpsh_last_error());
    launcher.damaged = NULL;
    cr_expect_eq(gpsh_bootstrap_get(&boot, 0, &blob, &bytes), 0);
    free(blob);
}

Test(pmi, exchange__given_up__nothing_else_until_it_ends)
{
    launcher.barriers = 0;
    join();
    boot.wait_timeout_ms = 100;
    cr_expect_eq(gpsh_bootstrap_exchange(&boot), GPUSHMEM_ERR_TIMEOUT);
    cr_expect_eq(gpsh_bootstrap_put(&boot, "a", 1), GPUSHMEM_ERR_STATE);
    say("cmd=barrier_out\n");
    launcher.barriers = 1;
    exchange_of(10);
}

Test(pmi, exchange__launcher_hangs_up__one_sentence)
{
    join();
    shutdown(launcher.fd, SHUT_RDWR);
    cr_expect_eq(gpsh_bootstrap_exchange(&boot), GPUSHMEM_ERR_BOOTSTRAP);
    cr_expect(strstr(gpsh_last_error(), "has ended, or hung up"), "%s", gpsh_last_error());
    cr_expect_eq(gpsh_bootstrap_put(&boot, "a", 1), GPUSHMEM_ERR_BOOTSTRAP);
    cr_expect_eq(gpsh_bootstrap_abort(&boot, 3, "why"), GPUSHMEM_ERR_BOOTSTRAP);
}

Test(pmi, mapping__blocks__nodes)
{
    int node[8];
    cr_assert(gpsh_pmi_mapping_read("(vector,(0,2,3),(5,1,2))", 8, node));
    cr_expect_eq(memcmp(node, (int[]){0, 0, 0, 1, 1, 1, 5, 5}, sizeof node), 0);
    cr_assert(gpsh_pmi_mapping_read("(vector,(0,3,1))", 8, node)); // by turns
    cr_expect_eq(memcmp(node, (int[]){0, 1, 2, 0, 1, 2, 0, 1}, sizeof node), 0);
    cr_assert(gpsh_pmi_mapping_read("(vector,(0,1,2147483))", 8, node));
}

Test(pmi, mapping__other_text__refused)
{
    static const char *const bad[] = {"(vector,()",
                                      "(vector,(0,1,2),()",
                                      "(vector,(0,)",
                                      "",
                                      "unknown",
                                      "(vector)",
                                      "(vector,)",
                                      "(vector,(0,1,4)",
                                      "(vector,(0,1,4))x",
                                      "(vector,(0,0,4))",
                                      "(vector,(0,1,0))",
                                      "(vector,(-1,1,4))",
                                      "(vector,(0,1))",
                                      "(vector,(0,1,4,5))",
                                      "(vector,(0,1,99999999999999999999))",
                                      "(vector,( 0,1,4))",
                                      "(matrix,(0,1,4))"};
    int node[4];
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        cr_expect(!gpsh_pmi_mapping_read(bad[i], 4, node), "'%s' was accepted", bad[i]);
}

Test(pmi, text__of_any_bytes__and_back)
{
    unsigned char data[300], again[300];
    char text[401];
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (unsigned char)(i * 37 + 11);
    for (size_t bytes = 0; bytes <= sizeof data; bytes++) {
        cr_expect_eq(gpsh_pmi_encode(data, bytes, text), (bytes * 4 + 2) / 3);
        cr_expect_eq(gpsh_pmi_decode(text, again, bytes), (long)bytes);
        cr_expect_eq(memcmp(data, again, bytes), 0);
        cr_expect(bytes < 2 || gpsh_pmi_decode(text, again, bytes - 1) == -1);
    }
}
