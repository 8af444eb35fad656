// SPDX-License-Identifier: BSD-3-Clause
// The host's quiet completes what kernels that have ended wrote, whatever other kernels do with the
// same ring. For CPU threads: a kernel holds a slot that it has reserved until the host lets it
// write. Run with one ring.
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "kernel_check.cuh"

static uint32_t reserved, go; // between host and kernels

static uint32_t get(const uint32_t *word)
{
    return __atomic_load_n(word, __ATOMIC_ACQUIRE);
}

static void set(uint32_t *word, uint32_t value)
{
    __atomic_store_n(word, value, __ATOMIC_RELEASE);
}

// Reserves a slot, and writes it late, or never.
__global__ void hold_slot(gpushmem_dev dev, bool write)
{
    const struct gpushmem_ring ring = gpsh_dev_ring(dev);
    struct gpsh_dev_slot slot = gpsh_dev_reserve(ring);
    set(&reserved, 1);
    while (write && !get(&go))
        usleep(100);
    if (write)
        gpsh_dev_write(dev, ring, slot, gpsh_dev_command(GPUSHMEM_CMD_NOP, 0, nullptr, nullptr, 0));
}

__global__ void put_one(uint64_t *word, uint64_t value)
{
    gpushmem_dev_uint64_p(word, value, gpushmem_dev_my_pe());
}

// The source may be reused on return, though the proxy has not seen the command.
__global__ void put_small(char *to, const char *from, size_t bytes)
{
    gpushmem_dev_char_put(to, from, bytes, gpushmem_dev_my_pe());
}

__global__ void keep_putting(uint64_t *word)
{
    for (uint64_t i = 0; !get(&go); i++)
        gpushmem_dev_uint64_p(word, i, gpushmem_dev_my_pe());
}

static void *let_go_later(void *)
{
    usleep(50000); // only so that a quiet that does not wait is caught
    set(&go, 1);
    return NULL;
}

static gpushmem_dev handle(void)
{
    gpushmem_dev dev;
    CHECK_OK(gpushmem_device_handle(&dev));
    return dev;
}

// In a stream of its own, until it holds its slot.
static void hold(gpushmem_stream_t stream, bool write)
{
    set(&reserved, 0);
    set(&go, 0);
    CHECK_OK(GPUSHMEM_LAUNCH(hold_slot, 1, 1, stream, handle(), write));
    while (!get(&reserved))
        usleep(100);
}

// The put lies after the held slot, where the proxy does not see it yet.
static void covers_what_lies_after_a_held_slot(gpushmem_stream_t stream, uint64_t *word,
                                               int (*complete)(void), uint64_t value)
{
    pthread_t thread;
    hold(stream, true);
    RUN(put_one, 1, 1, word, value);
    CHECK(pthread_create(&thread, NULL, let_go_later, NULL) == 0);
    CHECK_OK(complete());
    CHECK(__atomic_load_n(word, __ATOMIC_RELAXED) == value);
    pthread_join(thread, NULL);
    CHECK_OK(gpushmem_launch_wait(stream));
}

static void small_puts_travel_in_their_commands(gpushmem_stream_t stream, char *to, char *from)
{
    const size_t sizes[] = {3, 9, 24, 39, 40};
    for (size_t bytes : sizes) {
        memset(to, 0, 64);
        memset(from, (int)bytes, 64);
        hold(stream, true);
        RUN(put_small, 1, 1, to + 1, from + 1, bytes); // misaligned too
        CHECK(!get(&go));
        memset(from, 0xee, 64);
        set(&go, 1);
        CHECK_OK(gpushmem_launch_wait(stream));
        CHECK_OK(gpushmem_quiet());
        for (size_t i = 0; i < 64; i++)
            CHECK(to[i] == (i >= 1 && i <= bytes ? (char)bytes : 0));
    }
}

static int quiet_of_this_pe(void)
{
    int me = gpushmem_my_pe();
    return gpushmem_pe_quiet(&me, 1);
}

static void ends_while_a_kernel_keeps_putting(gpushmem_stream_t stream, uint64_t *words)
{
    set(&go, 0);
    CHECK_OK(GPUSHMEM_LAUNCH(keep_putting, 1, 1, stream, &words[0]));
    for (uint64_t round = 1; round <= 20; round++) {
        RUN(put_one, 1, 1, &words[1], round);
        CHECK_OK(gpushmem_quiet());
        CHECK(__atomic_load_n(&words[1], __ATOMIC_RELAXED) == round);
    }
    set(&go, 1);
    CHECK_OK(gpushmem_launch_wait(stream));
}

// Strided ones are posted to a transport, element by element.
__global__ void keep_putting_apart(uint64_t *words)
{
    const uint64_t two[] = {1, 2};
    for (uint64_t i = 0; !get(&go); i++) {
        gpushmem_dev_uint64_p(words, i, gpushmem_dev_my_pe());
        gpushmem_dev_uint64_iput(words + 1, two, 2, 1, 2, gpushmem_dev_my_pe());
    }
}

// What is counted of the ring (pe: -1), or towards this PE by its proxy thread.
static gpushmem_counters row_of(int pe)
{
    gpushmem_counters row = {};
    uint64_t position = 0;
    while (gpushmem_counters_next(&position, &row) == 1)
        if (row.pe == pe)
            return row;
    return gpushmem_counters{};
}

// Until they have grown. Under ThreadSanitizer this also says that they are written for others to
// read.
static void watch_counters(int pe)
{
    const gpushmem_counters first = row_of(pe);
    gpushmem_counters row = first;
    while (row.operations < first.operations + 100 || row.completed <= first.completed) {
        const gpushmem_counters next = row_of(pe);
        CHECK(next.operations >= row.operations && next.completed >= row.completed);
        CHECK(next.batches >= row.batches && next.posts >= row.posts && next.bytes >= row.bytes);
        row = next;
    }
}

static void counters_are_read_while_they_grow(gpushmem_stream_t stream, uint64_t *words)
{
    set(&go, 0);
    CHECK_OK(GPUSHMEM_LAUNCH(keep_putting_apart, 1, 1, stream, words));
    watch_counters(-1);
    watch_counters(0);
    set(&go, 1);
    CHECK_OK(gpushmem_launch_wait(stream));
    CHECK_OK(gpushmem_quiet());
    const gpushmem_counters ring = row_of(-1), flow = row_of(0);
    CHECK(ring.completed == ring.operations && flow.completed == flow.operations);
    CHECK(ring.posts > ring.operations && ring.peak && ring.batches <= ring.operations);
    CHECK(flow.bytes == 8 * flow.operations);
}

static void names_a_slot_that_is_never_written(gpushmem_stream_t stream)
{
    hold(stream, false);
    CHECK_OK(gpushmem_launch_wait(stream));
    CHECK(gpushmem_quiet() == GPUSHMEM_ERR_TIMEOUT);
    CHECK(strstr(gpushmem_last_error(), "ring 0"));
    CHECK(strstr(gpushmem_last_error(), "reserved"));
}

int main(void)
{
    check_begin();
    gpushmem_stream_t stream;
    CHECK_OK(gpushmem_stream_create(&stream));
    uint64_t *words = (uint64_t *)gpushmem_calloc(4, 8);
    covers_what_lies_after_a_held_slot(stream, words, gpushmem_quiet, 1);
    covers_what_lies_after_a_held_slot(stream, words, gpushmem_barrier_all, 2);
    covers_what_lies_after_a_held_slot(stream, words, quiet_of_this_pe, 3);
    char *bytes = (char *)gpushmem_calloc(128, 1);
    small_puts_travel_in_their_commands(stream, bytes, bytes + 64);
    gpushmem_free(bytes);
    ends_while_a_kernel_keeps_putting(stream, words);
    counters_are_read_while_they_grow(stream, words);
    gpushmem_free(words);
    CHECK_OK(gpushmem_finalize());
    setenv("GPUSHMEM_WAIT_TIMEOUT_MS", "100", 1);
    check_begin();
    names_a_slot_that_is_never_written(stream);
    gpushmem_stream_destroy(stream);
    (void)gpushmem_finalize(); // reports the slot once more
    return check_failures != 0;
}
