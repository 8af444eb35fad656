// SPDX-License-Identifier: BSD-3-Clause
// What the ways of collectives share: where blocks of an operation lie, and how they are read and
// written in units of 8 or 16 bytes.
#ifndef GPUSHMEM_DEVICE_COLL_UNIT_CUH
#define GPUSHMEM_DEVICE_COLL_UNIT_CUH

#include "gpushmem/device/fold.cuh"
#include "gpushmem/device/team.cuh"

// ---- Blocks of an operation ----

GPSH_DEV bool gpsh_dev_coll_folds(const struct gpushmem_coll_op &op)
{
    return op.kind >= GPUSHMEM_COLL_REDUCE;
}
GPSH_DEV bool gpsh_dev_coll_scans(const struct gpushmem_coll_op &op)
{
    return op.kind >= GPUSHMEM_COLL_INSCAN;
}
// Elements of a block are apart.
GPSH_DEV bool gpsh_dev_coll_strided(const struct gpushmem_coll_op &op)
{
    return op.kind == GPUSHMEM_COLL_ALLTOALLS && (op.dest_stride != 1 || op.source_stride != 1);
}
GPSH_DEV uint64_t gpsh_dev_coll_bytes(const struct gpushmem_coll_op &op)
{
    return gpushmem_coll_bytes(&op);
}
GPSH_DEV const char *gpsh_dev_coll_source(const struct gpushmem_coll_op &op, int rank)
{
    return gpushmem_coll_source(&op, rank);
}
GPSH_DEV char *gpsh_dev_coll_dest(const struct gpushmem_coll_op &op, int rank)
{
    return gpushmem_coll_dest(&op, rank);
}
GPSH_DEV uint64_t gpsh_dev_coll_message(const struct gpushmem_coll_op &op, int from, int to)
{
    return gpushmem_coll_message(&op, from, to);
}

// Whose contributions this PE folds: below this rank.
GPSH_DEV int gpsh_dev_coll_fold_end(const struct gpsh_dev_coll &c,
                                    const struct gpushmem_coll_op &op)
{
    return op.kind == GPUSHMEM_COLL_INSCAN   ? c.me + 1
           : op.kind == GPUSHMEM_COLL_EXSCAN ? c.me
                                             : c.n;
}

// ---- Units ----

#if defined(__CUDA_ARCH__)
template <int WORDS>
GPSH_DEV_CALL gpsh_dev_unit<WORDS> gpsh_dev_load_part(const char *from, uint64_t left)
{
    GPSH_DEV_BOUNDS();
    gpsh_dev_unit<WORDS> unit = {};
    bool words = !((uintptr_t)from & 3);
    GPSH_UNROLL
    for (unsigned i = 0; i < WORDS; i++) {
        if (words && left >= 4 * i + 4)
            gpsh_dev_load_uncached(&unit.w[i], (const gpsh_dev_word32 *)(from + 4 * i));
        else
            for (unsigned k = 0; k < 4 && 4 * i + k < left; k++) {
                uint8_t byte;
                gpsh_dev_load_uncached(&byte, (const uint8_t *)from + 4 * i + k);
                unit.w[i] |= (uint32_t)byte << 8 * k;
            }
    }
    return unit;
}

template <int WORDS>
GPSH_DEV_CALL void gpsh_dev_store_part(char *to, gpsh_dev_unit<WORDS> unit, uint64_t left)
{
    GPSH_DEV_BOUNDS();
    bool words = !((uintptr_t)to & 3);
    GPSH_UNROLL
    for (unsigned i = 0; i < WORDS; i++) {
        if (words && left >= 4 * i + 4)
            *(gpsh_dev_word32 *)(to + 4 * i) = unit.w[i];
        else
            for (unsigned k = 0; k < 4 && 4 * i + k < left; k++)
                to[4 * i + k] = (char)(unit.w[i] >> 8 * k);
    }
}

// 16 bytes, aligned. What others may have written is read past the first-level cache.
GPSH_DEV gpsh_dev_unit<4> gpsh_dev_load_whole(const char *from)
{
    uint4 all = __ldcg((const uint4 *)from);
    return {{all.x, all.y, all.z, all.w}};
}
// The same, begun where it stands: a compiler moves the other to where its value is needed, behind
// a wait that it was to overlap.
GPSH_DEV gpsh_dev_unit<4> gpsh_dev_load_whole_ahead(const char *from)
{
    gpsh_dev_unit<4> unit;
    asm volatile("ld.global.cg.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(unit.w[0]), "=r"(unit.w[1]), "=r"(unit.w[2]), "=r"(unit.w[3])
                 : "l"(from));
    return unit;
}
// From the first-level cache, if it is there. Of what this thread may read as it would itself.
GPSH_DEV gpsh_dev_unit<4> gpsh_dev_load_whole_cached(const char *from)
{
    gpsh_dev_unit<4> unit;
    asm volatile("ld.global.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(unit.w[0]), "=r"(unit.w[1]), "=r"(unit.w[2]), "=r"(unit.w[3])
                 : "l"(from));
    return unit;
}
GPSH_DEV void gpsh_dev_store_whole(char *to, const gpsh_dev_unit<4> &unit)
{
    *(uint4 *)to = make_uint4(unit.w[0], unit.w[1], unit.w[2], unit.w[3]);
}

// 8 bytes, the same.
GPSH_DEV gpsh_dev_unit<2> gpsh_dev_load_unit8(const char *from)
{
    uint2 all = __ldcg((const uint2 *)from);
    return {{all.x, all.y}};
}
GPSH_DEV void gpsh_dev_store_unit8(char *to, const gpsh_dev_unit<2> &unit)
{
    *(uint2 *)to = make_uint2(unit.w[0], unit.w[1]);
}

// The first `left` bytes, at most a unit, past the first-level cache too.
template <int WORDS>
GPSH_DEV gpsh_dev_unit<WORDS> gpsh_dev_load_unit(const char *from, uint64_t left)
{
    gpsh_dev_unit<WORDS> unit = {};
    if (WORDS == 2 && left == 4 && !((uintptr_t)from & 3)) { // what one element often is
        unit.w[0] = __ldcg((const unsigned *)from);
        return unit;
    }
    if (left < 4 * WORDS || (uintptr_t)from & (4 * WORDS - 1))
        return gpsh_dev_load_part<WORDS>(from, left);
    if (WORDS == 4) {
        uint4 all = __ldcg((const uint4 *)from);
        unit.w[0] = all.x, unit.w[1] = all.y, unit.w[2] = all.z, unit.w[3] = all.w;
    } else {
        uint2 all = __ldcg((const uint2 *)from);
        unit.w[0] = all.x, unit.w[1] = all.y;
    }
    return unit;
}

template <int WORDS>
GPSH_DEV void gpsh_dev_store_unit(char *to, const gpsh_dev_unit<WORDS> &unit, uint64_t left)
{
    if (WORDS == 2 && left == 4 && !((uintptr_t)to & 3))
        *(gpsh_dev_word32 *)to = unit.w[0];
    else if (left < 4 * WORDS || (uintptr_t)to & (4 * WORDS - 1))
        gpsh_dev_store_part<WORDS>(to, unit, left);
    else if (WORDS == 4)
        *(uint4 *)to = make_uint4(unit.w[0], unit.w[1], unit.w[2], unit.w[3]);
    else
        *(uint2 *)to = make_uint2(unit.w[0], unit.w[1]);
}
#else
template <int WORDS>
GPSH_DEV gpsh_dev_unit<WORDS> gpsh_dev_load_unit(const char *from, uint64_t left)
{
    gpsh_dev_unit<WORDS> unit = {};
    memcpy(&unit, from, left < 4 * WORDS ? left : 4 * WORDS);
    return unit;
}

template <int WORDS>
GPSH_DEV void gpsh_dev_store_unit(char *to, const gpsh_dev_unit<WORDS> &unit, uint64_t left)
{
    memcpy(to, &unit, left < 4 * WORDS ? left : 4 * WORDS);
}

GPSH_DEV gpsh_dev_unit<4> gpsh_dev_load_whole(const char *from)
{
    return gpsh_dev_load_unit<4>(from, 16);
}
GPSH_DEV gpsh_dev_unit<4> gpsh_dev_load_whole_ahead(const char *from)
{
    return gpsh_dev_load_whole(from);
}
GPSH_DEV gpsh_dev_unit<4> gpsh_dev_load_whole_cached(const char *from)
{
    return gpsh_dev_load_whole(from);
}
GPSH_DEV void gpsh_dev_store_whole(char *to, const gpsh_dev_unit<4> &unit)
{
    gpsh_dev_store_unit<4>(to, unit, 16);
}
GPSH_DEV gpsh_dev_unit<2> gpsh_dev_load_unit8(const char *from)
{
    return gpsh_dev_load_unit<2>(from, 8);
}
GPSH_DEV void gpsh_dev_store_unit8(char *to, const gpsh_dev_unit<2> &unit)
{
    gpsh_dev_store_unit<2>(to, unit, 8);
}
#endif

// ---- Packed elements that are apart in memory ----

// `bytes` of a block from its packed offset `at`: width and stride of its elements in memory.
template <int WORDS>
GPSH_DEV_CALL gpsh_dev_unit<WORDS> gpsh_dev_gather(const char *block, uint64_t at, uint64_t left,
                                                   uint32_t width, int64_t stride)
{
    GPSH_DEV_BOUNDS();
    gpsh_dev_unit<WORDS> unit = {};
    for (unsigned i = 0; i < 4 * WORDS && i < left; i++) {
        uint64_t element = (at + i) / width;
        uint8_t byte = (uint8_t)block[element * stride * width + (at + i) % width];
        unit.w[i / 4] |= (uint32_t)byte << i % 4 * 8;
    }
    return unit;
}

template <int WORDS>
GPSH_DEV_CALL void gpsh_dev_scatter(char *block, gpsh_dev_unit<WORDS> unit, uint64_t at,
                                    uint64_t left, uint32_t width, int64_t stride)
{
    GPSH_DEV_BOUNDS();
    for (unsigned i = 0; i < 4 * WORDS && i < left; i++) {
        uint64_t element = (at + i) / width;
        block[element * stride * width + (at + i) % width] = (char)(unit.w[i / 4] >> i % 4 * 8);
    }
}

// ---- Copies by all lanes ----

GPSH_DEV_CALL void gpsh_dev_coll_copy(char *to, const char *from, uint64_t bytes, unsigned lane,
                                      unsigned lanes)
{
    GPSH_DEV_BOUNDS();
#if defined(__CUDACC__)
    uintptr_t apart = (uintptr_t)to ^ (uintptr_t)from;
    if (apart % 16 == 0)
        gpsh_dev_copy_aligned<gpsh_way_get, gpsh_dev_word128, 8>(to, from, bytes, lane, lanes);
    else if (apart % 4 == 0)
        gpsh_dev_copy_aligned<gpsh_way_get, gpsh_dev_word32, 8>(to, from, bytes, lane, lanes);
    else
        gpsh_dev_copy_words<gpsh_way_get, char, 8>(to, from, bytes, lane, lanes);
#else
    uint64_t piece = (bytes / lanes + 64) / 64 * 64, first = piece * lane;
    if (first < bytes)
        memcpy(to + first, from + first, bytes - first < piece ? bytes - first : piece);
#endif
}

// A block of alltoalls.
GPSH_DEV_CALL void gpsh_dev_coll_copy_apart(char *to, const char *from, struct gpushmem_coll_op op,
                                            unsigned lane, unsigned lanes)
{
    GPSH_DEV_BOUNDS();
    for (uint64_t i = lane; i < op.n; i += lanes) {
        uint64_t at = i * op.width;
        gpsh_dev_unit<4> unit = gpsh_dev_gather<4>(from, at, op.width, op.width, op.source_stride);
        gpsh_dev_scatter<4>(to, unit, at, op.width, op.width, op.dest_stride);
    }
}

#endif
