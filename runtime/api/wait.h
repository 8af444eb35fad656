// SPDX-License-Identifier: BSD-3-Clause
// Waits for a word by calls that know more about it than its value.
#ifndef GPSH_WAIT_H
#define GPSH_WAIT_H

#include <stdint.h>

#include "progress/waiter.h"

// What `function` waits for: about(subject, ...) as in struct gpsh_waiter. `pe`: the one that has
// to do something first; -1: not known.
struct gpsh_wait_reason {
    const char *function;
    void (*about)(const void *subject, char *text, size_t bytes);
    const void *subject;
    int pe;
};
// gpushmem_int32_wait_until(var, GPUSHMEM_CMP_GE, value), told as that.
int gpsh_wait_int32_ge(const struct gpsh_wait_reason *reason, const int32_t *var, int32_t value);

#endif
