// SPDX-License-Identifier: BSD-3-Clause
// One-sided operations drawn from a seed, by all PEs at once, on six contexts: every form of put,
// get and atomic, with fences, quiets and those of one PE between them, in the heap and in static
// data, from memory of any kind. After each round every byte of symmetric memory is compared with
// a model, as is all that is fetched.
//   rma_random [SEED [SEEDS [ROUNDS [OPERATIONS]]]]    SEEDS of them from SEED on, one after
//   another
#define _GNU_SOURCE // program_invocation_short_name
#include "rma_random.h"

#include <errno.h>

enum { NOTES = 24, NOTE_BYTES = 160 };

int me, n_pes;
gpushmem_ctx_t contexts[CONTEXTS];

static struct {
    uint64_t seed, state;
    int round, rounds, operations;
    char notes[NOTES][NOTE_BYTES];
    unsigned n_notes;
} run;

uint64_t draw(void)
{
    run.state ^= run.state << 13;
    run.state ^= run.state >> 7;
    run.state ^= run.state << 17;
    return run.state * UINT64_C(0x2545F4914F6CDD1D) >> 11;
}

size_t below(size_t n)
{
    return n ? draw() % n : 0;
}

void draw_bytes(void *to, size_t bytes)
{
    unsigned char *at = to;
    for (uint64_t word = draw(); bytes; word = word * UINT64_C(6364136223846793005) + 1) {
        size_t part = bytes < sizeof word ? bytes : sizeof word;
        memcpy(at, &word, part);
        at += part;
        bytes -= part;
    }
}

void about_to(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(run.notes[run.n_notes++ % NOTES], NOTE_BYTES, format, args);
    va_end(args);
}

void disagree(const char *format, ...)
{
    char what[256];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    for (unsigned i = run.n_notes > NOTES ? run.n_notes - NOTES : 0; i < run.n_notes; i++)
        fprintf(stderr, "PE %d:   %s\n", me, run.notes[i % NOTES]);
    check_failed(__FILE__, __LINE__, "memory agrees with the model:",
                 "%s, in round %d. The same again: -n %d %s %" PRIu64 " 1 %d %d", what, run.round,
                 n_pes, program_invocation_short_name, run.seed, run.rounds, run.operations);
}

static void fence(int context)
{
    about_to("fence of context %d", context);
    CHECK_OK(gpushmem_ctx_fence(contexts[context]));
    for (int pe = 0; pe < n_pes; pe++)
        fenced(context, pe);
}

static void fence_one(int context)
{
    int pe = (int)below((size_t)n_pes);
    about_to("fence of context %d towards PE %d", context, pe);
    CHECK_OK(gpushmem_ctx_pe_fence(contexts[context], rank_in(context, pe)));
    fenced(context, pe);
}

static void quiet_some(int context)
{
    int pe = (int)below((size_t)n_pes), next = (pe + 1) % n_pes;
    int ranks[2] = {rank_in(context, pe), rank_in(context, next)};
    size_t n = below(3);
    about_to("quiet of context %d for %zu PEs from %d on", context, n, pe);
    CHECK_OK(gpushmem_ctx_pe_quiet(contexts[context], ranks, n));
    if (n > 0)
        quieted(context, pe);
    if (n > 1)
        quieted(context, next);
}

static void quiet(int context)
{
    about_to("quiet of context %d", context);
    CHECK_OK(gpushmem_ctx_quiet(contexts[context]));
    for (int pe = 0; pe < n_pes; pe++)
        quieted(context, pe);
}

void quiet_all(void)
{
    for (int context = 0; context < CONTEXTS; context++)
        quiet(context);
}

// Nothing but the fence makes the later one the last.
static void write_over(int context)
{
    any_put(context);
    (one_in(3) ? fence_one : fence)(context);
    (one_in(2) ? any_put : any_atomic)(context);
}

// What the quiet is waited for is under way, not long complete.
static void quiet_at_once(int context)
{
    any_put(context);
    any_get(context);
    any_get(context);
    quiet_some(context);
}

static void any_order(int context)
{
    static void (*const orders[])(int) = {write_over, write_over, fence,         fence,
                                          fence_one,  quiet_some, quiet_at_once, quiet};
    orders[below(sizeof orders / sizeof *orders)](context);
}

static void any_count(int context)
{
    count(context, (int)below((size_t)n_pes));
}

static void one_operation(void)
{
    static void (*const operations[])(int) = {
        any_put, any_put,    any_put,    any_put,    any_strided, any_strided, any_get,  any_get,
        any_get, any_atomic, any_atomic, any_atomic, any_count,   any_order,   any_order};
    operations[below(sizeof operations / sizeof *operations)]((int)below(CONTEXTS));
}

static void one_seed(uint64_t seed)
{
    run.seed = seed;
    run.state = seed * UINT64_C(0x9E3779B97F4A7C15) + (uint64_t)me * 7919 + 12345;
    for (int i = 0; i < 20; i++)
        (void)draw();
    for (run.round = 0; run.round < run.rounds; run.round++) {
        for (int i = 0; i < run.operations; i++)
            one_operation();
        quiet_all();
        CHECK_OK(gpushmem_barrier_all());
        compare_with_model();
        AGREE(gpushmem_last_error_code() == 0, "a call failed: %s", gpushmem_last_error());
        CHECK_OK(gpushmem_barrier_all());
    }
}

static gpushmem_team_t create_contexts(void)
{
    gpushmem_team_t reversed;
    contexts[0] = GPUSHMEM_CTX_DEFAULT;
    CHECK_OK(gpushmem_ctx_create(GPUSHMEM_CTX_SHARED, &contexts[1]));
    CHECK_OK(gpushmem_ctx_create(GPUSHMEM_CTX_PRIVATE, &contexts[2]));
    CHECK_OK(gpushmem_ctx_create(GPUSHMEM_CTX_SERIALIZED | GPUSHMEM_CTX_NOSTORE, &contexts[3]));
    CHECK_OK(
        gpushmem_team_split_strided(GPUSHMEM_TEAM_WORLD, n_pes - 1, -1, n_pes, NULL, 0, &reversed));
    CHECK_OK(gpushmem_team_create_ctx(reversed, GPUSHMEM_CTX_SHARED, &contexts[REVERSED]));
    CHECK_OK(gpushmem_team_create_ctx(GPUSHMEM_TEAM_WORLD, GPUSHMEM_CTX_PRIVATE, &contexts[5]));
    return reversed;
}

static uint64_t argument(int argc, char **argv, int i, uint64_t standard)
{
    return argc > i ? strtoull(argv[i], NULL, 10) : standard;
}

int main(int argc, char **argv)
{
    uint64_t first = argument(argc, argv, 1, 1), seeds = argument(argc, argv, 2, 1);
    run.rounds = (int)argument(argc, argv, 3, 2);
    run.operations = (int)argument(argc, argv, 4, 400);
    CHECK_OK(gpushmem_init());
    me = gpushmem_my_pe();
    n_pes = gpushmem_n_pes();
    CHECK_THAT(n_pes <= MOST_PES, "%d PEs are more than %d", n_pes, MOST_PES);
    model_open();
    gpushmem_team_t reversed = create_contexts();
    for (uint64_t seed = first; seed < first + seeds; seed++)
        one_seed(seed);
    for (int context = 1; context < CONTEXTS; context++)
        CHECK_OK(gpushmem_ctx_destroy(contexts[context]));
    gpushmem_team_destroy(reversed);
    model_close();
    CHECK_OK(gpushmem_finalize());
    return 0;
}
