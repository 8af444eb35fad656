// SPDX-License-Identifier: BSD-3-Clause
// A queue of operations on host memory that are done later, by a thread of its own, as a GPU's copy
// engine does them: who uses a result before its mark, or a source again before, is found out.
#ifndef SLOW_QUEUE_H
#define SLOW_QUEUE_H

#include "transport/transport.h"

extern const struct gpsh_queue_ops slow_queue_ops;
// While not 0, every check() fails with it and nothing is done any more: a GPU that broke.
extern _Atomic int slow_queue_broken;
// While not 0, nothing is done yet.
extern _Atomic int slow_queue_held;

#endif
