// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE
// What libfabric has for this host, without a job: for doctor, and `gpushmem info --providers`.
#include <stdio.h>
#include <stdlib.h>

#include "core/text.h"
#include "transports/ofi/ofi_fabric.h"
#include "transports/ofi/ofi_wire.h"

enum { MOST_PROVIDERS = 32 };

// The words for what was chosen, which docs/transports.md has as well.
struct manners {
    const char *progress, *atomics, *messages, *memory;
};

static struct manners manners_of(const struct gpsh_ofi *ofi)
{
    const struct fi_info *info = ofi->info;
    bool ordered = info->tx_attr->msg_order & info->rx_attr->msg_order & FI_ORDER_SAS;
    bool itself = info->domain_attr->data_progress == FI_PROGRESS_AUTO;
    return (struct manners){itself ? "by itself" : "by a thread of each PE",
                            ofi->atomics ? "its own, so it claims" : "agents",
                            ordered ? "keep their order" : "keep no order",
                            ofi->hmem ? "by itself" : "through the host's"};
}

static void survey_close(struct gpsh_ofi *ofi)
{
    gpsh_ofi_wire_close(ofi);
    gpsh_ofi_fabric_close(ofi);
}

// As for a heap on a GPU, which the provider reaches if it has FI_HMEM. Opened as by a job, which
// passes over providers that are listed and do not work.
int gpsh_ofi_survey(const struct gpsh_settings *settings, char *line, size_t bytes)
{
    struct gpsh_ofi ofi = {.env = {.settings = settings, .n_pes = 1}};
    ofi.env.regions[GPSH_HEAP].kind = GPSH_MEMORY_DEVICE;
    int status = gpsh_ofi_wire_open(&ofi);
    if (status) {
        survey_close(&ofi);
        return status;
    }
    const struct fi_info *info = ofi.info;
    bool ordered = info->tx_attr->msg_order & info->rx_attr->msg_order & FI_ORDER_SAS;
    bool itself = info->domain_attr->data_progress == FI_PROGRESS_AUTO;
    const char *fault = gpsh_ofi_fault(info);
    snprintf(line, bytes, "libfabric %u.%u takes %s on %s%s: %s, %s, %s, %s%s%s",
             FI_MAJOR(ofi.library->version()), FI_MINOR(ofi.library->version()),
             info->fabric_attr->prov_name, info->domain_attr->name,
             gpsh_ofi_is_loopback(info) ? ", which no other host reaches" : "",
             itself ? "operations make progress by themselves" : "a thread of each PE serves peers",
             ofi.atomics ? "it claims atomics" : "agents execute atomics",
             ordered ? "messages keep their order" : "messages keep no order",
             ofi.hmem ? "it moves GPU memory" : "GPU memory goes through the host's",
             fault ? "; " : "", fault ? fault : "");
    survey_close(&ofi);
    return fault != NULL;
}

// ------------------------------------------------------------------------------------------
// all providers

// Whether that provider has anything for these hints, which are freed.
static bool has(const struct gpsh_ofi *ofi, struct fi_info *hints, const char *provider)
{
    struct fi_info *list = NULL;
    hints->fabric_attr->prov_name = strdup(provider);
    bool some = hints->fabric_attr->prov_name && !gpsh_ofi_list(ofi, hints, &list);
    if (list)
        ofi->library->freeinfo(list);
    ofi->library->freeinfo(hints);
    return some;
}

// "|not taken: it lacks FI_RMA; FI_RM_ENABLED", each asked for alone.
static void tell_lacks(const struct gpsh_ofi *ofi, const char *provider, char *cells, size_t bytes)
{
    struct gpsh_text t = {cells, bytes, 0};
    gpsh_text_add(&t, "%s|not taken: it lacks", provider);
    const char *between = " ";
    for (const struct ofi_want *want = gpsh_ofi_wants; want->name; want++) {
        struct fi_info *hints = gpsh_ofi_hints(ofi);
        if (!hints)
            return;
        want->ask(hints);
        if (has(ofi, hints, provider))
            continue;
        gpsh_text_add(&t, "%s%s", between, want->name);
        between = "; ";
    }
    if (*between == ' ')
        gpsh_text_add(&t, " some of these together: see transports.md");
}

static void tell(const struct gpsh_settings *settings, const char *provider, gpsh_survey_row *row,
                 void *arg)
{
    struct gpsh_settings its = *settings;
    struct gpsh_ofi ofi = {.env = {.settings = &its}};
    char cells[256];
    its.ofi_provider = provider;
    ofi.env.regions[GPSH_HEAP].kind = GPSH_MEMORY_DEVICE;
    if (gpsh_ofi_choose(&ofi)) {
        tell_lacks(&ofi, provider, cells, sizeof cells);
    } else {
        struct manners m = manners_of(&ofi);
        snprintf(cells, sizeof cells, "%s|%s|%s|%s|%s", provider, m.progress, m.atomics, m.messages,
                 m.memory);
    }
    gpsh_ofi_fabric_close(&ofi);
    row(arg, cells);
}

// Their names, in libfabric's order, each once. Copies.
static int name_all(const struct gpsh_ofi *ofi, char *names[MOST_PROVIDERS])
{
    struct fi_info *hints = gpsh_ofi_hints(ofi), *list = NULL;
    int n = 0;
    if (!hints)
        return 0;
    (void)gpsh_ofi_list(ofi, hints, &list);
    for (const struct fi_info *info = list; info && n < MOST_PROVIDERS; info = info->next) {
        int i = 0;
        while (i < n && strcmp(names[i], info->fabric_attr->prov_name) != 0)
            i++;
        if (i == n)
            names[n] = strdup(info->fabric_attr->prov_name);
        n += i == n && names[n];
    }
    if (list)
        ofi->library->freeinfo(list);
    ofi->library->freeinfo(hints);
    return n;
}

int gpsh_ofi_survey_all(const struct gpsh_settings *settings, gpsh_survey_row *row, void *arg)
{
    struct gpsh_ofi ofi = {.env = {.settings = settings}, .library = gpsh_ofi_library()};
    char *names[MOST_PROVIDERS];
    if (!ofi.library)
        return gpsh_last_error_code();
    int n = name_all(&ofi, names);
    for (int i = 0; i < n; i++) {
        tell(settings, names[i], row, arg);
        free(names[i]);
    }
    return 0;
}
