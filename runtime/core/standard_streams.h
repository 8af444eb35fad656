// SPDX-License-Identifier: BSD-3-Clause
// The descriptors 0 to 2.
#ifndef GPSH_STANDARD_STREAMS_H
#define GPSH_STANDARD_STREAMS_H

// Opens /dev/null in the place of those that are closed, and leaves the others alone. A closed one
// would be given to the next file that is opened, such as the memory of a heap, which then gets
// what the program prints. 0, or the errno of what failed. One thread at a time.
int gpsh_standard_streams_open(void);

#endif
