// SPDX-License-Identifier: BSD-3-Clause
// contract --transport loop|p2p|verbs [--devices D0/D1] [--set NAME=VALUE]... [--set0 NAME=VALUE]... [--only PROMISE]
// --set is for both PEs, --set0 and --set1 for one. --queue slow has a thread do the staged copies, late.
// D0 and D1 are GPUSHMEM_VERBS_DEVICES of the two PEs: "rxe0/rxe1", or "rxe0,rxe2/rxe1,rxe3" for two rails.
// Prints a line per promise; exits with 1 if one is broken.
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include "contract.h"
#include "tests/fakes/slow_queue.h"

struct options {
    struct world world;
    const char *only;
    char devices[256];
};

struct tally {
    int kept, broken;
};

static bool add_setting(struct world *world, int pe, const char *setting)
{
    if (world->n_settings[pe] == MOST_SETTINGS)
        return false;
    world->settings[pe][world->n_settings[pe]++] = setting;
    return true;
}

static bool read_option(struct options *options, const char *name, const char *value)
{
    struct world *world = &options->world;
    if (!strcmp(name, "--transport")) {
        world->ops = gpsh_transport_find(value);
        return world->ops != NULL;
    }
    if (!strcmp(name, "--queue") && !strcmp(value, "slow")) {
        world->queues = &slow_queue_ops;
        return true;
    }
    if (!strcmp(name, "--only")) {
        options->only = value;
        return true;
    }
    if (!strcmp(name, "--set"))
        return add_setting(world, 0, value) && add_setting(world, 1, value);
    if (!strcmp(name, "--set0") || !strcmp(name, "--set1"))
        return add_setting(world, name[5] - '0', value);
    if (strcmp(name, "--devices") != 0)
        return false;
    snprintf(options->devices, sizeof options->devices, "%s", value);
    char *slash = strchr(options->devices, '/');
    if (!slash)
        return false;
    *slash = '\0';
    world->devices[0] = options->devices;
    world->devices[1] = slash + 1;
    return true;
}

static void run(struct options *options, const struct promise *promise, struct tally *tally)
{
    struct world *world = &options->world;
    bool nic = world->ops->caps & GPSH_CAP_NIC_ATOMICS;
    bool to_self = world->target == 0;
    if ((promise->nic_only && !nic) || (promise->remote_only && to_self))
        return;
    if (options->only && !strstr(promise->name, options->only))
        return;
    bool kept = world_open(world) && promise->check(world);
    world_close(world);
    printf("%s %s%s\n", kept ? "ok    " : "BROKEN", promise->name, to_self ? " (to self)" : "");
    fflush(stdout);
    if (kept)
        tally->kept++;
    else
        tally->broken++;
}

int main(int argc, char **argv)
{
    static struct options options;
    static const struct promise *const suites[] = {rma_promises, amo_promises, order_promises, failure_promises};
    struct tally tally = {0};
    bool usable = argc % 2 == 1;
    for (int i = 1; usable && i + 1 < argc; i += 2)
        usable = read_option(&options, argv[i], argv[i + 1]);
    if (!usable || !options.world.ops) {
        fprintf(stderr, "usage: contract --transport loop|p2p|verbs [--devices rxe0/rxe1] [--set|--set0|--set1 NAME=VALUE]... "
                        "[--queue slow] [--only NAME]\n");
        return 2;
    }
    int farthest = options.world.ops == &gpsh_loop_ops ? 0 : 1;
    for (options.world.target = farthest; options.world.target >= 0; options.world.target--)
        for (size_t s = 0; s < sizeof suites / sizeof *suites; s++)
            for (const struct promise *promise = suites[s]; promise->name; promise++)
                run(&options, promise, &tally);
    printf("%s: %d promises kept, %d broken\n", options.world.ops->name, tally.kept, tally.broken);
    return tally.broken || !tally.kept;
}
