// SPDX-License-Identifier: BSD-3-Clause
// Initialisation, devices, contexts, failures on demand.
#define _GNU_SOURCE // strchrnul
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fake_cuda.h"
#include "internal.h"

enum { NAMES = 128, DEEPEST = 16, LEAK_EXIT = 66 };

struct fake fake = {.lock = PTHREAD_MUTEX_INITIALIZER, .idle = PTHREAD_COND_INITIALIZER};

// Calls and failures by function.
static struct counter {
    const char *name;
    unsigned long calls, fail_from, fail_to;
    gpsh_cu_result code;
} counters[NAMES] = {
#define COUNTER(field, symbol, parameters) {.name = #symbol},
    GPSH_CU_FUNCTIONS(COUNTER) GPSH_CU_OPTIONAL_FUNCTIONS(COUNTER)};

#ifndef FAKE_CUDA_OLD
// Names them all, so that one the library takes and this driver has not fails to link.
#define FUNCTION(field, symbol, parameters) gpsh_cu_result(*field) parameters;
#define HERE(field, symbol, parameters)     .field = symbol,
__attribute__((used)) static const struct {
    GPSH_CU_FUNCTIONS(FUNCTION) GPSH_CU_OPTIONAL_FUNCTIONS(FUNCTION)
} complete = {GPSH_CU_FUNCTIONS(HERE) GPSH_CU_OPTIONAL_FUNCTIONS(HERE)};
#endif

static struct attribute {
    const char *name;
    int number, value;
} attributes[] = {
    {"vmm", GPSH_CU_ATTRIBUTE_VMM, 1},
    {"posix_fd", GPSH_CU_ATTRIBUTE_POSIX_FD, 1},
    {"rdma_vmm", GPSH_CU_ATTRIBUTE_RDMA_WITH_VMM, 1},
    {"rdma", GPSH_CU_ATTRIBUTE_RDMA, 1},
    {"dmabuf", GPSH_CU_ATTRIBUTE_DMA_BUF, 1},
    {"pcie_dmabuf", FAKE_ATTRIBUTE_PCIE_DMABUF, 0},
    {"ordering", GPSH_CU_ATTRIBUTE_RDMA_WRITES_ORDERING, 100},
    {"flush", GPSH_CU_ATTRIBUTE_RDMA_FLUSH_OPTIONS, 1},
    {"pageable", GPSH_CU_ATTRIBUTE_PAGEABLE_ACCESS, 0},
    {"reduction", GPSH_CU_ATTRIBUTE_ATOMIC_REDUCTION, 1},
    {"major", GPSH_CU_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 9},
    {"minor", GPSH_CU_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 0},
};

static bool initialised;
static bool lazy; // kernels are loaded when they are first used
static _Thread_local gpsh_cu_context stack[DEEPEST];
static _Thread_local int depth;

void fake_misuse(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fprintf(stderr, "fake cuda: misuse: ");
    vfprintf(stderr, format, arguments);
    fprintf(stderr, "\n");
    va_end(arguments);
    abort();
}

void fake_leak(int *leaks, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fprintf(stderr, "fake cuda: not released at exit: ");
    vfprintf(stderr, format, arguments);
    fprintf(stderr, "\n");
    va_end(arguments);
    ++*leaks;
}

static size_t plain_length(const char *name) // without a _v2
{
    size_t length = strlen(name);
    return length > 3 && !strcmp(name + length - 3, "_v2") ? length - 3 : length;
}

static struct counter *find_counter(const char *name, size_t length)
{
    for (struct counter *c = counters; c < counters + NAMES && c->name; c++)
        if (plain_length(c->name) == length && !strncmp(c->name, name, length))
            return c;
    return NULL;
}

// ---- Environment ----

static long number(const char *name, long otherwise)
{
    const char *text = getenv(name);
    return text && *text ? strtol(text, NULL, 0) : otherwise;
}

static void read_failures(const char *text)
{
    for (const char *p = text; p && *p; p += *p == ',') {
        const char *colon = strchrnul(p, ':'), *end = strchrnul(p, ',');
        struct counter *c = find_counter(p, (size_t)(colon - p));
        if (!c || colon > end)
            fake_misuse("FAKE_CUDA_FAIL=%s: no function of this driver at '%s'", text, p);
        char *after;
        c->code = (int)strtol(colon + 1, &after, 10);
        c->fail_from = *after == '@' ? strtoul(after + 1, &after, 10) : 1;
        c->fail_to = *after == '-' ? strtoul(after + 1, &after, 10) : ~0ul;
        p = end;
    }
}

static void read_attributes(const char *text)
{
    for (const char *p = text; p && *p; p += *p == ',') {
        const char *equals = strchrnul(p, '=');
        struct attribute *found = NULL;
        for (size_t i = 0; i < sizeof attributes / sizeof *attributes; i++)
            if (strlen(attributes[i].name) == (size_t)(equals - p) &&
                !strncmp(attributes[i].name, p, (size_t)(equals - p)))
                found = &attributes[i];
        if (!found)
            fake_misuse("FAKE_CUDA_ATTRIBUTES=%s: nothing is called so at '%s'", text, p);
        found->value = (int)strtol(equals + 1, NULL, 10);
        p = strchrnul(p, ',');
    }
}

__attribute__((constructor)) static void read_environment(void)
{
    const char *visible = getenv("CUDA_VISIBLE_DEVICES");
    fake.settings = (struct fake_settings){
        .devices = (int)number("FAKE_CUDA_DEVICES", 1),
        .version = (int)number("FAKE_CUDA_VERSION", 13000),
        .memory = (size_t)number("FAKE_CUDA_MEMORY", 8l << 30),
        .peer = number("FAKE_CUDA_PEER", 1),
        .visible = number("FAKE_CUDA_VISIBLE", 0),
        .leaks = number("FAKE_CUDA_LEAKS", 1),
        .delay_us = (unsigned)number("FAKE_CUDA_DELAY_US", 0),
    };
    if (fake.settings.devices < 0 || fake.settings.devices > FAKE_DEVICES)
        fake_misuse("FAKE_CUDA_DEVICES=%d: 0 to %d", fake.settings.devices, FAKE_DEVICES);
    if (visible && !*visible)
        fake.settings.devices = 0;
    for (int i = 0; i < FAKE_DEVICES; i++)
        fake.contexts[i].device = i;
    read_attributes(getenv("FAKE_CUDA_ATTRIBUTES"));
    read_failures(getenv("FAKE_CUDA_FAIL"));
}

__attribute__((destructor)) static void report(void)
{
    int leaks = 0;
    if (!fake.settings.leaks || !initialised)
        return;
    fake_stream_report(&leaks);
    fake_kernel_report(&leaks);
    pthread_mutex_lock(&fake.lock);
    fake_vmm_report(&leaks);
    fake_memory_report(&leaks);
    pthread_mutex_unlock(&fake.lock);
    if (leaks)
        _exit(LEAK_EXIT);
}

// ---- Every call ----

gpsh_cu_context fake_current(void)
{
    return depth ? stack[depth - 1] : NULL;
}

static const struct counter *held; // fake.lock
static pthread_cond_t let_go = PTHREAD_COND_INITIALIZER;

void fake_cuda_hold(const char *function)
{
    const struct counter *c = function ? find_counter(function, strlen(function)) : NULL;
    if (function && !c)
        fake_misuse("fake_cuda_hold(%s): no such function", function);
    pthread_mutex_lock(&fake.lock);
    held = c;
    pthread_cond_broadcast(&let_go);
    pthread_mutex_unlock(&fake.lock);
}

gpsh_cu_result fake_enter(const char *function, enum fake_needs needs)
{
    gpsh_cu_result code = 0;
    pthread_mutex_lock(&fake.lock);
    struct counter *c = find_counter(function, plain_length(function));
    if (c && ++c->calls >= c->fail_from && c->calls <= c->fail_to)
        code = c->code;
    while (c && c == held)
        pthread_cond_wait(&let_go, &fake.lock);
    if (!code && !initialised)
        code = FAKE_NOT_INITIALISED;
    if (!code && needs == NEEDS_CONTEXT)
        code = fake_current() ? fake_current()->broken : FAKE_INVALID_CONTEXT;
    pthread_mutex_unlock(&fake.lock);
    return code;
}

unsigned long fake_cuda_calls(const char *function)
{
    pthread_mutex_lock(&fake.lock);
    const struct counter *c = find_counter(function, strlen(function));
    unsigned long calls = c ? c->calls : 0;
    pthread_mutex_unlock(&fake.lock);
    if (!c)
        fake_misuse("fake_cuda_calls(%s): no such function", function);
    return calls;
}

// ---- Initialisation and errors ----

gpsh_cu_result cuInit(unsigned flags)
{
    pthread_mutex_lock(&fake.lock);
    const char *loading = getenv("CUDA_MODULE_LOADING");
    lazy =
        initialised ? lazy : !loading || strcmp(loading, "EAGER") != 0; // read once, as CUDA does
    initialised = flags == 0;
    pthread_mutex_unlock(&fake.lock);
    gpsh_cu_result code = fake_enter(__func__, NEEDS_INIT);
    if (!code && !fake.settings.devices)
        code = GPSH_CU_NO_DEVICE;
    if (code)
        initialised = false;
    return code;
}

gpsh_cu_result cuDriverGetVersion(int *version)
{
    *version = fake.settings.version;
    return 0;
}

static const struct {
    gpsh_cu_result code;
    const char *name, *text;
} errors[] = {
    {0, "CUDA_SUCCESS", "no error"},
    {1, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {2, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {3, "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
    {46, "CUDA_ERROR_DEVICE_UNAVAILABLE", "CUDA-capable device(s) is/are busy or unavailable"},
    {100, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    {101, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
    {201, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    {217, "CUDA_ERROR_PEER_ACCESS_UNSUPPORTED",
     "peer access is not supported between these two devices"},
    {218, "CUDA_ERROR_INVALID_PTX", "a PTX JIT compilation failed"},
    {304, "CUDA_ERROR_OPERATING_SYSTEM", "OS call failed or operation not supported on this OS"},
    {400, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
    {500, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    {600, "CUDA_ERROR_NOT_READY", "device not ready"},
    {700, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"},
    {719, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"},
    {800, "CUDA_ERROR_NOT_PERMITTED", "operation not permitted"},
    {801, "CUDA_ERROR_NOT_SUPPORTED", "operation not supported"},
    {803, "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH",
     "system has unsupported display driver / cuda driver combination"},
    {999, "CUDA_ERROR_UNKNOWN", "unknown error"},
};

gpsh_cu_result cuGetErrorName(gpsh_cu_result code, const char **name)
{
    *name = NULL;
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
        if (errors[i].code == code)
            *name = errors[i].name;
    return *name ? 0 : GPSH_CU_INVALID_VALUE;
}

gpsh_cu_result cuGetErrorString(gpsh_cu_result code, const char **text)
{
    *text = NULL;
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
        if (errors[i].code == code)
            *text = errors[i].text;
    return *text ? 0 : GPSH_CU_INVALID_VALUE;
}

// ---- Devices ----

static bool is_device(gpsh_cu_device device)
{
    return device >= 0 && device < fake.settings.devices;
}

gpsh_cu_result cuModuleGetLoadingMode(int *mode)
{
    ENTER(NEEDS_INIT);
    *mode = lazy ? GPSH_CU_LOADING_LAZY : 1;
    return 0;
}

gpsh_cu_result cuDeviceGetCount(int *count)
{
    ENTER(NEEDS_INIT);
    *count = fake.settings.devices;
    return 0;
}

gpsh_cu_result cuDeviceGet(gpsh_cu_device *device, int ordinal)
{
    ENTER(NEEDS_INIT);
    *device = ordinal;
    return is_device(ordinal) ? 0 : FAKE_INVALID_DEVICE;
}

gpsh_cu_result cuDeviceGetName(char *name, int bytes, gpsh_cu_device device)
{
    ENTER(NEEDS_INIT);
    snprintf(name, (size_t)bytes, "Fake GPU %d", device);
    return is_device(device) ? 0 : FAKE_INVALID_DEVICE;
}

int fake_attribute(int which)
{
    for (size_t i = 0; i < sizeof attributes / sizeof *attributes; i++)
        if (attributes[i].number == which)
            return attributes[i].value;
    return -1;
}

gpsh_cu_result cuDeviceGetAttribute(int *value, int which, gpsh_cu_device device)
{
    ENTER(NEEDS_INIT);
    int found = fake_attribute(which);
    if (!is_device(device) || found < 0)
        return is_device(device) ? GPSH_CU_INVALID_VALUE : FAKE_INVALID_DEVICE;
    *value = found;
    return 0;
}

gpsh_cu_result cuDeviceGetPCIBusId(char *text, int bytes, gpsh_cu_device device)
{
    ENTER(NEEDS_INIT);
    const char *given = getenv("FAKE_CUDA_PCI");
    for (int i = 0; given && i < device; i++)
        given = strchr(given, ',') ? strchr(given, ',') + 1 : NULL;
    if (given)
        snprintf(text, (size_t)bytes, "%.*s", (int)strcspn(given, ","), given);
    else
        snprintf(text, (size_t)bytes, "0000:%02x:00.0", 0x10 * (device + 1));
    return is_device(device) ? 0 : FAKE_INVALID_DEVICE;
}

gpsh_cu_result cuDeviceGetUuid_v2(struct gpsh_cu_uuid *uuid, gpsh_cu_device device)
{
    ENTER(NEEDS_INIT);
    memset(uuid, 0x40 + device, sizeof *uuid);
    return is_device(device) ? 0 : FAKE_INVALID_DEVICE;
}

// ---- Contexts: the primary one of each device ----

gpsh_cu_result cuDevicePrimaryCtxRetain(gpsh_cu_context *context, gpsh_cu_device device)
{
    ENTER(NEEDS_INIT);
    if (!is_device(device))
        return FAKE_INVALID_DEVICE;
    pthread_mutex_lock(&fake.lock);
    fake.contexts[device].retained++;
    pthread_mutex_unlock(&fake.lock);
    *context = &fake.contexts[device];
    return 0;
}

gpsh_cu_result cuDevicePrimaryCtxRelease_v2(gpsh_cu_device device)
{
    if (!is_device(device))
        return FAKE_INVALID_DEVICE;
    pthread_mutex_lock(&fake.lock);
    if (--fake.contexts[device].retained < 0)
        fake_misuse("the primary context of GPU %d is released more often than it was retained",
                    device);
    pthread_mutex_unlock(&fake.lock);
    return 0;
}

static bool is_context(gpsh_cu_context context)
{
    return context >= fake.contexts && context < fake.contexts + FAKE_DEVICES &&
           context->retained > 0;
}

gpsh_cu_result cuCtxGetCurrent(gpsh_cu_context *context)
{
    ENTER(NEEDS_INIT);
    *context = fake_current();
    return 0;
}

gpsh_cu_result cuCtxPushCurrent_v2(gpsh_cu_context context)
{
    ENTER(NEEDS_INIT);
    if (!is_context(context))
        return FAKE_INVALID_CONTEXT;
    if (depth == DEEPEST)
        fake_misuse("%d contexts are pushed and none popped", depth);
    stack[depth++] = context;
    return 0;
}

gpsh_cu_result cuCtxPopCurrent_v2(gpsh_cu_context *context)
{
    ENTER(NEEDS_INIT);
    if (!depth)
        return FAKE_INVALID_CONTEXT;
    *context = stack[--depth];
    return 0;
}

gpsh_cu_result cuCtxSetCurrent(gpsh_cu_context context)
{
    ENTER(NEEDS_INIT);
    if (context && !is_context(context))
        return FAKE_INVALID_CONTEXT;
    depth -= depth > 0;
    if (context)
        stack[depth++] = context;
    return 0;
}

gpsh_cu_result cuFlushGPUDirectRDMAWrites(int target, int scope)
{
    ENTER(NEEDS_CONTEXT);
    if (target != GPSH_CU_FLUSH_CURRENT_CONTEXT || scope != GPSH_CU_FLUSH_TO_OWNER)
        return GPSH_CU_INVALID_VALUE;
    return fake_attribute(GPSH_CU_ATTRIBUTE_RDMA_FLUSH_OPTIONS) == 1 ? 0 : FAKE_NOT_SUPPORTED;
}

gpsh_cu_result cuCtxGetFlags(unsigned *flags)
{
    ENTER(NEEDS_CONTEXT);
    *flags = fake_current()->flags;
    return 0;
}

gpsh_cu_result cuCtxSetFlags(unsigned flags)
{
    ENTER(NEEDS_CONTEXT);
    fake_current()->flags = flags;
    return 0;
}

gpsh_cu_result cuCtxGetDevice(gpsh_cu_device *device)
{
    ENTER(NEEDS_CONTEXT);
    *device = fake_current()->device;
    return 0;
}
