// SPDX-License-Identifier: BSD-3-Clause
// A PMIx_Get that answers from a table which the test fills: what a launcher tells about its job.
#ifndef FAKE_PMIX_H
#define FAKE_PMIX_H

#include <pmix.h>

enum { FAKE_PMIX_ALL = -1 }; // the job itself, instead of a rank

void fake_pmix_string(int rank, const char *key, const char *text);
// The integer type that the launcher happens to use.
void fake_pmix_number(int rank, const char *key, pmix_data_type_t type, long number);

#endif
