// SPDX-License-Identifier: BSD-3-Clause
// Signals that are a question and not an order: only processes that listen get them.
#ifndef GPSH_LISTENERS_H
#define GPSH_LISTENERS_H

#include <sys/types.h>

// Sends the signal to those processes of the group, and to its leader, that catch or block it. All
// others would end: programs before their init and after their finalize, shells that run them.
void gpsh_listeners_signal(pid_t group, int signal);

#endif
