// SPDX-License-Identifier: BSD-3-Clause
// A few functions that upper rooms register with a lower one, which then calls them without knowing
// them.
#ifndef GPSH_HOOKS_H
#define GPSH_HOOKS_H

enum { GPSH_HOOKS = 8 };

// Stands for functions of any type: the caller casts back to the real one.
typedef void gpsh_hook(void);
struct gpsh_hooks {
    gpsh_hook *_Atomic list[GPSH_HOOKS]; // NULL after the last one
};

// Adds a function; adding it again changes nothing, and none is ever removed. Any thread, also
// while others run through the list.
void gpsh_hooks_add(struct gpsh_hooks *hooks, gpsh_hook *function);

#endif
