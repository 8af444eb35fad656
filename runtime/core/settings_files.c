// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE // strdup, O_CLOEXEC
#include "core/settings_files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/error.h"
#include "core/log.h"
#include "core/setting_rows.h"
#include "core/settings_text.h"

#define BELOW_HOME   "/.config/gpushmem/settings.conf"
#define BELOW_CONFIG "/gpushmem/settings.conf"
#define OF_SYSTEM    "/etc/gpushmem/settings.conf"

enum { UNKNOWN_TOLD = 8, SHOWN = 200 };

const char *gpsh_settings_variable(char *const *environment, const char *name)
{
    size_t length = strlen(name);
    for (char *const *entry = environment; *entry; entry++)
        if (!strncmp(*entry, name, length) && (*entry)[length] == '=')
            return *entry + length + 1;
    return NULL;
}

// ---- Where the files are ----

// What is too long to be a path stays empty: a part of it would be another file's.
static void place_set(struct gpsh_settings_file *file, enum gpsh_settings_owner owner,
                      const char *root, const char *folder, const char *name)
{
    int n = snprintf(file->path, sizeof file->path, "%s%s%s", root, folder, name);
    file->owner = owner;
    if (n < 0 || (size_t)n >= sizeof file->path)
        file->path[0] = '\0';
}

static void place_of_user(struct gpsh_settings_file *file, char *const *environment,
                          const char *root)
{
    const char *config = gpsh_settings_variable(environment, "XDG_CONFIG_HOME"),
               *home = gpsh_settings_variable(environment, "HOME");
    if (config && config[0] == '/')
        place_set(file, GPSH_FILE_OF_USER, root, config, BELOW_CONFIG);
    else if (home && home[0] == '/')
        place_set(file, GPSH_FILE_OF_USER, root, strcmp(home, "/") ? home : "", BELOW_HOME);
}

static void places_find(char *const *environment, const char *root,
                        struct gpsh_settings_file files[GPSH_SETTINGS_FILES])
{
    const char *named = gpsh_settings_variable(environment, GPSH_SETTINGS_FILE);
    for (int i = 0; i < GPSH_SETTINGS_FILES; i++) {
        files[i].owner = GPSH_FILE_OF_NOBODY;
        files[i].path[0] = '\0';
    }
    if (named && !strcasecmp(named, GPSH_SETTINGS_FILE_NONE))
        return;
    if (named && *named)
        place_set(&files[0], GPSH_FILE_NAMED, root, *root && *named != '/' ? "/" : "", named);
    else
        place_of_user(&files[0], environment, root);
    place_set(&files[1], GPSH_FILE_OF_SYSTEM, root, "", OF_SYSTEM);
}

bool gpsh_settings_files_fit(const struct gpsh_settings_files *files, char *const *environment)
{
    struct gpsh_settings_file now[GPSH_SETTINGS_FILES];
    places_find(environment, "", now);
    for (int i = 0; i < GPSH_SETTINGS_FILES; i++)
        if (now[i].owner != files->file[i].owner || strcmp(now[i].path, files->file[i].path) != 0)
            return false;
    return true;
}

// ---- Whether a file can be read, and may be trusted ----

static int file_refuse(const struct gpsh_settings_file *file, const char *what)
{
    char path[SHOWN];
    return gpsh_fail(GPUSHMEM_ERR_SETTING, "settings file %s %s; %s",
                     gpsh_settings_line_place(file->path, 0, path, sizeof path), what,
                     file->owner == GPSH_FILE_NAMED ? "name another one in " GPSH_SETTINGS_FILE
                                                      ", or " GPSH_SETTINGS_FILE_NONE
                                                      " to read no file"
                                                    : GPSH_SETTINGS_FILE "=none reads no file");
}

static int refuse_unread(const struct gpsh_settings_file *file, int error)
{
    char what[120];
    snprintf(what, sizeof what, "cannot be read: %s", strerror(error));
    return file_refuse(file, what);
}

// A file that nobody has named need not be there, nor be where this user may look: HOME may be
// another user's.
static bool may_lack(const struct gpsh_settings_file *file, int error)
{
    struct stat st;
    if (file->owner == GPSH_FILE_NAMED)
        return false;
    return error == ENOENT || error == ENOTDIR ||
           (error == EACCES && stat(file->path, &st) && errno == EACCES);
}

static const char *kind_of(mode_t mode)
{
    return S_ISDIR(mode)    ? "is a folder, not a file"
           : S_ISFIFO(mode) ? "is a pipe, not a file"
                            : "is a device, not a file";
}

static bool is_of_another(const struct gpsh_settings_file *file, const struct stat *st)
{
    return file->owner == GPSH_FILE_OF_USER && st->st_uid && st->st_uid != geteuid();
}

static int pass_over_file(struct gpsh_settings_file *file, const struct stat *st)
{
    file->state = GPSH_FILE_PASSED_OVER;
    GPSH_LOG(WARN, "config",
             "settings file %s belongs to user %u and not to this one, and is ignored; name it "
             "in " GPSH_SETTINGS_FILE " to use it",
             file->path, (unsigned)st->st_uid);
    return 0;
}

static int file_check(struct gpsh_settings_file *file, const struct stat *st, bool live)
{
    if (!S_ISREG(st->st_mode))
        return file_refuse(file, kind_of(st->st_mode));
    if (live && st->st_mode & S_IWOTH)
        return file_refuse(file, "can be written by every user of this machine (chmod o-w)");
    return live && is_of_another(file, st) ? pass_over_file(file, st) : 0;
}

// The descriptor, or -1 with the state or an error. A pipe that nobody writes to must not hold this
// process up, and a terminal not become its own.
static int file_open(struct gpsh_settings_file *file, bool live, int *fd)
{
    struct stat st;
    *fd = -1;
    // Another user's link may lead to what that user cannot read, and their pipe is no error here.
    if (live && lstat(file->path, &st) == 0 && is_of_another(file, &st))
        return pass_over_file(file, &st);
    *fd = open(file->path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    int error = *fd < 0 || fstat(*fd, &st) ? errno : 0;
    if (*fd < 0 && may_lack(file, error))
        return 0;
    if (*fd < 0)
        return refuse_unread(file, error);
    int status = error ? refuse_unread(file, error) : file_check(file, &st, live);
    if (!status && file->state != GPSH_FILE_PASSED_OVER)
        return 0;
    close(*fd);
    *fd = -1;
    return status;
}

// ---- What the files say ----

// A file whose lines are being taken.
struct taking {
    struct gpsh_settings_files *files;
    struct gpsh_settings_file *file;
    int unknown;
    int line[GPSH_SETTINGS]; // 0: none yet
};

static int refuse_line(const struct gpsh_settings_line *line, const char *why)
{
    char place[SHOWN];
    return gpsh_fail(GPUSHMEM_ERR_SETTING, "%s: %s %s",
                     gpsh_settings_line_place(line->file, line->number, place, sizeof place),
                     line->name, why);
}

static int pass_over(struct taking *t, const struct gpsh_settings_line *line)
{
    char place[SHOWN], advice[120];
    if (t->unknown++ < UNKNOWN_TOLD)
        GPSH_LOG(WARN, "config", "%s: %.64s: unknown setting, ignored; %s",
                 gpsh_settings_line_place(line->file, line->number, place, sizeof place),
                 line->name,
                 gpsh_setting_advice(line->name, strlen(line->name), advice, sizeof advice));
    return 0;
}

static int take_line(void *arg, const struct gpsh_settings_line *line)
{
    struct taking *t = arg;
    int i = gpsh_setting_find(line->name, strlen(line->name));
    if (i == GPSH_SETTINGS)
        return pass_over(t, line);
    if (!strcmp(line->name, GPSH_SETTINGS_FILE))
        return refuse_line(line, "says which file is read, and has no place in one");
    if (t->line[i]) {
        char why[80];
        snprintf(why, sizeof why, "has a value in line %d already; keep one of them", t->line[i]);
        return refuse_line(line, why);
    }
    t->line[i] = line->number;
    t->file->settings++;
    if (t->files->row[i].value)
        return 0; // of a file of higher rank
    t->files->row[i].value = strdup(line->value);
    t->files->row[i].file = t->file;
    t->files->row[i].line = line->number;
    return t->files->row[i].value
               ? 0
               : gpsh_fail(GPUSHMEM_ERR_NO_MEMORY, "no memory for the value of %s", line->name);
}

// A file may grow while it is read: its size says nothing.
static ssize_t read_whole(int fd, char *text, size_t room)
{
    size_t bytes = 0;
    while (bytes < room) {
        ssize_t n = read(fd, text + bytes, room - bytes);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n < 0 ? -1 : (ssize_t)bytes;
        bytes += (size_t)n;
    }
    return (ssize_t)bytes;
}

static int take_text(struct taking *t, char *text, size_t bytes)
{
    int status = gpsh_settings_text_read(t->file->path, text, bytes, take_line, t);
    if (t->unknown > UNKNOWN_TOLD)
        GPSH_LOG(WARN, "config", "%s: %d more unknown settings", t->file->path,
                 t->unknown - UNKNOWN_TOLD);
    return status;
}

static int take_file(struct taking *t, int fd)
{
    enum { ROOM = GPSH_SETTINGS_FILE_BYTES + 1 };
    char what[120], *text = malloc(ROOM + 1);
    if (!text)
        return gpsh_fail(GPUSHMEM_ERR_NO_MEMORY, "no memory to read %s", t->file->path);
    ssize_t bytes = read_whole(fd, text, ROOM);
    int status;
    snprintf(what, sizeof what, "has more than %d bytes, which are the most",
             GPSH_SETTINGS_FILE_BYTES);
    if (bytes < 0)
        status = refuse_unread(t->file, errno);
    else if (bytes == ROOM)
        status = file_refuse(t->file, what);
    else
        status = take_text(t, text, (size_t)bytes);
    free(text);
    return status;
}

static int read_file(struct gpsh_settings_files *files, struct gpsh_settings_file *file, bool live)
{
    int fd, status;
    if (file->owner == GPSH_FILE_NAMED && !file->path[0])
        return gpsh_fail(GPUSHMEM_ERR_SETTING,
                         GPSH_SETTINGS_FILE ": the name has more than %d bytes",
                         GPSH_SETTINGS_PATH_BYTES - 1);
    if (!file->path[0])
        return 0;
    status = file_open(file, live, &fd);
    if (status || fd < 0)
        return status;
    struct taking taking = {.files = files, .file = file};
    status = take_file(&taking, fd);
    close(fd);
    file->state = GPSH_FILE_READ;
    return status;
}

int gpsh_settings_files_read(char *const *environment, const char *root,
                             struct gpsh_settings_files **out)
{
    struct gpsh_settings_files *files = calloc(1, sizeof *files);
    int status = files ? 0 : gpsh_fail(GPUSHMEM_ERR_NO_MEMORY, "no memory for the settings");
    if (files)
        places_find(environment, root, files->file);
    for (int i = 0; i < GPSH_SETTINGS_FILES && !status; i++)
        status = read_file(files, &files->file[i], !*root);
    if (status)
        gpsh_settings_files_free(files);
    else
        *out = files;
    return status;
}

void gpsh_settings_files_free(struct gpsh_settings_files *files)
{
    for (int i = 0; files && i < GPSH_SETTINGS; i++)
        free(files->row[i].value);
    free(files);
}
