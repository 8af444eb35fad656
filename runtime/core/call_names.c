// SPDX-License-Identifier: BSD-3-Clause
#include "core/call_names.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

#include "core/text.h"

// NVSHMEM calls its own additions nvshmemx_X.
static bool is_extension(const char *name, size_t length)
{
    static const char *const ours[] = {"buffer_",           "signal_op", "init_attr",
                                       "get_uniqueid",      "cumodule_", "culibrary_",
                                       "collective_launch", "qp_"};
    const char stream[] = "_on_stream";
    const size_t suffix = sizeof stream - 1;
    for (size_t i = 0; i < sizeof ours / sizeof ours[0]; i++)
        if (strncmp(name, ours[i], strlen(ours[i])) == 0)
            return true;
    return length > suffix && strncmp(name + length - suffix, stream, suffix) == 0;
}

void gpsh_calls_rename(const char *prefix, const char *sentence, char *out, size_t bytes)
{
    const char ours[] = "gpushmem_", status[] = "_status";
    const size_t suffix = sizeof status - 1;
    const char *rest = sentence, *found;
    struct gpsh_text t = {out, bytes, 0};
    while ((found = strstr(rest, ours))) {
        const char *name = found + sizeof ours - 1;
        size_t end = strspn(name, "abcdefghijklmnopqrstuvwxyz_0123456789"), length = end;
        if (length > suffix && strncmp(name + length - suffix, status, suffix) == 0)
            length -= suffix;
        const char *x = *prefix == 'n' && is_extension(name, length) ? "x" : "";
        gpsh_text_add(&t, "%.*s%s%s_%.*s", (int)(found - rest), rest, prefix, x, (int)length, name);
        rest = name + end;
    }
    gpsh_text_add(&t, "%s", rest);
}

static const char *_Atomic known;

void gpsh_call_names_are(const char *prefix)
{
    atomic_store(&known, prefix);
}

const char *gpsh_call_names(void)
{
    return atomic_load(&known);
}

const char *gpsh_call_name(const char *call, char *out, size_t bytes)
{
    const char *prefix = gpsh_call_names();
    if (!prefix)
        return call;
    gpsh_calls_rename(prefix, call, out, bytes);
    return out;
}
