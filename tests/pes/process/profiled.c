// SPDX-License-Identifier: BSD-3-Clause
// A program that defines functions of the library itself sees its calls, and reaches the library by
// the second names. Each public function has one, at the same address.
//   process_profiled [library]; library: whose second names are compared, without a job
#include <dlfcn.h>
#include <gpushmem/gpushmem.h>
#include <gpushmem/profile.h>
#include <link.h>
#include <stdio.h>
#include <string.h>

GPUSHMEM_PROFILED(putmem);
GPUSHMEM_PROFILED(quiet);
GPUSHMEM_PROFILED(signal_op);

static int puts_seen, quiets_seen;

int gpushmem_putmem(void *dest, const void *source, size_t bytes, int pe)
{
    puts_seen++;
    return pgpushmem_putmem(dest, source, bytes, pe);
}

int gpushmem_quiet(void)
{
    quiets_seen++;
    return pgpushmem_quiet();
}

static int expect(int right, const char *what)
{
    if (!right)
        fprintf(stderr, "PE %d: not true: %s\n", gpushmem_my_pe(), what);
    return !right;
}

static int run_job(void)
{
    int wrong = expect(gpushmem_init() == 0, "init"), peer = 0;
    long *word = gpushmem_calloc(2, sizeof *word), value = 7;
    if (!word)
        return 1;
    peer = (gpushmem_my_pe() + 1) % gpushmem_n_pes();
    wrong += expect(gpushmem_putmem(word, &value, sizeof value, peer) == 0, "put");
    wrong += expect(pgpushmem_putmem(word + 1, &value, sizeof value, peer) == 0, "by second name");
    wrong += expect(gpushmem_quiet() == 0, "quiet");
    wrong += expect(gpushmem_putmem_on_stream(word, &value, sizeof value, peer, NULL) == 0,
                    "on a stream");
    wrong += expect(gpushmem_barrier_all() == 0, "barrier");
    wrong += expect(word[0] == 7 && word[1] == 7, "data");
    wrong += expect(puts_seen == 1 && quiets_seen == 1, "the library's own calls are not seen");
    wrong += expect(gpushmem_free(word) == 0 && gpushmem_finalize() == 0, "end");
    return wrong;
}

// nm's lines "address T name" are on standard input.
static int compare_names(const char *library)
{
    char name[256], kind[8];
    unsigned long address;
    int functions = 0, wrong = 0;
    void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    while (scanf("%lx %7s %255s", &address, kind, name) == 3) {
        char *at = strchr(name, '@'), second[260];
        if (at)
            *at = '\0';
        if (strncmp(name, "gpushmem_", 9) != 0)
            continue;
        snprintf(second, sizeof second, "p%s", name);
        void *one = dlsym(handle, name), *two = dlsym(handle, second);
        functions++;
        wrong += !one || one != two;
        if (!one || one != two)
            fprintf(stderr, "%s: %p, %s: %p\n", name, one, second, two);
    }
    printf("%d functions\n", functions);
    return wrong || functions < 1000;
}

int main(int argc, char **argv)
{
    return argc > 1 ? compare_names(argv[1]) : run_job() != 0;
}
