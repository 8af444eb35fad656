// SPDX-License-Identifier: BSD-3-Clause
// A folder of one test's own, for the parts of a job's trace and what becomes of them.
#ifndef GPUSHMEM_TESTS_TRACE_FOLDER_H
#define GPUSHMEM_TESTS_TRACE_FOLDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { RECORDS = 64, PES = 2, LANES = 3 }; // default context, a proxy, a context

extern char folder[64], file[80]; // file: the trace's name in the folder
extern const char *job;           // whose parts are opened and written
extern size_t contents_bytes;     // of what contents() read last

// What each suite that uses the folder begins and ends with.
void trace_folder_begin(void);
void trace_folder_end(void);

int open_part_of(int pe, uint64_t records);
int open_part(int pe);
void write_part(int pe); // an empty one of a PE that has ended
char *part_path(int pe); // until the next call
bool is_there(const char *path);
char *contents(void); // of file, until the next call

#endif
