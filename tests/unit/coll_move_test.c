// SPDX-License-Identifier: BSD-3-Clause
// Collectives that only move data, of PE 0 of two; the test is the other one, and hears what this
// one shows it.
#define _DEFAULT_SOURCE // MAP_ANONYMOUS
#include <criterion/criterion.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "comm/coll.h"

enum { PES = 2, ROOM = 256, THEIRS = 200 };

static char shown[PES][ROOM];
static const char *views[PES] = {shown[0], shown[1]};
static char work[GPSH_TEAM_WORK * ROOM], dest[PES * ROOM];
static struct gpsh_team team = {.n = PES, .room = ROOM, .views = views, .work = work};

// All of the heap.
static void open_heap(void)
{
    gpsh_heap_state.base = dest;
    gpsh_heap_state.user_bytes = gpsh_heap_state.first_bytes = sizeof dest;
    gpsh_heap_state.bytes = sizeof dest;
}

TestSuite(coll_move, .init = open_heap);

size_t __wrap_gpsh_team_allgather_most(const struct gpsh_team *of);
size_t __wrap_gpsh_team_allgather_most(const struct gpsh_team *of)
{
    return of->room;
}

int __wrap_gpsh_team_allgather_any(struct gpsh_team *of, const void *mine, size_t bytes, void *all,
                                   const char *what);
int __wrap_gpsh_team_allgather_any(struct gpsh_team *of, const void *mine, size_t bytes, void *all,
                                   const char *what)
{
    const uint64_t theirs = THEIRS;
    (void)of, (void)what;
    cr_assert_eq(bytes, sizeof theirs);
    memcpy(all, mine, bytes);
    memcpy((char *)all + bytes, &theirs, bytes);
    return 0;
}

// Reads all of what it is given, as members do.
int __wrap_gpsh_team_allgather(struct gpsh_team *of, const void *mine, size_t bytes,
                               const char *what);
int __wrap_gpsh_team_allgather(struct gpsh_team *of, const void *mine, size_t bytes,
                               const char *what)
{
    (void)of, (void)what;
    cr_assert_leq(bytes, ROOM);
    memcpy(shown[0], mine, bytes);
    return 0;
}

// Memory whose next byte nobody may read.
static char *at_the_end(size_t bytes)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *two = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    cr_assert(two != MAP_FAILED && mprotect(two + page, page, PROT_NONE) == 0);
    return two + page - bytes;
}

static void collect(size_t mine)
{
    char *source = at_the_end(mine);
    const struct gpsh_coll c = {.what = "the test",
                                .kind = GPUSHMEM_COLL_COLLECT,
                                .team = &team,
                                .dest = dest,
                                .source = source,
                                .size = 1,
                                .nelems = mine};
    memset(source, 'm', mine);
    memset(shown[1], 't', THEIRS);
    cr_assert_eq(gpsh_coll_collect(&c), 0, "%s", gpsh_last_error());
    for (size_t i = 0; i < mine + THEIRS; i++)
        cr_assert_eq(dest[i], i < mine ? 'm' : 't', "byte %zu", i);
    cr_assert_eq(dest[mine + THEIRS], 0);
}

Test(coll_move, collect__own_part_is_shorter__nothing_behind_it_is_read)
{
    collect(24);
}

Test(coll_move, collect__own_part_is_the_longest__is_shown_as_it_is)
{
    collect(ROOM);
}

Test(coll_move, collect__no_own_part__gets_the_others)
{
    collect(0);
}
