// SPDX-License-Identifier: BSD-3-Clause
#include <stdlib.h>

#include "bootstrap/bootstrap_ways.h"
#include "core/error.h"
#include "core/launcher.h"

static bool is_set(const char *variable)
{
    const char *value = getenv(variable);
    return value && *value;
}

// The choices of GPUSHMEM_BOOTSTRAP.
enum way { WAY_AUTO, WAY_PMIX, WAY_PMI, WAY_SINGLE };

static int init_by(struct gpsh_bootstrap *b, const struct gpsh_settings *settings)
{
    enum way way = (enum way)settings->bootstrap;
    bool pmix = is_set("PMIX_NAMESPACE"), pmi = is_set("PMI_FD");
    if (way == WAY_PMIX || (way == WAY_AUTO && pmix))
        return pmix ? gpsh_bootstrap_pmix_init(b, settings)
                    : gpsh_fail(GPUSHMEM_ERR_BOOTSTRAP,
                                "GPUSHMEM_BOOTSTRAP=pmix, but no launcher with a PMIx server "
                                "started this process: PMIX_NAMESPACE is not set");
    if (way == WAY_PMI || (way == WAY_AUTO && pmi))
        return pmi ? gpsh_bootstrap_pmi_init(b, settings)
                   : gpsh_fail(GPUSHMEM_ERR_BOOTSTRAP,
                               "GPUSHMEM_BOOTSTRAP=pmi, but no launcher with PMI-1 started this "
                               "process: PMI_FD is not set");
    // `gpushmem run` takes the others' variables away: those that are there are of a launcher below
    // it.
    if (way == WAY_AUTO && is_set(GPSH_LAUNCHER_JOB))
        return gpsh_bootstrap_segment_init(b);
    int status = way == WAY_SINGLE ? 0 : gpsh_bootstrap_alone_check();
    return status ? status : gpsh_bootstrap_alone_init(b);
}

int gpsh_bootstrap_init(struct gpsh_bootstrap *b)
{
    struct gpsh_settings settings;
    // Init has told of settings that are wrong. `gpushmem doctor` looks at jobs that have such.
    if (gpsh_settings_read_quietly("GPUSHMEM_", &settings)) {
        gpsh_clear_error();
        int status = gpsh_settings_read((char *[]){NULL}, &settings);
        if (status)
            return status;
    }
    int status = init_by(b, &settings);
    gpsh_settings_clear(&settings);
    return status;
}
