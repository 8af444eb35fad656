// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE // environ, gmtime_r, open_memstream
#include "document.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "gpushmem/gpushmem.h"
#include "runtime/cli/json.h"

#if defined(__clang__)
#define COMPILER "clang " __clang_version__
#else
#define COMPILER "gcc " __VERSION__
#endif

// What was not measured is null.
static void add_figure(struct gpsh_json *json, const char *key, double value)
{
    if (value > 0)
        gpsh_json_number(json, key, value);
    else
        gpsh_json_text(json, key, NULL);
}

static void add_row(struct gpsh_json *json, const struct perf_row *row)
{
    gpsh_json_object(json, NULL);
    gpsh_json_text(json, "test", row->test);
    gpsh_json_text(json, "issuer", row->issuer);
    gpsh_json_text(json, "transport", row->transport);
    gpsh_json_text(json, "path", row->path);
    gpsh_json_text(json, "memory", row->memory);
    gpsh_json_integer(json, "pes", row->n_pes);
    gpsh_json_integer(json, "pairs", row->pairs);
    gpsh_json_bool(json, "bidirectional", row->bidirectional);
    gpsh_json_integer(json, "size_bytes", (int64_t)row->size_bytes);
    add_figure(json, "latency_us_p50", row->latency_us_p50);
    add_figure(json, "latency_us_p99", row->latency_us_p99);
    add_figure(json, "latency_us_p99_9", row->latency_us_p99_9);
    add_figure(json, "latency_us_max", row->latency_us_max);
    add_figure(json, "bandwidth_gb_s", row->bandwidth_gb_s);
    add_figure(json, "rate_m_s", row->rate_m_s);
    if (row->overlap)
        gpsh_json_number(json, "overlap_percent", row->overlap_percent);
    gpsh_json_integer(json, "samples", (int64_t)row->samples);
    add_figure(json, "us_p50", row->us_p50);
    add_figure(json, "us_low", row->us_low);
    add_figure(json, "us_high", row->us_high);
    gpsh_json_end(json);
}

static void add_machine(struct gpsh_json *json, const struct perf_machine *machine)
{
    gpsh_json_object(json, "machine");
    gpsh_json_text(json, "cpu", machine->cpu);
    gpsh_json_integer(json, "cores", machine->cores);
    gpsh_json_integer(json, "memory_bytes", (int64_t)machine->memory_bytes);
    gpsh_json_text(json, "system", machine->system);
    gpsh_json_text(json, "gpus", machine->gpus);
    gpsh_json_text(json, "gpu_driver", machine->gpu_driver);
    gpsh_json_text(json, "nics", machine->nics);
    gpsh_json_number(json, "load", machine->load);
    gpsh_json_end(json);
}

static void add_versions(struct gpsh_json *json)
{
    gpsh_json_object(json, "versions");
    gpsh_json_text(json, "gpushmem", gpushmem_version_string());
    gpsh_json_text(json, "compiler", COMPILER);
    gpsh_json_end(json);
}

static void add_settings(struct gpsh_json *json, char **settings)
{
    gpsh_json_object(json, "settings");
    for (; settings && *settings; settings++) {
        char name[128];
        size_t length = strcspn(*settings, "=");
        snprintf(name, sizeof name, "%.*s", (int)length, *settings);
        gpsh_json_text(json, name, *settings + length + ((*settings)[length] == '='));
    }
    gpsh_json_end(json);
}

static void add_time(struct gpsh_json *json)
{
    char text[32] = "";
    time_t now = time(NULL);
    struct tm utc;
    if (gmtime_r(&now, &utc))
        strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc);
    gpsh_json_text(json, "time", text);
}

static void write_all(FILE *out, const struct perf_report *r, const struct perf_about *about)
{
    struct gpsh_json json = {.out = out};
    gpsh_json_object(&json, NULL);
    gpsh_json_text(&json, "format", "gpushmem perf");
    gpsh_json_integer(&json, "format_version", PERF_DOCUMENT_VERSION);
    add_time(&json);
    gpsh_json_list(&json, "command");
    for (int i = 1; about->argv[i]; i++)
        gpsh_json_text(&json, NULL, about->argv[i]);
    gpsh_json_end(&json);
    add_versions(&json);
    add_machine(&json, &about->machine);
    add_settings(&json, about->settings);
    gpsh_json_list(&json, "rows");
    for (int i = 0; i < r->n_rows; i++)
        add_row(&json, &r->rows[i]);
    gpsh_json_end(&json);
    gpsh_json_list(&json, "left_out");
    for (int i = 0; i < r->n_left_out; i++)
        gpsh_json_text(&json, NULL, r->left_out[i]);
    gpsh_json_end(&json);
    gpsh_json_end(&json);
}

bool perf_document_can_write(const char *option, const char *path)
{
    FILE *out = path && strcmp(path, "-") ? fopen(path, "ae") : stdout;
    if (!out)
        fprintf(stderr, "gpushmem perf: cannot write %s %s: %s\n", option, path, strerror(errno));
    else if (out != stdout)
        fclose(out);
    return out != NULL;
}

// Not what gpushmem run tells its PEs: nobody has chosen that.
static bool is_setting(const char *variable)
{
    return !strncmp(variable, "GPUSHMEM_", 9) && strncmp(variable, "GPUSHMEM_RUN_", 13) != 0;
}

void perf_about_take(struct perf_about *about, char *const *argv)
{
    size_t n = 0;
    while (environ[n])
        n++;
    *about = (struct perf_about){.argv = argv, .settings = calloc(n + 1, sizeof(char *))};
    perf_machine_read(&about->machine);
    for (size_t i = 0, taken = 0; i < n && about->settings; i++)
        if (is_setting(environ[i]) && (about->settings[taken] = strdup(environ[i])))
            taken++;
}

void perf_about_clear(struct perf_about *about)
{
    for (char **setting = about->settings; setting && *setting; setting++)
        free(*setting);
    free(about->settings);
    about->settings = NULL;
}

char *perf_document_text(const struct perf_report *r, const struct perf_about *about)
{
    char *text = NULL;
    size_t bytes;
    FILE *out = open_memstream(&text, &bytes);
    if (out)
        write_all(out, r, about);
    if (out && fclose(out) == 0)
        return text;
    fprintf(stderr, "gpushmem perf: there is no memory for the results\n");
    free(text);
    return NULL;
}

bool perf_document_write(const char *text, const char *path)
{
    bool to_file = strcmp(path, "-") != 0;
    FILE *out = to_file ? fopen(path, "we") : stdout;
    if (!out) {
        fprintf(stderr, "gpushmem perf: cannot write --json %s: %s\n", path, strerror(errno));
        return false;
    }
    bool good = fputs(text, out) >= 0;
    good &= (to_file ? fclose(out) : fflush(out)) == 0;
    if (!good)
        fprintf(stderr, "gpushmem perf: writing --json %s failed: %s\n", path, strerror(errno));
    return good;
}
