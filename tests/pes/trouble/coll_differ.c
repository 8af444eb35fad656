// SPDX-License-Identifier: BSD-3-Clause
// With GPUSHMEM_CHECK=1 collective operations whose arguments differ are refused on all members of
// the team, and the sentence names PE and argument. Nothing was done then, and the team goes on.
#include "../check.h"

static int odd; // this PE misbehaves
static int *dest, *source;

static bool is_odd(void)
{
    return gpushmem_my_pe() == odd;
}

static void refused(int status, int code, const char *word)
{
    char name[16];
    snprintf(name, sizeof name, "PE %d ", odd);
    CHECK_THAT(status == code && strstr(gpushmem_last_error(), word) &&
                   (strstr(gpushmem_last_error(), name) || is_odd()),
               "%d: %s", status, gpushmem_last_error());
    CHECK_OK(gpushmem_int_sum_reduce(GPUSHMEM_TEAM_WORLD, dest, source, 3));
}

// Collectives of streams are compared where they are enqueued.
static void test_streams(gpushmem_team_t world)
{
    const int asymmetry = GPUSHMEM_ERR_ASYMMETRY;
    refused(gpushmem_int_sum_reduce_on_stream(world, dest, source, is_odd() ? 2 : 3, NULL),
            asymmetry, "nelems 2");
    refused(gpushmem_int_broadcast_on_stream(world, dest, source, 3, is_odd(), NULL), asymmetry,
            "root 1");
    refused(is_odd() ? gpushmem_team_sync_on_stream(world, NULL)
                     : gpushmem_int_max_reduce_on_stream(world, dest, source, 3, NULL),
            asymmetry, "gpushmem_team_sync_on_stream");
    refused(gpushmem_int_fcollect_on_stream(world, dest + is_odd(), source, 3, NULL), asymmetry,
            "dest at heap offset");
    refused(gpushmem_int_alltoalls_on_stream(world, dest, source, 1, is_odd() ? 0 : 1, 3, NULL),
            asymmetry, "sst 0");
    refused(
        gpushmem_int_broadcast_on_stream(world, dest, is_odd() ? dest + 1 : source, 3, odd, NULL),
        GPUSHMEM_ERR_INVALID,
        is_odd() ? "; the two are apart, or at the same address" : "bad argument");
    CHECK_OK(gpushmem_int_collect_on_stream(world, dest, source, is_odd() ? 7 : 0, NULL));
}

int main(void)
{
    const gpushmem_team_t world = GPUSHMEM_TEAM_WORLD;
    CHECK_OK(gpushmem_init());
    odd = gpushmem_n_pes() - 1;
    dest = gpushmem_calloc(4000, sizeof *dest);
    source = gpushmem_calloc(4000, sizeof *source);
    CHECK(dest && source);
    const int asymmetry = GPUSHMEM_ERR_ASYMMETRY;
    refused(gpushmem_int_sum_reduce(world, dest, source, is_odd() ? 2 : 3), asymmetry, "nelems 2");
    refused(gpushmem_int_broadcast(world, dest, source, 3, is_odd()), asymmetry, "root 1");
    refused(is_odd() ? gpushmem_int_max_reduce(world, dest, source, 3)
                     : gpushmem_int_min_reduce(world, dest, source, 3),
            asymmetry, "int_max_reduce");
    refused(is_odd() ? gpushmem_short_fcollect(world, (short *)dest, (short *)source, 3)
                     : gpushmem_int_fcollect(world, dest, source, 3),
            asymmetry, "short_fcollect");
    refused(gpushmem_int_alltoalls(world, dest, source, is_odd() ? 2 : 1, 1, 3), asymmetry,
            "dst 2");
    refused(gpushmem_int_sum_reduce(world, is_odd() ? source + 1 : dest, source, 3),
            GPUSHMEM_ERR_INVALID, is_odd() ? "overlap" : "bad argument");
    int local = 0;
    refused(gpushmem_int_sum_reduce(world, is_odd() ? &local : dest, source, 1),
            GPUSHMEM_ERR_ADDRESS, is_odd() ? "not in the symmetric heap" : "bad argument");
    test_streams(world);
    // What may differ does.
    CHECK_OK(gpushmem_int_collect(world, dest, source, is_odd() ? 7 : 0));
    CHECK_OK(gpushmem_free(source));
    CHECK_OK(gpushmem_free(dest));
    CHECK_OK(gpushmem_finalize());
    return 0;
}
