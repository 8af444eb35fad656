// SPDX-License-Identifier: BSD-3-Clause
// What the symmetric heap promises to several PEs: symmetry, alignment, zeroing, exhaustion and
// wrong pointers that harm nothing.
#define _GNU_SOURCE // MAP_ANONYMOUS
#include <gpushmem/gpushmem.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

static int failures;

#define EXPECT(condition)                                                                          \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            printf("PE %d: %s:%d: %s does not hold (last error: %s)\n", gpushmem_my_pe(),          \
                   __FILE__, __LINE__, #condition, gpushmem_last_error());                         \
            failures++;                                                                            \
        }                                                                                          \
    } while (0)

static void expect_error(int status, int code, const char *mentions)
{
    EXPECT(status == code);
    EXPECT(gpushmem_last_error_code() == code);
    EXPECT(strstr(gpushmem_last_error(), mentions));
}

static void allocation_is_symmetric(void)
{
    char *a = gpushmem_malloc(1000), *b = gpushmem_align(8192, 10), *c = gpushmem_calloc(100, 8);
    EXPECT(a && b && c);
    EXPECT((uintptr_t)a % 256 == 0 && (uintptr_t)b % 8192 == 0);
    for (int i = 0; c && i < 800; i++)
        EXPECT(c[i] == 0);
    // Every PE writes through the same offset of its right neighbour and finds its left one's
    // bytes.
    int right = (gpushmem_my_pe() + 1) % gpushmem_n_pes(),
        left = (gpushmem_my_pe() + gpushmem_n_pes() - 1) % gpushmem_n_pes();
    char mine[1000];
    memset(mine, 'A' + gpushmem_my_pe() % 26, sizeof mine);
    EXPECT(gpushmem_putmem(a, mine, sizeof mine, right) == 0);
    EXPECT(gpushmem_barrier_all() == 0);
    for (int i = 0; a && i < 1000; i++)
        EXPECT(a[i] == 'A' + left % 26);
    EXPECT(gpushmem_free(b) == 0 && gpushmem_free(a) == 0 && gpushmem_free(c) == 0);
}

static void any_alignment_is_kept(void)
{
    for (size_t alignment = 1; alignment <= 2 << 20; alignment *= 2) {
        char *block = gpushmem_align(alignment, 10);
        EXPECT(block && (uintptr_t)block % alignment == 0);
        EXPECT(gpushmem_free(block) == 0);
    }
    EXPECT(gpushmem_align((size_t)1 << 62, 10) == NULL);
    expect_error(gpushmem_last_error_code(), GPUSHMEM_ERR_INVALID, "alignment");
    struct gpushmem_heap_info info;
    EXPECT(gpushmem_heap_info(&info) == 0);
    size_t above = 1;
    while (above <= 2 * info.bytes)
        above *= 2;
    EXPECT(gpushmem_align(above, 1) == NULL);
    expect_error(gpushmem_last_error_code(), GPUSHMEM_ERR_INVALID, "larger GPUSHMEM_HEAP_SIZE");
}

// A free block of just the size, at a place that fits, is taken.
static void aligned_exact_fit_is_taken(void)
{
    enum { PAGE = 2 << 20 };
    struct gpushmem_heap_info info;
    char *one = gpushmem_align(PAGE, PAGE), *two = gpushmem_malloc(PAGE);
    EXPECT(one && two && gpushmem_heap_info(&info) == 0);
    char *rest = gpushmem_malloc(info.largest_free_bytes);
    char *lead = gpushmem_heap_info(&info) == 0 ? gpushmem_malloc(info.largest_free_bytes) : NULL;
    EXPECT(gpushmem_free(one) == 0);
    EXPECT(gpushmem_align(PAGE, PAGE + 256) == NULL);
    expect_error(gpushmem_last_error_code(), GPUSHMEM_ERR_NO_MEMORY, "at a multiple of 2097152");
    EXPECT(gpushmem_align(PAGE, PAGE) == one);
    EXPECT(gpushmem_free(one) == 0 && gpushmem_free(two) == 0 && gpushmem_free(rest) == 0);
    EXPECT(gpushmem_free(lead) == 0);
}

static void nothing_is_legal(void)
{
    gpushmem_clear_error();
    EXPECT(gpushmem_malloc(0) == NULL && gpushmem_last_error_code() == 0);
    EXPECT(gpushmem_calloc(0, 8) == NULL && gpushmem_last_error_code() == 0);
    EXPECT(gpushmem_free(NULL) == 0);
}

static void exhaustion_harms_nothing(void)
{
    struct gpushmem_heap_info before, after;
    EXPECT(gpushmem_heap_info(&before) == 0);
    EXPECT(gpushmem_malloc(before.bytes + 1) == NULL);
    expect_error(gpushmem_last_error_code(), GPUSHMEM_ERR_NO_MEMORY, "GPUSHMEM_HEAP_SIZE");
    EXPECT(gpushmem_calloc(SIZE_MAX / 2, 3) == NULL);
    EXPECT(gpushmem_last_error_code() == GPUSHMEM_ERR_NO_MEMORY ||
           gpushmem_last_error_code() == GPUSHMEM_ERR_INVALID);
    EXPECT(gpushmem_heap_info(&after) == 0);
    EXPECT(before.used_bytes == after.used_bytes &&
           before.largest_free_bytes == after.largest_free_bytes);
    void *all = gpushmem_malloc(before.largest_free_bytes);
    EXPECT(all);
    EXPECT(gpushmem_free(all) == 0);
}

static void wrong_pointers_are_refused(void)
{
    char *block = gpushmem_malloc(512);
    int local;
    char number[32];
    snprintf(number, sizeof number, "%p", (void *)(block + 256));
    expect_error(gpushmem_free(&local), GPUSHMEM_ERR_ADDRESS, "gpushmem_free");
    expect_error(gpushmem_free(block + 256), GPUSHMEM_ERR_ADDRESS, number);
    EXPECT(gpushmem_free(block) == 0);
    expect_error(gpushmem_free(block), GPUSHMEM_ERR_ADDRESS, "freed already");
    EXPECT(gpushmem_align(24, 100) == NULL);
    expect_error(gpushmem_last_error_code(), GPUSHMEM_ERR_INVALID, "24");
}

static void pointers_reach_mapped_peers(void)
{
    long *word = gpushmem_malloc(sizeof *word);
    int local;
    EXPECT(gpushmem_ptr(word, gpushmem_my_pe()) == word);
    gpushmem_clear_error();
    EXPECT(gpushmem_ptr(word, -1) == NULL);
    expect_error(gpushmem_last_error_code(), GPUSHMEM_ERR_PE, "gpushmem_ptr: there is no PE -1");
    EXPECT(gpushmem_ptr(word, gpushmem_n_pes()) == NULL);
    EXPECT(gpushmem_ptr(&local, gpushmem_my_pe()) == NULL);
    expect_error(gpushmem_last_error_code(), GPUSHMEM_ERR_ADDRESS, "gpushmem_ptr");
    EXPECT(gpushmem_free(word) == 0);
}

static void expect_unregistrable(void *address, size_t bytes, const char *mentions)
{
    expect_error(gpushmem_buffer_register(address, bytes), GPUSHMEM_ERR_INVALID, mentions);
}

// As another thread does meanwhile; it has a page of its own.
static void *register_too(void *own)
{
    EXPECT(gpushmem_buffer_register(own, 4096) == 0 && gpushmem_buffer_unregister(own) == 0);
    return NULL;
}

static void wrong_buffers_are_refused(void)
{
    pthread_t thread;
    enum { BYTES = 8 * 4096 };
    char *own = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char *heap = gpushmem_malloc(4096);
    EXPECT(own != MAP_FAILED && heap);
    EXPECT(gpushmem_buffer_register(own + 4096, 8192) == 0);
    EXPECT(!pthread_create(&thread, NULL, register_too, own) && !pthread_join(thread, NULL));
    // a hole, which belongs to whoever maps something there: to AddressSanitizer for a new thread
    EXPECT(!munmap(own + 4 * 4096, 4096));
    expect_unregistrable(own + 4096, 8192, "overlap");
    expect_unregistrable(own, 4097, "overlap");
    expect_unregistrable(own + 3 * 4096 - 1, 2, "overlap");
    expect_unregistrable(own + 3 * 4096, 5 * 4096, "memory of this process");
    expect_unregistrable(own + 4 * 4096, 1, "memory of this process");
    expect_unregistrable((char *)UINTPTR_MAX - 10, 100, "memory of this process");
    expect_unregistrable(heap + 100, 10, "symmetric heap");
    expect_unregistrable(own, 0, "1 byte or more");
    EXPECT(gpushmem_buffer_register(own, 4096) == 0); // beside the other one
    expect_error(gpushmem_buffer_unregister(own + 4097), GPUSHMEM_ERR_INVALID, "begins there");
    EXPECT(gpushmem_buffer_unregister(own + 4096) == 0 && gpushmem_buffer_unregister(own) == 0);
    expect_error(gpushmem_buffer_unregister(own), GPUSHMEM_ERR_INVALID, "begins there");
    EXPECT(gpushmem_buffer_register(own, 3 * 4096) == 0);
    EXPECT(gpushmem_buffer_unregister(own) == 0 && gpushmem_free(heap) == 0);
    munmap(own, 4 * 4096);
    munmap(own + 5 * 4096, 3 * 4096);
}

// Programs that were built with an older header, and with a newer one.
static void structs_may_grow(void)
{
    struct gpushmem_heap_info info;
    struct {
        struct gpushmem_heap_info known;
        uint64_t later, beyond;
    } newer = {.later = 1, .beyond = 2};
    EXPECT(gpushmem_heap_info(&info) == 0);
    EXPECT(gpushmem_heap_info_sized(&newer.known, sizeof newer - 8) == 0);
    EXPECT(!memcmp(&newer.known, &info, sizeof info) && newer.later == 0 && newer.beyond == 2);
    expect_error(gpushmem_heap_info_sized(&info, 47), GPUSHMEM_ERR_INVALID, "sizeof");
    expect_error(gpushmem_heap_info(NULL), GPUSHMEM_ERR_INVALID, "gpushmem_heap_info: no place");
    struct gpushmem_peer_info peer = {.transport = NULL};
    EXPECT(gpushmem_peer_info(0, &peer) == 0 && peer.transport);
    expect_error(gpushmem_peer_info_sized(0, &peer, 16), GPUSHMEM_ERR_INVALID, "16 bytes");
    expect_error(gpushmem_peer_info(-1, &peer), GPUSHMEM_ERR_PE, "no PE -1");
}

static void calls_before_init_are_refused(void)
{
    expect_error(gpushmem_finalize(), GPUSHMEM_ERR_STATE, "gpushmem_init");
    EXPECT(gpushmem_malloc(8) == NULL);
    expect_error(gpushmem_last_error_code(), GPUSHMEM_ERR_STATE, "malloc");
    EXPECT(gpushmem_my_pe() < 0 && gpushmem_n_pes() < 0 && !gpushmem_initialized());
    expect_error(gpushmem_init_thread(99, NULL), GPUSHMEM_ERR_INVALID, "99");
    // Who prints why init failed asks for the PE number in the same breath.
    EXPECT(gpushmem_my_pe() == GPUSHMEM_ERR_STATE && gpushmem_n_pes() == GPUSHMEM_ERR_STATE);
    EXPECT(gpushmem_node_my_pe() < 0 && gpushmem_node_n_pes() < 0 && !gpushmem_initialized());
    expect_error(GPUSHMEM_ERR_INVALID, GPUSHMEM_ERR_INVALID, "99");
}

int main(void)
{
    for (int cycle = 0; cycle < 3; cycle++) {
        calls_before_init_are_refused();
        if (gpushmem_init()) {
            printf("init: %s\n", gpushmem_last_error());
            return 1;
        }
        allocation_is_symmetric();
        any_alignment_is_kept();
        aligned_exact_fit_is_taken();
        nothing_is_legal();
        exhaustion_harms_nothing();
        wrong_pointers_are_refused();
        pointers_reach_mapped_peers();
        wrong_buffers_are_refused();
        structs_may_grow();
        EXPECT(gpushmem_finalize() == 0);
    }
    return failures != 0;
}
