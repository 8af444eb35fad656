// SPDX-License-Identifier: BSD-3-Clause
// The proxy path: commands for peers that are not mapped here. One thread of the scope calls these.
#ifndef GPUSHMEM_DEVICE_PATH_PROXY_CUH
#define GPUSHMEM_DEVICE_PATH_PROXY_CUH

#include "gpushmem/device/ring.cuh"

// When a call that went through the ring returns.
enum gpsh_dev_wait_for {
    GPSH_DEV_NOTHING, // non-blocking
    GPSH_DEV_SOURCE,  // the source may be reused
    GPSH_DEV_DONE,    // complete
};

GPSH_DEV struct gpushmem_command gpsh_dev_command(enum gpushmem_opcode opcode, int pe,
                                                  const void *remote, const void *local,
                                                  uint64_t bytes)
{
    struct gpushmem_command c = {};
    c.opcode = (uint8_t)opcode;
    c.pe = pe;
    c.remote = (uint64_t)remote;
    c.local = (uint64_t)local;
    c.bytes = bytes;
    return c;
}

// If the call does not wait, an atomic (or signal) for a PE that is also mapped here is noted: a
// later fence must wait for it, since stores after the fence would otherwise overtake it.
GPSH_DEV void gpsh_dev_submit(const struct gpushmem_dev &dev, struct gpushmem_command command,
                              enum gpsh_dev_wait_for wait)
{
    uint64_t index;
    if (wait != GPSH_DEV_NOTHING) {
        command.flags |= wait == GPSH_DEV_SOURCE ? GPUSHMEM_CMD_REPLY_SOURCE : 0;
        gpsh_dev_push_and_wait(dev, command, &index);
        return;
    }
    bool mixed = command.opcode == GPUSHMEM_CMD_AMO || command.opcode == GPUSHMEM_CMD_PUT_SIGNAL ||
                 command.opcode == GPUSHMEM_CMD_PUT_SIGNAL_INLINE;
    const struct gpushmem_ring ring = gpsh_dev_ring(dev);
    if (!gpsh_dev_push(dev, ring, command, &index) && mixed && gpsh_dev_away(dev, command.pe))
        gpsh_dev_max64_relaxed_gpu(ring.mixed, index + 1);
}

// Up to 8 bytes; 1, 2, 4 or 8 whole where the address is aligned: a memcpy whose size is known only
// now takes single bytes.
GPSH_DEV uint64_t gpsh_dev_load_small(const void *from, size_t bytes)
{
    uintptr_t address = (uintptr_t)from;
    if (bytes == 8 && !(address & 7))
        return *(const gpsh_dev_word64 *)from;
    if (bytes == 4 && !(address & 3))
        return *(const gpsh_dev_word32 *)from;
    if (bytes == 2 && !(address & 1))
        return *(const gpsh_dev_word16 *)from;
    uint64_t value = 0;
    GPSH_NO_UNROLL
    for (size_t i = 0; i < bytes; i++)
        value |= (uint64_t)((const uint8_t *)from)[i] << 8 * i;
    return value;
}

// The low `bytes` of value: the command carries them, so the call never waits.
GPSH_DEV void gpsh_dev_ring_put_value(const struct gpushmem_dev &dev, void *to, uint64_t value,
                                      size_t bytes, int pe)
{
    struct gpushmem_command c = gpsh_dev_command(GPUSHMEM_CMD_PUT_INLINE, pe, to, nullptr, bytes);
    c.operand = value;
    gpsh_dev_submit(dev, c, GPSH_DEV_NOTHING);
}

GPSH_DEV uint64_t gpsh_dev_ring_get_value(const struct gpushmem_dev &dev, const void *from,
                                          size_t bytes, int pe);

// Local and shared memory of a GPU: no proxy and no NIC reaches it, so its bytes travel in the
// commands themselves.
GPSH_DEV bool gpsh_dev_is_private(const void *address)
{
#if defined(__CUDA_ARCH__)
    return !__isGlobal(address);
#else
    return false;
#endif
}

GPSH_DEV size_t gpsh_dev_private_piece(size_t left)
{
    return left >= 8 ? 8 : left >= 4 ? 4 : left >= 2 ? 2 : 1;
}

GPSH_DEV_CALL void gpsh_dev_ring_fence(const struct gpushmem_dev &dev, int pe)
{
    GPSH_DEV_BOUNDS();
    gpsh_dev_submit(dev, gpsh_dev_command(GPUSHMEM_CMD_FENCE, pe, nullptr, nullptr, 0),
                    GPSH_DEV_NOTHING);
}

// A fence that other rings' commands are ordered by as well: all of them that were reserved before,
// and may not be complete. Nobody waits here: the proxy holds this ring up where it must. Two such
// fences never wait for each other, since the heads are read before this one's slot is reserved:
// the ring's number depends on them (bit 63 of a head is never set), which also a GPU that reorders
// accesses respects.
GPSH_DEV void gpsh_dev_ring_fence_after(const struct gpushmem_dev &dev, uint32_t own,
                                        uint32_t first, bool last)
{
    uint64_t head[GPSH_DEV_AT_ONCE], index;
    struct gpushmem_command c = gpsh_dev_command(GPUSHMEM_CMD_FENCE, -1, nullptr, nullptr, 0);
    gpsh_dev_rings_under_way(dev, first, head);
    GPSH_UNROLL
    for (uint32_t i = 0; i < GPSH_DEV_AT_ONCE; i++)
        if (head[i] && head[i] < GPUSHMEM_RING_LOST && first + i != own)
            gpushmem_fence_add(&c, i, first + i, head[i]);
    if (c.extra || last)
        gpsh_dev_push(
            dev,
            gpsh_dev_ring_at(dev, own + (uint32_t)((head[0] | head[1] | head[2] | head[3]) >> 63)),
            c, &index);
}

// Whether kernels post to a NIC themselves. The program decides that when it is compiled, for all
// its files alike: on a GPU a function takes its registers from every kernel that might call it.
#if !defined(GPUSHMEM_DEVICE_NIC) && defined(__CUDACC__)
#define GPUSHMEM_DEVICE_NIC 0
#elif !defined(GPUSHMEM_DEVICE_NIC)
#define GPUSHMEM_DEVICE_NIC 1
#endif
GPSH_DEV bool gpsh_dev_posts(const struct gpushmem_dev &dev)
{
    return GPUSHMEM_DEVICE_NIC && dev.nic;
}

// Whether there may be a queue towards that PE.
GPSH_DEV bool gpsh_dev_posts_to(const struct gpushmem_dev &dev, int pe)
{
    return gpsh_dev_posts(dev) && (unsigned)pe < (unsigned)dev.n_pes;
}

// Whether anything that a thread wrote into a ring before may not be complete.
GPSH_DEV bool gpsh_dev_any_ring_under_way(const struct gpushmem_dev &dev)
{
    uint64_t head[GPSH_DEV_AT_ONCE], any = 0;
    for (uint32_t first = 0; first < dev.n_rings && !any; first += GPSH_DEV_AT_ONCE) {
        gpsh_dev_rings_under_way(dev, first, head);
        any = head[0] | head[1] | head[2] | head[3];
    }
    return any;
}

GPSH_DEV_CALL void gpsh_dev_ring_fence_all(const struct gpushmem_dev &dev)
{
    GPSH_DEV_BOUNDS();
    const uint32_t own = gpsh_dev_ring_number(dev);
    if (gpsh_dev_posts(dev) && !gpsh_dev_any_ring_under_way(dev))
        return; // kernels post elsewhere, and a command would have to be waited for there
    if (dev.n_rings == 1)
        return gpsh_dev_ring_fence(*dev.self, -1);
    for (uint32_t first = 0; first < dev.n_rings; first += GPSH_DEV_AT_ONCE)
        gpsh_dev_ring_fence_after(dev, own, first, first + GPSH_DEV_AT_ONCE >= dev.n_rings);
}

GPSH_DEV_CALL void gpsh_dev_ring_put_private(const struct gpushmem_dev &dev, char *to,
                                             const char *from, size_t bytes, int pe)
{
    GPSH_DEV_BOUNDS();
    for (size_t at = 0, n; at < bytes; at += n) {
        n = gpsh_dev_private_piece(bytes - at);
        gpsh_dev_ring_put_value(dev, to + at, gpsh_dev_load_small(from + at, n), n, pe);
    }
}

GPSH_DEV_CALL void gpsh_dev_ring_get_private(const struct gpushmem_dev &dev, char *to,
                                             const char *from, size_t bytes, int pe)
{
    GPSH_DEV_BOUNDS();
    for (size_t at = 0, n; at < bytes; at += n) {
        n = gpsh_dev_private_piece(bytes - at);
        uint64_t value = gpsh_dev_ring_get_value(dev, from + at, n, pe);
        memcpy(to + at, &value, n);
    }
}

// What travels in a command: loading it is quicker than the fence that a pointer wants, and than
// waiting until the source may be reused.
template <int N>
GPSH_DEV void gpsh_dev_load_carried(uint64_t (&words)[N], const void *from, size_t bytes)
{
    GPSH_UNROLL
    for (size_t i = 0; i < N; i++) {
        size_t left = bytes > 8 * i ? bytes - 8 * i : 0;
        words[i] = gpsh_dev_load_small((const char *)from + 8 * i, left < 8 ? left : 8);
    }
}

GPSH_DEV_CALL void gpsh_dev_ring_put_inline(const struct gpushmem_dev &dev, void *to,
                                            const void *from, size_t bytes, int pe)
{
    GPSH_DEV_BOUNDS();
    uint64_t words[GPUSHMEM_INLINE_BYTES / 8];
    gpsh_dev_load_carried(words, from, bytes);
    struct gpushmem_command c = gpsh_dev_command(GPUSHMEM_CMD_PUT_INLINE, pe, to, nullptr, bytes);
    c.operand = words[0];
    c.local = words[1];
    c.compare = words[2];
    c.reply = words[3];
    c.extra = words[4];
    gpsh_dev_submit(dev, c, GPSH_DEV_NOTHING);
}

GPSH_DEV_CALL void gpsh_dev_ring_put(const struct gpushmem_dev &dev, void *to, const void *from,
                                     size_t bytes, int pe, bool blocking)
{
    GPSH_DEV_BOUNDS();
    // a load is quicker than the fence that a pointer wants
    if (bytes == 8 || bytes == 4 || bytes == 2 || bytes == 1) {
        gpsh_dev_ring_put_value(dev, to, gpsh_dev_load_small(from, bytes), bytes, pe);
        return;
    }
    if (bytes <= GPUSHMEM_INLINE_BYTES && bytes) {
        gpsh_dev_ring_put_inline(*dev.self, to, from, bytes, pe);
        return;
    }
    if (gpsh_dev_is_private(from)) {
        gpsh_dev_ring_put_private(*dev.self, (char *)to, (const char *)from, bytes, pe);
        return;
    }
    gpsh_dev_submit(dev, gpsh_dev_command(GPUSHMEM_CMD_PUT, pe, to, from, bytes),
                    blocking ? GPSH_DEV_SOURCE : GPSH_DEV_NOTHING);
}

GPSH_DEV_CALL void gpsh_dev_ring_get(const struct gpushmem_dev &dev, void *to, const void *from,
                                     size_t bytes, int pe, bool blocking)
{
    GPSH_DEV_BOUNDS();
    if (gpsh_dev_is_private(to)) {
        gpsh_dev_ring_get_private(*dev.self, (char *)to, (const char *)from, bytes, pe);
        return;
    }
    gpsh_dev_submit(dev, gpsh_dev_command(GPUSHMEM_CMD_GET, pe, from, to, bytes),
                    blocking ? GPSH_DEV_DONE : GPSH_DEV_NOTHING);
}

// Up to 8 bytes, as the low bytes of the result; 0 if it failed.
GPSH_DEV uint64_t gpsh_dev_ring_get_value(const struct gpushmem_dev &dev, const void *from,
                                          size_t bytes, int pe)
{
    uint64_t value = 0;
    struct gpushmem_command c = gpsh_dev_command(GPUSHMEM_CMD_GET, pe, from, nullptr, bytes);
    c.flags = GPUSHMEM_CMD_REPLY_VALUE;
    return gpsh_dev_push_and_wait(dev, c, &value) ? 0 : value;
}

// n elements of `size` bytes, strides in elements; target (destination) first.
GPSH_DEV_CALL void gpsh_dev_ring_strided(const struct gpushmem_dev &dev,
                                         enum gpushmem_opcode opcode, const void *remote,
                                         const void *local, ptrdiff_t target_stride,
                                         ptrdiff_t source_stride, size_t n, size_t size, int pe)
{
    GPSH_DEV_BOUNDS();
    if (gpsh_dev_is_private(local)) {
        bool put = opcode == GPUSHMEM_CMD_IPUT;
        ptrdiff_t far = put ? target_stride : source_stride,
                  near = put ? source_stride : target_stride;
        for (size_t i = 0; i < n; i++) {
            char *r = (char *)remote + (ptrdiff_t)i * far * (ptrdiff_t)size,
                 *l = (char *)local + (ptrdiff_t)i * near * (ptrdiff_t)size;
            put ? gpsh_dev_ring_put_private(*dev.self, r, l, size, pe)
                : gpsh_dev_ring_get_private(*dev.self, l, r, size, pe);
        }
        return;
    }
    struct gpushmem_command c = gpsh_dev_command(opcode, pe, remote, local, n);
    c.operand = (uint64_t)target_stride;
    c.compare = (uint64_t)source_stride;
    c.extra = size;
    gpsh_dev_submit(dev, c, opcode == GPUSHMEM_CMD_IPUT ? GPSH_DEV_SOURCE : GPSH_DEV_DONE);
}

// The data of a put with its signal travels in the command, too.
GPSH_DEV void gpsh_dev_carry(struct gpushmem_command *c, const void *from, size_t bytes)
{
    uint64_t words[GPUSHMEM_SIGNAL_INLINE_BYTES / 8];
    gpsh_dev_load_carried(words, from, bytes);
    c->opcode = (uint8_t)GPUSHMEM_CMD_PUT_SIGNAL_INLINE;
    c->local = words[0];
    c->reply = words[1];
    c->extra = words[2];
}

template <bool BLOCKING>
GPSH_DEV_CALL void gpsh_dev_ring_put_signal_as(const struct gpushmem_dev &dev, void *to,
                                               const void *from, size_t bytes, uint64_t *signal,
                                               uint64_t value, int op, int pe)
{
    GPSH_DEV_BOUNDS();
    struct gpushmem_command c = gpsh_dev_command(GPUSHMEM_CMD_PUT_SIGNAL, pe, to, from, bytes);
    if (bytes && bytes <= GPUSHMEM_SIGNAL_INLINE_BYTES) {
        gpsh_dev_carry(&c, from, bytes);
    } else if (bytes && gpsh_dev_is_private(from)) {
        gpsh_dev_ring_put_private(dev, (char *)to, (const char *)from, bytes, pe);
        gpsh_dev_ring_fence(dev, pe); // orders the puts above before the signal
        c.local = c.bytes = 0;
    }
    c.operand = value;
    c.compare = (uint64_t)signal;
    c.flags = op == GPUSHMEM_SIGNAL_ADD ? GPUSHMEM_CMD_SIGNAL_ADD : 0;
    bool wait = BLOCKING && c.bytes && c.opcode == GPUSHMEM_CMD_PUT_SIGNAL;
    gpsh_dev_submit(dev, c, wait ? GPSH_DEV_SOURCE : GPSH_DEV_NOTHING);
}

GPSH_DEV void gpsh_dev_ring_put_signal(const struct gpushmem_dev &dev, void *to, const void *from,
                                       size_t bytes, uint64_t *signal, uint64_t value, int op,
                                       int pe, bool blocking)
{
    blocking ? gpsh_dev_ring_put_signal_as<true>(dev, to, from, bytes, signal, value, op, pe)
             : gpsh_dev_ring_put_signal_as<false>(dev, to, from, bytes, signal, value, op, pe);
}

// Of a collective: from the heap, and the source is not waited for.
GPSH_DEV_CALL void gpsh_dev_ring_put_with_word(const struct gpushmem_dev &dev, void *to,
                                               const void *from, size_t bytes, uint64_t *word,
                                               uint64_t value, int pe)
{
    GPSH_DEV_BOUNDS();
    struct gpushmem_command c = gpsh_dev_command(GPUSHMEM_CMD_PUT_SIGNAL, pe, to, from, bytes);
    if (bytes && bytes <= GPUSHMEM_SIGNAL_INLINE_BYTES)
        gpsh_dev_carry(&c, from, bytes);
    c.operand = value;
    c.compare = (uint64_t)word;
    gpsh_dev_submit(dev, c, GPSH_DEV_NOTHING);
}

// Atomic on `width` = 4 or 8 bytes; the previous value if `fetch`.
GPSH_DEV uint64_t gpsh_dev_ring_amo(const struct gpushmem_dev &dev, enum gpushmem_amo amo,
                                    void *target, size_t width, uint64_t operand, uint64_t compare,
                                    int pe, bool fetch)
{
    uint64_t value = 0;
    struct gpushmem_command c = gpsh_dev_command(GPUSHMEM_CMD_AMO, pe, target, nullptr, width);
    c.operand = operand;
    c.compare = compare;
    c.extra = (uint64_t)amo;
    if (!fetch) {
        gpsh_dev_submit(dev, c, GPSH_DEV_NOTHING);
        return 0;
    }
    return gpsh_dev_push_and_wait(dev, c, &value) ? 0 : value;
}

// Asks a ring to say when everything that it was given for this PE before is complete: what
// completed_pe will reach then, or 0 if the command could not be written (recorded).
GPSH_DEV_CALL uint64_t gpsh_dev_ask_quiet_pe(const struct gpushmem_dev &dev, uint32_t number,
                                             int pe)
{
    GPSH_DEV_BOUNDS();
    uint64_t index;
    struct gpushmem_command c = gpsh_dev_command(GPUSHMEM_CMD_QUIET_PE, pe, nullptr, nullptr, 0);
    return gpsh_dev_push(dev, gpsh_dev_ring_at(dev, number), c, &index) ? 0 : index + 1;
}

GPSH_DEV_CALL int gpsh_dev_await_quiet_pe(const struct gpushmem_dev &dev, uint32_t number, int pe,
                                          uint64_t answer)
{
    GPSH_DEV_BOUNDS();
    const struct gpushmem_ring ring = gpsh_dev_ring_at(dev, number);
    return gpsh_dev_await_answer(dev, ring, &ring.completed_pe[pe], answer);
}

// Everything written into any ring for this PE is complete. A look at the host's count often tells
// that nothing is under way at all, and is over before a round trip in a network would be; only
// then the proxy is asked. Four rings are looked at, and asked, at once.
GPSH_DEV_CALL void gpsh_dev_ring_quiet_pe(const struct gpushmem_dev &dev, int pe)
{
    GPSH_DEV_BOUNDS();
    for (uint32_t first = 0; first < dev.n_rings; first += GPSH_DEV_AT_ONCE) {
        uint64_t head[GPSH_DEV_AT_ONCE], now[GPSH_DEV_AT_ONCE] = {}, answer[GPSH_DEV_AT_ONCE];
        gpsh_dev_rings_under_way(dev, first, head);
        GPSH_UNROLL
        for (uint32_t i = 0; i < GPSH_DEV_AT_ONCE; i++)
            if (head[i])
                gpsh_dev_look(gpsh_dev_completed(gpsh_dev_ring_at(dev, first + i)), &now[i]);
        GPSH_UNROLL
        for (uint32_t i = 0; i < GPSH_DEV_AT_ONCE; i++) {
            if (head[i])
                gpsh_dev_max64_relaxed_gpu(gpsh_dev_ring_at(dev, first + i).completed_seen, now[i]);
            answer[i] = head[i] > now[i] ? gpsh_dev_ask_quiet_pe(dev, first + i, pe) : 0;
        }
        GPSH_UNROLL
        for (uint32_t i = 0; i < GPSH_DEV_AT_ONCE; i++)
            if (answer[i] && gpsh_dev_await_quiet_pe(dev, first + i, pe, answer[i]))
                return;
    }
}

#endif
