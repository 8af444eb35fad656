// SPDX-License-Identifier: BSD-3-Clause
// Directories of this process in the place for temporary files.
#ifndef GPSH_SCRATCH_H
#define GPSH_SCRATCH_H

#include <stddef.h>

// Makes a new directory that only this user may enter, in $TMPDIR or, if that is not an absolute
// path of up to `longest` bytes, or cannot be written, in /tmp. Its name is `name`, a dash and six
// random characters; its path goes to dir[bytes]. 0, or -1 with errno set, and then dir holds what
// was tried last, for the sentence. Any thread.
int gpsh_scratch_dir(const char *name, size_t longest, char *dir, size_t bytes);

#endif
