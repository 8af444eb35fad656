// SPDX-License-Identifier: BSD-3-Clause
// What a fuzz target provides. It aborts the process if a promise is broken.
#ifndef FUZZ_H
#define FUZZ_H

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);
// Writes valid input number `index` (from 0) into at most `room` bytes; returns its size, 0 past
// the last one.
size_t fuzz_sample(int index, uint8_t *data, size_t room);

#endif
