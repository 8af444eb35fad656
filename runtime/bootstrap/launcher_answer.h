// SPDX-License-Identifier: BSD-3-Clause
// Waiting for the launcher on the line to it (core/launcher.h): for its answer to a question of
// this PE, which bears the question's number. One to a question that was given up may come before.
#ifndef GPSH_LAUNCHER_ANSWER_H
#define GPSH_LAUNCHER_ANSWER_H

#include <stdint.h>

#include "bootstrap/bootstrap.h"
#include "core/launcher.h"

struct gpsh_launcher_wait {
    int line;
    const char *what;         // this PE does meanwhile, for sentences
    uint64_t began_ns;        // gpsh_clock_ns
    int64_t limit_ms;         // from then on; 0: none
    void (*waits)(bool over); // as that of struct gpsh_bootstrap; NULL: nobody wants to know
};

// Until the line is `ready` (POLLIN or POLLOUT). GPUSHMEM_ERR_PE_FAILED if a PE has died,
// GPUSHMEM_ERR_TIMEOUT after limit_ms, with a sentence.
int gpsh_launcher_await(const struct gpsh_launcher_wait *wait, short ready);

// The answer of that word and number, with at most `most` descriptors, which are the caller's: how
// many. 0 also where this process has no room for all of them. Else a status as above, or
// GPUSHMEM_ERR_SYSTEM if the launcher has ended. No other thread may read from the line.
int gpsh_launcher_answer(const struct gpsh_launcher_wait *wait, enum gpsh_line_word word,
                         int32_t question, struct gpsh_line_message *answer, int *fds, int most);

#endif
