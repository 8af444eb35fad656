// SPDX-License-Identifier: BSD-3-Clause
// k-means: points are spread over the PEs, centroids are the same on all. In each round a kernel
// finds the nearest centroid of each point and adds the points of each cluster up; a reduction adds
// the PEs' sums; a kernel moves the centroids. All three are queued in a stream.
#include <gpushmem/device.cuh>
#include <math.h>
#include <stdio.h>

#include "../shared/example.h"
#include "kmeans.h"

#if defined(__CUDACC__)
enum { BLOCKS = 128, THREADS = 256 };
#else
enum { BLOCKS = 2, THREADS = 2 }; // operating system threads
#endif

static const double near_enough = 1e-6; // centroids that move less have arrived
static const double tolerance = 1e-9;   // difference to the serial run

struct options {
    long points, clusters, rounds;
    const char *csv;
};

// ---- Kernels ----

// Sums of a block in shared memory first, so that few additions meet in the same place.
__global__ void assign(struct kmeans k)
{
    GPUSHMEM_SHARED(struct sum, sums, MOST_CLUSTERS);
    for (int c = threadIdx.x; c < k.clusters; c += blockDim.x)
        sums[c] = {0, 0, 0};
    __syncthreads();
    long threads = gridDim.x * blockDim.x;
    for (long i = blockIdx.x * blockDim.x + threadIdx.x; i < k.points; i += threads) {
        int c = nearest(k.point[i], k.centroid, k.clusters);
        k.cluster[i] = c;
        atomicAdd(&sums[c].x, (double)k.point[i].x);
        atomicAdd(&sums[c].y, (double)k.point[i].y);
        atomicAdd(&sums[c].count, 1.0);
    }
    __syncthreads();
    for (int c = threadIdx.x; c < k.clusters; c += blockDim.x) {
        atomicAdd(&k.part[c].x, sums[c].x);
        atomicAdd(&k.part[c].y, sums[c].y);
        atomicAdd(&k.part[c].count, sums[c].count);
    }
}

// The reduction gives all PEs the same bits, so all move their centroids alike.
__global__ void move(struct kmeans k)
{
    *k.moved = 0;
    for (int c = 0; c < k.clusters; c++) {
        struct centroid before = k.centroid[c], after = middle_of(k.total[c], before);
        double x = after.x - before.x, y = after.y - before.y, way = sqrt(x * x + y * y);
        *k.moved = way > *k.moved ? way : *k.moved;
        k.centroid[c] = after;
        k.part[c] = {0, 0, 0}; // for the next round
    }
}

// ---- Rounds ----

// No PE waits for another here: the stream does, in the reduction. `moved` is the same on all PEs,
// so all of them stop after the same round.
static int queue_round(const struct kmeans *k)
{
    TRY(GPUSHMEM_LAUNCH(assign, BLOCKS, THREADS, NULL, *k));
    TRY(gpushmem_double_sum_reduce_on_stream(GPUSHMEM_TEAM_WORLD, &k->total->x, &k->part->x,
                                             (size_t)k->clusters * SUM_DOUBLES, NULL));
    return GPUSHMEM_LAUNCH(move, 1, 1, NULL, *k);
}

static int iterate(const struct kmeans *k, long most, long *rounds, double *moved)
{
    *moved = INFINITY;
    for (*rounds = 0; *rounds<most && * moved> near_enough; ++*rounds) {
        example_progress("kmeans", "round", *rounds, most);
        TRY(queue_round(k));
        TRY(gpushmem_launch_wait(NULL));
        TRY(gpushmem_double_get(moved, k->moved, 1, gpushmem_my_pe()));
    }
    example_progress("kmeans", "round", most, most);
    return 0;
}

// ---- Memory ----

static long first_point(long points, int pe)
{
    return points * pe / gpushmem_n_pes();
}

// All PEs allocate alike, as many points as the one with the most has.
static int create(struct kmeans *k, const struct options *o)
{
    int me = gpushmem_my_pe();
    size_t most = (size_t)(o->points / gpushmem_n_pes() + 1), clusters = (size_t)o->clusters;
    k->points = first_point(o->points, me + 1) - first_point(o->points, me);
    k->clusters = (int)clusters;
    k->point = (struct point *)gpushmem_malloc(most * sizeof *k->point);
    k->cluster = (int *)gpushmem_malloc(most * sizeof *k->cluster);
    k->centroid = (struct centroid *)gpushmem_malloc(clusters * sizeof *k->centroid);
    k->part = (struct sum *)gpushmem_calloc(clusters, sizeof *k->part);
    k->total = (struct sum *)gpushmem_malloc(clusters * sizeof *k->total);
    k->moved = (double *)gpushmem_malloc(sizeof *k->moved);
    bool all = k->point && k->cluster && k->centroid && k->part && k->total && k->moved;
    return all ? 0 : GPUSHMEM_ERR_NO_MEMORY;
}

// The heap may be GPU memory: put to oneself instead of storing.
static int fill(const struct kmeans *k, const struct options *o)
{
    int me = gpushmem_my_pe();
    struct centroid centroid[MOST_CLUSTERS];
    struct point *host = (struct point *)malloc((size_t)(k->points + 1) * sizeof *host);
    TRY(host ? 0 : GPUSHMEM_ERR_NO_MEMORY);
    for (long i = 0; i < k->points; i++)
        host[i] = point_make(first_point(o->points, me) + i);
    TRY(gpushmem_putmem(k->point, host, (size_t)k->points * sizeof *host, me));
    free(host);
    centroids_begin(centroid, k->clusters, o->points);
    return gpushmem_putmem(k->centroid, centroid, (size_t)k->clusters * sizeof *centroid, me);
}

static int destroy(struct kmeans *k)
{
    void *parts[] = {k->moved, k->total, k->part, k->centroid, k->cluster, k->point};
    for (void *part : parts)
        TRY(gpushmem_free(part));
    return 0;
}

// ---- What comes out, on PE 0 ----

// Some points with their clusters, and the centroids as clusters below 0.
static int write_points(FILE *csv, const struct kmeans *k, const struct options *o)
{
    struct centroid centroid[MOST_CLUSTERS];
    long every = o->points / 1000 + 1;
    int cluster;
    fprintf(csv, "x,y,cluster\n");
    for (int pe = 0; pe < gpushmem_n_pes(); pe++) {
        long first = first_point(o->points, pe), end = first_point(o->points, pe + 1);
        for (long i = first; i < end; i += every) {
            struct point p = point_make(i);
            TRY(gpushmem_int_get(&cluster, k->cluster + i - first, 1, pe));
            fprintf(csv, "%g,%g,%d\n", p.x, p.y, cluster);
        }
    }
    TRY(gpushmem_getmem(centroid, k->centroid, (size_t)k->clusters * sizeof *centroid, 0));
    for (int c = 0; c < k->clusters; c++)
        fprintf(csv, "%g,%g,%d\n", centroid[c].x, centroid[c].y, -1 - c);
    return 0;
}

static int compare(const struct kmeans *k, const struct options *o, long rounds, double *difference)
{
    struct centroid got[MOST_CLUSTERS], wanted[MOST_CLUSTERS];
    TRY(gpushmem_getmem(got, k->centroid, (size_t)k->clusters * sizeof *got, 0));
    centroids_serially(wanted, k->clusters, o->points, rounds);
    *difference = 0;
    for (int c = 0; c < k->clusters; c++) {
        double off = fmax(fabs(got[c].x - wanted[c].x), fabs(got[c].y - wanted[c].y));
        *difference = off <= *difference ? *difference : off; // NaN stays
    }
    return 0;
}

static int report(const struct kmeans *k, const struct options *o, long rounds, double moved,
                  double seconds)
{
    double difference;
    TRY(compare(k, o, rounds, &difference));
    bool good = difference <= tolerance;
    printf("kmeans: %s: %ld points, %d clusters, %d PEs: %s after %ld rounds, %.2f ms each; "
           "differs by %g from the serial run (allowed: %g)\n",
           good ? "ok" : "failed", o->points, k->clusters, gpushmem_n_pes(),
           moved <= near_enough ? "arrived" : "stopped", rounds, seconds * 1e3 / (double)rounds,
           difference, tolerance);
    if (o->csv) {
        FILE *csv = example_csv("kmeans", o->csv);
        TRY(csv ? write_points(csv, k, o) : EXAMPLE_WRONG_RESULT);
        good &= fclose(csv) == 0;
    }
    return good ? 0 : EXAMPLE_WRONG_RESULT;
}

static int run(int argc, char **argv)
{
    struct options o = {100000, 7, 100, NULL};
    const struct example_option options[] = {
        example_number("--points", &o.points, 1, 1 << 28, "points of all PEs"),
        example_number("--clusters", &o.clusters, 1, MOST_CLUSTERS, "centroids"),
        example_number("--rounds", &o.rounds, 1, 100000, "the most rounds"),
        example_text("--csv", &o.csv, "file for points and centroids"),
    };
    TRY(example_options("kmeans", argc, argv, options, sizeof options / sizeof *options));
    struct kmeans k;
    long rounds;
    double moved;
    TRY(create(&k, &o));
    TRY(fill(&k, &o));
    TRY(gpushmem_barrier_all());
    double begin = example_now_s();
    TRY(iterate(&k, o.rounds, &rounds, &moved));
    double seconds = example_now_s() - begin;
    TRY(gpushmem_barrier_all());
    int status = gpushmem_my_pe() ? 0 : report(&k, &o, rounds, moved, seconds);
    return status < 0 ? status : destroy(&k) ? -1 : status;
}

int main(int argc, char **argv)
{
    int status = gpushmem_init();
    return example_end("kmeans", status ? status : run(argc, argv));
}
