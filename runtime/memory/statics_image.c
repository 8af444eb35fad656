// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE // dl_iterate_phdr
#include "memory/statics_image.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/error.h"
#include "core/hash.h"

struct span {
    uintptr_t first, end;
};

static uintptr_t page_bytes(void)
{
    return (uintptr_t)sysconf(_SC_PAGESIZE);
}

// What the loader protects once relocations are done: the pages that are wholly inside.
static struct span relro_of(const ElfW(Phdr) * headers, size_t n, uintptr_t bias)
{
    uintptr_t page = page_bytes();
    for (size_t i = 0; i < n; i++)
        if (headers[i].p_type == PT_GNU_RELRO) {
            uintptr_t first = bias + headers[i].p_vaddr;
            return (struct span){first & -page, (first + headers[i].p_memsz) & -page};
        }
    return (struct span){0, 0};
}

// Pages of a writable segment that stay writable. Linkers put RELRO at its start.
static struct span writable_of(const ElfW(Phdr) * header, struct span relro, uintptr_t bias)
{
    uintptr_t page = page_bytes(), first = bias + header->p_vaddr;
    struct span s = {first & -page, (first + header->p_memsz + page - 1) & -page};
    if (relro.end > s.first && relro.first <= s.first)
        s.first = relro.end < s.end ? relro.end : s.end;
    return s;
}

int gpsh_statics_image_range(const ElfW(Phdr) * headers, size_t n, uintptr_t bias,
                             struct gpsh_statics_image *out)
{
    struct span relro = relro_of(headers, n, bias);
    int found = 0;
    for (size_t i = 0; i < n; i++) {
        if (headers[i].p_type != PT_LOAD || !(headers[i].p_flags & PF_W))
            continue;
        struct span s = writable_of(&headers[i], relro, bias);
        if (s.first >= s.end)
            continue;
        if (found++)
            return gpsh_fail(GPUSHMEM_ERR_UNSUPPORTED,
                             "the program has several writable segments: link it with the default "
                             "layout of its linker");
        uintptr_t from_file =
            (bias + headers[i].p_vaddr + headers[i].p_filesz + page_bytes() - 1) & -page_bytes();
        out->base = (char *)s.first;
        out->bytes = s.end - s.first;
        out->file_bytes = from_file > s.first ? from_file - s.first : 0;
        if (out->file_bytes > out->bytes)
            out->file_bytes = out->bytes;
    }
    return found ? 0
                 : gpsh_fail(GPUSHMEM_ERR_UNSUPPORTED, "the program has no writable static data");
}

// ---- Which program it is ----

// Notes hold the linker's build id. Without one the beginning of the code tells programs apart.
static uint64_t image_id(const ElfW(Phdr) * headers, size_t n, uintptr_t bias)
{
    enum { CODE_BYTES = 65536 };
    uint64_t hash = gpsh_hash_more(0xcbf29ce484222325, headers, n * sizeof *headers);
    for (size_t i = 0; i < n; i++) {
        const void *at = (const void *)(bias + headers[i].p_vaddr);
        bool code = headers[i].p_type == PT_LOAD && headers[i].p_flags & PF_X;
        size_t bytes = headers[i].p_filesz < CODE_BYTES ? headers[i].p_filesz : CODE_BYTES;
        if ((code && headers[i].p_flags & PF_R) || headers[i].p_type == PT_NOTE)
            hash = gpsh_hash_more(hash, at, bytes);
    }
    return hash ? hash : 1;
}

// ---- What is mapped there ----

// True if all of the range is private memory that this process may read and write.
static bool is_ordinary(const struct gpsh_statics_image *image)
{
    char line[512], rights[8];
    uintptr_t at = (uintptr_t)image->base, end = at + image->bytes, first, last;
    FILE *maps = fopen("/proc/self/maps", "re");
    while (maps && at < end && fgets(line, sizeof line, maps)) {
        if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %7s", &first, &last, rights) != 3 || last <= at)
            continue;
        if (first > at || strncmp(rights, "rw", 2) != 0 || rights[3] != 'p')
            break;
        at = last;
    }
    if (maps)
        fclose(maps);
    return at >= end;
}

static int take_first(struct dl_phdr_info *info, size_t bytes, void *out)
{
    (void)bytes;
    *(struct dl_phdr_info *)out = *info;
    return 1; // the main program comes first
}

int gpsh_statics_image_find(struct gpsh_statics_image *out)
{
    struct dl_phdr_info info = {0};
    dl_iterate_phdr(take_first, &info);
    struct gpsh_statics_image image = {0};
    int status = gpsh_statics_image_range(info.dlpi_phdr, info.dlpi_phnum, info.dlpi_addr, &image);
    if (status)
        return status;
    if (!is_ordinary(&image))
        return gpsh_fail(GPUSHMEM_ERR_UNSUPPORTED,
                         "not all of it (%p, %" PRIu64 " bytes) is private memory that can be read "
                         "and written; did the program change its protection?",
                         (void *)image.base, image.bytes);
    image.id = image_id(info.dlpi_phdr, info.dlpi_phnum, info.dlpi_addr);
    *out = image;
    return 0;
}
