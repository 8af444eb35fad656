// SPDX-License-Identifier: BSD-3-Clause
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "connect/peers.h"
#include "core/text.h"
#include "gpushmem/gpushmem.h"
#include "json.h"
#include "say.h"

// In a job of more PEs than this each prints one line for all that it reaches alike.
enum { LINE_BYTES = 1024, MOST_IN_DETAIL = 8 };

// What a PE has, and how it reaches each one.
struct peers {
    char has[LINE_BYTES];
    struct peer {
        int same_node, device_direct, kernels_post;
        char transport[32], atomics[32], description[256];
    } to[];
};

static int peers_fill(struct peers *own)
{
    int status = 0;
    gpsh_self_explain(own->has, sizeof own->has);
    for (int pe = 0; pe < gpushmem_n_pes() && !status; pe++) {
        struct gpushmem_peer_info info;
        struct peer *to = &own->to[pe];
        status = gpushmem_peer_info(pe, &info);
        if (status)
            break;
        *to = (struct peer){.same_node = info.same_node,
                            .device_direct = info.device_direct,
                            .kernels_post = gpsh_peer_kernels_post(pe)};
        snprintf(to->transport, sizeof to->transport, "%s", info.transport);
        snprintf(to->atomics, sizeof to->atomics, "%s", info.atomics);
        snprintf(to->description, sizeof to->description, "%s", info.description);
    }
    return status;
}

// Those that were compiled for it post themselves, where they can.
static const char *by_kernels(const struct peer *to)
{
    return to->device_direct ? "direct" : to->kernels_post ? "by queue" : "by ring";
}

// ---- For readers ----

static bool alike(const struct peer *a, const struct peer *b)
{
    return !strcmp(a->transport, b->transport) && !strcmp(a->atomics, b->atomics) &&
           !strcmp(by_kernels(a), by_kernels(b));
}

// "PE 3 reaches PEs 0 to 7 by p2p, atomics by verbs, kernels direct; PEs 8 to 63 by verbs, atomics
// by verbs, kernels by ring"
static void groups_print(int pe, const struct peers *peers)
{
    char line[LINE_BYTES];
    struct gpsh_text text = {line, sizeof line, 0};
    gpsh_text_add(&text, "PE %d reaches", pe);
    for (int from = 0, to = 0; from < gpushmem_n_pes(); from = to) {
        const struct peer *first = &peers->to[from];
        while (to < gpushmem_n_pes() && alike(first, &peers->to[to]))
            to++;
        gpsh_text_add(&text, to - 1 > from ? "%s PEs %d to %d" : "%s PE %d", from ? ";" : "", from,
                      to - 1);
        gpsh_text_add(&text, " by %s, atomics by %s, kernels %s", first->transport, first->atomics,
                      by_kernels(first));
    }
    puts(line);
}

static void ways_print(int pe, const struct peers *peers)
{
    if (gpushmem_n_pes() > MOST_IN_DETAIL)
        groups_print(pe, peers);
    for (int to = 0; gpushmem_n_pes() <= MOST_IN_DETAIL && to < gpushmem_n_pes(); to++)
        printf("PE %d reaches %s, kernels %s\n", pe, peers->to[to].description,
               by_kernels(&peers->to[to]));
}

// What every PE has, and then how it reaches the others. `peers`: room for one PE's.
static int print_text(const struct peers *heap, struct peers *peers, size_t bytes)
{
    int n = gpushmem_n_pes(), status = 0;
    for (int pe = 0; pe < n && !status; pe++) {
        status = gpushmem_getmem(peers, heap, sizeof *peers, pe);
        if (!status)
            puts(peers->has);
    }
    for (int pe = 0; pe < n && !status; pe++) {
        status = gpushmem_getmem(peers, heap, bytes, pe);
        if (!status)
            ways_print(pe, peers);
    }
    return status;
}

// ---- For programs ----

static void way_add(struct gpsh_json *json, int pe, const struct peer *to)
{
    gpsh_json_object(json, NULL);
    gpsh_json_integer(json, "pe", pe);
    gpsh_json_bool(json, "same_node", to->same_node);
    gpsh_json_text(json, "transport", to->transport);
    gpsh_json_text(json, "atomics", to->atomics);
    gpsh_json_text(json, "kernels", by_kernels(to));
    gpsh_json_text(json, "description", to->description);
    gpsh_json_end(json);
}

static int print_json(const struct peers *heap, struct peers *peers, size_t bytes)
{
    struct gpsh_json json = {.out = stdout};
    int n = gpushmem_n_pes(), status = 0;
    gpsh_json_object(&json, NULL);
    gpsh_json_list(&json, "pes");
    for (int pe = 0; pe < n && !status; pe++) {
        status = gpushmem_getmem(peers, heap, bytes, pe);
        gpsh_json_object(&json, NULL);
        gpsh_json_integer(&json, "pe", pe);
        gpsh_json_text(&json, "has", peers->has);
        gpsh_json_list(&json, "reaches");
        for (int to = 0; to < n && !status; to++)
            way_add(&json, to, &peers->to[to]);
        gpsh_json_end(&json);
        gpsh_json_end(&json);
    }
    gpsh_json_end(&json);
    gpsh_json_end(&json);
    return status;
}

// ---- Both ----

// Every PE writes its own into its heap, which may be on a GPU; PE 0 gets and prints them.
static int gather_and_print(struct peers *heap, struct peers *peers, size_t bytes, bool json)
{
    int me = gpushmem_my_pe(), status = peers_fill(peers);
    if (!status)
        status = gpushmem_putmem(heap, peers, bytes, me);
    if (!status)
        status = gpushmem_barrier_all();
    if (me == 0 && !status)
        status = (json ? print_json : print_text)(heap, peers, bytes);
    return status ? status : gpushmem_barrier_all();
}

int gpsh_cli_print_peers(bool json)
{
    int status = gpushmem_init();
    if (!status) {
        size_t bytes = sizeof(struct peers) + (size_t)gpushmem_n_pes() * sizeof(struct peer);
        struct peers *peers = calloc(1, bytes), *heap = gpushmem_malloc(bytes);
        status =
            peers && heap ? gather_and_print(heap, peers, bytes, json) : GPUSHMEM_ERR_NO_MEMORY;
        free(peers);
        if (!status)
            status = gpushmem_free(heap);
        if (!status)
            status = gpushmem_finalize();
    }
    return status ? gpsh_cli_fail("info") : 0;
}
