// SPDX-License-Identifier: BSD-3-Clause
// The host API with local buffers of every kind: pageable, pinned by CUDA, GPU memory of the
// program's own. What the API says about reuse holds for each: a blocking put's source may be
// overwritten at once, a blocking get has delivered. Without a GPU the buffers are all pageable.
#include <dlfcn.h>
#include <gpushmem/gpushmem.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum kind { PAGEABLE, PINNED, DEVICE, KINDS };
enum { BYTES = 300000, ROOM = 74 * 4096 }; // whole pages, for a dma-buf

typedef unsigned long long device_pointer;
static struct {
    int (*host_alloc)(void **memory, size_t bytes, unsigned flags);
    int (*host_free)(void *memory);
    int (*alloc)(device_pointer *memory, size_t bytes);
    int (*release)(device_pointer memory);
    int (*copy)(device_pointer to, device_pointer from, size_t bytes);
    int (*wait)(void *stream);
} cuda;

static const char *const names[KINDS] = {"pageable", "pinned", "device"};
static const size_t sizes[] = {1, 2, 3, 7, 8, 13, 255, 4095, 4096, 4097, 65537, BYTES};
static char *buffers[KINDS];
static int failures, kinds = 1, me, right, left;

#define CHECK(condition, ...)                                                                      \
    do {                                                                                           \
        if (!(condition) && failures++ < 20) {                                                     \
            fprintf(stderr, "PE %d, line %d: not true: %s (", me, __LINE__, #condition);           \
            fprintf(stderr, __VA_ARGS__);                                                          \
            fprintf(stderr, "; %s)\n", gpushmem_last_error());                                     \
        }                                                                                          \
    } while (0)

static void find(void *library, const char *name, void *function)
{
    void *symbol = dlsym(library, name);
    memcpy(function, &symbol, sizeof symbol);
}

static bool load_cuda(void)
{
    struct gpushmem_heap_info info;
    if (gpushmem_heap_info(&info) || strcmp(info.kind, "device"))
        return false;
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    if (!library)
        return false;
    find(library, "cuMemHostAlloc", &cuda.host_alloc);
    find(library, "cuMemFreeHost", &cuda.host_free);
    find(library, "cuMemAlloc_v2", &cuda.alloc);
    find(library, "cuMemFree_v2", &cuda.release);
    find(library, "cuMemcpy", &cuda.copy);
    find(library, "cuStreamSynchronize", &cuda.wait);
    return cuda.host_alloc && cuda.host_free && cuda.alloc && cuda.release && cuda.copy &&
           cuda.wait;
}

static void buffers_new(void)
{
    void *pinned = NULL;
    device_pointer device = 0;
    buffers[PAGEABLE] = malloc(ROOM);
    if (!load_cuda())
        return;
    kinds = KINDS;
    CHECK(!cuda.host_alloc(&pinned, ROOM, 0) && !cuda.alloc(&device, ROOM), "no buffers");
    buffers[PINNED] = pinned;
    buffers[DEVICE] = (char *)(size_t)device;
}

static void buffers_free(void)
{
    free(buffers[PAGEABLE]);
    if (kinds == KINDS)
        CHECK(!cuda.host_free(buffers[PINNED]) && !cuda.release((size_t)buffers[DEVICE]),
              "buffers");
}

// A copy from pageable memory may return while its last piece is on its way to the GPU.
static void copy(enum kind kind, void *to, const void *from, size_t bytes)
{
    if (kind == DEVICE)
        CHECK(!cuda.copy((size_t)to, (size_t)from, bytes) && !cuda.wait(NULL), "%zu bytes", bytes);
    else
        memcpy(to, from, bytes);
}

static unsigned char pattern(int pe, unsigned turn, size_t i)
{
    return (unsigned char)(i * 11 + i / 253 + turn * 7 + (unsigned)pe * 29 + 1);
}

static unsigned char scratch[ROOM];

static void fill(enum kind kind, char *at, size_t bytes, unsigned turn)
{
    for (size_t i = 0; i < bytes; i++)
        scratch[i] = pattern(me, turn, i);
    copy(kind, at, scratch, bytes);
}

static size_t differing(enum kind kind, const char *at, size_t bytes, int pe, unsigned turn)
{
    size_t wrong = 0;
    copy(kind, scratch, at, bytes);
    for (size_t i = 0; i < bytes; i++)
        wrong += scratch[i] != pattern(pe, turn, i);
    return wrong;
}

static void spoil(enum kind kind, char *at, size_t bytes)
{
    memset(scratch, 0xee, bytes);
    copy(kind, at, scratch, bytes);
}

// To the right neighbour and, from there, what the left one sent us.
static void there_and_back(enum kind from, enum kind to, char *inbox, bool blocking)
{
    for (unsigned k = 0; k < sizeof sizes / sizeof *sizes; k++) {
        size_t n = sizes[k], shift = k % 7;
        char *source = buffers[from] + (k * 3) % 5, *target = buffers[to] + k % 3;
        fill(from, source, n, k);
        int status = blocking ? gpushmem_putmem(inbox + shift, source, n, right)
                              : gpushmem_putmem_nbi(inbox + shift, source, n, right);
        if (!blocking)
            status |= gpushmem_quiet();
        spoil(from, source, n);
        status |= gpushmem_barrier_all();
        status |= blocking ? gpushmem_getmem(target, inbox + shift, n, me)
                           : gpushmem_getmem_nbi(target, inbox + shift, n, me);
        if (!blocking)
            status |= gpushmem_quiet();
        CHECK(!status, "%zu bytes, %s to %s", n, names[from], names[to]);
        size_t wrong = differing(to, target, n, left, k);
        CHECK(!wrong, "%zu of %zu bytes, %s to %s, %s", wrong, n, names[from], names[to],
              blocking ? "blocking" : "nbi");
        CHECK(!gpushmem_barrier_all(), "%zu bytes", n);
    }
}

static void signals(enum kind from, char *inbox, uint64_t *signal)
{
    for (unsigned turn = 1; turn <= 20; turn++) {
        size_t n = 1 + turn * 517;
        fill(from, buffers[from] + 1, n, turn);
        CHECK(!gpushmem_putmem_signal(inbox, buffers[from] + 1, n, signal, 1, GPUSHMEM_SIGNAL_ADD,
                                      right),
              "turn %u", turn);
        spoil(from, buffers[from] + 1, n);
        CHECK(gpushmem_signal_wait_until(signal, GPUSHMEM_CMP_EQ, turn) == turn, "turn %u", turn);
        CHECK(!gpushmem_getmem(buffers[PAGEABLE] + ROOM - n, inbox, n, me), "turn %u", turn);
        size_t wrong = differing(PAGEABLE, buffers[PAGEABLE] + ROOM - n, n, left, turn);
        CHECK(!wrong, "%zu bytes behind signal %u from %s memory", wrong, turn, names[from]);
        CHECK(!gpushmem_barrier_all(), "turn %u", turn);
    }
    CHECK(!gpushmem_signal_op(signal, 0, GPUSHMEM_SIGNAL_SET, right), "reset");
    CHECK(!gpushmem_barrier_all(), "reset");
}

// Many at once, more than a queue holds; each result goes where it was asked for.
static void fetches(uint64_t *words)
{
    enum { N = 3000 };
    uint64_t *seen = calloc(N, sizeof *seen), sum = 0;
    for (int i = 0; i < N; i++)
        CHECK(!gpushmem_uint64_atomic_fetch_add_nbi(&seen[i], &words[me], 1, right), "fetch %d", i);
    CHECK(!gpushmem_quiet(), "fetches");
    for (int i = 0; i < N; i++)
        sum += seen[i];
    CHECK(sum == (uint64_t)N * (N - 1) / 2, "%llu", (unsigned long long)sum);
    CHECK(!gpushmem_barrier_all(), "fetches");
    CHECK(gpushmem_uint64_g(&words[left], me) == N, "counted by PE %d", left);
    free(seen);
}

int main(void)
{
    if (gpushmem_init()) {
        fprintf(stderr, "init: %s\n", gpushmem_last_error());
        return 1;
    }
    me = gpushmem_my_pe();
    int n = gpushmem_n_pes();
    right = (me + 1) % n;
    left = (me + n - 1) % n;
    buffers_new();
    char *inbox = gpushmem_calloc(1, ROOM);
    uint64_t *words = gpushmem_calloc((size_t)n + 1, sizeof *words);
    for (int from = 0; from < kinds; from++)
        for (int to = 0; to < kinds; to++)
            there_and_back((enum kind)from, (enum kind)to, inbox, (from + to) % 2 == 0);
    there_and_back(PAGEABLE, PAGEABLE, inbox, false);
    for (int kind = 0; kind < kinds; kind++) { // registered, each moves without a copy
        CHECK(!gpushmem_buffer_register(buffers[kind], ROOM), "%s memory", names[kind]);
        there_and_back((enum kind)kind, (enum kind)kind, inbox, true);
        CHECK(!gpushmem_buffer_unregister(buffers[kind]), "%s memory", names[kind]);
    }
    for (int from = 0; from < kinds; from++)
        signals((enum kind)from, inbox, words + n);
    fetches(words);
    CHECK(!gpushmem_free(words) && !gpushmem_free(inbox), "free");
    buffers_free();
    CHECK(!gpushmem_finalize(), "finalize");
    return failures != 0;
}
