// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE // environ
#include "gpu/gpu_driver.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/error.h"
#include "core/log.h"

struct gpsh_cu_functions gpsh_cu;

static struct {
    pthread_mutex_t lock;
    bool loaded;
    int version;
} driver = {.lock = PTHREAD_MUTEX_INITIALIZER};

// The offset of the field in the table, and the symbol that fills it.
struct entry {
    size_t offset;
    const char *symbol;
};
#define ENTRY(field, symbol, parameters) {offsetof(struct gpsh_cu_functions, field), #symbol},
static const struct entry required[] = {GPSH_CU_FUNCTIONS(ENTRY)};
static const struct entry optional[] = {GPSH_CU_OPTIONAL_FUNCTIONS(ENTRY)};

// A function pointer from dlsym, stored as POSIX wants it: by its bytes.
static bool look_up(void *library, const struct entry *entry)
{
    void *symbol = dlsym(library, entry->symbol);
    memcpy((char *)&gpsh_cu + entry->offset, &symbol, sizeof symbol);
    return symbol;
}

// cuStreamWriteValue64_v2 came last of what is required, with CUDA 11.7.
static int too_old(const char *missing)
{
    int version = 0;
    if (gpsh_cu.driver_version)
        gpsh_cu.driver_version(&version);
    return gpsh_fail(
        GPUSHMEM_ERR_UNSUPPORTED,
        "the CUDA driver is too old: it is of CUDA %d.%d and has no %s; gpushmem needs "
        "driver 515 (CUDA 11.7) or newer; `gpushmem doctor` explains it under driver",
        version / 1000, version % 1000 / 10, missing);
}

static int look_up_all(void *library)
{
    for (size_t i = 0; i < sizeof required / sizeof *required; i++)
        if (!look_up(library, &required[i]))
            return too_old(required[i].symbol);
    for (size_t i = 0; i < sizeof optional / sizeof *optional; i++)
        look_up(library, &optional[i]);
    return 0;
}

// Other threads of the program may be reading the environment. setenv may free the array that they
// read; this leaves it as it is, and lets new readers find one with one more entry. A thread that
// changes the environment just now is in the way, as it is in that of any reader. Nothing of it is
// freed, or part of this library, which may be unloaded before the process ends.
static void environment_add(const char *entry)
{
    // Leak checkers find it here when a later setenv has replaced it.
    static char **kept __attribute__((used));
    char **added, *copy = strdup(entry);
    size_t n = 0;
    while (environ && environ[n])
        n++;
    added = malloc((n + 2) * sizeof *added);
    if (!added || !copy) {
        free(copy);
        return;
    }
    if (n)
        memcpy(added, environ, n * sizeof *added);
    added[n] = copy;
    added[n + 1] = NULL;
    kept = added;
    (void)kept;
    __atomic_store_n(&environ, added, __ATOMIC_RELEASE);
}

// By default CUDA loads each kernel at its first launch, and waits for those that run: for ever, if
// these wait for that launch. It reads the variable in its first cuInit; a user's choice stays.
static void choose_loading(void)
{
    static const char eager[] = "CUDA_MODULE_LOADING=EAGER";
    int count;
    if (getenv("CUDA_MODULE_LOADING") || gpsh_cu.device_count(&count) != GPSH_CU_NOT_INITIALIZED)
        return;
    environment_add(eager);
    GPSH_LOG(DEBUG, "gpu", "%s: kernels are loaded with their modules", eager);
}

static int start(void)
{
    gpsh_cu_result code = gpsh_cu.init(0);
    if (code == GPSH_CU_NO_DEVICE)
        return gpsh_fail(GPUSHMEM_ERR_UNSUPPORTED,
                         "the CUDA driver sees no GPU; is CUDA_VISIBLE_DEVICES set to nothing? "
                         "`gpushmem doctor` explains it under cuda");
    if (code == GPSH_CU_SYSTEM_DRIVER_MISMATCH)
        return gpsh_fail(
            GPUSHMEM_ERR_UNSUPPORTED,
            "libcuda.so.1 and the kernel's NVIDIA driver are of different versions; does "
            "nvidia-smi work? In a container, start it with the host's driver libraries; "
            "`gpushmem doctor` explains it under cuda");
    if (code) {
        gpsh_gpu_fail(
            code,
            "the CUDA driver cannot be used (cuInit; `gpushmem doctor` explains it under cuda)");
        return GPUSHMEM_ERR_UNSUPPORTED;
    }
    gpsh_cu.driver_version(&driver.version);
    return 0;
}

static int load(void)
{
    // Never closed: other libraries of the process use it too, and its threads outlive our last
    // call.
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return gpsh_fail(
            GPUSHMEM_ERR_UNSUPPORTED,
            "there is no CUDA driver here: %s; `gpushmem doctor` explains it under cuda",
            dlerror());
    int status = look_up_all(library);
    if (!status)
        choose_loading();
    if (!status)
        status = start();
    if (status)
        dlclose(library);
    return status;
}

int gpsh_gpu_load_driver(void)
{
    pthread_mutex_lock(&driver.lock);
    int status = driver.loaded ? 0 : load();
    driver.loaded = !status;
    pthread_mutex_unlock(&driver.lock);
    return status;
}

int gpsh_gpu_driver_version(void)
{
    return driver.version;
}

int gpsh_gpu_fail(gpsh_cu_result code, const char *format, ...)
{
    char what[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    const char *name = NULL, *text = NULL;
    gpsh_cu.error_name(code, &name);
    gpsh_cu.error_string(code, &text);
    return gpsh_fail(code == GPSH_CU_OUT_OF_MEMORY ? GPUSHMEM_ERR_NO_MEMORY : GPUSHMEM_ERR_CUDA,
                     "%s: %s (%d, %s)", what, text ? text : "unknown error", code,
                     name ? name : "?");
}
