// SPDX-License-Identifier: BSD-3-Clause
// Everybody's atomics on the same words: the host and the kernels of every PE, on its own memory,
// on that of PEs that it maps and of those behind the NIC, drawn from a seed. None is lost: sums,
// bits and what swaps took out add up exactly, tickets are drawn once, nobody sees a sum go back,
// and what a fence or a signal orders arrives in that order.
//   usage: atomics_mix [rounds [seed]]
#include <string.h>
#include <time.h>

#include "../../device/check.h"

enum { BLOCKS = 2, THREADS = 2, ISSUERS = 1 + BLOCKS * THREADS };
enum { BOARDS = 2, DATA = 600, MANY = 64, HAMMER_NS = 50000000 };

// The words of a PE; and what an issuer, or a PE, did to those of a PE.
struct board {
    uint64_t sum, bits, swapped, compared, tickets, ticket_sum, signal;
    uint64_t marks;     // a bit of each issuer, set and cleared again
    uint32_t halves[2]; // side by side
};

// From one issuer to one PE: data, and words of which it tells by atomics later.
struct letter {
    uint64_t data[DATA];
    uint64_t told, signalled;
};

struct job {
    board *boards;   // symmetric, [BOARDS]
    board *done;     // [ISSUERS][n][BOARDS]
    letter *letters; // symmetric, [n][ISSUERS]
    letter *drafts;  // symmetric, [ISSUERS]
    uint64_t *seen;  // [ISSUERS][n][BOARDS]
    int *wrong;      // [ISSUERS]
    int me, n, rounds;
    uint64_t seed;
};

// The same calls of the host and of kernels.
#define CALL(NAME)                                                                                 \
    template <class... Arguments> static auto NAME(Arguments... arguments)                         \
    {                                                                                              \
        return PREFIX(NAME)(arguments...);                                                         \
    }
#define CALLS                                                                                      \
    CALL(uint64_atomic_add)                                                                        \
    CALL(uint64_atomic_inc)                                                                        \
    CALL(uint64_atomic_xor)                                                                        \
    CALL(uint64_atomic_set)                                                                        \
    CALL(uint32_atomic_add)                                                                        \
    CALL(uint32_atomic_fetch_add)                                                                  \
    CALL(uint64_atomic_fetch)                                                                      \
    CALL(uint64_atomic_fetch_add)                                                                  \
    CALL(uint64_atomic_fetch_inc)                                                                  \
    CALL(uint64_atomic_fetch_xor)                                                                  \
    CALL(uint64_atomic_fetch_or)                                                                   \
    CALL(uint64_atomic_fetch_and)                                                                  \
    CALL(uint64_atomic_swap)                                                                       \
    CALL(uint64_atomic_compare_swap)                                                               \
    CALL(uint64_put)                                                                               \
    CALL(uint64_put_signal)                                                                        \
    CALL(signal_op)                                                                                \
    CALL(fence)                                                                                    \
    CALL(quiet)
struct by_host {
#define PREFIX(NAME) gpushmem_##NAME
    CALLS
#undef PREFIX
};
struct by_kernel {
#define PREFIX(NAME) gpushmem_dev_##NAME
    CALLS
#undef PREFIX
};

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static uint64_t draw(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15; // splitmix64
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
}

template <class Calls> static void add_some(board *at, board *done, uint64_t value, int pe)
{
    switch (value % 8) {
    case 0: Calls::uint64_atomic_inc(&at->sum, pe); break;
    case 1: Calls::uint64_atomic_fetch_inc(&at->sum, pe); break;
    case 2: Calls::uint64_atomic_fetch_add(&at->sum, value, pe); break;
    default: Calls::uint64_atomic_add(&at->sum, value, pe); break;
    }
    done->sum += value % 8 < 2 ? 1 : value;
}

template <class Calls> static void add_half(board *at, board *done, uint64_t value, int pe)
{
    int half = (int)(value >> 8 & 1);
    if (value % 2)
        Calls::uint32_atomic_add(&at->halves[half], (uint32_t)value, pe);
    else
        Calls::uint32_atomic_fetch_add(&at->halves[half], (uint32_t)value, pe);
    done->halves[half] += (uint32_t)value;
}

template <class Calls> static void flip(board *at, board *done, uint64_t value, int pe)
{
    if (value % 2)
        Calls::uint64_atomic_xor(&at->bits, value, pe);
    else
        Calls::uint64_atomic_fetch_xor(&at->bits, value, pe);
    done->bits ^= value;
}

template <class Calls> static void compare_and_swap(board *at, board *done, uint64_t value, int pe)
{
    uint64_t found = Calls::uint64_atomic_fetch(&at->compared, pe), guess;
    do {
        guess = found;
        found = Calls::uint64_atomic_compare_swap(&at->compared, guess, guess + value, pe);
    } while (found != guess);
    done->compared += value;
}

template <class Calls> static void draw_ticket(board *at, board *done, int pe)
{
    done->tickets++;
    done->ticket_sum += Calls::uint64_atomic_fetch_inc(&at->tickets, pe);
}

// Nobody else touches this bit.
template <class Calls> static bool mark(board *at, int bit, int pe)
{
    uint64_t mine = (uint64_t)1 << bit;
    bool was_clear = !(Calls::uint64_atomic_fetch_or(&at->marks, mine, pe) & mine);
    return (Calls::uint64_atomic_fetch_and(&at->marks, ~mine, pe) & mine) && was_clear;
}

// A letter, whose words the reader looks at in the opposite order.
template <class Calls>
static void write_letter(letter *to, letter *draft, board *at, board *done, uint64_t number, int pe)
{
    Calls::quiet(); // the draft is read no more
    for (int i = 0; i < DATA; i++)
        draft->data[i] = number;
    if (number % 2) {
        Calls::uint64_put_signal(to->data, draft->data, (size_t)DATA, &to->signalled, (uint64_t)2,
                                 GPUSHMEM_SIGNAL_ADD, pe);
    } else {
        Calls::uint64_put(to->data, draft->data, (size_t)DATA, pe);
        Calls::fence();
        Calls::uint64_atomic_set(&to->told, number, pe);
    }
    Calls::signal_op(&at->signal, number, GPUSHMEM_SIGNAL_ADD, pe);
    done->signal += number;
}

// What was told of is there. By its own PE alone, with the processor.
static bool letter_is_in_order(const letter *in)
{
    uint64_t signalled = __atomic_load_n(&in->signalled, __ATOMIC_ACQUIRE),
             told = __atomic_load_n(&in->told, __ATOMIC_ACQUIRE);
    uint64_t least = signalled ? signalled - 1 : 0; // of number k, odd: k + 1
    least = told > least ? told : least;
    for (int i = 0; i < DATA; i++)
        if (__atomic_load_n(&in->data[i], __ATOMIC_RELAXED) < least)
            return false;
    return true;
}

template <class Calls> static void play(job j, int issuer)
{
    uint64_t state = j.seed * 1000003 + (uint64_t)(j.me * ISSUERS + issuer);
    uint64_t letters[64] = {};
    for (int i = 0; i < j.rounds; i++) {
        uint64_t kind = draw(&state), value = draw(&state);
        int pe = kind >> 63 ? 0 : (int)((kind >> 32) % (uint64_t)j.n);
        int b = (kind >> 56) % 8 == 0; // mostly on the same words
        board *at = &j.boards[b], *done = &j.done[((size_t)issuer * j.n + pe) * BOARDS + b];
        uint64_t *seen = &j.seen[((size_t)issuer * j.n + pe) * BOARDS + b], now;
        switch (kind % 10) {
        case 0:
        case 1: add_some<Calls>(at, done, value >> 40, pe); break;
        case 2: add_half<Calls>(at, done, value >> 40, pe); break;
        case 3: flip<Calls>(at, done, value, pe); break;
        case 4: done->swapped += value - Calls::uint64_atomic_swap(&at->swapped, value, pe); break;
        case 5: compare_and_swap<Calls>(at, done, value, pe); break;
        case 6: draw_ticket<Calls>(at, done, pe); break;
        case 7: j.wrong[issuer] += !mark<Calls>(at, j.me * ISSUERS + issuer, pe); break;
        case 8:
            write_letter<Calls>(&j.letters[j.me * ISSUERS + issuer], &j.drafts[issuer], at, done,
                                ++letters[pe], pe);
            break;
        default:
            now = Calls::uint64_atomic_fetch(&at->sum, pe);
            j.wrong[issuer] += now < *seen;
            *seen = now;
        }
        j.wrong[issuer] += !letter_is_in_order(&j.letters[value % (uint64_t)(j.n * ISSUERS)]);
    }
    Calls::quiet();
}

// All on one word of PE 0 for a while, as fast as each can.
template <class Calls> static void hammer(job j, int issuer)
{
    board *done = &j.done[(size_t)issuer * j.n * BOARDS];
    for (uint64_t end_ns = now_ns() + HAMMER_NS; now_ns() < end_ns; done->sum += MANY)
        for (int i = 0; i < MANY; i++)
            Calls::uint64_atomic_inc(&j.boards->sum, 0);
    Calls::quiet();
}

__global__ void play_in_kernel(job j)
{
    int issuer = 1 + (int)(blockIdx.x * blockDim.x + threadIdx.x);
    play<by_kernel>(j, issuer);
    hammer<by_kernel>(j, issuer);
}

static void *local(size_t n, size_t bytes)
{
    void *memory = calloc(n, bytes);
    CHECK(memory);
    return memory;
}

static void add_board(board *to, const board *from)
{
    to->sum += from->sum;
    to->bits ^= from->bits;
    to->swapped += from->swapped;
    to->compared += from->compared;
    to->tickets += from->tickets;
    to->ticket_sum += from->ticket_sum;
    to->signal += from->signal;
    to->halves[0] += from->halves[0];
    to->halves[1] += from->halves[1];
}

#define SAME(A, B, FIELD)                                                                          \
    do {                                                                                           \
        if ((A)->FIELD != (B)->FIELD && check_failures++ < 20)                                     \
            fprintf(stderr, "PE %d: %s is %llu, and should be %llu\n", gpushmem_my_pe(), #FIELD,   \
                    (unsigned long long)(A)->FIELD, (unsigned long long)(B)->FIELD);               \
    } while (0)

static void compare(const board *is, const board *should)
{
    SAME(is, should, sum);
    SAME(is, should, bits);
    SAME(is, should, swapped);
    SAME(is, should, compared);
    SAME(is, should, tickets);
    SAME(is, should, signal);
    SAME(is, should, halves[0]);
    SAME(is, should, halves[1]);
    CHECK(is->marks == 0);
    CHECK(should->ticket_sum == should->tickets * (should->tickets - (should->tickets != 0)) / 2);
}

// Every PE tells the others what it did to their words.
static void settle(const job *j)
{
    board *all = (board *)gpushmem_calloc((size_t)j->n * BOARDS, sizeof *all);
    for (int pe = 0; pe < j->n; pe++) {
        board mine[BOARDS] = {};
        for (int i = 0; i < ISSUERS * BOARDS; i++)
            add_board(&mine[i % BOARDS],
                      &j->done[((size_t)(i / BOARDS) * j->n + pe) * BOARDS + i % BOARDS]);
        CHECK_OK(gpushmem_putmem(&all[j->me * BOARDS], mine, sizeof mine, pe));
    }
    CHECK_OK(gpushmem_barrier_all());
    for (int b = 0; b < BOARDS; b++) {
        board should = {};
        for (int pe = 0; pe < j->n; pe++)
            add_board(&should, &all[pe * BOARDS + b]);
        compare(&j->boards[b], &should);
    }
    gpushmem_free(all);
}

int main(int argc, char **argv)
{
    int me = check_begin(), n = gpushmem_n_pes(), wrong = 0;
    job j = {};
    j.me = me;
    j.n = n;
    j.rounds = argc > 1 ? atoi(argv[1]) : 300;
    j.seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    j.boards = (board *)gpushmem_calloc(BOARDS, sizeof *j.boards);
    j.letters = (letter *)gpushmem_calloc((size_t)n * ISSUERS, sizeof *j.letters);
    j.drafts = (letter *)gpushmem_calloc(ISSUERS, sizeof *j.drafts);
    j.done = (board *)local((size_t)ISSUERS * n * BOARDS, sizeof *j.done);
    j.seen = (uint64_t *)local((size_t)ISSUERS * n * BOARDS, sizeof *j.seen);
    j.wrong = (int *)local(ISSUERS, sizeof *j.wrong);
    CHECK(j.boards && j.letters && j.drafts && n * ISSUERS <= 64);
    CHECK_OK(gpushmem_barrier_all());
    CHECK_OK(GPUSHMEM_LAUNCH(play_in_kernel, BLOCKS, THREADS, NULL, j));
    play<by_host>(j, 0);
    hammer<by_host>(j, 0);
    CHECK_OK(gpushmem_launch_wait(NULL));
    CHECK_OK(gpushmem_barrier_all());
    settle(&j);
    for (int i = 0; i < ISSUERS; i++)
        wrong += j.wrong[i];
    CHECK(wrong == 0);
    free(j.wrong);
    free(j.seen);
    free(j.done);
    gpushmem_free(j.drafts);
    gpushmem_free(j.letters);
    gpushmem_free(j.boards);
    return check_end("atomics_mix");
}
