// SPDX-License-Identifier: BSD-3-Clause
// Collectives in kernels: every operation against what one thread works out from all sources.
#include <string.h>

#include "kernel_check.cuh"
#if !defined(__CUDACC__)
#include "gpushmem/device/coll_stream.cuh"
#endif

enum { MOST = 132 << 10, GUARD = 64 };

static int me, n;
static char *source, *dest; // symmetric
static struct gpushmem_dev dev;

struct what {
    struct gpushmem_coll_op op;
    int scope; // 0 thread, 1 warp, 2 block
};

enum { STREAM = 3, GRID = 4 }; // in place of a scope

// Close to where the 32 bits of a packet's number begin again.
__global__ void set_epochs(struct gpushmem_dev d, uint64_t value)
{
    for (int i = 0; i < GPUSHMEM_TEAM_EPOCHS; i++)
        d.teams[0].epochs[i] = value;
}

// What 2^32 operations of the first channel leave, while streams have had few.
__global__ void go_far(struct gpushmem_dev d, gpushmem_team_t team)
{
    uint64_t *epochs = d.teams[team & GPUSHMEM_TEAM_SLOT_MASK].epochs;
    epochs[0] = ((uint64_t)1 << 32) + epochs[GPUSHMEM_TEAM_STREAM_EPOCHS] - 3;
}

__global__ void look_at_team(struct gpushmem_dev d, int *is_small)
{
    const struct gpushmem_dev_team team = gpsh_dev_team_read(&d.teams[GPUSHMEM_TEAM_WORLD]);
    *is_small = gpsh_dev_small_team(team, GPUSHMEM_TEAM_WORLD, false) +
                2 * gpsh_dev_small_team(team, GPUSHMEM_TEAM_WORLD, true);
}

__global__ void run(struct gpushmem_dev d, struct what what, int *statuses)
{
    struct gpsh_dev_group groups[] = {gpsh_dev_group_of<gpsh_scope_thread>(),
                                      gpsh_dev_group_of<gpsh_scope_warp>(),
                                      gpsh_dev_group_of<gpsh_scope_block>()};
    int status = gpsh_dev_coll_run(d, groups[what.scope], what.op);
    if (status)
        *statuses = status;
}

#if defined(__CUDACC__)
static void run_grid(const struct gpushmem_coll_op &)
{
}
#else
__global__ void small_of_stream(struct gpushmem_dev d, struct gpushmem_coll_op op)
{
    gpsh_dev_stream_small(d, d.teams[GPUSHMEM_TEAM_WORLD], op);
}

// Some members have a thread for each unit and take few instructions, in a block or in several,
// and some have fewer threads.
static void run_grid(const struct gpushmem_coll_op &op)
{
    const int turn = ((int)op.n + op.kind + me) % 3, units = (int)(op.n * op.width + 7) / 8;
    RUN(small_of_stream, turn ? 1 : 4, turn == 1 ? 5 : turn ? units : (units + 3) / 4, dev, op);
}
#endif

// ---- What is to come ----

// Element i of a PE's source: small, so that products and sums stay exact where they should.
template <typename T> static T value(int pe, uint64_t i, int seed)
{
    uint64_t x = (uint64_t)(pe + 1) * 2654435761u + i * 40503u + (uint64_t)seed * 977u;
    return (T)((x >> 7) % 5 + 1);
}
template <> float value<float>(int pe, uint64_t i, int seed)
{
    return 1.0f / (float)(1 + (pe * 7 + (int)(i % 1000) * 3 + seed) % 97); // rounds at every step
}

template <typename T> static T fold(T a, T b, int how);
template <typename T> static T fold_integer(T a, T b, int how)
{
    switch (how) {
    case GPUSHMEM_COLL_AND: return (T)(a & b);
    case GPUSHMEM_COLL_OR: return (T)(a | b);
    case GPUSHMEM_COLL_XOR: return (T)(a ^ b);
    case GPUSHMEM_COLL_MIN: return a < b ? a : b;
    case GPUSHMEM_COLL_MAX: return a > b ? a : b;
    case GPUSHMEM_COLL_SUM: return (T)((uint64_t)a + (uint64_t)b);
    default: return (T)((uint64_t)a * (uint64_t)b);
    }
}
template <typename T> static T fold_real(T a, T b, int how)
{
    switch (how) {
    case GPUSHMEM_COLL_MIN: return a < b ? a : b;
    case GPUSHMEM_COLL_MAX: return a > b ? a : b;
    case GPUSHMEM_COLL_SUM: return a + b;
    default: return a * b;
    }
}
template <typename T> static T fold(T a, T b, int how)
{
    return fold_integer<T>(a, b, how);
}
template <> float fold<float>(float a, float b, int how)
{
    return fold_real<float>(a, b, how);
}

template <typename T> static T folded(uint64_t i, int first, int end, int seed, int how)
{
    if (first >= end)
        return (T)0;
    T result = value<T>(first, i, seed);
    for (int pe = first + 1; pe < end; pe++)
        result = fold<T>(result, value<T>(pe, i, seed), how);
    return result;
}

template <typename T> static T expected(const struct gpushmem_coll_op &op, uint64_t i, int seed)
{
    uint64_t count = op.n;
    switch (op.kind) {
    case GPUSHMEM_COLL_BROADCAST: return value<T>(op.root, i, seed);
    case GPUSHMEM_COLL_FCOLLECT: return value<T>((int)(i / count), i % count, seed);
    case GPUSHMEM_COLL_ALLTOALL:
        return value<T>((int)(i / count), (uint64_t)me * count + i % count, seed);
    case GPUSHMEM_COLL_REDUCE: return folded<T>(i, 0, n, seed, op.fold);
    case GPUSHMEM_COLL_REDUCESCATTER:
        return folded<T>((uint64_t)me * count + i, 0, n, seed, op.fold);
    case GPUSHMEM_COLL_INSCAN: return folded<T>(i, 0, me + 1, seed, op.fold);
    default: return folded<T>(i, 0, me, seed, op.fold);
    }
}

static uint64_t source_elements(const struct gpushmem_coll_op &op)
{
    return op.kind == GPUSHMEM_COLL_ALLTOALL || op.kind == GPUSHMEM_COLL_REDUCESCATTER
               ? op.n * (uint64_t)n
               : op.n;
}
static uint64_t dest_elements(const struct gpushmem_coll_op &op)
{
    return op.kind == GPUSHMEM_COLL_ALLTOALL || op.kind == GPUSHMEM_COLL_FCOLLECT
               ? op.n * (uint64_t)n
               : op.n;
}

// ---- One operation ----

static int enqueue_fold(const struct gpushmem_coll_op &op, int *to, const int *from)
{
    switch (op.kind) {
    case GPUSHMEM_COLL_REDUCE: return gpushmem_int_sum_reduce_on_stream(0, to, from, op.n, NULL);
    case GPUSHMEM_COLL_REDUCESCATTER:
        return gpushmem_int_sum_reducescatter_on_stream(0, to, from, op.n, NULL);
    case GPUSHMEM_COLL_INSCAN: return gpushmem_int_sum_inscan_on_stream(0, to, from, op.n, NULL);
    default: return gpushmem_int_sum_exscan_on_stream(0, to, from, op.n, NULL);
    }
}
static int enqueue_fold(const struct gpushmem_coll_op &op, float *to, const float *from)
{
    bool sum = op.fold == GPUSHMEM_COLL_SUM;
    switch (op.kind) {
    case GPUSHMEM_COLL_REDUCE:
        return sum ? gpushmem_float_sum_reduce_on_stream(0, to, from, op.n, NULL)
                   : gpushmem_float_prod_reduce_on_stream(0, to, from, op.n, NULL);
    case GPUSHMEM_COLL_REDUCESCATTER:
        return sum ? gpushmem_float_sum_reducescatter_on_stream(0, to, from, op.n, NULL)
                   : gpushmem_float_prod_reducescatter_on_stream(0, to, from, op.n, NULL);
    case GPUSHMEM_COLL_INSCAN: return gpushmem_float_sum_inscan_on_stream(0, to, from, op.n, NULL);
    default: return gpushmem_float_sum_exscan_on_stream(0, to, from, op.n, NULL);
    }
}
template <typename T> static int enqueue(const struct gpushmem_coll_op &op)
{
    T *to = (T *)op.dest;
    const T *from = (const T *)op.source;
    size_t bytes = op.n * op.width;
    switch (op.kind) {
    case GPUSHMEM_COLL_BROADCAST:
        return gpushmem_broadcastmem_on_stream(0, to, from, bytes, op.root, NULL);
    case GPUSHMEM_COLL_FCOLLECT: return gpushmem_fcollectmem_on_stream(0, to, from, bytes, NULL);
    case GPUSHMEM_COLL_ALLTOALL: return gpushmem_alltoallmem_on_stream(0, to, from, bytes, NULL);
    default: return enqueue_fold(op, to, from);
    }
}

static int *status_word;
static int seeds;

template <typename T>
static void check_op(struct gpushmem_coll_op op, int scope, int threads, uint64_t skew,
                     bool in_place)
{
    static T buffer[(MOST + 2 * GUARD) / sizeof(T)];
    int seed = ++seeds;
    uint64_t from = source_elements(op), to = dest_elements(op);
    if (((from > to ? from : to) + skew) * sizeof(T) > MOST)
        return; // of many PEs
    op.team = 0;
    op.width = sizeof(T);
    op.source = source + GUARD + skew * sizeof(T);
    op.dest = in_place ? (void *)op.source : dest + GUARD + skew * sizeof(T);
    for (uint64_t i = 0; i < from; i++)
        buffer[i] = value<T>(me, i, seed);
    CHECK_OK(gpushmem_putmem((void *)op.source, buffer, from * sizeof(T), me));
    CHECK_OK(gpushmem_quiet());
    if (scope == GRID) {
        run_grid(op);
    } else if (scope == STREAM) {
        CHECK_OK(enqueue<T>(op));
        CHECK_OK(gpushmem_launch_wait(NULL));
    } else {
        RUN(run, 1, threads, dev, (what{op, scope}), status_word);
        CHECK(!check_read(status_word));
    }
    char *first = (char *)op.dest - GUARD;
    CHECK_OK(gpushmem_getmem(buffer, first, to * sizeof(T) + 2 * GUARD, me));
    const char *bytes = (const char *)buffer;
    for (uint64_t i = 0; i < GUARD && !in_place; i++)
        CHECK(bytes[i] == 0x5a && bytes[GUARD + to * sizeof(T) + i] == 0x5a);
    int wrong = 0;
    for (uint64_t i = 0; i < to && wrong < 3; i++) {
        T want = expected<T>(op, i, seed);
        if (memcmp(&want, bytes + GUARD + i * sizeof(T), sizeof want)) {
            wrong++;
            check_failures++;
            fprintf(
                stderr,
                "PE %d: kind %d type %d fold %d n %llu scope %d x %d skew %llu%s: element %llu\n",
                me, op.kind, op.type, op.fold, (unsigned long long)op.n, scope, threads,
                (unsigned long long)skew, in_place ? " in place" : "", (unsigned long long)i);
        }
    }
    memset(buffer, 0x5a, sizeof buffer);
    CHECK_OK(gpushmem_putmem(first, buffer, to * sizeof(T) + 2 * GUARD, me));
    CHECK_OK(gpushmem_quiet());
}

static struct gpushmem_coll_op op_of(int kind, int type, int how, uint64_t count, int root)
{
    struct gpushmem_coll_op op = {};
    op.kind = (uint8_t)kind;
    op.type = (uint8_t)type;
    op.fold = (uint8_t)how;
    op.n = count;
    op.root = root;
    return op;
}

// ---- Broadcasts ----

// One after another, from changing roots: source and dest are aligned differently, a leaf's source
// may be anything, and a collect between tells its numbers in the flags of relayed ones. In
// packets, and around so many parts of 128 bytes for each leaf that they are relayed.
static void test_broadcasts(void)
{
    enum { AT = 32 << 10 };
    static const size_t skews[][2] = {{0, 0}, {1, 0}, {0, 8}, {4, 4}, {3, 3}, {8, 5}};
    static const int parts[] = {1, 17, 18};
    static unsigned char mine[AT], got[AT], guard[3 * AT];
    const char *const nowhere[] = {NULL, (const char *)0xdead000, source};
    memset(guard, 0x5a, sizeof guard);
    for (int round = 0; round < 18; round++) {
        const int root = round * 2 % n, leaves = n > 1 ? n - 1 : 1;
        const size_t bytes = (size_t)(128 * leaves * parts[round % 3] + round / 3 % 3 - 1);
        char *to = dest + GUARD + skews[round % 6][0], *again = dest + 2 * AT,
             *from = source + GUARD + skews[round % 6][1];
        CHECK(bytes < AT - GUARD - 16);
        for (size_t i = 0; i < bytes; i++)
            mine[i] = (unsigned char)((size_t)(root * 59 + round * 31) + i * 7 + i / 250);
        CHECK_OK(gpushmem_putmem(dest, guard, sizeof guard, me));
        CHECK_OK(gpushmem_putmem(from, me == root ? mine : guard, bytes, me));
        CHECK_OK(gpushmem_quiet());
        CHECK_OK(gpushmem_broadcastmem_on_stream(0, to, me == root ? from : nowhere[round % 3],
                                                 bytes, root, NULL));
        CHECK_OK(gpushmem_collectmem_on_stream(0, dest + AT, from, (size_t)me + 1, NULL));
        CHECK_OK(gpushmem_broadcastmem_on_stream(0, again, to, bytes, (root + 1) % n, NULL));
        CHECK_OK(gpushmem_launch_wait(NULL));
        for (const char *block : {to, again}) {
            CHECK_OK(gpushmem_getmem(got, block - 1, bytes + 2, me));
            CHECK(got[0] == 0x5a && !memcmp(got + 1, mine, bytes) && got[bytes + 1] == 0x5a);
        }
    }
    CHECK_OK(gpushmem_putmem(dest, guard, sizeof guard, me));
    CHECK_OK(gpushmem_putmem(source, guard, AT, me));
    CHECK_OK(gpushmem_quiet());
}

// ---- A team in a slot that had another one ----

static gpushmem_team_t all_of_us(void)
{
    gpushmem_team_t team = GPUSHMEM_TEAM_INVALID;
    CHECK_OK(gpushmem_team_split_strided(GPUSHMEM_TEAM_WORLD, 0, 1, n, NULL, 0, &team));
    return team;
}

static void sum_ones(gpushmem_team_t team, int times_what)
{
    int *to = (int *)dest, *from = (int *)source, ours = times_what;
    CHECK_OK(gpushmem_int_put(from, &ours, 1, me));
    CHECK_OK(gpushmem_quiet());
    CHECK_OK(gpushmem_int_sum_reduce_on_stream(team, to, from, 1, NULL));
    CHECK_OK(gpushmem_launch_wait(NULL));
    CHECK(check_read(to) == n * times_what);
}

// Its first operations have numbers whose low halves stand in the packets of the other one's last.
static void test_packets_of_the_team_before(void)
{
    gpushmem_team_t team = all_of_us();
    for (int i = 1; i <= 3; i++)
        sum_ones(team, i);
    RUN(go_far, 1, 1, dev, team);
    CHECK_OK(gpushmem_team_destroy(team));
    gpushmem_team_t next = all_of_us();
    CHECK((next & GPUSHMEM_TEAM_SLOT_MASK) == (team & GPUSHMEM_TEAM_SLOT_MASK));
    for (int i = 11; i <= 13; i++)
        sum_ones(next, i);
    CHECK_OK(gpushmem_team_destroy(next));
}

// ---- Small operations of streams by grids that differ ----

// The fifth, for which one member has too few threads, has the number that clears the packets.
static void test_grids(void)
{
    static const uint64_t sizes[] = {64, 1, 3, 17, 127};
    if (n < 2 || !(dev.flags & GPUSHMEM_DEV_ALL_DIRECT) || dev.flags & GPUSHMEM_DEV_GPU_HEAP)
        return;
    RUN(set_epochs, 1, 1, dev, (uint64_t)0x1fffffffb);
    gpushmem_barrier_all();
    int turn = 0;
    for (uint64_t count : sizes)
        for (int kind = GPUSHMEM_COLL_BROADCAST; kind < GPUSHMEM_COLL_KINDS; kind++) {
            if (kind == GPUSHMEM_COLL_COLLECT || kind == GPUSHMEM_COLL_ALLTOALLS)
                continue;
            turn++;
            check_op<int>(op_of(kind, GPUSHMEM_COLL_INT32, GPUSHMEM_COLL_SUM, count, turn % n),
                          GRID, 0, (uint64_t)turn % 3, false);
            check_op<float>(op_of(kind, GPUSHMEM_COLL_FLOAT, GPUSHMEM_COLL_SUM, count, turn % n),
                            GRID, 0, 0, false);
        }
}

// ---- What kernels ask of a team of few, and two members' blocks in several chunks ----

// Without this nobody would notice that all operations take the long way, as those do that are
// compared first. Dense packets are for two.
static void test_team_is_small(void)
{
    if (n < 2 || n > GPSH_DEV_SMALL_OTHERS + 1 || !(dev.flags & GPUSHMEM_DEV_ALL_DIRECT))
        return;
    RUN(look_at_team, 1, 1, dev, status_word);
    CHECK(check_read(status_word) == (check_compares() ? 0 : n == 2 ? 3 : 1));
    int none = 0;
    CHECK_OK(gpushmem_int_put(status_word, &none, 1, me));
    CHECK_OK(gpushmem_quiet());
}

// The first operation of a kernel and of a stream would have the number that clears the packets.
static void test_chunks(void)
{
    enum { COUNT = 300001 }; // four chunks of streams
    static float mine[COUNT], sums[COUNT];
    if (n < 2)
        return;
    float *from = (float *)gpushmem_malloc(sizeof mine),
          *to = (float *)gpushmem_malloc(sizeof sums);
    CHECK(from && to);
    if (!from || !to)
        return;
    RUN(set_epochs, 1, 1, dev, (uint64_t)0x2fffffffe);
    gpushmem_barrier_all();
    check_op<float>(op_of(GPUSHMEM_COLL_REDUCE, GPUSHMEM_COLL_FLOAT, GPUSHMEM_COLL_SUM, 16384, 0),
                    2, 32, 0, false);
    for (int round = 0; round < 4; round++) {
        float *result = round % 2 ? from : to;
        int wrong = 0;
        for (uint64_t i = 0; i < COUNT; i++)
            mine[i] = value<float>(me, i, 1000 + round);
        CHECK_OK(gpushmem_float_put(from, mine, COUNT, me));
        CHECK_OK(gpushmem_quiet());
        CHECK_OK(gpushmem_float_sum_reduce_on_stream(0, result, from, COUNT, NULL));
        CHECK_OK(gpushmem_launch_wait(NULL));
        CHECK_OK(gpushmem_float_get(sums, result, COUNT, me));
        for (uint64_t i = 0; i < COUNT; i++) {
            float sum = value<float>(0, i, 1000 + round);
            for (int pe = 1; pe < n; pe++)
                sum += value<float>(pe, i, 1000 + round);
            wrong += sum != sums[i];
        }
        CHECK(!wrong);
    }
    gpushmem_free(to);
    gpushmem_free(from);
}

#if defined(__CUDACC__)
static void check_posts(void)
{
}
#else
// Messages to the next PE, to which all operations send, go by the queue of a NIC that is up; but
// not where another rail goes on when this one is lost.
static void check_posts(void)
{
    const gpushmem_nic_queue *q = dev.nic ? &gpushmem_nic_queues(dev.nic)[(me + 1) % n] : nullptr;
    if (q && n > 1 && q->state == GPUSHMEM_NIC_UP)
        CHECK((q->head > 0) == !(q->flags & GPUSHMEM_NIC_RAILS));
}
#endif

int main(void)
{
    me = check_begin();
    n = gpushmem_n_pes();
    source = (char *)gpushmem_malloc(MOST + 2 * GUARD);
    dest = (char *)gpushmem_malloc(MOST + 2 * GUARD);
    status_word = (int *)gpushmem_calloc(1, sizeof(int));
    static char guard[MOST + 2 * GUARD];
    memset(guard, 0x5a, sizeof guard);
    CHECK_OK(gpushmem_putmem(source, guard, sizeof guard, me));
    CHECK_OK(gpushmem_putmem(dest, guard, sizeof guard, me));
    CHECK_OK(gpushmem_device_handle(&dev));
    RUN(set_epochs, 1, 1, dev, (uint64_t)0xffffffe0);
    gpushmem_barrier_all();

    // Elements of 4 bytes. Kernels: packets up to 256 bytes of two PEs, whose dense ones carry up
    // to 64 KiB, and up to 1024 of three and four, whose staging memory takes up to 4096 and 2720.
    // Streams: packets up to 2048 divided by the others (see CMakeLists.txt).
    // Behind NICs: rounds up to 8192 bytes (32768 on streams) divided by the PEs.
    static const uint64_t sizes[] = {1,    2,    3,    17,   64,   127,  128,   129,
                                     256,  257,  512,  513,  680,  684,  1024,  1025,
                                     2048, 2049, 2730, 2732, 5000, 9217, 16384, 16385};
    // A block of 64 threads and more leaves small operations to its first warp.
    static const int threads_of[][4] = {{1, 32, 40, 0}, {1, 32, 72, 0}};
    int turn = 0;
    for (uint64_t count : sizes)
        for (int kind = GPUSHMEM_COLL_BROADCAST; kind < GPUSHMEM_COLL_KINDS; kind++) {
            if (kind == GPUSHMEM_COLL_COLLECT || kind == GPUSHMEM_COLL_ALLTOALLS)
                continue;
            int scope = turn % 2 ? STREAM : (turn / 2 + me) % 3;
            bool in_place =
                turn % 4 == 1 && (kind == GPUSHMEM_COLL_REDUCE || kind >= GPUSHMEM_COLL_INSCAN);
            const int *threads = threads_of[turn / 6 % 2];
            turn++;
            check_op<int>(op_of(kind, GPUSHMEM_COLL_INT32, GPUSHMEM_COLL_SUM, count, turn % n),
                          scope, threads[scope], (uint64_t)turn % 3, in_place);
            check_op<float>(op_of(kind, GPUSHMEM_COLL_FLOAT,
                                  kind >= GPUSHMEM_COLL_INSCAN ? +GPUSHMEM_COLL_SUM
                                                               : GPUSHMEM_COLL_SUM + turn % 2,
                                  count, turn % n),
                            scope, threads[scope], 0, in_place);
        }
    test_team_is_small();
    test_broadcasts();
    test_grids();
    test_chunks();
    test_packets_of_the_team_before();
    check_posts();
    gpushmem_barrier_all();
    gpushmem_free(status_word);
    gpushmem_free(dest);
    gpushmem_free(source);
    return check_end("coll");
}
