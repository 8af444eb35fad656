// SPDX-License-Identifier: BSD-3-Clause
// Lists like "0-3,8", as people write those of processors, and the kernel those of NUMA nodes, too.
#ifndef GPSH_NUMBER_LIST_H
#define GPSH_NUMBER_LIST_H

#include <sched.h>
#include <stdbool.h>

// Takes the next number or range off the beginning of *list, which then is what follows; "" or a
// line break: nothing does. False: there is none, or what stands there is no such list.
bool gpsh_number_list_next(const char **list, long *first, long *last);

// Adds the numbers in a file to the set, but those that have no room there. False: there is no such
// file, or no list in it, and a part may have been added.
bool gpsh_number_list_read(const char *path, cpu_set_t *set);

#endif
