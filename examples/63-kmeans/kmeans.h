// SPDX-License-Identifier: BSD-3-Clause
// What kernels, host and serial run share.
#ifndef KMEANS_KMEANS_H
#define KMEANS_KMEANS_H

#include <stddef.h>
#include <stdint.h>

#if defined(__CUDACC__)
#define KMEANS_FUNCTION static inline __host__ __device__
#else
#define KMEANS_FUNCTION static inline
#endif

#ifdef __cplusplus
extern "C" {
#endif

enum { MOST_CLUSTERS = 64 };

// Coordinates are multiples of 1/1024, so that sums of them are exact in a double, in any order.
struct point {
    float x, y;
};

struct centroid {
    double x, y;
};

// The points of a cluster, added up.
struct sum {
    double x, y, count;
};
enum { SUM_DOUBLES = sizeof(struct sum) / sizeof(double) };

// Pointers are symmetric; passed to kernels by value.
struct kmeans {
    long points; // own
    int clusters;
    struct point *point;       // [points]
    int *cluster;              // [points] the nearest centroid
    struct centroid *centroid; // [clusters]
    struct sum *part, *total;  // [clusters] of own points; of all
    double *moved;             // the farthest way of a centroid in this round
};

KMEANS_FUNCTION int nearest(struct point p, const struct centroid *centroid, int clusters)
{
    int best = 0;
    double least = 1e300;
    for (int c = 0; c < clusters; c++) {
        double x = p.x - centroid[c].x, y = p.y - centroid[c].y, distance = x * x + y * y;
        best = distance < least ? c : best;
        least = distance < least ? distance : least;
    }
    return best;
}

// The middle of a cluster; `before` if it has no points.
KMEANS_FUNCTION struct centroid middle_of(struct sum s, struct centroid before)
{
    struct centroid middle = {s.x / s.count, s.y / s.count};
    return s.count > 0 ? middle : before;
}

// Point i of the job: the points lie in seven clouds.
struct point point_make(long i);
// Where centroids begin: the first one at a point, each further one at the point that is farthest
// from those before, among the first points of the job.
void centroids_begin(struct centroid *centroid, int clusters, long points);
// The same number of rounds by one thread.
void centroids_serially(struct centroid *centroid, int clusters, long points, long rounds);

#ifdef __cplusplus
}
#endif

#endif
