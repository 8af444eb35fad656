// SPDX-License-Identifier: BSD-3-Clause
// NVSHMEM's collectives of tiles: parts of tensors of up to three dimensions, described by shape
// and stride, where every thread moves units of 16 bytes, or elements. All members' tiles are read
// in place ("one-shot pull"), whatever the algorithm that a program names: there is no multicast
// here. A call is complete when it returns, so tile_collective_wait has nothing to wait for.
// Included by nvshmem_device.cuh.
// clang-format off
#if defined(__CUDACC__)
#define GPSH_NV_EITHER __host__ __device__
#else
#define GPSH_NV_EITHER
#endif
#define _NVSHMEM_DEVICELIB_SUPPORTED 1 // programs ask whether kernels can call NVSHMEM

template <int Value> struct gpsh_nvshmem_int {
    static constexpr int value = Value;
    GPSH_NV_EITHER constexpr operator int() const { return Value; }
};

namespace nvshmemx {

template <int Value> using ConstInt = gpsh_nvshmem_int<Value>;

// Aggregates, so that programs may take them apart: auto [rows, columns] = shape;
template <typename... N> struct shape {
};
template <typename A> struct shape<A> {
    A a;
};
template <typename A, typename B> struct shape<A, B> {
    A a;
    B b;
};
template <typename A, typename B, typename C> struct shape<A, B, C> {
    A a;
    B b;
    C c;
};
template <typename... N> using stride = shape<N...>;

template <typename... N> GPSH_NV_EITHER constexpr shape<N...> make_shape(N... n)
{
    return shape<N...>{n...};
}
template <typename... N> GPSH_NV_EITHER constexpr shape<N...> make_stride(N... n)
{
    return shape<N...>{n...};
}

// How many elements a tile has in each dimension, and how many lie between neighbours there.
template <typename Shape, typename Stride> struct Layout {
    Shape shape_;
    Stride stride_;
};
template <typename Shape, typename Stride>
GPSH_NV_EITHER constexpr Layout<Shape, Stride> make_layout(Shape shape, Stride stride)
{
    return Layout<Shape, Stride>{shape, stride};
}

template <typename T, typename L> struct Tensor {
    typedef T value_type;
    T *data_;
    L layout_;
    GPSH_NV_EITHER constexpr Tensor(T *data, L layout) : data_(data), layout_(layout) {}
    GPSH_NV_EITHER constexpr T *data() const { return data_; }
    GPSH_NV_EITHER constexpr L layout() const { return layout_; }
};

enum class tile_coll_algo_t {
    NVLS_ONE_SHOT_PUSH_NBI = 0,
    NVLS_ONE_SHOT_PULL_NBI = 1,
    NVLS_TWO_SHOT_PUSH_NBI = 2,
};

} // namespace nvshmemx

// Three numbers of a shape, a stride or a coordinate; those that it does not have are `missing`.
struct gpsh_nvshmem_3d {
    int64_t n[3];
};
GPSH_DEV gpsh_nvshmem_3d gpsh_dev_nvshmem_3d(const nvshmemx::shape<> &, int64_t missing)
{
    return {{missing, missing, missing}};
}
template <typename A>
GPSH_DEV gpsh_nvshmem_3d gpsh_dev_nvshmem_3d(const nvshmemx::shape<A> &s, int64_t missing)
{
    return {{(int64_t)s.a, missing, missing}};
}
template <typename A, typename B>
GPSH_DEV gpsh_nvshmem_3d gpsh_dev_nvshmem_3d(const nvshmemx::shape<A, B> &s, int64_t missing)
{
    return {{(int64_t)s.a, (int64_t)s.b, missing}};
}
template <typename A, typename B, typename C>
GPSH_DEV gpsh_nvshmem_3d gpsh_dev_nvshmem_3d(const nvshmemx::shape<A, B, C> &s, int64_t missing)
{
    return {{(int64_t)s.a, (int64_t)s.b, (int64_t)s.c}};
}
// Any other type says that there are no bounds.
template <typename Tuple>
GPSH_DEV gpsh_nvshmem_3d gpsh_dev_nvshmem_3d(const Tuple &, int64_t missing)
{
    return {{missing, missing, missing}};
}

// A tile, cut off at the boundary of its tensor. Shared by all threads of a call.
struct gpsh_nvshmem_tile {
    gpsh_nvshmem_3d size, step;
    int last; // the last dimension that it has
};
template <typename Layout, typename Tuple>
GPSH_DEV gpsh_nvshmem_tile gpsh_dev_nvshmem_tile(const Layout &layout, const Tuple &start,
                                                 const Tuple &boundary)
{
    gpsh_nvshmem_tile tile = {gpsh_dev_nvshmem_3d(layout.shape_, 1),
                              gpsh_dev_nvshmem_3d(layout.stride_, 0), 0};
    gpsh_nvshmem_3d from = gpsh_dev_nvshmem_3d(start, 0),
                    end = gpsh_dev_nvshmem_3d(boundary, INT64_MAX),
                    has = gpsh_dev_nvshmem_3d(layout.shape_, -1);
    for (int i = 0; i < 3; i++) {
        int64_t left = end.n[i] - from.n[i];
        tile.size.n[i] = left < 0 ? 0 : left < tile.size.n[i] ? left : tile.size.n[i];
        tile.last = has.n[i] < 0 ? tile.last : i;
    }
    return tile;
}
GPSH_DEV int64_t gpsh_dev_nvshmem_tile_elements(const gpsh_nvshmem_tile &tile)
{
    return tile.size.n[0] * tile.size.n[1] * tile.size.n[2];
}
// Element k by the order of the first dimension, as an offset in a tensor with these steps.
GPSH_DEV int64_t gpsh_dev_nvshmem_tile_at(const gpsh_nvshmem_tile &tile,
                                          const gpsh_nvshmem_3d &step, int64_t k)
{
    return k % tile.size.n[0] * step.n[0] + k / tile.size.n[0] % tile.size.n[1] * step.n[1] +
           k / tile.size.n[0] / tile.size.n[1] * step.n[2];
}

// A dimension whose elements lie side by side in both tensors becomes the first one, if there is
// such a dimension: rows. No call depends on the order of elements.
GPSH_DEV void gpsh_dev_nvshmem_tile_rows(gpsh_nvshmem_tile *tile, gpsh_nvshmem_3d *to)
{
    gpsh_nvshmem_3d size = tile->size, step = tile->step, there = *to;
    for (int i = 2; i >= 0; i--) {
        if (step.n[i] != 1 || there.n[i] != 1)
            continue;
        tile->size = size, tile->step = step, *to = there;
        tile->size.n[0] = size.n[i], tile->size.n[i] = size.n[0];
        tile->step.n[0] = 1, tile->step.n[i] = step.n[0];
        to->n[0] = 1, to->n[i] = there.n[0];
    }
}

// Where elements of a row lie side by side in both tensors, and every row begins at a multiple of
// 16 bytes, pieces of a row are units of 16 bytes, and at its end elements; else all are elements.
struct gpsh_nvshmem_pieces {
    int64_t unit, units, row, all; // elements of a unit; units, and pieces, of a row; all pieces
};
GPSH_DEV uint64_t gpsh_dev_nvshmem_tile_odd(const gpsh_nvshmem_tile &tile,
                                            const gpsh_nvshmem_3d &step, const void *data,
                                            size_t size)
{
    uint64_t rows = tile.size.n[1] > 1 ? (uint64_t)step.n[1] * size : 0;
    uint64_t planes = tile.size.n[2] > 1 ? (uint64_t)step.n[2] * size : 0;
    return (step.n[0] != 1) | (((uintptr_t)data | rows | planes) & 15);
}
GPSH_DEV gpsh_nvshmem_pieces gpsh_dev_nvshmem_pieces(const gpsh_nvshmem_tile &tile, bool even,
                                                     size_t size)
{
    int64_t unit = even ? 16 / (int64_t)size : 1, n = tile.size.n[0], units = n / unit;
    int64_t row = units + n % unit;
    return {unit, units, row, row * tile.size.n[1] * tile.size.n[2]};
}
// The first element of piece k; `n` becomes how many it has.
GPSH_DEV int64_t gpsh_dev_nvshmem_piece(const gpsh_nvshmem_tile &tile,
                                        const gpsh_nvshmem_pieces &pieces, int64_t k, int64_t *n)
{
    int64_t piece = k % pieces.row, past = piece - pieces.units;
    *n = past < 0 ? pieces.unit : 1;
    return k / pieces.row * tile.size.n[0] +
           (past < 0 ? piece * pieces.unit : pieces.units * pieces.unit + past);
}

// One element of a member, wherever it is.
template <typename T> GPSH_DEV T gpsh_dev_nvshmem_element(const T *source, int pe)
{
    return gpsh_dev_from_bits<T>(gpsh_dev_get_value(GPSH_NV, GPSH_NV, source, sizeof *source, pe));
}

// Two-byte floating point is folded in float and rounded once; integers of two bytes wrap around.
template <typename T, bool Narrow = sizeof(T) == 2> struct gpsh_nvshmem_folds_as {
    typedef T type;
};
template <typename T> struct gpsh_nvshmem_folds_as<T, true> {
    typedef float type;
};
template <> struct gpsh_nvshmem_folds_as<int16_t> {
    typedef int16_t type;
};
template <> struct gpsh_nvshmem_folds_as<uint16_t> {
    typedef uint16_t type;
};
template <int Op, typename T> GPSH_DEV T gpsh_dev_nvshmem_fold(T a, T b)
{
    if (Op == GPUSHMEM_COLL_SUM)
        return a + b;
    return (Op == GPUSHMEM_COLL_MIN ? b < a : a < b) ? b : a;
}

// 16 bytes as elements.
template <typename T> struct gpsh_nvshmem_16_bytes {
    T of[16 / sizeof(T)];
};
// A whole unit of a member; `here` is where this one goes, and serves as a landing place where the
// member is reached through a ring.
template <typename T>
GPSH_DEV gpsh_nvshmem_16_bytes<T> gpsh_dev_nvshmem_whole(T *here, const T *source, int pe)
{
    gpsh_nvshmem_16_bytes<T> unit = {};
    const char *from = (const char *)here;
    if (!gpsh_dev_check(GPSH_NV, source, 16, pe))
        return unit;
    if (uint64_t away = gpsh_dev_away(GPSH_NV, pe))
        from = gpsh_dev_at(away, source);
    else
        gpsh_dev_move<gpsh_scope_thread, gpsh_way_get>(GPSH_NV, GPSH_NV, here, source, 16, pe,
                                                       true);
    gpsh_dev_unit<4> bits = gpsh_dev_load_unit<4>(from, 16);
    memcpy((void *)&unit, &bits, sizeof unit);
    return unit;
}
// The same unit of all members, folded in the order of ranks.
template <int Op, typename T>
GPSH_DEV void gpsh_dev_nvshmem_fold_unit(const struct gpushmem_dev_team *entry, T *here,
                                         const T *source)
{
    typedef typename gpsh_nvshmem_folds_as<T>::type Fold;
    constexpr int n = 16 / sizeof(T);
    Fold all[n];
    gpsh_nvshmem_16_bytes<T> unit = gpsh_dev_nvshmem_whole(here, source, entry->pes[0]);
    GPSH_UNROLL
    for (int i = 0; i < n; i++)
        all[i] = (Fold)unit.of[i];
    for (int rank = 1; rank < entry->n; rank++) {
        unit = gpsh_dev_nvshmem_whole(here, source, entry->pes[rank]);
        GPSH_UNROLL
        for (int i = 0; i < n; i++)
            all[i] = gpsh_dev_nvshmem_fold<Op, Fold>(all[i], (Fold)unit.of[i]);
    }
    GPSH_UNROLL
    for (int i = 0; i < n; i++)
        unit.of[i] = (T)all[i];
    gpsh_dev_unit<4> bits;
    memcpy(&bits, (const void *)&unit, sizeof bits);
    gpsh_dev_store_unit<4>((char *)here, bits, 16);
}
template <int Op, typename T>
GPSH_DEV void gpsh_dev_nvshmem_fold_element(const struct gpushmem_dev_team *entry, T *here,
                                            const T *source)
{
    typedef typename gpsh_nvshmem_folds_as<T>::type Fold;
    Fold all = (Fold)gpsh_dev_nvshmem_element(source, entry->pes[0]);
    for (int rank = 1; rank < entry->n; rank++)
        all = gpsh_dev_nvshmem_fold<Op, Fold>(
            all, (Fold)gpsh_dev_nvshmem_element(source, entry->pes[rank]));
    *here = (T)all;
}

// The members meet; what they stored before is visible after it. Status: of the thread that met.
template <typename Scope> GPSH_DEV int gpsh_dev_nvshmem_tile_meet(nvshmem_team_t team)
{
    int status = 0;
    Scope::sync();
    if (Scope::rank() == 0)
        status = gpsh_dev_team_meet<gpsh_scope_thread>(GPSH_NV, team, false);
    Scope::sync();
    return status;
}

// What a call moves: elements of the tile at `source`, whose steps are the tile's, and at `dest`,
// whose steps are `to`; tiles side by side in dest are `apart` there.
struct gpsh_nvshmem_plan {
    gpsh_nvshmem_tile tile;
    gpsh_nvshmem_3d to;
    int64_t apart;
    gpsh_nvshmem_pieces pieces;
};
template <typename Src, typename Dst, typename Tuple>
GPSH_DEV gpsh_nvshmem_plan gpsh_dev_nvshmem_plan(const Src &source, const Dst &dest, Tuple start,
                                                 Tuple boundary, bool side_by_side)
{
    const size_t size = sizeof(typename Dst::value_type);
    gpsh_nvshmem_tile tile = gpsh_dev_nvshmem_tile(source.layout_, start, boundary);
    gpsh_nvshmem_3d to = gpsh_dev_nvshmem_3d(dest.layout_.stride_, 0),
                    whole = gpsh_dev_nvshmem_3d(source.layout_.shape_, 1);
    int64_t apart = side_by_side ? whole.n[tile.last] * to.n[tile.last] : 0;
    gpsh_dev_nvshmem_tile_rows(&tile, &to);
    bool even = !(gpsh_dev_nvshmem_tile_odd(tile, tile.step, source.data_, size) |
                  gpsh_dev_nvshmem_tile_odd(tile, to, dest.data_, size) |
                  ((uint64_t)apart * size & 15));
    return {tile, to, apart, gpsh_dev_nvshmem_pieces(tile, even, size)};
}

// By the threads of the scope: the fold of all members' tiles at source, in the order of ranks.
template <int Op, typename Scope, typename Src, typename Dst, typename Tuple>
GPSH_DEV int gpsh_dev_nvshmem_tile_reduce(nvshmem_team_t team, Src source, Dst dest, Tuple start,
                                          Tuple boundary, bool writes)
{
    int status = gpsh_dev_nvshmem_tile_meet<Scope>(team);
    const struct gpushmem_dev_team *entry = gpsh_dev_team_entry(GPSH_NV, team);
    if (!entry)
        return GPUSHMEM_ERR_INVALID;
    const gpsh_nvshmem_plan plan = gpsh_dev_nvshmem_plan(source, dest, start, boundary, false);
    for (int64_t k = Scope::rank(); writes && k < plan.pieces.all; k += Scope::size()) {
        int64_t n, at = gpsh_dev_nvshmem_piece(plan.tile, plan.pieces, k, &n);
        auto *here = dest.data_ + gpsh_dev_nvshmem_tile_at(plan.tile, plan.to, at);
        auto *there = source.data_ + gpsh_dev_nvshmem_tile_at(plan.tile, plan.tile.step, at);
        if (n == 1)
            gpsh_dev_nvshmem_fold_element<Op>(entry, here, there);
        else
            gpsh_dev_nvshmem_fold_unit<Op>(entry, here, there);
    }
    int left = gpsh_dev_nvshmem_tile_meet<Scope>(team);
    return status ? status : left;
}

// dest has the members' tiles side by side in the last dimension.
template <typename Scope, typename Src, typename Dst, typename Tuple>
GPSH_DEV int gpsh_dev_nvshmem_tile_gather(nvshmem_team_t team, Src source, Dst dest, Tuple start,
                                          Tuple boundary)
{
    int status = gpsh_dev_nvshmem_tile_meet<Scope>(team);
    const struct gpushmem_dev_team *entry = gpsh_dev_team_entry(GPSH_NV, team);
    if (!entry)
        return GPUSHMEM_ERR_INVALID;
    const gpsh_nvshmem_plan plan = gpsh_dev_nvshmem_plan(source, dest, start, boundary, true);
    for (int64_t k = Scope::rank(); k < plan.pieces.all * entry->n; k += Scope::size()) {
        int rank = (int)(k / plan.pieces.all);
        int64_t n, at = gpsh_dev_nvshmem_piece(plan.tile, plan.pieces, k % plan.pieces.all, &n);
        auto *here =
            dest.data_ + gpsh_dev_nvshmem_tile_at(plan.tile, plan.to, at) + rank * plan.apart;
        auto *there = source.data_ + gpsh_dev_nvshmem_tile_at(plan.tile, plan.tile.step, at);
        if (n == 1)
            *here = gpsh_dev_nvshmem_element(there, entry->pes[rank]);
        else
            gpsh_dev_move<gpsh_scope_thread, gpsh_way_get>(GPSH_NV, GPSH_NV, here, there, 16,
                                                           entry->pes[rank], true);
    }
    int left = gpsh_dev_nvshmem_tile_meet<Scope>(team);
    return status ? status : left;
}

// The calling PE's tile to all members; complete there when it returns.
template <typename Scope, typename Src, typename Dst, typename Tuple>
GPSH_DEV int gpsh_dev_nvshmem_tile_broadcast(nvshmem_team_t team, Src source, Dst dest, Tuple start,
                                             Tuple boundary)
{
    const struct gpushmem_dev_team *entry = gpsh_dev_team_entry(GPSH_NV, team);
    if (!entry)
        return GPUSHMEM_ERR_INVALID;
    const gpsh_nvshmem_plan plan = gpsh_dev_nvshmem_plan(source, dest, start, boundary, false);
    Scope::sync();
    for (int64_t k = Scope::rank(); k < plan.pieces.all * entry->n; k += Scope::size()) {
        int pe = entry->pes[k / plan.pieces.all];
        int64_t n, at = gpsh_dev_nvshmem_piece(plan.tile, plan.pieces, k % plan.pieces.all, &n);
        auto *there = dest.data_ + gpsh_dev_nvshmem_tile_at(plan.tile, plan.to, at);
        auto *here = source.data_ + gpsh_dev_nvshmem_tile_at(plan.tile, plan.tile.step, at);
        if (n == 1)
            gpsh_dev_put_value(GPSH_NV, GPSH_NV, there, gpsh_dev_to_bits(*here), sizeof *there, pe);
        else
            gpsh_dev_move<gpsh_scope_thread, gpsh_way_put>(GPSH_NV, GPSH_NV, there, here, 16, pe,
                                                           true);
    }
    Scope::sync();
    if (Scope::rank() == 0)
        gpsh_dev_quiet(GPSH_NV, GPSH_NV);
    Scope::sync();
    return 0;
}

namespace nvshmemx {

#define GPSH_NV_TILE template <typename Src, typename Dst, typename Tuple, tile_coll_algo_t Algo>
#define GPSH_NV_TILE_FOLD(OP, WORD, SUFFIX, SCOPE) \
    GPSH_NV_TILE GPSH_DEV int tile_##WORD##_reduce##SUFFIX(nvshmem_team_t team, Src src, Dst dst, \
                                                           Tuple start_coord, Tuple boundary, \
                                                           int root, uint64_t flags) \
    { \
        return gpsh_dev_nvshmem_tile_reduce<OP, SCOPE>( \
            team, src, dst, start_coord, boundary, \
            (unsigned)root < (unsigned)gpsh_dev_nvshmem_team_n_pes(team)); \
    } \
    GPSH_NV_TILE GPSH_DEV int tile_##WORD##_allreduce##SUFFIX( \
        nvshmem_team_t team, Src src, Dst dst, Tuple start_coord, Tuple boundary, int root, \
        uint64_t flags) \
    { \
        return gpsh_dev_nvshmem_tile_reduce<OP, SCOPE>(team, src, dst, start_coord, boundary, \
                                                       true); \
    } \
    GPSH_NV_TILE GPSH_DEV int tile_##WORD##_rooted_reduce##SUFFIX( \
        nvshmem_team_t team, Src src, Dst dst, Tuple start_coord, Tuple boundary, int root, \
        uint64_t flags) \
    { \
        return gpsh_dev_nvshmem_tile_reduce<OP, SCOPE>(team, src, dst, start_coord, boundary, \
                                                       gpsh_dev_nvshmem_team_my_pe(team) == root); \
    }
#define GPSH_NV_TILES(SUFFIX, SCOPE) \
    GPSH_NV_TILE_FOLD(GPUSHMEM_COLL_SUM, sum, SUFFIX, SCOPE) \
    GPSH_NV_TILE_FOLD(GPUSHMEM_COLL_MIN, min, SUFFIX, SCOPE) \
    GPSH_NV_TILE_FOLD(GPUSHMEM_COLL_MAX, max, SUFFIX, SCOPE) \
    GPSH_NV_TILE GPSH_DEV int tile_allgather##SUFFIX(nvshmem_team_t team, Src src, Dst dst, \
                                                     Tuple start_coord, Tuple boundary, \
                                                     uint64_t flags) \
    { \
        return gpsh_dev_nvshmem_tile_gather<SCOPE>(team, src, dst, start_coord, boundary); \
    } \
    GPSH_NV_TILE GPSH_DEV int tile_broadcast##SUFFIX(nvshmem_team_t team, Src src, Dst dst, \
                                                     Tuple start_coord, Tuple boundary, \
                                                     uint64_t flags) \
    { \
        return gpsh_dev_nvshmem_tile_broadcast<SCOPE>(team, src, dst, start_coord, boundary); \
    } \
    template <tile_coll_algo_t Algo> \
    GPSH_DEV int tile_collective_wait##SUFFIX(nvshmem_team_t team, uint64_t flags) \
    { \
        return 0; \
    }
GPSH_NV_TILES(, gpsh_scope_thread)
GPSH_NV_TILES(_warp, gpsh_scope_warp)
GPSH_NV_TILES(_warpgroup, gpsh_scope_warpgroup)
GPSH_NV_TILES(_block, gpsh_scope_block)
#undef GPSH_NV_TILES
#undef GPSH_NV_TILE_FOLD
#undef GPSH_NV_TILE

} // namespace nvshmemx
#undef GPSH_NV_EITHER
// clang-format on
