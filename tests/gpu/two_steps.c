// SPDX-License-Identifier: BSD-3-Clause
// An NVSHMEM program chooses its GPU after nvshmem_init, by its number on the node: until the first
// collective call there is nothing but numbers, and then the heap is on the GPU that it chose. Then
// it loads modules, which get the handle of kernels.
#include <dlfcn.h>
#include <gpushmem/device_host.h>
#include <nvshmem.h>
#include <nvshmemx.h>
#include <stdlib.h>

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "PE %d: line %d: not true: %s\n", nvshmem_my_pe(), __LINE__,           \
                    #condition);                                                                   \
            nvshmem_global_exit(1);                                                                \
        }                                                                                          \
    } while (0)

enum { HEAP = 16 << 20 };

static struct {
    void *library;
    int (*count)(int *devices);
    int (*get)(int *device, int ordinal);
    int (*retain)(void **context, int device);
    int (*set)(void *context);
    int (*current)(void **context);
    int (*room)(size_t *available, size_t *total);
    int (*load)(void **module, const void *image);
    int (*unload)(void *module);
    int (*find)(unsigned long long *variable, size_t *bytes, void *module, const char *name);
    int (*write)(unsigned long long to, const void *from, size_t bytes, void *stream);
    int (*read)(void *to, unsigned long long from, size_t bytes, void *stream);
    int (*synchronize)(void *stream);
} cu;

// What cudaSetDevice does, where there are as few GPUs as one. -1: none.
static void set_device(int ordinal)
{
    void *context = NULL;
    int devices, device;
    CHECK(cu.count(&devices) == 0);
    if (ordinal >= 0)
        CHECK(cu.get(&device, ordinal % devices) == 0 && cu.retain(&context, device) == 0);
    CHECK(cu.set(context) == 0);
}

static void load_driver(void)
{
    cu.library = dlopen("libcuda.so.1", RTLD_NOW);
    int (*init)(unsigned);
    CHECK(cu.library);
    *(void **)&init = dlsym(cu.library, "cuInit");
    *(void **)&cu.count = dlsym(cu.library, "cuDeviceGetCount");
    *(void **)&cu.get = dlsym(cu.library, "cuDeviceGet");
    *(void **)&cu.retain = dlsym(cu.library, "cuDevicePrimaryCtxRetain");
    *(void **)&cu.set = dlsym(cu.library, "cuCtxSetCurrent");
    *(void **)&cu.current = dlsym(cu.library, "cuCtxGetCurrent");
    *(void **)&cu.room = dlsym(cu.library, "cuMemGetInfo_v2");
    *(void **)&cu.load = dlsym(cu.library, "cuModuleLoadData");
    *(void **)&cu.unload = dlsym(cu.library, "cuModuleUnload");
    *(void **)&cu.find = dlsym(cu.library, "cuModuleGetGlobal_v2");
    *(void **)&cu.write = dlsym(cu.library, "cuMemcpyHtoDAsync_v2");
    *(void **)&cu.read = dlsym(cu.library, "cuMemcpyDtoHAsync_v2");
    *(void **)&cu.synchronize = dlsym(cu.library, "cuStreamSynchronize");
    CHECK(init(0) == 0);
}

static size_t room(void)
{
    size_t available, total;
    CHECK(cu.room(&available, &total) == 0);
    return available;
}

static void use(int me, int n)
{
    uint64_t *word = nvshmem_malloc(sizeof *word);
    CHECK(word && nvshmemx_init_status() == NVSHMEM_STATUS_IS_INITIALIZED);
    CHECK(nvshmem_my_pe() == me && nvshmem_n_pes() == n);
    nvshmem_uint64_p(word, 7, (me + 1) % n);
    nvshmem_barrier_all();
    CHECK(nvshmem_uint64_g(word, me) == 7);
    nvshmem_barrier_all();
    nvshmem_free(word);
}

// Of modules: the variables that the library looks for, as the device side defines them.
#define PTX     ".version 8.0\n.target sm_75\n.address_size 64\n"
#define STATE   ".visible .const .align 8 .b8 nvshmemi_device_state_d[264];\n"
#define VERSION ".visible .const .align 8 .b8 nvshmemi_device_lib_version_d[8];\n"

static void write_version(void *module, uint32_t abi)
{
    const uint32_t version[2] = {abi, sizeof(struct gpushmem_dev)};
    unsigned long long variable;
    size_t bytes;
    CHECK(cu.find(&variable, &bytes, module, "nvshmemi_device_lib_version_d") == 0);
    CHECK(cu.write(variable, version, bytes, NULL) == 0 && cu.synchronize(NULL) == 0);
}

static int has_handle(void *module, int me)
{
    struct gpushmem_dev dev;
    unsigned long long variable;
    size_t bytes;
    CHECK(cu.find(&variable, &bytes, module, "nvshmemi_device_state_d") == 0);
    CHECK(cu.read(&dev, variable, sizeof dev, NULL) == 0 && cu.synchronize(NULL) == 0);
    return dev.abi == GPUSHMEM_DEVICE_ABI && dev.my_pe == me && dev.heap;
}

static void modules(int me)
{
    void *module;
    CHECK(cu.load(&module, PTX STATE VERSION) == 0);
    write_version(module, GPUSHMEM_DEVICE_ABI + 1);
    CHECK(nvshmemx_cumodule_init(module) == NVSHMEMX_ERROR_NOT_SUPPORTED);
    CHECK(!has_handle(module, me));
    write_version(module, GPUSHMEM_DEVICE_ABI);
    CHECK(nvshmemx_cumodule_init(module) == 0 && has_handle(module, me));
    CHECK(nvshmemx_cumodule_finalize(module) == 0 && cu.unload(module) == 0);
    CHECK(cu.load(&module, PTX STATE) == 0);
    if (getenv("FAKE_CUDA_DEVICES")) // whose libraries are modules
        CHECK(nvshmemx_culibrary_init(module) == 0 && has_handle(module, me) &&
              nvshmemx_culibrary_finalize(module) == 0);
    CHECK(cu.unload(module) == 0);
    CHECK(cu.load(&module, PTX VERSION) == 0);
    CHECK(nvshmemx_cumodule_init(module) == NVSHMEMX_ERROR_INVALID_VALUE);
    CHECK(cu.unload(module) == 0);
    CHECK(cu.load(&module, PTX ".visible .global .b8 nvshmemi_device_state_d[64];\n") == 0);
    CHECK(nvshmemx_cumodule_init(module) == NVSHMEMX_ERROR_NOT_SUPPORTED);
    CHECK(cu.unload(module) == 0);
}

int main(void)
{
    void *context;
    load_driver();
    // the program chooses, the other way round than the library would
    nvshmem_init();
    int me = nvshmem_my_pe(), n = nvshmem_n_pes();
    CHECK(nvshmemx_init_status() == NVSHMEM_STATUS_IS_BOOTSTRAPPED && n == 2);
    CHECK(nvshmem_team_my_pe(NVSHMEMX_TEAM_NODE) == me);
    CHECK(nvshmem_team_n_pes(NVSHMEMX_TEAM_NODE) == n && nvshmem_team_n_pes(7) == -1);
    CHECK(cu.current(&context) == 0 && !context);
    set_device(1 - me);
    size_t before = room();
    use(me, n);
    CHECK(room() + HEAP <= before);
    modules(me);
    nvshmem_finalize();
    if (getenv("FAKE_CUDA_DEVICES")) // a real driver keeps what modules and streams took
        CHECK(room() + HEAP > before);
    // it chooses before: nothing is left for later
    set_device(me);
    nvshmem_init();
    CHECK(nvshmemx_init_status() == NVSHMEM_STATUS_IS_INITIALIZED);
    use(me, n);
    nvshmem_finalize();
    // it never chooses, and begins with a barrier; or uses nothing at all
    set_device(-1);
    for (int with_barrier = 1; with_barrier >= 0; with_barrier--) {
        nvshmem_init();
        CHECK(nvshmemx_init_status() == NVSHMEM_STATUS_IS_BOOTSTRAPPED);
        if (with_barrier)
            nvshmem_barrier_all();
        CHECK(!with_barrier || nvshmemx_init_status() == NVSHMEM_STATUS_IS_INITIALIZED);
        nvshmem_finalize();
        CHECK(nvshmemx_init_status() == NVSHMEM_STATUS_NOT_INITIALIZED);
        set_device(-1);
    }
    puts("two_steps: ok");
    return 0;
}
