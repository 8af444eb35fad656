// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE // getdelim
#include "recorded.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "document.h"

static bool refuse(struct perf_recorded *run, const char *why)
{
    fprintf(stderr, "gpushmem perf: %s is no file of gpushmem perf --json: %s\n", run->name, why);
    perf_recorded_clear(run);
    return false;
}

static bool take_text(const struct perf_json *from, const char *key, char *text, size_t room)
{
    const char *value = perf_json_text(perf_json_get(from, key));
    snprintf(text, room, "%s", value);
    return *value && strlen(value) < room;
}

static double number(const struct perf_json *from, const char *key)
{
    return perf_json_number(perf_json_get(from, key));
}

// What a row must have, whoever wrote it.
static bool row_is_good(const struct perf_row *row, double size)
{
    return row->n_pes > 0 && row->pairs > 0 && size >= 0 && size < 1e15 && row->us_p50 > 0 &&
           row->us_low > 0 && row->us_low <= row->us_high;
}

static int count_of(double value)
{
    return value >= 1 && value <= 1e9 ? (int)value : 0;
}

static bool row_read(const struct perf_json *from, struct perf_row *row)
{
    double size = perf_json_get(from, "size_bytes") ? number(from, "size_bytes") : -1;
    *row = (struct perf_row){.n_pes = count_of(number(from, "pes")),
                             .pairs = count_of(number(from, "pairs")),
                             .bidirectional = number(from, "bidirectional") > 0,
                             .latency_us_p50 = number(from, "latency_us_p50"),
                             .latency_us_p99 = number(from, "latency_us_p99"),
                             .latency_us_p99_9 = number(from, "latency_us_p99_9"),
                             .latency_us_max = number(from, "latency_us_max"),
                             .bandwidth_gb_s = number(from, "bandwidth_gb_s"),
                             .rate_m_s = number(from, "rate_m_s"),
                             .us_p50 = number(from, "us_p50"),
                             .us_low = number(from, "us_low"),
                             .us_high = number(from, "us_high")};
    bool good = row_is_good(row, size) && take_text(from, "test", row->test, sizeof row->test) &&
                take_text(from, "issuer", row->issuer, sizeof row->issuer) &&
                take_text(from, "transport", row->transport, sizeof row->transport) &&
                take_text(from, "path", row->path, sizeof row->path) &&
                take_text(from, "memory", row->memory, sizeof row->memory);
    row->size_bytes = good ? (uint64_t)size : 0;
    return good;
}

bool perf_recorded_parse(struct perf_recorded *run, const char *name, const char *text)
{
    const char *problem;
    char why[160];
    int line;
    *run = (struct perf_recorded){.name = name};
    run->json = perf_json_parse(text, &problem, &line);
    if (!run->json) {
        snprintf(why, sizeof why, "line %d: %s", line, problem);
        return refuse(run, why);
    }
    const struct perf_json *rows = perf_json_get(run->json, "rows");
    if (strcmp(perf_json_text(perf_json_get(run->json, "format")), "gpushmem perf") != 0 || !rows ||
        rows->kind != PERF_JSON_LIST)
        return refuse(run, "it has no format \"gpushmem perf\" with rows");
    if (number(run->json, "format_version") != PERF_DOCUMENT_VERSION) {
        snprintf(why, sizeof why, "its format_version is %g, this program reads %d",
                 number(run->json, "format_version"), PERF_DOCUMENT_VERSION);
        return refuse(run, why);
    }
    run->rows = calloc(rows->n + 1, sizeof *run->rows);
    for (size_t i = 0; i < rows->n && run->rows; i++, run->n_rows++)
        if (!row_read(&rows->more[i], &run->rows[i])) {
            snprintf(why, sizeof why, "row %zu lacks a field or has one without sense", i + 1);
            return refuse(run, why);
        }
    return run->rows || refuse(run, "there is no memory for it");
}

bool perf_recorded_read(struct perf_recorded *run, const char *path)
{
    char *text = NULL;
    size_t room = 0;
    FILE *in = fopen(path, "re");
    ssize_t length = in ? getdelim(&text, &room, '\0', in) : -1;
    bool good = in && !ferror(in);
    *run = (struct perf_recorded){.name = path};
    if (!good)
        fprintf(stderr, "gpushmem perf: cannot read %s: %s\n", path, strerror(errno));
    else
        good = perf_recorded_parse(run, path, length > 0 ? text : "");
    if (in)
        fclose(in);
    free(text);
    return good;
}

const char *perf_recorded_text(const struct perf_recorded *run, const char *part, const char *key)
{
    const struct perf_json *inside = part ? perf_json_get(run->json, part) : run->json;
    return perf_json_text(perf_json_get(inside, key));
}

double perf_recorded_number(const struct perf_recorded *run, const char *part, const char *key)
{
    return perf_json_number(perf_json_get(perf_json_get(run->json, part), key));
}

bool perf_row_is_floor(const struct perf_row *row)
{
    return !strncmp(row->test, "raw-", 4) || !strcmp(row->test, "memcpy");
}

void perf_recorded_clear(struct perf_recorded *run)
{
    perf_json_free(run->json);
    free(run->rows);
    *run = (struct perf_recorded){.name = run->name};
}
