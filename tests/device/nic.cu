// SPDX-License-Identifier: BSD-3-Clause
// Kernels that post to the NIC themselves: each operation takes the requests that it should, and no
// other way; queues wrap around, are full, and are shared by threads of several kernels. For CPU
// threads and the software HCA, whose queues the host may look into.
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "check.h"

enum { WORDS = 1024, THREADS = 4, BLOCKS = 2 };

struct shared {
    uint64_t word, sum, other, signal, sums[THREADS * BLOCKS];
    uint64_t from[WORDS], to[WORDS];
    uint32_t half[2];
};

static gpushmem_dev dev;

static gpushmem_nic_queue *queue_to(int pe)
{
    return &gpushmem_nic_queues(dev.nic)[pe];
}

static uint64_t posted_to(int pe)
{
    return __atomic_load_n(&queue_to(pe)->head, __ATOMIC_ACQUIRE);
}

// How many requests the kernel posts there by itself.
#define POSTS(pe, n, kernel, blocks, threads, ...)                                                 \
    do {                                                                                           \
        uint64_t before = posted_to(pe);                                                           \
        RUN(kernel, blocks, threads, __VA_ARGS__);                                                 \
        if (posted_to(pe) - before != (uint64_t)(n))                                               \
            fprintf(stderr, "%s: %llu requests\n", #kernel,                                        \
                    (unsigned long long)(posted_to(pe) - before));                                 \
        CHECK(posted_to(pe) - before == (uint64_t)(n));                                            \
    } while (0)

// The first operation goes through the ring, and asks for the queue. Not many while it comes: tests
// of failures count requests.
__global__ void meet(shared *s, const uint32_t *state, int pe)
{
    for (int i = 0; i < 200000 && __atomic_load_n(state, __ATOMIC_ACQUIRE) == GPUSHMEM_NIC_NONE;
         i++) {
        gpushmem_dev_uint64_p(&s->word, 1, pe);
        gpushmem_dev_quiet();
        __nanosleep(100000);
    }
}

__global__ void put_one(shared *s, uint64_t value, int pe)
{
    gpushmem_dev_uint64_p(&s->word, value, pe);
    gpushmem_dev_quiet();
}

// What is carried within a request, and what is not.
// A context has a queue of its own: the first operation through its ring asks for it.
__global__ void meet_by_context(shared *s, const uint32_t *state, gpushmem_dev_ctx ctx, int pe)
{
    for (int i = 0; i < 200000 && __atomic_load_n(state, __ATOMIC_ACQUIRE) == GPUSHMEM_NIC_NONE;
         i++) {
        gpushmem_dev_ctx_uint64_p(ctx, &s->word, 1, pe);
        gpushmem_dev_ctx_quiet(ctx);
        __nanosleep(100000);
    }
}

__global__ void put_by_context(shared *s, gpushmem_dev_ctx ctx, int n, int pe)
{
    for (int i = 1; i <= n; i++)
        gpushmem_dev_ctx_uint64_p(ctx, &s->to[2], (uint64_t)i, pe);
}

__global__ void put_sizes(shared *s, int pe)
{
    for (int bytes : {1, 12, 13, 28, 29, 4096}) {
        memset(s->from, bytes, sizeof s->from);
        gpushmem_dev_putmem(s->to, s->from, (size_t)bytes, pe);
        gpushmem_dev_quiet();
        gpushmem_dev_getmem(s->from + WORDS / 2, s->to, (size_t)bytes, pe);
        const char *back = (const char *)(s->from + WORDS / 2);
        for (int i = 0; i < bytes; i++)
            if (back[i] != (char)bytes)
                gpushmem_dev_uint64_atomic_inc(&s->other, gpushmem_dev_my_pe());
    }
}

__global__ void values(shared *s, int pe, int *wrong)
{
    gpushmem_dev_uint64_p(&s->word, 0x0102030405060708, pe);
    gpushmem_dev_uint16_p((uint16_t *)&s->other + 1, 0x1122, pe);
    gpushmem_dev_quiet();
    *wrong += gpushmem_dev_uint64_g(&s->word, pe) != 0x0102030405060708;
    *wrong += gpushmem_dev_uint8_g((uint8_t *)&s->word + 2, pe) != 6;
    *wrong += gpushmem_dev_uint32_g((uint32_t *)&s->other, pe) != 0x11220000;
}

__global__ void atomics(shared *s, int pe, int *wrong)
{
    *wrong += gpushmem_dev_uint64_atomic_fetch_add(&s->sum, 5, pe) != 0;
    gpushmem_dev_uint64_atomic_add(&s->sum, (uint64_t)1 << 40, pe);
    *wrong += gpushmem_dev_uint64_atomic_fetch(&s->sum, pe) != (((uint64_t)1 << 40) + 5);
    *wrong +=
        gpushmem_dev_uint64_atomic_compare_swap(&s->sum, 1, 2, pe) != (((uint64_t)1 << 40) + 5);
    *wrong += gpushmem_dev_uint64_atomic_compare_swap(&s->sum, ((uint64_t)1 << 40) + 5, 7, pe) !=
              (((uint64_t)1 << 40) + 5);
    *wrong += gpushmem_dev_uint64_atomic_fetch(&s->sum, pe) != 7;
}

// What the NIC has no request for: a read, and a compare-and-swap that finds what was read.
__global__ void changes(shared *s, int pe, int *wrong)
{
    *wrong += gpushmem_dev_uint64_atomic_swap(&s->sum, 0xff00, pe) != 7;
    *wrong += gpushmem_dev_uint64_atomic_fetch_and(&s->sum, 0x1f00, pe) != 0xff00;
    *wrong += gpushmem_dev_uint64_atomic_fetch_or(&s->sum, 0xf, pe) != 0x1f00;
    *wrong += gpushmem_dev_uint64_atomic_fetch_xor(&s->sum, 0x1f08, pe) != 0x1f0f;
    *wrong += gpushmem_dev_uint32_atomic_fetch((uint32_t *)&s->sum, pe) != 7;
    *wrong += gpushmem_dev_uint32_atomic_fetch((uint32_t *)&s->sum + 1, pe) != 0;
}

// Threads that change one word at once: an odd number of times each, so a bit that is missing is a
// change that was lost.
__global__ void flips(uint64_t *word, int rounds, int pe)
{
    unsigned me = blockIdx.x * blockDim.x + threadIdx.x;
    for (int i = 0; i < 2 * rounds + 1; i++)
        gpushmem_dev_uint64_atomic_fetch_xor(word, (uint64_t)1 << me, pe);
}

__global__ void signals(shared *s, int pe)
{
    s->from[0] = 77;
    gpushmem_dev_uint64_put_signal(s->to, s->from, 1, &s->signal, 3, GPUSHMEM_SIGNAL_SET, pe);
    gpushmem_dev_uint64_put_signal_nbi(s->to + 1, s->from, 100, &s->signal, 4, GPUSHMEM_SIGNAL_ADD,
                                       pe);
    gpushmem_dev_signal_op(&s->signal, 10, GPUSHMEM_SIGNAL_ADD, pe);
    gpushmem_dev_quiet();
}

// Many more than the queue holds, and than its 16 bits of a position count.
__global__ void flood(shared *s, int rounds, int pe)
{
    unsigned me = blockIdx.x * blockDim.x + threadIdx.x;
    for (int i = 1; i <= rounds; i++) {
        gpushmem_dev_uint64_p(&s->to[me], (uint64_t)i, pe);
        if (i % 64 == 0)
            gpushmem_dev_uint64_atomic_inc(&s->sums[me], pe);
        if (i % 1024 == 0)
            s->from[me] += gpushmem_dev_uint64_atomic_fetch_inc(&s->sum, pe) > 1u << 30;
    }
}

static uint32_t reserved, go; // between host and kernels

static uint32_t get(const uint32_t *word)
{
    return __atomic_load_n(word, __ATOMIC_ACQUIRE);
}

static void set(uint32_t *word, uint32_t value)
{
    __atomic_store_n(word, value, __ATOMIC_RELEASE);
}

static bool is_written(const gpushmem_nic_queue *q, uint64_t position)
{
    const uint64_t *mark = &q->marks[position & ((1u << q->marks_log2) - 1)];
    return gpushmem_nic_end(__atomic_load_n(mark, __ATOMIC_ACQUIRE)) > position;
}

// Reserves its place long before it writes there.
__global__ void put_late(shared *s, uint64_t value, int pe)
{
    gpushmem_nic_queue *q = &gpushmem_nic_queues(gpsh_dev_implicit.nic)[pe];
    const uint64_t payload[4] = {value, 0, 0, 0};
    struct gpsh_dev_posting<1> posting = {
        q, gpsh_dev_nic_reserve(q, GPSH_LANE_ALONE, 1, q->done, 0),
            {gpsh_dev_wqe_inline(&s->word, payload, 8)}, false, false
    };
    set(&reserved, 1);
    while (!get(&go))
        usleep(100);
    gpsh_dev_nic_fill<1>(posting);
}

// Each waits for all that it and others have under way.
__global__ void put_and_quiet(shared *s, int rounds, int first, int pe)
{
    unsigned me = (unsigned)first + blockIdx.x * blockDim.x + threadIdx.x;
    for (int i = 1; i <= rounds; i++) {
        gpushmem_dev_uint64_p(&s->to[me], (uint64_t)i, pe);
        gpushmem_dev_quiet();
        s->from[me] = gpushmem_dev_uint64_g(&s->to[me], pe);
        if (s->from[me] != (uint64_t)i)
            gpushmem_dev_uint64_atomic_inc(&s->other, gpushmem_dev_my_pe());
    }
}

// A thread that looks for completions, and sleeps from when it has read how far the queue is until
// others have consumed them.
__global__ void late_look(shared *s, int pe, int *wrong)
{
    gpushmem_nic_queue *q = &gpushmem_nic_queues(gpsh_dev_implicit.nic)[pe];
    const uint64_t polled = q->polled, done = q->done;
    for (int i = 0; i < 5; i++)
        gpushmem_dev_uint64_p(&s->word, 1, pe);
    gpushmem_dev_quiet();
    const uint64_t now = q->polled;
    *wrong += now == polled || q->done != q->head;
    gpsh_dev_nic_consume(q, polled, done, q->head);
    *wrong += q->polled != now || q->done != q->head;
}

__global__ void get_one(shared *s, int pe)
{
    s->from[0] = gpushmem_dev_uint64_g(&s->word, pe);
}

__global__ void put_to_two(shared *s)
{
    for (int pe = 1; pe < 3; pe++) {
        gpushmem_dev_uint64_p(&s->word, 7, pe);
        gpushmem_dev_pe_quiet(pe);
    }
}

// Without finalize: a queue pair, or a PE, is lost.
static int end_at_once(const char *told)
{
    fprintf(stderr, "nic: %d failures, told: %s\n", check_failures, told);
    fflush(stderr);
    _exit(check_failures != 0);
}

static bool has_failed(int pe)
{
    return __atomic_load_n(&queue_to(pe)->failed, __ATOMIC_ACQUIRE);
}

static bool flood_fails(shared *s, int pe)
{
    CHECK_OK(GPUSHMEM_LAUNCH(flood, BLOCKS, THREADS, NULL, s, 3000, pe));
    return gpushmem_launch_wait(NULL) != 0 || gpushmem_quiet() != 0;
}

// One of many requests fails: no thread hangs, and the host says what the proxy would have said.
static int fail(shared *s, int pe, const char *wanted)
{
    char begin[96];
    snprintf(begin, sizeof begin, "a kernel's operation towards PE %d failed: ", pe);
    bool fails = flood_fails(s, pe);
    for (int i = 0; i < 1000 && !fails && !strcmp(wanted, "PE 1"); i++)
        fails = flood_fails(s, pe); // PE 1 has not died yet
    CHECK(fails);
    const char *told = gpushmem_last_error();
    CHECK(strstr(told, wanted) &&
          (!strcmp(wanted, "PE 1") || !strncmp(told, begin, strlen(begin))));
    CHECK(queue_to(pe)->state == GPUSHMEM_NIC_OUT);
    return end_at_once(told);
}

// A flag behind its data, by every two of: queue, ring.
__global__ void ordered(shared *s, int rounds, int pe, int me_first, int *wrong)
{
    for (uint64_t i = 1; i <= (uint64_t)rounds; i++) {
        if (!me_first)
            gpushmem_dev_uint64_wait_until(&s->signal, GPUSHMEM_CMP_EQ, i);
        if (!me_first && (s->to[0] != i || s->half[0] != (uint32_t)i || s->sum != i))
            ++*wrong;
        gpushmem_dev_uint32_atomic_set(&s->half[0], (uint32_t)i, pe); // through the ring
        gpushmem_dev_uint64_atomic_inc(&s->sum, pe);                  // a read would be late
        gpushmem_dev_fence();
        gpushmem_dev_uint64_p(s->to, i, pe);
        gpushmem_dev_fence();
        if (i % 2)
            gpushmem_dev_uint64_p(&s->signal, i, pe);
        else
            gpushmem_dev_uint64_atomic_set(&s->signal, i, pe); // through the ring
        if (me_first)
            gpushmem_dev_uint64_wait_until(&s->signal, GPUSHMEM_CMP_EQ, i);
        if (me_first && (s->to[0] != i || s->half[0] != (uint32_t)i || s->sum != i))
            ++*wrong;
    }
}

// A context of kernels, whose queue towards `pe` is up.
static gpushmem_nic_queue *create_context(shared *s, int pe, gpushmem_ctx_t *ctx,
                                          gpushmem_dev_ctx *on_device)
{
    CHECK_OK(gpushmem_ctx_create(0, ctx));
    CHECK_OK(gpushmem_ctx_device(*ctx, on_device));
    gpushmem_nic_queue *q = &gpushmem_nic_queues(dev.contexts[on_device->number - 1].dev.nic)[pe];
    RUN(meet_by_context, 1, 1, s, &q->state, *on_device, pe);
    return q;
}

// The context's, and no other: nothing is posted to the default one's.
static void check_context(shared *s, int right)
{
    gpushmem_ctx_t ctx;
    gpushmem_dev_ctx on_device;
    gpushmem_nic_queue *q = create_context(s, right, &ctx, &on_device);
    CHECK(q->state == GPUSHMEM_NIC_UP);
    uint64_t first = __atomic_load_n(&q->head, __ATOMIC_ACQUIRE);
    POSTS(right, 0, put_by_context, 1, 1, s, on_device, 3000, right);
    CHECK(__atomic_load_n(&q->head, __ATOMIC_ACQUIRE) - first == 3000);
    CHECK_OK(gpushmem_ctx_destroy(ctx)); // which waits for them
    CHECK_OK(gpushmem_barrier_all());
    CHECK(s->to[2] == 3000);
    CHECK_OK(gpushmem_barrier_all());
}

static void launch_put_and_quiet(gpushmem_stream_t stream, shared *s, int rounds, int first, int pe)
{
    CHECK_OK(GPUSHMEM_LAUNCH(put_and_quiet, BLOCKS, THREADS, stream, s, rounds, first, pe));
}

// Two kernels that wait at the same time, for the same queue. `meddle`: done now and then
// meanwhile.
static void check_two_kernels(shared *s, int rounds, int pe, void (*meddle)(gpushmem_nic_queue *q))
{
    const int n = BLOCKS * THREADS;
    gpushmem_stream_t streams[2];
    for (int i = 0; i < 2; i++) {
        CHECK_OK(gpushmem_stream_create(&streams[i]));
        launch_put_and_quiet(streams[i], s, rounds, i * n, pe);
    }
    for (int i = 0; meddle && i < 50; i++) {
        meddle(queue_to(pe));
        usleep(200);
    }
    for (int i = 0; i < 2; i++) {
        CHECK_OK(gpushmem_launch_wait(streams[i]));
        CHECK_OK(gpushmem_stream_destroy(streams[i]));
    }
    CHECK(s->other == 0);
    for (int i = 0; i < 2 * n; i++)
        CHECK(s->from[i] == (uint64_t)rounds);
}

// Somebody has said that it looks for completions, and is gone.
static void claim_and_go(gpushmem_nic_queue *q)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now); // the clock of CPU threads in kernels
    uint64_t until = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec + GPSH_NIC_LOOKS_NS;
    __atomic_store_n(&q->looked, until, __ATOMIC_RELEASE);
}

// Two streams: in the first a thread has reserved a place, and writes there when it may go.
static void launch_put_late(shared *s, int pe, gpushmem_stream_t (&streams)[2])
{
    set(&reserved, 0);
    set(&go, 0);
    for (int i = 0; i < 2; i++)
        CHECK_OK(gpushmem_stream_create(&streams[i]));
    CHECK_OK(GPUSHMEM_LAUNCH(put_late, 1, 1, streams[0], s, (uint64_t)77, pe));
    for (int i = 0; i < 50000 && !get(&reserved); i++)
        usleep(100);
}

static bool is_near(int pe)
{
    return queue_to(pe)->flags & GPUSHMEM_NIC_NEAR;
}

// A thread that has reserved a place writes it only when others have written behind it: it has the
// turn, and goes over theirs; or it passes the turn on, where they are few and a fence costs more.
static void check_slow(shared *s, int pe, int blocks, int threads, bool goes_over)
{
    gpushmem_nic_queue *q = queue_to(pe);
    gpushmem_stream_t streams[2];
    uint64_t at = posted_to(pe);
    const int n = blocks * threads;
    launch_put_late(s, pe, streams);
    CHECK_OK(GPUSHMEM_LAUNCH(put_and_quiet, blocks, threads, streams[1], s, 1, 0, pe));
    for (int i = 0; i < n; i++) // each is one request behind the one that is not written
        for (int j = 0; j < 50000 && !is_written(q, at + 1 + (uint64_t)i); j++)
            usleep(100);
    for (int i = 0; i < n; i++)
        CHECK(is_written(q, at + 1 + (uint64_t)i));
    CHECK(__atomic_load_n(&q->ready, __ATOMIC_ACQUIRE) == at);
    CHECK(__atomic_load_n(&q->done, __ATOMIC_ACQUIRE) == at);
    set(&go, 1);
    for (int i = 0; i < 2; i++) {
        CHECK_OK(gpushmem_launch_wait(streams[i]));
        CHECK_OK(gpushmem_stream_destroy(streams[i]));
    }
    CHECK(__atomic_load_n(&q->done, __ATOMIC_ACQUIRE) == posted_to(pe));
    CHECK((__atomic_load_n(&q->taken, __ATOMIC_ACQUIRE) > at) == goes_over);
    CHECK(s->other == 0);
}

// Stands in for a record of completions, and how far its queue was when somebody wrote there.
enum { PAGE = 4096 };
static uint32_t *told;
static const gpushmem_nic_queue *watched;
static uint64_t done_then;

static void on_record(int)
{
    done_then = __atomic_load_n(&watched->done, __ATOMIC_ACQUIRE);
    mprotect(told, PAGE, PROT_READ | PROT_WRITE);
}

// The NIC hears that its completions are consumed before other threads hear that there is room, who
// post what the completion queue needs that room for.
static void check_record(shared *s, int pe)
{
    gpushmem_nic_queue *q = queue_to(pe);
    struct sigaction action = {}, before;
    uint32_t *record = q->cq_record;
    const uint8_t log2 = q->record_log2;
    const uint64_t done = q->done;
    action.sa_handler = on_record;
    done_then = UINT64_MAX;
    watched = q;
    told = (uint32_t *)mmap(nullptr, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(told != MAP_FAILED && !sigaction(SIGSEGV, &action, &before));
    q->cq_record = told;
    q->record_log2 = 0;
    RUN(put_one, 1, 1, s, (uint64_t)1, pe);
    q->cq_record = record;
    q->record_log2 = log2;
    sigaction(SIGSEGV, &before, nullptr);
    CHECK(done_then == done && q->done == done + 1);
    __atomic_store_n(record, *told, __ATOMIC_RELEASE);
    munmap(told, PAGE);
}

// Threads that share a queue, and depend on each other as little as they can.
static void check_sharing(shared *s, int pe)
{
    int wrong = 0;
    s->other = 0;
    check_two_kernels(s, 60, pe, NULL);
    check_two_kernels(s, 60, pe, claim_and_go);
    RUN(late_look, 1, 1, s, pe, &wrong);
    CHECK(wrong == 0);
    check_slow(s, pe, BLOCKS, THREADS, true);
    check_slow(s, pe, 1, 2, is_near(pe)); // false: fences of the system
    const uint32_t flags = queue_to(pe)->flags;
    queue_to(pe)->flags |= GPUSHMEM_NIC_NEAR;
    check_slow(s, pe, 1, 2, true);
    queue_to(pe)->flags = flags;
    check_record(s, pe);
}

// In the second stream a thread gives up, since one before it takes long, which then goes on.
static void put_late_get_in_vain(shared *s, int pe, gpushmem_stream_t (&streams)[2])
{
    launch_put_late(s, pe, streams);
    CHECK_OK(GPUSHMEM_LAUNCH(get_one, 1, 1, streams[1], s, pe));
    CHECK(gpushmem_launch_wait(streams[1]) == GPUSHMEM_ERR_TIMEOUT);
    set(&go, 1);
    (void)gpushmem_launch_wait(streams[0]);
}

// A thread that fetches gives up, since one before it takes long, which then rings for both: the
// word lands late, in a place that nobody else may have. And a request that fails before those that
// were given up is told.
static int give_up(shared *s, int pe)
{
    gpushmem_nic_queue *q = queue_to(pe);
    gpushmem_stream_t streams[2];
    const uint64_t at = posted_to(pe), *landing = q->landing ? q->landing : &dev.replies[0].low;
    put_late_get_in_vain(s, pe, streams);
    CHECK(q->error == GPUSHMEM_ERR_TIMEOUT && q->failed == ~(at + 1) && is_written(q, at + 1));
    for (int i = 0; i < 50000 && __atomic_load_n(landing, __ATOMIC_ACQUIRE) != 77; i++)
        usleep(100);
    CHECK(*landing == 77 && s->from[0] == 0);
    CHECK(dev.reply_owners[0] == GPUSHMEM_REPLY_BUSY);
    gpsh_dev_nic_take_error(q, at);
    CHECK(gpsh_dev_nic_has_failed(q, at + 1) && !gpsh_dev_nic_has_failed(q, at));
    CHECK(q->error == GPUSHMEM_ERR_TRANSPORT && *q->failure);
    return end_at_once(gpushmem_last_error());
}

// A thread gives up while it waits for room, and so never writes what it has reserved. The one
// before it, which goes on then, rings for itself.
static int find_no_room(shared *s, int pe)
{
    gpushmem_nic_queue *q = queue_to(pe);
    gpushmem_stream_t streams[2];
    const uint64_t at = posted_to(pe);
    const uint32_t depth = q->depth;
    launch_put_late(s, pe, streams);
    __atomic_store_n(&q->depth, 1, __ATOMIC_RELEASE);
    CHECK_OK(GPUSHMEM_LAUNCH(get_one, 1, 1, streams[1], s, pe));
    CHECK(gpushmem_launch_wait(streams[1]) == GPUSHMEM_ERR_TIMEOUT);
    __atomic_store_n(&q->depth, depth, __ATOMIC_RELEASE);
    CHECK(posted_to(pe) == at + 2 && !is_written(q, at + 1) && q->failed == ~(at + 1));
    set(&go, 1);
    (void)gpushmem_launch_wait(streams[0]);
    for (int i = 0; i < 20000 && __atomic_load_n(&s->word, __ATOMIC_ACQUIRE) != 77; i++)
        usleep(100);
    CHECK(s->word == 77);
    return end_at_once(gpushmem_last_error());
}

// The NIC refuses a request before those that a thread has given up, and no thread looks for its
// completion: the host does, and tells that as well.
static int refuse(shared *s, int pe)
{
    gpushmem_nic_queue *q = queue_to(pe);
    gpushmem_stream_t streams[2];
    const uint64_t at = posted_to(pe);
    q->rkey = ~q->rkey;
    put_late_get_in_vain(s, pe, streams);
    int status = 0;
    for (int i = 0; i < 50000 && !status; i++) {
        usleep(100);
        status = gpushmem_device_error();
    }
    CHECK(status == GPUSHMEM_ERR_TRANSPORT);
    CHECK(q->failed == ~at && q->error == GPUSHMEM_ERR_TRANSPORT);
    return end_at_once(gpushmem_last_error());
}

static void expect_refused_by(const char *wanted)
{
    CHECK(gpushmem_device_error() == GPUSHMEM_ERR_TRANSPORT);
    CHECK(strstr(gpushmem_last_error(), wanted));
    fprintf(stderr, "nic: told: %s\n", gpushmem_last_error());
}

// Requests of one kernel towards two PEs fail: the host tells of each, once.
static int fail_towards_two(shared *s, int me)
{
    for (int pe = 1; me == 0 && pe < 3; pe++) {
        RUN(meet, 1, 1, s, &queue_to(pe)->state, pe);
        queue_to(pe)->rkey = ~queue_to(pe)->rkey;
    }
    CHECK_OK(gpushmem_barrier_all());
    if (me == 0) {
        CHECK_OK(GPUSHMEM_LAUNCH(put_to_two, 1, 1, NULL, s));
        for (int i = 0; i < 50000 && !(has_failed(1) && has_failed(2)); i++)
            usleep(100);
        bool first = false;
        CHECK(gpushmem_launch_wait(NULL) == GPUSHMEM_ERR_TRANSPORT);
        first = strstr(gpushmem_last_error(), "towards PE 1 failed: ") != NULL;
        CHECK(first || strstr(gpushmem_last_error(), "towards PE 2 failed: "));
        expect_refused_by(first ? "towards PE 2 failed: " : "towards PE 1 failed: ");
        CHECK_OK(gpushmem_device_error());
    }
    CHECK_OK(gpushmem_barrier_all());
    fprintf(stderr, "nic: PE %d: %d failures\n", me, check_failures);
    fflush(stderr);
    return check_end("nic");
}

// The sentence names the rail of the context's queue, which is not the first one.
static int fail_by_rail(shared *s, int pe)
{
    gpushmem_ctx_t ctx;
    gpushmem_dev_ctx on_device;
    gpushmem_nic_queue *q = create_context(s, pe, &ctx, &on_device);
    q->rkey = ~q->rkey;
    CHECK_OK(GPUSHMEM_LAUNCH(put_by_context, 1, 1, NULL, s, on_device, 1, pe));
    for (int i = 0; i < 50000 && !__atomic_load_n(&q->failed, __ATOMIC_ACQUIRE); i++)
        usleep(100);
    (void)gpushmem_launch_wait(NULL);
    CHECK(strstr(gpushmem_last_error(), " over softhca1:1: the address is outside its heap"));
    return end_at_once(gpushmem_last_error());
}

// usage: device_nic [ROUNDS | fails SENTENCE | dies | gives_up | no_room | refused | two | rail]
int main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "9000";
    int rounds = atoi(mode);
    int me = check_begin(), n = gpushmem_n_pes(), right = (me + 1) % n, left = (me + n - 1) % n,
        wrong = 0;
    shared *s = (shared *)gpushmem_calloc(1, sizeof *s);
    CHECK_OK(gpushmem_device_handle(&dev));
    CHECK(dev.nic);
    if (!dev.nic)
        return check_end("nic");
    if (!strcmp(mode, "two"))
        return fail_towards_two(s, me);
    if (!strcmp(mode, "rail"))
        return fail_by_rail(s, right);
    RUN(meet, 1, 1, s, &queue_to(right)->state, right);
    CHECK(queue_to(right)->state == GPUSHMEM_NIC_UP);
    CHECK_OK(gpushmem_barrier_all());
    if (!strcmp(mode, "fails"))
        return fail(s, right, argv[2]);
    if (!strcmp(mode, "gives_up"))
        return give_up(s, right);
    if (!strcmp(mode, "no_room"))
        return find_no_room(s, right);
    if (!strcmp(mode, "refused"))
        return refuse(s, right);
    if (!strcmp(mode, "dies")) {
        if (me == 1)
            kill(getpid(), SIGKILL);
        return fail(s, right, "PE 1");
    }
    POSTS(right, 1, put_one, 1, 1, s, (uint64_t)me + 1, right);
    CHECK_OK(gpushmem_barrier_all());
    CHECK(s->word == (uint64_t)left + 1);
    CHECK_OK(gpushmem_barrier_all());
    check_context(s, right);
    POSTS(right, 12, put_sizes, 1, 1, s, right);
    CHECK(s->other == 0);
    CHECK_OK(gpushmem_barrier_all());
    POSTS(right, 5, values, 1, 1, s, right, &wrong);
    POSTS(right, 6, atomics, 1, 1, s, right, &wrong);
    POSTS(right, 10, changes, 1, 1, s, right, &wrong);
    RUN(flips, BLOCKS, THREADS, &s->to[WORDS - 1], 25, right);
    CHECK(wrong == 0);
    CHECK_OK(gpushmem_barrier_all());
    CHECK(s->sum == 7);
    CHECK(s->to[WORDS - 1] == (1u << BLOCKS * THREADS) - 1);
    CHECK_OK(gpushmem_barrier_all());
    POSTS(right, 5, signals, 1, 1, s, right);
    CHECK_OK(gpushmem_barrier_all());
    CHECK(s->to[0] == 77 && s->to[1] == 77 && s->signal == 17);
    CHECK_OK(gpushmem_barrier_all());
    // no quiet in the kernel: the host's covers it
    POSTS(right, BLOCKS * THREADS * (rounds + rounds / 64 + rounds / 1024), flood, BLOCKS, THREADS,
          s, rounds, right);
    CHECK_OK(gpushmem_quiet());
    CHECK_OK(gpushmem_barrier_all());
    for (int i = 0; i < BLOCKS * THREADS; i++)
        CHECK(s->to[i] == (uint64_t)rounds && s->sums[i] == (uint64_t)(rounds / 64));
    CHECK(s->sum == 7 + (uint64_t)(BLOCKS * THREADS * (rounds / 1024)));
    CHECK_OK(gpushmem_barrier_all()); // all have looked at the words that it overwrites
    check_sharing(s, right);
    s->signal = s->sum = 0;
    CHECK_OK(gpushmem_barrier_all());
    RUN(ordered, 1, 1, s, 50, right, me == 0, &wrong);
    CHECK(wrong == 0);
    gpushmem_free(s);
    return check_end("nic");
}
