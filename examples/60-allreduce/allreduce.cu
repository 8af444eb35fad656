// SPDX-License-Identifier: BSD-3-Clause
// All-reduce three times: as a ring and as a tree, written with puts and signals (ways.cuh), and
// the library's. All three are timed for vectors of growing length and compared with a serial sum.
#include <stdio.h>
#include <stdlib.h>

#include "../shared/example.h"
#include "ways.cuh"

static const char *const names[WAYS] = {"ring", "tree", "library"};

struct options {
    long most, rounds;
    const char *csv;
};

// Fills this PE's source. The heap may be GPU memory: put to oneself instead of storing.
static int fill(const struct vectors *v, float *host)
{
    for (size_t i = 0; i < v->room; i++)
        host[i] = value_of(gpushmem_my_pe(), i);
    return gpushmem_float_put(v->source, host, v->room, gpushmem_my_pe());
}

static int create(struct vectors *v, size_t room)
{
    v->n_pes = gpushmem_n_pes();
    v->room = room;
    v->source = (float *)gpushmem_malloc(room * sizeof(float));
    v->dest = (float *)gpushmem_calloc(room, sizeof(float));
    v->inbox = (float *)gpushmem_malloc(2 * room * sizeof(float));
    v->flags =
        (uint64_t *)gpushmem_calloc(WAYS * BLOCKS * flags_of_block(v->n_pes), sizeof *v->flags);
    return v->source && v->dest && v->inbox && v->flags ? 0 : GPUSHMEM_ERR_NO_MEMORY;
}

static int destroy(struct vectors *v)
{
    TRY(gpushmem_free(v->flags));
    TRY(gpushmem_free(v->inbox));
    TRY(gpushmem_free(v->dest));
    return gpushmem_free(v->source);
}

// Blocks wait for blocks of other PEs, so all of them have to run at once: a collective launch.
static int run_way(int way, const struct vectors *v, size_t elements, uint64_t first, int rounds)
{
    TRY(GPUSHMEM_LAUNCH_COLLECTIVE(allreduce_repeat, BLOCKS, THREADS, 0, NULL, way, *v, elements,
                                   first, rounds));
    return gpushmem_launch_wait(NULL);
}

static int time_way(int way, const struct vectors *v, size_t elements, uint64_t *round, int rounds,
                    double *us)
{
    TRY(run_way(way, v, elements, *round, 1)); // loads the kernel
    TRY(gpushmem_barrier_all());
    double begin = example_now_s();
    TRY(run_way(way, v, elements, *round + 1, rounds));
    *us = (example_now_s() - begin) / rounds * 1e6;
    *round += rounds + 1;
    return 0;
}

// Both orders are the library's, PE 0 first, if there are two PEs; the tree's is with three, too.
static bool adds_in_order(int way, int n_pes)
{
    return way == LIBRARY || n_pes <= (way == TREE ? 3 : 2);
}

static int check_way(int way, const struct vectors *v, size_t elements, float *host, bool *good)
{
    TRY(gpushmem_float_get(host, v->dest, elements, gpushmem_my_pe()));
    size_t wrong = allreduce_differences(host, elements, v->n_pes, adds_in_order(way, v->n_pes));
    if (wrong)
        printf("allreduce: PE %d: %s: %zu of %zu sums differ from the serial run\n",
               gpushmem_my_pe(), names[way], wrong, elements);
    *good &= !wrong;
    return 0;
}

static int measure(const struct vectors *v, size_t elements, uint64_t *round, int rounds,
                   float *host, double *us, bool *good)
{
    for (int way = 0; way < WAYS; way++) {
        memset(host, 0xff, elements * sizeof *host); // what is not written shows: NaN
        TRY(gpushmem_float_put(v->dest, host, elements, gpushmem_my_pe()));
        TRY(time_way(way, v, elements, round, rounds, &us[way]));
        TRY(check_way(way, v, elements, host, good));
        TRY(gpushmem_barrier_all()); // before the next way writes dest
    }
    return 0;
}

static void report(FILE *to, const char *format, size_t elements, const double *us)
{
    fprintf(to, format, elements * sizeof(float), us[RING], us[TREE], us[LIBRARY]);
}

static int measure_all(const struct options *o, const struct vectors *v, float *host, FILE *csv)
{
    uint64_t round = 1;
    bool good = true, speaks = gpushmem_my_pe() == 0;
    if (speaks)
        printf("%10s %12s %12s %12s\n", "bytes", "ring us", "tree us", "library us");
    for (size_t elements = 1; elements <= v->room; elements *= 8) {
        double us[WAYS];
        TRY(measure(v, elements, &round, (int)o->rounds, host, us, &good));
        if (speaks)
            report(stdout, "%10zu %12.1f %12.1f %12.1f\n", elements, us);
        if (csv)
            report(csv, "%zu,%.2f,%.2f,%.2f\n", elements, us);
    }
    if (speaks && good)
        printf("allreduce: ok: %d PEs: all sums equal the serial run's, ring %s, tree %s, library "
               "bit for bit\n",
               v->n_pes, adds_in_order(RING, v->n_pes) ? "bit for bit" : "within rounding",
               adds_in_order(TREE, v->n_pes) ? "bit for bit" : "within rounding");
    return good ? 0 : EXAMPLE_WRONG_RESULT;
}

static int run(int argc, char **argv)
{
    struct options o = {1 << 15, 20, NULL};
    const struct example_option options[] = {
        example_number("--elements", &o.most, 1, 1 << 24, "floats of the longest vector"),
        example_number("--rounds", &o.rounds, 1, 1000000, "repetitions that are timed"),
        example_text("--csv", &o.csv, "file for the times"),
    };
    TRY(example_options("allreduce", argc, argv, options, sizeof options / sizeof *options));
    struct vectors v;
    TRY(create(&v, (size_t)o.most));
    float *host = (float *)malloc(v.room * sizeof *host);
    FILE *csv = o.csv && gpushmem_my_pe() == 0 ? example_csv("allreduce", o.csv) : NULL;
    if (csv)
        fprintf(csv, "bytes,ring,tree,library\n");
    TRY(host ? fill(&v, host) : GPUSHMEM_ERR_NO_MEMORY);
    TRY(gpushmem_barrier_all());
    int status = measure_all(&o, &v, host, csv);
    if (o.csv && gpushmem_my_pe() == 0 && (!csv || fclose(csv)))
        status = status ? status : EXAMPLE_WRONG_RESULT;
    free(host);
    return status < 0 ? status : destroy(&v) ? -1 : status;
}

int main(int argc, char **argv)
{
    int status = gpushmem_init();
    return example_end("allreduce", status ? status : run(argc, argv));
}
