// SPDX-License-Identifier: BSD-3-Clause
// `gpushmem info --providers`: what the libraries that drive several networks have here.
#include <stdio.h>

#include "commands.h"
#include "info_settings.h"
#include "page.h"
#include "say.h"
#include "table.h"
#include "transport/transport.h"

enum { COLUMNS = 5 };

static void add_row(void *arg, const char *cells)
{
    struct gpsh_table *table = arg;
    gpsh_table_add_words(table, cells);
    while (table->n % COLUMNS)
        gpsh_table_add(table, "-");
}

static int print_providers(const struct gpsh_transport_ops *ops,
                           const struct gpsh_settings *settings)
{
    struct gpsh_table table = {.columns = COLUMNS};
    gpsh_table_add_words(&table, "provider|progress|atomics by|messages|GPU memory");
    int status = ops->survey_all(settings, add_row, &table);
    if (status)
        return gpsh_cli_fail("info");
    gpsh_table_print(&table);
    return 0;
}

int gpsh_cli_print_providers(void)
{
    struct gpsh_settings settings;
    int failed = gpsh_info_settings_read(GPSH_FOR_GPUSHMEM, &settings);
    if (failed)
        return failed;
    bool found = false;
    for (int i = 0; gpsh_transports[i]; i++) {
        if (!gpsh_transports[i]->survey_all)
            continue;
        found = true;
        failed |= print_providers(gpsh_transports[i], &settings);
    }
    gpsh_settings_clear(&settings);
    if (!found)
        gpsh_cli_say("info", "this build has no transport with providers: %s",
                     GPSH_TRANSPORTS_SKIPPED);
    return failed || !found;
}
