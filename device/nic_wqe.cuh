// SPDX-License-Identifier: BSD-3-Clause
// Work requests of a NIC (WQEs) as it reads them: how each is built, and written to its place in a
// queue.
#ifndef GPUSHMEM_DEVICE_NIC_WQE_CUH
#define GPUSHMEM_DEVICE_NIC_WQE_CUH

#include "gpushmem/device/atomics.cuh"

enum {
    GPSH_NIC_WRITE = 0x08,
    GPSH_NIC_READ = 0x10,
    GPSH_NIC_CSWAP = 0x11,
    GPSH_NIC_ADD = 0x12,
    GPSH_NIC_SIGNALLED = 2 << 2, // a completion is wanted
    GPSH_NIC_FENCED = 4 << 5,    // waits for earlier reads and atomics
};
#define GPSH_NIC_INLINE 0x80000000u

// A WQE without what depends on its position and its queue pair. Words as the NIC reads them.
struct gpsh_dev_wqe {
    uint32_t opcode;
    uint32_t size;     // in 16 bytes
    uint64_t to;       // address of the object here: the queue knows where it is there
    uint64_t words[4]; // the upper half of the block
};

GPSH_DEV uint64_t gpsh_dev_nic_pair(uint32_t low, uint32_t high)
{
    return gpsh_dev_big32(low) | (uint64_t)gpsh_dev_big32(high) << 32;
}

// Of `bytes` from or to registered memory.
GPSH_DEV struct gpsh_dev_wqe gpsh_dev_wqe_data(uint32_t opcode, const void *target,
                                               const void *local, uint32_t key, uint32_t bytes)
{
    return {opcode,
            3,
            (uint64_t)(uintptr_t)target,
            {gpsh_dev_nic_pair(bytes, key), gpsh_dev_big64((uint64_t)(uintptr_t)local), 0, 0}};
}

// A write that carries its payload: the length comes first, so words are split across halves.
GPSH_DEV struct gpsh_dev_wqe gpsh_dev_wqe_inline(const void *target, const uint64_t (&payload)[4],
                                                 uint32_t bytes)
{
    return {GPSH_NIC_WRITE,
            (36 + bytes + 15) / 16,
            (uint64_t)(uintptr_t)target,
            {gpsh_dev_big32(GPSH_NIC_INLINE | bytes) | payload[0] << 32,
             payload[0] >> 32 | payload[1] << 32, payload[1] >> 32 | payload[2] << 32,
             payload[2] >> 32 | payload[3] << 32}};
}

GPSH_DEV struct gpsh_dev_wqe gpsh_dev_wqe_atomic(uint32_t opcode, const void *target,
                                                 uint64_t operand, uint64_t compare,
                                                 uint64_t *landing, uint32_t key)
{
    return {opcode,
            4,
            (uint64_t)(uintptr_t)target,
            {gpsh_dev_big64(operand), gpsh_dev_big64(compare),
             gpsh_dev_nic_pair((uint32_t)sizeof *landing, key),
             gpsh_dev_big64((uint64_t)(uintptr_t)landing)}};
}

// What a WQE takes from its queue. It never changes while the queue is up.
struct gpsh_dev_nic_facts {
    uint64_t *sq;
    uint64_t remote;
    uint32_t qpn, rkey, depth, entries_log2;
};

GPSH_DEV struct gpsh_dev_nic_facts gpsh_dev_nic_facts_of(const struct gpushmem_nic_queue *q)
{
    return {q->sq, q->remote, q->qpn, q->rkey, q->depth, q->entries_log2};
}

GPSH_DEV uint64_t gpsh_dev_nic_head_word(uint32_t qpn, uint64_t position,
                                         const struct gpsh_dev_wqe &wqe)
{
    return gpsh_dev_nic_pair((uint32_t)(position & 0xffff) << 8 | wqe.opcode, qpn << 8 | wqe.size);
}

GPSH_DEV uint64_t *gpsh_dev_nic_block(const struct gpsh_dev_nic_facts &facts, uint64_t position)
{
    return facts.sq + (uint64_t)((uint32_t)position & ((1u << facts.entries_log2) - 1)) *
                          GPUSHMEM_COMMAND_WORDS;
}

GPSH_DEV void gpsh_dev_nic_write(const struct gpsh_dev_nic_facts &facts, uint64_t position,
                                 const struct gpsh_dev_wqe &wqe, uint32_t flags)
{
    const uint64_t words[8] = {gpsh_dev_nic_head_word(facts.qpn, position, wqe),
                               (uint64_t)flags << 24,
                               gpsh_dev_big64(wqe.to + facts.remote),
                               gpsh_dev_big32(facts.rkey),
                               wqe.words[0],
                               wqe.words[1],
                               wqe.words[2],
                               wqe.words[3]};
    gpsh_dev_store_command(gpsh_dev_nic_block(facts, position), words);
}

#endif
