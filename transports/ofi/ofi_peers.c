// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE
#include "transports/ofi/ofi_peers.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/lines.h"
#include "transports/ofi/ofi_fabric.h"
#include "transports/ofi/ofi_memory.h"

// A row: a byte of flags, the secret, a key for each region, where the provider asks for addresses
// of memory also a base for each; then the PE's address.
enum { KEYED = 1, KNOWN = 1 << GPSH_REGIONS }; // KEYED << r: region r has a key

static size_t keys_bytes(const struct gpsh_ofi *ofi)
{
    return (ofi->book.bases ? 2 : 1) * GPSH_REGIONS * sizeof(uint64_t);
}

static uint8_t *row_of(const struct gpsh_ofi *ofi, int pe)
{
    return ofi->book.rows + (size_t)pe * ofi->book.row_bytes;
}

const void *gpsh_ofi_peers_address(const struct gpsh_ofi *ofi, int pe)
{
    return row_of(ofi, pe) + 1 + sizeof(uint64_t) + keys_bytes(ofi);
}

int gpsh_ofi_peers_open(struct gpsh_ofi *ofi)
{
    struct ofi_book *book = &ofi->book;
    uint8_t address[OFI_ADDRESS_BYTES];
    size_t length = sizeof address, n = (size_t)ofi->env.n_pes;
    int error = fi_getname(&ofi->wire.ep->fid, address, &length);
    if (error)
        return gpsh_ofi_error(ofi, "fi_getname", error);
    book->bases = ofi->virtual_addresses || ofi->raw_keys;
    book->address_bytes = (uint32_t)length;
    book->row_bytes = 1 + sizeof(uint64_t) + keys_bytes(ofi) + length;
    book->rows = calloc(n, book->row_bytes);
    book->peers = calloc(n, sizeof *book->peers);
    return book->rows && book->peers
               ? 0
               : gpsh_fail(GPUSHMEM_ERR_NO_MEMORY, "ofi: no memory for what is kept of %d PEs",
                           ofi->env.n_pes);
}

void gpsh_ofi_peers_close(struct gpsh_ofi *ofi)
{
    struct ofi_book *book = &ofi->book;
    for (int pe = 0; book->peers && pe < ofi->env.n_pes; pe++) {
        struct ofi_peer *peer = ofi_peer_of(ofi, pe);
        free(peer ? peer->inboxes : NULL);
        free(peer);
    }
    free((void *)book->peers);
    free(book->rows);
    free(book->static_bytes);
}

// Most programs have static data of one size on all PEs: only others take memory for it.
static int keep_static(struct gpsh_ofi *ofi, int pe, uint64_t bytes)
{
    struct ofi_book *book = &ofi->book;
    uint64_t mine = ofi->env.regions[GPSH_STATIC].bytes;
    if (!book->static_bytes && bytes == mine)
        return 0;
    if (!book->static_bytes) {
        book->static_bytes = malloc((size_t)ofi->env.n_pes * sizeof *book->static_bytes);
        if (!book->static_bytes)
            return gpsh_fail(GPUSHMEM_ERR_NO_MEMORY, "ofi: no memory for %d sizes of static data",
                             ofi->env.n_pes);
        for (int i = 0; i < ofi->env.n_pes; i++)
            book->static_bytes[i] = mine;
    }
    book->static_bytes[pe] = bytes;
    return 0;
}

int gpsh_ofi_peers_keep(struct gpsh_ofi *ofi, int pe, const struct ofi_blob *blob)
{
    uint8_t *row = row_of(ofi, pe), flags = KNOWN, *at = row + 1;
    if (blob->address_bytes != ofi->book.address_bytes)
        return gpsh_fail(GPUSHMEM_ERR_PEER_DATA,
                         "libfabric data of PE %d has an address of %u bytes, this one's has %u",
                         pe, blob->address_bytes, ofi->book.address_bytes);
    at = mempcpy(at, &blob->secret, sizeof blob->secret);
    for (int r = 0; r < GPSH_REGIONS; r++) {
        struct ofi_key key;
        int status = gpsh_ofi_key_import(ofi, &blob->keys[r], &key);
        if (status)
            return status;
        flags |= (uint8_t)(key.keyed ? KEYED << r : 0);
        at = mempcpy(at, &key.key, sizeof key.key);
        if (ofi->book.bases)
            at = mempcpy(at, &key.base, sizeof key.base);
    }
    memcpy(at, blob->address, blob->address_bytes);
    int status = keep_static(ofi, pe, blob->region_bytes[GPSH_STATIC]);
    if (status)
        return status;
    pthread_mutex_lock(&ofi->wire.lock); // the thread may hear of it already
    row[0] = flags;
    pthread_mutex_unlock(&ofi->wire.lock);
    return 0;
}

bool gpsh_ofi_peers_known(const struct gpsh_ofi *ofi, int pe)
{
    return row_of(ofi, pe)[0] & KNOWN;
}

static void read_row(const struct gpsh_ofi *ofi, struct ofi_peer *peer)
{
    const uint8_t *row = row_of(ofi, peer->pe), *at = row + 1 + sizeof peer->secret;
    memcpy(&peer->secret, row + 1, sizeof peer->secret);
    for (int r = 0; r < GPSH_REGIONS; r++) {
        peer->keys[r].keyed = row[0] & KEYED << r;
        memcpy(&peer->keys[r].key, at, sizeof peer->keys[r].key);
        at += sizeof peer->keys[r].key;
        if (!ofi->book.bases)
            continue;
        memcpy(&peer->keys[r].base, at, sizeof peer->keys[r].base);
        at += sizeof peer->keys[r].base;
    }
    peer->static_bytes = ofi->book.static_bytes ? ofi->book.static_bytes[peer->pe]
                                                : ofi->env.regions[GPSH_STATIC].bytes;
}

// With the lock of the book.
static struct ofi_peer *make(struct gpsh_ofi *ofi, int pe)
{
    struct ofi_peer *peer = ofi_peer_of(ofi, pe);
    if (peer)
        return peer;
    size_t flows = (size_t)ofi->env.channels * sizeof *peer->flows;
    peer = gpsh_lines_alloc(1, sizeof *peer + flows);
    if (!peer) {
        gpsh_fail(GPUSHMEM_ERR_NO_MEMORY, "ofi: no memory for operations on PE %d", pe);
        return NULL;
    }
    peer->pe = pe;
    atomic_init(&peer->address, FI_ADDR_NOTAVAIL);
    read_row(ofi, peer);
    atomic_store_explicit(&ofi->book.peers[pe], peer, memory_order_release);
    return peer;
}

static int refused(struct gpsh_ofi *ofi, int pe)
{
    char text[128] = "?";
    gpsh_ofi_address_text(ofi, gpsh_ofi_peers_address(ofi, pe), text, sizeof text);
    return gpsh_fail(GPUSHMEM_ERR_UNREACHABLE,
                     "libfabric's %s does not take the address %.100s of PE %d",
                     ofi->info->fabric_attr->prov_name, text, pe);
}

// With the lock of the book. libfabric was told how many addresses there can be, and its table
// stays where it is while others look in it.
static int insert(struct gpsh_ofi *ofi, struct ofi_peer *peer)
{
    fi_addr_t address = FI_ADDR_NOTAVAIL;
    int n = fi_av_insert(ofi->av, gpsh_ofi_peers_address(ofi, peer->pe), 1, &address, 0, NULL);
    if (n != 1)
        return refused(ofi, peer->pe);
    atomic_store_explicit(&peer->address, address, memory_order_release);
    return 0;
}

struct ofi_peer *gpsh_ofi_peer(struct gpsh_ofi *ofi, int pe)
{
    struct ofi_peer *peer = ofi_peer_of(ofi, pe);
    if (peer && ofi_is_inserted(peer))
        return peer;
    pthread_mutex_lock(&ofi->book.lock);
    peer = make(ofi, pe);
    if (peer && !ofi_is_inserted(peer) && insert(ofi, peer))
        peer = NULL;
    pthread_mutex_unlock(&ofi->book.lock);
    return peer;
}

struct ofi_peer *gpsh_ofi_peer_note(struct gpsh_ofi *ofi, int pe)
{
    struct ofi_peer *peer = ofi_peer_of(ofi, pe);
    if (peer)
        return peer;
    pthread_mutex_lock(&ofi->book.lock);
    peer = make(ofi, pe);
    pthread_mutex_unlock(&ofi->book.lock);
    return peer;
}

void gpsh_ofi_peer_fail(struct gpsh_ofi *ofi, int pe, int code, const char *format, ...)
{
    char why[GPSH_ERROR_BYTES];
    int none = 0;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(why, sizeof why, format, arguments);
    va_end(arguments);
    struct ofi_peer *peer = gpsh_ofi_peer_note(ofi, pe);
    if (!peer || !atomic_compare_exchange_strong(&peer->lost, &none, code))
        return;
    atomic_fetch_add(&ofi->losses, 1);
    if (ofi->env.peer_failed)
        ofi->env.peer_failed(ofi->env.arg, pe, code, why);
}

// ------------------------------------------------------------------------------------------
// many at once

// With the lock of the book. The addresses of those that were begun with, one behind the other.
static size_t gather(struct gpsh_ofi *ofi, uint8_t *addresses)
{
    size_t n = 0;
    for (const struct ofi_peer *peer = ofi->book.wanted; peer; peer = peer->next_wanted) {
        if (ofi_is_inserted(peer))
            continue;
        memcpy(addresses + n++ * ofi->book.address_bytes, gpsh_ofi_peers_address(ofi, peer->pe),
               ofi->book.address_bytes);
    }
    return n;
}

static int insert_all(struct gpsh_ofi *ofi, const uint8_t *addresses, fi_addr_t *taken, size_t n)
{
    int status = 0;
    if (n)
        (void)fi_av_insert(ofi->av, addresses, n, taken, 0, NULL); // `taken` tells of each
    for (struct ofi_peer *peer = ofi->book.wanted; peer; peer = peer->next_wanted) {
        if (ofi_is_inserted(peer))
            continue;
        if (*taken == FI_ADDR_NOTAVAIL && !status)
            status = refused(ofi, peer->pe);
        peer->wanted = false;
        atomic_store_explicit(&peer->address, *taken++, memory_order_release);
    }
    ofi->book.wanted = NULL;
    ofi->book.n_wanted = 0;
    return status;
}

static int establish_wanted(struct gpsh_ofi *ofi)
{
    size_t most = ofi->book.n_wanted;
    uint8_t *addresses = malloc(most * ofi->book.address_bytes);
    fi_addr_t *taken = malloc(most * sizeof *taken);
    int status = 0;
    if (addresses && taken)
        status = insert_all(ofi, addresses, taken, gather(ofi, addresses));
    else
        status = gpsh_fail(GPUSHMEM_ERR_NO_MEMORY, "ofi: no memory for %zu addresses", most);
    free(addresses);
    free(taken);
    return status;
}

static int begin_with(struct gpsh_ofi *ofi, int pe)
{
    struct ofi_peer *peer = make(ofi, pe);
    if (!peer)
        return gpsh_last_error_code();
    if (ofi_is_inserted(peer) || peer->wanted)
        return 0;
    peer->wanted = true;
    peer->next_wanted = ofi->book.wanted;
    ofi->book.wanted = peer;
    ofi->book.n_wanted++;
    return 0;
}

int gpsh_ofi_establish(struct gpsh_transport *self, int pe, bool begin)
{
    struct gpsh_ofi *ofi = (struct gpsh_ofi *)self;
    const struct ofi_peer *peer = ofi_peer_of(ofi, pe);
    if (peer && ofi_is_inserted(peer))
        return begin ? 0 : 1;
    pthread_mutex_lock(&ofi->book.lock);
    int status = begin ? begin_with(ofi, pe) : ofi->book.n_wanted ? establish_wanted(ofi) : 0;
    pthread_mutex_unlock(&ofi->book.lock);
    if (status || begin)
        return status;
    return gpsh_ofi_peer(ofi, pe) ? 1 : gpsh_last_error_code();
}
