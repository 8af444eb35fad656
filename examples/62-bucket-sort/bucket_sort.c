// SPDX-License-Identifier: BSD-3-Clause
// Integers that are spread over all PEs are sorted: each PE sorts its own, cuts them into a part
// for each PE, the parts are exchanged, and each PE sorts what it got. Twice, with two ways to
// cut. Without kernels: calls of the host alone.
#define _GNU_SOURCE // what example.h uses
#include "../shared/example.h"
#include "sort.h"

struct options {
    long keys, check;
    const char *kind, *csv;
};

static const struct {
    const char *name;
    int (*split)(const uint32_t *keys, long count, long *cut);
} ways[] = {{"range", split_by_range}, {"sample", split_by_sample}};
enum { WAYS = sizeof ways / sizeof *ways };

static long held[WAYS][MAX_PES]; // keys that each PE has in the end, for --csv

static int sort_keys(int way, uint32_t *keys, uint32_t *scratch, long count, struct sorted *s)
{
    long cut[MAX_PES + 1];
    keys_sort(keys, scratch, count);
    TRY(ways[way].split(keys, count, cut));
    return exchange(keys, cut, s);
}

static void report(int way, const struct options *o, const struct sorted *s, double seconds,
                   bool good)
{
    long all = o->keys * gpushmem_n_pes();
    if (gpushmem_my_pe() == 0)
        printf("bucket_sort: %s: %ld %s keys, split by %s: %.1f ms, %ld to %ld keys on a PE, %s\n",
               good ? "ok" : "failed", all, o->kind, ways[way].name, seconds * 1e3, s->least,
               s->most,
               !good      ? "wrong"
               : o->check ? "equal to a serial sort"
                          : "all there and in order");
}

static int measure(int way, const struct options *o, uint32_t *keys, uint32_t *scratch, bool *good)
{
    static long count; // static: symmetric
    struct sorted s;
    bool right;
    for (long i = 0; i < o->keys; i++)
        keys[i] = keys_make(keys_kind(o->kind), gpushmem_my_pe(), i);
    TRY(gpushmem_barrier_all());
    double begin = example_now_s();
    TRY(sort_keys(way, keys, scratch, o->keys, &s));
    TRY(gpushmem_barrier_all());
    double seconds = example_now_s() - begin;
    TRY(check_sorted(&s, keys_kind(o->kind), o->keys, o->check, &right));
    count = s.count;
    TRY(gpushmem_long_fcollect(GPUSHMEM_TEAM_WORLD, held[way], &count, 1));
    report(way, o, &s, seconds, right);
    *good &= right;
    return gpushmem_free(s.keys);
}

static bool write_csv(const char *path)
{
    FILE *csv = example_csv("bucket_sort", path);
    if (!csv)
        return false;
    fprintf(csv, "pe,%s,%s\n", ways[0].name, ways[1].name);
    for (int pe = 0; pe < gpushmem_n_pes(); pe++)
        fprintf(csv, "PE %d,%ld,%ld\n", pe, held[0][pe], held[1][pe]);
    return fclose(csv) == 0;
}

static int sort_both_ways(const struct options *o)
{
    bool good = true;
    uint32_t *keys = malloc((size_t)o->keys * sizeof *keys),
             *scratch = malloc((size_t)o->keys * sizeof *scratch);
    TRY(keys && scratch ? 0 : GPUSHMEM_ERR_NO_MEMORY);
    for (int way = 0; way < WAYS; way++)
        TRY(measure(way, o, keys, scratch, &good));
    free(scratch);
    free(keys);
    if (o->csv && gpushmem_my_pe() == 0)
        good &= write_csv(o->csv);
    return good ? 0 : EXAMPLE_WRONG_RESULT;
}

static int complain(const char *words)
{
    if (gpushmem_my_pe() == 0)
        fprintf(stderr, "bucket_sort: %s\n", words);
    return EXAMPLE_WRONG_OPTION;
}

static int run(int argc, char **argv)
{
    struct options o = {.keys = 100000, .check = 1, .kind = "skewed"};
    const struct example_option options[] = {
        example_number("--keys", &o.keys, 1, 1 << 22, "keys of each PE"),
        example_text("--kind", &o.kind, keys_kinds),
        example_number("--check", &o.check, 0, 1, "1: sort all keys on PE 0, too, and compare"),
        example_text("--csv", &o.csv, "file for the number of keys on each PE"),
    };
    TRY(example_options("bucket_sort", argc, argv, options, sizeof options / sizeof *options));
    if (keys_kind(o.kind) < 0)
        return complain("--kind wants uniform, skewed or few");
    if (gpushmem_n_pes() > MAX_PES)
        return complain("there is room for the numbers of 1024 PEs, not of more");
    return sort_both_ways(&o);
}

int main(int argc, char **argv)
{
    int status = gpushmem_init();
    return example_end("bucket_sort", status ? status : run(argc, argv));
}
