// SPDX-License-Identifier: BSD-3-Clause
// Random operations of kernels in several streams, on contexts of all kinds, against a model: each
// thread has a part of every PE's memory for itself, and knows what must be there. For CPU threads.
// usage: device_nic_random [SEED [STEPS [THREADS of each stream [again]]]]
// again: twice, each with init and finalize. Exits with 1 after a mistake, with 2 if the library
// told of a failure, and all that is wrong was behind it.
#include <string.h>

#include "check.h"

enum {
    AREA = 1024, // bytes of a thread at each PE
    WORDS = 8,
    SLOTS = 16, // threads
    MAILS = 4,
    MAIL = 96, // bytes
    MOST_PES = 8,
    STREAMS = 2,
    SOURCES = 4096,
};

struct mailbox {
    uint64_t signal, taken; // taken: at the sender, written by whoever receives
    uint8_t mail[MAILS][MAIL];
};

struct part {
    uint8_t area[AREA];
    uint64_t wide[WORDS];
    uint32_t half[WORDS];
};

struct memory {
    struct part parts[MOST_PES][SLOTS]; // by the PE that writes there
    struct mailbox boxes[SLOTS];
    uint64_t sum, flips;
    uint64_t added[MOST_PES]; // by this PE, to the sum there
    uint64_t flipped[MOST_PES];
    uint8_t sources[SLOTS][SOURCES], landings[SLOTS][SOURCES];
};

struct fetched { // by a get that is complete at the next quiet
    int pe;
    unsigned at, bytes, landing;
};

struct thread {
    memory *m;
    uint64_t state;
    int me, n;
    unsigned slot;
    gpushmem_dev_ctx ctx;
    bool owns;
    unsigned source_used, landing_used;
    uint64_t sent, received;
    int n_fetched;
    fetched gets[64];
    uint8_t model[MOST_PES][AREA];
    uint8_t unfenced[MOST_PES][AREA], unquiet[MOST_PES][AREA], read[MOST_PES][AREA];
    uint64_t wide[MOST_PES][WORDS];
    uint32_t half[MOST_PES][WORDS];
    int *wrong;
};

static uint64_t next(thread *t)
{
    t->state ^= t->state << 13;
    t->state ^= t->state >> 7;
    t->state ^= t->state << 17;
    return t->state * 0x2545f4914f6cdd1d >> 16;
}

static unsigned below(thread *t, unsigned n)
{
    return (unsigned)(next(t) % n);
}

static void wrong(thread *t, const char *what, int pe, unsigned at, uint64_t is, uint64_t wants)
{
    if (__atomic_fetch_add(t->wrong, 1, __ATOMIC_RELAXED) < 5)
        fprintf(stderr, "PE %d thread %u context %d: %s at PE %d + %u: %llx, not %llx\n", t->me,
                t->slot, (int)t->ctx.number, what, pe, at, (unsigned long long)is,
                (unsigned long long)wants);
}

static part *mine(thread *t)
{
    return &t->m->parts[t->me][t->slot];
}

static void check_bytes(thread *t, const char *what, const uint8_t *is, int pe, unsigned at,
                        unsigned bytes)
{
    for (unsigned i = 0; i < bytes; i++)
        if (is[i] != t->model[pe][at + i]) {
            wrong(t, what, pe, at + i, is[i], t->model[pe][at + i]);
            return;
        }
}

static void done(thread *t, int pe)
{
    for (int p = 0; p < t->n; p++)
        if (pe < 0 || pe == p) {
            memset(t->unfenced[p], 0, AREA);
            memset(t->unquiet[p], 0, AREA);
            memset(t->read[p], 0, AREA);
        }
    int left = 0;
    for (int i = 0; i < t->n_fetched; i++) {
        const fetched *f = &t->gets[i];
        if (pe >= 0 && f->pe != pe)
            t->gets[left++] = *f;
        else
            check_bytes(t, "get_nbi", t->m->landings[t->slot] + f->landing, f->pe, f->at, f->bytes);
    }
    t->n_fetched = left;
    if (pe < 0)
        t->source_used = t->landing_used = 0;
}

static void quiet(thread *t)
{
    gpushmem_dev_ctx_quiet(t->ctx);
    done(t, -1);
}

static void complete(thread *t, int pe)
{
    if (below(t, 2))
        return quiet(t);
    gpushmem_dev_ctx_pe_quiet(t->ctx, pe);
    done(t, pe);
}

static void fence(thread *t)
{
    gpushmem_dev_ctx_fence(t->ctx);
    memset(t->unfenced, 0, sizeof t->unfenced);
}

static bool any(const uint8_t *flags, unsigned bytes)
{
    for (unsigned i = 0; i < bytes; i++)
        if (flags[i])
            return true;
    return false;
}

static void before_write(thread *t, int pe, unsigned at, unsigned bytes)
{
    if (any(&t->read[pe][at], bytes))
        complete(t, pe);
    if (!any(&t->unfenced[pe][at], bytes))
        return;
    if (below(t, 3))
        fence(t);
    else
        complete(t, pe);
}

static void wrote(thread *t, int pe, unsigned at, const uint8_t *from, unsigned bytes)
{
    memcpy(&t->model[pe][at], from, bytes);
    memset(&t->unfenced[pe][at], 1, bytes);
    memset(&t->unquiet[pe][at], 1, bytes);
}

static void before_read(thread *t, int pe, unsigned at, unsigned bytes)
{
    if (any(&t->unquiet[pe][at], bytes))
        complete(t, pe);
}

static unsigned size(thread *t)
{
    switch (below(t, 5)) {
    case 0: return below(t, 9);
    case 1: return below(t, 30);
    case 2: return 26 + below(t, 6);
    case 3: return below(t, 300);
    default: return below(t, 40);
    }
}

// In the heap, not used again until quiet.
static uint8_t *source(thread *t, unsigned bytes)
{
    if (t->source_used + bytes > SOURCES)
        quiet(t);
    uint8_t *at = t->m->sources[t->slot] + t->source_used;
    t->source_used += bytes;
    for (unsigned i = 0; i < bytes; i++)
        at[i] = (uint8_t)next(t);
    return at;
}

static void put(thread *t, int pe)
{
    unsigned bytes = size(t), at = below(t, AREA - bytes + 1);
    uint8_t local[300];
    before_write(t, pe, at, bytes);
    uint8_t *from = source(t, bytes), *to = mine(t)->area + at;
    switch (below(t, 3)) {
    case 0: gpushmem_dev_ctx_putmem_nbi(t->ctx, to, from, bytes, pe); break;
    case 1: gpushmem_dev_ctx_putmem(t->ctx, to, from, bytes, pe); break;
    default:
        memcpy(local, from, bytes);
        gpushmem_dev_ctx_putmem(t->ctx, to, local, bytes, pe);
        memset(local, 0xee, sizeof local);
    }
    wrote(t, pe, at, from, bytes);
}

static void put_value(thread *t, int pe)
{
    unsigned bytes = 1u << below(t, 4), at = below(t, AREA / bytes) * bytes;
    uint64_t value = next(t) | next(t) << 40;
    before_write(t, pe, at, bytes);
    uint8_t *to = mine(t)->area + at;
    switch (bytes) {
    case 1: gpushmem_dev_ctx_uint8_p(t->ctx, to, (uint8_t)value, pe); break;
    case 2: gpushmem_dev_ctx_uint16_p(t->ctx, (uint16_t *)(void *)to, (uint16_t)value, pe); break;
    case 4: gpushmem_dev_ctx_uint32_p(t->ctx, (uint32_t *)(void *)to, (uint32_t)value, pe); break;
    default: gpushmem_dev_ctx_uint64_p(t->ctx, (uint64_t *)(void *)to, value, pe);
    }
    wrote(t, pe, at, (const uint8_t *)&value, bytes);
}

static void get(thread *t, int pe)
{
    unsigned bytes = size(t), at = below(t, AREA - bytes + 1);
    uint8_t local[300];
    before_read(t, pe, at, bytes);
    if (below(t, 2)) {
        gpushmem_dev_ctx_getmem(t->ctx, local, mine(t)->area + at, bytes, pe);
        return check_bytes(t, "get", local, pe, at, bytes);
    }
    if (t->landing_used + bytes > SOURCES || t->n_fetched == 64)
        quiet(t);
    t->gets[t->n_fetched++] = {pe, at, bytes, t->landing_used};
    gpushmem_dev_ctx_getmem_nbi(t->ctx, t->m->landings[t->slot] + t->landing_used,
                                mine(t)->area + at, bytes, pe);
    t->landing_used += bytes;
    memset(&t->read[pe][at], 1, bytes);
}

static void get_value(thread *t, int pe)
{
    unsigned bytes = 1u << below(t, 4), at = below(t, AREA / bytes) * bytes;
    const uint8_t *from = mine(t)->area + at;
    uint64_t value;
    before_read(t, pe, at, bytes);
    switch (bytes) {
    case 1: value = gpushmem_dev_ctx_uint8_g(t->ctx, from, pe); break;
    case 2:
        value = gpushmem_dev_ctx_uint16_g(t->ctx, (const uint16_t *)(const void *)from, pe);
        break;
    case 4:
        value = gpushmem_dev_ctx_uint32_g(t->ctx, (const uint32_t *)(const void *)from, pe);
        break;
    default: value = gpushmem_dev_ctx_uint64_g(t->ctx, (const uint64_t *)(const void *)from, pe);
    }
    check_bytes(t, "g", (const uint8_t *)&value, pe, at, bytes);
}

static void strided(thread *t, int pe)
{
    uint16_t from[16];
    for (uint16_t &value : from)
        value = (uint16_t)next(t);
    unsigned n = below(t, 9), at = 2 * below(t, AREA / 2 - 32);
    uint16_t *to = (uint16_t *)(void *)(mine(t)->area + at);
    before_write(t, pe, at, 4 * n);
    gpushmem_dev_ctx_uint16_iput(t->ctx, to, from, 2, 1, n, pe);
    quiet(t); // of a thread's own memory
    for (unsigned i = 0; i < n; i++)
        wrote(t, pe, at + 4 * i, (const uint8_t *)&from[i], 2);
    quiet(t);
}

static void amo_wide(thread *t, int pe)
{
    unsigned i = below(t, WORDS);
    uint64_t *word = &mine(t)->wide[i], value = next(t), *model = &t->wide[pe][i], was = *model,
             got = was;
    switch (below(t, 12)) {
    case 0:
        gpushmem_dev_ctx_uint64_atomic_add(t->ctx, word, value, pe);
        *model += value;
        break;
    case 1:
        got = gpushmem_dev_ctx_uint64_atomic_fetch_add(t->ctx, word, value, pe);
        *model += value;
        break;
    case 2:
        got = gpushmem_dev_ctx_uint64_atomic_swap(t->ctx, word, value, pe);
        *model = value;
        break;
    case 3:
        got = gpushmem_dev_ctx_uint64_atomic_compare_swap(t->ctx, word, was, value, pe);
        *model = value;
        break;
    case 4:
        got = gpushmem_dev_ctx_uint64_atomic_compare_swap(t->ctx, word, was + 1, value, pe);
        break;
    case 5:
        gpushmem_dev_ctx_uint64_atomic_set(t->ctx, word, value, pe);
        *model = value;
        break;
    case 6: got = gpushmem_dev_ctx_uint64_atomic_fetch(t->ctx, word, pe); break;
    case 7:
        gpushmem_dev_ctx_uint64_atomic_xor(t->ctx, word, value, pe);
        *model ^= value;
        break;
    case 8:
        got = gpushmem_dev_ctx_uint64_atomic_fetch_xor(t->ctx, word, value, pe);
        *model ^= value;
        break;
    case 9:
        gpushmem_dev_ctx_uint64_atomic_and(t->ctx, word, value, pe);
        *model &= value;
        break;
    case 10:
        got = gpushmem_dev_ctx_uint64_atomic_fetch_or(t->ctx, word, value, pe);
        *model |= value;
        break;
    default: gpushmem_dev_ctx_uint64_atomic_inc(t->ctx, word, pe); *model += 1;
    }
    if (got != was)
        wrong(t, "atomic of 8", pe, i, got, was);
}

static void amo_half(thread *t, int pe)
{
    unsigned i = below(t, WORDS);
    uint32_t *word = &mine(t)->half[i], value = (uint32_t)next(t), *model = &t->half[pe][i],
             was = *model, got = was;
    switch (below(t, 7)) {
    case 0:
        gpushmem_dev_ctx_uint32_atomic_add(t->ctx, word, value, pe);
        *model += value;
        break;
    case 1:
        got = gpushmem_dev_ctx_uint32_atomic_fetch_add(t->ctx, word, value, pe);
        *model += value;
        break;
    case 2:
        got = gpushmem_dev_ctx_uint32_atomic_swap(t->ctx, word, value, pe);
        *model = value;
        break;
    case 3:
        got = gpushmem_dev_ctx_uint32_atomic_compare_swap(t->ctx, word, was, value, pe);
        *model = value;
        break;
    case 4: got = gpushmem_dev_ctx_uint32_atomic_fetch(t->ctx, word, pe); break;
    case 5:
        gpushmem_dev_ctx_uint32_atomic_set(t->ctx, word, value, pe);
        *model = value;
        break;
    default: gpushmem_dev_ctx_uint32_atomic_inc(t->ctx, word, pe); *model += 1;
    }
    if (got != was)
        wrong(t, "atomic of 4", pe, i, got, was);
}

static void amo_shared(thread *t, int pe)
{
    uint64_t value = next(t);
    if (below(t, 2)) {
        __atomic_fetch_add(&t->m->added[pe], value, __ATOMIC_RELAXED);
        if (below(t, 2))
            gpushmem_dev_ctx_uint64_atomic_add(t->ctx, &t->m->sum, value, pe);
        else
            gpushmem_dev_ctx_uint64_atomic_fetch_add(t->ctx, &t->m->sum, value, pe);
        return;
    }
    __atomic_fetch_xor(&t->m->flipped[pe], value, __ATOMIC_RELAXED);
    if (below(t, 2))
        gpushmem_dev_ctx_uint64_atomic_xor(t->ctx, &t->m->flips, value, pe);
    else
        gpushmem_dev_ctx_uint64_atomic_fetch_xor(t->ctx, &t->m->flips, value, pe);
}

// ---- Mail to the same thread of the next PE ----

static uint8_t letter(int from, unsigned slot, uint64_t number, unsigned i)
{
    return (uint8_t)(number * 31 + i * 7 + slot * 3 + (unsigned)from + 1);
}

static unsigned letter_bytes(uint64_t number)
{
    return 1 + (unsigned)(number * 29 % MAIL);
}

static bool send(thread *t)
{
    mailbox *box = &t->m->boxes[t->slot];
    int to = (t->me + 1) % t->n;
    uint64_t taken = __atomic_load_n(&box->taken, __ATOMIC_ACQUIRE);
    if (t->sent - taken >= MAILS)
        return false;
    unsigned bytes = letter_bytes(t->sent);
    uint8_t *from = source(t, bytes);
    for (unsigned i = 0; i < bytes; i++)
        from[i] = letter(t->me, t->slot, t->sent, i);
    uint8_t *at = box->mail[t->sent % MAILS];
    t->sent++;
    fence(t); // a signal stands for what comes before its own mail, too
    switch (below(t, 5)) {
    case 0:
        gpushmem_dev_ctx_putmem_signal(t->ctx, at, from, bytes, &box->signal, 1,
                                       GPUSHMEM_SIGNAL_ADD, to);
        break;
    case 1:
    case 2:
        gpushmem_dev_ctx_putmem_signal_nbi(t->ctx, at, from, bytes, &box->signal, 1,
                                           GPUSHMEM_SIGNAL_ADD, to);
        break;
    case 3:
        gpushmem_dev_ctx_putmem_nbi(t->ctx, at, from, bytes, to);
        gpushmem_dev_ctx_fence(t->ctx);
        gpushmem_dev_ctx_signal_op(t->ctx, &box->signal, 1, GPUSHMEM_SIGNAL_ADD, to);
        break;
    default:
        gpushmem_dev_ctx_putmem_nbi(t->ctx, at, from, bytes, to);
        gpushmem_dev_ctx_quiet(t->ctx);
        gpushmem_dev_ctx_putmem_signal(t->ctx, at, from, 0, &box->signal, 1, GPUSHMEM_SIGNAL_ADD,
                                       to);
    }
    return true;
}

static bool receive(thread *t)
{
    mailbox *box = &t->m->boxes[t->slot];
    int from = (t->me + t->n - 1) % t->n;
    if (gpushmem_dev_signal_fetch(&box->signal) <= t->received)
        return false;
    const volatile uint8_t *mail = box->mail[t->received % MAILS];
    for (unsigned i = 0; i < letter_bytes(t->received); i++)
        if (mail[i] != letter(from, t->slot, t->received, i)) {
            wrong(t, "mail", from, i, mail[i], letter(from, t->slot, t->received, i));
            break;
        }
    t->received++;
    gpushmem_dev_ctx_fence(t->ctx);
    gpushmem_dev_ctx_uint64_p(t->ctx, &box->taken, t->received, from);
    return true;
}

// ---- A thread ----

static void change_context(thread *t, gpushmem_dev_ctx host)
{
    quiet(t);
    if (t->owns) {
        gpushmem_dev_ctx_destroy(t->ctx);
        t->owns = false;
    }
    switch (below(t, 3)) {
    case 0: t->ctx = GPUSHMEM_DEV_CTX_DEFAULT; break;
    case 1: t->ctx = host; break;
    default:
        if (gpushmem_dev_ctx_create(0, &t->ctx))
            t->ctx = GPUSHMEM_DEV_CTX_DEFAULT;
        else
            t->owns = true;
    }
}

static void step(thread *t, gpushmem_dev_ctx host)
{
    int pe = (int)below(t, (unsigned)t->n);
    switch (below(t, 24)) {
    case 0: return quiet(t);
    case 1: return fence(t);
    case 2: return complete(t, pe);
    case 3:
    case 4:
    case 5: return put_value(t, pe);
    case 6: return get(t, pe);
    case 7: return get_value(t, pe);
    case 8: return amo_wide(t, pe);
    case 9: return amo_half(t, pe);
    case 10: return amo_shared(t, pe);
    case 11: return strided(t, pe);
    case 12:
    case 13: (void)send(t); return;
    case 14:
    case 15: (void)receive(t); return;
    case 16: return below(t, 8) ? (void)0 : change_context(t, host);
    default: return put(t, pe);
    }
}

static void check_all(thread *t)
{
    uint8_t back[AREA];
    quiet(t);
    for (int pe = 0; pe < t->n; pe++) {
        gpushmem_dev_ctx_getmem(t->ctx, back, mine(t)->area, AREA, pe);
        check_bytes(t, "at the end", back, pe, 0, AREA);
        for (unsigned i = 0; i < WORDS; i++) {
            uint64_t wide = gpushmem_dev_ctx_uint64_atomic_fetch(t->ctx, &mine(t)->wide[i], pe);
            uint32_t half = gpushmem_dev_ctx_uint32_atomic_fetch(t->ctx, &mine(t)->half[i], pe);
            if (wide != t->wide[pe][i])
                wrong(t, "8 at the end", pe, i, wide, t->wide[pe][i]);
            if (half != t->half[pe][i])
                wrong(t, "4 at the end", pe, i, half, t->half[pe][i]);
        }
    }
}

__global__ void act(memory *m, thread *threads, gpushmem_dev_ctx host, unsigned first,
                    uint64_t seed, unsigned steps)
{
    thread *t = &threads[first + blockIdx.x * blockDim.x + threadIdx.x];
    t->slot = (unsigned)(t - threads);
    t->m = m;
    t->me = gpushmem_dev_my_pe();
    t->n = gpushmem_dev_n_pes();
    t->ctx = GPUSHMEM_DEV_CTX_DEFAULT;
    t->owns = false;
    t->state = (seed + 1) * 0x9e3779b97f4a7c15 + (uint64_t)t->me * 1000003 + t->slot * 7919 + 1;
    for (int i = 0; i < 10; i++)
        next(t);
    change_context(t, host);
    for (unsigned i = 0; i < steps; i++)
        step(t, host);
    quiet(t);
    check_all(t);
    if (t->owns)
        gpushmem_dev_ctx_destroy(t->ctx);
}

static thread threads[SLOTS];
static int mistakes, told;

static void note(const char *what, int status)
{
    if (!status)
        return;
    told++;
    fprintf(stderr, "PE %d: %s told: %d, %s\n", gpushmem_my_pe(), what, status,
            gpushmem_last_error());
}

static void check_shared(memory *m)
{
    uint64_t sum = 0, flips = 0, word;
    int me = gpushmem_my_pe(), before = told;
    note("barrier", gpushmem_barrier_all());
    for (int pe = 0; pe < gpushmem_n_pes(); pe++) {
        note("get", gpushmem_getmem(&word, &m->added[me], sizeof word, pe));
        sum += word;
        note("get", gpushmem_getmem(&word, &m->flipped[me], sizeof word, pe));
        flips ^= word;
    }
    if (before == told && (m->sum != sum || m->flips != flips)) {
        mistakes++;
        fprintf(stderr, "PE %d: sum %llx, not %llx; flips %llx, not %llx\n", me,
                (unsigned long long)m->sum, (unsigned long long)sum, (unsigned long long)m->flips,
                (unsigned long long)flips);
    }
    note("barrier", gpushmem_barrier_all());
}

int main(int argc, char **argv)
{
    uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 0) : 1;
    unsigned steps = argc > 2 ? (unsigned)atoi(argv[2]) : 1000,
             each = argc > 3 ? (unsigned)atoi(argv[3]) : 2;
    const bool again = argc > 4;
    for (int round = 0; round < (again ? 2 : 1); round++) {
        check_begin();
        memory *m = (memory *)gpushmem_calloc(1, sizeof *m);
        gpushmem_ctx_t ctx;
        gpushmem_dev_ctx host;
        memset(threads, 0, sizeof threads);
        for (thread &t : threads)
            t.wrong = &mistakes;
        CHECK(m != NULL);
        CHECK_OK(gpushmem_ctx_create(0, &ctx));
        CHECK_OK(gpushmem_ctx_device(ctx, &host));
        for (int launch = 0; launch < 3; launch++) {
            gpushmem_stream_t streams[STREAMS];
            for (unsigned i = 0; i < STREAMS; i++) {
                CHECK_OK(gpushmem_stream_create(&streams[i]));
                CHECK_OK(GPUSHMEM_LAUNCH(act, 1, each, streams[i], m, threads, host, i * each,
                                         seed * 5 + (uint64_t)launch, steps));
            }
            for (int i = 0; i < 20; i++) // of the host, beside them
                note("quiet", i & 1 ? gpushmem_quiet() : gpushmem_ctx_quiet(ctx));
            for (gpushmem_stream_t stream : streams) {
                note("kernel", gpushmem_launch_wait(stream));
                CHECK_OK(gpushmem_stream_destroy(stream));
            }
            note("quiet", gpushmem_quiet());
        }
        check_shared(m);
        note("destroy", gpushmem_ctx_destroy(ctx));
        gpushmem_free(m);
        note("finalize", gpushmem_finalize());
    }
    if (told || mistakes)
        fprintf(stderr, "nic_random: told %d, mistakes %d\n", told, mistakes);
    return mistakes || check_failures ? 1 : told ? 2 : 0;
}
