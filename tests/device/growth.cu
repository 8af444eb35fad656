// SPDX-License-Identifier: BSD-3-Clause
// A kernel that runs while the heap grows goes on, with the handle that it has; a block that its
// program gets meanwhile is good for every call of it, and the end of the heap is where it is now.
// `growth idle`: the heap grows before the kernel starts.
#include "../gpu/vmm_memory.h"
#include "kernel_check.cuh"

enum { THREADS = 4, WORDS = 64 };

// beat: counts in the old part of the heap until `block` is announced: then it serves that, too.
__global__ void work(struct gpushmem_dev dev, uint64_t *beat, uint64_t *block, int *errors)
{
    int next = (dev.my_pe + 1) % dev.n_pes;
    uint64_t mine = threadIdx.x, beats = 0, *grown;
    while (!(grown = (uint64_t *)gpushmem_dev_uint64_atomic_fetch(dev, block, dev.my_pe)))
        gpushmem_dev_uint64_p(dev, &beat[mine], ++beats, next);
    gpushmem_dev_quiet(dev);
    uint64_t values[3] = {mine + 1, mine + 2, mine + 3}, back[3] = {};
    uint64_t *to = grown + 8 * mine;
    gpushmem_dev_uint64_put(dev, to, values, 3, next);
    gpushmem_dev_uint64_put_signal(dev, to + 3, values, 2, &beat[WORDS / 2 + mine], 1,
                                   GPUSHMEM_SIGNAL_ADD, next);
    gpushmem_dev_uint64_atomic_add(dev, &grown[WORDS - 1], mine + 1, next);
    gpushmem_dev_quiet(dev);
    gpushmem_dev_uint64_get(dev, back, to, 3, next);
    EXPECT(errors, back[0] == mine + 1 && back[2] == mine + 3);
    EXPECT(errors, gpushmem_dev_uint64_g(dev, &to[4], next) == mine + 2);
    gpushmem_dev_uint64_wait_until(dev, &beat[WORDS / 2 + mine], GPUSHMEM_CMP_EQ, 1);
}

__global__ void stray(struct gpushmem_dev dev, uint64_t *end)
{
    gpushmem_dev_uint64_p(dev, end, 1, (dev.my_pe + 1) % dev.n_pes);
    gpushmem_dev_quiet(dev);
}

// A buffer of the program: at the same time plain memory of the host, which each PE has elsewhere.
__global__ void reach(struct gpushmem_dev dev, uint64_t *buffer, int *errors)
{
    int next = (dev.my_pe + 1) % dev.n_pes;
    uint64_t mine = threadIdx.x, values[2] = {mine + 1, mine + 2};
    gpushmem_dev_uint64_put_signal(dev, buffer + 2 * mine, values, 2, &buffer[WORDS + mine], 1,
                                   GPUSHMEM_SIGNAL_ADD, next);
    gpushmem_dev_uint64_atomic_add(dev, &buffer[2 * WORDS], mine + 1, next);
    gpushmem_dev_uint64_wait_until(dev, &buffer[WORDS + mine], GPUSHMEM_CMP_EQ, 1);
    EXPECT(errors, buffer[2 * mine + 1] == mine + 2);
    gpushmem_dev_quiet(dev);
    EXPECT(errors, gpushmem_dev_uint64_g(dev, &buffer[2 * mine], next) == mine + 1);
}

static void test_buffer(struct gpushmem_dev dev, int *errors)
{
    enum { PAGE = 4096 };
    uint64_t *buffer = (uint64_t *)aligned_alloc(PAGE, PAGE);
    memset(buffer, 0, PAGE);
    uint64_t *symmetric = (uint64_t *)gpushmem_buffer_register_symmetric(buffer, PAGE);
    CHECK(symmetric);
    CHECK_OK(GPUSHMEM_LAUNCH(reach, 1, THREADS, NULL, dev, symmetric, errors));
    CHECK_OK(gpushmem_launch_wait(NULL));
    CHECK_OK(gpushmem_barrier_all());
    CHECK(buffer[2 * WORDS] == THREADS * (THREADS + 1) / 2 && buffer[3] == 3);
    CHECK_OK(gpushmem_buffer_unregister_symmetric(buffer));
    CHECK(buffer[2 * WORDS] == THREADS * (THREADS + 1) / 2);
    free(buffer);
}

// The program's memory on the GPU.
static void test_gpu_buffer(struct gpushmem_dev dev, int *errors)
{
    enum { BYTES = 2 << 20 };
    uint64_t seen[3 * WORDS] = {};
    vmm_load();
    char *buffer = vmm_new(BYTES, 1);
    vmm_copy(buffer, seen, sizeof seen);
    uint64_t *symmetric = (uint64_t *)gpushmem_buffer_register_symmetric(buffer, BYTES);
    CHECK(symmetric);
    CHECK_OK(GPUSHMEM_LAUNCH(reach, 1, THREADS, NULL, dev, symmetric, errors));
    CHECK_OK(gpushmem_launch_wait(NULL));
    CHECK_OK(gpushmem_barrier_all());
    vmm_copy(seen, buffer, sizeof seen);
    CHECK(seen[2 * WORDS] == THREADS * (THREADS + 1) / 2 && seen[3] == 3);
    CHECK_OK(gpushmem_buffer_unregister_symmetric(buffer));
    vmm_delete(buffer, BYTES);
}

// A block that does not fit, whose address kernels find in `block`.
static uint64_t *grow(uint64_t *block)
{
    struct gpushmem_heap_info before, after;
    CHECK_OK(gpushmem_heap_info(&before));
    uint64_t *grown = (uint64_t *)gpushmem_calloc(1, before.bytes + 4096);
    CHECK_OK(gpushmem_heap_info(&after));
    CHECK(grown && after.bytes > before.bytes);
    if (!grown)
        gpushmem_global_exit(1); // the kernel waits for it
    CHECK_OK(gpushmem_uint64_p(block, (uint64_t)grown, gpushmem_my_pe()));
    return grown;
}

int main(int argc, char **argv)
{
    bool idle = argc > 1 && !strcmp(argv[1], "idle");
    struct gpushmem_dev dev;
    struct gpushmem_heap_info info;
    check_begin();
    uint64_t *words = (uint64_t *)gpushmem_calloc(WORDS, 8),
             *block = (uint64_t *)gpushmem_calloc(1, 8);
    int *errors = check_errors_begin();
    CHECK_OK(gpushmem_device_handle(&dev));
    uint64_t *grown = idle ? grow(block) : NULL;
    CHECK_OK(GPUSHMEM_LAUNCH(work, 1, THREADS, NULL, dev, words, block, errors));
    if (!idle) {
        CHECK_OK(gpushmem_uint64_wait_until(&words[0], GPUSHMEM_CMP_GT, 0)); // it is under way
        grown = grow(block);
    }
    CHECK_OK(gpushmem_launch_wait(NULL));
    CHECK_OK(gpushmem_barrier_all());
    CHECK(check_read(&grown[WORDS - 1]) == THREADS * (THREADS + 1) / 2 &&
          check_read(&grown[9]) == 3);
    CHECK_OK(gpushmem_heap_info(&info));
    if (!strcmp(info.kind, "host")) // else no kernel can name it
        test_buffer(dev, errors);
    else
        test_gpu_buffer(dev, errors);
#ifndef __CUDACC__ // there it takes GPUSHMEM_DEVICE_CHECKS
    // beyond the limit; where the heap may grow to; the library's words after the first piece
    char *const strays[] = {(char *)words + (1 << 30), dev.heap + (176 << 20), (char *)dev.sync};
    for (int i = 0; i < 3; i++) {
        GPUSHMEM_LAUNCH(stray, 1, 1, NULL, dev, (uint64_t *)strays[i]);
        CHECK(gpushmem_launch_wait(NULL) == GPUSHMEM_ERR_ADDRESS);
    }
#endif
    CHECK_OK(gpushmem_barrier_all());
    check_errors_end(__FILE__, errors);
    gpushmem_free(grown);
    gpushmem_free(block);
    gpushmem_free(words);
    return check_end("growth");
}
