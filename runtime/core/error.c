// SPDX-License-Identifier: BSD-3-Clause
#include "core/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/log.h"
#include "core/printable.h"
#include "gpushmem/gpushmem.h"

static _Thread_local struct gpsh_error last;

int gpsh_fail(int code, const char *format, ...)
{
    int saved = errno;
    va_list args;
    va_start(args, format);
    vsnprintf(last.sentence, sizeof last.sentence, format, args);
    va_end(args);
    // It may repeat a setting, or what a peer sent.
    gpsh_printable(last.sentence, sizeof last.sentence);
    last.code = code;
    last.said = false;
    GPSH_LOG(DEBUG, "error", "%s", last.sentence);
    errno = saved;
    return code;
}

int gpsh_fail_in(int code, const char *context)
{
    char inner[GPSH_ERROR_BYTES];
    memcpy(inner, last.sentence, sizeof inner);
    int used = snprintf(last.sentence, sizeof last.sentence, "%.200s: ", context);
    int room = (int)sizeof last.sentence - used;
    snprintf(last.sentence + used, (size_t)room, "%.*s", room - 1, inner);
    gpsh_printable(last.sentence, sizeof last.sentence);
    last.code = code;
    return code;
}

void gpsh_error_mark_said(void)
{
    last.said = true;
}

bool gpsh_error_is_said(void)
{
    return last.said;
}

void gpsh_error_keep(struct gpsh_error *kept)
{
    *kept = last;
}

void gpsh_error_put_back(const struct gpsh_error *kept)
{
    last = *kept;
}

const char *gpsh_last_error(void)
{
    return last.sentence;
}

int gpsh_last_error_code(void)
{
    return last.code;
}

void gpsh_clear_error(void)
{
    last.sentence[0] = '\0';
    last.code = 0;
    last.said = false;
}

const char *gpushmem_strerror(int code)
{
    switch (code) {
    case GPUSHMEM_OK: return "success";
    case GPUSHMEM_ERR_INVALID: return "invalid argument";
    case GPUSHMEM_ERR_STATE: return "library not initialised, or called in the wrong order";
    case GPUSHMEM_ERR_PE: return "PE number out of range";
    case GPUSHMEM_ERR_ADDRESS: return "address not in the symmetric heap";
    case GPUSHMEM_ERR_ALIGNMENT: return "misaligned atomic";
    case GPUSHMEM_ERR_NO_MEMORY: return "out of memory";
    case GPUSHMEM_ERR_SETTING: return "bad setting";
    case GPUSHMEM_ERR_BOOTSTRAP: return "bootstrap failed";
    case GPUSHMEM_ERR_PEER_DATA: return "bad data from a peer";
    case GPUSHMEM_ERR_TRANSPORT: return "transport failed or not available";
    case GPUSHMEM_ERR_UNREACHABLE: return "no transport reaches the PE";
    case GPUSHMEM_ERR_PE_FAILED: return "the PE failed";
    case GPUSHMEM_ERR_TIMEOUT: return "timed out";
    case GPUSHMEM_ERR_RING: return "command ring corrupt or lost";
    case GPUSHMEM_ERR_ASYMMETRY: return "PEs made different collective calls";
    case GPUSHMEM_ERR_UNSUPPORTED: return "not supported here";
    case GPUSHMEM_ERR_SYSTEM: return "system call failed";
    case GPUSHMEM_ERR_CUDA: return "CUDA call failed";
    default: return "unknown status code";
    }
}

const char *gpushmem_last_error(void)
{
    return last.sentence;
}

int gpushmem_last_error_code(void)
{
    return last.code;
}

void gpushmem_clear_error(void)
{
    gpsh_clear_error();
}
