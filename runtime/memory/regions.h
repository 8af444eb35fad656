// SPDX-License-Identifier: BSD-3-Clause
// The symmetric regions of this PE (heap and control) and where the peers' are mapped.
#ifndef GPSH_REGIONS_H
#define GPSH_REGIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "bootstrap/fd_exchange.h"
#include "gpu/device_memory.h"
#include "transport/transport.h"

// Collective: PEs agree on the heap's size where nobody set one. Creates heap and control region as
// the settings say; fills gpsh_heap()->base, gpsh_heap()->control and their sizes.
int gpsh_regions_create(void);
void gpsh_regions_destroy(void);

struct gpsh_region gpsh_regions_get(int region);

// Host memory for the program beside a heap in GPU memory, or NULL and 0 bytes.
char *gpsh_regions_host_part(uint64_t *bytes);
// The region in which the program's host memory is.
int gpsh_regions_host(void);

// Of a region in host memory: the file that holds it, which stays the region's, where it begins
// there, and the size of its pages.
int gpsh_regions_fd(int region);
uint64_t gpsh_regions_file_offset(int region);
uint64_t gpsh_regions_page_bytes(int region);
// The largest pages that host memory of any PE has: what all do in whole pages is in these.
void gpsh_regions_settle_pages(uint64_t bytes);
// Whether it is used, and does not come with another one.
bool gpsh_regions_is_apart(int region);
// The file that the node's PEs share for it, 0: it has one of its own; and where the part of number
// i of them begins its region.
uint32_t gpsh_regions_shared_file(int region);
uint64_t gpsh_regions_part_at(int region, int i);
// Maps the region of all PEs of the node, whose parts are in one file.
int gpsh_regions_map_shared(int region);

// How large the heap may become: GPUSHMEM_HEAP_MAX; no larger than it is where it cannot grow.
uint64_t gpsh_regions_heap_max(void);
// Makes this PE's heap that large, and in host memory so its peers' mappings of it; the heap's
// bytes stays. Also takes back what another PE could not do. 0 or a negative status with a
// sentence.
int gpsh_regions_heap_resize(uint64_t bytes);
// Of a heap in GPU memory: the same, by VMM memory of the program.
int gpsh_regions_heap_adopt(const void *buffer, uint64_t bytes);
// What these have added, beyond the heap's bytes.
struct gpsh_region gpsh_regions_added(void);
// Memory of the program's as transports should register it. Release it after that: it may hold a
// dma-buf.
struct gpsh_region gpsh_regions_buffer(void *buffer, size_t bytes);
void gpsh_regions_buffer_release(struct gpsh_region *region);
struct gpsh_fd_set gpsh_regions_fds(void); // to hand to the node's PEs; they stay ours
int gpsh_regions_map_self(void);
// Checks and maps what is not mapped yet; keeps no descriptor. `at` [GPSH_REGIONS]: where the
// regions begin, as the PE published it.
int gpsh_regions_map_peer(int pe, const struct gpsh_fd_set *fds, const uint64_t *at);
void gpsh_regions_unmap_peers(void);

// Which program this PE's static data belongs to, 0 if it is not shared. Once all PEs' are known to
// be of one program and size, it is symmetric; else `why_not` is what users are told. Before
// mapping.
uint64_t gpsh_regions_static_id(void);
// A transport cannot serve this PE's: it is not shared. Before that is published.
void gpsh_regions_spare_static(const char *why);
void gpsh_regions_use_static(const char *why_not);

// Copies where either side may be heap memory (host memory, or GPU memory once the heap is there).
int gpsh_regions_copy(void *to, const void *from, size_t bytes);
int gpsh_regions_fill(void *memory, int byte, size_t bytes); // heap memory
// Where memory that kernels and the host share comes from: a GPU's, if the heap is on one.
const struct gpsh_device_memory *gpsh_regions_device_memory(void);
// The GPU of a device heap as NICs should know it ("0000:3b:00.0"); NULL: host heap.
const char *gpsh_regions_pci(void);
// The heap's address is a multiple of this on every PE, whatever it has grown to.
uint64_t gpsh_regions_alignment(void);
const char *gpsh_regions_pages(void); // page kind of the heap, one phrase

// How large the heap is if nobody chose its size: the standard one, or what this PE has room for if
// that is less. The PEs tell each other; if they differ, all begin anew with the smallest.

// What this PE has chosen so; 0: somebody has chosen.
uint64_t gpsh_regions_heap_fits(void);
// `least` and `most` are what PEs have chosen so, and `whose` is the first with the least. True:
// the regions are to be destroyed and created again, which now takes that size. PE 0 says what
// there is.
bool gpsh_regions_heap_settle(uint64_t least, uint64_t most, int whose);
// Bytes: `standard` if that and `reserved`, which is the library's, fit into `room`: what a PE may
// have of its node's memory or of its GPU's. Else half of the room, for the program needs memory
// too, or what `reserved` leaves of it: in whole MiB, and at least one, which is the smallest heap
// that there is.
uint64_t gpsh_heap_size_fitting(uint64_t standard, uint64_t reserved, uint64_t room);

#endif
