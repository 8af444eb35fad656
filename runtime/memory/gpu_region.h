// SPDX-License-Identifier: BSD-3-Clause
// The heap of this PE in GPU memory, and the peers' that are mapped here: their pieces.
#ifndef GPSH_GPU_REGION_H
#define GPSH_GPU_REGION_H

#include <stdbool.h>

#include "memory/symmetric.h"
#include "transport/transport.h"

// With room to grow to `room` bytes where that is possible.
int gpsh_gpu_region_create(struct gpsh_symmetric *region, uint64_t bytes, uint64_t reserved,
                           uint64_t room);
void gpsh_gpu_region_destroy(struct gpsh_symmetric *region);

// Makes it `bytes` large, which are whole pages more than it has; or as large as it was, and
// takes away what peers have mapped of theirs beyond that.
int gpsh_gpu_region_resize(struct gpsh_symmetric *region, uint64_t bytes);

// The heap goes on in VMM memory of the program, as gpsh_gpu_heap_adopt has it.
int gpsh_gpu_region_adopt(struct gpsh_symmetric *region, const char *buffer, uint64_t bytes);
// What was adopted at `address`, which is the program's or that in the heap: its offset. False:
// nothing.
bool gpsh_gpu_region_adopted(const char *address, uint64_t *offset);
// Gives it back, here and where peers' are mapped.
void gpsh_gpu_region_return(uint64_t offset);

// What NICs get of the first piece, or with `last` of the one that was added last.
void gpsh_gpu_region_dmabufs(bool last, struct gpsh_region *out);
int gpsh_gpu_region_last_fd(void); // of that one, for peers

// Maps a peer's heap, with *room addresses or less, which is written there. That this GPU does not
// reach it is no error: another transport may serve that PE.
int gpsh_gpu_region_map(int pe, int fd, uint64_t bytes, uint64_t *room);
// Where its heap is mapped: the piece that this PE has added last, of the peer.
int gpsh_gpu_region_map_last(int pe, int fd);
void gpsh_gpu_region_unmap(int pe);

#endif
