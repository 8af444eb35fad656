// SPDX-License-Identifier: BSD-3-Clause
// NVSHMEM programs of the host as users write them, one after the other in one process: each begins
// with an init and ends with finalize, so that all but the first are second inits.
#include <fstream>
#include <iterator>
#include <string>
#include <unistd.h>
#include <vector>

#include "nvshmem_check.h"

// Names that programs have of their own: nvshmem.h defines no macros of these names.
enum own { NVSHMEM_INT, NVSHMEM_FLOAT, NVSHMEM_SUM, NVSHMEM_THREAD, NVSHMEM_WARP, NVSHMEM_BLOCK };
template <own OF> static int nvshmem_put()
{
    return OF;
}
template <own OF> static int nvshmem_get()
{
    return OF;
}

namespace
{

// Each PE sends its number to the right.
void ring()
{
    nvshmem_init();
    int mype = nvshmem_my_pe(), npes = nvshmem_n_pes();
    CHECK(nvshmem_team_my_pe(NVSHMEMX_TEAM_NODE) < nvshmem_team_n_pes(NVSHMEMX_TEAM_NODE));
    int *inbox = (int *)nvshmem_malloc(sizeof(int));
    nvshmem_int_p(inbox, mype, (mype + 1) % npes);
    nvshmem_barrier_all();
    CHECK(*inbox == (mype + npes - 1) % npes);
    CHECK(nvshmem_put<NVSHMEM_WARP>() == NVSHMEM_WARP && nvshmem_get<NVSHMEM_INT>() == 0);
    nvshmem_free(inbox);
    nvshmem_finalize();
}

// Rows of a plane, the halo by puts of the stream, and the norm by a reduction of the stream.
void jacobi()
{
    nvshmemx_init_attr_t attr = NVSHMEMX_INIT_ATTR_INITIALIZER;
    CHECK(nvshmemx_init_attr(0, &attr) == 0);
    const int nx = 8, mype = nvshmem_my_pe(), npes = nvshmem_n_pes();
    cudaStream_t stream = 0;
    float *plane = (float *)nvshmem_calloc(3 * nx, sizeof(float));
    float *norm = (float *)nvshmem_malloc(2 * sizeof(float));
    for (int x = 0; x < nx; x++)
        plane[nx + x] = (float)(mype + 1);
    nvshmemx_barrier_all_on_stream(stream);
    if (mype > 0)
        nvshmemx_float_put_nbi_on_stream(plane + 2 * nx, plane + nx, nx, mype - 1, stream);
    if (mype < npes - 1)
        nvshmemx_float_put_nbi_on_stream(plane, plane + nx, nx, mype + 1, stream);
    nvshmemx_quiet_on_stream(stream);
    nvshmemx_barrier_all_on_stream(stream);
    for (int x = 0; x < nx; x++)
        CHECK(plane[x] == (float)mype && plane[2 * nx + x] == (mype < npes - 1 ? mype + 2.f : 0.f));
    norm[0] = plane[0];
    nvshmemx_barrier_all_on_stream(stream);
    CHECK(nvshmemx_float_sum_reduce_on_stream(NVSHMEM_TEAM_WORLD, norm + 1, norm, 1, stream) == 0);
    CHECK(norm[1] == (float)(npes * (npes - 1) / 2));
    nvshmem_free(plane);
    nvshmem_free(norm);
    nvshmem_finalize();
}

// Chunks go round with a signal each.
void pipeline()
{
    nvshmem_init();
    enum { CHUNKS = 4, BYTES = 256 };
    const int mype = nvshmem_my_pe(), npes = nvshmem_n_pes(), peer = (mype + 1) % npes;
    char *data = (char *)nvshmem_malloc(CHUNKS * BYTES);
    uint64_t *flags = (uint64_t *)nvshmem_calloc(CHUNKS, sizeof(uint64_t));
    std::vector<char> source(BYTES);
    for (int c = 0; c < CHUNKS; c++) {
        memset(source.data(), 'a' + c + mype, BYTES);
        nvshmem_putmem_signal_nbi(data + c * BYTES, source.data(), BYTES, flags + c, 1,
                                  NVSHMEM_SIGNAL_SET, peer);
        nvshmem_quiet();
    }
    for (int c = 0; c < CHUNKS; c++) {
        CHECK(nvshmem_signal_wait_until(flags + c, NVSHMEM_CMP_EQ, 1) == 1);
        CHECK(data[(c + 1) * BYTES - 1] == 'a' + c + (mype + npes - 1) % npes);
    }
    nvshmem_barrier_all();
    nvshmem_free(data);
    nvshmem_free(flags);
    nvshmem_finalize();
}

// Tokens to experts: first how many, then where to, then the tokens.
void dispatch()
{
    nvshmem_init();
    const int mype = nvshmem_my_pe(), npes = nvshmem_n_pes();
    int64_t *send = (int64_t *)nvshmem_malloc(2 * (size_t)npes * sizeof(int64_t));
    int64_t *receive = send + npes;
    int *tokens = (int *)nvshmem_calloc((size_t)(npes * npes), sizeof(int));
    for (int pe = 0; pe < npes; pe++)
        send[pe] = mype + pe;
    nvshmemx_barrier_all_on_stream(0);
    CHECK(nvshmemx_int64_alltoall_on_stream(NVSHMEM_TEAM_WORLD, receive, send, 1, 0) == 0);
    for (int pe = 0; pe < npes; pe++) {
        CHECK(receive[pe] == pe + mype);
        int token = 100 * mype + pe;
        nvshmem_putmem(tokens + mype, &token, sizeof token, pe);
    }
    nvshmem_barrier_all();
    for (int pe = 0; pe < npes; pe++)
        CHECK(tokens[pe] == 100 * pe + mype);
    nvshmem_free(tokens);
    nvshmem_free(send);
    nvshmem_finalize();
}

void histogram()
{
    nvshmem_init();
    const int mype = nvshmem_my_pe(), npes = nvshmem_n_pes();
    unsigned *bins = (unsigned *)nvshmem_calloc(4, sizeof(unsigned));
    nvshmem_barrier_all();
    for (unsigned i = 0; i < 12; i++)
        nvshmem_uint_atomic_add(bins + i % 4, 1, (int)i % npes);
    nvshmem_barrier_all();
    unsigned sum = 0;
    for (int i = 0; i < 4; i++)
        for (int pe = 0; pe < npes; pe++)
            sum += nvshmem_uint_g(bins + i, pe);
    CHECK(sum == 12 * (unsigned)npes);
    nvshmem_barrier_all();
    if (mype == 0)
        nvshmem_uint_atomic_set(bins, 7, npes - 1);
    nvshmem_barrier_all();
    CHECK(nvshmem_uint_atomic_fetch(bins, npes - 1) == 7);
    nvshmem_barrier_all();
    nvshmem_free(bins);
    nvshmem_finalize();
}

// Rows and columns, and one team of every second PE.
void teams()
{
    nvshmem_init();
    const int mype = nvshmem_my_pe(), npes = nvshmem_n_pes();
    nvshmem_team_config_t config = NVSHMEM_TEAM_CONFIG_INITIALIZER, got;
    nvshmem_team_t row, column, even = NVSHMEM_TEAM_INVALID;
    config.num_contexts = 2;
    CHECK(nvshmem_team_split_2d(NVSHMEM_TEAM_WORLD, 2, &config, NVSHMEM_TEAM_NUM_CONTEXTS, &row,
                                NULL, 0, &column) == 0);
    CHECK(nvshmem_team_my_pe(row) == mype % 2 && nvshmem_team_my_pe(column) == mype / 2);
    CHECK(nvshmem_team_get_config(row, &got) == 0 && got.num_contexts == 2);
    CHECK(nvshmem_team_translate_pe(column, mype / 2, NVSHMEM_TEAM_WORLD) == mype);
    // uninitialised but for nothing: without the mask it is not looked at
    memset(&config, 0xee, sizeof config);
    CHECK(nvshmem_team_split_strided(NVSHMEM_TEAM_WORLD, 0, 2, (npes + 1) / 2, &config, 0, &even) ==
          0);
    CHECK((even == NVSHMEM_TEAM_INVALID) == (mype % 2 == 1));
    int *value = (int *)nvshmem_malloc(2 * sizeof(int));
    value[0] = 1;
    nvshmem_barrier_all();
    if (even != NVSHMEM_TEAM_INVALID) {
        CHECK(nvshmem_int_sum_reduce(even, value + 1, value, 1) == 0);
        CHECK(value[1] == nvshmem_team_n_pes(even));
        nvshmem_team_destroy(even);
    }
    nvshmem_team_destroy(row);
    nvshmem_team_destroy(column);
    nvshmem_free(value);
    nvshmem_finalize();
}

// Every second PE, which know how many they are and not who: a team by an id, again and again, and
// with another one beside it.
void team_by_id()
{
    nvshmem_init();
    const int mype = nvshmem_my_pe(), npes = nvshmem_n_pes();
    uint64_t *ids = (uint64_t *)nvshmem_calloc(2, sizeof *ids);
    nvshmem_team_t team, other;
    nvshmem_team_config_t config = NVSHMEM_TEAM_CONFIG_INITIALIZER;
    CHECK(nvshmemx_team_init(&team, &config, NVSHMEM_TEAM_CONFIG_MASK_UNIQUEID, npes, mype) ==
          NVSHMEMX_ERROR_INVALID_VALUE);
    for (int round = 0; round < 20; round++) {
        if (mype == 0)
            CHECK(nvshmemx_team_get_uniqueid(ids) == 0 && nvshmemx_team_get_uniqueid(ids + 1) == 0);
        nvshmem_barrier_all();
        config.uniqueid = nvshmem_uint64_g(ids + mype % 2, 0);
        const int members = (npes + 1 - mype % 2) / 2;
        CHECK(nvshmemx_team_init(&team, &config, NVSHMEM_TEAM_CONFIG_MASK_UNIQUEID, members,
                                 members - 1 - mype / 2) == 0);
        CHECK(nvshmem_team_n_pes(team) == members);
        CHECK(nvshmem_team_my_pe(team) == members - 1 - mype / 2);
        CHECK(nvshmem_team_translate_pe(team, 0, NVSHMEM_TEAM_WORLD) ==
              2 * (members - 1) + mype % 2);
        CHECK(nvshmem_barrier(team) == 0);
        if (npes == 1) // nobody has come for the other one: it waits for its team
            CHECK(nvshmemx_team_init(&other, &config, NVSHMEM_TEAM_CONFIG_MASK_UNIQUEID, 1, 0) ==
                  NVSHMEMX_ERROR_INVALID_VALUE);
        nvshmem_team_destroy(team);
        nvshmem_barrier_all();
        if (npes == 1 && round == 6)
            break; // seven of eight ids wait
    }
    nvshmem_free(ids);
    nvshmem_finalize();
}

// What came with 3.7 and 3.8.
void recent()
{
    nvshmem_init();
    const int mype = nvshmem_my_pe(), npes = nvshmem_n_pes(), next = (mype + 1) % npes;
    double *sums = (double *)nvshmem_calloc(4, sizeof *sums);
    float *single = (float *)(sums + 1);
    const uint16_t one_bits = 0x3c00, *half_bits = (const uint16_t *)(sums + 2);
    gpsh_nvshmem_half *halves = (gpsh_nvshmem_half *)(sums + 2), one;
    memcpy((void *)&one, &one_bits, sizeof one);
    for (int pe = 0; pe < npes; pe++) {
        nvshmemx_double_atomic_add(sums, 0.5, pe);
        CHECK(nvshmemx_float_atomic_fetch_add(single, 2, pe) < 2 * (float)npes);
        gpsh_nvshmem_half before = nvshmemx_half_atomic_fetch_add(halves + 1, one, pe);
        uint16_t bits;
        memcpy(&bits, (const void *)&before, sizeof bits);
        CHECK(bits == 0 || bits >= one_bits);
        nvshmemx_half_atomic_add(halves + 1, one, pe);
    }
    nvshmem_barrier_all();
    CHECK(sums[0] == 0.5 * npes && single[0] == 2 * (float)npes && single[1] == 0);
    CHECK(half_bits[1] == (npes == 1 ? 0x4000 : 0x4600) && half_bits[0] == 0); // 2, 6
    uint64_t *signal = (uint64_t *)(sums + 3);
    nvshmemx_signal_op(signal, 3, NVSHMEM_SIGNAL_ADD, next);
    nvshmemx_flush();
    nvshmem_signal_wait_until(signal, NVSHMEM_CMP_EQ, 3);
    nvshmemx_signal_counted_reset(signal);
    CHECK(nvshmem_signal_fetch(signal) == 0);
    CHECK(nvshmemx_ask_smem(NVSHMEMX_SMEM_RECOMMENDED) == 0); // to launch with
    CHECK(!nvshmemx_region_is_active() && nvshmemx_region_start(0) == 0);
    CHECK(nvshmemx_region_start(0) == 0 && nvshmemx_region_stop() == 0);
    CHECK(nvshmemx_region_is_active() && nvshmemx_region_stop() == 0);
    CHECK(!nvshmemx_region_is_active() && nvshmemx_region_stop() != 0);
    void *mine = aligned_alloc(1 << 16, 1 << 16);
    int *shared =
        (int *)nvshmemx_buffer_register_symmetric_at_preferred_address(mine, mine, 1 << 16, 0);
    CHECK(shared && nvshmem_ptr(shared, mype) == shared);
    CHECK(nvshmemx_buffer_unregister_symmetric(shared, 1 << 16) == 0);
    CHECK(nvshmem_team_n_pes(NVSHMEMX_TEAM_SAME_GPU) == 1); // the heap is host memory
    CHECK(nvshmem_team_my_pe(NVSHMEMX_TEAM_GPU_LEADERS) == mype);
    free(mine);
    nvshmem_free(sums);
    nvshmem_finalize();
}

#define STREAM_WAIT(NAME, TYPE, AS, CTYPE)                                                         \
    {                                                                                              \
        TYPE *words = (TYPE *)memory, wanted[3] = {(TYPE)-1, 5, 7};                                \
        const int skip[3] = {0, 1, 0};                                                             \
        nvshmemx_##NAME##_p_on_stream(words, (TYPE)-1, next, 0);                                   \
        nvshmemx_##NAME##_p_on_stream(words + 2, 7, next, 0);                                      \
        nvshmemx_##NAME##_wait_until_on_stream(                                                    \
            words, (TYPE)-1 < (TYPE)1 ? NVSHMEM_CMP_LT : NVSHMEM_CMP_GT, 0, 0);                    \
        nvshmemx_##NAME##_wait_until_all_vector_on_stream(words, 3, skip, NVSHMEM_CMP_EQ, wanted,  \
                                                          0);                                      \
        nvshmemx_##NAME##_wait_until_all_on_stream(words, 3, skip, NVSHMEM_CMP_NE, 1, 0);          \
        nvshmemx_barrier_all_on_stream(0);                                                         \
        CHECK(words[0] == (TYPE)-1 && words[1] == 0 && words[2] == 7);                             \
        memset(memory, 0, 64);                                                                     \
        nvshmem_barrier_all();                                                                     \
    }
void stream_waits()
{
    nvshmem_init();
    const int next = (nvshmem_my_pe() + 1) % nvshmem_n_pes();
    void *memory = nvshmem_calloc(8, 8);
    GPSH_NVS_SYNC_TYPES(STREAM_WAIT)
    nvshmemx_flush_on_stream(0);
    nvshmem_free(memory);
    nvshmem_finalize();
}

// Private buffers as source and destination, and one that becomes symmetric.
void buffers()
{
    nvshmem_init();
    const int mype = nvshmem_my_pe(), npes = nvshmem_n_pes();
    const size_t page = 1 << 16;
    void *local = aligned_alloc(page, page), *mine = aligned_alloc(page, page);
    int *heap = (int *)nvshmem_align(1024, 64);
    CHECK((uintptr_t)heap % 1024 == 0 && nvshmem_ptr(heap, mype) == heap);
    CHECK(nvshmemx_mc_ptr(NVSHMEM_TEAM_WORLD, heap) == NULL);
    CHECK(nvshmemx_buffer_register(local, page) == 0);
    *(int *)local = mype;
    nvshmem_putmem(heap, local, sizeof(int), (mype + 1) % npes);
    nvshmem_barrier_all();
    CHECK(*heap == (mype + npes - 1) % npes);
    CHECK(nvshmemx_buffer_unregister(local) == 0 && nvshmemx_buffer_register(local, page) == 0);
    nvshmemx_buffer_unregister_all();
    CHECK(nvshmemx_buffer_unregister(local) == NVSHMEMX_ERROR_INVALID_VALUE);
    *(int *)mine = 100 + mype;
    int *shared = (int *)nvshmemx_buffer_register_symmetric(mine, page, 0);
    CHECK(shared && nvshmem_int_g(shared, npes - 1) == 99 + npes);
    CHECK(nvshmemx_buffer_unregister_symmetric(shared, page) == 0);
    nvshmem_free(heap);
    free(local);
    free(mine);
    nvshmem_finalize();
}

// A server that takes requests as they come.
void server()
{
    nvshmem_init();
    const int mype = nvshmem_my_pe(), npes = nvshmem_n_pes();
    int *requests = (int *)nvshmem_calloc((size_t)npes, sizeof(int));
    std::vector<int> done((size_t)npes);
    nvshmem_int_p(requests + mype, 1, 0);
    for (int i = 0; mype == 0 && i < npes; i++) {
        size_t who =
            nvshmem_int_wait_until_any(requests, (size_t)npes, done.data(), NVSHMEM_CMP_EQ, 1);
        CHECK(who < (size_t)npes && !done[who]);
        done[who] = 1;
    }
    nvshmem_barrier_all();
    nvshmem_free(requests);
    nvshmem_finalize();
}

void queries()
{
    int provided = -1, major = 0, minor = 0, patch = 0;
    char name[NVSHMEM_MAX_NAME_LEN];
    CHECK(nvshmemx_init_status() == NVSHMEM_STATUS_NOT_INITIALIZED);
    CHECK(nvshmem_init_thread(NVSHMEM_THREAD_SERIALIZED, &provided) == 0);
    CHECK(nvshmemx_init_status() >= NVSHMEM_STATUS_IS_INITIALIZED);
    CHECK(provided >= NVSHMEM_THREAD_SERIALIZED);
    nvshmem_query_thread(&provided);
    CHECK(provided >= NVSHMEM_THREAD_SERIALIZED);
    nvshmem_info_get_version(&major, &minor);
    CHECK(major == NVSHMEM_MAJOR_VERSION && minor == NVSHMEM_MINOR_VERSION);
    nvshmemx_vendor_get_version_info(&major, &minor, &patch);
    CHECK(major == NVSHMEM_VENDOR_MAJOR_VERSION && patch == NVSHMEM_VENDOR_PATCH_VERSION);
    nvshmem_info_get_name(name);
    CHECK(strcmp(name, NVSHMEM_VENDOR_STRING) == 0);
    nvshmem_finalize();
    CHECK(nvshmemx_init_status() == NVSHMEM_STATUS_NOT_INITIALIZED);
}

// What the library logs while there is one.
class Log
{
  public:
    Log() : path("/tmp/gpushmem-nvshmem-" + std::to_string(getpid()) + ".log")
    {
        setenv("GPUSHMEM_LOG_FILE", path.c_str(), 1);
    }
    ~Log()
    {
        unsetenv("GPUSHMEM_LOG_FILE");
        unlink(path.c_str());
    }
    bool has(const char *sentence) const
    {
        std::ifstream file(path);
        std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
        return text.find(sentence) != std::string::npos;
    }

  private:
    std::string path;
};

enum { MOST_TEAMS = 250 };

// How many can be made, up to n.
int teams_at_most(int n)
{
    nvshmem_team_t team;
    int made = 0;
    while (made < n && nvshmem_team_split_strided(NVSHMEM_TEAM_WORLD, 0, 1, nvshmem_n_pes(),
                                                  nullptr, 0, &team) == 0)
        made++;
    return made;
}

// NVSHMEM_MAX_TEAMS counts the teams that the program makes, and sentences name it.
void numbers_of_teams()
{
    static const struct {
        const char *value;
        int teams;
    } rows[] = {{"4", 4}, {"0", 0}, {"1000", MOST_TEAMS}};
    int provided, mype = -1;
    Log log;
    for (const char *bad : {"-1", "many", "4 teams"}) {
        setenv("NVSHMEM_MAX_TEAMS", bad, 1);
        CHECK(nvshmem_init_thread(NVSHMEM_THREAD_SINGLE, &provided) != 0);
    }
    for (const auto &row : rows) {
        setenv("NVSHMEM_MAX_TEAMS", row.value, 1);
        CHECK(nvshmem_init_thread(NVSHMEM_THREAD_SINGLE, &provided) == 0);
        mype = nvshmem_my_pe();
        CHECK(teams_at_most(MOST_TEAMS + 10) == row.teams);
        nvshmem_finalize();
    }
    unsetenv("NVSHMEM_MAX_TEAMS");
    if (mype != 0)
        return; // only PE 0 chooses slots
    CHECK(log.has("nvshmem_team_split_strided: no slot is free"));
    CHECK(log.has("destroy a team, or raise NVSHMEM_MAX_TEAMS=4"));
    CHECK(log.has("destroy a team: 256 at a time are the most"));
}

// NVSHMEM's variables become settings, where these are not set.
void environment()
{
    struct gpushmem_heap_info info;
    int provided;
    setenv("NVSHMEM_SYMMETRIC_SIZE", "lots", 1);
    CHECK(nvshmem_init_thread(NVSHMEM_THREAD_SINGLE, &provided) != 0);
    setenv("NVSHMEM_SYMMETRIC_SIZE", "2.5M", 1);
    setenv("NVSHMEM_BOOTSTRAP_UID_SOCK_IFNAME", "=lo", 1);
    setenv("NVSHMEM_HCA_LIST", "^mlx5_9", 1);
    setenv("NVSHMEM_DISABLE_P2P", "0", 1);
    setenv("NVSHMEM_MAX_TEAMS", "32", 1);
    setenv("GPUSHMEM_TEAM_MEMORY", "4M", 1);
    setenv("NVSHMEM_THAT_NOBODY_KNOWS", "1", 1);
    CHECK(nvshmem_init_thread(NVSHMEM_THREAD_SINGLE, &provided) == 0);
    CHECK(gpushmem_heap_info(&info) == 0 && info.bytes == 5 << 19);
    CHECK(teams_at_most(40) == 32);
    // Children get the environment, and may have other values of these variables.
    CHECK(!getenv("GPUSHMEM_HEAP_SIZE") && !getenv("GPUSHMEM_TEAMS"));
    CHECK(!getenv("GPUSHMEM_BOOTSTRAP_INTERFACE") && !getenv("GPUSHMEM_VERBS_DEVICES"));
    nvshmem_finalize();
    // Each init reads them anew.
    setenv("NVSHMEM_MAX_TEAMS", "three", 1);
    CHECK(nvshmem_init_thread(NVSHMEM_THREAD_SINGLE, &provided) != 0);
    setenv("NVSHMEM_MAX_TEAMS", "16", 1);
    setenv("NVSHMEM_SYMMETRIC_SIZE", "4M", 1);
    CHECK(nvshmem_init_thread(NVSHMEM_THREAD_SINGLE, &provided) == 0);
    CHECK(gpushmem_heap_info(&info) == 0 && info.bytes == 4 << 20);
    CHECK(teams_at_most(40) == 16);
    nvshmem_finalize();
    // gpushmem's own programs know none of them.
    CHECK(gpushmem_init() == 0);
    CHECK(gpushmem_heap_info(&info) == 0 && info.bytes != 4 << 20);
    CHECK(gpushmem_finalize() == 0);
}

// What is refused returns, with what NVSHMEM's functions return for it, and the job goes on.
void mistakes()
{
    nvshmemx_init_attr_t attr = NVSHMEMX_INIT_ATTR_INITIALIZER;
    nvshmemx_uniqueid_t id = NVSHMEMX_UNIQUEID_INITIALIZER;
    nvshmem_team_t team = 5;
    CHECK(nvshmem_my_pe() < 0 && nvshmem_n_pes() < 0);
    CHECK(nvshmem_malloc(8) == NULL);
    CHECK(nvshmemx_init_attr(NVSHMEMX_INIT_THREAD_PES, &attr) == NVSHMEMX_ERROR_NOT_SUPPORTED);
    CHECK(nvshmemx_init_attr(6, &attr) == NVSHMEMX_ERROR_INVALID_VALUE);
    CHECK(nvshmemx_init_attr(NVSHMEMX_INIT_WITH_UNIQUEID, NULL) == NVSHMEMX_ERROR_INVALID_VALUE);
    CHECK(nvshmemx_init_attr(NVSHMEMX_INIT_WITH_UNIQUEID, &attr) == NVSHMEMX_ERROR_INVALID_VALUE);
    CHECK(nvshmemx_set_attr_uniqueid_args(2, 2, &id, &attr) == NVSHMEMX_ERROR_INVALID_VALUE);
    CHECK(nvshmemx_set_attr_uniqueid_args(0, 1, NULL, &attr) == NVSHMEMX_ERROR_INVALID_VALUE);
    CHECK(nvshmemx_set_attr_uniqueid_args(0, 1, &id, &attr) == 0);
    CHECK(nvshmemx_init_attr(NVSHMEMX_INIT_WITH_UNIQUEID, &attr) == NVSHMEMX_ERROR_INVALID_VALUE);
    CHECK(nvshmemx_init_attr(NVSHMEMX_INIT_WITH_SHMEM, &attr) == NVSHMEMX_ERROR_INTERNAL);
    CHECK(nvshmemx_get_uniqueid(NULL) == NVSHMEMX_ERROR_INVALID_VALUE);
    CHECK(nvshmem_init_thread(4, NULL) == NVSHMEMX_ERROR_INVALID_VALUE);
    CHECK(nvshmemx_cumodule_init(NULL) == NVSHMEMX_ERROR_INTERNAL);
    Log log;
    nvshmem_init();
    CHECK(nvshmem_barrier(NVSHMEM_TEAM_INVALID) == NVSHMEMX_ERROR_INVALID_VALUE);
    uint64_t *word = (uint64_t *)nvshmem_calloc(1, sizeof *word);
    nvshmemx_signal_op(word, 1, 99, 0);
    nvshmem_free(word);
    nvshmem_int_p((int *)&attr, 1, 99);
    CHECK(nvshmem_int_g((int *)nullptr, 0) == 0);
    CHECK(nvshmem_team_split_strided(NVSHMEM_TEAM_WORLD, 0, 1, 99, NULL, 0, &team) ==
          NVSHMEMX_ERROR_INVALID_VALUE);
    CHECK(team == NVSHMEM_TEAM_INVALID && nvshmem_team_my_pe(NVSHMEM_TEAM_INVALID) == -1);
    CHECK(nvshmem_int_sum_reduce(77, NULL, NULL, 1) == NVSHMEMX_ERROR_INVALID_VALUE);
    CHECK(nvshmemx_cumodule_init(NULL) == NVSHMEMX_ERROR_INVALID_VALUE);
    CHECK(nvshmemx_culibrary_init(NULL) == NVSHMEMX_ERROR_INVALID_VALUE);
    CHECK(nvshmemx_cumodule_finalize(NULL) == 0 && nvshmemx_culibrary_finalize(NULL) == 0);
    CHECK(nvshmem_team_get_config(NVSHMEM_TEAM_WORLD, NULL) == NVSHMEMX_ERROR_INVALID_VALUE);
    nvshmem_free(&attr);
    nvshmem_barrier_all();
    nvshmem_finalize();
    // Sentences have the program's names.
    CHECK(log.has("nvshmem_barrier: the team is NVSHMEM_TEAM_INVALID"));
    CHECK(log.has("nvshmemx_signal_op: signal operation 99 is neither NVSHMEM_SIGNAL_SET"));
}

} // namespace

int main()
{
    numbers_of_teams();
    environment();
    ring();
    jacobi();
    pipeline();
    dispatch();
    histogram();
    teams();
    team_by_id();
    recent();
    stream_waits();
    buffers();
    server();
    queries();
    mistakes();
    ring();
    puts("programs: ok");
}
