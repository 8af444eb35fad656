// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE
#include "memory/mappings.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

enum { LINE_BYTES = 4096 + 256 }; // a path and what stands before it

struct reader {
    int fd;
    size_t begin, end;
    char text[2 * LINE_BYTES];
};

// The next line without its newline, or NULL: the end, or an error in errno.
static char *next_line(struct reader *r)
{
    for (;;) {
        char *line = r->text + r->begin, *newline = memchr(line, '\n', r->end - r->begin);
        if (newline) {
            *newline = '\0';
            r->begin = (size_t)(newline + 1 - r->text);
            return line;
        }
        memmove(r->text, line, r->end - r->begin);
        r->end -= r->begin;
        r->begin = 0;
        ssize_t got = read(r->fd, r->text + r->end, sizeof r->text - 1 - r->end);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return NULL;
        r->end += (size_t)got;
    }
}

static bool parse(const char *line, struct gpsh_mapping *out)
{
    int name = 0;
    int n =
        sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s %" SCNx64 " %x:%x %" SCNu64 " %n", &out->first,
               &out->end, out->rights, &out->offset, &out->major, &out->minor, &out->inode, &name);
    out->name = n == 7 && name ? line + name : "";
    return n == 7;
}

int gpsh_mappings_visit(uint64_t first, uint64_t end, gpsh_mapping_fn *visit, void *arg)
{
    struct reader r = {.fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC)};
    struct gpsh_mapping mapping;
    char *line;
    if (r.fd < 0)
        return errno;
    errno = 0;
    while ((line = next_line(&r)))
        if (parse(line, &mapping) && mapping.end > first &&
            (mapping.first >= end || !visit(&mapping, arg)))
            break;
    int error = line ? 0 : errno;
    close(r.fd);
    return error;
}

bool gpsh_mapping_shows(const struct gpsh_mapping *mapping, int fd, uint64_t at, uint64_t offset)
{
    struct stat info;
    return !fstat(fd, &info) && mapping->inode == info.st_ino &&
           mapping->major == major(info.st_dev) && mapping->minor == minor(info.st_dev) &&
           mapping->offset + (at - mapping->first) == offset;
}
