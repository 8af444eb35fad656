// SPDX-License-Identifier: BSD-3-Clause
// A C program over the CUDA driver API alone: it loads a kernel from each image (cubin, fatbin,
// PTX), passes it the handle by value, and enqueues operations in a stream of its own. usage:
// gpu_cubin IMAGE...
#include <cuda.h>
#include <gpushmem/device_host.h>
#include <gpushmem/gpushmem.h>
#include <stdio.h>
#include <stdlib.h>

enum { THREADS = 64, ROUNDS = 10 };

static uint64_t *inbox, *outbox, *flag; // symmetric
static uint64_t round_number;

static void check_cuda(CUresult code, const char *what)
{
    const char *name = "?";
    if (!code)
        return;
    cuGetErrorName(code, &name);
    fprintf(stderr, "gpu_cubin: PE %d: %s: %s\n", gpushmem_my_pe(), what, name);
    exit(1);
}

static void check(int status, const char *what)
{
    if (!status)
        return;
    fprintf(stderr, "gpu_cubin: PE %d: %s: %s\n", gpushmem_my_pe(), what, gpushmem_last_error());
    exit(1);
}

#define CUDA(call)  check_cuda((call), #call)
#define CHECK(call) check((call), #call)

static char *read_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (!file || fseek(file, 0, SEEK_END)) {
        perror(path);
        exit(1);
    }
    size_t bytes = (size_t)ftell(file);
    char *image = calloc(1, bytes + 1); // PTX ends with a zero
    rewind(file);
    if (fread(image, 1, bytes, file) != bytes)
        exit(1);
    fclose(file);
    return image;
}

static void one_round(CUfunction kernel, CUstream stream, struct gpushmem_dev *dev)
{
    int me = gpushmem_my_pe(), n = gpushmem_n_pes();
    uint64_t sent[THREADS], got[THREADS];
    round_number++;
    for (int i = 0; i < THREADS; i++)
        sent[i] = round_number * 1000 + (uint64_t)(me * 100 + i);
    CHECK(gpushmem_putmem(outbox, sent, sizeof sent, me));
    CHECK(gpushmem_quiet());
    void *parameters[] = {dev, &inbox, &outbox, &flag, &round_number};
    CUDA(cuLaunchKernel(kernel, 1, 1, 1, THREADS, 1, 1, 0, stream, parameters, NULL));
    CHECK(gpushmem_barrier_all_on_stream(stream));
    CUDA(cuStreamSynchronize(stream));
    CHECK(gpushmem_device_error());
    CHECK(gpushmem_getmem(got, inbox, sizeof got, me));
    for (int i = 0; i < THREADS; i++) {
        uint64_t expected = round_number * 1000 + (uint64_t)((me + n - 1) % n * 100 + i);
        if (got[i] != expected) {
            fprintf(stderr, "gpu_cubin: PE %d, round %d, word %d: %d instead of %d\n", me,
                    (int)round_number, i, (int)got[i], (int)expected);
            exit(1);
        }
    }
    CHECK(gpushmem_barrier_all());
}

static void try_image(const char *path, struct gpushmem_dev *dev)
{
    CUmodule module;
    CUfunction kernel;
    CUstream stream;
    char *image = read_file(path);
    CUDA(cuModuleLoadData(&module, image));
    CUDA(cuModuleGetFunction(&kernel, module, "pass_on"));
    CUDA(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    for (int i = 0; i < ROUNDS; i++)
        one_round(kernel, stream, dev);
    CUDA(cuStreamDestroy(stream));
    CUDA(cuModuleUnload(module));
    free(image);
}

int main(int argc, char **argv)
{
    struct gpushmem_dev dev;
    CHECK(gpushmem_init()); // makes a GPU's context the current one
    inbox = gpushmem_calloc(THREADS, sizeof *inbox);
    outbox = gpushmem_calloc(THREADS, sizeof *outbox);
    flag = gpushmem_calloc(1, sizeof *flag);
    CHECK(gpushmem_device_handle(&dev));
    for (int i = 1; i < argc; i++)
        try_image(argv[i], &dev);
    gpushmem_free(flag);
    gpushmem_free(outbox);
    gpushmem_free(inbox);
    CHECK(gpushmem_finalize());
    return argc < 2;
}
