// SPDX-License-Identifier: BSD-3-Clause
#include <stdio.h>
#include <string.h>

#include "core/text.h"
#include "doctor/check.h"
#include "page.h"

int gpsh_checks_count(void)
{
    int n = 0;
    while (gpsh_checks[n].id)
        n++;
    return n;
}

const char *gpsh_result_word(enum gpsh_check_result result)
{
    static const char *const words[] = {"not applicable", "ok", "cannot tell", "problem"};
    return words[result < GPSH_CHECK_RESULTS ? result : GPSH_PROBLEM];
}

enum gpsh_check_result gpsh_report_worst(const struct gpsh_report *report)
{
    enum gpsh_check_result worst = GPSH_NOT_APPLICABLE;
    for (int i = 0; gpsh_checks[i].id; i++)
        if (report->wanted[i] && report->findings[i].result > worst)
            worst = report->findings[i].result;
    return worst;
}

int gpsh_report_exit(enum gpsh_check_result worst)
{
    return worst == GPSH_PROBLEM ? 1 : worst == GPSH_CANNOT_TELL ? 3 : 0;
}

// ---- For people ----

enum { ID_WIDTH = 15, WORD_WIDTH = 14, INDENT = 4 };

static void paragraph_print(const char *head, const char *text)
{
    int used = printf("%*s%s", INDENT, "", head);
    gpsh_page_wrap(text, used, INDENT + 2);
}

static void finding_print(const struct gpsh_check *check, const struct gpsh_finding *finding,
                          bool in_full)
{
    static const enum gpsh_colour colours[] = {GPSH_DIM, GPSH_GREEN, GPSH_YELLOW, GPSH_RED};
    int columns = gpsh_page_columns();
    printf("%s%-*s%s ", gpsh_page_colour(colours[finding->result]), WORD_WIDTH,
           gpsh_result_word(finding->result), gpsh_page_colour(GPSH_PLAIN));
    printf("%s%-*s%s ", gpsh_page_colour(GPSH_BOLD), ID_WIDTH, check->id,
           gpsh_page_colour(GPSH_PLAIN));
    int used = WORD_WIDTH + ID_WIDTH + 2;
    if (columns && columns < 60) { // no room beside them
        printf("\n%*s", INDENT, "");
        used = INDENT;
    }
    gpsh_page_wrap(finding->saw, used, INDENT);
    if (!in_full)
        return;
    if (finding->result == GPSH_PROBLEM)
        paragraph_print("means: ", check->means);
    if (finding->result >= GPSH_CANNOT_TELL)
        paragraph_print("do: ", finding->mend[0] ? finding->mend : check->mends);
}

// What this machine lacks, which is why most checks that do not apply do not.
static void lack_print(const struct gpsh_report *report)
{
    static const char *const ids[] = {"driver", "verbs"};
    char line[256];
    struct gpsh_text t = {line, sizeof line, 0};
    for (int i = 0; gpsh_checks[i].id; i++)
        for (size_t k = 0; k < sizeof ids / sizeof *ids; k++)
            if (report->wanted[i] && report->findings[i].result == GPSH_NOT_APPLICABLE &&
                !strcmp(gpsh_checks[i].id, ids[k]))
                gpsh_text_add(&t, "%s%.100s", t.used ? " and " : "This machine has ",
                              report->findings[i].saw);
    if (!t.used)
        return;
    gpsh_text_add(&t, ".");
    putchar('\n');
    gpsh_page_wrap(line, 0, 0);
}

static void count_print(const int *count, bool hidden)
{
    char line[160];
    snprintf(line, sizeof line, "%d ok, %d problem%s, %d cannot be told, %d do not apply here%s",
             count[GPSH_OK], count[GPSH_PROBLEM], count[GPSH_PROBLEM] == 1 ? "" : "s",
             count[GPSH_CANNOT_TELL], count[GPSH_NOT_APPLICABLE],
             hidden ? "; --all shows everything" : "");
    putchar('\n');
    gpsh_page_wrap(line, 0, 0);
}

void gpsh_report_print(const struct gpsh_report *report, bool all)
{
    int count[GPSH_CHECK_RESULTS] = {0};
    for (int i = 0; gpsh_checks[i].id; i++) {
        const struct gpsh_finding *finding = &report->findings[i];
        if (!report->wanted[i])
            continue;
        count[finding->result]++;
        if (all || report->named || finding->result != GPSH_NOT_APPLICABLE)
            finding_print(&gpsh_checks[i], finding, all || finding->result == GPSH_PROBLEM);
    }
    if (!all && !report->named)
        lack_print(report);
    count_print(count, !all && !report->named);
}

// ---- For programs ----

void gpsh_report_json(const struct gpsh_report *report)
{
    struct gpsh_json json = {.out = stdout};
    gpsh_json_object(&json, NULL);
    gpsh_json_text(&json, "worst", gpsh_result_word(gpsh_report_worst(report)));
    gpsh_json_list(&json, "checks");
    for (int i = 0; gpsh_checks[i].id; i++) {
        const struct gpsh_finding *f = &report->findings[i];
        if (!report->wanted[i])
            continue;
        bool bad = f->result >= GPSH_CANNOT_TELL;
        gpsh_json_object(&json, NULL);
        gpsh_json_text(&json, "id", gpsh_checks[i].id);
        gpsh_json_text(&json, "title", gpsh_checks[i].title);
        gpsh_json_text(&json, "result", gpsh_result_word(f->result));
        gpsh_json_text(&json, "saw", f->saw);
        gpsh_json_text(&json, "means", f->result == GPSH_PROBLEM ? gpsh_checks[i].means : NULL);
        gpsh_json_text(&json, "mend", !bad ? NULL : f->mend[0] ? f->mend : gpsh_checks[i].mends);
        gpsh_json_end(&json);
    }
    gpsh_json_end(&json);
    gpsh_json_end(&json);
}

static void markdown_wrap(const char *text)
{
    gpsh_page_document(124, "", text);
}

void gpsh_checks_markdown(void)
{
    puts("# What `gpushmem doctor` looks at\n");
    markdown_wrap("`gpushmem doctor` looks at everything between a GPU and the wire and says for "
                  "each: ok, problem or cannot tell; what it saw, what that means, and what to do. "
                  "It works as a plain user, on a laptop and in a container; as root it sees "
                  "more.");
    puts("\n"
         "    gpushmem doctor                             # this machine\n"
         "    gpushmem doctor --all                       # also what is well or does not apply, "
         "in full\n"
         "    gpushmem doctor memlock port                # these checks only\n"
         "    gpushmem doctor --json                      # for programs\n"
         "    gpushmem doctor --root /mnt/copy            # another machine's /sys, /proc, /dev "
         "and /usr\n"
         "    gpushmem run -n 2 gpushmem doctor --fabric  # each PE of a job; prints what "
         "differs\n");
    markdown_wrap(
        "The exit code says the worst: 0 all is well, 1 a problem, 3 something cannot be "
        "told, 2 the command line is wrong. With `--fabric` PE 0 tells and has that exit "
        "code; any launcher will do. Where the library fails to start, its sentence names "
        "the check that explains it.");
    putchar('\n');
    markdown_wrap("This file is the output of `gpushmem doctor --markdown`; a test keeps it "
                  "current. The checks have been tried on made-up machines, one fault each, and on "
                  "Soft-RoCE; not yet on a machine that has both GPUs and RDMA NICs.");
    for (const struct gpsh_check *c = gpsh_checks; c->id; c++) {
        char text[1024];
        printf("\n## %s: %s\n\n", c->id, c->title);
        snprintf(text, sizeof text, "Looks at %s. A problem means: %s", c->looks, c->means);
        markdown_wrap(text);
        printf("\n    %s\n", c->mends);
    }
}
