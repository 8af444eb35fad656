// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE // gethostname
#include "bootstrap/node_key.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/sha256.h"

// Appends to text[bytes], which stays terminated.
static void key_add(char *text, size_t bytes, const char *more)
{
    size_t used = strlen(text);
    snprintf(text + used, bytes - used, "%s\n", more);
}

static void key_add_file(char *text, size_t bytes, const char *path)
{
    struct stat st = {0};
    char identity[64] = "none";
    if (stat(path, &st) == 0)
        snprintf(identity, sizeof identity, "%llx %llx", (unsigned long long)st.st_dev,
                 (unsigned long long)st.st_ino);
    key_add(text, bytes, identity);
}

// A new one at each boot. Where /proc does not tell it, the host's name has to do.
static void key_add_boot(char *text, size_t bytes)
{
    char id[64] = "";
    FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");
    if (!file || !fgets(id, sizeof id, file))
        gethostname(id, sizeof id - 1);
    if (file)
        fclose(file);
    key_add(text, bytes, id);
}

struct gpsh_node_key gpsh_node_key(const char *name)
{
    char text[512] = "";
    uint8_t digest[GPSH_SHA256_BYTES];
    struct gpsh_node_key key;
    key_add_boot(text, sizeof text);
    key_add_file(text, sizeof text, "/proc/self/ns/user");
    key_add_file(text, sizeof text, "/");
    key_add_file(text, sizeof text, "/tmp");
    key_add(text, sizeof text, name);
    gpsh_sha256(text, strlen(text), digest);
    memcpy(key.bytes, digest, sizeof key.bytes);
    return key;
}
