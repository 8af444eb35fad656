// SPDX-License-Identifier: BSD-3-Clause
// The reports of all PEs of a job, compared by PE 0. They travel through the bootstrap alone, since
// the network may be what does not work.
#define _GNU_SOURCE // gethostname
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bootstrap/bootstrap.h"
#include "core/error.h"
#include "core/text.h"
#include "doctor/check.h"
#include "page.h"
#include "say.h"

enum { SAW_BYTES = 240, HOST_BYTES = 64, MAGIC = 0x67646f63 };

// What a PE hands over.
struct letter {
    uint32_t magic, checks;
    char host[HOST_BYTES];
    struct {
        uint8_t result;
        char saw[SAW_BYTES];
    } finding[GPSH_CHECKS_MOST];
};

static void letter_write(const struct gpsh_report *report, struct letter *letter)
{
    *letter = (struct letter){.magic = MAGIC, .checks = (uint32_t)gpsh_checks_count()};
    if (gethostname(letter->host, HOST_BYTES - 1))
        letter->host[0] = '\0';
    for (int i = 0; gpsh_checks[i].id; i++) {
        letter->finding[i].result = (uint8_t)report->findings[i].result;
        snprintf(letter->finding[i].saw, SAW_BYTES, "%.*s", SAW_BYTES - 1, report->findings[i].saw);
    }
}

// It comes from another process, maybe of another version.
static int letter_read(struct gpsh_bootstrap *boot, int pe, struct letter *letter)
{
    void *blob = NULL;
    size_t bytes = 0;
    int status = gpsh_bootstrap_get(boot, pe, &blob, &bytes);
    if (status)
        return status;
    bool good = bytes == sizeof *letter;
    if (good)
        memcpy(letter, blob, sizeof *letter);
    free(blob);
    if (!good || letter->magic != MAGIC || letter->checks != (uint32_t)gpsh_checks_count())
        return gpsh_fail(GPUSHMEM_ERR_PEER_DATA,
                         "PE %d runs another version of gpushmem doctor; start the same one on "
                         "every node",
                         pe);
    letter->host[HOST_BYTES - 1] = '\0';
    for (int i = 0; i < GPSH_CHECKS_MOST; i++) {
        letter->finding[i].saw[SAW_BYTES - 1] = '\0';
        if (letter->finding[i].result >= GPSH_CHECK_RESULTS)
            letter->finding[i].result = GPSH_CANNOT_TELL;
    }
    return 0;
}

// ---- What differs ----

static bool is_alike(const struct letter *a, const struct letter *b, int check)
{
    return a->finding[check].result == b->finding[check].result &&
           (gpsh_checks[check].varies || !strcmp(a->finding[check].saw, b->finding[check].saw));
}

static bool all_alike(const struct letter *letters, int n, int check)
{
    for (int pe = 1; pe < n; pe++)
        if (!is_alike(&letters[0], &letters[pe], check))
            return false;
    return true;
}

static bool is_first(const struct letter *letters, int pe, int check)
{
    for (int before = 0; before < pe; before++)
        if (is_alike(&letters[before], &letters[pe], check))
            return false;
    return true;
}

struct group {
    const struct letter *letters, *first;
    int check;
};

static bool is_of_group(const void *group, int pe)
{
    const struct group *g = group;
    return g->letters + pe >= g->first && is_alike(g->first, g->letters + pe, g->check);
}

// "PE 3", "PEs 0-3,5", and the host if it is one.
static void group_name(const struct letter *letters, int n, int first, int check, char *text,
                       size_t bytes)
{
    const struct group group = {letters, &letters[first], check};
    struct gpsh_text t = {text, bytes, 0};
    int alike = 0;
    bool one_host = letters[first].host[0];
    for (int pe = first; pe < n; pe++) {
        bool in = is_of_group(&group, pe);
        alike += in;
        one_host &= !in || !strcmp(letters[pe].host, letters[first].host);
    }
    gpsh_text_add(&t, alike == 1 ? "PE " : "PEs ");
    gpsh_text_add_ranges(&t, n, is_of_group, &group);
    if (one_host)
        gpsh_text_add(&t, " on %s", letters[first].host);
}

static void check_print(const struct letter *letters, int n, int check)
{
    printf("%s%s%s\n", gpsh_page_colour(GPSH_BOLD), gpsh_checks[check].id,
           gpsh_page_colour(GPSH_PLAIN));
    for (int pe = 0; pe < n; pe++) {
        char name[160], text[512];
        if (!is_first(letters, pe, check))
            continue;
        group_name(letters, n, pe, check, name, sizeof name);
        snprintf(text, sizeof text, "%s: %s: %s", name,
                 gpsh_result_word((enum gpsh_check_result)letters[pe].finding[check].result),
                 letters[pe].finding[check].saw);
        printf("%*s", 4, "");
        gpsh_page_wrap(text, 4, 6);
    }
}

static void differences_print(const struct letter *letters, int n, const struct gpsh_report *own)
{
    int differ = 0, problems = 0;
    for (int i = 0; gpsh_checks[i].id; i++)
        if (own->wanted[i] && !all_alike(letters, n, i)) {
            check_print(letters, n, i);
            differ++;
        } else if (own->wanted[i] && letters[0].finding[i].result == GPSH_PROBLEM)
            problems++;
    char line[200];
    struct gpsh_text t = {line, sizeof line, 0};
    if (n == 1) {
        puts("A job of one PE has nothing to compare; start it with gpushmem run -n 2, or srun.");
        return;
    }
    gpsh_text_add(&t, differ ? "%d PEs, %d checks differ" : "%d PEs are alike", n, differ);
    gpsh_text_add(&t, problems ? "; %d problem%s on all of them alike, see gpushmem doctor" : ".",
                  problems, problems == 1 ? " is" : "s are");
    gpsh_page_wrap(line, 0, 0);
}

static void differences_json(const struct letter *letters, int n, const struct gpsh_report *own)
{
    struct gpsh_json json = {.out = stdout};
    gpsh_json_object(&json, NULL);
    gpsh_json_integer(&json, "pes", n);
    gpsh_json_list(&json, "differences");
    for (int i = 0; gpsh_checks[i].id; i++) {
        if (!own->wanted[i] || all_alike(letters, n, i))
            continue;
        for (int pe = 0; pe < n; pe++) {
            gpsh_json_object(&json, NULL);
            gpsh_json_text(&json, "id", gpsh_checks[i].id);
            gpsh_json_integer(&json, "pe", pe);
            gpsh_json_text(&json, "host", letters[pe].host);
            gpsh_json_text(&json, "result",
                           gpsh_result_word((enum gpsh_check_result)letters[pe].finding[i].result));
            gpsh_json_text(&json, "saw", letters[pe].finding[i].saw);
            gpsh_json_end(&json);
        }
    }
    gpsh_json_end(&json);
    gpsh_json_end(&json);
}

static enum gpsh_check_result worst_of(const struct letter *letters, int n,
                                       const struct gpsh_report *own)
{
    uint8_t worst = GPSH_NOT_APPLICABLE;
    for (int pe = 0; pe < n; pe++)
        for (int i = 0; gpsh_checks[i].id; i++)
            if (own->wanted[i] && letters[pe].finding[i].result > worst)
                worst = letters[pe].finding[i].result;
    return (enum gpsh_check_result)worst;
}

// ---- All PEs ----

static int letters_compare(struct gpsh_bootstrap *boot, const struct gpsh_report *own, bool json,
                           int *exit_status)
{
    int status = 0;
    struct letter *letters = calloc((size_t)boot->n_pes, sizeof *letters);
    if (!letters)
        return gpsh_fail(GPUSHMEM_ERR_NO_MEMORY, "no memory for the reports of %d PEs",
                         boot->n_pes);
    for (int pe = 0; pe < boot->n_pes && !status; pe++)
        status = letter_read(boot, pe, &letters[pe]);
    if (!status) {
        (json ? differences_json : differences_print)(letters, boot->n_pes, own);
        *exit_status = gpsh_report_exit(worst_of(letters, boot->n_pes, own));
    }
    free(letters);
    return status;
}

int gpsh_report_fabric(const struct gpsh_report *report, bool json)
{
    static struct gpsh_bootstrap boot;
    static struct letter letter;
    int exit_status = 0;
    int status = gpsh_bootstrap_init(&boot);
    if (status)
        return gpsh_cli_fail("doctor");
    letter_write(report, &letter);
    status = gpsh_bootstrap_put(&boot, &letter, sizeof letter);
    if (!status)
        status = gpsh_bootstrap_exchange(&boot);
    if (!status && boot.my_pe == 0)
        status = letters_compare(&boot, report, json, &exit_status);
    if (!status)
        status = gpsh_bootstrap_exchange(&boot);
    exit_status = status ? gpsh_cli_fail("doctor") : exit_status;
    gpsh_bootstrap_finalize(&boot);
    return exit_status;
}
