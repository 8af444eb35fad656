// SPDX-License-Identifier: BSD-3-Clause
// Contexts of kernels: every call that takes one, made by kernels and by the host, in every scope.
// "misuse": what must be refused is, with a sentence; "ranks": of that, ranks that do not exist.
// Run with GPUSHMEM_CONTEXTS=2.
#include <string.h>

#include "kernel_check.cuh"

enum { WORDS = 64, ROUNDS = 60, MOST_PES = WORDS / 8 };

struct box {
    uint64_t data[WORDS];
    uint64_t strided[WORDS];
    uint64_t signal, counter;
    uint64_t hosts; // written by the host of the left neighbour while kernels run
    uint32_t narrow;
    uint64_t got[WORDS];
};

__device__ static void moves(gpushmem_dev_ctx c, box *b, const uint64_t *source, int to, int from,
                             int *errors)
{
    uint64_t local[WORDS] = {};
    gpushmem_dev_ctx_uint64_put(c, b->data, source, WORDS, to);
    gpushmem_dev_ctx_fence(c);
    gpushmem_dev_ctx_uint64_p(c, &b->data[0], 1000, to);
    gpushmem_dev_ctx_uint64_iput(c, b->strided, source, 2, 1, WORDS / 2, to);
    gpushmem_dev_ctx_put64_nbi(c, &b->strided[1], source, 1, to);
    gpushmem_dev_ctx_pe_quiet(c, to);
    gpushmem_dev_ctx_uint64_get(c, local, b->data, WORDS, to);
    EXPECT(errors, local[0] == 1000 && local[WORDS - 1] == source[WORDS - 1]);
    EXPECT(errors, gpushmem_dev_ctx_uint64_g(c, &b->data[1], to) == source[1]);
    gpushmem_dev_ctx_getmem_nbi(c, b->got, b->strided, sizeof b->strided, to);
    gpushmem_dev_ctx_quiet(c);
    EXPECT(errors, b->got[0] == source[0] && b->got[1] == source[0] && b->got[2] == source[1]);
    gpushmem_dev_ctx_uint64_iget(c, local, b->strided, 1, 2, WORDS / 2, to);
    EXPECT(errors, local[3] == source[3]);
    gpushmem_dev_ctx_putmem_signal(c, b->data, source, 5 * 8, &b->signal, 1, GPUSHMEM_SIGNAL_ADD,
                                   to);
    gpushmem_dev_ctx_signal_op(c, &b->signal, 1, GPUSHMEM_SIGNAL_ADD, to);
    gpushmem_dev_ctx_uint64_put_signal_nbi(c, b->data, source, 1, &b->signal, 1,
                                           GPUSHMEM_SIGNAL_ADD, to);
    gpushmem_dev_ctx_quiet(c);
    gpushmem_dev_signal_wait_until(&b->signal, GPUSHMEM_CMP_GE, 3);
    EXPECT(errors, gpushmem_dev_ctx_uint64_atomic_fetch(c, &b->signal, from) <= 3);
}

// Each PE on words of its right neighbour that nobody else touches.
__device__ static void atomics(gpushmem_dev_ctx c, box *b, int to, int *errors)
{
    gpushmem_dev_ctx_uint64_atomic_set(c, &b->counter, 40, to);
    gpushmem_dev_ctx_uint64_atomic_inc(c, &b->counter, to);
    gpushmem_dev_ctx_uint64_atomic_add(c, &b->counter, 1, to);
    EXPECT(errors, gpushmem_dev_ctx_uint64_atomic_fetch_add(c, &b->counter, 8, to) == 42);
    EXPECT(errors, gpushmem_dev_ctx_uint64_atomic_fetch_inc(c, &b->counter, to) == 50);
    EXPECT(errors, gpushmem_dev_ctx_uint64_atomic_swap(c, &b->counter, 12, to) == 51);
    EXPECT(errors, gpushmem_dev_ctx_uint64_atomic_compare_swap(c, &b->counter, 12, 255, to) == 12);
    gpushmem_dev_ctx_uint64_atomic_and(c, &b->counter, 0xf0, to);
    gpushmem_dev_ctx_uint64_atomic_or(c, &b->counter, 0xf, to);
    EXPECT(errors, gpushmem_dev_ctx_uint64_atomic_fetch_xor(c, &b->counter, 0xff, to) == 255);
    gpushmem_dev_ctx_uint32_atomic_add(c, &b->narrow, 7, to);
    EXPECT(errors, gpushmem_dev_ctx_uint32_atomic_fetch(c, &b->narrow, to) == 7);
    gpushmem_dev_ctx_quiet(c);
}

// By the type of the pointers, and with the handle.
__device__ static void generic(gpushmem_dev dev, gpushmem_dev_ctx c, box *b, int to, int *errors)
{
    uint64_t value = 77, back = 0;
    gpushmem_dev_put(c, &b->data[7], &value, 1, to);
    gpushmem_dev_p(c, &b->data[8], 78, to);
    gpushmem_dev_put_nbi(dev, c, &b->data[9], &value, 1, to);
    gpushmem_dev_ctx_quiet(dev, c);
    gpushmem_dev_get(c, &back, &b->data[7], 1, to);
    EXPECT(errors, back == 77 && gpushmem_dev_g(c, &b->data[8], to) == 78);
    EXPECT(errors, gpushmem_dev_ctx_uint64_g(dev, c, &b->data[9], to) == 77);
    gpushmem_dev_atomic_add(c, &b->data[7], 3, to);
    EXPECT(errors, gpushmem_dev_atomic_fetch(dev, c, &b->data[7], to) == 80);
}

__global__ void all_calls(gpushmem_dev dev, gpushmem_dev_ctx c, box *b, uint64_t *source,
                          int *errors)
{
    int me = gpushmem_dev_my_pe(), n = gpushmem_dev_n_pes();
    for (uint64_t i = 0; i < WORDS; i++)
        source[i] = 100 + i;
    moves(c, b, source, (me + 1) % n, me, errors);
    gpushmem_dev_barrier_all();
    atomics(c, b, (me + 1) % n, errors);
    generic(dev, c, b, (me + 1) % n, errors);
}

// The block owns the context while it lives.
template <int SCOPE> __global__ void by_scope(box *b, uint64_t *source, long options, int *errors)
{
    GPUSHMEM_SHARED(gpushmem_dev_ctx, shared, 1);
    int me = gpushmem_dev_my_pe(), n = gpushmem_dev_n_pes(), to = (me + 1) % n;
    for (uint64_t round = 1; round <= ROUNDS / 4; round++) {
        for (unsigned i = threadIdx.x; i < WORDS; i += blockDim.x)
            source[i] = round * 1000 + i;
        int status = SCOPE == 0   ? gpushmem_dev_ctx_create(options, shared)
                     : SCOPE == 1 ? gpushmem_dev_ctx_create_warp(options, shared)
                                  : gpushmem_dev_ctx_create_block(options, shared);
        EXPECT(errors, status == 0 && shared->options == (uint32_t)options);
        gpushmem_dev_ctx c = *shared;
        if (SCOPE == 0)
            gpushmem_dev_ctx_uint64_put_nbi(c, b->data, source, WORDS, to);
        if (SCOPE == 1) {
            gpushmem_dev_ctx_uint64_put_nbi_warp(c, b->data, source, WORDS, to);
            gpushmem_dev_ctx_uint64_p_warp(c, &b->strided[threadIdx.x], round, to);
        }
        if (SCOPE == 2)
            gpushmem_dev_ctx_uint64_put_signal_nbi_block(c, b->data, source, WORDS, &b->signal,
                                                         round, GPUSHMEM_SIGNAL_SET, to);
        if (SCOPE == 0)
            gpushmem_dev_ctx_destroy(c); // completes
        if (SCOPE == 1)
            gpushmem_dev_ctx_destroy_warp(c);
        if (SCOPE == 2)
            gpushmem_dev_ctx_destroy_block(c);
        EXPECT(errors, gpushmem_dev_uint64_g(&b->data[WORDS - 1], to) == source[WORDS - 1]);
        if (SCOPE == 1)
            EXPECT(errors, gpushmem_dev_uint64_g(&b->strided[threadIdx.x], to) == round);
        __syncthreads();
    }
}

// More than there are: the others share, and all of them work.
__global__ void too_many(gpushmem_dev dev, box *b, int *errors)
{
    enum { MANY = 5 };
    gpushmem_dev_ctx c[MANY];
    int me = gpushmem_dev_my_pe(), n = gpushmem_dev_n_pes(), to = (me + 1) % n, own = 0;
    for (uint64_t i = 0; i < MANY; i++) {
        EXPECT(errors, gpushmem_dev_ctx_create(0, &c[i]) == 0);
        own += c[i].number != 0;
    }
    EXPECT(errors, own == (int)dev.n_contexts);
    for (uint64_t i = 0; i < MANY; i++)
        gpushmem_dev_ctx_uint64_p(c[i], &b->data[i], i + 5, to);
    for (uint64_t i = 0; i < MANY; i++)
        gpushmem_dev_ctx_destroy(c[i]);
    for (uint64_t i = 0; i < MANY; i++)
        EXPECT(errors, gpushmem_dev_uint64_g(&b->data[i], to) == i + 5);
}

// ---- Contexts of teams: PE numbers are ranks ----

__global__ void by_rank(gpushmem_dev dev, gpushmem_dev_ctx c, gpushmem_team_t team, box *b,
                        uint64_t *source, int *errors)
{
    int me = gpushmem_dev_team_my_pe(team), n = gpushmem_dev_team_n_pes(team), to = (me + 1) % n;
    for (uint64_t i = 0; i < WORDS; i++)
        source[i] = 100 + i;
    EXPECT(errors, gpushmem_dev_ctx_get_team(c) == team);
    moves(c, b, source, to, me, errors);
    EXPECT(errors, gpushmem_dev_team_sync(team) == 0);
    atomics(c, b, to, errors);
    generic(dev, c, b, to, errors);
    gpushmem_dev_ctx_uint64_p(c, &b->got[5], (uint64_t)dev.my_pe, to);
    gpushmem_dev_ctx_pe_quiet(c, to);
    EXPECT(errors, gpushmem_dev_barrier(team) == 0);
    int before = gpushmem_dev_team_world_pe(team, (me + n - 1) % n);
    EXPECT(errors, b->got[5] == (uint64_t)before);
    EXPECT(errors, gpushmem_dev_ctx_uint64_g(c, &b->got[5], me) == (uint64_t)before);
    EXPECT(errors, gpushmem_dev_uint64_g(&b->got[5], dev.my_pe) == (uint64_t)before);
}

// A block creates one, and each thread of a warp names another rank.
__global__ void block_of_ranks(gpushmem_team_t team, box *b, long options, int *errors)
{
    GPUSHMEM_SHARED(gpushmem_dev_ctx, shared, 1);
    int me = gpushmem_dev_team_my_pe(team), n = gpushmem_dev_team_n_pes(team);
    EXPECT(errors, gpushmem_dev_team_create_ctx_block(team, options, shared) == 0);
    gpushmem_dev_ctx c = *shared;
    EXPECT(errors, c.options == (uint32_t)options && gpushmem_dev_ctx_get_team(c) == team);
    gpushmem_dev_ctx_uint64_p_warp(c, &b->data[8 * me + (int)threadIdx.x / n], 1000 + (uint64_t)me,
                                   (int)threadIdx.x % n);
    gpushmem_dev_ctx_destroy_block(c);
    if (threadIdx.x == 0)
        EXPECT(errors, gpushmem_dev_barrier(team) == 0);
    __syncthreads();
    for (int rank = 0; rank < n; rank++)
        EXPECT(errors, b->data[8 * rank] == 1000 + (uint64_t)rank);
}

static void with_team(gpushmem_team_t team, box *b, uint64_t *source, int *errors)
{
    gpushmem_dev dev;
    CHECK_OK(gpushmem_device_handle(&dev));
    for (long options : {0L, (long)(GPUSHMEM_CTX_NOSTORE | GPUSHMEM_CTX_SERIALIZED)}) {
        gpushmem_ctx_t ctx;
        gpushmem_dev_ctx c;
        check_clear(b, sizeof *b);
        CHECK_OK(gpushmem_barrier_all());
        CHECK_OK(gpushmem_team_create_ctx(team, options, &ctx));
        CHECK_OK(gpushmem_ctx_device(ctx, &c));
        CHECK(c.options == (uint32_t)options && c.team == team);
        RUN(by_rank, 1, 1, dev, c, team, b, source, errors);
        CHECK_OK(gpushmem_ctx_destroy(ctx));
        CHECK_OK(gpushmem_barrier_all());
        RUN(block_of_ranks, 1, 8, team, b, options, errors);
    }
}

// Of all in reverse, and, where there are three, of a list of all that is no stride.
static void test_teams(box *b, uint64_t *source, int *errors)
{
    int ranks[MOST_PES] = {2, 0, 1}, n = gpushmem_n_pes();
    gpushmem_team_t reversed, list;
    CHECK_OK(gpushmem_team_split_strided(GPUSHMEM_TEAM_WORLD, n - 1, n > 1 ? -1 : 1, n, NULL, 0,
                                         &reversed));
    with_team(reversed, b, source, errors);
    CHECK_OK(gpushmem_team_destroy(reversed));
    if (n < 3 || n > MOST_PES)
        return;
    for (int i = 3; i < n; i++)
        ranks[i] = i;
    CHECK_OK(gpushmem_team_split_list(GPUSHMEM_TEAM_WORLD, ranks, n, NULL, 0, &list));
    with_team(list, b, source, errors);
    CHECK_OK(gpushmem_team_destroy(list));
}

__global__ void refused(int *errors)
{
    gpushmem_dev_ctx c, none = GPUSHMEM_DEV_CTX_INVALID, usual = GPUSHMEM_DEV_CTX_DEFAULT;
    EXPECT(errors, gpushmem_dev_ctx_create(64, &c) == GPUSHMEM_ERR_INVALID);
    EXPECT(errors, c.number == none.number);
    EXPECT(errors, gpushmem_dev_team_create_ctx(77, 0, &c) == GPUSHMEM_ERR_INVALID);
    EXPECT(errors,
           gpushmem_dev_team_create_ctx(GPUSHMEM_TEAM_INVALID, 0, &c) == GPUSHMEM_ERR_INVALID);
    EXPECT(errors, gpushmem_dev_ctx_get_team(none) == GPUSHMEM_TEAM_INVALID);
    EXPECT(errors, gpushmem_dev_ctx_get_team(usual) == GPUSHMEM_TEAM_WORLD);
    gpushmem_dev_ctx_fence(none);
    gpushmem_dev_ctx_quiet(none);
    gpushmem_dev_ctx_destroy(none);
    gpushmem_dev_ctx_destroy(c);
    gpushmem_dev_ctx_fence(usual);
    gpushmem_dev_ctx_quiet(usual);
}

static void test_host_context(box *b, uint64_t *source, int *errors)
{
    gpushmem_dev dev;
    int me = gpushmem_my_pe(), n = gpushmem_n_pes();
    CHECK_OK(gpushmem_device_handle(&dev));
    for (long options :
         {0L, (long)GPUSHMEM_CTX_NOSTORE, (long)(GPUSHMEM_CTX_PRIVATE | GPUSHMEM_CTX_SERIALIZED)}) {
        gpushmem_ctx_t ctx;
        gpushmem_dev_ctx c, again;
        gpushmem_barrier_all();
        check_clear(b, sizeof *b);
        gpushmem_barrier_all();
        CHECK_OK(gpushmem_ctx_create(options, &ctx));
        CHECK_OK(gpushmem_ctx_uint64_p(ctx, &b->hosts, 3, (me + 1) % n));
        CHECK_OK(gpushmem_ctx_device(ctx, &c));
        CHECK_OK(gpushmem_ctx_device(ctx, &again));
        CHECK(!memcmp(&c, &again, sizeof c) && c.options == (uint32_t)options);
        CHECK(dev.flags & GPUSHMEM_DEV_ALL_DIRECT ? !c.number : c.number != 0);
        RUN(all_calls, 1, 1, dev, c, b, source, errors);
        CHECK_OK(gpushmem_ctx_uint64_p(ctx, &b->got[0], 9, (me + 1) % n)); // the host still may
        CHECK_OK(gpushmem_ctx_quiet(ctx));
        CHECK(gpushmem_uint64_g(&b->got[0], (me + 1) % n) == 9);
        CHECK(gpushmem_uint64_g(&b->hosts, (me + 1) % n) == 3);
        CHECK_OK(gpushmem_ctx_destroy(ctx));
    }
    gpushmem_dev_ctx usual;
    CHECK_OK(gpushmem_ctx_device(GPUSHMEM_CTX_DEFAULT, &usual));
    CHECK(usual.number == 0);
    CHECK(gpushmem_ctx_device(GPUSHMEM_CTX_INVALID, &usual) == GPUSHMEM_ERR_INVALID);
}

// What kernels leave under way on a host's context, its quiet completes.
__global__ void leave(gpushmem_dev_ctx c, box *b, uint64_t value)
{
    int to = (gpushmem_dev_my_pe() + 1) % gpushmem_dev_n_pes();
    for (int i = 0; i < WORDS; i++)
        gpushmem_dev_ctx_uint64_p(c, &b->data[i], value, to);
}

static void test_hosts_quiet(box *b)
{
    gpushmem_ctx_t ctx;
    gpushmem_dev_ctx c;
    int to = (gpushmem_my_pe() + 1) % gpushmem_n_pes();
    CHECK_OK(gpushmem_ctx_create(0, &ctx));
    CHECK_OK(gpushmem_ctx_device(ctx, &c));
    for (uint64_t round = 1; round <= ROUNDS; round++) {
        RUN(leave, 1, 1, c, b, round);
        CHECK_OK(gpushmem_ctx_quiet(ctx));
        CHECK(gpushmem_uint64_g(&b->data[WORDS - 1], to) == round);
    }
    RUN(leave, 1, 1, c, b, 1);
    CHECK_OK(gpushmem_ctx_destroy(ctx));
    CHECK(gpushmem_uint64_g(&b->data[WORDS - 1], to) == 1);
    gpushmem_barrier_all();
}

// ---- Misuse ----

__global__ void use(gpushmem_dev_ctx c, uint64_t *word)
{
    gpushmem_dev_ctx_uint64_p(c, word, 1, gpushmem_dev_my_pe());
    gpushmem_dev_ctx_quiet(c);
}

__global__ void destroy_twice(gpushmem_dev_ctx *out)
{
    gpushmem_dev_ctx c;
    gpushmem_dev_ctx_create(0, &c);
    gpushmem_dev_ctx_destroy(c);
    *out = c;
    gpushmem_dev_ctx_destroy(c);
}

static void expect_refused(const char *what)
{
    CHECK(gpushmem_launch_wait(NULL) == GPUSHMEM_ERR_INVALID);
    CHECK(strstr(gpushmem_last_error(), what));
}

static void test_invalid(uint64_t *word)
{
    gpushmem_dev_ctx none = GPUSHMEM_DEV_CTX_INVALID;
    CHECK_OK(GPUSHMEM_LAUNCH(use, 1, 1, NULL, none, word));
    CHECK(gpushmem_launch_wait(NULL) == GPUSHMEM_ERR_INVALID);
    CHECK(strstr(gpushmem_last_error(), "in a call on GPUSHMEM_DEV_CTX_INVALID"));
}

static void test_misuse(uint64_t *word)
{
    gpushmem_dev_ctx *old = (gpushmem_dev_ctx *)gpushmem_calloc(1, sizeof *old);
    const gpushmem_dev_ctx foreign[] = {{77, 1, 0, 0}, {0, 0, 0xdead0000, 0}, {0, 0, 0, -77}};
    gpushmem_dev_ctx gone;
    for (gpushmem_dev_ctx one : foreign) {
        CHECK_OK(GPUSHMEM_LAUNCH(use, 1, 1, NULL, one, word));
        expect_refused("a context that was never filled in, at least for this thread");
    }
    CHECK_OK(GPUSHMEM_LAUNCH(destroy_twice, 1, 1, NULL, old));
    expect_refused("context number 1 of 2: it was destroyed, or is no context of this PE");
    gone = check_read(old);
    CHECK_OK(GPUSHMEM_LAUNCH(use, 1, 1, NULL, gone, word));
    expect_refused("context number 1 of 2: it was destroyed, or is no context of this PE");
    CHECK(check_read(word) == 0);
    gpushmem_free(old);
}

__global__ void to_rank(gpushmem_dev_ctx c, uint64_t *word, int rank)
{
    gpushmem_dev_ctx_uint64_p(c, word, 1, rank);
    gpushmem_dev_ctx_uint64_atomic_inc(c, word, rank);
    gpushmem_dev_ctx_put64_warp(c, word, word + 1, 1, rank);
    gpushmem_dev_ctx_quiet(c);
}

// Lanes with a good rank go on beside those without.
__global__ void to_ranks(gpushmem_dev_ctx c, uint64_t *words)
{
    gpushmem_dev_ctx_uint64_p_warp(c, &words[threadIdx.x], 5, (int)threadIdx.x % 2);
    gpushmem_dev_ctx_quiet(c);
}

static void expect_rank(const char *what, int status)
{
    CHECK(gpushmem_launch_wait(NULL) == status);
    CHECK(strstr(gpushmem_last_error(), what));
    gpushmem_quiet(); // tells what the proxy refused, if it came there
}

// Of the one PE that there is.
static void test_team_misuse(box *b)
{
    char text[96];
    gpushmem_team_t team;
    gpushmem_ctx_t ctx;
    gpushmem_dev_ctx c;
    CHECK_OK(gpushmem_team_split_strided(GPUSHMEM_TEAM_WORLD, 0, 1, 1, NULL, 0, &team));
    CHECK_OK(gpushmem_team_create_ctx(team, 0, &ctx));
    CHECK_OK(gpushmem_ctx_device(ctx, &c));
    for (int rank : {1, -1}) {
        snprintf(text, sizeof text,
                 "towards rank %d in a call on a context of team %d, whose "
                 "ranks are 0 to 0",
                 rank, team);
        CHECK_OK(GPUSHMEM_LAUNCH(to_rank, 1, 1, NULL, c, b->data, rank));
        expect_rank(text, GPUSHMEM_ERR_PE);
    }
    CHECK(check_read(&b->data[0]) == 0);
    CHECK_OK(GPUSHMEM_LAUNCH(to_ranks, 1, 8, NULL, c, b->data));
    expect_rank("towards rank 1", GPUSHMEM_ERR_PE);
    CHECK(check_read(&b->data[6]) == 5 && check_read(&b->data[7]) == 0);
    CHECK_OK(gpushmem_team_destroy(team));
    CHECK_OK(GPUSHMEM_LAUNCH(to_rank, 1, 1, NULL, c, b->data, 0));
    expect_rank("the team was destroyed", GPUSHMEM_ERR_INVALID);
    CHECK(check_read(&b->data[0]) == 5);
    CHECK_OK(gpushmem_ctx_destroy(ctx));
}

int main(int argc, char **argv)
{
    check_begin();
    gpushmem_dev dev;
    box *b = (box *)gpushmem_calloc(1, sizeof *b);
    uint64_t *source = (uint64_t *)gpushmem_calloc(WORDS, 8);
    int *errors = check_errors_begin();
    if (argc > 1 && !strcmp(argv[1], "misuse")) {
        test_misuse(&b->counter);
        test_invalid(&b->counter);
        test_team_misuse(b);
    } else if (argc > 1 && !strcmp(argv[1], "ranks")) {
        test_team_misuse(b);
    } else {
        test_host_context(b, source, errors);
        RUN(refused, 1, 1, errors);
        RUN(by_scope<0>, 1, 1, b, source, 0L, errors);
        gpushmem_barrier_all();
        RUN(by_scope<1>, 1, 8, b, source, (long)GPUSHMEM_CTX_PRIVATE, errors);
        gpushmem_barrier_all();
        RUN(by_scope<2>, 1, 40, b, source, (long)GPUSHMEM_CTX_NOSTORE, errors);
        gpushmem_barrier_all();
        CHECK_OK(gpushmem_device_handle(&dev));
        CHECK(dev.n_contexts == (dev.flags & GPUSHMEM_DEV_ALL_DIRECT ? 0 : 2));
        RUN(too_many, 1, 1, dev, b, errors);
        gpushmem_barrier_all();
        test_hosts_quiet(b);
        test_teams(b, source, errors);
    }
    check_errors_end(__FILE__, errors);
    gpushmem_free(source);
    gpushmem_free(b);
    return check_end("ctx");
}
