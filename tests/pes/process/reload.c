// SPDX-License-Identifier: BSD-3-Clause
// A plugin's life: the library is loaded, used and given back, three times; SIGUSR1 does no harm
// when it comes late. With `exec` the program starts itself again in the middle of the job, which
// ends in a sentence.
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int (*function(void *library, const char *name))(void)
{
    int (*f)(void) = NULL;
    void *symbol = dlsym(library, name);
    memcpy(&f, &symbol, sizeof f);
    return f;
}

static int use(const char *path, char **restart)
{
    void *library = dlopen(path, RTLD_NOW);
    if (!library) {
        fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    int status = function(library, "gpushmem_init")();
    if (!status)
        status = function(library, "gpushmem_barrier_all")();
    if (!status && restart)
        status = execv(restart[0], restart);
    if (!status)
        status = function(library, "gpushmem_finalize")();
    return dlclose(library) || raise(SIGUSR1) || status;
}

int main(int argc, char **argv)
{
    if (argc > 2)
        return use(argv[1], (char *[]){argv[0], argv[1], NULL});
    for (int i = 0; i < 3; i++) {
        if (use(argv[1], NULL)) {
            fprintf(stderr, "failed in round %d\n", i);
            return 1;
        }
    }
    return 0;
}
