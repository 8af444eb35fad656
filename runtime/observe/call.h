// SPDX-License-Identifier: BSD-3-Clause
// Calls of the host that somebody watches: as slices of the trace, and as ranges of NVTX. Nobody
// does, as a rule: then a call costs a test of one word.
#ifndef GPSH_CALL_H
#define GPSH_CALL_H

#include <stdbool.h>
#include <stdint.h>

enum gpsh_call_watcher { GPSH_CALL_TRACE = 1, GPSH_CALL_NVTX = 2, GPSH_CALL_ALL = 3 };
extern unsigned gpsh_calls_watched __attribute__((visibility("hidden"))); // by which of them

struct gpsh_call {
    const char *name; // NULL: nobody watches
    uint64_t bytes, began_ns;
    int pe;
    unsigned watchers; // that see it
};

static inline bool gpsh_calls_are_watched(void)
{
    return __builtin_expect(__atomic_load_n(&gpsh_calls_watched, __ATOMIC_RELAXED) != 0, 0);
}

void gpsh_call_enter(struct gpsh_call *call);
void gpsh_call_leave(const struct gpsh_call *call);

static inline struct gpsh_call gpsh_call_begin(unsigned watchers, const char *name, int pe,
                                               uint64_t bytes)
{
    struct gpsh_call call = {0};
    if (gpsh_calls_are_watched()) {
        call = (struct gpsh_call){.name = name, .bytes = bytes, .pe = pe, .watchers = watchers};
        gpsh_call_enter(&call);
    }
    return call;
}

static inline void gpsh_call_end(const struct gpsh_call *call)
{
    if (__builtin_expect(call->name != 0, 0))
        gpsh_call_leave(call);
}

// From here to the end of the scope is the call `name`, a literal, about so many bytes at `pe`
// (-1: at no PE, or at all).
#define GPSH_CALL(name, pe, bytes) GPSH_CALL_FOR(GPSH_CALL_ALL, name, pe, bytes)
// The same for some watchers only.
#define GPSH_CALL_FOR(watchers, name, pe, bytes)                                                   \
    __attribute__((cleanup(gpsh_call_end), unused)) const struct gpsh_call gpsh_this_call =        \
        gpsh_call_begin(watchers, name, pe, bytes)

// Who watches is known from here on: the trace if it is open, NVTX if a tool has been injected.
void gpsh_calls_open(void);
void gpsh_calls_close(void);

#endif
