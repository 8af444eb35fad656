// SPDX-License-Identifier: BSD-3-Clause
// Memory of the program on the GPU as symmetric memory: two addresses of the same words, every kind
// of host call, what is refused and told to all. Needs GPUSHMEM_HEAP_MAX; with `fixed` it is not
// set.
#include "../pes/check.h"
#include "vmm_memory.h"

enum { WORDS = 1 << 19, BYTES = WORDS * 8, GRAIN = 2 << 20 };
static int me, n, next, before;

static long word(const char *at, size_t i)
{
    long value;
    vmm_copy(&value, (const long *)(const void *)at + i, sizeof value);
    return value;
}

static void set(char *at, size_t i, long value)
{
    vmm_copy((long *)(void *)at + i, &value, sizeof value);
}

static char *filled(long value)
{
    char *memory = vmm_new(BYTES, 1);
    for (size_t i = 0; i < WORDS; i += WORDS / 8)
        set(memory, i, value + (long)i);
    set(memory, WORDS - 1, value - 1);
    for (size_t i = 10; i < 30; i++)
        set(memory, i, 0);
    return memory;
}

static long *must_register(char *memory)
{
    long *symmetric = gpushmem_buffer_register_symmetric(memory, BYTES);
    CHECK_THAT(symmetric, "%s", gpushmem_last_error());
    return symmetric;
}

// What peers do by the symmetric address is seen at the program's, and the other way round.
static void use(char *memory, long *symmetric, long value)
{
    long source[3] = {7 * me, 8 * me, 9 * me};
    uint64_t *signal = (uint64_t *)(void *)&symmetric[20];
    for (size_t i = 0; i < WORDS; i += WORDS / 8)
        CHECK(gpushmem_long_g(&symmetric[i], next) == value + next + (long)i);
    CHECK(gpushmem_long_g(&symmetric[WORDS - 1], before) == value + before - 1);
    CHECK_OK(
        gpushmem_long_put_signal(&symmetric[11], source, 3, signal, 5, GPUSHMEM_SIGNAL_SET, next));
    CHECK_OK(gpushmem_long_atomic_add(&symmetric[15], me + 1, 0));
    CHECK(gpushmem_signal_wait_until(signal, GPUSHMEM_CMP_EQ, 5) == 5);
    CHECK(word(memory, 12) == 8 * before && word(memory, 20) == 5);
    CHECK_OK(gpushmem_barrier_all());
    CHECK(me || word(memory, 15) == n * (n + 1) / 2);
    set(memory, 25, 1000 + me);
    CHECK_OK(gpushmem_barrier_all());
    CHECK(gpushmem_long_g(&symmetric[25], next) == 1000 + next);
    CHECK_OK(gpushmem_putmem(&symmetric[WORDS / 2 + 1], &symmetric[10], 64, next)); // from there
    CHECK_OK(gpushmem_barrier_all());
    CHECK(word(memory, WORDS / 2 + 3) == 8 * ((before + n - 1) % n));
    CHECK_OK(gpushmem_barrier_all());
}

static void check_address(const long *symmetric, const long *block)
{
    char *there = gpushmem_ptr(symmetric, next), *other = gpushmem_ptr(block, next);
    struct gpushmem_peer_info peer;
    CHECK_OK(gpushmem_peer_info(next, &peer));
    CHECK(!there == !other && (there || !peer.device_direct));
    CHECK(!there || there - other == (const char *)symmetric - (const char *)block);
}

static void test_use(void)
{
    char *first = filled(me), *second = filled(5000 + me);
    long *block = gpushmem_calloc(100, sizeof *block);
    long *one = must_register(first), *two = must_register(second);
    CHECK(one != two && (char *)one != first);
    check_address(one, block);
    use(first, one, 0);
    use(second, two, 5000);
    long *more = gpushmem_calloc(1, 32 << 20); // the heap grows behind them
    CHECK_THAT(more && (more > two || more < one), "%s", gpushmem_last_error());
    CHECK_OK(gpushmem_long_p(&more[(32 << 20) / 8 - 1], 3 + me, next));
    CHECK_OK(gpushmem_barrier_all());
    CHECK(gpushmem_long_g(&more[(32 << 20) / 8 - 1], me) == 3 + before && word(second, 20) == 5);
    CHECK(gpushmem_free(one) == GPUSHMEM_ERR_ADDRESS);
    CHECK_OK(gpushmem_buffer_unregister_symmetric(me % 2 ? (void *)one : first));
    CHECK(gpushmem_buffer_unregister_symmetric(first) == GPUSHMEM_ERR_INVALID);
    CHECK(word(first, 12) == 8 * before); // it keeps what it holds
    CHECK(gpushmem_long_g(&two[25], next) == 1000 + next);
    one = must_register(first); // anew
    CHECK(gpushmem_long_g(&one[25], next) == 1000 + next);
    CHECK_OK(gpushmem_buffer_unregister_symmetric(one));
    CHECK_OK(gpushmem_buffer_unregister_symmetric(two));
    CHECK_OK(gpushmem_free(more));
    CHECK_OK(gpushmem_free(block));
    vmm_delete(first, BYTES);
    vmm_delete(second, BYTES);
}

static void refuse(void *memory, size_t bytes, int code, const char *why)
{
    CHECK(!gpushmem_buffer_register_symmetric(memory, bytes));
    CHECK_THAT(gpushmem_last_error_code() == code && strstr(gpushmem_last_error(), why), "%d: %s",
               gpushmem_last_error_code(), gpushmem_last_error());
}

static void test_refusals(void)
{
    char *good = filled(me), *hidden = vmm_new(GRAIN, 0), *large = vmm_new(GRAIN * 112, 1);
    vmm_word malloced = 0;
    CHECK(!vmm.alloc(&malloced, BYTES));
    void *cuda_malloc = (void *)(size_t)malloced;
    refuse(good, GRAIN, GPUSHMEM_ERR_INVALID, "exactly one allocation");
    refuse(good + 4096, BYTES - 4096, GPUSHMEM_ERR_INVALID, "exactly one allocation");
    refuse(hidden, GRAIN, GPUSHMEM_ERR_UNSUPPORTED, "POSIX_FILE_DESCRIPTOR");
    refuse(cuda_malloc, BYTES, GPUSHMEM_ERR_UNSUPPORTED, "; allocate it by cuMemCreate");
    refuse(large, GRAIN * 112, GPUSHMEM_ERR_NO_MEMORY, "raise GPUSHMEM_HEAP_MAX");
    if (n > 1) { // one PE only, and all are told
        refuse(me == 1 ? cuda_malloc : good, BYTES, GPUSHMEM_ERR_UNSUPPORTED, "buffer of PE 1");
        void *host = aligned_alloc(4096, BYTES);
        CHECK(host && !gpushmem_buffer_register_symmetric(me ? (void *)good : host, BYTES));
        CHECK(gpushmem_last_error_code() == GPUSHMEM_ERR_ASYMMETRY);
        refuse((char *)host + (me == 1), 4096, GPUSHMEM_ERR_ALIGNMENT, "multiples of");
        free(host);
    }
    long *symmetric = must_register(good);
    refuse(good, BYTES, GPUSHMEM_ERR_INVALID, "symmetric already");
    CHECK(gpushmem_long_g(symmetric, next) == next);
    CHECK_OK(gpushmem_buffer_unregister_symmetric(good));
    CHECK(!vmm.free(malloced));
    vmm_delete(large, GRAIN * 112);
    vmm_delete(hidden, GRAIN);
    vmm_delete(good, BYTES);
}

// Pieces of the heap are few, also those that were given back.
static void test_most(void)
{
    char *memory = vmm_new(GRAIN, 1);
    int times = 0;
    while (times < 30 && gpushmem_buffer_register_symmetric(memory, GRAIN)) {
        CHECK_OK(gpushmem_buffer_unregister_symmetric(memory));
        times++;
    }
    CHECK_THAT(times < 24, "%d times", times);
    refuse(memory, GRAIN, GPUSHMEM_ERR_NO_MEMORY, "24 times");
    vmm_delete(memory, GRAIN);
}

// What the program forgets is its own again.
static void test_finalize(void)
{
    char *memory = filled(me);
    must_register(memory);
    test_most();
    CHECK_OK(gpushmem_finalize());
    CHECK(word(memory, 0) == me);
    vmm_delete(memory, BYTES);
}

int main(int argc, char **argv)
{
    CHECK_OK(gpushmem_init());
    me = gpushmem_my_pe();
    n = gpushmem_n_pes();
    next = (me + 1) % n;
    before = (me + n - 1) % n;
    vmm_load();
    if (argc > 1 && !strcmp(argv[1], "fixed")) {
        char *memory = vmm_new(BYTES, 1);
        refuse(memory, BYTES, GPUSHMEM_ERR_NO_MEMORY, "set GPUSHMEM_HEAP_MAX");
        vmm_delete(memory, BYTES);
        CHECK_OK(gpushmem_finalize());
        return 0;
    }
    test_refusals();
    test_use();
    test_finalize();
    return 0;
}
