// SPDX-License-Identifier: BSD-3-Clause
// PE 0 of 3 leaves the job while another thread finds that one is lost.
#include <criterion/criterion.h>
#include <pthread.h>
#include <stdbool.h>

#include "core/config.h"
#include "core/error.h"
#include "job/failure.h"
#include "job/job.h"

static struct gpsh_peer peers[3];
static bool leaves;

int __real_pthread_mutex_lock(pthread_mutex_t *);
int __wrap_pthread_mutex_lock(pthread_mutex_t *);
int __wrap_pthread_mutex_lock(pthread_mutex_t *lock)
{
    if (leaves) {
        leaves = false;
        gpsh_failures_end();
    }
    return __real_pthread_mutex_lock(lock);
}

static void set_up(void)
{
    gpsh_job_state.n_pes = 3;
    gpsh_job_state.peers = peers;
    gpsh_settings_state.on_pe_failure = GPSH_ON_FAILURE_NOTIFY;
}

TestSuite(failure, .init = set_up);

Test(failure, pe_is_lost__counts_once)
{
    gpsh_peer_failed(2, GPUSHMEM_ERR_PE_FAILED, "it fell");
    gpsh_peer_failed(2, GPUSHMEM_ERR_PE_FAILED, "it fell again");
    cr_expect_eq(gpsh_job_state.failures, 1);
    cr_expect_eq(peers[2].error, GPUSHMEM_ERR_PE_FAILED);
    cr_expect_str_eq(peers[2].reason, "it fell");
}

Test(failure, pe_that_was_cut_off_dies__is_told_again)
{
    gpsh_peer_failed(2, GPUSHMEM_ERR_TRANSPORT, "the cable");
    gpsh_peer_failed(2, GPUSHMEM_ERR_TRANSPORT, "the cable, by another channel");
    cr_expect_eq(gpsh_job_state.failures, 1);
    cr_expect_eq(peers[2].error, GPUSHMEM_ERR_TRANSPORT);
    cr_expect_str_eq(peers[2].reason, "the cable");
    gpsh_peer_failed(2, GPUSHMEM_ERR_PE_FAILED, "it fell");
    gpsh_peer_failed(2, GPUSHMEM_ERR_TRANSPORT, "the cable");
    cr_expect_eq(gpsh_job_state.failures, 2);
    cr_expect_eq(peers[2].error, GPUSHMEM_ERR_PE_FAILED);
    cr_expect_str_eq(peers[2].reason, "it fell");
}

Test(failure, number_of_no_pe__is_ignored)
{
    gpsh_peer_failed(3, GPUSHMEM_ERR_PE_FAILED, "");
    gpsh_peer_failed(-1, GPUSHMEM_ERR_PE_FAILED, "");
    cr_expect_eq(gpsh_job_state.failures, 0);
}

// From then on the table of PEs may be freed.
Test(failure, this_pe_leaves_meanwhile__touches_nothing)
{
    leaves = true;
    gpsh_peer_failed(1, GPUSHMEM_ERR_PE_FAILED, "it fell");
    cr_assert_not(leaves);
    cr_expect_eq(gpsh_job_state.failures, 0);
    cr_expect_eq(peers[1].error, 0);
    gpsh_job_state.leaving = false;
    leaves = true;
    gpsh_peer_unreachable(1, "the cable");
    cr_assert_not(leaves);
    cr_expect_not(peers[1].unreachable);
}
