// SPDX-License-Identifier: BSD-3-Clause
#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "doctor/check.h"

// What a file has is printed on terminals, and may come from another machine.
static void control_replace(char *text)
{
    for (; *text; text++)
        if (iscntrl((unsigned char)*text))
            *text = '?';
}

static void text_add(char *text, size_t bytes, const char *separator, const char *format,
                     va_list args)
{
    size_t used = strlen(text);
    if (used)
        used += (size_t)snprintf(text + used, bytes - used, "%s", separator);
    if (used < bytes)
        vsnprintf(text + used, bytes - used, format, args);
    control_replace(text);
}

void gpsh_found(struct gpsh_finding *finding, enum gpsh_check_result result, const char *format,
                ...)
{
    va_list args;
    // What was well matters no more.
    finding->dropped = result < finding->result;
    if (finding->dropped)
        return;
    if (result > finding->result)
        finding->saw[0] = finding->mend[0] = '\0';
    finding->result = result;
    va_start(args, format);
    text_add(finding->saw, sizeof finding->saw, "; ", format, args);
    va_end(args);
}

void gpsh_mend(struct gpsh_finding *finding, const char *format, ...)
{
    va_list args;
    if (finding->mend[0] || finding->dropped)
        return;
    va_start(args, format);
    text_add(finding->mend, sizeof finding->mend, "", format, args);
    va_end(args);
}
