// SPDX-License-Identifier: BSD-3-Clause
// How a job of one PE may be asked for, and what is refused. Ends with 1 at the first wrong thing.
#include <gpushmem/gpushmem.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int line;

static void fail(const char *what, int have, int want)
{
    fprintf(stderr, "line %d: %s: have %d, want %d; last error: %s\n", line, what, have, want,
            gpushmem_last_error());
    exit(1);
}

static void expect(int have, int want, const char *call)
{
    if (have != want)
        fail(call, have, want);
}
#define EXPECT(call, want) (line = __LINE__, expect((call), (want), #call))

static void expect_sentence(const char *words)
{
    if (!strstr(gpushmem_last_error(), words))
        fail(words, 0, 1);
}

static int broken; // which function fails
enum { RANK = 1, SIZE, BROADCAST };

static int rank_of(void *communicator, int *rank)
{
    *rank = 0;
    return broken == RANK ? *(int *)communicator : 0;
}

static int size_of(void *communicator, int *n)
{
    *n = 1;
    return broken == SIZE ? *(int *)communicator : 0;
}

static int broadcast(void *communicator, void *data, size_t bytes)
{
    (void)data;
    (void)bytes;
    return broken == BROADCAST ? *(int *)communicator : 0;
}

static void test_functions(void)
{
    int code = 77;
    struct gpushmem_bootstrap_functions f = {&code, rank_of, size_of, broadcast};
    for (broken = RANK; broken <= BROADCAST; broken++) {
        EXPECT(gpushmem_init_with_functions(&f), GPUSHMEM_ERR_BOOTSTRAP);
        expect_sentence("returned 77");
    }
    broken = 0;
    f.size = NULL;
    EXPECT(gpushmem_init_with_functions(&f), GPUSHMEM_ERR_INVALID);
    f.size = size_of;
    EXPECT(gpushmem_init_with_functions(NULL), GPUSHMEM_ERR_INVALID);
    EXPECT(gpushmem_init_with_functions(&f), 0);
    broken = BROADCAST; // nothing is sent any more
    EXPECT(gpushmem_init_with_functions(&f), 0);
    broken = 0;
    EXPECT(gpushmem_finalize(), 0);
    EXPECT(gpushmem_initialized(), 1);
    EXPECT(gpushmem_finalize(), 0);
    EXPECT(gpushmem_initialized(), 0);
}

static void test_attr(void)
{
    struct {
        struct gpushmem_init_attr attr;
        long later;
    } grown = {.later = 0};
    gpushmem_uniqueid_t id;
    int provided;
    EXPECT(gpushmem_init_attr(NULL), GPUSHMEM_ERR_INVALID);
    EXPECT(gpushmem_init_attr_sized(&grown.attr, 8), GPUSHMEM_ERR_INVALID);
    EXPECT(gpushmem_init_attr(&grown.attr), 0); // all zero: by the launcher
    EXPECT(gpushmem_finalize(), 0);
    EXPECT(gpushmem_get_uniqueid(NULL), GPUSHMEM_ERR_INVALID);
    EXPECT(gpushmem_get_uniqueid(&id), 0);
    grown.attr.uniqueid = &id;
    grown.attr.n_pes = 1;
    grown.attr.thread_level = GPUSHMEM_THREAD_MULTIPLE;
    grown.later = 1;
    EXPECT(gpushmem_init_attr_sized(&grown.attr, sizeof grown), GPUSHMEM_ERR_UNSUPPORTED);
    grown.later = 0;
    EXPECT(gpushmem_init_attr_sized(&grown.attr, sizeof grown), 0);
    EXPECT(gpushmem_query_thread(&provided), 0);
    EXPECT(provided, GPUSHMEM_THREAD_MULTIPLE);
    EXPECT(gpushmem_init_with_uniqueid(&id, 0, 2), GPUSHMEM_ERR_STATE);
    expect_sentence("is PE 0 of 1 already");
    EXPECT(gpushmem_init_with_uniqueid(&id, 0, 1), 0);
    EXPECT(gpushmem_init(), 0); // counted, too
    EXPECT(gpushmem_finalize(), 0);
    EXPECT(gpushmem_finalize(), 0);
    EXPECT(gpushmem_finalize(), 0);
    struct gpushmem_bootstrap_functions f = {NULL, rank_of, size_of, broadcast};
    grown.attr.functions = &f;
    EXPECT(gpushmem_init_attr(&grown.attr), GPUSHMEM_ERR_INVALID);
    expect_sentence("both set");
    EXPECT(gpushmem_init_with_uniqueid(NULL, 0, 1), GPUSHMEM_ERR_INVALID);
    grown.attr.functions = NULL;
    grown.attr.thread_level = (enum gpushmem_thread_level)9;
    EXPECT(gpushmem_init_attr(&grown.attr), GPUSHMEM_ERR_INVALID);
}

int main(void)
{
    test_functions();
    test_attr();
    EXPECT(gpushmem_init(), 0);
    EXPECT(gpushmem_finalize(), 0);
    return 0;
}
