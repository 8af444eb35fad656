// SPDX-License-Identifier: BSD-3-Clause
#include <string.h>

#include "kmeans.h"

static uint32_t hash(uint32_t a, uint32_t b)
{
    uint32_t h = a * 0x9e3779b1u ^ (b + 1) * 0x85ebca77u;
    h = (h ^ h >> 15) * 0x2c1b3c6du;
    h = (h ^ h >> 12) * 0x297a2d39u;
    return h ^ h >> 15;
}

// A bell of about so many units around 0: the sum of four equal distributions.
static int scatter(uint32_t random, int width)
{
    int sum = 0;
    for (int i = 0; i < 4; i++)
        sum += (int)(random >> 8 * i & 255) - 128;
    return sum * width / 256;
}

struct point point_make(long i)
{
    static const struct {
        int x, y, width; // in 1/1024
    } clouds[] = {{-6000, -5000, 2600}, {5500, -5200, 1800}, {-300, 400, 1500}, {6200, 5000, 2400},
                  {-6500, 4600, 2000},  {400, 7800, 1400},   {300, -8000, 1700}};
    uint32_t n = (uint32_t)i, cloud = hash(n, 0) % 7;
    return (struct point){
        (float)(clouds[cloud].x + scatter(hash(n, 1), clouds[cloud].width)) / 1024,
        (float)(clouds[cloud].y + scatter(hash(n, 2), clouds[cloud].width)) / 1024};
}

static double distance_to_nearest(struct point p, const struct centroid *centroid, int clusters)
{
    struct centroid c = centroid[nearest(p, centroid, clusters)];
    return (p.x - c.x) * (p.x - c.x) + (p.y - c.y) * (p.y - c.y);
}

void centroids_begin(struct centroid *centroid, int clusters, long points)
{
    enum { LOOKED_AT = 1000 };
    struct point farthest = point_make(0);
    for (int c = 0; c < clusters; c++) {
        double most = -1;
        centroid[c] = (struct centroid){farthest.x, farthest.y};
        for (long i = 0; i < points && i < LOOKED_AT; i++) {
            struct point p = point_make(i);
            double distance = distance_to_nearest(p, centroid, c + 1);
            if (distance > most) {
                most = distance;
                farthest = p;
            }
        }
    }
}

void centroids_serially(struct centroid *centroid, int clusters, long points, long rounds)
{
    centroids_begin(centroid, clusters, points);
    for (long round = 0; round < rounds; round++) {
        struct sum sums[MOST_CLUSTERS];
        memset(sums, 0, sizeof sums);
        for (long i = 0; i < points; i++) {
            struct point p = point_make(i);
            struct sum *s = &sums[nearest(p, centroid, clusters)];
            s->x += p.x;
            s->y += p.y;
            s->count += 1;
        }
        for (int c = 0; c < clusters; c++)
            centroid[c] = middle_of(sums[c], centroid[c]);
    }
}
