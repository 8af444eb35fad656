// SPDX-License-Identifier: BSD-3-Clause
// The conversation with a launcher that speaks PMI-1: lines of NAME=VALUE, separated by blanks, one
// answer to each request. Nothing that the launcher sends is believed.
#ifndef GPSH_PMI_WIRE_H
#define GPSH_PMI_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    GPSH_PMI_LINE = 1024, // the most that a request may have for any launcher, with its end
    GPSH_PMI_ANSWER = 8192,
};

struct gpsh_pmi_wire {
    int fd;            // a socket of the launcher, ours alone in this process
    const char *wrong; // why nothing can be asked any more, or NULL
    size_t have;       // bytes in `answer`
    char answer[GPSH_PMI_ANSWER];
};

// A copy of the descriptor that PMI_FD names. The programs that this process executes get neither:
// they would talk into the conversation.
int gpsh_pmi_wire_open(struct gpsh_pmi_wire *w, const char *pmi_fd);
void gpsh_pmi_wire_close(struct gpsh_pmi_wire *w);

// Sends one line, which ends with a newline. Another thread may send meanwhile: the kernel takes
// lines as short as these whole.
int gpsh_pmi_send(struct gpsh_pmi_wire *w, const char *request, uint64_t deadline_ns);
// 1: a line has come, which is *line, without its end, until the next call. 0: not within `ms`.
// Negative: none will come.
int gpsh_pmi_receive(struct gpsh_pmi_wire *w, long ms, char **line);
// Sends `request` and waits for its answer, which must be of the kind `cmd` and have no rc but 0.
int gpsh_pmi_ask(struct gpsh_pmi_wire *w, const char *request, const char *cmd, int64_t limit_ms,
                 char **line);
// An answer that came is not what it has to be.
int gpsh_pmi_fail_answer(struct gpsh_pmi_wire *w, const char *line, const char *wanted);

// The value of `name` in a line, up to the next blank. False: it is not there, or has no room.
bool gpsh_pmi_field(const char *line, const char *name, char *value, size_t bytes);

// Text of 4 characters for 3 bytes, of letters, digits, '-' and '_', which no launcher takes for
// anything else; terminated. Back again: the number of bytes, or -1.
size_t gpsh_pmi_encode(const void *data, size_t bytes, char *text);
long gpsh_pmi_decode(const char *text, void *data, size_t room);

// PMI_process_mapping says which ranks share a node:
// "(vector,(0,2,4),(2,1,1))": blocks of (first node, nodes, ranks on each of them), which begin
// anew when they are used up. Sets node[n_pes]. False: any other text.
bool gpsh_pmi_mapping_read(const char *text, int n_pes, int *node);

#endif
