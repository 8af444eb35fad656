// SPDX-License-Identifier: BSD-3-Clause
// A job in which one PE does something bad, seen through the bootstrap. Prints what each PE got to
// know.
//   mishap kill VICTIM       VICTIM kills itself; the others wait until they are told, and say so
//   mishap fence VICTIM      the same while the others are in a fence
//   mishap absent VICTIM     the others wait 0.3 s for VICTIM in a fence; all end on SIGUSR1
//   mishap revenge VICTIM    VICTIM kills itself; the others ask for the end of the job as soon as
//   they are told mishap abort VICTIM      VICTIM asks for the end of the job, with status 42
//   mishap leave VICTIM      VICTIM returns from main without finalize; the others go on until
//   SIGUSR1 mishap hang VICTIM       nobody ever ends; each says that it is ready mishap blob:KIND
//   VICTIM  VICTIM publishes a bad blob (short, version, round, length, type, none; in the segment
//   of gpushmem run short, length, place, other, none); PE 0 says what it got
#define _GNU_SOURCE
#include <pmix.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "bootstrap/bootstrap.h"
#include "bootstrap/job_segment.h"
#include "core/error.h"
#include "core/launcher.h"

enum { HANG_MS = 60000 };

static struct gpsh_bootstrap boot;
static _Atomic int dead_pe = -1;
static _Atomic bool told_to_end;
static bool revenge;

static void on_death(int pe, const char *reason)
{
    (void)reason;
    dead_pe = pe;
    if (revenge)
        gpsh_bootstrap_abort(&boot, 43, "what happened to my friend?");
}

static void sleep_ms(long ms)
{
    nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000}, NULL);
}

static void must(int rc, const char *what)
{
    if (rc == 0)
        return;
    fprintf(stderr, "pe %d: %s: %d: %s\n", boot.my_pe, what, rc, gpsh_last_error());
    exit(1);
}

static void on_told_to_end(int signal)
{
    told_to_end = true;
}

static void wait_until_told_to_end(void)
{
    for (int i = 0; i < HANG_MS / 10 && !told_to_end; i++)
        sleep_ms(10);
}

static int hear_of_death(void)
{
    for (int i = 0; i < HANG_MS / 10 && dead_pe < 0; i++)
        sleep_ms(10);
    printf("pe %d heard of the death of PE %d\n", boot.my_pe, dead_pe);
    gpsh_bootstrap_finalize(&boot);
    return 0;
}

static int fence_in_vain(int victim)
{
    boot.wait_timeout_ms = 300;
    if (boot.my_pe != victim) {
        int rc = gpsh_bootstrap_exchange(&boot);
        printf("pe %d: fence returned %d: %s\n", boot.my_pe, rc, gpsh_last_error());
    }
    wait_until_told_to_end(); // a PE that ends breaks the fence of one that is late
    gpsh_bootstrap_finalize(&boot);
    return 0;
}

static int fence_breaks(void)
{
    int rc = gpsh_bootstrap_exchange(&boot);
    printf("pe %d: fence returned %d: %s\n", boot.my_pe, rc, gpsh_last_error());
    gpsh_bootstrap_finalize(&boot);
    return 0;
}

// As bootstrap_pmix.c lays out a blob.
struct forged {
    uint32_t magic, version, round, pe;
    uint64_t bytes;
    char card[40]; // who takes no part in watching nodes
    char payload[8];
};

static void forge_for_pmix(const char *kind)
{
    struct forged f = {.magic = 0x42535047,
                       .version = 2,
                       .round = 1,
                       .pe = (uint32_t)boot.my_pe,
                       .bytes = sizeof(f.payload)};
    pmix_value_t value = {.type = PMIX_BYTE_OBJECT,
                          .data.bo = {.bytes = (char *)&f, .size = sizeof(f)}};
    if (strcmp(kind, "none") == 0)
        return;
    if (strcmp(kind, "short") == 0)
        value.data.bo.size = 5;
    if (strcmp(kind, "version") == 0)
        f.version = 77;
    if (strcmp(kind, "round") == 0)
        f.round = 9;
    if (strcmp(kind, "length") == 0)
        f.bytes = UINT64_MAX - 3;
    if (strcmp(kind, "type") == 0) {
        value.type = PMIX_UINT64;
        value.data.uint64 = 1;
    }
    if (PMIx_Put(PMIX_GLOBAL, "gpushmem.blob.1", &value) != PMIX_SUCCESS ||
        PMIx_Commit() != PMIX_SUCCESS)
        exit(1);
}

// What a PE that scribbles would leave in the segment of `gpushmem run`.
static void forge_in_segment(const char *kind)
{
    int fd, line, n_pes, n_nodes;
    if (gpsh_launcher_find(&fd, &line) != GPSH_LAUNCHED)
        exit(1);
    struct gpsh_job_segment *s = gpsh_job_segment_join(fd, &n_pes, &n_nodes);
    struct gpsh_job_segment_blob *blob = &s->pe[boot.my_pe].blob[1];
    must(gpsh_bootstrap_put(&boot, "forged!", 8), "put");
    if (strcmp(kind, "none") == 0)
        blob->round = 0;
    if (strcmp(kind, "short") == 0)
        blob->bytes = 5;
    if (strcmp(kind, "length") == 0)
        blob->bytes = UINT64_MAX - 3;
    if (strcmp(kind, "place") == 0)
        blob->at = UINT64_MAX - 7;
    if (strcmp(kind, "other") == 0)
        blob->at = s->pe[0].blob[1].at + 8; // in the middle of one's own or another's
}

static int exchange_with_forger(const char *kind, int victim)
{
    if (boot.my_pe == victim)
        (boot.launched_by_us ? forge_in_segment : forge_for_pmix)(kind);
    else
        must(gpsh_bootstrap_put(&boot, "honest", 7), "put");
    must(gpsh_bootstrap_exchange(&boot), "exchange");
    if (boot.my_pe == 0) {
        void *blob = NULL;
        size_t bytes = 0;
        int rc = gpsh_bootstrap_get(&boot, victim, &blob, &bytes);
        printf("get returned %d: %s\n", rc, gpsh_last_error());
        free(blob);
        must(gpsh_bootstrap_get(&boot, 0, &blob, &bytes), "get of an honest blob");
        free(blob);
    }
    must(gpsh_bootstrap_exchange(&boot), "fence");
    gpsh_bootstrap_finalize(&boot);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc < 3)
        return 2;
    const char *kind = argv[1];
    int victim = atoi(argv[2]);
    signal(SIGUSR1, on_told_to_end);
    must(gpsh_bootstrap_init(&boot), "init");
    setvbuf(stdout, NULL, _IOLBF, 0);
    gpsh_bootstrap_on_death(&boot, on_death);
    if (strncmp(kind, "blob:", 5) == 0)
        return exchange_with_forger(kind + 5, victim);
    must(gpsh_bootstrap_exchange(&boot), "first fence");
    if (strcmp(kind, "absent") == 0)
        return fence_in_vain(victim);
    revenge = strcmp(kind, "revenge") == 0;
    if (strcmp(kind, "hang") == 0) {
        printf("ready\n");
        sleep_ms(HANG_MS);
        return 0;
    }
    if (boot.my_pe == victim) {
        sleep_ms(200); // the others are in their fence by now
        if (strcmp(kind, "leave") == 0)
            return 0;
        if (strcmp(kind, "abort") == 0) {
            must(gpsh_bootstrap_abort(&boot, 42, "the sky is falling"), "abort");
            sleep_ms(HANG_MS);
        }
        raise(SIGKILL);
    }
    if (strcmp(kind, "kill") == 0)
        return hear_of_death();
    if (strcmp(kind, "fence") == 0)
        return fence_breaks();
    wait_until_told_to_end();
    gpsh_bootstrap_finalize(&boot);
    return 0;
}
