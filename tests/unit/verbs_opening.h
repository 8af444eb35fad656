// SPDX-License-Identifier: BSD-3-Clause
// What a test of opening the transport over fake verbs looks at. Needs _GNU_SOURCE.
#ifndef VERBS_OPENING_H
#define VERBS_OPENING_H

#include "core/error.h"
#include "transports/verbs/setup/verbs_setup.h"
#include "verbs_rails.h"

static inline void refused(int code, const char *words)
{
    cr_assert_eq(fake_pair_open(&pair), code, "%s", gpsh_last_error());
    cr_assert(strstr(gpsh_last_error(), words), "%s", gpsh_last_error());
}

static inline const struct verbs_rail *rail(int i)
{
    return &((struct gpsh_verbs *)pair.transport)->rails[i];
}

#endif
