// SPDX-License-Identifier: BSD-3-Clause
// Operations drawn from a seed, against a model of what all memory must hold (rma_random.c). Each
// PE writes only to its own slice of every zone on every PE, so it alone knows what is there.
#ifndef RMA_RANDOM_H
#define RMA_RANDOM_H

#include "check.h"

enum { CONTEXTS = 6, REVERSED = 4, MOST_PES = 8 }; // context REVERSED counts the PEs from the last

extern int me, n_pes;
extern gpushmem_ctx_t contexts[CONTEXTS];

// The PE by which that context knows `pe` of the world.
static inline int rank_in(int context, int pe)
{
    return context == REVERSED ? n_pes - 1 - pe : pe;
}

// ---- What is drawn (rma_random.c) ----

uint64_t draw(void);
size_t below(size_t n); // 0 .. n - 1; 0 where n is 0
static inline bool one_in(size_t n)
{
    return below(n) == 0;
}
void draw_bytes(void *to, size_t bytes);

// Says what is about to be called, for the report of a failure.
__attribute__((format(printf, 1, 2))) void about_to(const char *format, ...);

// Ends the PE with the last operations and the command that repeats them.
#define AGREE(condition, ...)                                                                      \
    do {                                                                                           \
        if (!(condition))                                                                          \
            disagree(__VA_ARGS__);                                                                 \
    } while (0)
__attribute__((format(printf, 1, 2), noreturn)) void disagree(const char *format, ...);

// ---- The model (rma_random_model.c) ----

// Bytes of this PE's slice of a zone on `pe`.
struct place {
    int zone, pe;
    size_t at, bytes;
};

void model_open(void);
void model_close(void);

// A place of whole elements of `unit` bytes, `most` bytes or fewer; false if the slice has none.
// Every second one is where the context wrote last.
bool draw_place(struct place *place, int context, size_t unit, size_t most);

void *symmetric(const struct place *place);     // the address to pass
unsigned char *modelled(const struct place *p); // the bytes that the model has for it

// What may be begun there now, so that its result is certain. To write on top of what is under way
// takes a fence of the same context between them.
bool may_write(const struct place *place, int context);
bool may_read(const struct place *place);
bool is_quiet(const struct place *place); // nothing is under way

// What is under way there until a quiet of the context.
enum under_way { WRITING, READING, CHANGING }; // CHANGING: a fetch that also writes
void begin(const struct place *place, int context, enum under_way what);
void fenced(int context, int pe);
void quieted(int context, int pe);
void quiet_all(void);

// Memory for one operation, in the heap, from malloc or static. It is left alone until quiet_all.
unsigned char *local(size_t bytes, size_t align);

// After quiet of the context, or of `pe` on it, `bytes` at `to` are as `wanted`, which is copied.
void expect_later(int context, int pe, const void *to, const void *wanted, size_t bytes);

// Counters that all PEs add to at once, and all that was added to those of `pe`.
void count(int context, int pe);

// Between barriers: this PE's memory is what all PEs' models say.
void compare_with_model(void);

// ---- Operations (rma_random_ops.c, rma_random_amo.c) ----

void any_put(int context);
void any_get(int context);
void any_strided(int context);
void any_atomic(int context);

#endif
