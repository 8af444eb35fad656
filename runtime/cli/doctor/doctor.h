// SPDX-License-Identifier: BSD-3-Clause
// What `gpushmem doctor` found, and the ways in which it tells.
#ifndef GPSH_DOCTOR_DOCTOR_H
#define GPSH_DOCTOR_DOCTOR_H

#include "doctor/check.h"
#include "json.h"

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
