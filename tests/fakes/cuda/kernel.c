// SPDX-License-Identifier: BSD-3-Clause
// Modules and kernels: of a kernel's PTX the driver understands its one atomic instruction, and
// executes that. Variables are bytes of GPU memory: ".b8 name[256]".
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"
#include "transport/direct.h"

enum { MOST_FUNCTIONS = 32, MOST_VARIABLES = 4, NAME_BYTES = 32 };

struct fake_atomic {
    enum gpsh_amo amo;
    int width;
};

static const struct {
    const char *text;
    struct fake_atomic atomic;
} known[] = {
    {"add.u64 ", {GPSH_AMO_ADD, 8}},   {"add.u32 ", {GPSH_AMO_ADD, 4}},
    {"exch.b64 ", {GPSH_AMO_SWAP, 8}}, {"exch.b32 ", {GPSH_AMO_SWAP, 4}},
    {"and.b64 ", {GPSH_AMO_AND, 8}},   {"and.b32 ", {GPSH_AMO_AND, 4}},
    {"or.b64 ", {GPSH_AMO_OR, 8}},     {"or.b32 ", {GPSH_AMO_OR, 4}},
    {"xor.b64 ", {GPSH_AMO_XOR, 8}},   {"xor.b32 ", {GPSH_AMO_XOR, 4}},
    {"cas.b64 ", {GPSH_AMO_CSWAP, 8}}, {"cas.b32 ", {GPSH_AMO_CSWAP, 4}},
};

struct gpsh_cu_function_opaque {
    char name[NAME_BYTES];
    const struct fake_atomic *atomic;
};

struct gpsh_cu_module_opaque {
    struct gpsh_cu_module_opaque *next;
    struct gpsh_cu_function_opaque functions[MOST_FUNCTIONS];
    struct {
        char name[NAME_BYTES];
        gpsh_cu_ptr memory;
        size_t bytes;
    } variables[MOST_VARIABLES];
};

static struct gpsh_cu_module_opaque *modules; // fake.lock

static const struct fake_atomic *find_atomic(const char *body)
{
    static const char prefix[] = "atom.global.sys.";
    const char *at = strstr(body, prefix);
    for (size_t i = 0; at && i < sizeof known / sizeof *known; i++)
        if (!strncmp(at + sizeof prefix - 1, known[i].text, strlen(known[i].text)))
            return &known[i].atomic;
    return NULL;
}

static int make_variables(gpsh_cu_module module, const char *image)
{
    static const char variable[] = ".b8 ";
    int n = 0;
    for (const char *at = strstr(image, variable); at && n < MOST_VARIABLES;
         at = strstr(at, variable)) {
        at += sizeof variable - 1;
        int name = (int)strcspn(at, "[");
        module->variables[n].bytes = strtoul(at + name + 1, NULL, 10);
        if (cuMemAlloc_v2(&module->variables[n].memory, module->variables[n].bytes))
            return n;
        snprintf(module->variables[n++].name, NAME_BYTES, "%.*s", name, at);
    }
    return n;
}

gpsh_cu_result cuModuleLoadData(gpsh_cu_module *out, const void *image)
{
    ENTER(NEEDS_CONTEXT);
    static const char entry[] = ".entry ";
    gpsh_cu_module module = calloc(1, sizeof *module);
    int n = 0;
    for (const char *at = strstr(image, entry); at && n < MOST_FUNCTIONS; at = strstr(at, entry)) {
        gpsh_cu_function function = &module->functions[n++];
        at += sizeof entry - 1;
        snprintf(function->name, sizeof function->name, "%.*s", (int)strcspn(at, "( "), at);
        function->atomic = find_atomic(at);
    }
    bool good = make_variables(module, image) + n && !strncmp(image, ".version ", 9);
    for (int i = 0; i < n; i++)
        good = good && module->functions[i].atomic;
    if (!good) {
        free(module);
        return FAKE_INVALID_PTX;
    }
    pthread_mutex_lock(&fake.lock);
    module->next = modules;
    modules = module;
    pthread_mutex_unlock(&fake.lock);
    *out = module;
    return 0;
}

gpsh_cu_result cuModuleUnload(gpsh_cu_module module)
{
    ENTER(NEEDS_CONTEXT);
    pthread_mutex_lock(&fake.lock);
    gpsh_cu_module *link = &modules;
    while (*link && *link != module)
        link = &(*link)->next;
    if (!*link)
        fake_misuse("cuModuleUnload: %p is no module, or unloaded already", (void *)module);
    *link = module->next;
    pthread_mutex_unlock(&fake.lock);
    for (int i = 0; i < MOST_VARIABLES && module->variables[i].memory; i++)
        cuMemFree_v2(module->variables[i].memory);
    free(module);
    return 0;
}

gpsh_cu_result cuModuleGetGlobal_v2(gpsh_cu_ptr *variable, size_t *bytes, gpsh_cu_module module,
                                    const char *name)
{
    ENTER(NEEDS_CONTEXT);
    for (int i = 0; i < MOST_VARIABLES; i++)
        if (!strcmp(module->variables[i].name, name)) {
            *variable = module->variables[i].memory;
            *bytes = module->variables[i].bytes;
            return 0;
        }
    return FAKE_NOT_FOUND;
}

// A library is a module here.
gpsh_cu_result cuLibraryGetGlobal(gpsh_cu_ptr *variable, size_t *bytes, gpsh_cu_library library,
                                  const char *name)
{
    ENTER(NEEDS_CONTEXT);
    return cuModuleGetGlobal_v2(variable, bytes, (gpsh_cu_module)(void *)library, name);
}

gpsh_cu_result cuModuleGetFunction(gpsh_cu_function *function, gpsh_cu_module module,
                                   const char *name)
{
    ENTER(NEEDS_CONTEXT);
    for (int i = 0; i < MOST_FUNCTIONS; i++)
        if (!strcmp(module->functions[i].name, name)) {
            *function = &module->functions[i];
            return 0;
        }
    return FAKE_NOT_FOUND;
}

static char *reachable(uintptr_t at, size_t bytes)
{
    char *host;
    enum fake_place place = fake_place(at, bytes, &host);
    return (place == PLACE_DEVICE || place == PLACE_PINNED) && at % bytes == 0 ? host : NULL;
}

// What one thread does. `to` is the word, `from` where the previous value goes, or 0.
static gpsh_cu_result run_atomic(struct fake_operation *self)
{
    char *word = reachable(self->to, (size_t)self->atomic->width),
         *result = self->from ? reachable(self->from, 8) : NULL;
    uint64_t old;
    if (!word || (self->from && !result)) {
        fprintf(
            stderr,
            "fake cuda: a kernel's atomic on %#lx with its result at %#lx: no memory of the GPU\n",
            (unsigned long)self->to, (unsigned long)self->from);
        return FAKE_ILLEGAL_ADDRESS;
    }
    if (self->atomic->width == 8)
        old = gpsh_direct_amo64((uint64_t *)(void *)word, self->atomic->amo, self->value,
                                self->compare);
    else
        old = gpsh_direct_amo32((uint32_t *)(void *)word, self->atomic->amo, (uint32_t)self->value,
                                (uint32_t)self->compare);
    if (result)
        *(uint64_t *)(void *)result = old;
    return 0;
}

bool fake_reduction(struct fake_operation *operation, const union gpsh_cu_memory_op *from)
{
    static const struct {
        uint32_t how, type;
        struct fake_atomic atomic;
    } reductions[] = {
        {GPSH_CU_REDUCE_ADD, GPSH_CU_REDUCE_U64, {GPSH_AMO_ADD, 8}},
        {GPSH_CU_REDUCE_ADD, GPSH_CU_REDUCE_U32, {GPSH_AMO_ADD, 4}},
        {GPSH_CU_REDUCE_AND, GPSH_CU_REDUCE_U64, {GPSH_AMO_AND, 8}},
        {GPSH_CU_REDUCE_AND, GPSH_CU_REDUCE_U32, {GPSH_AMO_AND, 4}},
        {GPSH_CU_REDUCE_OR, GPSH_CU_REDUCE_U64, {GPSH_AMO_OR, 8}},
        {GPSH_CU_REDUCE_OR, GPSH_CU_REDUCE_U32, {GPSH_AMO_OR, 4}},
    };
    operation->run = run_atomic;
    operation->to = (uintptr_t)from->reduce.to;
    operation->value = from->reduce.value;
    for (size_t i = 0; i < sizeof reductions / sizeof *reductions; i++)
        if (from->reduce.how == reductions[i].how && from->reduce.type == reductions[i].type)
            operation->atomic = &reductions[i].atomic;
    return operation->atomic && !from->reduce.flags &&
           fake_attribute(GPSH_CU_ATTRIBUTE_ATOMIC_REDUCTION);
}

gpsh_cu_result cuLaunchKernel(gpsh_cu_function function, unsigned grid_x, unsigned grid_y,
                              unsigned grid_z, unsigned block_x, unsigned block_y, unsigned block_z,
                              unsigned shared_bytes, gpsh_cu_stream stream, void **parameters,
                              void **extra)
{
    ENTER(NEEDS_CONTEXT);
    if (grid_x * grid_y * grid_z * block_x * block_y * block_z != 1 || shared_bytes || extra)
        return GPSH_CU_INVALID_VALUE; // the kernels this driver knows are for one thread
    if (!fake_stream_is_current(stream))
        return FAKE_INVALID_HANDLE;
    struct fake_operation *operation = fake_operation_new(run_atomic, 0);
    operation->to = *(uintptr_t *)parameters[0];
    operation->from = *(uintptr_t *)parameters[1];
    operation->value = *(uint64_t *)parameters[2];
    operation->compare = *(uint64_t *)parameters[3];
    operation->atomic = function->atomic;
    return fake_submit(stream, operation);
}

gpsh_cu_result cuLaunchKernelEx(const struct gpsh_cu_launch_config *config,
                                gpsh_cu_function function, void **parameters, void **extra)
{
    return cuLaunchKernel(function, config->grid_x, config->grid_y, config->grid_z, config->block_x,
                          config->block_y, config->block_z, config->shared_bytes, config->stream,
                          parameters, extra);
}

static gpsh_cu_module module_of(gpsh_cu_function function)
{
    pthread_mutex_lock(&fake.lock);
    gpsh_cu_module found = modules;
    while (found && (function < found->functions || function >= found->functions + MOST_FUNCTIONS))
        found = found->next;
    pthread_mutex_unlock(&fake.lock);
    return found;
}

gpsh_cu_result cuFuncGetModule(gpsh_cu_module *module, gpsh_cu_function function)
{
    ENTER(NEEDS_CONTEXT);
    *module = module_of(function);
    return *module ? 0 : GPSH_CU_INVALID_VALUE;
}

gpsh_cu_result cuModuleGetFunctionCount(unsigned *count, gpsh_cu_module module)
{
    ENTER(NEEDS_CONTEXT);
    for (*count = 0; *count < MOST_FUNCTIONS && module->functions[*count].name[0];)
        ++*count;
    return 0;
}

gpsh_cu_result cuModuleEnumerateFunctions(gpsh_cu_function *functions, unsigned count,
                                          gpsh_cu_module module)
{
    ENTER(NEEDS_CONTEXT);
    for (unsigned i = 0; i < count && i < MOST_FUNCTIONS && module->functions[i].name[0]; i++)
        functions[i] = &module->functions[i];
    return 0;
}

gpsh_cu_result cuFuncLoad(gpsh_cu_function function)
{
    ENTER(NEEDS_CONTEXT);
    return module_of(function) ? 0 : GPSH_CU_INVALID_VALUE;
}

gpsh_cu_result cuFuncGetAttribute(int *value, int attribute, gpsh_cu_function function)
{
    ENTER(NEEDS_CONTEXT);
    if (!function || attribute != GPSH_CU_FUNCTION_PTX_VERSION)
        return GPSH_CU_INVALID_VALUE;
    *value = 90;
    return 0;
}

void fake_kernel_report(int *leaks)
{
    for (const struct gpsh_cu_module_opaque *module = modules; module; module = module->next)
        fake_leak(leaks, "a module with %s", module->functions[0].name);
}
