// SPDX-License-Identifier: BSD-3-Clause
// The last-error sentence of each thread. Whoever detects a failure calls gpsh_fail; callers only
// pass the code on.
#ifndef GPSH_ERROR_H
#define GPSH_ERROR_H

#include <stdbool.h>

#include "gpushmem/types.h"

// The most that a sentence has with its end. The longest, a NIC's about a PE that is lost, has
// some 500 bytes with what the program was doing.
enum { GPSH_ERROR_BYTES = 896 };

// Stores the sentence for this thread, logs it at level DEBUG, and returns `code`. errno is kept.
// A sentence says what, which value, what is allowed, what to do: "PE 9 is outside 0..3 (n_pes is
// 4)".
int gpsh_fail(int code, const char *format, ...) __attribute__((format(printf, 2, 3), cold));

// Puts "context: " in front of the thread's sentence, for a caller that knows what was being
// attempted. Returns `code`.
int gpsh_fail_in(int code, const char *context);

// The thread's sentence was logged, at a level that people see: whoever would log it, as the
// headers of compat do for functions without a status, need not.
void gpsh_error_mark_said(void);
bool gpsh_error_is_said(void);

// The thread's last failure, kept while something is tried whose failure is not the caller's, and
// put back afterwards.
struct gpsh_error {
    int code;
    bool said;
    char sentence[GPSH_ERROR_BYTES];
};
void gpsh_error_keep(struct gpsh_error *kept);
void gpsh_error_put_back(const struct gpsh_error *kept);

const char *gpsh_last_error(void);
int gpsh_last_error_code(void);
void gpsh_clear_error(void);

#endif
