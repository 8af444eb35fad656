// SPDX-License-Identifier: BSD-3-Clause
// Which calls of the driver an operation of a stream becomes. The driver is a table of functions,
// filled here with ones that keep a journal; the peers are: 0 this PE, 1 mapped, 2 behind a ring.
#include <criterion/criterion.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "gpu/gpu.h"
#include "gpushmem/gpushmem.h"
#include "gpushmem/impl/launch_host.h"
#include "job/job.h"
#include "memory/heap.h"
#include "proxy/device_side.h"
#include "stream/stream_gpu.h"

// In the place of the library's, which may have been built without kernels.
const void *const gpsh_stream_image = "image";

enum { HEAP = 8 << 20, LARGE = 1 << 20, MIDDLE = 100000, SMALL = 64 << 10 };

static char heap[HEAP], mapped[HEAP];
static char journal[4096];
static struct gpushmem_stream_op launched; // the last kernel's argument
static int is_capturing, pageable, driver_version, code_version;
static gpsh_cu_result load_result, copy_result;
static const gpushmem_stream_t stream = (gpushmem_stream_t)0x5000;

__attribute__((format(printf, 1, 2))) static void note(const char *format, ...)
{
    size_t length = strlen(journal);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(journal + length, sizeof journal - length, format, arguments);
    va_end(arguments);
}

// ---- The driver ----

static gpsh_cu_result context_current(gpsh_cu_context *context)
{
    *context = gpsh_gpu.context;
    return 0;
}

static gpsh_cu_result pointer_attribute(void *value, int attribute, gpsh_cu_ptr pointer)
{
    return pageable ? GPSH_CU_INVALID_VALUE : 0;
}

static gpsh_cu_result get_driver_version(int *version)
{
    *version = driver_version;
    return 0;
}

static gpsh_cu_result function_attribute(int *value, int attribute, gpsh_cu_function function)
{
    cr_assert(attribute == GPSH_CU_FUNCTION_PTX_VERSION && function);
    *value = code_version;
    return 0;
}

static gpsh_cu_result stream_capturing(gpsh_cu_stream which, int *status)
{
    *status = is_capturing;
    return 0;
}

static int mode; // of captures, in this thread

static gpsh_cu_result capture_mode(int *exchange)
{
    int before = mode;
    mode = *exchange;
    *exchange = before;
    return 0;
}

static gpsh_cu_result module_load(gpsh_cu_module *module, const void *image)
{
    cr_assert_str_eq(image, "image");
    cr_expect_eq(mode, GPSH_CU_CAPTURE_MODE_RELAXED);
    *module = (gpsh_cu_module)0x100;
    note("load; ");
    return load_result;
}

static gpsh_cu_result module_unload(gpsh_cu_module module)
{
    note("unload; ");
    return 0;
}

static gpsh_cu_result module_function(gpsh_cu_function *function, gpsh_cu_module module,
                                      const char *name)
{
    *function = (gpsh_cu_function)(uintptr_t)name;
    return 0;
}

static gpsh_cu_result stream_create(gpsh_cu_stream *out, unsigned flags)
{
    *out = (gpsh_cu_stream)0x6000;
    return 0;
}

static gpsh_cu_result stream_sync(gpsh_cu_stream which)
{
    note("sync; ");
    return 0;
}

static gpsh_cu_result stream_destroy(gpsh_cu_stream which)
{
    return 0;
}

static gpsh_cu_result launch(gpsh_cu_function function, unsigned grid_x, unsigned grid_y,
                             unsigned grid_z, unsigned block_x, unsigned block_y, unsigned block_z,
                             unsigned shared_bytes, gpsh_cu_stream where, void **parameters,
                             void **extra)
{
    const struct gpushmem_dev *dev = parameters[0];
    memcpy(&launched, parameters[1], sizeof launched);
    cr_assert(grid_y == 1 && grid_z == 1 && block_y == 1 && block_z == 1 && !shared_bytes &&
              !extra);
    if (where == stream) {
        cr_assert_eq(dev->abi, GPUSHMEM_DEVICE_ABI);
        note(grid_x > 1 ? "%s x %u x %u; " : "%s x %u; ", (const char *)function, block_x, grid_x);
    } else {
        cr_assert_eq(launched.kind, 0); // nothing to do
        note("+");
    }
    return 0;
}

static gpsh_cu_result launch_with(const struct gpsh_cu_launch_config *config,
                                  gpsh_cu_function function, void **parameters, void **extra)
{
    cr_assert(config->n_attributes == 1 && config->attributes->id == GPSH_CU_LAUNCH_EARLY &&
              config->attributes->value.on);
    if (config->stream == stream)
        note("early ");
    return launch(function, config->grid_x, config->grid_y, config->grid_z, config->block_x,
                  config->block_y, config->block_z, config->shared_bytes, config->stream,
                  parameters, extra);
}

static gpsh_cu_result copy_any(gpsh_cu_ptr to, gpsh_cu_ptr from, size_t bytes, gpsh_cu_stream where)
{
    const char *t = (const char *)(uintptr_t)to, *f = (const char *)(uintptr_t)from;
    cr_assert(where == stream || !where);
    bool put = t >= mapped && t < mapped + HEAP;
    note("%s %zu at %zu; ", put ? "put" : "get", bytes, (size_t)(put ? t - mapped : f - mapped));
    return copy_result;
}

static gpsh_cu_result stream_write64(gpsh_cu_stream where, gpsh_cu_ptr to, uint64_t value,
                                     unsigned flags)
{
    cr_assert_eq(where, stream);
    note("store %d at %zu; ", (int)value, (size_t)((char *)(uintptr_t)to - mapped));
    return 0;
}

static gpsh_cu_result error_text(gpsh_cu_result code, const char **text)
{
    *text = "CUDA_ERROR_OF_THIS_TEST";
    return 0;
}

// ---- The rest of the library (by the linker's --wrap) ----

static uint32_t flags = GPUSHMEM_DEV_DIRECT_ATOMICS;

int __wrap_gpushmem_device_handle_abi(struct gpushmem_dev *out, uint32_t abi);
int __wrap_gpushmem_device_handle_abi(struct gpushmem_dev *out, uint32_t abi)
{
    note("handle; ");
    *out = (struct gpushmem_dev){.abi = GPUSHMEM_DEVICE_ABI, .flags = flags, .n_pes = 3};
    return 0;
}

char *__wrap_gpsh_device_side_direct(int pe);
char *__wrap_gpsh_device_side_direct(int pe)
{
    return pe == 1 ? mapped : pe == 0 ? heap : NULL;
}

static struct gpsh_peer peers[3];
static char *no_addresses[3];

static void set_up(void)
{
    gpsh_cu = (struct gpsh_cu_functions){
        .context_current = context_current,
        .pointer_attribute = pointer_attribute,
        .stream_capturing = stream_capturing,
        .capture_mode = capture_mode,
        .module_load = module_load,
        .module_unload = module_unload,
        .module_function = module_function,
        .stream_create = stream_create,
        .stream_sync = stream_sync,
        .stream_destroy = stream_destroy,
        .launch = launch,
        .driver_version = get_driver_version,
        .copy_any = copy_any,
        .stream_write64 = stream_write64,
        .error_name = error_text,
        .error_string = error_text,
    };
    gpsh_gpu.context = (gpsh_cu_context)0x300;
    gpsh_job_state.n_pes = 3;
    gpsh_heap_state.base = heap;
    gpsh_heap_state.user_bytes = gpsh_heap_state.first_bytes = HEAP;
    gpsh_heap_state.bytes = HEAP;
    gpsh_heap_state.direct = no_addresses;
    gpsh_job_state.peers = peers;
    gpsh_heap_state.device = true;
    gpsh_settings_state.stream_kernel_bytes = SMALL;
    gpsh_settings_state.stream_copy_bytes = LARGE;
    gpsh_settings_state.stream_early = true;
}

static void tear_down(void)
{
    gpsh_stream_gpu_unload();
}

TestSuite(stream_gpu, .init = set_up, .fini = tear_down);

// The journal since the last look is `expected`.
#define HAPPENED(expected)                                                                         \
    do {                                                                                           \
        cr_expect_str_eq(journal, expected);                                                       \
        journal[0] = 0;                                                                            \
    } while (0)

// The first operation loads everything; the cases below look at what comes after.
static void make_ready(void)
{
    cr_assert_eq(gpushmem_sync_all_on_stream(stream), 0);
    journal[0] = 0;
}

Test(stream_gpu, first_operation__any__loads_all_kernels_in_relaxed_capture_mode)
{
    cr_assert_eq(gpushmem_sync_all_on_stream(stream), 0);
    HAPPENED("handle; load; +++++++++++sync; gpsh_stream_sync x 1; ");
    cr_expect_eq(mode, 0);
    cr_assert_eq(gpushmem_barrier_all_on_stream(stream), 0);
    HAPPENED("gpsh_stream_barrier x 1; ");
}

static void program_begins(void)
{
    note("program; ");
}

// Behind an operation the driver could wait for kernels that wait for the proxies.
Test(stream_gpu, first_operation__program_has_a_cuda_runtime__begins_once_and_before)
{
    struct gpushmem_cuda_runtime stays = {program_begins, NULL, NULL};
    struct gpushmem_cuda_runtime gone = {program_begins, NULL, NULL};
    gpushmem_cuda_runtime_add(&stays);
    gpushmem_cuda_runtime_add(&gone);
    gpushmem_cuda_runtime_remove(&gone);
    cr_assert_eq(gpushmem_sync_all_on_stream(stream), 0);
    HAPPENED("handle; load; +++++++++++sync; program; gpsh_stream_sync x 1; ");
    gpsh_stream_gpu_unload();
    cr_assert_eq(gpushmem_sync_all_on_stream(stream), 0);
    cr_expect(!strstr(journal, "program"));
    gpushmem_cuda_runtime_remove(&stays);
}

static struct gpushmem_cuda_runtime loaded = {program_begins, NULL, NULL};

static void program_loads_another(void)
{
    note("loads; ");
    gpushmem_cuda_runtime_add(&loaded);
}

// As a thread does that loads a library with kernels meanwhile: neither waits for the other.
Test(stream_gpu, first_operation__a_runtime_is_added_while_one_begins__both_begin)
{
    struct gpushmem_cuda_runtime first = {program_loads_another, NULL, NULL};
    gpushmem_cuda_runtime_add(&first);
    cr_assert_eq(gpushmem_sync_all_on_stream(stream), 0);
    HAPPENED("handle; load; +++++++++++sync; loads; program; gpsh_stream_sync x 1; ");
    gpushmem_cuda_runtime_remove(&loaded);
    gpushmem_cuda_runtime_remove(&first);
}

Test(stream_gpu, single_and_strided__any_peer__one_kernel_of_one_block)
{
    make_ready();
    cr_assert_eq(gpushmem_uint16_p_on_stream((uint16_t *)(void *)heap, 0xabcd, 1, stream), 0);
    cr_expect(launched.value == 0xabcd && launched.bytes == 2);
    cr_assert_eq(gpushmem_iput64_on_stream(heap, heap, 3, 2, MIDDLE / 8, 1, stream), 0);
    cr_expect(launched.dest_stride == 3 && launched.source_stride == 2 && launched.size == 8);
    cr_assert_eq(gpushmem_iget64_on_stream(heap, heap, 1, 1, 4, 2, stream), 0);
    HAPPENED("gpsh_stream_p x 1; gpsh_stream_iput x 1024; gpsh_stream_iget x 32; ");
    cr_assert_eq(gpushmem_int_g_on_stream((int *)(void *)heap, (int *)(void *)heap, 1, stream), 0);
    HAPPENED("get 4 at 0; ");
}

Test(stream_gpu, first_operation__module_is_refused__fails_and_is_tried_again)
{
    load_result = 209;
    cr_assert_eq(gpushmem_sync_all_on_stream(stream), GPUSHMEM_ERR_CUDA);
    cr_expect(strstr(gpushmem_last_error(), "kernels of stream operations"));
    load_result = 0;
    cr_assert_eq(gpushmem_sync_all_on_stream(stream), 0);
    cr_expect(strstr(journal, "load; unload; "));
}

// Launched ahead of its time, a kernel without the instruction that waits would overtake the one
// before it.
Test(stream_gpu, kernels__driver_and_code_know_how__launched_early)
{
    static const struct {
        int driver, code;
        bool in_driver, wanted, early;
    } rows[] = {{12030, 90, true, true, true},   {13000, 100, true, true, true},
                {12020, 90, true, true, false},  {13000, 75, true, true, false},
                {13000, 90, false, true, false}, {13000, 90, true, false, false}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        gpsh_settings_state.stream_early = rows[i].wanted;
        driver_version = rows[i].driver;
        code_version = rows[i].code;
        gpsh_cu.launch_with = rows[i].in_driver ? launch_with : NULL;
        gpsh_cu.function_attribute = function_attribute;
        make_ready();
        cr_assert_eq(gpushmem_barrier_all_on_stream(stream), 0);
        HAPPENED(rows[i].early ? "early gpsh_stream_barrier x 1; " : "gpsh_stream_barrier x 1; ");
        gpsh_stream_gpu_unload();
    }
}

// Behind a wait they would hold their multiprocessors for as long as that lasts, and what it waits
// for may need them.
Test(stream_gpu, kernels__of_several_blocks__never_launched_early)
{
    uint64_t *word = (uint64_t *)(void *)heap;
    driver_version = 12030;
    code_version = 90;
    gpsh_cu.launch_with = launch_with;
    gpsh_cu.function_attribute = function_attribute;
    make_ready();
    cr_assert_eq(gpushmem_signal_wait_until_on_stream(word, GPUSHMEM_CMP_EQ, 1, stream), 0);
    cr_assert_eq(gpushmem_putmem_signal_on_stream(heap, heap, MIDDLE, word, 3, GPUSHMEM_SIGNAL_SET,
                                                  1, stream),
                 0);
    cr_assert_eq(gpushmem_getmem_on_stream(heap, heap, MIDDLE, 1, stream), 0);
    HAPPENED("early gpsh_stream_wait x 1; gpsh_stream_put x 1024 x 7; early gpsh_stream_signal x "
             "1; gpsh_stream_get x 1024 x 7; ");
}

Test(stream_gpu, put_and_get__mapped_peer__copy_engine_but_for_middle_sizes)
{
    make_ready();
    cr_assert_eq(gpushmem_putmem_on_stream(heap + 100, heap, 8, 1, stream), 0);
    cr_assert_eq(gpushmem_putmem_on_stream(heap + 100, heap, SMALL, 1, stream), 0);
    cr_assert_eq(gpushmem_putmem_on_stream(heap + 100, heap, SMALL + 1, 1, stream), 0);
    cr_assert_eq(gpushmem_getmem_on_stream(heap, heap + 200, LARGE - 1, 1, stream), 0);
    cr_assert_eq(gpushmem_getmem_on_stream(heap, heap + 200, LARGE, 1, stream), 0);
    HAPPENED("put 8 at 100; put 65536 at 100; gpsh_stream_put x 1024 x 5; gpsh_stream_get x 1024 x "
             "32; get 1048576 at 200; ");
}

Test(stream_gpu, put_and_get__captured__kernels_up_to_large_sizes)
{
    make_ready();
    is_capturing = 1;
    cr_assert_eq(gpushmem_putmem_on_stream(heap + 100, heap, 8, 1, stream), 0);
    cr_expect(launched.kind == GPUSHMEM_STREAM_PUT && launched.dest == heap + 100 &&
              launched.source == heap);
    cr_assert_eq(gpushmem_getmem_on_stream(heap, heap + 200, 5000, 1, stream), 0);
    cr_assert_eq(gpushmem_putmem_on_stream(heap, heap, SMALL, 1, stream), 0);
    cr_assert_eq(gpushmem_putmem_on_stream(heap, heap, LARGE, 1, stream), 0);
    HAPPENED("gpsh_stream_put x 32; gpsh_stream_get x 96; gpsh_stream_put x 1024 x 4; put 1048576 "
             "at 0; ");
}

Test(stream_gpu, put__default_stream__never_asked_whether_it_is_captured)
{
    make_ready();
    gpsh_cu.stream_capturing = NULL; // a call would crash
    cr_assert_eq(gpushmem_putmem_on_stream(heap + 100, heap, 8, 1, NULL), 0);
    HAPPENED("put 8 at 100; ");
}

Test(stream_gpu, any__ring_peer__one_warp_of_a_kernel)
{
    uint64_t *word = (uint64_t *)(void *)heap;
    make_ready();
    cr_assert_eq(gpushmem_putmem_on_stream(heap, heap, LARGE, 2, stream), 0);
    cr_assert_eq(gpushmem_getmem_on_stream(heap, heap, 8, 2, stream), 0);
    cr_assert_eq(gpushmem_putmem_signal_on_stream(heap, heap, LARGE, word, 3, GPUSHMEM_SIGNAL_SET,
                                                  2, stream),
                 0);
    cr_assert_eq(gpushmem_signal_op_on_stream(word, 1, GPUSHMEM_SIGNAL_SET, 2, stream), 0);
    HAPPENED("gpsh_stream_put x 32; gpsh_stream_get x 32; gpsh_stream_put_signal x 32; "
             "gpsh_stream_signal x 1; ");
}

Test(stream_gpu, put_signal__mapped_peer__one_kernel_or_data_then_signal)
{
    uint64_t *word = (uint64_t *)(void *)(heap + 64);
    make_ready();
    cr_assert_eq(
        gpushmem_putmem_signal_on_stream(heap, heap, 3000, word, 3, GPUSHMEM_SIGNAL_SET, 1, stream),
        0);
    cr_expect(launched.signal == word && launched.value == 3 &&
              launched.op == GPUSHMEM_SIGNAL_SET && launched.bytes == 3000);
    HAPPENED("gpsh_stream_put_signal x 64; ");
    cr_assert_eq(gpushmem_putmem_signal_on_stream(heap, heap, MIDDLE, word, 3, GPUSHMEM_SIGNAL_SET,
                                                  1, stream),
                 0);
    HAPPENED("gpsh_stream_put x 1024 x 7; gpsh_stream_signal x 1; ");
    cr_assert_eq(gpushmem_putmem_signal_on_stream(heap, heap, LARGE, word, 3, GPUSHMEM_SIGNAL_SET,
                                                  1, stream),
                 0);
    HAPPENED("put 1048576 at 0; store 3 at 64; ");
    cr_assert_eq(gpushmem_putmem_signal_on_stream(heap, heap, LARGE, word, 4, GPUSHMEM_SIGNAL_ADD,
                                                  1, stream),
                 0);
    cr_expect(launched.kind == GPUSHMEM_STREAM_SIGNAL && launched.value == 4 &&
              launched.op == GPUSHMEM_SIGNAL_ADD);
    HAPPENED("put 1048576 at 0; gpsh_stream_signal x 1; ");
    cr_assert_eq(
        gpushmem_putmem_signal_on_stream(NULL, NULL, 0, word, 5, GPUSHMEM_SIGNAL_SET, 1, stream),
        0);
    HAPPENED("store 5 at 64; ");
}

Test(stream_gpu, put_signal__copy_refused__no_signal_follows)
{
    make_ready();
    copy_result = 400;
    cr_assert_eq(gpushmem_putmem_signal_on_stream(heap, heap, LARGE, (uint64_t *)(void *)heap, 3,
                                                  GPUSHMEM_SIGNAL_SET, 1, stream),
                 GPUSHMEM_ERR_CUDA);
    cr_expect(strstr(gpushmem_last_error(), "put_signal towards PE 1"));
    HAPPENED("put 1048576 at 0; ");
}

Test(stream_gpu, signal__captured_or_atomics_elsewhere__kernel)
{
    uint64_t *word = (uint64_t *)(void *)heap;
    make_ready();
    is_capturing = 1;
    cr_assert_eq(gpushmem_signal_op_on_stream(word, 1, GPUSHMEM_SIGNAL_SET, 1, stream), 0);
    HAPPENED("gpsh_stream_signal x 1; ");
    gpsh_stream_gpu_unload();
    is_capturing = 0;
    flags = 0; // a NIC executes atomics, and sends what must be ordered with them
    make_ready();
    cr_assert_eq(gpushmem_signal_op_on_stream(word, 1, GPUSHMEM_SIGNAL_SET, 1, stream), 0);
    HAPPENED("gpsh_stream_signal x 1; ");
}

Test(stream_gpu, quiet__all_mapped__nothing_to_do)
{
    make_ready();
    cr_assert_eq(gpushmem_quiet_on_stream(stream), 0);
    HAPPENED("gpsh_stream_quiet x 1; ");
    gpsh_stream_gpu_unload();
    flags = GPUSHMEM_DEV_ALL_DIRECT | GPUSHMEM_DEV_DIRECT_ATOMICS;
    make_ready();
    cr_assert_eq(gpushmem_quiet_on_stream(stream), 0);
    HAPPENED("");
}

Test(stream_gpu, wait__word_of_own_heap__kernel_of_one_thread)
{
    uint64_t *word = (uint64_t *)(void *)(heap + 8);
    make_ready();
    cr_assert_eq(gpushmem_signal_wait_until_on_stream(word, GPUSHMEM_CMP_GT, 7, stream), 0);
    cr_expect(launched.signal == word && launched.op == GPUSHMEM_CMP_GT && launched.value == 7);
    HAPPENED("gpsh_stream_wait x 1; ");
}

Test(stream_gpu, local_memory__pageable__refused_before_anything)
{
    char local[8];
    make_ready();
    pageable = 1;
    cr_assert_eq(gpushmem_putmem_on_stream(heap, local, 8, 1, stream), GPUSHMEM_ERR_INVALID);
    cr_expect(strstr(gpushmem_last_error(), "gpushmem_putmem_on_stream") &&
              strstr(gpushmem_last_error(), "pageable"));
    cr_assert_eq(gpushmem_getmem_on_stream(local, heap, 8, 2, stream), GPUSHMEM_ERR_INVALID);
    // the heap is not asked about
    cr_assert_eq(gpushmem_putmem_on_stream(heap, heap + 8, 8, 1, stream), 0);
    HAPPENED("put 8 at 0; ");
}
