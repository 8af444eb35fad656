// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE // cpu_set_t
#include "core/number_list.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool gpsh_number_list_next(const char **list, long *first, long *last)
{
    const char *at = *list + strspn(*list, " ");
    char *end;
    if (!isdigit((unsigned char)*at))
        return false;
    *first = *last = strtol(at, &end, 10);
    if (*end == '-' && isdigit((unsigned char)end[1]))
        *last = strtol(end + 1, &end, 10);
    if (*last < *first || (*end && *end != ',' && *end != '\n'))
        return false;
    *list = end + (*end == ',');
    return true;
}

bool gpsh_number_list_read(const char *path, cpu_set_t *set)
{
    char line[4096];
    const char *list = line;
    FILE *file = fopen(path, "re");
    bool found = file && fgets(line, sizeof line, file);
    if (file)
        fclose(file);
    for (long number, last; found && gpsh_number_list_next(&list, &number, &last);)
        for (; number <= last && number < CPU_SETSIZE; number++)
            CPU_SET((int)number, set);
    return found && (!*list || *list == '\n');
}
