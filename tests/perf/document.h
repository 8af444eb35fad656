// SPDX-License-Identifier: BSD-3-Clause
// A run as JSON: rows, and all that one has to know to compare them with another run's.
#ifndef PERF_DOCUMENT_H
#define PERF_DOCUMENT_H

#include <stdbool.h>

#include "machine.h"
#include "report.h"

// Changes where a reader of the old form would misread the new one. A field more changes nothing.
enum { PERF_DOCUMENT_VERSION = 1 };

// Whether the file of an option can be written, with a sentence on stderr if not: asked before
// anything is measured. NULL: not wanted; "-": the standard output.
bool perf_document_can_write(const char *option, const char *path);
// What a run was made with.
struct perf_about {
    struct perf_machine machine;
    char *const *argv; // the command, NULL at its end; not owned
    char **settings;   // "GPUSHMEM_NAME=value", NULL at the end
};

// Before the program sets anything itself, and before it puts load on the machine.
void perf_about_take(struct perf_about *about, char *const *argv);
void perf_about_clear(struct perf_about *about);
// The text, to be freed; NULL, with a sentence on stderr, if there is no memory.
char *perf_document_text(const struct perf_report *report, const struct perf_about *about);
// To a file, or to the standard output for "-". False, with a sentence on stderr, if it cannot be
// written.
bool perf_document_write(const char *text, const char *path);

#endif
