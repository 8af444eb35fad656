// SPDX-License-Identifier: BSD-3-Clause
// The settings files of a process: which there are, whether they may be trusted, and what they say:
// a setting a line, NAME = VALUE. A # begins a comment at the start of a line and after a blank.
#define _GNU_SOURCE // asprintf, getline, O_CLOEXEC
#include "core/settings_files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/error.h"
#include "core/log.h"

// ---- Lines ----

// "FILE:LINE: " and what is wrong; of a long path the end, which is what files differ in.
static int line_refuse(const struct gpsh_settings_file *file, int number, const char *why)
{
    size_t length = strlen(file->path), skip = length > 180 ? length - 180 : 0;
    return gpsh_fail(GPUSHMEM_ERR_SETTING, "%s%s:%d: %s", skip ? "..." : "", file->path + skip,
                     number, why);
}

// The text without blanks around it; its end is cut off.
static char *trim(char *text)
{
    size_t length = strlen(text);
    while (length && strchr(" \t", text[length - 1]))
        text[--length] = '\0';
    return text + strspn(text, " \t");
}

// A byte that no text has; what terminals take for commands is among them, also as UTF-8 writes
// U+0080 to U+009F.
static const unsigned char *stray_byte(const unsigned char *bytes, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if ((bytes[i] < ' ' && bytes[i] != '\t') || bytes[i] == 0x7f ||
            (i && bytes[i - 1] == 0xc2 && bytes[i] >= 0x80 && bytes[i] <= 0x9f))
            return bytes + i;
    return NULL;
}

static int line_take(struct gpsh_settings_given *given, struct gpsh_settings_file *file, int number,
                     const char *name, const char *value, bool tell)
{
    char text[400];
    int i = gpsh_setting_find(name, strlen(name));
    if (i == GPSH_SETTINGS) {
        size_t long_path = strlen(file->path) > 200 ? strlen(file->path) - 200 : 0;
        snprintf(text, sizeof text, "%s:%d: ", file->path + long_path, number);
        gpsh_setting_ignore(given, text, name, strlen(name), tell);
        return 0;
    }
    if (!strcmp(name, GPSH_SETTINGS_FILE)) {
        snprintf(text, sizeof text, "%s says which file is read, and has no place in one", name);
        return line_refuse(file, number, text);
    }
    if (given->row[i].from && !strcmp(given->row[i].from, file->path)) {
        snprintf(text, sizeof text, "%s has a value in line %d already; keep one of them", name,
                 given->row[i].line);
        return line_refuse(file, number, text);
    }
    file->settings++;
    return gpsh_setting_give(given, i, GPSH_FROM_FILE, value, file->path, number);
}

// A line without its end.
static int line_read(struct gpsh_settings_given *given, struct gpsh_settings_file *file, int number,
                     char *line, size_t length, bool tell)
{
    char why[200];
    const unsigned char *stray = stray_byte((unsigned char *)line, length);
    if (stray) {
        snprintf(why, sizeof why, "byte 0x%02x is no text; settings are lines NAME = VALUE",
                 *stray);
        return line_refuse(file, number, why);
    }
    for (char *at = line; (at = strchr(at, '#')); at++)
        if (at == line || strchr(" \t", at[-1])) {
            *at = '\0';
            break;
        }
    line = trim(line);
    if (!*line)
        return 0;
    size_t name = strspn(line, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789");
    char *equals = line + name + strspn(line + name, " \t");
    if (!name || *equals != '=') {
        snprintf(why, sizeof why,
                 "'%.60s' is no setting; write one a line as NAME = VALUE, and # before a comment",
                 line);
        return line_refuse(file, number, why);
    }
    char *value = trim(equals + 1);
    size_t end = strlen(value);
    line[name] = '\0';
    if (end >= 2 && strchr("\"'", value[0]) && value[end - 1] == value[0]) {
        snprintf(why, sizeof why, "%.60s = %.60s: write the value without quotes", line, value);
        return line_refuse(file, number, why);
    }
    return line_take(given, file, number, line, value, tell);
}

int gpsh_settings_lines_read(FILE *in, struct gpsh_settings_file *file, bool tell,
                             struct gpsh_settings_given *given)
{
    static const char mark[] = "\xef\xbb\xbf"; // that some editors begin a file with
    char *line = NULL;
    size_t room = 0;
    ssize_t length;
    int status = 0;
    for (int number = 1; !status && (length = getline(&line, &room, in)) >= 0; number++) {
        char *text = number == 1 && !strncmp(line, mark, 3) ? line + 3 : line;
        length -= text - line;
        for (const char *end = "\n\r"; *end; end++)
            if (length && text[length - 1] == *end)
                text[--length] = '\0';
        status = line_read(given, file, number, text, (size_t)length, tell);
    }
    free(line);
    file->state = GPSH_FILE_READ;
    return status;
}

// ---- Whether a file can be read, and may be trusted ----

static int file_refuse(const struct gpsh_settings_file *file, const char *what, const char *error)
{
    size_t length = strlen(file->path), skip = length > 180 ? length - 180 : 0;
    return gpsh_fail(GPUSHMEM_ERR_SETTING, "settings file %s%s %s%s; %s", skip ? "..." : "",
                     file->path + skip, what, error,
                     file->owner == GPSH_FILE_NAMED ? "name another one in " GPSH_SETTINGS_FILE
                                                      ", or none to read no file"
                                                    : GPSH_SETTINGS_FILE "=none reads no file");
}

// A file that nobody has named need not be there, nor be where this user may look: HOME may be
// another user's.
static bool may_lack(const struct gpsh_settings_file *file, int error)
{
    struct stat st;
    return file->owner != GPSH_FILE_NAMED &&
           (error == ENOENT || error == ENOTDIR ||
            (error == EACCES && stat(file->path, &st) && errno == EACCES));
}

static bool is_of_another(struct gpsh_settings_file *file, const struct stat *st)
{
    if (file->owner != GPSH_FILE_OF_USER || !st->st_uid || st->st_uid == geteuid())
        return false;
    file->state = GPSH_FILE_PASSED_OVER;
    GPSH_LOG(WARN, "config",
             "settings file %s belongs to user %u and not to this one, and is ignored; name it "
             "in " GPSH_SETTINGS_FILE " to use it",
             file->path, (unsigned)st->st_uid);
    return true;
}

static int file_check(const struct gpsh_settings_file *file, const struct stat *st, bool live)
{
    if (!S_ISREG(st->st_mode))
        return file_refuse(file, "is no regular file", "");
    if (live && st->st_mode & S_IWOTH)
        return file_refuse(file, "can be written by every user of this machine (chmod o-w)", "");
    if (st->st_size > GPSH_SETTINGS_FILE_BYTES)
        return file_refuse(file, "has more than 262144 bytes, which are the most", "");
    return 0;
}

// `live`: a file of this machine, and not of a recorded one. A pipe that nobody writes to must not
// hold this process up, and a terminal not become its own.
static int file_read(struct gpsh_settings_given *given, struct gpsh_settings_file *file, bool live,
                     bool tell)
{
    struct stat st;
    // Another user's link may lead to what that user cannot read, and their pipe is no error here.
    if (live && !lstat(file->path, &st) && is_of_another(file, &st))
        return 0;
    int fd = open(file->path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    FILE *in = fd < 0 || fstat(fd, &st) ? NULL : fdopen(fd, "r");
    int error = errno, status = 0;
    if (!in) {
        if (fd >= 0)
            close(fd);
        return fd < 0 && may_lack(file, error)
                   ? 0
                   : file_refuse(file, "cannot be read: ", strerror(error));
    }
    if (!live || !is_of_another(file, &st)) {
        status = file_check(file, &st, live);
        if (!status)
            status = gpsh_settings_lines_read(in, file, tell, given);
        if (!status && ferror(in))
            status = file_refuse(file, "cannot be read: ", strerror(errno));
    }
    fclose(in);
    return status;
}

// ---- Where the files are ----

static int place(struct gpsh_settings_file *file, enum gpsh_settings_owner owner, const char *root,
                 const char *folder, const char *name)
{
    file->owner = owner;
    if (asprintf(&file->path, "%s%s%s", root, folder, name) >= 0)
        return 0;
    file->path = NULL;
    return gpsh_fail(GPUSHMEM_ERR_NO_MEMORY, "no memory for the settings");
}

int gpsh_settings_files_read(char *const *environment, const char *root, bool tell,
                             struct gpsh_settings_given *given)
{
    const char *named = gpsh_settings_variable(environment, GPSH_SETTINGS_FILE),
               *config = gpsh_settings_variable(environment, "XDG_CONFIG_HOME"),
               *home = gpsh_settings_variable(environment, "HOME");
    struct gpsh_settings_file *user = &given->file[0], *system = &given->file[1];
    int status = 0;
    if (named && !strcasecmp(named, "none"))
        return 0;
    if (named && *named)
        status = place(user, GPSH_FILE_NAMED, root, *root && *named != '/' ? "/" : "", named);
    else if (config && config[0] == '/')
        status = place(user, GPSH_FILE_OF_USER, root, config, "/gpushmem/settings.conf");
    else if (home && home[0] == '/')
        status = place(user, GPSH_FILE_OF_USER, root, home[1] ? home : "",
                       "/.config/gpushmem/settings.conf");
    if (!status)
        status = place(system, GPSH_FILE_OF_SYSTEM, root, "", "/etc/gpushmem/settings.conf");
    // A line of the user's file takes the place of the system's.
    for (int i = GPSH_SETTINGS_FILES; i-- > 0 && !status;)
        if (given->file[i].path)
            status = file_read(given, &given->file[i], !*root, tell);
    return status;
}
