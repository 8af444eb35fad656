// SPDX-License-Identifier: BSD-3-Clause
// Memory that the program allocated as symmetric memory: every kind of host call, by the program's
// address and by the symmetric one; what is refused; memory that goes away; children.
#define _GNU_SOURCE // memfd_create, MAP_ANONYMOUS
#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

enum { PAGE = 4096, PAGES = 40, WORDS = PAGES * PAGE / 8, BYTES = PAGES * PAGE };
enum {
    LARGE_BYTES = 6 << 20,
    HUGE_BYTES = 100 << 20
}; // more than a small heap's first, or a limit

static int me, n, next, before;
static long counter; // static data: another segment
static char in_statics[3 * PAGE];

static void *map(size_t bytes)
{
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(at != MAP_FAILED);
    return at;
}

static void *must_register(void *buffer, size_t bytes)
{
    void *symmetric = gpushmem_buffer_register_symmetric(buffer, bytes);
    CHECK_THAT(symmetric, "%s", gpushmem_last_error());
    return symmetric;
}

static void everything(long *mine, long *symmetric)
{
    long source[3] = {me, 10 * me, 100 * me}, got[3];
    uint64_t *signals = (uint64_t *)(void *)(mine + 100);
    CHECK_OK(gpushmem_long_put(mine + 1, source, 3, next));
    CHECK_OK(gpushmem_long_put(symmetric + WORDS - 3, source, 3, next));
    CHECK_OK(gpushmem_barrier_all());
    CHECK(mine[2] == 10 * before && symmetric[3] == 100 * before &&
          mine[WORDS - 1] == 100 * before);
    CHECK(gpushmem_long_g(&mine[2], next) == 10 * me);
    CHECK_OK(gpushmem_long_get(got, symmetric + 1, 3, next));
    CHECK(got[2] == 100 * me);
    CHECK_OK(gpushmem_long_get_nbi(mine + 20, mine + 1, 3, next)); // from there to there
    CHECK_OK(gpushmem_quiet());
    CHECK(symmetric[22] == 100 * me);
    CHECK_OK(gpushmem_long_atomic_add(mine + 30, 5, 0));
    CHECK_OK(gpushmem_int_atomic_inc((int *)(void *)(symmetric + 31), 0));
    CHECK_OK(gpushmem_long_atomic_inc(&counter, 0));
    CHECK_OK(
        gpushmem_long_put_signal(mine + 40, source, 3, &signals[0], 1, GPUSHMEM_SIGNAL_SET, next));
    CHECK_OK(gpushmem_long_put_signal(symmetric + 50, source, 3, &signals[1], 2,
                                      GPUSHMEM_SIGNAL_ADD, next));
    CHECK_OK(gpushmem_uint64_wait_until(&signals[0], GPUSHMEM_CMP_EQ, 1));
    CHECK(mine[41] == 10 * before);
    CHECK(gpushmem_signal_wait_until((uint64_t *)(void *)(symmetric + 101), GPUSHMEM_CMP_EQ, 2) ==
          2);
    CHECK(mine[52] == 100 * before);
    CHECK_OK(gpushmem_long_iput(mine + 60, source, 2, 1, 3, next));
    CHECK_OK(gpushmem_barrier_all());
    CHECK(mine[62] == 10 * before && mine[64] == 100 * before);
    CHECK(me || (mine[30] == 5 * n && *(int *)(void *)&mine[31] == n));
    CHECK_OK(gpushmem_long_sum_reduce(GPUSHMEM_TEAM_WORLD, mine + 70, mine + 1, 1));
    CHECK(mine[70] == n * (n - 1) / 2);
    const long *theirs = gpushmem_ptr(mine, next), *same = gpushmem_ptr(symmetric, next);
    CHECK(theirs == same || next == me);
    CHECK(gpushmem_ptr(mine, me) == mine && gpushmem_addr_accessible(mine + WORDS - 1, next));
    CHECK(!gpushmem_addr_accessible((char *)mine + BYTES, next));
    CHECK(gpushmem_long_put(mine + WORDS - 1, source, 2, next) == GPUSHMEM_ERR_ADDRESS);
    CHECK(strstr(gpushmem_last_error(), "registered buffer"));
    CHECK_OK(gpushmem_barrier_all());
}

// What it holds stays through both calls, and afterwards it is this PE's own.
static void kinds(void *buffer)
{
    static unsigned char image[BYTES];
    long *words = buffer;
    fill(buffer, BYTES, (unsigned)me);
    memcpy(image, buffer, BYTES);
    long *symmetric = must_register(buffer, BYTES);
    CHECK(!memcmp(buffer, image, BYTES) && !memcmp(symmetric, image, BYTES));
    memset(buffer, 0, BYTES);
    CHECK_OK(gpushmem_barrier_all());
    everything(words, symmetric);
    fill(buffer, BYTES, (unsigned)me + 7);
    memcpy(image, buffer, BYTES);
    CHECK_OK(gpushmem_buffer_unregister_symmetric(me % 2 ? buffer : symmetric));
    CHECK(!memcmp(buffer, image, BYTES));
    CHECK(gpushmem_long_p(words, 1, next) == GPUSHMEM_ERR_ADDRESS);
    symmetric = gpushmem_malloc(BYTES); // the block that it was
    memset(symmetric, 1, BYTES);
    CHECK_OK(gpushmem_barrier_all());
    CHECK(!memcmp(buffer, image, BYTES));
    CHECK_OK(gpushmem_free(symmetric));
}

static void *map_file(void)
{
    FILE *file = tmpfile();
    CHECK(file && !ftruncate(fileno(file), BYTES));
    void *at = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE, fileno(file), 0);
    CHECK(at != MAP_FAILED);
    fclose(file);
    return at;
}

static void all_kinds(void)
{
    void *mapped = map((size_t)BYTES + (size_t)me * PAGE); // at another address on each PE
    void *allocated = aligned_alloc(PAGE, BYTES), *file = map_file();
    kinds((char *)mapped + (size_t)me * PAGE);
    kinds(allocated);
    kinds(file);
    munmap(mapped, (size_t)BYTES + (size_t)me * PAGE);
    munmap(file, BYTES);
    free(allocated);
}

static void large(void)
{
    char *at = map(LARGE_BYTES);
    fill(at, LARGE_BYTES, (unsigned)me);
    must_register(at, LARGE_BYTES);
    CHECK_OK(gpushmem_getmem(at, at + LARGE_BYTES / 2, LARGE_BYTES / 2, next));
    CHECK_OK(gpushmem_buffer_unregister_symmetric(at));
    char *theirs = malloc(LARGE_BYTES);
    fill(theirs, LARGE_BYTES, (unsigned)next);
    CHECK(!memcmp(at, theirs + LARGE_BYTES / 2, LARGE_BYTES / 2));
    free(theirs);
    munmap(at, LARGE_BYTES);
}

static void refuse(void *buffer, size_t bytes, int code, const char *word)
{
    CHECK(!gpushmem_buffer_register_symmetric(buffer, bytes));
    CHECK_THAT(gpushmem_last_error_code() == code && strstr(gpushmem_last_error(), word),
               "%d, not %d: %s (%s)", gpushmem_last_error_code(), code, gpushmem_last_error(),
               word);
}

static void refusals(void)
{
    char *good = map(BYTES), *holes = map(BYTES), *shared, stack[PAGE];
    shared = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    char *heap = gpushmem_align(PAGE, PAGE);
    refuse(NULL, PAGE, GPUSHMEM_ERR_INVALID, "empty");
    refuse(good, 0, GPUSHMEM_ERR_INVALID, "empty");
    refuse(good, SIZE_MAX - PAGE + 1, GPUSHMEM_ERR_INVALID, "address space");
    refuse(good + 8, PAGE, GPUSHMEM_ERR_ALIGNMENT, "multiples of 4096");
    refuse(good, 100, GPUSHMEM_ERR_ALIGNMENT, "multiples of 4096");
    // unmapped, or over the heap: where the buffer lies differs from run to run
    refuse(good, (size_t)1 << 60, GPUSHMEM_ERR_INVALID, "memory");
    refuse(shared, BYTES, GPUSHMEM_ERR_INVALID, "shared memory already");
    refuse((char *)((uintptr_t)stack & -(uintptr_t)PAGE), PAGE, GPUSHMEM_ERR_INVALID, "stack");
    refuse(heap, PAGE, GPUSHMEM_ERR_INVALID, "symmetric already");
    refuse((char *)((uintptr_t)(in_statics + PAGE) & -(uintptr_t)PAGE), PAGE, GPUSHMEM_ERR_INVALID,
           "symmetric already");
    CHECK(!mprotect(holes + PAGE, PAGE, PROT_READ) && !munmap(holes + 10 * PAGE, PAGE));
    refuse(holes, 4 * PAGE, GPUSHMEM_ERR_INVALID, "read and written");
    refuse(holes + 8 * PAGE, 4 * PAGE, GPUSHMEM_ERR_INVALID, "not all of it");
    CHECK_OK(gpushmem_buffer_register(good, PAGE));
    refuse(good, BYTES, GPUSHMEM_ERR_INVALID, "gpushmem_buffer_register,");
    CHECK_OK(gpushmem_buffer_unregister(good));
    char *symmetric = must_register(good + PAGE, PAGE);
    refuse(good, BYTES, GPUSHMEM_ERR_INVALID, "symmetric already");
    CHECK(gpushmem_buffer_register(good, BYTES) == GPUSHMEM_ERR_INVALID);
    CHECK(gpushmem_free(symmetric) == GPUSHMEM_ERR_ADDRESS && gpushmem_free(good) < 0);
    CHECK(!gpushmem_realloc(symmetric, 100) && strstr(gpushmem_last_error(), "unregister"));
    CHECK(gpushmem_buffer_unregister_symmetric(good) == GPUSHMEM_ERR_INVALID);
    CHECK_OK(gpushmem_buffer_unregister_symmetric(good + PAGE));
    char *huge = map(HUGE_BYTES);
    refuse(huge, HUGE_BYTES, GPUSHMEM_ERR_NO_MEMORY, "GPUSHMEM_HEAP_SIZE");
    munmap(huge, HUGE_BYTES);
    CHECK_OK(gpushmem_free(heap));
    munmap(good, BYTES);
}

// One PE cannot, or passes something else: all are told the same.
static void differences(void)
{
    char *good = map(BYTES);
    if (n == 1)
        return;
    memset(good, 5, BYTES);
    refuse(good + (me == n - 1), PAGE, GPUSHMEM_ERR_ALIGNMENT, "multiples");
    if (me != n - 1)
        CHECK(strstr(gpushmem_last_error(), "PE ") == gpushmem_last_error());
    refuse(good, me ? PAGE : 2 * PAGE, GPUSHMEM_ERR_ASYMMETRY, "buffer_register_symmetric(4096)");
    CHECK(good[0] == 5 && good[BYTES - 1] == 5);
    must_register(good, PAGE);
    must_register(good + 4 * PAGE, PAGE);
    CHECK(gpushmem_buffer_unregister_symmetric(me ? good : good + 4 * PAGE) ==
          GPUSHMEM_ERR_ASYMMETRY);
    CHECK_OK(gpushmem_long_p((long *)(void *)good, me, next));
    CHECK_OK(gpushmem_barrier_all());
    CHECK(*(long *)(void *)good == before);
    CHECK_OK(gpushmem_buffer_unregister_symmetric(good));
    CHECK_OK(gpushmem_buffer_unregister_symmetric(good + 4 * PAGE));
    munmap(good, BYTES);
}

// As many as there may be, while another thread looks up others.
static void *look_up(void *stop)
{
    static long word;
    for (long i = 1; !atomic_load((_Atomic int *)stop); i++) {
        CHECK_OK(gpushmem_long_p(&word, i, me));
        CHECK(gpushmem_long_g(&word, me) == i);
    }
    return NULL;
}

static void many(void)
{
    enum { MOST = 63 };
    _Atomic int stop = 0;
    pthread_t thread;
    char *all = map((size_t)(MOST + 1) * 2 * PAGE);
    CHECK(!pthread_create(&thread, NULL, look_up, &stop));
    for (int i = 0; i < MOST; i++)
        must_register(all + 2 * i * PAGE, PAGE);
    refuse(all + 2 * MOST * PAGE, PAGE, GPUSHMEM_ERR_NO_MEMORY, "63 buffers");
    for (int i = 0; i < MOST; i++)
        CHECK_OK(gpushmem_long_p((long *)(void *)(all + 2 * i * PAGE), me + i, next));
    CHECK_OK(gpushmem_barrier_all());
    for (int i = 0; i < MOST; i++) {
        char *at = all + 2 * ((i * 2) % MOST) * PAGE;
        CHECK(*(long *)(void *)at == before + (i * 2) % MOST);
        CHECK_OK(gpushmem_buffer_unregister_symmetric(at));
        CHECK(*(long *)(void *)at == before + (i * 2) % MOST);
    }
    atomic_store(&stop, 1);
    pthread_join(thread, NULL);
    munmap(all, (size_t)(MOST + 1) * 2 * PAGE);
}

// The program takes parts of it away, and something else comes there: that is left alone.
static void freed_underneath(void)
{
    char *at = map(BYTES);
    memset(at, 3, BYTES);
    must_register(at, BYTES);
    CHECK(!munmap(at + PAGE, 2 * PAGE) && !munmap(at + 8 * PAGE, PAGE));
    char *other = mmap(at + PAGE, PAGE, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    CHECK(other == at + PAGE);
    *other = 9;
    CHECK_OK(gpushmem_char_p(at + 8 * PAGE, 4, next)); // the heap has that page still
    CHECK_OK(gpushmem_char_p(at + 20 * PAGE, (char)me, next));
    CHECK_OK(gpushmem_buffer_unregister_symmetric(at));
    CHECK(*other == 9 && at[0] == 3 && at[20 * PAGE] == (char)before && at[BYTES - 1] == 3);
    munmap(at, BYTES);
}

static void children(void)
{
    volatile char *at = map(BYTES), *symmetric = must_register((void *)(uintptr_t)at, BYTES);
    at[0] = 1;
    pid_t pid = fork();
    if (!pid) {
        bool same = at[0] == 1;
        at[0] = 2;
        _exit(same && at[0] == 2 &&
                      gpushmem_buffer_unregister_symmetric((void *)(uintptr_t)at) ==
                          GPUSHMEM_ERR_STATE
                  ? 0
                  : 1);
    }
    int status = -1;
    CHECK(waitpid(pid, &status, 0) == pid && status == 0);
    CHECK(at[0] == 1 && symmetric[0] == 1);
    CHECK_OK(gpushmem_buffer_unregister_symmetric((void *)(uintptr_t)at));
    munmap((void *)(uintptr_t)at, BYTES);
}

// What is left to finalize keeps what it holds, and serves the next job.
static void left_over(void)
{
    char *at = map(BYTES);
    memset(at, 6, BYTES);
    must_register(at, BYTES);
    CHECK_OK(gpushmem_char_p(at, 8, next));
    CHECK_OK(gpushmem_finalize());
    CHECK(at[0] == 8 && at[1] == 6 && at[BYTES - 1] == 6);
    CHECK_OK(gpushmem_init());
    must_register(at, BYTES);
    CHECK_OK(gpushmem_char_p(at, 9, next));
    CHECK_OK(gpushmem_buffer_unregister_symmetric(at));
    CHECK(at[0] == 9);
    munmap(at, BYTES);
}

int main(void)
{
    CHECK(!gpushmem_buffer_register_symmetric(&me, 1));
    CHECK(gpushmem_last_error_code() == GPUSHMEM_ERR_STATE);
    CHECK_OK(gpushmem_init_thread(GPUSHMEM_THREAD_MULTIPLE, NULL));
    me = gpushmem_my_pe();
    n = gpushmem_n_pes();
    next = (me + 1) % n;
    before = (me + n - 1) % n;
    all_kinds();
    differences();
    if (n <= 3) { // the rest is the same with more
        large();
        refusals();
        if (n < 3)
            many();
        freed_underneath();
        children();
        left_over();
    }
    CHECK_OK(gpushmem_finalize());
    return 0;
}
