// SPDX-License-Identifier: BSD-3-Clause
// The live self-test: a job of one PE that reaches itself through its NIC. It runs in a process of
// its own, so that a driver that crashes or hangs takes nothing else along.
#define _GNU_SOURCE // setenv, strsignal
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "children.h"
#include "core/clock.h"
#include "doctor/check.h"
#include "gpushmem/gpushmem.h"
#include "probe.h"

enum { BYTES = 4 << 20, ROUNDS = 8, LONGEST_MS = 60000 };

// ---- The process that does it ----

static void pattern_fill(unsigned char *bytes)
{
    for (size_t i = 0; i < BYTES; i++)
        bytes[i] = (unsigned char)(i * 7 + i / 251);
}

// Puts a pattern into the own heap by way of the NIC, and gets it back.
static int loop_back(unsigned char *heap, unsigned char *sent, unsigned char *back, double *gbps)
{
    int me = gpushmem_my_pe(), status = 0;
    pattern_fill(sent);
    uint64_t from = gpsh_clock_ns();
    for (int i = 0; i < ROUNDS && !status; i++)
        status = gpushmem_putmem(heap, sent, BYTES, me);
    if (!status)
        status = gpushmem_quiet();
    double seconds = (double)(gpsh_clock_ns() - from) * 1e-9;
    *gbps = seconds > 0 ? (double)BYTES * ROUNDS * 8e-9 / seconds : 0;
    return status ? status : gpushmem_getmem(back, heap, BYTES, me);
}

static int test_run(char *sentence, size_t bytes)
{
    struct gpushmem_peer_info info;
    struct gpushmem_heap_info kind;
    double gbps = 0;
    unsigned char *sent = malloc(BYTES), *back = calloc(1, BYTES);
    unsigned char *heap = gpushmem_malloc(BYTES);
    int status = sent && back && heap ? loop_back(heap, sent, back, &gbps) : GPUSHMEM_ERR_NO_MEMORY;
    if (!status)
        status = gpushmem_peer_info(gpushmem_my_pe(), &info);
    if (!status)
        status = gpushmem_heap_info(&kind);
    if (status)
        snprintf(sentence, bytes, "-%s", gpushmem_last_error());
    else if (memcmp(sent, back, BYTES) != 0)
        snprintf(sentence, bytes, "-what was written through the NIC is not what was read back");
    else
        snprintf(sentence, bytes, "+%d MiB of %s memory written and read back at %.1f Gb/s: %.200s",
                 BYTES >> 20, strcmp(kind.kind, "device") ? "host" : "GPU", gbps, info.description);
    free(sent);
    free(back);
    return status;
}

// The first character says whether all went well, the rest is the sentence.
int gpsh_self_test_run(void)
{
    char sentence[512];
    if (gpushmem_init())
        snprintf(sentence, sizeof sentence, "-%.500s", gpushmem_last_error());
    else {
        test_run(sentence, sizeof sentence);
        gpushmem_finalize();
    }
    puts(sentence);
    return 0;
}

// ---- The one that asks for it ----

// A job of its own, whatever launcher started this process.
static int test_become(const void *unused)
{
    static const char *const hidden[] = {"PMIX_", "PMI_", "GPUSHMEM_LOG_", NULL};
    (void)unused;
    gpsh_environment_drop(hidden);
    setenv("GPUSHMEM_BOOTSTRAP", "single", 1);
    setenv("GPUSHMEM_TRANSPORTS", "verbs", 1);
    setenv("GPUSHMEM_HEAP_SIZE", "16M", 1);
    setenv("GPUSHMEM_LOG_FILE", "/dev/null", 1);
    return execl("/proc/self/exe", "gpushmem", "doctor", "--self-test", NULL);
}

static void test_start(struct gpsh_finding *finding)
{
    struct gpsh_probe test;
    int error = gpsh_probe_run(&test, test_become, NULL, LONGEST_MS), status = test.status;
    test.words[strcspn(test.words, "\n")] = '\0';
    if (error)
        gpsh_found(finding, GPSH_CANNOT_TELL, "the test cannot be started (%s)", strerror(error));
    else if (test.late)
        gpsh_found(finding, GPSH_PROBLEM, "the test did not end within %d s", LONGEST_MS / 1000);
    else if (WIFSIGNALED(status))
        gpsh_found(finding, GPSH_PROBLEM, "the test was killed by signal %d (%s)", WTERMSIG(status),
                   strsignal(WTERMSIG(status)));
    else if (test.words[0] == '+' || test.words[0] == '-')
        gpsh_found(finding, test.words[0] == '+' ? GPSH_OK : GPSH_PROBLEM, "%s", test.words + 1);
    else
        gpsh_found(finding, GPSH_CANNOT_TELL, "the test ended with code %d and said nothing",
                   WEXITSTATUS(status));
}

bool gpsh_verbs_has_devices(void)
{
    int n = 0;
    struct ibv_device **devices = ibv_get_device_list(&n);
    if (devices)
        ibv_free_device_list(devices);
    return n > 0;
}

GPSH_CHECK_FUNCTION(self_test)
{
    if (!host->live)
        gpsh_found(finding, GPSH_NOT_APPLICABLE, "--root is another machine");
    else if (!gpsh_verbs_has_devices())
        gpsh_found(finding, GPSH_NOT_APPLICABLE, "no verbs device to write through");
    else
        test_start(finding);
}
