// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE // memfd_create
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/config.h"
#include "core/error.h"
#include "core/log.h"

static int read_one(const char *entry, struct gpsh_settings *settings)
{
    char text[256];
    snprintf(text, sizeof text, "%s", entry);
    char *environment[] = {"PATH=/bin", text, NULL};
    return gpsh_settings_read(environment, settings);
}

Test(config, empty_environment__defaults)
{
    struct gpsh_settings s;
    cr_assert_eq(gpsh_settings_read(NULL, &s), 0, "%s", gpsh_last_error());
    cr_expect_eq(s.heap_size, 256u << 20);
    cr_expect_eq(s.ring_entries, 4096);
    cr_expect_str_eq(s.transports, "p2p,verbs,ofi");
    cr_expect_eq(s.on_pe_failure, GPSH_ON_FAILURE_ABORT);
    cr_expect_eq(s.verbs_gid_index, -1);
    // a link that is down for half a minute ends nothing: (7 + 1) * 4.096 us * 2^20
    cr_expect_eq(s.verbs_timeout, 20);
    cr_expect_eq(s.verbs_retry_count, 7);
    gpsh_settings_clear(&s);
}

Test(config, alias__where_the_environment_is_silent)
{
    struct gpsh_settings s;
    setenv("GPUSHMEM_SETTINGS_FILE", "none", 1);
    unsetenv("GPUSHMEM_TEAMS");
    setenv("GPUSHMEM_TEST_RING_ENTRIES", "64", 1);
    gpsh_setting_aliases_begin();
    cr_expect_eq(gpsh_setting_alias("GPUSHMEM_TEAMS", "8", "OTHER_TEAMS"), 0);
    cr_expect_eq(gpsh_setting_alias("GPUSHMEM_TEST_RING_ENTRIES", "128", "OTHER_ENTRIES"), 0);
    gpsh_setting_aliases_end();
    cr_assert_eq(gpsh_settings_read_process("GPUSHMEM_", &s), 0, "%s", gpsh_last_error());
    cr_expect_eq(s.teams, 8);
    cr_expect_eq(s.ring_entries, 64);
    gpsh_settings_clear(&s);
    cr_expect(gpsh_setting_is_given("GPUSHMEM_TEAMS"));
    gpsh_settings_forget();
    cr_expect_not(gpsh_setting_is_given("GPUSHMEM_TEAMS"));
    cr_assert_eq(gpsh_settings_read_process("GPUSHMEM_", &s), 0);
    cr_expect_eq(s.teams, 256);
    gpsh_settings_clear(&s);
}

Test(config, alias__bad_value__names_the_variable_that_has_it)
{
    struct gpsh_settings s;
    setenv("GPUSHMEM_SETTINGS_FILE", "none", 1);
    unsetenv("GPUSHMEM_TEAMS");
    gpsh_setting_aliases_begin();
    cr_expect_eq(gpsh_setting_alias("GPUSHMEM_TEAMS", "3", "OTHER_TEAMS"), 0);
    gpsh_setting_aliases_end();
    cr_expect_eq(gpsh_settings_read_process("GPUSHMEM_", &s), GPUSHMEM_ERR_SETTING);
    cr_expect_eq(strncmp(gpsh_last_error(), "OTHER_TEAMS=3 is not ", 21), 0, "%s",
                 gpsh_last_error());
    // The settings of the bootstrap alone are good.
    cr_assert_eq(gpsh_settings_read_process("GPUSHMEM_BOOTSTRAP_", &s), 0, "%s", gpsh_last_error());
    gpsh_settings_clear(&s);
    gpsh_settings_forget();
}

Test(config, every_row__default_is_accepted_and_printable)
{
    struct gpsh_settings s;
    int levels[3] = {0, 0, 0};
    cr_assert_eq(gpsh_settings_read(NULL, &s), 0);
    for (int i = 0; i < GPSH_SETTINGS; i++) {
        const struct gpsh_setting *row = &gpsh_setting_rows[i];
        bool test = row->level == GPSH_LEVEL_TEST;
        char value[64], entry[256];
        levels[row->level]++;
        gpsh_setting_value(&s, i, value, sizeof value);
        cr_expect_eq(strncmp(row->name, "GPUSHMEM_TEST_", 14) == 0, test, "%s", row->name);
        cr_expect(strlen(row->help) > 10, "%s has no help", row->name);
        // What is printed can be given back.
        struct gpsh_settings again;
        snprintf(entry, sizeof entry, "%s=%s", row->name, value);
        cr_expect_eq(read_one(entry, &again), 0, "%s: %s", entry, gpsh_last_error());
        gpsh_settings_clear(&again);
    }
    cr_expect_eq(levels[GPSH_LEVEL_MAIN], 11);
    cr_expect_leq(levels[GPSH_LEVEL_MAIN] + levels[GPSH_LEVEL_EXPERT], 51, "a user sees too many");
    gpsh_settings_clear(&s);
}

Test(config, sizes__suffixes)
{
    static const struct {
        const char *text;
        uint64_t bytes;
    } good[] = {{"1", 1},           {"4096", 4096},
                {"64k", 65536},     {"64K", 65536},
                {"3M", 3 << 20},    {"2g", 2ull << 30},
                {"1T", 1ull << 40}, {"5MiB", 5 << 20},
                {"5MB", 5 << 20},   {"0", 0}};
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        uint64_t bytes = 7;
        cr_expect_eq(gpsh_parse_size(good[i].text, &bytes), 0, "%s", good[i].text);
        cr_expect_eq(bytes, good[i].bytes, "%s", good[i].text);
    }
    static const char *const bad[] = {
        "",    "-1", "x", "1.5G", "1 G", "12Q", "99999999999999999999", "17000000000000T",
        "1GG", " 1"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        uint64_t bytes = 7;
        cr_expect_neq(gpsh_parse_size(bad[i], &bytes), 0, "'%s'", bad[i]);
        cr_expect_eq(bytes, 7, "'%s' changed the output", bad[i]);
    }
}

Test(config, bad_value__sentence_names_variable_value_and_range)
{
    static const struct {
        const char *entry, *mentions;
    } bad[] = {
        {"GPUSHMEM_HEAP_SIZE=banana", "1M to 16T"},
        {"GPUSHMEM_HEAP_SIZE=1K", "1M to 16T"},
        {"GPUSHMEM_RINGS=0", "from 1 to 256"},
        {"GPUSHMEM_RINGS=257", "from 1 to 256"},
        {"GPUSHMEM_RINGS=4x", "from 1 to 256"},
        {"GPUSHMEM_RINGS=999999999999999999999", "from 1 to 256"},
        {"GPUSHMEM_LOG_LEVEL=loud", "error|warn"},
        {"GPUSHMEM_STATS=maybe", "yes"},
        {"GPUSHMEM_TRANSPORTS=p2p,smoke", "smoke"},
        {"GPUSHMEM_TRANSPORTS=p2p,", "loop|ofi|p2p|verbs"},
        {"GPUSHMEM_TEST_RING_ENTRIES=1000", "power of two"},
        {"GPUSHMEM_PROXY_CPUS=4-", "4-7,12"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct gpsh_settings s;
        memset(&s, 0x5a, sizeof s);
        struct gpsh_settings before = s;
        const void *now = &s, *then = &before; // every byte
        cr_expect_eq(read_one(bad[i].entry, &s), GPUSHMEM_ERR_SETTING, "%s", bad[i].entry);
        cr_expect_eq(memcmp(now, then, sizeof s), 0, "%s changed the output", bad[i].entry);
        char name[64];
        snprintf(name, sizeof name, "%.*s", (int)strcspn(bad[i].entry, "="), bad[i].entry);
        cr_expect(strstr(gpsh_last_error(), name), "'%s' lacks %s", gpsh_last_error(), name);
        cr_expect(strstr(gpsh_last_error(), bad[i].mentions), "'%s' lacks %s", gpsh_last_error(),
                  bad[i].mentions);
    }
}

Test(config, cpus__ranges_and_single_ones__in_turn)
{
    int cpus[7];
    cr_assert_eq(gpsh_parse_cpus("4-6,12", cpus, 7), 0);
    const int wanted[7] = {4, 5, 6, 12, 4, 5, 6};
    cr_expect_arr_eq(cpus, wanted, sizeof wanted);
    cr_assert_eq(gpsh_parse_cpus("any", cpus, 1), 0);
    cr_expect_eq(cpus[0], -1);
}

Test(config, empty_value__is_the_default)
{
    struct gpsh_settings s;
    setenv("GPUSHMEM_SETTINGS_FILE", "none", 1);
    setenv("GPUSHMEM_RINGS", "", 1);
    cr_assert_eq(gpsh_settings_read_process("GPUSHMEM_", &s), 0);
    cr_expect_not(gpsh_setting_is_given("GPUSHMEM_RINGS"));
    gpsh_settings_clear(&s);
    cr_assert_eq(read_one("GPUSHMEM_RINGS=", &s), 0);
    cr_expect_eq(s.rings, 4);
    gpsh_settings_clear(&s);
}

Test(config, long_bad_value__leaves_room_for_what_is_allowed)
{
    char entry[2000];
    struct gpsh_settings s;
    static const char *const names[] = {"HEAP_SIZE",  "RINGS",     "STATS",
                                        "TRANSPORTS", "LOG_LEVEL", "PROXY_CPUS"};
    static const char *const allowed[] = {"1M to 16T", "1 to 256",   "yes",
                                          "p2p|verbs", "error|warn", "4-7,12"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        int used = snprintf(entry, sizeof entry, "GPUSHMEM_%s=", names[i]);
        memset(entry + used, 'x', sizeof entry - 1 - (size_t)used);
        entry[sizeof entry - 1] = '\0';
        char *environment[] = {entry, NULL};
        cr_expect_eq(gpsh_settings_read(environment, &s), GPUSHMEM_ERR_SETTING, "%s", names[i]);
        cr_expect(strstr(gpsh_last_error(), allowed[i]), "'%s' lacks %s", gpsh_last_error(),
                  allowed[i]);
    }
}

static void say_all(char *const *environment, char *line, size_t bytes)
{
    char path[32];
    int fd = memfd_create("log", 0);
    cr_assert(fd >= 0);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    cr_assert_eq(gpsh_log_open(GPSH_LOG_WARN, path), 0);
    struct gpsh_settings s;
    cr_expect_eq(gpsh_settings_read(environment, &s), 0);
    gpsh_settings_clear(&s);
    gpsh_log_close();
    ssize_t length = pread(fd, line, bytes - 1, 0);
    cr_expect(length > 0);
    line[length > 0 ? length : 0] = '\0';
    close(fd);
}

Test(config, name_that_no_row_has__warns_and_goes_on)
{
    static const struct {
        const char *entry, *said; // NULL: nothing
    } names[] = {
        {"GPUSHMEM_FROBNICATE=1",
         "GPUSHMEM_FROBNICATE: unknown setting, ignored; `gpushmem info` lists"},
        {"GPUSHMEM_HEEP_SIZE=1G", "did you mean GPUSHMEM_HEAP_SIZE?"},
        {"GPUSHMEM_RING=2", "did you mean GPUSHMEM_RINGS?"},
        {"GPUSHMEM_PROXY_THRAEDS=2", "did you mean GPUSHMEM_PROXY_THREADS?"},
        {"GPUSHMEM_VERBS_DEVICE=mlx5_0", "did you mean GPUSHMEM_VERBS_DEVICES?"},
        // constants by now: the library says which
        {"GPUSHMEM_RING_ENTRIES=64",
         "GPUSHMEM_RING_ENTRIES: no setting any more, ignored: a ring holds 4096 commands"},
        {"GPUSHMEM_STREAM_EARLY=0", "no setting any more, ignored: kernels of streams"},
        // of programs around the library
        {"GPUSHMEM_HOME=/opt/gpushmem", NULL},
        {"GPUSHMEM_TEST_FROBNICATE=1", NULL},
        {"GPUSHMEM_RUN_PE=1", NULL},
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char line[512], name[64];
        snprintf(name, sizeof name, "%.*s:", (int)strcspn(names[i].entry, "="), names[i].entry);
        say_all((char *[]){(char *)names[i].entry, "GPUSHMEM_OTHER=1", NULL}, line, sizeof line);
        if (names[i].said)
            cr_expect(strstr(line, names[i].said), "%s", line);
        else
            cr_expect_not(strstr(line, name), "%s", line);
    }
}
