// SPDX-License-Identifier: BSD-3-Clause
#define _POSIX_C_SOURCE 200809L // strtok_r
// Settings: any environment is either read or refused with a sentence that names a variable, and
// any text of a file with one that names the file.
#include <stdlib.h>
#include <string.h>

#include "core/config.h"
#include "core/error.h"
#include "core/log.h"
#include "core/settings_files.h"
#include "fuzz.h"

static void read_as_file(const uint8_t *data, size_t bytes)
{
    struct gpsh_settings_given given = {0};
    struct gpsh_settings_file file = {.path = "the_file"};
    FILE *in = bytes ? fmemopen((void *)data, bytes, "r") : NULL;
    if (!in)
        return;
    int status = gpsh_settings_lines_read(in, &file, false, &given);
    if (status && (status != GPUSHMEM_ERR_SETTING || strncmp(gpsh_last_error(), "the_file:", 9)))
        abort();
    fclose(in);
    gpsh_settings_given_clear(&given);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    gpsh_log_threshold = GPSH_LOG_ERROR; // warnings about unknown names are expected
    read_as_file(data, bytes);
    char *text = malloc(bytes + 1);
    if (!text)
        return 0;
    memcpy(text, data, bytes);
    text[bytes] = '\0';
    char *environment[32];
    int entries = 0;
    char *rest = NULL;
    for (char *entry = strtok_r(text, "\n", &rest); entry && entries < 31;
         entry = strtok_r(NULL, "\n", &rest))
        environment[entries++] = entry;
    environment[entries] = NULL;
    struct gpsh_settings settings;
    int status = gpsh_settings_read(environment, &settings);
    if (!status)
        gpsh_settings_clear(&settings);
    else if (status != GPUSHMEM_ERR_SETTING || !strstr(gpsh_last_error(), "GPUSHMEM_"))
        abort();
    free(text);
    return 0;
}

size_t fuzz_sample(int index, uint8_t *data, size_t room)
{
    static const char *const samples[] = {
        "GPUSHMEM_HEAP_SIZE=64M\nGPUSHMEM_RINGS=8\nPATH=/bin",
        "GPUSHMEM_TRANSPORTS=p2p,verbs\nGPUSHMEM_STATS=yes\nGPUSHMEM_LOG_LEVEL=debug",
        "GPUSHMEM_VERBS_GID_INDEX=-1\nGPUSHMEM_VERBS_TIMEOUT=14\nGPUSHMEM_VERBS_DEVICES=mlx5_0:1,^"
        "mlx5_1",
        "# comment\r\n  GPUSHMEM_RINGS = 4 # four\nGPUSHMEM_TEAMS\t=\n\nGPUSHMEM_LOG_FILE='a b'",
        "GPUSHMEM_TEST_RING_ENTRIES=1024\nGPUSHMEM_HUGE_PAGES=2m\nGPUSHMEM_PROXY_CPUS=4-7,12",
    };
    if (index >= (int)(sizeof samples / sizeof samples[0]) || strlen(samples[index]) > room)
        return 0;
    memcpy(data, samples[index], strlen(samples[index]));
    return strlen(samples[index]);
}
