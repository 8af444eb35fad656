// SPDX-License-Identifier: BSD-3-Clause
#include "bootstrap/node_watch.h"

#include <stdlib.h>
#include <string.h>

#include "bootstrap/tcp_tree.h"
#include "core/error.h"
#include "core/log.h"

enum { SETTLE_MS = 10000 };

struct gpsh_node_watch {
    struct gpsh_tcp_tree *tree;
    struct gpsh_node_card mine;
    struct gpsh_node_card *cards; // [n_pes] until all were heard
    uint8_t *heard;               // [n_pes]
    int my_pe, n_pes, n_heard;
    bool watching, settled;
};

static int watch_listen(struct gpsh_node_watch *w, const char *interface,
                        struct gpsh_deaths *deaths)
{
    struct gpsh_uniqueid id = {.n_addresses = 1}; // its secret comes when the cards were read
    int n = gpsh_tcp_address_choose(interface, &w->mine.listens, 1);
    if (n < 0)
        return n;
    w->tree = gpsh_tcp_tree_create(&id, w->my_pe, w->n_pes, &w->mine.listens, deaths);
    return w->tree ? 0 : gpsh_last_error_code();
}

struct gpsh_node_watch *gpsh_node_watch_open(const struct gpsh_bootstrap *b, const char *interface,
                                             struct gpsh_deaths *deaths)
{
    struct gpsh_node_watch *w = calloc(1, sizeof *w);
    if (w) {
        w->my_pe = b->my_pe;
        w->n_pes = b->n_pes;
        w->mine.node = b->node_pes[0];
        w->cards = calloc((size_t)b->n_pes, sizeof *w->cards);
        w->heard = calloc((size_t)b->n_pes, sizeof *w->heard);
    }
    int error = 0, status = 0;
    if (!w || !w->cards || !w->heard)
        status = gpsh_fail(GPUSHMEM_ERR_NO_MEMORY, "no memory to watch %d PEs", b->n_pes);
    else if ((error = gpsh_random(w->mine.random, sizeof w->mine.random)))
        status = gpsh_fail(GPUSHMEM_ERR_SYSTEM, "the kernel gives no random numbers: %s",
                           strerror(error));
    else
        status = watch_listen(w, interface, deaths);
    if (!status)
        return w;
    gpsh_node_watch_close(w);
    return NULL;
}

void gpsh_node_watch_close(struct gpsh_node_watch *watch)
{
    if (!watch)
        return;
    gpsh_tcp_tree_destroy(watch->tree);
    free(watch->cards);
    free(watch->heard);
    free(watch);
}

void gpsh_node_watch_describe(const struct gpsh_node_watch *watch, struct gpsh_node_card *card)
{
    memset(card, 0, sizeof *card);
    if (watch)
        *card = watch->mine;
}

// A PE that takes no part, or says nonsense, is a node of its own that nobody calls.
static void watch_read_cards(const struct gpsh_node_watch *w, int *node,
                             struct gpsh_tcp_address *addresses, const uint8_t **secret)
{
    for (int pe = 0; pe < w->n_pes; pe++) {
        const struct gpsh_node_card *card = &w->cards[pe];
        bool takes_part = (card->listens.version == 4 || card->listens.version == 6) &&
                          card->node >= 0 && card->node <= pe &&
                          w->cards[card->node].node == card->node;
        node[pe] = takes_part ? card->node : pe;
        if (!takes_part)
            continue;
        addresses[pe] = card->listens;
        if (!*secret)
            *secret = card->random;
    }
}

static int watch_begin(struct gpsh_node_watch *w)
{
    const uint8_t *secret = NULL;
    int *node = calloc((size_t)w->n_pes, sizeof *node), status = 0;
    struct gpsh_tcp_address *addresses = calloc((size_t)w->n_pes, sizeof *addresses);
    if (node && addresses)
        watch_read_cards(w, node, addresses, &secret);
    else
        status = gpsh_fail(GPUSHMEM_ERR_NO_MEMORY, "no memory to watch %d PEs", w->n_pes);
    if (secret) {
        gpsh_tcp_tree_set_peers(w->tree, node, addresses, secret);
        status = gpsh_tcp_tree_start(w->tree);
        w->watching = !status;
    }
    free(node);
    free(addresses);
    return status;
}

static void watch_complain(void)
{
    GPSH_LOG(WARN, "bootstrap",
             "a PE that dies on another node may be noticed late, by the network's patience: %s; "
             "GPUSHMEM_BOOTSTRAP_INTERFACE names the interface by which the nodes reach each "
             "other, GPUSHMEM_WATCH_NODES=0 does without",
             gpsh_last_error());
}

void gpsh_node_watch_hear(struct gpsh_node_watch *watch, int pe, const struct gpsh_node_card *card)
{
    if (!watch || watch->n_heard == watch->n_pes)
        return;
    watch->cards[pe] = *card;
    watch->n_heard += !watch->heard[pe];
    watch->heard[pe] = 1;
    if (watch->n_heard == watch->n_pes && watch_begin(watch))
        watch_complain();
}

void gpsh_node_watch_settle(struct gpsh_node_watch *watch)
{
    if (!watch || !watch->watching || watch->settled)
        return;
    watch->settled = true;
    if (!gpsh_tcp_tree_await_parent(watch->tree, SETTLE_MS))
        watch_complain();
}

struct gpsh_tcp_tree *gpsh_node_watch_tree(const struct gpsh_node_watch *watch)
{
    return watch && watch->watching ? watch->tree : NULL;
}
