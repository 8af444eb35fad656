// SPDX-License-Identifier: BSD-3-Clause
// A pair of PEs over fake verbs for each test, with one rail or two.
#ifndef VERBS_RAILS_H
#define VERBS_RAILS_H

#include <criterion/criterion.h>
#include <string.h>

#include "tests/fakes/fake_pair.h"

static struct fake_pair pair;
// Without a setting for it the peer is not asked what it has executed.
static const char *failover = "GPUSHMEM_VERBS_FAILOVER_MS=0";

// Nothing is open yet.
static inline void reset_pair(void)
{
    fake_reset();
    memset(&pair, 0, sizeof pair);
}

static inline void open_rails(int rails)
{
    reset_pair();
    fake.n_devices = rails;
    pair.settings[0] = rails == 2 ? "GPUSHMEM_VERBS_RAILS=2" : NULL;
    pair.settings[1] = rails == 2 ? failover : NULL;
    cr_assert(fake_pair_open(&pair) == 0);
}

static inline void open_one(void)
{
    open_rails(1);
}

static inline void close_all(void)
{
    fake_pair_close(&pair);
    cr_assert_eq(fake.live_objects, 0, "%d verbs objects were not destroyed", fake.live_objects);
}

static inline void reopen_rails(void)
{
    close_all();
    open_rails(2);
}

// By which a request of the journal went.
static inline const struct ibv_device *device_of(int post)
{
    return fake.journal[post].qp->context->device;
}

#endif
