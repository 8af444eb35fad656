// SPDX-License-Identifier: BSD-3-Clause
// Collective calls that differ between PEs, or have other arguments, are refused on all of them,
// and the sentence names the first PE. Nothing has changed then, and the job goes on.
#include <gpushmem/gpushmem.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static int check(const char *what, int code, const char *first, const char *second)
{
    if (gpushmem_last_error_code() == code && strstr(gpushmem_last_error(), first) &&
        strstr(gpushmem_last_error(), second))
        return 0;
    printf("PE %d: %s: expected code %d naming %s and %s, got %d: %s\n", gpushmem_my_pe(), what,
           code, first, second, gpushmem_last_error_code(), gpushmem_last_error());
    return 1;
}

static int odd; // this PE misbehaves
static char name[16];

static bool is_odd(void)
{
    return gpushmem_my_pe() == odd;
}

// `block` is allocated.
static int allocations_differ(char *block)
{
    int wrong = 0;
    void *size = gpushmem_malloc(is_odd() ? 64 : 128);
    wrong += size != NULL || check("sizes", GPUSHMEM_ERR_ASYMMETRY, name, "128");
    void *kind = is_odd() ? gpushmem_calloc(1, 128) : gpushmem_malloc(128);
    wrong += kind != NULL || check("functions", GPUSHMEM_ERR_ASYMMETRY, name, "gpushmem_calloc");
    void *swapped = is_odd() ? gpushmem_calloc(64, 2) : gpushmem_calloc(2, 64);
    wrong += swapped != NULL || check("order", GPUSHMEM_ERR_ASYMMETRY, name, "calloc(64, 2)");
    int status = gpushmem_free(is_odd() ? block + 256 : block);
    wrong += status != GPUSHMEM_ERR_ASYMMETRY ||
             check("free", GPUSHMEM_ERR_ASYMMETRY, name, "gpushmem_free");
    status = gpushmem_free(is_odd() ? (char *)&odd : block);
    wrong += status != GPUSHMEM_ERR_ASYMMETRY ||
             check("free elsewhere", GPUSHMEM_ERR_ASYMMETRY, name, "outside the heap");
    // Only one PE's heap is too small for what it asks for.
    void *large = gpushmem_malloc(is_odd() ? (size_t)1 << 60 : 128);
    wrong += large != NULL || check("exhausted", GPUSHMEM_ERR_ASYMMETRY, name, "malloc(115");
    return wrong;
}

static int functions_differ(char *block)
{
    int wrong = 0;
    bool failed = is_odd() ? gpushmem_malloc(128) == NULL : gpushmem_barrier_all() != 0;
    wrong += !failed || check("malloc, barrier", GPUSHMEM_ERR_ASYMMETRY, name, "barrier_all()");
    int status = is_odd() ? gpushmem_free(block) : gpushmem_barrier_all();
    wrong += status == 0 || check("free, barrier", GPUSHMEM_ERR_ASYMMETRY, name, "free(heap");
    status = is_odd() ? gpushmem_sync_all() : gpushmem_barrier_all();
    wrong += status == 0 || check("sync, barrier", GPUSHMEM_ERR_ASYMMETRY, name, "sync_all()");
    return wrong;
}

// Two blocks are free that would do, and the last one freed is the first one taken; the odd PE has
// asked for more, which only the other one could give. All PEs still get the same one.
static int next_block_is_the_same(void)
{
    enum { GRAIN = 256 };
    int me = gpushmem_my_pe(), n = gpushmem_n_pes();
    char *large = gpushmem_malloc(17 * GRAIN), *wall = gpushmem_malloc(GRAIN);
    char *small = gpushmem_malloc(16 * GRAIN), *end = gpushmem_malloc(GRAIN);
    int wrong = gpushmem_free(large) != 0 || gpushmem_free(small) != 0;
    void *differs = gpushmem_malloc((is_odd() ? 17 : 16) * GRAIN);
    wrong += differs != NULL || check("next", GPUSHMEM_ERR_ASYMMETRY, name, "4352");
    int *block = gpushmem_malloc(16 * GRAIN);
    if (block == NULL)
        return check("the same again", 0, "", "");
    *block = -1;
    wrong += gpushmem_barrier_all() != 0 || gpushmem_int_p(block, me, (me + 1) % n) != 0;
    wrong += gpushmem_barrier_all() != 0;
    if (*block != (me + n - 1) % n) {
        printf("PE %d: its block is not where PE %d has it\n", me, (me + n - 1) % n);
        wrong++;
    }
    return wrong + (gpushmem_free(block) || gpushmem_free(wall) || gpushmem_free(end));
}

int main(void)
{
    int wrong = 0;
    if (gpushmem_init())
        return 1;
    odd = gpushmem_n_pes() - 1;
    snprintf(name, sizeof name, "PE %d ", odd);
    struct gpushmem_heap_info before, after;
    wrong += gpushmem_heap_info(&before) != 0;
    char *block = gpushmem_malloc(4096);
    wrong += block == NULL;
    for (int round = 0; round < 3; round++) {
        wrong += allocations_differ(block);
        wrong += functions_differ(block);
        wrong += next_block_is_the_same();
        wrong += gpushmem_barrier_all() != 0;
    }
    // Nothing was harmed.
    wrong += gpushmem_free(block) != 0;
    wrong += gpushmem_heap_info(&after) != 0 || after.used_bytes != before.used_bytes;
    wrong += gpushmem_finalize() != 0;
    return wrong != 0;
}
