// SPDX-License-Identifier: BSD-3-Clause
#include "stream/stream_module.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>

#include "core/config.h"
#include "core/error.h"
#include "core/log.h"
#include "gpu/gpu.h"
#include "gpushmem/device_host.h"
#include "memory/heap.h"
#include "proxy/device_side.h"

static pthread_mutex_t beginning = PTHREAD_MUTEX_INITIALIZER; // held while one begins
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;      // of the list, never held for long
static struct gpushmem_cuda_runtime *runtimes;

void gpushmem_cuda_runtime_add(struct gpushmem_cuda_runtime *runtime)
{
    pthread_mutex_lock(&lock);
    runtime->next = runtimes;
    runtimes = runtime;
    pthread_mutex_unlock(&lock);
}

void gpushmem_cuda_runtime_remove(struct gpushmem_cuda_runtime *runtime)
{
    pthread_mutex_lock(&lock);
    struct gpushmem_cuda_runtime **at = &runtimes;
    while (*at && *at != runtime)
        at = &(*at)->next;
    if (*at)
        *at = runtime->next;
    pthread_mutex_unlock(&lock);
}

// One that has not begun in this context, and counts as begun from now on, or NULL.
static struct gpushmem_cuda_runtime *take_next(void)
{
    pthread_mutex_lock(&lock);
    struct gpushmem_cuda_runtime *r = runtimes;
    while (r && r->begun == gpsh_gpu.context)
        r = r->next;
    if (r)
        r->begun = gpsh_gpu.context;
    pthread_mutex_unlock(&lock);
    return r;
}

// Without the lock of the list: a runtime loads libraries when it begins, for which it waits for
// the loader, and a thread that has the loader may be adding a runtime.
// Lets each begin that has not begun in the opened GPU's context, which is current. When it returns
// all have, also those that another thread let begin. Any thread.
static void gpsh_gpu_runtimes_begin(void)
{
    pthread_mutex_lock(&beginning);
    for (struct gpushmem_cuda_runtime *r; (r = take_next());)
        r->begin();
    pthread_mutex_unlock(&beginning);
}

// ---- Kernels of the program ----

static bool loads_late(void)
{
    int mode = 0;
    return gpsh_cu.loading_mode && gpsh_cu.function_module && gpsh_cu.function_count &&
           gpsh_cu.functions && gpsh_cu.function_load && !gpsh_cu.loading_mode(&mode) &&
           mode == GPSH_CU_LOADING_LAZY;
}

// The program may capture a stream meanwhile.
void gpushmem_kernels_load(void *function)
{
    gpsh_cu_module module;
    unsigned count = 0;
    if (gpsh_gpu_load_driver() || !loads_late())
        return;
    int mode = GPSH_CU_CAPTURE_MODE_RELAXED;
    gpsh_cu.capture_mode(&mode);
    if (!gpsh_cu.function_module(&module, function) && !gpsh_cu.function_count(&count, module)) {
        gpsh_cu_function *functions = calloc((size_t)count + 1, sizeof *functions);
        if (functions && !gpsh_cu.functions(functions, count, module))
            for (unsigned i = 0; i < count; i++)
                gpsh_cu.function_load(functions[i]);
        free(functions);
        GPSH_LOG(DEBUG, "gpu", "loaded the %u kernels of a module before the first launch", count);
    }
    gpsh_cu.capture_mode(&mode);
}

// A kernel that does not wait for the one ahead of it by itself must not be launched early: only
// code for compute capability 9.0 or more does (device/atomics.cuh), not what the driver makes of
// older PTX. Graphs take it since CUDA 12.3.
// Nor under compute-sanitizer, where a test has hung: its library is loaded then.
static bool may_be_early(gpsh_cu_function kernel)
{
    int driver = 0, code = 0;
    void *sanitizer = dlopen("libsanitizer-collection.so", RTLD_LAZY | RTLD_NOLOAD);
    if (sanitizer)
        dlclose(sanitizer);
    return !sanitizer && gpsh_settings()->stream_early && gpsh_cu.launch_with &&
           gpsh_cu.function_attribute && !gpsh_cu.driver_version(&driver) && driver >= 12030 &&
           !gpsh_cu.function_attribute(&code, GPSH_CU_FUNCTION_PTX_VERSION, kernel) && code >= 90;
}

// A kernel that is launched early holds multiprocessors while it awaits the one before it. The
// library's let it start when they wait for nothing more; a program's may do so before.
gpsh_cu_result gpsh_stream_module_launch(const struct gpsh_stream_module *m, int kernel,
                                         struct gpsh_stream_shape shape, void **parameters,
                                         gpushmem_stream_t stream)
{
    if (!m->early || shape.blocks > m->early_blocks || kernel >= m->late)
        return gpsh_cu.launch(m->kernels[kernel], shape.blocks, 1, 1, shape.threads, 1, 1, 0,
                              stream, parameters, NULL);
    struct gpsh_cu_launch_attribute early = {.id = GPSH_CU_LAUNCH_EARLY, .value.on = 1};
    const struct gpsh_cu_launch_config config = {shape.blocks, 1,      1, shape.threads, 1, 1, 0,
                                                 stream,       &early, 1};
    return gpsh_cu.launch_with(&config, m->kernels[kernel], parameters, NULL);
}

// The driver may load a kernel as late as at its first launch, and wait for running kernels then,
// which may wait for this one: so each is launched once with nothing to do.
static gpsh_cu_result warm_up(const struct gpsh_stream_module *m)
{
    const struct gpsh_stream_shape shape = {1, m->idle_threads};
    gpsh_cu_stream stream = NULL;
    gpsh_cu_result code = gpsh_cu.stream_create(&stream, GPSH_CU_STREAM_NON_BLOCKING);
    for (int k = 0; k < m->n && !code; k++) {
        if (m->names[k])
            code = gpsh_stream_module_launch(m, k, shape, (void **)m->idle_nothing, stream);
    }
    if (!code)
        code = gpsh_cu.stream_sync(stream);
    if (stream)
        gpsh_cu.stream_destroy(stream);
    return code;
}

void gpsh_stream_module_unload(struct gpsh_stream_module *m)
{
    atomic_store(&m->ready, false);
    if (m->module)
        gpsh_cu.module_unload(m->module);
    m->module = NULL;
}

static gpsh_cu_result find_kernels(struct gpsh_stream_module *m)
{
    gpsh_cu_result code = gpsh_cu.module_load(&m->module, *m->image);
    for (int k = 0; k < m->n && !code; k++) {
        if (m->names[k])
            code = gpsh_cu.module_function(&m->kernels[k], m->module, m->names[k]);
    }
    m->early = !code && may_be_early(m->kernels[m->asked]);
    return code;
}

static int load(struct gpsh_stream_module *m)
{
    gpsh_gpu_on_close(m->unload);
    if (!*m->image)
        return gpsh_fail(GPUSHMEM_ERR_UNSUPPORTED,
                         "this gpushmem was built without CUDA's compiler and has no kernels for "
                         "%s; build it with -DGPUSHMEM_CUDA=ON",
                         m->what);
    gpsh_cu_result code = find_kernels(m);
    if (!code)
        code = warm_up(m);
    if (!code)
        return 0;
    int status = gpsh_gpu_fail(code, "loading the kernels of %s on %s", m->what, gpsh_gpu.name);
    gpsh_stream_module_unload(m);
    return status;
}

static int load_once(struct gpsh_stream_module *m, bool program_too)
{
    pthread_mutex_lock(&m->lock);
    GPSH_IN_GPU;
    int status = m->module ? 0 : load(m);
    if (!status && program_too)
        gpsh_gpu_runtimes_begin();
    pthread_mutex_unlock(&m->lock);
    return status;
}

void gpsh_stream_module_preload(struct gpsh_stream_module *m)
{
    if (!gpsh_heap()->device || !*m->image || !load_once(m, false))
        return;
    GPSH_LOG(DEBUG, "stream", "%s", gpsh_last_error());
    gpsh_clear_error();
}

int gpsh_stream_module_prepare(struct gpsh_stream_module *m)
{
    struct gpushmem_dev handle;
    int status = gpushmem_device_handle(&handle);
    if (!status)
        status = load_once(m, true);
    if (status)
        return status;
    pthread_mutex_lock(&m->lock);
    if (!atomic_load(&m->ready))
        m->handle = handle;
    atomic_store_explicit(&m->ready, true, memory_order_release);
    pthread_mutex_unlock(&m->lock);
    return 0;
}
