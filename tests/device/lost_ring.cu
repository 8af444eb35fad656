// SPDX-License-Identifier: BSD-3-Clause
// A kernel's thread that waits for room longer than GPUSHMEM_WAIT_TIMEOUT_MS leaves its slot
// unwritten, and nothing behind it is ever read: then the ring is lost, everybody is told so at
// once, and the other rings go on. For CPU threads: the host stops a ring by a slot that it
// reserves and writes late. Run with 2 rings of 64 commands.
#include <string.h>

#include "kernel_check.cuh"

enum { ENTRIES = 64, FETCHES = 5000 }; // more than there are slots for answers

// One of two blocks has that ring.
__device__ static bool has_ring(uint32_t number)
{
    return gpsh_dev_ring_number(gpsh_dev_implicit) == number;
}

__global__ void put_many(uint64_t *words, int n)
{
    if (!has_ring(0))
        return;
    for (int i = 0; i < n; i++)
        gpushmem_dev_uint64_p(&words[i], (uint64_t)i + 1, gpushmem_dev_my_pe());
}

__global__ void fetch_many(uint64_t *word, int n)
{
    if (!has_ring(0))
        return;
    for (int i = 0; i < n; i++)
        (void)gpushmem_dev_uint64_atomic_fetch(word, gpushmem_dev_my_pe());
}

__global__ void quiet_here(void)
{
    gpushmem_dev_quiet();
}

__global__ void use_other_ring(uint64_t *word, uint64_t *result)
{
    if (has_ring(1))
        *result = gpushmem_dev_uint64_atomic_fetch_add(word, 1, gpushmem_dev_my_pe());
}

// For what the host adds to ring 0: a command that does nothing, written later than reserved.
static uint64_t reserve(const gpushmem_ring *ring)
{
    return __atomic_fetch_add(ring->head, 1, __ATOMIC_RELAXED);
}

static void write_nothing(const gpushmem_ring *ring, uint64_t index)
{
    gpushmem_command nothing = {};
    uint64_t words[GPUSHMEM_COMMAND_WORDS];
    nothing.opcode = GPUSHMEM_CMD_NOP;
    gpushmem_command_pack(&nothing, gpushmem_ring_lap(index, ring->entries_log2), words);
    for (int i = GPUSHMEM_COMMAND_WORDS - 1; i >= 0; i--)
        __atomic_store_n(&ring->slots[index % ENTRIES * GPUSHMEM_COMMAND_WORDS + (uint64_t)i],
                         words[i], __ATOMIC_RELEASE);
}

static void expect_lost(int status)
{
    CHECK(status == GPUSHMEM_ERR_RING);
    CHECK(strstr(gpushmem_last_error(), "GPUSHMEM_WAIT_TIMEOUT_MS"));
}

int main(void)
{
    int me = check_begin();
    uint64_t *words = (uint64_t *)gpushmem_calloc(2 * ENTRIES, 8),
             *result = (uint64_t *)gpushmem_calloc(1, 8);
    gpushmem_dev dev;
    CHECK_OK(gpushmem_device_handle(&dev));
    uint64_t held = reserve(&dev.rings[0]);
    CHECK_OK(GPUSHMEM_LAUNCH(put_many, 2, 1, NULL, words, ENTRIES));
    CHECK(gpushmem_launch_wait(NULL) == GPUSHMEM_ERR_TIMEOUT);
    write_nothing(&dev.rings[0], held);
    // What was written before the loss is carried out.
    while (check_read(&words[ENTRIES - 2]) != ENTRIES - 1)
        ;
    CHECK(check_read(&words[ENTRIES - 1]) == 0);

    // is not carried out: does anybody say so?
    CHECK_OK(GPUSHMEM_LAUNCH(put_many, 2, 1, NULL, words + ENTRIES, 1));
    (void)gpushmem_device_error();
    expect_lost(gpushmem_quiet());
    expect_lost(gpushmem_pe_quiet(&me, 1)); // of that PE alone is not more complete
    CHECK_OK(gpushmem_pe_quiet(NULL, 0));
    CHECK(check_read(&words[ENTRIES]) == 0);
    CHECK_OK(GPUSHMEM_LAUNCH(quiet_here, 1, 1, NULL));
    expect_lost(gpushmem_launch_wait(NULL));
    CHECK_OK(GPUSHMEM_LAUNCH(fetch_many, 2, 1, NULL, words, FETCHES));
    expect_lost(gpushmem_launch_wait(NULL));

    gpushmem_uint64_p(words, 41, me);
    RUN(use_other_ring, 2, 1, words, result);
    CHECK(check_read(result) == 41 && check_read(words) == 42);
    gpushmem_free(result);
    gpushmem_free(words);
    expect_lost(gpushmem_finalize());
    setenv("GPUSHMEM_WAIT_TIMEOUT_MS", "0", 1);
    CHECK_OK(gpushmem_init()); // makes new ones
    words = (uint64_t *)gpushmem_calloc(ENTRIES, 8);
    RUN(put_many, 2, 1, words, ENTRIES);
    CHECK_OK(gpushmem_quiet());
    CHECK(check_read(&words[ENTRIES - 1]) == ENTRIES);
    gpushmem_free(words);
    return check_end("lost_ring");
}
