// SPDX-License-Identifier: BSD-3-Clause
#include "bootstrap/pmi_mapping.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

struct block {
    long node, nodes, ranks;
};

static bool read_number(const char **text, long least, char end, long *number)
{
    char *after;
    if (**text < '0' || **text > '9')
        return false;
    *number = strtol(*text, &after, 10);
    if (*after != end || *number < least || *number > INT_MAX / 2)
        return false;
    *text = after + 1;
    return true;
}

// Reads ",(0,2,4)" and moves on behind it. What is no block is left where it is.
static bool read_block(const char **text, struct block *block)
{
    if (strncmp(*text, ",(", 2) != 0)
        return false;
    const char *at = *text + 2;
    if (!read_number(&at, 0, ',', &block->node) || !read_number(&at, 1, ',', &block->nodes) ||
        !read_number(&at, 1, ')', &block->ranks))
        return false;
    *text = at;
    return true;
}

bool gpsh_pmi_mapping_read(const char *text, int n_pes, int *node)
{
    static const char head[] = "(vector";
    struct block block;
    if (strncmp(text, head, strlen(head)) != 0)
        return false;
    text += strlen(head);
    const char *first = text, *at = text;
    while (read_block(&at, &block))
        ;
    if (at == first || strcmp(at, ")") != 0)
        return false;
    at = first;
    for (int pe = 0; pe < n_pes;) {
        if (*at == ')')
            at = first;
        read_block(&at, &block);
        for (long i = 0; i < block.nodes && pe < n_pes; i++)
            for (long rank = 0; rank < block.ranks && pe < n_pes; rank++)
                node[pe++] = (int)(block.node + i);
    }
    return true;
}
