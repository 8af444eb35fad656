// SPDX-License-Identifier: BSD-3-Clause
// Text inside an SVG.
#ifndef GPSH_SVG_TEXT_H
#define GPSH_SVG_TEXT_H

#include <stddef.h>
#include <stdio.h>

// At most so many characters, cut with an ellipsis; what is no printable ASCII becomes "?".
void gpsh_svg_text(FILE *out, const char *text, size_t most);

#endif
