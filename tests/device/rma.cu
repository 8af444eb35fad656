// SPDX-License-Identifier: BSD-3-Clause
// Put, get, p, g, iput, iget in every type and scope, all sizes and alignments, to oneself and to
// the right neighbour.
#include "kernel_check.cuh"

enum { N = 300, PAD = 16 };

// Every bit pattern is legal for the moved types: elements are compared as bytes.
__device__ static unsigned char pattern(size_t byte, int pe, int round)
{
    return (unsigned char)(byte * 7 + (size_t)pe * 31 + (size_t)round * 101 + 1);
}

__device__ static void fill(void *memory, size_t bytes, int pe, int round)
{
    for (size_t i = 0; i < bytes; i++)
        ((unsigned char *)memory)[i] = pattern(i, pe, round);
}

__device__ static int differs(const void *memory, size_t bytes, int pe, int round)
{
    for (size_t i = 0; i < bytes; i++)
        if (((const unsigned char *)memory)[i] != pattern(i, pe, round))
            return 1;
    return 0;
}

// Puts N elements right, gets them back, with the threads of one scope.
#define MOVE(SUFFIX, NAME, TYPE, ROUND)                                                            \
    if (first)                                                                                     \
        fill(source, N * sizeof(TYPE), me, ROUND);                                                 \
    gpushmem_dev_##NAME##_put##SUFFIX((TYPE *)target, (const TYPE *)source, N, right);             \
    gpushmem_dev_quiet();                                                                          \
    gpushmem_dev_##NAME##_get##SUFFIX((TYPE *)back, (const TYPE *)target, N, right);               \
    if (first)                                                                                     \
        EXPECT(errors, !differs(back, N * sizeof(TYPE), me, ROUND));                               \
    if (first)                                                                                     \
        fill(source, N * sizeof(TYPE), me, ROUND + 1);                                             \
    gpushmem_dev_##NAME##_put_nbi##SUFFIX((TYPE *)target, (const TYPE *)source, N, right);         \
    gpushmem_dev_quiet();                                                                          \
    gpushmem_dev_##NAME##_get_nbi##SUFFIX((TYPE *)back, (const TYPE *)target, N, right);           \
    gpushmem_dev_quiet();                                                                          \
    __syncthreads();                                                                               \
    if (first)                                                                                     \
        EXPECT(errors, !differs(back, N * sizeof(TYPE), me, ROUND + 1));                           \
    __syncthreads();

#define DEFINE_MOVES(NAME, TYPE)                                                                   \
    __global__ void move_##NAME(char *source, char *target, char *back, int *errors)               \
    {                                                                                              \
        int me = gpushmem_dev_my_pe(), right = (me + 1) % gpushmem_dev_n_pes();                    \
        bool first = threadIdx.x == 0;                                                             \
        if (first) {                                                                               \
            TYPE value, seen;                                                                      \
            fill(&value, sizeof value, me, 3);                                                     \
            gpushmem_dev_##NAME##_p((TYPE *)target, value, right);                                 \
            gpushmem_dev_quiet();                                                                  \
            seen = gpushmem_dev_##NAME##_g((const TYPE *)target, right);                           \
            EXPECT(errors, !differs(&seen, sizeof seen, me, 3));                                   \
        }                                                                                          \
        __syncthreads();                                                                           \
        if (first) {                                                                               \
            MOVE_ALONE(NAME, TYPE, 10)                                                             \
        }                                                                                          \
        __syncthreads();                                                                           \
        if (threadIdx.x < 32) {                                                                    \
            MOVE_WARP(NAME, TYPE, 20)                                                              \
        }                                                                                          \
        __syncthreads();                                                                           \
        MOVE(_block, NAME, TYPE, 30)                                                               \
    }
#define MOVE_ALONE(NAME, TYPE, ROUND)                                                              \
    fill(source, N * sizeof(TYPE), me, ROUND);                                                     \
    gpushmem_dev_##NAME##_put((TYPE *)target, (const TYPE *)source, N, right);                     \
    fill(source, N * sizeof(TYPE), me, 99); /* blocking: the source may be reused */               \
    gpushmem_dev_quiet();                                                                          \
    gpushmem_dev_##NAME##_get((TYPE *)back, (const TYPE *)target, N, right);                       \
    EXPECT(errors, !differs(back, N * sizeof(TYPE), me, ROUND));                                   \
    fill(source, 3 * N * sizeof(TYPE), me, ROUND + 1);                                             \
    gpushmem_dev_##NAME##_iput((TYPE *)target, (const TYPE *)source, 2, 3, N, right);              \
    gpushmem_dev_quiet();                                                                          \
    fill(back, N * sizeof(TYPE), me, 98);                                                          \
    gpushmem_dev_##NAME##_iget((TYPE *)back, (const TYPE *)target, 1, 2, N, right);                \
    for (int i = 0; i < N; i++)                                                                    \
        for (size_t b = 0; b < sizeof(TYPE); b++)                                                  \
            EXPECT(errors, (unsigned char)back[i * sizeof(TYPE) + b] ==                            \
                               pattern(3 * i * sizeof(TYPE) + b, me, ROUND + 1));
#define MOVE_WARP(NAME, TYPE, ROUND)                                                               \
    if (first)                                                                                     \
        fill(source, N * sizeof(TYPE), me, ROUND);                                                 \
    gpushmem_dev_##NAME##_put_nbi_warp((TYPE *)target, (const TYPE *)source, N, right);            \
    gpushmem_dev_quiet();                                                                          \
    gpushmem_dev_##NAME##_get_warp((TYPE *)back, (const TYPE *)target, N, right);                  \
    if (first)                                                                                     \
        EXPECT(errors, !differs(back, N * sizeof(TYPE), me, ROUND));                               \
    __syncwarp();
GPUSHMEM_RMA_TYPES(DEFINE_MOVES)

// Bytes: every length up to 70 and every misalignment of both sides; nothing beside the target
// changes.
__global__ void move_bytes(char *source, char *target, char *back, int *errors)
{
    int me = gpushmem_dev_my_pe(), right = (me + 1) % gpushmem_dev_n_pes();
    fill(source, 256, me, 1);
    for (int length = 0; length <= 70; length += length < 20 ? 1 : 7) {
        for (int a = 0; a < 9; a++) {
            int b = (a * 5 + length) % 9;
            for (int i = 0; i < 128; i++)
                back[i] = 0x55;
            gpushmem_dev_putmem(target, back, 128, right);
            gpushmem_dev_quiet();
            gpushmem_dev_putmem(target + 16 + a, source + b, length, right);
            gpushmem_dev_quiet();
            gpushmem_dev_getmem(back, target, 128, right);
            for (int i = 0; i < 128; i++) {
                unsigned char expected =
                    i >= 16 + a && i < 16 + a + length ? pattern(i - 16 - a + b, me, 1) : 0x55;
                EXPECT(errors, (unsigned char)back[i] == expected);
            }
        }
    }
    gpushmem_dev_putmem(nullptr, nullptr, 0, right);
    gpushmem_dev_getmem(nullptr, nullptr, 0, right);
    gpushmem_dev_put128(target, source, 3, right);
    gpushmem_dev_quiet();
    gpushmem_dev_get128(back, target, 3, right);
    EXPECT(errors, !differs(back, 48, me, 1));
}

struct alignas(128) line {
    char bytes[128];
};

// One thread with lent shared memory: all sizes and alignments of both sides, from and to a
// kernel's own memory too.
__global__ void move_bulk(char *source, char *target, char *back, int *errors)
{
    enum { LINES = 36, TILE = 16 };
    GPUSHMEM_SHARED(line, lent, LINES);
    GPUSHMEM_SHARED(line, tile, TILE);
    static const int sizes[] = {0, 1, 1000, 1024, 1040, 1500, 4096, 20001};
    int me = gpushmem_dev_my_pe(), right = (me + 1) % gpushmem_dev_n_pes();
    char *own = tile->bytes, local[1100];
    fill(source, 20032, me, 6);
    for (int k = 0; k < 16; k++) {
        int bytes = sizes[k % 8], a = k < 8 ? 3 : k, b = k < 8 ? 3 : 16;
        fill(back, 20032, me, 7);
        gpushmem_dev_putmem_bulk(target, back, 20032, right, lent, sizeof(line) * LINES);
        gpushmem_dev_quiet();
        gpushmem_dev_putmem_bulk(target + a, source + b, bytes, right, lent, sizeof(line) * LINES);
        gpushmem_dev_quiet();
        fill(back, 20032, me, 8);
        gpushmem_dev_getmem_bulk(back, target, 20032, right, lent, sizeof(line) * LINES);
        for (int i = 0; i < 20032; i++)
            EXPECT(errors,
                   (unsigned char)back[i] ==
                       (i >= a && i < a + bytes ? pattern(i - a + b, me, 6) : pattern(i, me, 7)));
    }
    fill(own, sizeof(line) * TILE, me, 9);
    gpushmem_dev_putmem_bulk(target, own, sizeof(line) * TILE, right, lent, sizeof(line) * LINES);
    gpushmem_dev_quiet();
    fill(own, sizeof(line) * TILE, me, 10);
    gpushmem_dev_getmem_bulk(own, target, sizeof(line) * TILE, right, lent, sizeof(line) * LINES);
    EXPECT(errors, !differs(own, sizeof(line) * TILE, me, 9));
    fill(local, sizeof local, me, 11);
    gpushmem_dev_putmem_bulk(target, local, sizeof local, right, lent, sizeof(line) * LINES);
    gpushmem_dev_quiet();
    gpushmem_dev_getmem_bulk(back, target, sizeof local, right, lent, sizeof(line) * LINES);
    EXPECT(errors, !differs(back, sizeof local, me, 11));
}

// Sources and destinations outside the heap, and a large one.
__global__ void move_large(char *source, char *target, char *back, size_t bytes, int *errors)
{
    int me = gpushmem_dev_my_pe(), right = (me + 1) % gpushmem_dev_n_pes();
    if (threadIdx.x == 0)
        fill(source, bytes, me, 5);
    gpushmem_dev_putmem_block(target, source, bytes, right);
    gpushmem_dev_quiet();
    gpushmem_dev_getmem_block(back, target, bytes, right);
    if (threadIdx.x == 0)
        EXPECT(errors, !differs(back, bytes, me, 5));
}

int main(void)
{
    check_begin();
    const size_t bytes = 1 << 20;
    char *target = (char *)gpushmem_malloc(bytes), *source = (char *)gpushmem_malloc(bytes),
         *back = (char *)gpushmem_malloc(bytes);
    int *errors = check_errors_begin();
#define RUN_MOVES(NAME, TYPE) RUN(move_##NAME, 1, 48, source, target, back, errors);
    GPUSHMEM_RMA_TYPES(RUN_MOVES)
    RUN(move_bytes, 1, 1, source, target, back, errors);
    RUN(move_bulk, 1, 1, source, target, back, errors);
    // shares of whole lines, and a little more
    for (size_t odd = 64 * 48 - 1; odd < 64 * 48 + 3; odd++)
        RUN(move_large, 1, 48, source, target, back, odd, errors);
    RUN(move_large, 1, 64, source, target, back, bytes, errors);
#if !defined(__CUDACC__)
    char *private_source = (char *)malloc(bytes), *private_back = (char *)malloc(bytes);
    RUN(move_large, 1, 32, private_source, target, private_back, bytes, errors);
    free(private_source);
    free(private_back);
#endif
    check_errors_end(__FILE__, errors);
    gpushmem_free(back);
    gpushmem_free(source);
    gpushmem_free(target);
    return check_end("rma");
}
