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

// What a check needs of the machine.
enum gpsh_need {
    GPSH_NEEDS_NOTHING,
    GPSH_NEEDS_GPU,
    GPSH_NEEDS_NIC,
    GPSH_NEEDS_BOTH,
    GPSH_NEEDS_DEVICE, // one of the two
    GPSH_NEEDS_SWITCH,
    GPSH_NEEDS_PORT,
    GPSH_NEEDS_SEEN_PORT, // and says so if ports cannot be read
    GPSH_NEEDS_ACTIVE_PORT,
    GPSH_NEEDS_ROCE_PORT,
};

// What a check is called for: once, or once for each of these.
enum gpsh_each {
    GPSH_EACH_MACHINE,
    GPSH_EACH_GPU,
    GPSH_EACH_NIC,
    GPSH_EACH_DEVICE, // GPUs, then NICs
    GPSH_EACH_PORT,
    GPSH_EACH_ACTIVE_PORT,
    GPSH_EACH_ROCE_PORT, // that is active
};

// One of them.
struct gpsh_item {
    const char *pci; // of a GPU or a NIC
    bool gpu;
    const struct gpsh_port *port;
};

typedef void gpsh_look(const struct gpsh_host *host, struct gpsh_finding *finding,
                       const struct gpsh_item *item);

struct gpsh_check {
    const char *id, *title;
    const char *looks; // what the check looks at
    const char *means; // what a problem means for a job
    const char *mends; // what to do about it
    bool varies;       // `saw` differs even between PEs on equal machines
    enum gpsh_need need;
    enum gpsh_each each;
    gpsh_look *look;
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

// Whether the driver exports GPU memory by dma-buf.
bool gpsh_gpus_have_dmabuf(const struct gpsh_host *host);
// Whether NICs can be made to read and write GPU memory, by dma-buf or nvidia-peermem.
bool gpsh_nics_reach_gpus(const struct gpsh_host *host);

// Whether the machine has that; false: the finding says what is not there.
bool gpsh_has_need(const struct gpsh_host *host, enum gpsh_need need, struct gpsh_finding *finding);

extern gpsh_look gpsh_check_driver, gpsh_check_cuda, gpsh_check_gpu_files,
    gpsh_check_fabric_manager, gpsh_check_gpudirect, gpsh_check_bar1, gpsh_check_verbs,
    gpsh_check_uverbs, gpsh_check_port, gpsh_check_rate, gpsh_check_loss, gpsh_check_routing,
    gpsh_check_distance, gpsh_check_acs, gpsh_check_iommu, gpsh_check_relaxed, gpsh_check_link,
    gpsh_check_memlock, gpsh_check_files, gpsh_check_shm, gpsh_check_memory, gpsh_check_cpus,
    gpsh_check_huge_pages, gpsh_check_rdma_limit, gpsh_check_container, gpsh_check_settings,
    gpsh_check_launcher, gpsh_check_pmix, gpsh_check_self_test, gpsh_check_mtu, gpsh_check_gid,
    gpsh_check_namespace, gpsh_check_pfc, gpsh_check_ecn, gpsh_check_kernel_posts,
    gpsh_check_libfabric;

#define GPSH_CHECK_FUNCTION(name)                                                                  \
    void gpsh_check_##name(const struct gpsh_host *host, struct gpsh_finding *finding,             \
                           const struct gpsh_item *item)

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
