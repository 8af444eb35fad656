// SPDX-License-Identifier: BSD-3-Clause
// Global and static variables of the program as symmetric objects: every kind of host call, mixed
// with objects of the heap; and children that are forked, whose variables are their own.
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

enum { N = 5000 };

static long flag;                       // .bss
static uint64_t signal_word, count = 7; // .bss, .data
static int narrow[4] = {1, 2, 3, 4};
static char untouched[1 << 20]; // nobody has ever looked at most of it
double numbers[N];
static long *heap_block, *heap_words;
static uint64_t *heap_signal;
static int me, n, next, before;

static void prepare(void)
{
    me = gpushmem_my_pe();
    n = gpushmem_n_pes();
    next = (me + 1) % n;
    before = (me + n - 1) % n;
    heap_block = gpushmem_calloc(N, sizeof *heap_block);
    heap_words = gpushmem_calloc(4, sizeof *heap_words);
    heap_signal = gpushmem_calloc(1, sizeof *heap_signal);
    CHECK(heap_block && heap_words && heap_signal);
    flag = 0;
    signal_word = 0;
    count = 7;
    memset(untouched, 0, sizeof untouched);
    CHECK_OK(gpushmem_barrier_all());
}

static void puts_and_gets(void)
{
    static double mine[N], theirs[N];
    for (int i = 0; i < N; i++)
        mine[i] = me * 1000.0 + i;
    CHECK_OK(gpushmem_double_put(numbers, mine, N, next));
    CHECK_OK(gpushmem_char_p(&untouched[777777], (char)(me + 1), next));
    CHECK_OK(gpushmem_long_p(&flag, me + 1, next));
    CHECK_OK(gpushmem_barrier_all());
    CHECK(flag == before + 1 && untouched[777777] == (char)(before + 1));
    CHECK(numbers[0] == before * 1000.0 && numbers[N - 1] == before * 1000.0 + N - 1);
    CHECK(gpushmem_long_g(&flag, next) == me + 1);
    CHECK_OK(gpushmem_double_get(theirs, mine, N, next)); // `mine` of a function is symmetric, too
    CHECK(theirs[N - 1] == next * 1000.0 + N - 1);
    CHECK_OK(gpushmem_double_get_nbi(theirs, numbers, N, next));
    CHECK_OK(gpushmem_quiet());
    CHECK(theirs[1] == me * 1000.0 + 1);
    CHECK_OK(gpushmem_barrier_all());
    CHECK_OK(gpushmem_double_iput(numbers, mine, 2, 1, N / 2, next));
    CHECK_OK(gpushmem_barrier_all());
    CHECK(numbers[2] == before * 1000.0 + 1 && numbers[1] == before * 1000.0 + 1);
    CHECK_OK(gpushmem_double_iget(theirs, numbers, 1, 2, N / 2, next));
    CHECK(theirs[3] == me * 1000.0 + 3);
    CHECK_OK(gpushmem_barrier_all());
    // two blocks of two, three apart there and four here
    CHECK_OK(gpushmem_double_ibput(numbers, mine, 3, 4, 2, 2, next));
    CHECK_OK(gpushmem_barrier_all());
    CHECK(numbers[1] == before * 1000.0 + 1 && numbers[3] == before * 1000.0 + 4 &&
          numbers[4] == before * 1000.0 + 5 && numbers[6] == before * 1000.0 + 3);
    CHECK_OK(gpushmem_double_ibget(theirs, mine, 2, 3, 2, 2, next));
    CHECK(theirs[1] == next * 1000.0 + 1 && theirs[2] == next * 1000.0 + 3 &&
          theirs[3] == next * 1000.0 + 4);
    CHECK_OK(gpushmem_barrier_all());
}

static void atomics(int rounds)
{
    for (int i = 0; i < rounds; i++) {
        CHECK_OK(gpushmem_uint64_atomic_inc(&count, 0));
        CHECK_OK(gpushmem_int_atomic_add(&narrow[1], 2, 0));
    }
    CHECK_OK(gpushmem_barrier_all());
    CHECK(gpushmem_uint64_atomic_fetch(&count, 0) == 7 + (uint64_t)rounds * (uint64_t)n);
    CHECK(gpushmem_int_g(&narrow[1], 0) == 2 + 2 * rounds * n);
    CHECK(gpushmem_int_g(&narrow[0], 0) == 1 && gpushmem_int_g(&narrow[2], 0) == 3);
    CHECK_OK(gpushmem_barrier_all());
    CHECK(gpushmem_long_atomic_swap(&flag, 50 + me, next) == me + 1);
    CHECK(gpushmem_long_atomic_compare_swap(&flag, 50 + me, 60, next) == 50 + me);
    CHECK_OK(gpushmem_barrier_all());
    CHECK(flag == 60);
    if (me == 0)
        narrow[1] = 2;
    CHECK_OK(gpushmem_barrier_all());
}

// Data here, the signal there: never seen before its data.
static void signals(int rounds)
{
    for (long i = 1; i <= rounds; i++) {
        long source[3] = {i, 2 * i, 3 * i};
        bool add = i % 2;
        uint64_t value = add ? 1 : (uint64_t)i;
        int op = add ? GPUSHMEM_SIGNAL_ADD : GPUSHMEM_SIGNAL_SET;
        CHECK_OK(gpushmem_long_put_signal(heap_block, source, 3, &signal_word, value, op, next));
        CHECK(gpushmem_signal_wait_until(&signal_word, GPUSHMEM_CMP_GE, (uint64_t)i) ==
              (uint64_t)i);
        CHECK_THAT(heap_block[0] == i && heap_block[2] == 3 * i, "round %ld: %ld", i,
                   heap_block[0]);
        CHECK_OK(gpushmem_long_put_signal_nbi((long *)(void *)numbers, source, 3, heap_signal,
                                              value, op, next));
        CHECK_OK(gpushmem_uint64_wait_until(heap_signal, GPUSHMEM_CMP_EQ, (uint64_t)i));
        CHECK(((long *)(void *)numbers)[2] == 3 * i);
        CHECK_OK(gpushmem_barrier_all());
    }
    CHECK_OK(gpushmem_signal_op(&signal_word, 99, GPUSHMEM_SIGNAL_SET, next));
    CHECK_OK(gpushmem_uint64_wait_until(&signal_word, GPUSHMEM_CMP_EQ, 99));
    CHECK(gpushmem_signal_fetch(&signal_word) == 99);
    CHECK_OK(gpushmem_barrier_all());
}

// A flag that follows its data by a fence, in both mixtures.
static void fences(int rounds)
{
    for (long i = 1; i <= rounds; i++) {
        long source[4] = {i, i, i, -i};
        CHECK_OK(gpushmem_long_put_nbi(heap_words, source, 4, next));
        CHECK_OK(gpushmem_fence());
        CHECK_OK(gpushmem_long_p(&flag, 1000 + i, next));
        CHECK_OK(gpushmem_long_wait_until(&flag, GPUSHMEM_CMP_EQ, 1000 + i));
        CHECK_THAT(heap_words[3] == -i, "round %ld: %ld", i, heap_words[3]);
        CHECK_OK(gpushmem_barrier_all());
        CHECK_OK(gpushmem_long_put_nbi((long *)(void *)numbers, source, 4, next));
        CHECK_OK(gpushmem_fence());
        CHECK_OK(gpushmem_long_p(heap_words, 5000 + i, next));
        CHECK_OK(gpushmem_long_wait_until(heap_words, GPUSHMEM_CMP_EQ, 5000 + i));
        CHECK(((long *)(void *)numbers)[3] == -i);
        CHECK_OK(gpushmem_barrier_all());
    }
}

static void locks(void)
{
    static long lock, lock2, counter;
    for (int i = 0; i < 10; i++) {
        long *one = i % 2 ? &lock : &lock2;
        CHECK_OK(gpushmem_set_lock(&lock2));
        CHECK_OK(gpushmem_long_p(&counter, gpushmem_long_g(&counter, 0) + 1, 0));
        CHECK_OK(gpushmem_clear_lock(&lock2));
        CHECK(gpushmem_clear_lock(one) == GPUSHMEM_ERR_STATE);
    }
    CHECK_OK(gpushmem_barrier_all());
    CHECK(me != 0 || counter == 10 * n);
    counter = 0;
    CHECK_OK(gpushmem_barrier_all());
}

static void addresses(void)
{
    CHECK(gpushmem_addr_accessible(&flag, next) == 1);
    static const long constant = 5;
    long on_stack = 0;
    static long pair[2];
    long *between = (long *)(void *)((char *)pair + 4);
    volatile long *there = gpushmem_ptr(&flag, next);
    CHECK(gpushmem_ptr(&flag, me) == &flag);
    CHECK(gpushmem_ptr(heap_block, next) ? there != NULL : there == NULL);
    if (there)
        CHECK(*there == gpushmem_long_g(&flag, next));
    CHECK(gpushmem_long_p(&on_stack, 1, next) == GPUSHMEM_ERR_ADDRESS);
    CHECK(strstr(gpushmem_last_error(), "global or static variable"));
    CHECK(gpushmem_long_p((long *)(uintptr_t)&constant, 1, next) == GPUSHMEM_ERR_ADDRESS);
    CHECK(gpushmem_double_put(numbers, numbers, (size_t)1 << 40, next) == GPUSHMEM_ERR_ADDRESS);
    CHECK(strstr(gpushmem_last_error(), "static data"));
    CHECK_OK(gpushmem_long_p(between, 1, next));
    CHECK(gpushmem_long_atomic_inc(between, next) == GPUSHMEM_ERR_ALIGNMENT);
    CHECK_OK(gpushmem_barrier_all());
}

// Its variables are those of the moment of the fork, whatever comes later, and what it writes stays
// with it.
static void children(void)
{
    int go[2], status = -1;
    count = 11;
    numbers[4000] = 2.5;
    CHECK(pipe(go) == 0);
    CHECK_OK(gpushmem_barrier_all());
    pid_t pid = fork();
    if (pid == 0) {
        char byte;
        bool right = read(go[0], &byte, 1) == 1 && count == 11 && numbers[4000] == 2.5 &&
                     untouched[5] == 0 && gpushmem_long_p(&flag, 1, next) == GPUSHMEM_ERR_STATE;
        count = 13;
        untouched[5] = 1;
        numbers[4000] = 0;
        _exit(right && count == 13 ? 0 : 1);
    }
    CHECK(pid > 0);
    CHECK_OK(gpushmem_barrier_all());
    numbers[4000] = 3.5;
    CHECK_OK(gpushmem_uint64_p(&count, 12, next));
    CHECK_OK(gpushmem_barrier_all());
    CHECK(count == 12 && write(go[1], "", 1) == 1);
    CHECK(waitpid(pid, &status, 0) == pid && status == 0);
    CHECK(count == 12 && untouched[5] == 0 && numbers[4000] == 3.5);
    close(go[0]);
    close(go[1]);
    CHECK_OK(gpushmem_barrier_all());
}

int main(int argc, char **argv)
{
    int rounds = check_rounds(argc, argv, 200);
    for (int job = 0; job < 2; job++) { // and once more in the same process
        CHECK_OK(gpushmem_init());
        prepare();
        puts_and_gets();
        atomics(rounds);
        signals(rounds / 4 + 1);
        fences(rounds / 4 + 1);
        children();
        locks();
        addresses();
        gpushmem_free(heap_signal);
        gpushmem_free(heap_words);
        gpushmem_free(heap_block);
        CHECK_OK(gpushmem_finalize());
    }
    return 0;
}
