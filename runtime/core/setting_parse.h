// SPDX-License-Identifier: BSD-3-Clause
// Values of settings, from text.
#ifndef GPSH_SETTING_PARSE_H
#define GPSH_SETTING_PARSE_H

#include <stdint.h>

#include "core/setting_rows.h"

// Parses "64M", "1G", "4096" into bytes. 0, or GPUSHMEM_ERR_SETTING without a sentence.
int gpsh_parse_size(const char *text, uint64_t *bytes);

// CPUs in "4-7,12": out[i] is that of the i-th of n threads, in turn; -1 where the text is empty or
// "any". GPUSHMEM_ERR_SETTING with a sentence if it is no such list.
int gpsh_parse_cpus(const char *text, int *out, int n);

// Gives the row's field of *out the value. GPUSHMEM_ERR_SETTING with a sentence that names the row,
// the text and what is allowed; strings are copies, and belong to *out.
int gpsh_setting_parse(const struct gpsh_setting_spec *row, const char *text,
                       struct gpsh_settings *out);

#endif
