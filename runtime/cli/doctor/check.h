// SPDX-License-Identifier: BSD-3-Clause
// A check of `gpushmem doctor`: one row of the table in table.c, and one small function.
#ifndef GPSH_DOCTOR_CHECK_H
#define GPSH_DOCTOR_CHECK_H

#include "doctor/host.h"
#include "json.h"

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
    // False: it says in the finding why there is nothing to look at. NULL: there always is.
    bool (*needs)(const struct gpsh_host *host, struct gpsh_finding *finding);
    // One of the two: the second is called for each active RoCE port.
    void (*look)(const struct gpsh_host *host, struct gpsh_finding *finding);
    void (*look_at_port)(const struct gpsh_host *host, struct gpsh_finding *finding,
                         const struct gpsh_port *port);
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

// What checks need of the machine (gpsh_check.needs).
bool gpsh_needs_gpu(const struct gpsh_host *host, struct gpsh_finding *finding);
bool gpsh_needs_nic(const struct gpsh_host *host, struct gpsh_finding *finding);
bool gpsh_needs_both(const struct gpsh_host *host, struct gpsh_finding *finding);
bool gpsh_needs_device(const struct gpsh_host *host, struct gpsh_finding *finding);
bool gpsh_needs_switch(const struct gpsh_host *host, struct gpsh_finding *finding);
bool gpsh_needs_port(const struct gpsh_host *host, struct gpsh_finding *finding);
bool gpsh_needs_seen_port(const struct gpsh_host *host, struct gpsh_finding *finding);
bool gpsh_needs_active_port(const struct gpsh_host *host, struct gpsh_finding *finding);
bool gpsh_needs_roce_port(const struct gpsh_host *host, struct gpsh_finding *finding);

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

#define GPSH_PORT_CHECK_FUNCTION(name)                                                             \
    void gpsh_check_##name(const struct gpsh_host *host, struct gpsh_finding *finding,             \
                           const struct gpsh_port *port)
GPSH_PORT_CHECK_FUNCTION(mtu);
GPSH_PORT_CHECK_FUNCTION(gid);
GPSH_PORT_CHECK_FUNCTION(namespace);
GPSH_PORT_CHECK_FUNCTION(pfc);
GPSH_PORT_CHECK_FUNCTION(ecn);

// ---- The report ----

enum { GPSH_CHECKS_MOST = 48 };

struct gpsh_report {
    struct gpsh_finding findings[GPSH_CHECKS_MOST]; // by the rows of gpsh_checks
    bool wanted[GPSH_CHECKS_MOST];                  // others were not looked at
    bool named;                                     // the command line says which are wanted
};

const char *gpsh_result_word(enum gpsh_check_result result);
enum gpsh_check_result gpsh_report_worst(const struct gpsh_report *report);
// 0 if all is well, 1 with a problem, 3 if something cannot be told.
int gpsh_report_exit(enum gpsh_check_result worst);

// Problems in full, all else by a line; what does not apply only if it was named. With `all`
// everything in full.
void gpsh_report_print(const struct gpsh_report *report, bool all);
void gpsh_report_json(const struct gpsh_report *report);
// The table, as docs/doctor.md has it.
void gpsh_checks_markdown(void);
// Every PE of the job hands its report to PE 0, which prints what differs. The exit status.
int gpsh_report_fabric(const struct gpsh_report *report, bool json);

// The other half of the check `self-test`, in a process of its own.
int gpsh_self_test_run(void);

#endif
