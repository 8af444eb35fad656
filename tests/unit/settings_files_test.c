// SPDX-License-Identifier: BSD-3-Clause
// The settings files of a process: where they are, what they say, which are refused.
#define _GNU_SOURCE // memfd_create
#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/config.h"
#include "core/error.h"
#include "core/log.h"
#include "core/scratch.h"

enum { PATH_BYTES = 256, NOBODY = 65534 };

static char folder[64];

static void begin(void)
{
    if (!access("/etc/gpushmem/settings.conf", F_OK))
        cr_skip_test("this machine has a settings file of its own");
    cr_assert_eq(gpsh_scratch_dir("settings", 40, folder, sizeof folder), 0, "%s", folder);
    cr_assert_eq(chmod(folder, 0755), 0);
    for (const char *const *name =
             (const char *const[]){"GPUSHMEM_RINGS", "GPUSHMEM_TEAMS", "GPUSHMEM_LOG_FILE", NULL};
         *name; name++)
        unsetenv(*name);
}

static void end(void)
{
    char command[PATH_BYTES];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    cr_expect_eq(system(command), 0);
}

TestSuite(settings_files, .init = begin, .fini = end);

// A path below the folder, and the folders that lead there.
static const char *below(const char *name, char path[PATH_BYTES])
{
    snprintf(path, PATH_BYTES, "%s/%s", folder, name);
    for (char *slash = path + strlen(folder) + 1; (slash = strchr(slash, '/')); slash++) {
        *slash = '\0';
        mkdir(path, 0755);
        *slash = '/';
    }
    return path;
}

static const char *write_bytes(const char *name, const void *text, size_t bytes,
                               char path[PATH_BYTES])
{
    FILE *file = fopen(below(name, path), "w");
    cr_assert(file);
    cr_assert_eq(fwrite(text, 1, bytes, file), bytes);
    cr_assert_eq(fclose(file), 0);
    cr_assert_eq(chmod(path, 0644), 0);
    return path;
}

static const char *write_text(const char *name, const char *text, char path[PATH_BYTES])
{
    return write_bytes(name, text, strlen(text), path);
}

// The process's settings with this file named.
static int read_named(const char *path, struct gpsh_settings *out)
{
    gpsh_settings_forget();
    setenv("GPUSHMEM_SETTINGS_FILE", path, 1);
    return gpsh_settings_read_process("GPUSHMEM_", out);
}

static void expect_origin(const char *name, enum gpsh_setting_source source, const char *from,
                          int line)
{
    const struct gpsh_setting_given *origin =
        gpsh_setting_origin(gpsh_setting_find(name, strlen(name)));
    cr_expect_eq(origin->source, source, "%s: source %d", name, origin->source);
    cr_expect_str_eq(origin->from ? origin->from : "", from);
    cr_expect_eq(origin->line, line, "%s: line %d", name, origin->line);
}

Test(settings_files, lines__are_settings_comments_and_blanks)
{
    char path[PATH_BYTES];
    struct gpsh_settings s;
    write_text("settings.conf",
               "\xef\xbb\xbf# GPUSHMEM_RINGS = 1\n"
               "\n"
               "  GPUSHMEM_RINGS=7\t# seven\r\n"
               "\tGPUSHMEM_TEAMS \t = \t 8 \n"
               "#GPUSHMEM_TEAMS = 9\nGPUSHMEM_CONTEXTS =\n"
               "GPUSHMEM_LOG_FILE = /tmp/a b#c",
               path);
    cr_assert_eq(read_named(path, &s), 0, "%s", gpsh_last_error());
    cr_expect_eq(s.rings, 7);
    cr_expect_eq(s.teams, 8);
    cr_expect_str_eq(s.log_file, "/tmp/a b#c");
    gpsh_settings_clear(&s);
    expect_origin("GPUSHMEM_RINGS", GPSH_FROM_FILE, path, 3);
    expect_origin("GPUSHMEM_LOG_FILE", GPSH_FROM_FILE, path, 7);
    // Whoever writes a name and no value gives none.
    cr_expect_eq(s.contexts, 1);
    expect_origin("GPUSHMEM_CONTEXTS", GPSH_FROM_FILE, path, 6);
    cr_expect_not(gpsh_setting_is_given("GPUSHMEM_CONTEXTS"));
    expect_origin("GPUSHMEM_STATS", GPSH_FROM_DEFAULT, "", 0);
    cr_expect(gpsh_setting_is_given("GPUSHMEM_TEAMS"));
    char given[80];
    cr_expect_str_eq(gpsh_setting_as_given("GPUSHMEM_TEAMS", given, sizeof given),
                     "GPUSHMEM_TEAMS=8");
    gpsh_settings_forget();
    cr_expect_not(gpsh_setting_is_given("GPUSHMEM_TEAMS"));
}

// Environment, alias, named file, system's file, default; the user's file if none is named.
Test(settings_files, rank__the_first_that_has_a_value_has_the_say)
{
    char path[PATH_BYTES];
    struct gpsh_settings s;
    write_text("settings.conf", "GPUSHMEM_RINGS = 5\nGPUSHMEM_TEAMS = 6\nGPUSHMEM_CONTEXTS = 7\n",
               path);
    setenv("GPUSHMEM_RINGS", "9", 1);
    cr_assert_eq(read_named(path, &s), 0, "%s", gpsh_last_error());
    gpsh_settings_clear(&s);
    gpsh_setting_aliases_begin();
    cr_expect_eq(gpsh_setting_alias("GPUSHMEM_RINGS", "8", "OTHER_RINGS"), 0);
    cr_expect_eq(gpsh_setting_alias("GPUSHMEM_TEAMS", "8", "OTHER_TEAMS"), 0);
    gpsh_setting_aliases_end();
    cr_assert_eq(gpsh_settings_read_process("GPUSHMEM_", &s), 0, "%s", gpsh_last_error());
    cr_expect_eq(s.rings, 9);
    cr_expect_eq(s.teams, 8);
    cr_expect_eq(s.contexts, 7);
    gpsh_settings_clear(&s);
    expect_origin("GPUSHMEM_RINGS", GPSH_FROM_ENVIRONMENT, "GPUSHMEM_RINGS", 0);
    expect_origin("GPUSHMEM_TEAMS", GPSH_FROM_ALIAS, "OTHER_TEAMS", 0);
    expect_origin("GPUSHMEM_CONTEXTS", GPSH_FROM_FILE, path, 3);
    gpsh_settings_forget();
}

// What the files below the folder say with this environment: "RINGS TEAMS CONTEXTS".
static const char *said(char *const *environment, char *text, size_t bytes)
{
    static struct gpsh_settings_given given;
    struct gpsh_settings s;
    cr_assert_eq(gpsh_settings_gather(environment, folder, true, &given), 0, "%s",
                 gpsh_last_error());
    cr_assert_eq(gpsh_settings_parse(&given, "GPUSHMEM_", &s), 0, "%s", gpsh_last_error());
    snprintf(text, bytes, "%d %d %d", (int)s.rings, (int)s.teams, (int)s.contexts);
    gpsh_settings_given_clear(&given);
    gpsh_settings_clear(&s);
    return text;
}

Test(settings_files, places__named_or_users_before_the_systems)
{
    char path[PATH_BYTES], text[64];
    cr_expect_str_eq(said((char *[]){"HOME=/home/me", NULL}, text, sizeof text), "4 256 1");
    write_text("home/me/.config/gpushmem/settings.conf", "GPUSHMEM_RINGS = 11\nGPUSHMEM_TEAMS =\n",
               path);
    write_text("elsewhere/gpushmem/settings.conf", "GPUSHMEM_RINGS = 12\n", path);
    write_text("named", "GPUSHMEM_RINGS = 13\n", path);
    write_text("etc/gpushmem/settings.conf",
               "GPUSHMEM_RINGS = 14\nGPUSHMEM_TEAMS = 15\nGPUSHMEM_CONTEXTS = 16\n", path);
    static const struct {
        char *environment[4];
        const char *said;
    } rows[] = {
        {{NULL}, "14 15 16"},
        {{"HOME=/home/me", NULL}, "11 256 16"}, // an empty value is the default
        {{"HOME=/home/me", "XDG_CONFIG_HOME=/elsewhere", NULL}, "12 15 16"},
        {{"HOME=/home/me", "XDG_CONFIG_HOME=elsewhere", NULL}, "11 256 16"},
        {{"HOME=/home/me", "XDG_CONFIG_HOME=", NULL}, "11 256 16"},
        {{"HOME=home/me", NULL}, "14 15 16"},
        {{"HOME=/", NULL}, "14 15 16"},
        {{"HOME=/etc/gpushmem/settings.conf", NULL}, "14 15 16"}, // no folder
        {{"HOME=/home/me", "GPUSHMEM_SETTINGS_FILE=/named", NULL}, "13 15 16"},
        {{"HOME=/home/me", "GPUSHMEM_SETTINGS_FILE=", NULL}, "11 256 16"},
        {{"HOME=/home/me", "GPUSHMEM_SETTINGS_FILE=None", NULL}, "4 256 1"},
        {{"HOME=/home/me", "GPUSHMEM_RINGS=17", NULL}, "17 256 16"},
        {{"HOME=/home/me", "GPUSHMEM_RINGS=", NULL}, "11 256 16"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        cr_expect_str_eq(said(rows[i].environment, text, sizeof text), rows[i].said,
                         "row %zu: %s and not %s", i, text, rows[i].said);
}

// What asks later sees the file as the last read did.
Test(settings_files, file_that_changes__is_seen_by_the_next_read)
{
    char path[PATH_BYTES];
    struct gpsh_settings s;
    write_text("settings.conf", "GPUSHMEM_BOOTSTRAP_INTERFACE = a\nGPUSHMEM_RINGS = 5\n", path);
    setenv("GPUSHMEM_SETTINGS_FILE", path, 1);
    cr_assert_eq(gpsh_settings_read_process("GPUSHMEM_BOOTSTRAP_", &s), 0);
    cr_expect_str_eq(s.bootstrap_interface, "a");
    cr_expect_eq(s.rings, 4);
    gpsh_settings_clear(&s);
    write_text("settings.conf", "GPUSHMEM_RINGS = 6\n", path);
    cr_expect(gpsh_setting_is_given("GPUSHMEM_BOOTSTRAP_INTERFACE"));
    cr_assert_eq(gpsh_settings_read_process("GPUSHMEM_", &s), 0);
    cr_expect_eq(s.rings, 6);
    cr_expect_not(gpsh_setting_is_given("GPUSHMEM_BOOTSTRAP_INTERFACE"));
    gpsh_settings_clear(&s);
    gpsh_settings_forget();
}

Test(settings_files, bad_file__can_be_mended_before_the_next_try)
{
    char path[PATH_BYTES];
    struct gpsh_settings s;
    write_text("settings.conf", "GPUSHMEM_RINGS = many\n", path);
    cr_expect_eq(read_named(path, &s), GPUSHMEM_ERR_SETTING);
    write_text("settings.conf", "GPUSHMEM_RINGS = 6\n", path);
    cr_assert_eq(gpsh_settings_read_process("GPUSHMEM_", &s), 0, "%s", gpsh_last_error());
    cr_expect_eq(s.rings, 6);
    gpsh_settings_clear(&s);
    gpsh_settings_forget();
}

static char long_file[300000];

Test(settings_files, bad_line__sentence_names_file_and_line)
{
    static const struct {
        const char *text, *sentence; // after the file's name
        size_t bytes;                // 0: of the text
    } rows[] = {
        {"GPUSHMEM_HEAP_SIZE = lots", ":1: GPUSHMEM_HEAP_SIZE=lots is not a size from 1M to 16T",
         0},
        {"GPUSHMEM_HEAP_SIZE = 64K",
         ":1: GPUSHMEM_HEAP_SIZE=64K is not a size from 1M to 16T (a whole number of bytes, or of "
         "K, M, G or T); leave it out to get the default, 256M",
         0},
        {"\n\nGPUSHMEM_RINGS = 257\n", ":3: GPUSHMEM_RINGS=257 is not a whole number from 1 to", 0},
        {"GPUSHMEM_TEST_RING_ENTRIES=1000",
         ":1: GPUSHMEM_TEST_RING_ENTRIES=1000 is not a power of two", 0},
        {"GPUSHMEM_PROXY_CPUS = 4-", ":1: GPUSHMEM_PROXY_CPUS=4- is no list of CPUs", 0},
        {"GPUSHMEM_RINGS 4", ":1: 'GPUSHMEM_RINGS 4' is no setting; write one a line as", 0},
        {"export GPUSHMEM_RINGS=4", ":1: 'export GPUSHMEM_RINGS=4' is no setting", 0},
        {"[gpushmem]", ":1: '[gpushmem]' is no setting", 0},
        {"= 4", ":1: '= 4' is no setting", 0},
        {"GPUSHMEM_RINGS # = 4", ":1: 'GPUSHMEM_RINGS' is no setting", 0},
        {"GPUSHMEM_RINGS = \"4\"", ":1: GPUSHMEM_RINGS = \"4\": write the value without quotes", 0},
        {"GPUSHMEM_LOG_FILE = 'log'", ":1: GPUSHMEM_LOG_FILE = 'log': write the value without", 0},
        {"GPUSHMEM_RINGS=4\n#\nGPUSHMEM_RINGS=4\n", ":3: GPUSHMEM_RINGS has a value in line 1", 0},
        {"GPUSHMEM_SETTINGS_FILE = b", ":1: GPUSHMEM_SETTINGS_FILE says which file is read", 0},
        {"# a\n#\0b\n", ":2: byte 0x00 is no text", 8},
        {"# a\nGPUSHMEM_LOG_FILE = \033[2J", ":2: byte 0x1b is no text", 0},
        {"GPUSHMEM_LOG_FILE = \xc2\x9b"
         "2J",
         ":1: byte 0x9b is no text", 0},
        {long_file, " has more than 262144 bytes, which are the most; name another", 262145},
    };
    memset(long_file, '\n', sizeof long_file);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char path[PATH_BYTES], wanted[PATH_BYTES + 128];
        struct gpsh_settings s;
        write_bytes("settings.conf", rows[i].text,
                    rows[i].bytes ? rows[i].bytes : strlen(rows[i].text), path);
        snprintf(wanted, sizeof wanted, "%s%s", path, rows[i].sentence);
        cr_expect_eq(read_named(path, &s), GPUSHMEM_ERR_SETTING, "row %zu", i);
        cr_expect(strstr(gpsh_last_error(), wanted), "'%s' lacks '%s'", gpsh_last_error(), wanted);
    }
}

// Of a number with something after it, and of a comment that is none, the sentence says so.
Test(settings_files, bad_rest_of_a_value__sentence_names_it)
{
    static const char hint[] = " (a comment in a settings file needs a blank before its #)";
    static const struct {
        const char *text, *sentence;
        bool hinted;
    } rows[] = {
        {"RINGS=4#x", "1 to 256: '#x' after the number is not understood", true},
        {"RINGS=4 x", "1 to 256: ' x' after the number is not understood;", false},
        {"RINGS=many", "1 to 256; leave it out", false},
        {"RINGS=#x", "1 to 256 (a comment", true},
        {"HEAP_SIZE=64MiB#x", "M, G or T): '#x' after the number is not understood", true},
        {"HEAP_SIZE=64Q", "M, G or T): 'Q' after the number is not understood;", false},
        {"HEAP_SIZE=1", "M, G or T); leave it out", false},
        {"HEAP_SIZE=99999999999999999999", "M, G or T); leave it out", false},
        {"HEAP_SIZE=1.5G", ": '.5G' after the number is not understood; write 1536M;", false},
        {"HEAP_SIZE=1.25TiB", "not understood; write 1280G;", false},
        {"HEAP_SIZE=2.5", ": '.5' after the number is not understood; leave it out", false},
        {"PROXY_CPUS=4#x", "nor \"any\"", true},
        {"STATS=1#x", "nor 0, no, off, false", true},
        {"HEAP_KIND=host#x", " is none of ", true},
        {"TRANSPORTS=p2p#x", "separate several by commas", true},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char entry[64], *environment[] = {entry, NULL};
        struct gpsh_settings s;
        snprintf(entry, sizeof entry, "GPUSHMEM_%s", rows[i].text);
        cr_expect_eq(gpsh_settings_read(environment, &s), GPUSHMEM_ERR_SETTING, "%s", entry);
        cr_expect(strstr(gpsh_last_error(), rows[i].sentence), "'%s'", gpsh_last_error());
        cr_expect_eq(strstr(gpsh_last_error(), hint) != NULL, rows[i].hinted, "'%s'",
                     gpsh_last_error());
    }
}

// What the environment overrules is not looked at.
Test(settings_files, bad_value__may_be_overruled)
{
    char path[PATH_BYTES];
    struct gpsh_settings s;
    write_text("settings.conf", "GPUSHMEM_RINGS = many\n", path);
    setenv("GPUSHMEM_RINGS", "3", 1);
    cr_assert_eq(read_named(path, &s), 0, "%s", gpsh_last_error());
    cr_expect_eq(s.rings, 3);
    gpsh_settings_clear(&s);
    gpsh_settings_forget();
}

static void expect_refused(const char *path, const char *sentence)
{
    struct gpsh_settings s;
    cr_expect_eq(read_named(path, &s), GPUSHMEM_ERR_SETTING, "%s is taken", path);
    cr_expect(strstr(gpsh_last_error(), sentence), "'%s' lacks '%s'", gpsh_last_error(), sentence);
}

Test(settings_files, named_file__must_be_one_that_can_be_read)
{
    char path[PATH_BYTES], name[5000];
    expect_refused(below("nothing", path), "cannot be read: No such file or directory; name");
    cr_assert_eq(mkfifo(below("pipe", path), 0644), 0);
    expect_refused(path, "pipe is no regular file");
    expect_refused(folder, " is no regular file");
    expect_refused("/dev/null", "settings file /dev/null is no regular file");
    expect_refused("/dev/zero", "is no regular file");
    cr_assert_eq(symlink("circle", below("circle", path)), 0);
    expect_refused(path, "Too many levels of symbolic links");
    write_text("open", "GPUSHMEM_RINGS = 4\n", path);
    cr_assert_eq(chmod(path, 0666), 0);
    expect_refused(path, "open can be written by every user of this machine (chmod o-w)");
    memset(name, 'a', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    expect_refused(name, "cannot be read: File name too long");
    name[1000] = '\0';
    expect_refused(name, "settings file ...aaaa");
}

// This user's files as seen by one who may not read them, which root always may.
static void be_another(bool really)
{
    if (!getuid())
        cr_assert_eq(seteuid(really ? NOBODY : 0), 0);
    if (!really)
        prctl(PR_SET_DUMPABLE, 1); // a leak checker looks at the process later
}

Test(settings_files, users_file__unreadable_is_refused_and_out_of_sight_is_absent)
{
    char path[PATH_BYTES], home[PATH_BYTES];
    struct gpsh_settings s;
    write_text("me/.config/gpushmem/settings.conf", "GPUSHMEM_RINGS = 5\n", path);
    setenv("HOME", below("me", home), 1);
    unsetenv("XDG_CONFIG_HOME");
    cr_assert_eq(chmod(path, 0200), 0);
    be_another(true);
    expect_refused("", "settings.conf cannot be read: Permission denied; GPUSHMEM_SETTINGS_FILE");
    be_another(false);
    cr_assert_eq(chmod(path, 0644), 0);
    cr_assert_eq(chmod(home, 0), 0);
    be_another(true);
    cr_expect_eq(read_named("", &s), 0, "%s", gpsh_last_error());
    be_another(false);
    cr_expect_eq(s.rings, 4);
    gpsh_settings_clear(&s);
    gpsh_settings_forget();
    cr_assert_eq(chmod(home, 0755), 0);
}

static void warnings_of(const char *path, char *text, size_t bytes)
{
    char name[32];
    struct gpsh_settings s;
    int fd = memfd_create("log", 0);
    cr_assert(fd >= 0);
    snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
    cr_assert_eq(gpsh_log_open(GPSH_LOG_WARN, name), 0);
    cr_expect_eq(read_named(path, &s), 0, "%s", gpsh_last_error());
    gpsh_settings_clear(&s);
    // A read of one part says nothing, nor does one for another program.
    cr_expect_eq(gpsh_settings_read_process("GPUSHMEM_BOOTSTRAP_", &s), 0);
    gpsh_settings_clear(&s);
    cr_expect_eq(gpsh_settings_read_quietly("GPUSHMEM_", &s), 0);
    gpsh_settings_clear(&s);
    gpsh_settings_forget();
    gpsh_log_close();
    ssize_t length = pread(fd, text, bytes - 1, 0);
    text[length > 0 ? length : 0] = '\0';
    close(fd);
}

static int count(const char *text, const char *of)
{
    int n = 0;
    for (; (text = strstr(text, of)); text++)
        n++;
    return n;
}

Test(settings_files, unknown_names__are_told_once_with_what_was_meant)
{
    char path[PATH_BYTES], text[4096];
    write_text("settings.conf",
               "GPUSHMEM_HEEP_SIZE = 1G\nheap_size = 1G\nRINGS=4\nNVSHMEM_TEAMS = 3\n", path);
    warnings_of(path, text, sizeof text);
    cr_expect(strstr(text, "settings.conf:1: GPUSHMEM_HEEP_SIZE: unknown setting, ignored; did you "
                           "mean GPUSHMEM_HEAP_SIZE?"),
              "%s", text);
    cr_expect(strstr(text, ":2: heap_size: unknown setting, ignored; did you mean "
                           "GPUSHMEM_HEAP_SIZE?"),
              "%s", text);
    cr_expect(strstr(text, ":3: RINGS: unknown setting, ignored; did you mean GPUSHMEM_RINGS?"),
              "%s", text);
    cr_expect(strstr(text, ":4: NVSHMEM_TEAMS: unknown setting, ignored; `gpushmem info` lists"),
              "%s", text);
    cr_expect_eq(count(text, "unknown setting"), 4, "%s", text);
}

Test(settings_files, file_of_another_user__is_passed_over_unless_named)
{
    char path[PATH_BYTES], home[PATH_BYTES], text[1024];
    struct gpsh_settings s;
    if (getuid())
        return; // only root can give a file away
    write_text("me/.config/gpushmem/settings.conf", "GPUSHMEM_RINGS = 5\n", path);
    cr_assert_eq(chown(path, NOBODY, NOBODY), 0);
    setenv("HOME", below("me", home), 1);
    unsetenv("XDG_CONFIG_HOME");
    warnings_of("", text, sizeof text);
    cr_expect(strstr(text, "belongs to user 65534 and not to this one, and is ignored; name it in "
                           "GPUSHMEM_SETTINGS_FILE"),
              "%s", text);
    gpsh_log_threshold = GPSH_LOG_ERROR;
    cr_assert_eq(read_named("", &s), 0);
    cr_expect_eq(s.rings, 4);
    cr_expect_eq(gpsh_settings_file(0)->state, GPSH_FILE_PASSED_OVER);
    gpsh_settings_clear(&s);
    cr_assert_eq(read_named(path, &s), 0, "%s", gpsh_last_error());
    cr_expect_eq(s.rings, 5);
    gpsh_settings_clear(&s);
    gpsh_settings_forget();
}

// Whatever it is: a link to a file that is root's, which sentences would show, or a pipe.
Test(settings_files, thing_of_another_user__is_passed_over)
{
    char path[PATH_BYTES], secret[PATH_BYTES], home[PATH_BYTES], text[1024];
    if (getuid())
        return; // only root can give a file away
    write_text("secret", "root only\n", secret);
    write_text("me/.config/gpushmem/settings.conf", "", path);
    setenv("HOME", below("me", home), 1);
    unsetenv("XDG_CONFIG_HOME");
    for (int i = 0; i < 3; i++) {
        cr_assert_eq(unlink(path), 0);
        cr_assert_eq(i == 0   ? symlink(secret, path)
                     : i == 1 ? symlink("settings.conf", path)
                              : mkfifo(path, 0600),
                     0);
        cr_assert_eq(lchown(path, NOBODY, NOBODY), 0);
        warnings_of("", text, sizeof text);
        cr_expect(strstr(text, "belongs to user 65534"), "%d: %s", i, text);
    }
}
