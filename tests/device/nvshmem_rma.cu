// SPDX-License-Identifier: BSD-3-Clause
// NVSHMEM's put and get in kernels: each function of each type, size and scope, and of queue pairs,
// moves bytes of its own between neighbours, and every byte is compared.
#include <vector>

#include "nvshmem_check.cuh"

enum { N = 3, SLOT = 8 * 16, SLOTS = 26, GROUPS = 25 + 5 + 1 + 25 };

struct place {
    char *dest;         // SLOTS places of SLOT bytes for this group of functions
    const char *source; // what everybody sends
    uint64_t *signals;
    int peer, slot;
    nvshmemx_qp_handle_t qp;
    template <typename T> __device__ T *at()
    {
        return (T *)(dest + SLOT * slot++);
    }
};

#define LEAD if (gpsh_dev_thread_number() == 0)
#define MOVES(P, S, WHO, PUT, GET, T, ...)                                                         \
    {                                                                                              \
        const T *from = (const T *)p.source;                                                       \
        T *a = p.at<T>(), *b = p.at<T>(), *c = p.at<T>(), *d = p.at<T>(), *e = p.at<T>(),          \
          *f = p.at<T>();                                                                          \
        WHO nvshmem##P##PUT##S(a, from, N, p.peer, ##__VA_ARGS__);                                 \
        WHO nvshmem##P##PUT##_nbi##S(b, from, N, p.peer, ##__VA_ARGS__);                           \
        WHO nvshmem##P##PUT##_signal##S(c, from, N, p.signals, 1, NVSHMEM_SIGNAL_ADD, p.peer,      \
                                        ##__VA_ARGS__);                                            \
        WHO nvshmem##P##PUT##_signal_nbi##S(d, from, N, p.signals, 1, NVSHMEM_SIGNAL_ADD, p.peer,  \
                                            ##__VA_ARGS__);                                        \
        WHO nvshmem##P##GET##S(e, from, N, p.peer, ##__VA_ARGS__);                                 \
        WHO nvshmem##P##GET##_nbi##S(f, from, N, p.peer, ##__VA_ARGS__);                           \
    }
#define STRIDES(P, S, WHO, PUT, GET, T)                                                            \
    {                                                                                              \
        T *a = p.at<T>(), *b = p.at<T>();                                                          \
        WHO nvshmem##P##PUT##S(a, (const T *)p.source, 2, 1, N, p.peer);                           \
        WHO nvshmem##P##GET##S(b, (const T *)p.source, 2, 1, N, p.peer);                           \
    }
#define SCOPES(X, Y, PUT, GET, IPUT, IGET, T)                                                      \
    X(_, , LEAD, PUT, GET, T)                                                                      \
    X(x_, _warp, , PUT, GET, T)                                                                    \
    X(x_, _block, , PUT, GET, T)                                                                   \
    Y(_, , LEAD, IPUT, IGET, T)                                                                    \
    Y(x_, _warp, , IPUT, IGET, T)                                                                  \
    Y(x_, _block, , IPUT, IGET, T)

#define TYPED(NAME, TYPE, AS, CTYPE)                                                               \
    static __device__ void move_##NAME(place p)                                                    \
    {                                                                                              \
        SCOPES(MOVES, STRIDES, NAME##_put, NAME##_get, NAME##_iput, NAME##_iget, TYPE)             \
        TYPE *a = p.at<TYPE>(), *b = p.at<TYPE>();                                                 \
        LEAD nvshmem_##NAME##_p(a, *(const TYPE *)p.source, p.peer);                               \
        LEAD *b = nvshmem_##NAME##_g((const TYPE *)p.source, p.peer);                              \
    }                                                                                              \
    static __device__ void move_qp_##NAME(place p)                                                 \
    {                                                                                              \
        MOVES(x_qp_, , LEAD, NAME##_put, NAME##_get, TYPE, p.qp)                                   \
        MOVES(x_qp_, _warp, , NAME##_put, NAME##_get, TYPE, p.qp)                                  \
        MOVES(x_qp_, _block, , NAME##_put, NAME##_get, TYPE, p.qp)                                 \
        p.slot = 24;                                                                               \
        TYPE *a = p.at<TYPE>(), *b = p.at<TYPE>();                                                 \
        LEAD nvshmemx_qp_##NAME##_p(a, *(const TYPE *)p.source, p.peer, p.qp);                     \
        LEAD *b = nvshmemx_qp_##NAME##_g((const TYPE *)p.source, p.peer, p.qp);                    \
    }
GPSH_NVS_RMA_TYPES(TYPED)
#define SIZED(BITS)                                                                                \
    static __device__ void move_##BITS(place p)                                                    \
    {                                                                                              \
        SCOPES(MOVES, STRIDES, put##BITS, get##BITS, iput##BITS, iget##BITS, void)                 \
    }
GPUSHMEM_RMA_SIZES(SIZED)
#define NOTHING(...)
static __device__ void move_mem(place p)
{
    SCOPES(MOVES, NOTHING, putmem, getmem, , , void)
}

// What a group of functions moves: elements of so many bytes; with strides, with p and g.
struct group {
    const char *name;
    int size;
    bool strided, single, qp;
};
static const group groups[GROUPS] = {
#define ROW(NAME, TYPE, AS, CTYPE) {#NAME, (int)sizeof(TYPE), true, true, false},
    GPSH_NVS_RMA_TYPES(ROW)
#define ROW_SIZE(BITS) {#BITS, BITS / 8, true, false, false},
        GPUSHMEM_RMA_SIZES(ROW_SIZE){"mem", 1, false, false, false},
#define ROW_QP(NAME, TYPE, AS, CTYPE) {"qp " #NAME, (int)sizeof(TYPE), false, true, true},
    GPSH_NVS_RMA_TYPES(ROW_QP)};

__global__ void move_all(char *dest, const char *source, uint64_t *signals, int peer,
                         nvshmemx_qp_handle_t qp, int *errors)
{
    place p = {dest, source, signals, peer, 0, NVSHMEMX_QP_DEFAULT};
#define CALL(NAME, ...)                                                                            \
    move_##NAME(p);                                                                                \
    p.dest += SLOTS * SLOT;
    GPSH_NVS_RMA_TYPES(CALL)
    GPUSHMEM_RMA_SIZES(CALL)
    CALL(mem)
#undef CALL // the sources of all device tests are compiled in one, too
#define CALL_QP(NAME, ...)                                                                         \
    p.qp = p.qp == NVSHMEMX_QP_DEFAULT ? qp : p.qp == qp ? NVSHMEMX_QP_ANY : NVSHMEMX_QP_DEFAULT;  \
    move_qp_##NAME(p);                                                                             \
    p.dest += SLOTS * SLOT;
    GPSH_NVS_RMA_TYPES(CALL_QP)
    nvshmemx_qp_handle_t all = NVSHMEMX_QP_ALL;
    nvshmemx_qp_fence_block(NVSHMEMX_PE_ALL, &all, 1);
    nvshmemx_qp_quiet_warp(peer, &all, 1);
    LEAD nvshmemx_qp_quiet(NVSHMEMX_PE_ALL, &all, 1);
    nvshmemx_flush_block();
    nvshmemx_barrier_all_block();
    // 6 of 56 groups' signals came from each scope's two calls
    LEAD EXPECT(errors, nvshmem_signal_fetch(signals) == 6 * GROUPS);
}

// A slot of dest has the elements that `from` sent, `step` elements apart, and zeros.
static void check_slot(const group &g, int slot, const unsigned char *have, int from, int step,
                       int count)
{
    unsigned char want[SLOT] = {};
    for (int i = 0; i < count; i++)
        for (int k = 0; k < g.size; k++)
            want[i * step * g.size + k] = (unsigned char)(16 * from + 1 + i * g.size + k);
    if (memcmp(want, have, SLOT) && check_failures++ < 20)
        fprintf(stderr, "PE %d: %s: slot %d differs\n", nvshmem_my_pe(), g.name, slot);
}

static void check_group(const group &g, const unsigned char *have, int before, int after)
{
    for (int slot = 0; slot < 18; slot++)
        check_slot(g, slot, have + SLOT * slot, slot % 6 < 4 ? before : after, 1, N);
    for (int slot = 18; g.strided && slot < 24; slot++)
        check_slot(g, slot, have + SLOT * slot, slot % 2 ? after : before, 2, N);
    for (int slot = 24; g.single && slot < 26; slot++)
        check_slot(g, slot, have + SLOT * slot, slot % 2 ? after : before, 1, 1);
}

int main(void)
{
    nv_begin();
    int me = nvshmem_my_pe(), n = nvshmem_n_pes();
    int *errors = check_errors_begin();
    const size_t bytes = GROUPS * SLOTS * SLOT;
    char *dest = (char *)nvshmem_calloc(1, bytes), *source = (char *)nvshmem_malloc(N * 16);
    uint64_t *signals = (uint64_t *)nvshmem_calloc(1, sizeof *signals);
    unsigned char pattern[N * 16];
    for (int i = 0; i < N * 16; i++)
        pattern[i] = (unsigned char)(16 * me + 1 + i);
    nvshmem_putmem(source, pattern, sizeof pattern, me);
    nvshmemx_qp_handle_t *qps = NULL;
    CHECK(nvshmemx_qp_create(0, &qps) != 0 && nvshmemx_qp_create(1, NULL) != 0);
    CHECK(nvshmemx_qp_create(2, &qps) == 0 && qps[0] >= NVSHMEMX_QP_DEFAULT);
    nvshmem_barrier_all();
    NV_RUN(move_all, 1, 3, dest, source, signals, (me + 1) % n, qps[1], errors);
    std::vector<unsigned char> have(bytes);
    nvshmem_getmem(have.data(), dest, bytes, me);
    for (int i = 0; i < GROUPS; i++)
        check_group(groups[i], have.data() + i * SLOTS * SLOT, (me + n - 1) % n, (me + 1) % n);
    check_errors_end(__FILE__, errors);
    int failed = nv_end("nvshmem_rma");
    free(qps);
    return failed;
}
