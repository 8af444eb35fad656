// SPDX-License-Identifier: BSD-3-Clause
// Failures that the program is not told by what the call returns: they are logged, one line for
// each kind of sentence, and further ones are counted. GPUSHMEM_ON_ERROR says what else they do.
#ifndef GPSH_FAILED_CALLS_H
#define GPSH_FAILED_CALLS_H

#include <stdbool.h>

// Sentences are of one kind if they differ in numbers and addresses alone, but for those of PEs:
// "PE 1" and "PE 2" make two kinds. True the first time that it is asked about a kind, of which
// 256 are kept. `prefix`: the subsystem in the log.
bool gpsh_failure_is_new(const char *prefix, const char *sentence);

// This thread's last failure is that of a call that returns nothing, or a value. `sentence` is the
// failure's as the program knows it, `introduction` goes before it in a warning. Does what
// GPUSHMEM_ON_ERROR says, and marks the failure as said. Returns unless that is to end the job.
void gpsh_call_lost(const char *subsystem, const char *introduction, const char *sentence)
    __attribute__((cold));

// Whether such a call ends the job.
bool gpsh_call_lost_ends_job(void);

// The calls that were lost and not logged, in one line. At finalize; starts anew.
void gpsh_lost_calls_tell(void);

#endif
