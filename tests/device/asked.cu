// SPDX-License-Identifier: BSD-3-Clause
// A PE whose kernel hangs says so, by itself after GPUSHMEM_HANG_REPORT and on SIGUSR1: what the
// kernel waits for, and that the program is in gpushmem_launch_wait; a kernel that computes is no
// hang. usage: asked [team | computes | shown GPUSHMEM]: with `team`, for which PE of which team it
// waits in a collective operation; with `shown`, what `gpushmem stat` says of both.
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "check.h"

enum { PATIENCE_MS = 20000, VALUE = 7, STEP_US = 100000, STEPS = 30 };

static int log_file;
static char said[1 << 16];
static uint64_t *word;

// Whether the log says that, now or soon. If it asks, then now and then: the kernel may not wait
// yet.
static bool says(const char *text, bool asks)
{
    for (int ms = 0; ms < PATIENCE_MS; ms++) {
        if (asks && ms % 500 == 0)
            kill(getpid(), SIGUSR1);
        ssize_t bytes = pread(log_file, said, sizeof said - 1, 0);
        said[bytes > 0 ? bytes : 0] = '\0';
        if (strstr(said, text))
            return true;
        usleep(1000);
    }
    return false;
}

static void *ask(void *)
{
    static const char *const wanted[] = {
        "SIGUSR1: 1 thread of the program in gpushmem_launch_wait",
        "SIGUSR1: a kernel waits: block (0,0,0), thread (1,0,0), for the word at heap offset ",
        "which is 3, to be == 7",
    };
    static const char by_itself[] =
        "s (GPUSHMEM_HANG_REPORT), waiting for a kernel: block (0,0,0), "
        "thread (1,0,0), for the word at heap offset ";
    CHECK(says(by_itself, false));
    CHECK(says("WARN hang: PE 0 is in gpushmem_launch_wait, waiting for a kernel: block", false));
    for (const char *text : wanted)
        CHECK(says(text, true));
    gpushmem_uint64_p(word, VALUE, gpushmem_my_pe());
    gpushmem_quiet();
    return NULL;
}

__global__ void wait_for(uint64_t *awaited)
{
    if (threadIdx.x == 1)
        gpushmem_dev_uint64_wait_until(awaited, GPUSHMEM_CMP_EQ, VALUE);
}

static void word_is_named(void)
{
    gpushmem_uint64_p(word, 3, gpushmem_my_pe());
    CHECK_OK(gpushmem_quiet());
    CHECK_OK(GPUSHMEM_LAUNCH(wait_for, 1, 2, NULL, word));
    pthread_t asker;
    CHECK(!pthread_create(&asker, NULL, ask, NULL));
    CHECK_OK(gpushmem_launch_wait(NULL));
    pthread_join(asker, NULL);
}

// ---- Kernels that compute, and threads that work beside one that hangs ----

// Thread 1 waits for each number in turn, which are no waits that last; thread 0 computes.
__global__ void compute(uint64_t *counter, volatile uint64_t *end, uint64_t last)
{
    for (uint64_t k = 1; threadIdx.x == 1 && k <= last; k++)
        gpushmem_dev_uint64_wait_until(counter, GPUSHMEM_CMP_GE, k);
    while (threadIdx.x == 0 && !*end)
        ;
}

__global__ void nothing(void)
{
}

static void *count(void *counter)
{

    for (uint64_t k = 1; k <= STEPS; k++, usleep(STEP_US))
        gpushmem_uint64_p((uint64_t *)counter, k, gpushmem_my_pe());
    gpushmem_uint64_p((uint64_t *)counter + 1, 1, gpushmem_my_pe());
    return NULL;
}

static void computing_is_no_hang(void)
{
    pthread_t counts;
    uint64_t *words = (uint64_t *)gpushmem_calloc(2, sizeof *words);
    CHECK_OK(GPUSHMEM_LAUNCH(compute, 1, 2, NULL, words, words + 1, STEPS));
    CHECK(!pthread_create(&counts, NULL, count, words));
    CHECK_OK(gpushmem_launch_wait(NULL));
    pthread_join(counts, NULL);
    ssize_t bytes = pread(log_file, said, sizeof said - 1, 0);
    said[bytes > 0 ? bytes : 0] = '\0';
    CHECK(!strstr(said, "GPUSHMEM_HANG_REPORT"));
    gpushmem_free(words);
}

static int work_is_over;

static void *work(void *)
{
    gpushmem_stream_t stream;
    CHECK_OK(gpushmem_stream_create(&stream));
    while (!__atomic_load_n(&work_is_over, __ATOMIC_ACQUIRE)) {
        CHECK_OK(GPUSHMEM_LAUNCH(nothing, 1, 1, stream));
        CHECK_OK(gpushmem_launch_wait(stream));
    }
    CHECK_OK(gpushmem_stream_destroy(stream));
    return NULL;
}

static void word_is_named_beside_work(void)
{
    pthread_t worker;
    CHECK(!pthread_create(&worker, NULL, work, NULL));
    word_is_named();
    __atomic_store_n(&work_is_over, 1, __ATOMIC_RELEASE);
    pthread_join(worker, NULL);
}

// ---- What other processes see ----

static const char *gpushmem;

static bool stat_says(const char *text)
{
    char command[512];
    snprintf(command, sizeof command, "'%s' stat --waits %d 2>&1", gpushmem, (int)getpid());
    for (int looks = 0; looks < PATIENCE_MS / 100; looks++, usleep(100000)) {
        FILE *out = popen(command, "r"); // NOLINT(cert-env33-c): a program of this build
        size_t bytes = out ? fread(said, 1, sizeof said - 1, out) : 0;
        said[bytes] = '\0';
        if (out && pclose(out) == 0 && strstr(said, text))
            return true;
    }
    return false;
}

static void *see(void *)
{
    CHECK(stat_says(" s  gpushmem_launch_wait  waiting for a kernel\n"));
    gpushmem_uint64_p(word + 1, 1, gpushmem_my_pe());
    CHECK(
        stat_says("gpushmem_launch_wait  waiting for a kernel: block (0,0,0), thread (1,0,0), for "
                  "the word at heap offset "));
    CHECK(strstr(said, "which is 3, to be == 7\n"));
    CHECK(strstr(said, "\nPE 0 is in gpushmem_launch_wait, waiting for a kernel: block"));
    gpushmem_uint64_p(word, VALUE, gpushmem_my_pe());
    return NULL;
}

__global__ void compute_and_wait(uint64_t *awaited, volatile uint64_t *computed)
{
    while (!*computed)
        ;
    if (threadIdx.x == 1)
        gpushmem_dev_uint64_wait_until(awaited, GPUSHMEM_CMP_EQ, VALUE);
}

static void others_see_it(void)
{
    pthread_t sees;
    gpushmem_uint64_p(word, 3, gpushmem_my_pe());
    CHECK_OK(GPUSHMEM_LAUNCH(compute_and_wait, 1, 2, NULL, word, word + 1));
    CHECK(!pthread_create(&sees, NULL, see, NULL));
    CHECK_OK(gpushmem_launch_wait(NULL));
    pthread_join(sees, NULL);
}

// ---- Members of a team that are late ----

static const char *awaited;

static void *let_the_last_come(void *)
{
    CHECK(says(awaited, true));
    gpushmem_uint64_p(word, VALUE, gpushmem_n_pes() - 1);
    gpushmem_quiet();
    return NULL;
}

__global__ void meet(gpushmem_team_t team)
{
    gpushmem_dev_team_sync(team);
}

__global__ void collect(gpushmem_team_t team, long *dest, const long *source)
{
    gpushmem_dev_long_fcollect(team, dest, source, 1);
}

__global__ void meet_all(void)
{
    gpushmem_dev_barrier_all();
}

// The last PE comes once the first one has said what it waits for. `enter` launches.
template <typename Enter> static void come_late(const char *text, Enter enter)
{
    pthread_t asker;
    int me = gpushmem_my_pe(), last = gpushmem_n_pes() - 1;
    awaited = text;
    if (me == last)
        gpushmem_uint64_wait_until(word, GPUSHMEM_CMP_EQ, VALUE);
    if (me == 0)
        CHECK(!pthread_create(&asker, NULL, let_the_last_come, NULL));
    CHECK_OK(enter());
    CHECK_OK(gpushmem_launch_wait(NULL));
    if (me == 0)
        pthread_join(asker, NULL);
    *word = 0;
    CHECK_OK(gpushmem_barrier_all());
}

static void teams_are_named(void)
{
    gpushmem_team_t backwards;
    char text[128];
    long *longs = (long *)gpushmem_calloc((size_t)gpushmem_n_pes() + 1, sizeof *longs);
    CHECK_OK(gpushmem_team_split_strided(GPUSHMEM_TEAM_WORLD, gpushmem_n_pes() - 1, -1,
                                         gpushmem_n_pes(), NULL, 0, &backwards));
    come_late("in a collective operation of GPUSHMEM_TEAM_WORLD, for PE 2, rank 2 of 3\n",
              [] { return GPUSHMEM_LAUNCH(meet, 1, 1, NULL, GPUSHMEM_TEAM_WORLD); });
    snprintf(text, sizeof text, "in a collective operation of team %d, for PE 2, rank 0 of 3\n",
             (int)backwards);
    come_late(text,
              [=] { return GPUSHMEM_LAUNCH(collect, 1, 1, NULL, backwards, longs + 1, longs); });
    come_late("in a barrier or sync of all PEs, for PE 2 or a PE that it waits for\n",
              [] { return GPUSHMEM_LAUNCH(meet_all, 1, 1, NULL); });
    gpushmem_free(longs);
}

int main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "";
    check_begin();
    log_file = memfd_create("log", 0);
    int terminal = dup(STDERR_FILENO);
    dup2(log_file, STDERR_FILENO);
    word = (uint64_t *)gpushmem_calloc(2, sizeof *word);
    gpushmem = argc > 2 ? argv[2] : "";
    if (!strcmp(mode, "team")) {
        teams_are_named();
    } else if (!strcmp(mode, "computes")) {
        computing_is_no_hang();
        word_is_named_beside_work();
    } else if (!strcmp(mode, "shown")) {
        others_see_it();
    } else {
        word_is_named();
    }
    dup2(terminal, STDERR_FILENO);
    if (check_failures)
        fprintf(stderr, "it said: %s\n", said);
    gpushmem_free(word);
    return check_end("asked");
}
