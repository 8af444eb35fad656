// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE // O_CLOEXEC
#include "observe/trace_parts.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/error.h"
#include "core/sha256.h"

// "FILE.12.0123abcd.part"; `base` is FILE's name without its folder.
static bool is_part_name(const char *name, const char *base)
{
    size_t length = strlen(base);
    if (strncmp(name, base, length) != 0 || name[length] != '.' ||
        !isdigit((unsigned char)name[length + 1]))
        return false;
    const char *end = name + length + 1;
    while (isdigit((unsigned char)*end))
        end++;
    if (*end == '.' && isxdigit((unsigned char)end[1]))
        for (end++; isxdigit((unsigned char)*end);)
            end++;
    return strcmp(end, ".part") == 0;
}

static bool ends(const char *text, size_t bytes)
{
    return memchr(text, '\0', bytes) != NULL;
}

static bool texts_end(const struct gpsh_trace_head *head)
{
    bool ok = ends(head->job, sizeof head->job) && ends(head->host, sizeof head->host);
    for (int i = 0; i < GPSH_TRACE_TRANSPORTS; i++)
        ok = ok && ends(head->transports[i], sizeof head->transports[i]);
    for (int i = 0; i < GPSH_TRACE_NAMES; i++)
        ok = ok && ends(head->names[i], sizeof head->names[i]);
    return ok;
}

// Another process wrote it, and perhaps only half of it.
static const char *part_fault(const struct gpsh_trace_head *head, uint64_t bytes)
{
    enum { MOST_LANES = 4096, MOST_RECORDS = 1 << 26, MOST_PES = 1 << 24 };
    if (bytes < sizeof *head || memcmp(head->magic, GPSH_TRACE_MAGIC, sizeof head->magic) != 0)
        return "it is no part of a trace, or its PE ended before it began";
    if (head->version != GPSH_TRACE_VERSION || head->head_bytes != sizeof *head)
        return "it was written by another version of gpushmem";
    bool sound = head->n_pes > 0 && head->n_pes < MOST_PES && head->pe >= 0 &&
                 head->pe < head->n_pes && head->n_lanes >= GPSH_TRACE_OTHER_LANES &&
                 head->n_lanes < MOST_LANES && head->lane_records > 0 && head->n_proxies >= 0 &&
                 head->n_proxies < head->n_lanes && head->lane_records <= MOST_RECORDS &&
                 !(head->lane_records & (head->lane_records - 1)) &&
                 head->n_names <= GPSH_TRACE_NAMES && texts_end(head);
    if (!sound || bytes != gpsh_trace_part_bytes(head->n_lanes, head->lane_records))
        return "it is damaged";
    return NULL;
}

// With `own`, a file of another user is none. They could cut it off while it is mapped, which would
// end this process; a person who names it knows whose it is.
static const char *part_map(struct gpsh_trace_part *part, bool own)
{
    struct stat st;
    int fd = open(part->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    void *map = MAP_FAILED;
    if (own && fd >= 0 && fstat(fd, &st) == 0 && st.st_uid != geteuid()) {
        close(fd);
        return "it belongs to another user; `gpushmem trace merge` takes it nevertheless";
    }
    if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 0)
        map = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    int error = errno;
    if (fd >= 0)
        close(fd);
    if (map == MAP_FAILED)
        return fd < 0 ? strerror(error) : "it is no file of records";
    part->head = map;
    part->bytes = (size_t)st.st_size;
    const char *fault = part_fault(part->head, part->bytes);
    if (fault)
        munmap(map, part->bytes);
    return fault;
}

static int part_add(struct gpsh_trace_parts *parts, const char *folder, const char *name, bool own)
{
    char path[PATH_MAX + NAME_MAX + 2];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    struct gpsh_trace_part part = {.path = strdup(path)};
    void *longer = realloc(parts->list, ((size_t)parts->n + 1) * sizeof part);
    if (longer)
        parts->list = longer;
    if (!longer || !part.path) {
        free(part.path);
        return gpsh_fail(GPUSHMEM_ERR_NO_MEMORY, "no memory for the parts of a trace");
    }
    const char *fault = part_map(&part, own);
    if (fault) {
        parts->refused++;
        snprintf(parts->why, sizeof parts->why, "%.200s: %s", path, fault);
        free(part.path);
        return 0;
    }
    parts->list[parts->n++] = part;
    return 0;
}

static void part_drop(struct gpsh_trace_part *part)
{
    munmap((void *)(uintptr_t)part->head, part->bytes);
    free(part->path);
}

// The file is mapped by the process that its head names, which is another one on this host. Of
// other users' processes nothing is known.
static bool part_runs(const struct gpsh_trace_part *part)
{
    char path[32], line[512], host[sizeof part->head->host] = "";
    struct stat st;
    unsigned long inode;
    bool runs = false;
    gethostname(host, sizeof host - 1);
    if (part->head->ended || part->head->pid == getpid() || strcmp(host, part->head->host) != 0 ||
        stat(part->path, &st))
        return false;
    snprintf(path, sizeof path, "/proc/%d/maps", part->head->pid);
    FILE *maps = fopen(path, "re");
    while (maps && !runs && fgets(line, sizeof line, maps))
        runs = sscanf(line, "%*s %*s %*s %*s %lu", &inode) == 1 && inode == st.st_ino &&
               strstr(line, ".part");
    if (maps)
        fclose(maps);
    return runs;
}

static bool same_job(const struct gpsh_trace_part *a, const struct gpsh_trace_part *b)
{
    return strcmp(a->head->job, b->head->job) == 0;
}

// A job that runs joins its parts itself, at its end.
static void leave_running(struct gpsh_trace_parts *parts)
{
    int kept = 0;
    bool *runs = calloc((size_t)parts->n + 1, sizeof *runs);
    for (int i = 0; runs && i < parts->n; i++) {
        if (runs[i] || !part_runs(&parts->list[i]))
            continue;
        parts->running_pid = parts->list[i].head->pid;
        for (int j = 0; j < parts->n; j++)
            runs[j] = runs[j] || same_job(&parts->list[j], &parts->list[i]);
    }
    for (int i = 0; runs && i < parts->n; i++) {
        parts->running += runs[i];
        if (runs[i])
            part_drop(&parts->list[i]);
        else
            parts->list[kept++] = parts->list[i];
    }
    parts->n = runs ? kept : parts->n;
    free(runs);
}

// Jobs but the one that was picked.
static int count_others(const struct gpsh_trace_parts *parts, const char *job)
{
    int others = 0;
    for (int i = 0; i < parts->n; i++) {
        bool counted = strcmp(parts->list[i].head->job, job) == 0;
        for (int j = 0; j < i && !counted; j++)
            counted = same_job(&parts->list[i], &parts->list[j]);
        others += !counted;
    }
    return others;
}

// Leaves those of one job.
static void parts_pick(struct gpsh_trace_parts *parts, const struct gpsh_trace_pick *pick)
{
    char job[sizeof parts->list->head->job] = "", wanted[sizeof job] = "";
    uint64_t latest = 0;
    if (pick->job)
        gpsh_sha256_mark(pick->job, wanted);
    for (int i = 0; i < parts->n; i++) {
        const struct gpsh_trace_head *head = parts->list[i].head;
        bool fits = pick->job       ? strcmp(wanted, head->job) == 0
                    : pick->run_pid ? pick->run_pid == head->run_pid
                                    : true;
        if (fits && head->began_real_ns >= latest) {
            latest = head->began_real_ns;
            memcpy(job, head->job, sizeof job);
        }
    }
    int kept = 0;
    parts->others = count_others(parts, job);
    for (int i = 0; i < parts->n; i++) {
        if (latest && strcmp(parts->list[i].head->job, job) == 0)
            parts->list[kept++] = parts->list[i];
        else
            part_drop(&parts->list[i]);
    }
    parts->n = kept;
}

static int by_pe(const void *a, const void *b)
{
    const struct gpsh_trace_part *left = a, *right = b;
    return (left->head->pe > right->head->pe) - (left->head->pe < right->head->pe);
}

int gpsh_trace_parts_open(const char *file, const struct gpsh_trace_pick *pick,
                          struct gpsh_trace_parts *parts)
{
    char folder[PATH_MAX];
    const char *slash = strrchr(file, '/'), *base = slash ? slash + 1 : file;
    int length = slash == file ? 1 : slash ? (int)(slash - file) : 1;
    *parts = (struct gpsh_trace_parts){0};
    snprintf(folder, sizeof folder, "%.*s", length, slash ? file : ".");
    DIR *dir = opendir(folder);
    if (!dir)
        return gpsh_fail(GPUSHMEM_ERR_SYSTEM, "the parts of the trace %s cannot be looked for: %s",
                         file, strerror(errno));
    int status = 0;
    for (struct dirent *entry; !status && (entry = readdir(dir));)
        if (is_part_name(entry->d_name, base))
            status = part_add(parts, folder, entry->d_name, pick->job || pick->run_pid);
    closedir(dir);
    if (status) {
        gpsh_trace_parts_close(parts, false);
        return status;
    }
    if (!pick->job && !pick->run_pid)
        leave_running(parts);
    parts_pick(parts, pick);
    if (parts->n)
        qsort(parts->list, (size_t)parts->n, sizeof *parts->list, by_pe);
    return 0;
}

void gpsh_trace_parts_close(struct gpsh_trace_parts *parts, bool remove)
{
    for (int i = 0; i < parts->n; i++) {
        if (remove)
            unlink(parts->list[i].path);
        part_drop(&parts->list[i]);
    }
    free(parts->list);
    parts->list = NULL;
    parts->n = 0;
}

// ---- Clocks ----

// Two nodes' clocks are compared by the barriers that their PEs were in. Nobody leaves a barrier
// before all have entered it: so, in true time, a's entry comes before b's exit and b's before
// a's. Each barrier bounds from both sides how far b's clock is ahead; the bounds of many leave
// little room. (F. Cristian, "Probabilistic clock synchronization", 1989, with a barrier for the
// message and its answer.)

// Of a node's PEs so many are compared with as many.
enum { COMPARED = 4 };

struct bounds {
    int64_t low, high; // of how far the clock is ahead
    uint64_t at_ns;    // where, by that clock: the last barrier's
};

static void narrow(struct bounds *bounds, const struct gpsh_trace_mark *a,
                   const struct gpsh_trace_mark *b)
{
    int64_t low = (int64_t)(b->entered_ns - a->left_ns),
            high = (int64_t)(b->left_ns - a->entered_ns);
    bounds->low = low > bounds->low ? low : bounds->low;
    bounds->high = high < bounds->high ? high : bounds->high;
    bounds->at_ns = b->left_ns > bounds->at_ns ? b->left_ns : bounds->at_ns;
}

static void compare_parts(struct bounds *bounds, const struct gpsh_trace_head *a,
                          const struct gpsh_trace_head *b, int when)
{
    for (int i = 0; i < GPSH_TRACE_MARKS; i++)
        for (int j = 0; j < GPSH_TRACE_MARKS; j++)
            if (b->marks[when][i].number && b->marks[when][i].number == a->marks[when][j].number)
                narrow(bounds, &a->marks[when][j], &b->marks[when][i]);
}

// when: 0 at the beginning of the job, 1 at its end.
static struct bounds compare_nodes(const struct gpsh_trace_parts *parts, int node, int when)
{
    struct bounds bounds = {.low = INT64_MIN, .high = INT64_MAX};
    int reference = parts->list[0].head->node;
    for (int i = 0, of_a = 0; i < parts->n && of_a < COMPARED; i++) {
        if (parts->list[i].head->node != reference)
            continue;
        of_a++;
        for (int j = 0, of_b = 0; j < parts->n && of_b < COMPARED; j++) {
            if (parts->list[j].head->node != node)
                continue;
            of_b++;
            compare_parts(&bounds, parts->list[i].head, parts->list[j].head, when);
        }
    }
    return bounds;
}

static const struct gpsh_trace_head *first_of(const struct gpsh_trace_parts *parts, int node)
{
    for (int i = 0; i < parts->n; i++)
        if (parts->list[i].head->node == node)
            return parts->list[i].head;
    return parts->list[0].head;
}

static int64_t middle(const struct bounds *b)
{
    return b->low + (b->high - b->low) / 2;
}

static bool known(const struct bounds *b)
{
    return b->at_ns && b->low <= b->high;
}

// No barrier in common: by the dates of the hosts, which something else keeps together.
static int64_t ahead_by_date(const struct gpsh_trace_head *a, const struct gpsh_trace_head *b)
{
    return (int64_t)(b->began_ns - b->began_real_ns) - (int64_t)(a->began_ns - a->began_real_ns);
}

void gpsh_trace_clock_estimate(const struct gpsh_trace_parts *parts, int node,
                               struct gpsh_trace_clock *clock)
{
    *clock = (struct gpsh_trace_clock){.node = node};
    if (node == parts->list[0].head->node)
        return;
    struct bounds begin = compare_nodes(parts, node, 0), end = compare_nodes(parts, node, 1);
    if (!known(&begin)) {
        clock->within_ns = -1;
        clock->ahead_ns = clock->ahead_later_ns =
            ahead_by_date(parts->list[0].head, first_of(parts, node));
        return;
    }
    clock->ahead_ns = clock->ahead_later_ns = middle(&begin);
    clock->at_ns = clock->later_ns = begin.at_ns;
    clock->within_ns = (begin.high - begin.low) / 2;
    if (known(&end) && end.at_ns > begin.at_ns) {
        clock->ahead_later_ns = middle(&end);
        clock->later_ns = end.at_ns;
        int64_t within = (end.high - end.low) / 2;
        clock->within_ns = within > clock->within_ns ? within : clock->within_ns;
    }
}

uint64_t gpsh_trace_clock_adjust(const struct gpsh_trace_clock *clock, uint64_t at_ns)
{
    int64_t ahead = clock->ahead_ns;
    if (at_ns > clock->at_ns && clock->later_ns > clock->at_ns) {
        double part = (double)(at_ns - clock->at_ns) / (double)(clock->later_ns - clock->at_ns);
        ahead += (int64_t)((double)(clock->ahead_later_ns - clock->ahead_ns) * part);
    }
    return at_ns - (uint64_t)ahead;
}
