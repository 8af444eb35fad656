// SPDX-License-Identifier: BSD-3-Clause
// Lists of what has something to do: flows and pipes at the channel's next progress, lanes at its
// next doorbell. The entry is a member of what it stands for.
#ifndef GPSH_VERBS_DUE_H
#define GPSH_VERBS_DUE_H

#include <stdbool.h>
#include <stddef.h>

struct verbs_due {
    struct verbs_due *next;
    bool listed;
};

// What the entry is the member `due` of.
#define VERBS_DUE_OF(entry, type) ((type *)(void *)((char *)(entry)-offsetof(type, due)))

static inline void verbs_due_add(struct verbs_due **list, struct verbs_due *entry)
{
    if (entry->listed)
        return;
    entry->listed = true;
    entry->next = *list;
    *list = entry;
}

// Takes all of them; `run` may put its entry, or another one, on the list again.
static inline void verbs_due_run(struct verbs_due **list, void (*run)(struct verbs_due *entry))
{
    struct verbs_due *entry = *list;
    *list = NULL;
    while (entry) {
        struct verbs_due *next = entry->next;
        entry->listed = false;
        run(entry);
        entry = next;
    }
}

#endif
