// SPDX-License-Identifier: BSD-3-Clause
// Calls of OpenSHMEM that fail: the process goes on, and the log says why, each sentence once. And
// the variables of the standard that init obeys.
#define _GNU_SOURCE // what log_lines.h needs
#include "log_lines.h"
#include "shmem_check.h"

static void fail_often(void)
{
    static long word = 7, lock;
    static long psync[SHMEM_SYNC_SIZE];
    long local = 0, no_psync[SHMEM_SYNC_SIZE];
    int n = shmem_n_pes();
    for (int i = 0; i < 3; i++) {
        shmem_long_p(&word, 1, 999);
        CHECK(shmem_long_g(&word, 998) == 0);
        CHECK(shmem_long_atomic_fetch_add(&word, 1, 997) == 0);
        shmem_long_put(&local, &word, 1, 0);
        CHECK(shmem_long_broadcast(SHMEM_TEAM_INVALID, &word, &lock, 1, 0) != 0);
        shmem_barrier(n, 0, 1, psync);
        shmem_clear_lock(&lock);
        CHECK(shmem_signal_wait_until((uint64_t *)(void *)&local, SHMEM_CMP_EQ, 1) == 0);
        shmem_long_wait_until(&word, 99, 1);
    }
    CHECK(lines_with("none of SHMEM_CMP_EQ (0) to SHMEM_CMP_GE (5)") == 1);
    CHECK(lines_with("the team is SHMEM_TEAM_INVALID") == 1 && lines_with("GPUSHMEM_") == 0);
    CHECK(lines_with(" shmem_signal_wait_until: ") == 1);
    CHECK(lines_with("PE 999;") == 1 && lines_with("PE 998;") == 1 && lines_with("PE 997;") == 1);
    CHECK(lines_with(" shmem_long_put: ") == 1 && lines_with(" shmem_long_broadcast: ") == 1);
    CHECK(lines_with("PE_start") == 1 && lines_with(" shmem_clear_lock") == 1);
    CHECK(lines_with("gpushmem_long") == 0);
    for (int i = 0; i < 3; i++) // the program may use both
        CHECK(gpushmem_long_atomic_fetch(&word, 996) == 0);
    CHECK(lines_with("PE 996;") == 1 && lines_with(" gpushmem_long_atomic_fetch: ") == 1);
    if (n > 2 && shmem_my_pe() < 2) {
        shmem_barrier(0, 0, 2, no_psync);
        CHECK(lines_with("pSync") == 1);
    }
    for (int i = 0; i < SHMEM_SYNC_SIZE; i++)
        psync[i] = 7;
    if (n > 2 && shmem_my_pe() < 2) {
        shmem_barrier(0, 0, 2, psync); // both return: nobody waits for what never comes
        CHECK(lines_with("SHMEM_SYNC_VALUE") == 1);
    }
    word = 0;
    CHECK(shmem_long_g(&word, shmem_my_pe()) == 0 && lines_with("\n") > 0); // 0 is a value
    int before = lines_with("\n");
    CHECK(shmem_team_my_pe(SHMEM_TEAM_INVALID) == -1 && lines_with("\n") == before);
}

// What the standard defines for SHMEM_TEAM_INVALID is no error.
static void use_no_team(void)
{
    const shmem_team_t none = SHMEM_TEAM_INVALID, world = SHMEM_TEAM_WORLD;
    int before = lines_with("\n");
    shmem_team_config_t config = {.num_contexts = 5};
    shmem_team_t made = world, row = world, column = world;
    shmem_ctx_t ctx;
    CHECK(sizeof made == sizeof(void *) && none == NULL);
    CHECK(shmem_team_n_pes(none) == -1);
    CHECK(shmem_team_get_config(none, SHMEM_TEAM_NUM_CONTEXTS, &config) != 0);
    CHECK(config.num_contexts == 5);
    CHECK(shmem_team_translate_pe(none, 0, world) == -1);
    CHECK(shmem_team_translate_pe(world, 0, none) == -1);
    CHECK(shmem_team_split_strided(none, 0, 1, 1, NULL, 0, &made) != 0 && made == none);
    CHECK(shmem_team_split_2d(none, 1, NULL, 0, &row, NULL, 0, &column) != 0);
    CHECK(row == none && column == none);
    CHECK(shmem_team_create_ctx(none, 0, &ctx) != 0);
    CHECK(shmem_team_ptr(none, &ctx, 0) == NULL);
    shmem_team_destroy(none);
    CHECK(lines_with("\n") == before);
    // another implementation's handle, or a pointer gone astray
    CHECK(shmem_team_n_pes((shmem_team_t)(void *)&config) == -1);
    CHECK(lines_with("\n") == before + 1);
}

// Nothing behind the struct is read, whatever is there.
static void use_short_config(void)
{
    struct {
        shmem_team_config_t config;
        int behind[8];
    } mine;
    shmem_team_t made = SHMEM_TEAM_INVALID;
    shmem_team_config_t got = {0};
    int before = lines_with("\n");
    memset(&mine, 0x5a, sizeof mine);
    mine.config.num_contexts = 2;
    CHECK(sizeof mine.config == sizeof(int));
    CHECK(shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, shmem_n_pes(), &mine.config,
                                   SHMEM_TEAM_NUM_CONTEXTS, &made) == 0);
    CHECK(shmem_team_get_config(made, SHMEM_TEAM_NUM_CONTEXTS, &got) == 0 && got.num_contexts == 2);
    shmem_team_destroy(made);
    CHECK(lines_with("\n") == before);
}

// Numbers whose bytes are counted beyond what a size_t holds are none of a few bytes.
static void move_too_much(void)
{
    static long psync[SHMEM_SYNC_SIZE], from[2] = {5, 6}, to[16];
    static long double wide[2], wide_to[2] = {7};
    const size_t longs = SIZE_MAX / 8 + 2, long_doubles = SIZE_MAX / sizeof *wide + 2;
    int n = shmem_n_pes();
    shmem_fcollect64(to, from, longs, 0, 0, n, psync);
    shmem_broadcast64(to, from, longs, 0, 0, 0, n, psync);
    shmem_alltoall64(to, from, longs, 0, 0, n, psync);
    CHECK(to[0] == 0 && to[1] == 0);
    CHECK(shmem_longdouble_broadcast(SHMEM_TEAM_WORLD, wide_to, wide, long_doubles, 0) != 0);
    CHECK(wide_to[0] == 7);
    CHECK(lines_with("was the number of elements negative?") > 0 ||
          lines_with("beyond the end") > 0);
}

// The log is bounded, whatever a program does.
static void fail_in_many_ways(void)
{
    static long word;
    for (int pe = 1000; pe < 2000; pe++)
        shmem_long_p(&word, 1, pe);
    CHECK(lines_with("there is no PE") <= 256 && lines_with("different failures") == 1);
}

int main(void)
{
    log_begin();
    unsetenv("GPUSHMEM_HEAP_SIZE");
    shmem_long_p(NULL, 1, 0); // before init: on stderr

    setenv("SHMEM_SYMMETRIC_SIZE", "many", 1);
    CHECK(shmem_init_thread(SHMEM_THREAD_SINGLE, NULL) != 0);
    CHECK(shmem_my_pe() < 0);
    setenv("SHMEM_SYMMETRIC_SIZE", "1.5m", 1);
    shmem_init();
    struct gpushmem_heap_info info;
    CHECK(gpushmem_heap_info(&info) == 0 && strcmp(info.kind, "host") == 0);
    CHECK(info.bytes >= 3 << 19 && info.bytes < 4 << 20);
    use_no_team();
    use_short_config();
    fail_often();
    move_too_much();
    fail_in_many_ways();
    shmem_barrier_all();
    CHECK(shmem_malloc(1000)); // never freed: no warning
    shmem_finalize();
    CHECK(lines_with("still allocated") == 0);

    setenv("SHMEM_SYMMETRIC_SIZE", "5M", 1); // each init reads it anew, and children get no more
    shmem_init();
    CHECK(gpushmem_heap_info(&info) == 0 && info.bytes >= 5 << 20 && info.bytes < 6 << 20);
    CHECK(!getenv("GPUSHMEM_HEAP_SIZE") && !getenv("GPUSHMEM_HEAP_KIND"));
    shmem_finalize();
    puts("failures: ok");
    return 0;
}
