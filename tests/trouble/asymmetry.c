// SPDX-License-Identifier: BSD-3-Clause
// GPUSHMEM_CHECK=1: allocation calls that differ between PEs are refused on all of them, and the
// sentence names the first PE.
#include <gpushmem/gpushmem.h>
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

int main(void)
{
    int wrong = 0;
    if (gpushmem_init())
        return 1;
    int odd = gpushmem_n_pes() - 1; // this PE misbehaves
    char name[16];
    snprintf(name, sizeof name, "PE %d ", odd);
    void *block = gpushmem_malloc(4096);
    wrong += block == NULL;
    void *size = gpushmem_malloc(gpushmem_my_pe() == odd ? 64 : 128);
    wrong += size != NULL || check("sizes", GPUSHMEM_ERR_ASYMMETRY, name, "128");
    void *kind = gpushmem_my_pe() == odd ? gpushmem_calloc(1, 128) : gpushmem_malloc(128);
    wrong += kind != NULL || check("functions", GPUSHMEM_ERR_ASYMMETRY, name, "gpushmem_calloc");
    int status = gpushmem_free(gpushmem_my_pe() == odd ? (char *)block + 256 : block);
    wrong += status != GPUSHMEM_ERR_ASYMMETRY ||
             check("free", GPUSHMEM_ERR_ASYMMETRY, name, "gpushmem_free");
    // Nothing was harmed.
    wrong += gpushmem_free(block) != 0;
    wrong += gpushmem_finalize() != 0;
    return wrong != 0;
}
