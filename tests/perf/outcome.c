// SPDX-License-Identifier: BSD-3-Clause
#include "outcome.h"

#include <string.h>

#include "compare.h"
#include "document.h"
#include "plot.h"
#include "runtime/cli/options.h"

enum { FAILED = 1, RUNS = PERF_MAX_FILES + 1 };

bool perf_outcome_is_possible(const struct perf_options *o)
{
    bool good =
        perf_document_can_write("--json", o->json) && perf_document_can_write("--plot", o->plot);
    for (int i = 0; i < o->n_compare && good; i++) {
        struct perf_recorded run;
        good = perf_recorded_read(&run, o->compare[i]);
        if (good)
            perf_recorded_clear(&run);
    }
    return good;
}

// runs[0] is the new one.
static int compare_all(const struct perf_options *o, const struct perf_recorded *runs, int n)
{
    FILE *out = o->json && !strcmp(o->json, "-") ? stderr : stdout;
    int status = 0;
    for (int i = 1; i < n; i++) {
        struct perf_comparison c = perf_compare(out, &runs[i], &runs[0], o->tolerance / 100.0);
        bool none = true;
        for (int k = 0; k < PERF_VERDICTS; k++)
            none &= !c.counts[k];
        int told = none                    ? FAILED
                   : c.floors_changed      ? PERF_EXIT_MACHINE
                   : c.counts[PERF_SLOWER] ? PERF_EXIT_SLOWER
                                           : 0;
        status = none || !status ? told : status;
    }
    return status;
}

int perf_outcome(const struct perf_options *o, const struct perf_recorded *now)
{
    struct perf_recorded runs[RUNS] = {*now};
    int n = 1;
    bool good = true;
    while (n <= o->n_compare && good) {
        good = perf_recorded_read(&runs[n], o->compare[n - 1]);
        n += good;
    }
    int status = good ? compare_all(o, runs, n) : FAILED;
    if (good && o->plot && !perf_plot_write(o->plot, runs, n))
        status = FAILED;
    while (--n > 0)
        perf_recorded_clear(&runs[n]);
    return status;
}

int perf_outcome_of_file(const struct perf_options *o)
{
    struct perf_recorded now;
    if (!perf_recorded_read(&now, o->from))
        return GPSH_OPTIONS_EXIT_USAGE;
    int status = perf_outcome(o, &now);
    perf_recorded_clear(&now);
    return status;
}
