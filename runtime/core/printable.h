// SPDX-License-Identifier: BSD-3-Clause
// Text that others wrote (another process, the environment, a file), before it is printed: a
// terminal obeys control characters, and a line end forges a line.
#ifndef GPSH_PRINTABLE_H
#define GPSH_PRINTABLE_H

#include <stddef.h>

// Writes each byte of text[bytes] that is no part of a printable character of UTF-8 as \x1b, for
// example. What has no room is cut off. Doing it again changes nothing.
void gpsh_printable(char *text, size_t bytes);

#endif
