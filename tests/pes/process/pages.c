// SPDX-License-Identifier: BSD-3-Clause
// PE 1 runs on a machine whose pages have 64 KiB, as far as the library can tell: sysconf says so,
// and mmap refuses what such a kernel refuses. What all PEs do in whole pages is in the larger
// ones.
#define _GNU_SOURCE // RTLD_NEXT, MAP_ANONYMOUS
#include <dlfcn.h>
#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../check.h"

enum { LARGE = 65536 };

static bool has_large_pages(void)
{
    const char *pe = getenv("GPUSHMEM_RUN_PE");
    return pe && !strcmp(pe, "1");
}

static void *next_of(const char *name)
{
    void *symbol = dlsym(RTLD_NEXT, name);
    CHECK(symbol);
    return symbol;
}

// The library finds these before the C library's.
#pragma GCC visibility push(default)
long sysconf(int name)
{
    static long (*next)(int);
    if (!next)
        *(void **)&next = next_of("sysconf");
    return name == _SC_PAGESIZE && has_large_pages() ? LARGE : next(name);
}

void *mmap(void *at, size_t bytes, int protection, int flags, int fd, off_t offset)
{
    static void *(*next)(void *, size_t, int, int, int, off_t);
    if (!next)
        *(void **)&next = next_of("mmap");
    if (offset % LARGE && has_large_pages()) {
        errno = EINVAL;
        return MAP_FAILED;
    }
    if (!at && has_large_pages()) { // such a kernel's addresses
        char *room = next(NULL, bytes + LARGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (room == MAP_FAILED)
            return room;
        at = room + (-(uintptr_t)room & (LARGE - 1));
        flags |= MAP_FIXED;
    }
    return next(at, bytes, protection, flags, fd, offset);
}
#pragma GCC visibility pop

static void meet(char *object, size_t bytes)
{
    int me = gpushmem_my_pe(), n = gpushmem_n_pes();
    char *here = malloc(bytes);
    CHECK(here);
    fill(here, bytes, (unsigned)me);
    CHECK_OK(gpushmem_putmem(object, here, bytes, (me + 1) % n));
    CHECK_OK(gpushmem_barrier_all());
    fill(here, bytes, (unsigned)((me + n - 1) % n));
    CHECK(!memcmp(object, here, bytes));
    memset(here, 0, bytes);
    CHECK_OK(gpushmem_getmem(here, object + bytes - 1, 1, (me + 1) % n));
    CHECK_OK(gpushmem_barrier_all());
    free(here);
}

static void test_buffers(void)
{
    enum { PIECES = 3 };
    char *buffer = aligned_alloc(LARGE, (PIECES + 1) * LARGE), *symmetric;
    CHECK(buffer);
    memset(buffer, 3, (PIECES + 1) * LARGE);
    CHECK(!gpushmem_buffer_register_symmetric(buffer + 4096, LARGE));
    CHECK(gpushmem_last_error_code() == GPUSHMEM_ERR_ALIGNMENT);
    CHECK_THAT(strstr(gpushmem_last_error(), "multiples of 65536"), "%s", gpushmem_last_error());
    CHECK(gpushmem_malloc(100)); // what follows is aligned, too
    symmetric = gpushmem_buffer_register_symmetric(buffer, PIECES * LARGE);
    CHECK_THAT(symmetric, "%s", gpushmem_last_error());
    CHECK(symmetric[0] == 3 && symmetric[PIECES * LARGE - 1] == 3 && buffer[PIECES * LARGE] == 3);
    CHECK_OK(gpushmem_barrier_all());
    meet(symmetric, PIECES * LARGE);
    CHECK_OK(gpushmem_buffer_unregister_symmetric(buffer));
    free(buffer);
}

int main(void)
{
    CHECK_OK(gpushmem_init());
    char *small = gpushmem_malloc(100);
    meet(small, 100);
    test_buffers();
    char *large = gpushmem_malloc(16 << 20); // the heap grows
    CHECK_THAT(large, "%s", gpushmem_last_error());
    meet(large, 16 << 20);
    CHECK_OK(gpushmem_free(large));
    return gpushmem_finalize();
}
