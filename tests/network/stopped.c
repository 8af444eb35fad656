// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE
// stopped CASE SECONDS [HOSTS], on three PEs: a process that is stopped, as by a debugger, for
// longer than the network's patience is not dead. PE 2 stops and continues the others. With HOSTS
// no launcher starts them, each is its own host, and nobody looks at another one's process.
//
//   target  PE 1, to which PE 0 puts meanwhile, by a context that has not sent it anything before
//   caller  PE 0 as well, before PE 1 has answered; PE 1 goes on first
//   known   PE 1, with which PE 0 has connected all its contexts before: nothing waits for PE 1
//   then
#include <gpushmem/bootstrap.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../pes/check.h"

enum { VALUE = 42, PES = 3 };

static uint64_t *pids, *go, *word; // [2], 1, 1

static double now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

// Until its first thread is: the others follow at once.
static void stop(uint64_t pid)
{
    char path[32], state = 0;
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    CHECK_OK(kill((pid_t)pid, SIGSTOP));
    while (state != 'T') {
        FILE *file = fopen(path, "r");
        CHECK(file && fscanf(file, "%*d (%*[^)]) %c", &state) == 1);
        fclose(file);
    }
    usleep(200000);
}

static void keep(bool caller, unsigned seconds)
{
    for (int pe = 0; pe < 2; pe++)
        CHECK_OK(gpushmem_uint64_wait_until(&pids[pe], GPUSHMEM_CMP_NE, 0));
    stop(pids[1]);
    CHECK_OK(gpushmem_uint64_p(go, 1, 0));
    CHECK_OK(gpushmem_quiet());
    if (caller) {
        usleep(500000); // it has asked PE 1
        stop(pids[0]);
        CHECK_OK(kill((pid_t)pids[1], SIGCONT));
    }
    sleep(seconds);
    CHECK_OK(kill((pid_t)pids[caller ? 0 : 1], SIGCONT));
}

static void put(bool known, unsigned seconds)
{
    gpushmem_ctx_t ctx;
    CHECK_OK(gpushmem_ctx_create(0, &ctx));
    CHECK_OK(gpushmem_uint64_wait_until(go, GPUSHMEM_CMP_NE, 0));
    double begun_s = now_s();
    CHECK_OK(gpushmem_ctx_uint64_p(ctx, word, VALUE, 1));
    CHECK_OK(gpushmem_ctx_quiet(ctx));
    CHECK_THAT((now_s() - begun_s > seconds - 0.5) != known, "after %g s", now_s() - begun_s);
    CHECK_OK(gpushmem_ctx_destroy(ctx));
}

static int play(const char *who, unsigned seconds)
{
    bool caller = !strcmp(who, "caller"), known = !strcmp(who, "known");
    int me = gpushmem_my_pe();
    CHECK(gpushmem_n_pes() == PES);
    pids = gpushmem_calloc(4, sizeof *pids);
    CHECK(pids);
    go = pids + 2;
    word = pids + 3;
    if (known && me == 0)
        CHECK_OK(gpushmem_connect(GPUSHMEM_TEAM_WORLD));
    CHECK_OK(gpushmem_barrier_all());
    if (me < 2)
        CHECK_OK(gpushmem_uint64_p(&pids[me], (uint64_t)getpid(), 2));
    CHECK_OK(gpushmem_quiet());
    if (me == 2)
        keep(caller, seconds);
    if (me == 0)
        put(known, seconds);
    CHECK_OK(gpushmem_barrier_all());
    CHECK(me != 1 || *word == VALUE);
    gpushmem_free(pids);
    CHECK_OK(gpushmem_finalize());
    if (me == 0)
        puts("stopped: ok");
    return 0;
}

static int join(int rank, int pipe, const char *who, unsigned seconds)
{
    char host[16];
    gpushmem_uniqueid_t id;
    snprintf(host, sizeof host, "host%d", rank);
    CHECK(!setenv("GPUSHMEM_TEST_BOOTSTRAP_NODE", host, 1));
    CHECK(read(pipe, &id, sizeof id) == sizeof id);
    CHECK_OK(gpushmem_init_with_uniqueid(&id, rank, PES));
    return play(who, seconds);
}

// This process only makes the id. The others are forked before it has a thread.
static int start_hosts(const char *who, unsigned seconds)
{
    int failed = 0, pipes[PES][2], status;
    gpushmem_uniqueid_t id;
    for (int rank = 0; rank < PES; rank++) {
        CHECK(!pipe(pipes[rank]));
        fflush(stdout);
        if (!fork())
            exit(join(rank, pipes[rank][0], who, seconds));
    }
    CHECK_OK(gpushmem_get_uniqueid(&id));
    for (int rank = 0; rank < PES; rank++)
        CHECK(write(pipes[rank][1], &id, sizeof id) == sizeof id);
    while (wait(&status) > 0)
        failed |= status;
    return failed != 0;
}

int main(int argc, char **argv)
{
    CHECK(argc >= 3);
    unsigned seconds = (unsigned)atoi(argv[2]);
    if (argc > 3)
        return start_hosts(argv[1], seconds);
    CHECK_OK(gpushmem_init());
    return play(argv[1], seconds);
}
