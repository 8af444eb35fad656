// SPDX-License-Identifier: BSD-3-Clause
// The file that GPUSHMEM_LOG_FILE names. Whoever sets it chooses a name, and others may have put
// something there first: a pipe that nobody reads, a link to a file that is none of theirs.
#ifndef GPSH_LOG_FILE_H
#define GPSH_LOG_FILE_H

// Opens it for appending, without waiting and without following a link: a regular file of this
// user's with no further name, which is made with mode 0600 if it is not there; a terminal;
// /dev/null; or what this process has open already, as /dev/stderr, /dev/stdout, /dev/fd/N or
// /proc/self/fd/N. -1 with errno otherwise.
int gpsh_log_file_open(const char *name);

#endif
