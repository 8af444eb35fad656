// SPDX-License-Identifier: BSD-3-Clause
// What the program's synchronous copies and fills have brought to symmetric memory is what a put
// sends right after them: of pageable memory of any size, within the GPU, by a fill.
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpushmem/gpushmem.h"

#define CHECK(x)                                                                                   \
    ((x) ? (void)0                                                                                 \
         : (fprintf(stderr, "PE %d: %s:%d: %s: %s\n", gpushmem_my_pe(), __FILE__, __LINE__, #x,    \
                    gpushmem_last_error()),                                                        \
            exit(1)))

enum { MOST = 1 << 20, ROUNDS = 12 };

static struct {
    int (*copy)(uintptr_t to, uintptr_t from, size_t bytes);
    int (*fill)(uintptr_t to, unsigned char value, size_t bytes);
} cuda;

static void find(void *library, const char *name, void *function)
{
    void *symbol = dlsym(library, name);
    CHECK(symbol);
    memcpy(function, &symbol, sizeof symbol);
}

static unsigned char pageable[MOST];

static void bring(char *to, char *other, int how, unsigned char value, size_t bytes)
{
    if (how == 2) {
        CHECK(!cuda.fill((uintptr_t)to, value, bytes));
        return;
    }
    memset(pageable, value, bytes);
    CHECK(!cuda.copy((uintptr_t)(how ? other : to), (uintptr_t)pageable, bytes));
    if (how)
        CHECK(!cuda.copy((uintptr_t)to, (uintptr_t)other, bytes));
}

// A receiver reads what came by a get from itself, which needs no call of CUDA's.
static long old_bytes(const char *from, unsigned char value, size_t bytes)
{
    static unsigned char got[MOST];
    long old = 0;
    CHECK(gpushmem_getmem(got, from, bytes, gpushmem_my_pe()) == 0);
    for (size_t i = 0; i < bytes; i++)
        old += got[i] != value;
    return old;
}

int main(void)
{
    static const size_t sizes[] = {8, 4096, 70000, MOST};
    static const char *const how_text[] = {"a copy of pageable memory", "a copy within the GPU",
                                           "a fill"};
    CHECK(gpushmem_init() == 0);
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    CHECK(library);
    find(library, "cuMemcpy", &cuda.copy);
    find(library, "cuMemsetD8_v2", &cuda.fill);
    int next = (gpushmem_my_pe() + 1) % gpushmem_n_pes(), failed = 0;
    char *source = gpushmem_malloc(MOST), *other = gpushmem_malloc(MOST),
         *target = gpushmem_malloc(MOST);
    CHECK(source && other && target);
    for (int how = 0; how < 3; how++)
        for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
            long old = 0;
            for (int i = 1; i <= ROUNDS; i++) {
                bring(source, other, how, (unsigned char)i, sizes[k]);
                CHECK(gpushmem_putmem(target, source, sizes[k], next) == 0);
                CHECK(gpushmem_barrier_all() == 0);
                old += old_bytes(target, (unsigned char)i, sizes[k]) != 0;
                CHECK(gpushmem_barrier_all() == 0);
            }
            if (old)
                fprintf(stderr, "PE %d: after %s of %zu bytes %ld of %d puts sent old data\n",
                        gpushmem_my_pe(), how_text[how], sizes[k], old, ROUNDS);
            failed += old != 0;
        }
    CHECK(gpushmem_free(target) == 0 && gpushmem_free(other) == 0 && gpushmem_free(source) == 0);
    CHECK(gpushmem_finalize() == 0);
    puts(failed ? "copied: old data" : "copied: ok");
    return failed;
}
