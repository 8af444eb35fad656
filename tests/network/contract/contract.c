// SPDX-License-Identifier: BSD-3-Clause
// Every promise to one transport, or to those whose name holds --only: to the other PE, then to
// oneself. Prints a line per promise; exits with 1 if one is broken.
#define _GNU_SOURCE
#include "contract.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/cli/options.h"
#include "tests/fakes/slow_queue.h"

struct options {
    struct world world;
    const char *only;
    unsigned other; // no promise to oneself
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

static bool take_setting(const struct gpsh_command_line *line, const char *name, char *text)
{
    struct world *world = line->context;
    for (int pe = 0; pe < 2; pe++) {
        bool wanted = !strcmp(name, "--set") || name[strlen("--set")] == '0' + pe;
        if (wanted && !add_setting(world, pe, text))
            return gpsh_options_complain(line, "more than %d settings for PE %d", MOST_SETTINGS,
                                         pe);
    }
    return true;
}

static bool take_devices(const struct gpsh_command_line *line, const char *name, char *text)
{
    struct world *world = line->context;
    world->devices[0] = strsep(&text, "/");
    world->devices[1] = text;
    return text || gpsh_options_complain(line, "%s '%s' has no / between the two PEs", name,
                                         world->devices[0]);
}

static bool read_options(struct options *o, int argc, char **argv, int *exit_status)
{
    unsigned transport = 0, queue = 0, agents = 0;
    while (gpsh_transports[transport])
        transport++; // none yet
    const struct gpsh_option options[] = {
        {0, "transport", GPSH_TRANSPORT_NAMES, "which one; must be given", .word = &transport},
        {0, "devices", "D0/D1",
         "GPUSHMEM_VERBS_DEVICES of the two PEs: rxe0/rxe1, or rxe0,rxe2/rxe1,rxe3 for two rails",
         .take = take_devices},
        {0, "set", "NAME=VALUE", "a setting of both PEs; may be repeated", .take = take_setting},
        {0, "set0", "NAME=VALUE", "of PE 0 alone", .take = take_setting},
        {0, "set1", "NAME=VALUE", "of PE 1 alone", .take = take_setting},
        {0, "queue", "none|slow", "slow: staged copies are done by a thread, late", .word = &queue},
        {0, "atomics", "nic|agent", "agent: not by NICs, though they can", .word = &agents},
        {0, "target", "all|other", "other: no promises to oneself", .word = &o->other},
        {0, "only", "TEXT", "only promises whose name holds it", .text = &o->only},
        {0},
    };
    const struct gpsh_command_line line = {"contract", "--transport T [options]",
                                           .options = options, .context = &o->world};
    int operand = gpsh_options_parse(&line, argc, argv, exit_status);
    if (operand < 0)
        return false;
    if (operand < argc || !gpsh_transports[transport])
        return gpsh_options_complain(
            &line, operand < argc ? "unknown argument '%s'" : "no --transport given",
            argv[operand]);
    o->world.ops = gpsh_transports[transport];
    o->world.agents = agents;
    o->world.queues = queue ? &slow_queue_ops : NULL;
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
    static const struct promise *const suites[] = {rma_promises, amo_promises, order_promises,
                                                   failure_promises};
    struct tally tally = {0};
    int exit_status;
    if (!read_options(&options, argc, argv, &exit_status))
        return exit_status;
    int farthest = options.world.ops == &gpsh_loop_ops ? 0 : 1;
    int nearest = options.other ? 1 : 0;
    for (options.world.target = farthest; options.world.target >= nearest; options.world.target--)
        for (size_t s = 0; s < sizeof suites / sizeof *suites; s++)
            for (const struct promise *promise = suites[s]; promise->name; promise++)
                run(&options, promise, &tally);
    printf("%s: %d promises kept, %d broken\n", options.world.ops->name, tally.kept, tally.broken);
    return tally.broken || !tally.kept;
}
