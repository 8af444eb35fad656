// SPDX-License-Identifier: BSD-3-Clause
// A running job and what is done when something happens to it. Nothing here blocks.
#ifndef GPSH_JOB_H
#define GPSH_JOB_H

#include <stdbool.h>
#include <stddef.h>

#include "bootstrap/job_segment.h"
#include "children.h"
#include "observe/hang_report.h"
#include "run_options.h"

struct gpsh_job {
    const struct gpsh_run_options *options;
    struct gpsh_job_segment *segment;
    struct gpsh_child *pes; // [n_pes]
    int n_pes;
    int n_running;

    int exit_status;   // of the launcher
    char reason[1024]; // why the job is no success; "" while it is one
    int n_failed;      // PEs that failed by themselves, with --on-failure continue
    int forwarded;     // last signal passed on to the PEs, 0: none
    int n_interrupts;

    bool ending;
    int n_ended;           // PEs that were running when the ending began
    double terminate_at_s; // monotonic times of the next steps, 0: not planned
    double kill_at_s;
    double timeout_at_s;
    double report_at_s;                       // on what the PEs wait for
    char hang_report[GPSH_HANG_REPORT_BYTES]; // the last one
    double warn_at_s;                         // about `left`
    int left;                                 // a PE that ended well, but without finalize
};

void gpsh_job_begin(struct gpsh_job *j);
// Each of these is called when its event has happened.
void gpsh_job_on_child_ends(struct gpsh_job *j);
void gpsh_job_on_child_stops(struct gpsh_job *j);
void gpsh_job_on_keeper_lost(struct gpsh_job *j);
void gpsh_job_on_abort(struct gpsh_job *j, int pe, int status, const char *why); // PE's wish
void gpsh_job_on_own_failure(struct gpsh_job *j, const char *why); // the launcher cannot go on
void gpsh_job_on_signal(struct gpsh_job *j, int signal);
void gpsh_job_on_call(struct gpsh_job *j); // of a PE that has waited for long
bool gpsh_job_on_time(struct gpsh_job *j); // true: all that is left of it was killed

// When gpsh_job_on_time has something to do next; INFINITY: never.
double gpsh_job_due_s(const struct gpsh_job *j);
// The last words, if the job was no success.
void gpsh_job_report(const struct gpsh_job *j);

#endif
