// SPDX-License-Identifier: BSD-3-Clause
// A check of `gpushmem doctor`: one row of the table in table.c, and one small function.
#ifndef GPSH_DOCTOR_CHECK_H
#define GPSH_DOCTOR_CHECK_H

#include "doctor/host.h"

// From good to bad.
enum gpsh_check_result {
    GPSH_NOT_APPLICABLE,
    GPSH_OK,
    GPSH_CANNOT_TELL,
    GPSH_PROBLEM,
    GPSH_CHECK_RESULTS
};

struct gpsh_finding {
    enum gpsh_check_result result;
    char saw[768];
    char mend[512]; // what to do about this finding; "": gpsh_check.mends
    bool dropped;   // the last gpsh_found was ignored
};

struct gpsh_check {
    const char *id, *title;
    const char *looks; // what the check looks at
    const char *means; // what a problem means for a job
    const char *mends; // what to do about it
    bool varies;       // `saw` differs even between PEs on equal machines
    void (*look)(const struct gpsh_host *host, struct gpsh_finding *finding);
};
extern const struct gpsh_check gpsh_checks[]; // ends with a row of zeros
int gpsh_checks_count(void);

// Adds a sentence to `saw`, unless something worse was found. A worse result replaces what was said
// before.
void gpsh_found(struct gpsh_finding *finding, enum gpsh_check_result result, const char *format,
                ...) __attribute__((format(printf, 3, 4)));
// Says what to do about what the last gpsh_found told. The first call for a result counts.
void gpsh_mend(struct gpsh_finding *finding, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

// Whether libibverbs gives this process a device, be it one that the kernel does not know.
bool gpsh_verbs_has_devices(void);

#define GPSH_CHECK_FUNCTION(name)                                                                  \
    void gpsh_check_##name(const struct gpsh_host *host, struct gpsh_finding *finding)
GPSH_CHECK_FUNCTION(driver);
GPSH_CHECK_FUNCTION(cuda);
GPSH_CHECK_FUNCTION(gpu_files);
GPSH_CHECK_FUNCTION(fabric_manager);
GPSH_CHECK_FUNCTION(gpudirect);
GPSH_CHECK_FUNCTION(bar1);
GPSH_CHECK_FUNCTION(verbs);
GPSH_CHECK_FUNCTION(uverbs);
GPSH_CHECK_FUNCTION(port);
GPSH_CHECK_FUNCTION(rate);
GPSH_CHECK_FUNCTION(mtu);
GPSH_CHECK_FUNCTION(gid);
GPSH_CHECK_FUNCTION(namespace);
GPSH_CHECK_FUNCTION(pfc);
GPSH_CHECK_FUNCTION(ecn);
GPSH_CHECK_FUNCTION(loss);
GPSH_CHECK_FUNCTION(routing);
GPSH_CHECK_FUNCTION(distance);
GPSH_CHECK_FUNCTION(acs);
GPSH_CHECK_FUNCTION(iommu);
GPSH_CHECK_FUNCTION(relaxed);
GPSH_CHECK_FUNCTION(link);
GPSH_CHECK_FUNCTION(memlock);
GPSH_CHECK_FUNCTION(files);
GPSH_CHECK_FUNCTION(shm);
GPSH_CHECK_FUNCTION(memory);
GPSH_CHECK_FUNCTION(cpus);
GPSH_CHECK_FUNCTION(huge_pages);
GPSH_CHECK_FUNCTION(rdma_limit);
GPSH_CHECK_FUNCTION(container);
GPSH_CHECK_FUNCTION(settings);
GPSH_CHECK_FUNCTION(launcher);
GPSH_CHECK_FUNCTION(pmix);
GPSH_CHECK_FUNCTION(self_test);

#endif
