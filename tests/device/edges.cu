// SPDX-License-Identifier: BSD-3-Clause
// Promises at their edges: nothing to move, PEs that do not exist, words that change while they are
// waited for, barriers from whatever block comes, waits that time out.
#define GPUSHMEM_DEVICE_CHECKS 0
#include <limits.h>
#include <string.h>

#include "kernel_check.cuh"

enum { THREADS = 96, TURNS = 400, TURNS_OF = 6, FLIPS = 300, WORDS = 200, PARCEL = 40000 };

__device__ static uint64_t look(uint64_t *word)
{
    return atomicAdd((unsigned long long *)word, 0ull);
}

__device__ static void store(uint64_t *word, uint64_t value)
{
    __threadfence();
    atomicExch((unsigned long long *)word, (unsigned long long)value);
}

// A call of a warp or block is its barrier even if it has nothing to move: each thread sees what
// the others wrote before.
#define AGREED(CALL)                                                                               \
    if (threadIdx.x == THREADS - 1)                                                                \
        for (uint64_t begin = gpsh_dev_now_ns(); gpsh_dev_now_ns() - begin < 200000;)              \
            ; /* the others would not wait for the late one */                                     \
    written[threadIdx.x] = ++round;                                                                \
    CALL;                                                                                          \
    EXPECT(errors, *(volatile int *)&written[(threadIdx.x + 31) % THREADS] == round);              \
    __syncthreads();

__global__ void nothing(int *errors)
{
    GPUSHMEM_SHARED(int, written, THREADS);
    int *none = nullptr, me = gpushmem_dev_my_pe(), round = 0;
    AGREED(gpushmem_dev_int_put_block(none, none, 0, me))
    AGREED(gpushmem_dev_int_put_nbi_block(none, none, 0, me))
    AGREED(gpushmem_dev_int_get_block(none, none, 0, me))
    AGREED(gpushmem_dev_int_iput_block(none, none, 1, 1, 0, me))
    AGREED(gpushmem_dev_int_iget_block(none, none, 1, 1, 0, me))
}

// One block turns the last word on and off; what the other is told of was on. words[WORDS]: it is
// over.
__global__ void flicker(uint64_t *words, int *errors)
{
    if (blockIdx.x == 0) {
        size_t indices[WORDS];
        for (int i = 0; i < FLIPS; i++) {
            size_t found = gpushmem_dev_uint64_wait_until_some(words, WORDS, indices, nullptr,
                                                               GPUSHMEM_CMP_EQ, 1);
            EXPECT(errors, found == 1 && indices[0] == WORDS - 1);
            if (!found)
                break; // waited in vain, which the host is told of
        }
        store(&words[WORDS], 1);
    }
    for (uint64_t i = 0; blockIdx.x == 1 && !look(&words[WORDS]); i++)
        store(&words[WORDS - 1], i % 2);
}

// The next sync_all may come from another block, and so through another ring: the numbers that PEs
// tell each other still come in their order. words[0]: whose turn it is.
__global__ void in_turn(uint64_t *words)
{
    for (uint64_t turn = blockIdx.x; turn < TURNS; turn += gridDim.x) {
        while (look(&words[0]) != turn)
            gpsh_dev_nap();
        gpushmem_dev_sync_all();
        store(&words[0], turn + 1);
    }
}

// What one block sent, through whatever ring, is complete behind another block's quiet that it
// happened before. words[0]: turn.
template <bool ONE_PE>
__global__ void handed_over(uint64_t *words, char *source, char *target, char *back, int *errors)
{
    int peer = (gpushmem_dev_my_pe() + 1) % gpushmem_dev_n_pes();
    for (uint64_t turn = 0; turn < TURNS_OF * 8; turn++) {
        if (turn % gridDim.x == blockIdx.x) {
            while (look(&words[0]) != 2 * turn)
                gpsh_dev_nap();
            memset(source, (int)turn + 1, PARCEL);
            gpushmem_dev_putmem_nbi(target, source, PARCEL, peer);
            store(&words[0], 2 * turn + 1);
        }
        if ((turn + 1) % gridDim.x == blockIdx.x) {
            while (look(&words[0]) != 2 * turn + 1)
                gpsh_dev_nap();
            if (ONE_PE)
                gpushmem_dev_pe_quiet(peer);
            else
                gpushmem_dev_quiet();
            gpushmem_dev_getmem(back, target, PARCEL, peer);
            EXPECT(errors, back[0] == (char)(turn + 1) && back[PARCEL - 1] == (char)(turn + 1));
            store(&words[0], 2 * turn + 2);
        }
    }
}

// What one block sent, through whatever ring, is at the peer before the flag that another block
// sends behind a fence, which what was sent happened before. words[0]: turn, words[1]: the flag.
__global__ void fenced_over(uint64_t *words, char *source, char *target, int *errors)
{
    int peer = (gpushmem_dev_my_pe() + 1) % gpushmem_dev_n_pes();
    for (uint64_t turn = 0; turn < TURNS_OF * 4; turn++) {
        if (turn % gridDim.x == blockIdx.x) {
            while (look(&words[0]) != 2 * turn)
                gpsh_dev_nap();
            memset(source, (int)turn + 1, PARCEL);
            for (int i = 0; i < 16; i++) // enough to keep its proxy busy
                gpushmem_dev_putmem_nbi(target, source, PARCEL, peer);
            store(&words[0], 2 * turn + 1);
        }
        if ((turn + 1) % gridDim.x == blockIdx.x) {
            while (look(&words[0]) != 2 * turn + 1)
                gpsh_dev_nap();
            gpushmem_dev_fence();
            gpushmem_dev_uint64_p(&words[1], turn + 1, peer);
            gpushmem_dev_uint64_wait_until(&words[1], GPUSHMEM_CMP_GE, turn + 1);
            EXPECT(errors, target[0] == (char)(turn + 1) && target[PARCEL - 1] == (char)(turn + 1));
            gpushmem_dev_quiet();
            gpushmem_dev_sync_all(); // the peer has looked
            store(&words[0], 2 * turn + 2);
        }
    }
}

// Aligned words are moved in one piece, by p, put, get and g. The first block writes its own, the
// second reads them by all ways.
__global__ void whole(uint64_t *words, int *errors)
{
    uint64_t *seen = &words[8], own[2] = {0, ~(uint64_t)0};
    int me = gpushmem_dev_my_pe();
    for (int i = 0; blockIdx.x == 0 && !look(&words[16]); i++) {
        gpushmem_dev_uint64_p(&words[0], own[i % 2], me);
        gpushmem_dev_uint64_put(&words[1], &own[i % 2], 1, me);
        gpushmem_dev_uint32_put_nbi((uint32_t *)&words[2], (const uint32_t *)&own[i % 2], 1, me);
        gpushmem_dev_ushort_put((unsigned short *)&words[3], (const unsigned short *)&own[i % 2], 1,
                                me);
        gpushmem_dev_quiet(); // else the other block would wait behind a full ring each time
    }
    for (int i = 0; blockIdx.x == 1 && i < FLIPS; i++) {
        for (int k = 0; k < 2; k++) {
            uint64_t word = gpushmem_dev_uint64_g(&words[k], me);
            gpushmem_dev_uint64_get(seen, &words[k], 1, me);
            EXPECT(errors, !word || !~word);
            EXPECT(errors, !*seen || !~*seen);
        }
        uint32_t half = gpushmem_dev_uint32_g((const uint32_t *)&words[2], me);
        unsigned short quarter = gpushmem_dev_ushort_g((const unsigned short *)&words[3], me);
        EXPECT(errors, !half || half == 0xffffffffu);
        EXPECT(errors, !quarter || quarter == 0xffff);
    }
    if (blockIdx.x == 1)
        store(&words[16], 1);
}

// Nothing to wait for; and where objects are.
__global__ void small_things(uint64_t *words, int *errors)
{
    const int skip[2] = {1, 1};
    size_t indices[2];
    int me = gpushmem_dev_my_pe();
    EXPECT(errors,
           gpushmem_dev_uint64_wait_until_any(words, 2, skip, GPUSHMEM_CMP_NE, 0) == SIZE_MAX);
    EXPECT(errors,
           gpushmem_dev_uint64_wait_until_some(words, 2, indices, skip, GPUSHMEM_CMP_NE, 0) == 0);
    gpushmem_dev_uint64_wait_until_all(words, 2, skip, GPUSHMEM_CMP_NE, 0);
    EXPECT(errors, gpushmem_dev_uint64_test_all(words, 2, skip, GPUSHMEM_CMP_NE, 0));
    EXPECT(errors, gpushmem_dev_ptr(words, me) == words);
    EXPECT(errors, gpushmem_dev_ptr(words, gpushmem_dev_n_pes()) == nullptr);
    for (int pe = 0; pe < gpushmem_dev_n_pes(); pe++) {
        uint64_t *there = (uint64_t *)gpushmem_dev_ptr(words, pe);
        if (there)
            *(volatile uint64_t *)&there[1 + me] = 77;
    }
    gpushmem_dev_barrier_all();
    for (int pe = 0; pe < gpushmem_dev_n_pes(); pe++)
        EXPECT(errors, !gpushmem_dev_ptr(words, pe) || *(volatile uint64_t *)&words[1 + pe] == 77);
}

__global__ void put_to(uint64_t *word, int pe)
{
    gpushmem_dev_uint64_p(word, 1, pe);
    gpushmem_dev_quiet();
}

__global__ void fetch_from(uint64_t *word, int pe, uint64_t *result)
{
    *result = gpushmem_dev_uint64_atomic_fetch_add(word, 1, pe);
}

__global__ void quiet_pe(int pe)
{
    gpushmem_dev_pe_quiet(pe);
}

#define REFUSED(pe)                                                                                \
    do {                                                                                           \
        char name[32];                                                                             \
        snprintf(name, sizeof name, "PE %d", pe);                                                  \
        CHECK(gpushmem_launch_wait(NULL) == GPUSHMEM_ERR_PE);                                      \
        if (!strstr(gpushmem_last_error(), name)) {                                                \
            fprintf(stderr, "%s:%d: '%s' is not in '%s'\n", __FILE__, __LINE__, name,              \
                    gpushmem_last_error());                                                        \
            check_failures++;                                                                      \
        }                                                                                          \
    } while (0)

// Without GPUSHMEM_DEVICE_CHECKS: what goes through a ring is refused there.
static void test_no_such_pe(uint64_t *words, int n)
{
    const int pes[] = {n, -1, GPUSHMEM_DEV_NEAR_PEERS + n, INT_MIN};
    gpushmem_dev dev;
    CHECK_OK(gpushmem_device_handle(&dev));
    for (int pe : pes) {
        CHECK_OK(GPUSHMEM_LAUNCH(quiet_pe, 1, 1, NULL, pe));
        REFUSED(pe);
        if (dev.near_away[0])
            continue;
        CHECK_OK(GPUSHMEM_LAUNCH(put_to, 1, 1, NULL, &words[0], pe));
        REFUSED(pe);
        check_clear(&words[1], 8);
        CHECK_OK(GPUSHMEM_LAUNCH(fetch_from, 1, 1, NULL, &words[0], pe, &words[1]));
        REFUSED(pe);
        CHECK(check_read(&words[1]) == 0);
    }
}

// No PE is still in the test before, and none in the next.
static void clear(uint64_t *words)
{
    CHECK_OK(gpushmem_barrier_all());
    check_clear(words, (WORDS + 1) * sizeof *words);
    CHECK_OK(gpushmem_barrier_all());
}

__global__ void wait_for_all(uint64_t *words)
{
    gpushmem_dev_uint64_wait_until_all(words, WORDS, nullptr, GPUSHMEM_CMP_NE, 0);
}

__global__ void wait_for_less(int *word, int *status)
{
    *status = gpushmem_dev_int_wait_until_all(word, 1, nullptr, GPUSHMEM_CMP_LT, -7);
}

// The forms with a status: what they find, or why they end. words[1] is 5, the others are 0.
__global__ void with_status(uint64_t *words, int *errors)
{
    const uint64_t each[4] = {1, 5, 1, 0};
    size_t at[4] = {9, 9, 9, 9}, index = 9, count = 9;
    EXPECT(errors, gpushmem_dev_uint64_wait_until_any_status(words, 4, nullptr, GPUSHMEM_CMP_EQ, 5,
                                                             &index) == 0 &&
                       index == 1);
    EXPECT(errors, gpushmem_dev_uint64_wait_until_some_vector_status(
                       words, 4, at, nullptr, GPUSHMEM_CMP_EQ, each, &count) == 0 &&
                       count == 2 && at[0] == 1 && at[1] == 3);
    EXPECT(errors, gpushmem_dev_uint64_wait_until_some_status(words, 0, at, nullptr,
                                                              GPUSHMEM_CMP_EQ, 5, &count) == 0 &&
                       count == 0);
    EXPECT(errors, gpushmem_dev_uint64_wait_until_any_vector_status(
                       words, 0, nullptr, GPUSHMEM_CMP_EQ, each, &index) == 0 &&
                       index == SIZE_MAX);
}

// None of the words becomes 6. What tells of it stays as it is.
__global__ void status_in_vain(uint64_t *words, int some, int *errors)
{
    size_t at[4], found = 9;
    int status = some ? gpushmem_dev_uint64_wait_until_some_status(words, 4, at, nullptr,
                                                                   GPUSHMEM_CMP_EQ, 6, &found)
                      : gpushmem_dev_uint64_wait_until_any_status(words, 4, nullptr,
                                                                  GPUSHMEM_CMP_EQ, 6, &found);
    EXPECT(errors, status == GPUSHMEM_ERR_TIMEOUT && found == 9);
}

static void test_status_in_vain(uint64_t *words, int *errors)
{
    size_t at[4], found = 9;
    for (int some = 0; some < 2; some++) {
        CHECK_OK(GPUSHMEM_LAUNCH(status_in_vain, 1, 1, NULL, words, some, errors));
        CHECK(gpushmem_launch_wait(NULL) == GPUSHMEM_ERR_TIMEOUT);
    }
    // the host's own
    CHECK(gpushmem_uint64_wait_until_any_status(words, 4, NULL, GPUSHMEM_CMP_EQ, 6, &found) ==
          GPUSHMEM_ERR_TIMEOUT);
    CHECK(gpushmem_uint64_wait_until_some_status(words, 4, at, NULL, GPUSHMEM_CMP_EQ, 6, &found) ==
          GPUSHMEM_ERR_TIMEOUT);
    CHECK(found == 9);
}

// usage: device_edges [vain]; vain: WORDS words of which none comes are waited for once, not one
// after the other
int main(int argc, char **argv)
{
    check_begin();
    int n = gpushmem_n_pes();
    uint64_t *words = (uint64_t *)gpushmem_calloc(WORDS + 1, 8);
    char *boxes = (char *)gpushmem_malloc(3 * PARCEL);
    int *errors = check_errors_begin();
    if (argc > 1 && !strcmp(argv[1], "vain")) {
        CHECK_OK(GPUSHMEM_LAUNCH(wait_for_all, 1, 1, NULL, words));
        CHECK(gpushmem_launch_wait(NULL) == GPUSHMEM_ERR_TIMEOUT);
        gpushmem_uint64_p(words, (uint64_t)-5, gpushmem_my_pe());
        CHECK_OK(gpushmem_quiet());
        CHECK_OK(GPUSHMEM_LAUNCH(wait_for_less, 1, 1, NULL, (int *)words, errors));
        CHECK(gpushmem_launch_wait(NULL) == GPUSHMEM_ERR_TIMEOUT);
        CHECK(strstr(gpushmem_last_error(), "which is -5, to be < -7"));
        CHECK(check_read(errors) == GPUSHMEM_ERR_TIMEOUT);
        check_clear(errors, sizeof *errors);
        test_status_in_vain(words, errors);
    } else {
        RUN(nothing, 1, THREADS, errors);
        RUN(flicker, 2, 1, words, errors);
        clear(words);
        RUN(in_turn, TURNS_OF, 1, words);
        CHECK(check_read(&words[0]) == TURNS);
        clear(words);
        RUN(handed_over<false>, TURNS_OF, 1, words, boxes, boxes + PARCEL, boxes + 2 * PARCEL,
            errors);
        clear(words);
        RUN(handed_over<true>, TURNS_OF, 1, words, boxes, boxes + PARCEL, boxes + 2 * PARCEL,
            errors);
        clear(words);
        RUN(fenced_over, TURNS_OF, 1, words, boxes, boxes + PARCEL, errors);
        clear(words);
        RUN(whole, 2, 1, words, errors);
        clear(words);
        RUN(small_things, 1, 1, words, errors);
        clear(words);
        CHECK_OK(gpushmem_uint64_p(&words[1], 5, gpushmem_my_pe()));
        CHECK_OK(gpushmem_quiet());
        RUN(with_status, 1, 1, words, errors);
        clear(words);
        test_no_such_pe(words, n);
    }
    check_errors_end(__FILE__, errors);
    gpushmem_free(boxes);
    gpushmem_free(words);
    return check_end("edges");
}
