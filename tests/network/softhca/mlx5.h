// SPDX-License-Identifier: BSD-3-Clause
// The face of mlx5dv: queue pairs and completion queues whose rings are in memory, for programs and
// kernels that build work queue elements (WQEs) and read completion queue elements (CQEs)
// themselves. The layouts are those of rdma-core's infiniband/mlx5dv.h.
//
// A queue pair that was taken by mlx5dv_init_obj is fed by its doorbell alone. The engine looks at
// the doorbells in each pass, reads the doorbell record, makes a work request of each WQE that it
// covers, and executes these as any other; what differs is where they come from and where their
// completions go.
#ifndef SOFTHCA_MLX5_H
#define SOFTHCA_MLX5_H

#include <endian.h>
#include <infiniband/mlx5dv.h>

#include "softhca.h"

enum {
    SHCA_MLX5_SEGMENT = 16,    // bytes that the size of a WQE counts in
    SHCA_MLX5_SEGMENTS = 63,   // that a WQE has at most
    SHCA_MLX5_BLOCKS = 32768,  // that a send queue has at most: half of what an index can tell
    SHCA_MLX5_BLUEFLAME = 256, // bytes of one of the two halves of a doorbell register
    SHCA_MLX5_WQE_BYTES = 1024,
};

// What a doorbell register holds while nobody has rung: no queue pair has the number 0xffffff.
#define SHCA_MLX5_SILENT UINT64_MAX

// Queues in GPU memory, which no processor reaches: the engine works on images in host memory, and
// its thread copies. No device: the queue is not there.
struct shca_mlx5_far {
    struct shca_device *device;
    char *ring, *record;       // in GPU memory
    _Atomic uint32_t words[2]; // the record's image
};

// Memory that a program has chosen for a queue.
struct shca_mlx5_memory {
    char *ring;
    void *record;
    bool gpu;
};

struct shca_mlx5_queue {
    struct shca_qp *qp;
    struct shca_mlx5_queue *next; // of the device
    char *ring;                   // [blocks * MLX5_SEND_WQE_BB]
    uint32_t blocks;              // a power of two
    _Atomic uint32_t *record;     // [2], big-endian: receives, sends
    _Atomic uint64_t *doorbell;   // the second half is SHCA_MLX5_BLUEFLAME bytes further on
    // In blocks since the last reset: covered by the record, made work requests of, completed.
    uint64_t posted, fetched, done;
    uint64_t copied;          // of a queue in GPU memory: so far the image of the ring is right
    uint64_t compared;        // of a queue in GPU memory: looked at for changes before completion
    struct shca_mlx5_far far; // ring and record are images then
    uint32_t looks;           // at a busy one that nobody has rung for
    bool placed;              // ring, record and doorbell are the program's
    bool failing;             // an error is to be completed, and then nothing is fetched any more
    bool broken;
};

struct shca_mlx5_cq {
    char *ring;       // [entries * 64]
    uint32_t entries; // a power of two
    _Atomic uint32_t *record;
    void *page;                  // of its doorbell register, which nobody reads
    bool placed;                 // ring and record are the program's
    struct shca_mlx5_far far;    // the record is an image then, and there is no ring
    uint64_t produced, consumed; // consumed: as far as the record says
    struct mlx5_cqe64 held[64];  // completions of a burst that is not complete
    uint32_t n_held;
    uint64_t held_since_ns;
};

// mlx5_page.c: pages that several queues share, as on real systems.
enum shca_mlx5_page_kind { SHCA_MLX5_RECORDS, SHCA_MLX5_REGISTERS };
void *shca_mlx5_slot_take(enum shca_mlx5_page_kind kind); // zeroed; NULL: no memory
void shca_mlx5_slot_give(enum shca_mlx5_page_kind kind, void *slot);
void *shca_mlx5_ring_new(size_t bytes); // whole pages of its own, zeroed
void shca_mlx5_ring_free(void *ring, size_t bytes);

// mlx5_wqe.c
// The blocks that the WQE takes whose first one this is, or 0: its control segment is not to be
// trusted.
uint32_t shca_mlx5_wqe_blocks(const struct shca_mlx5_queue *queue, const void *block);
// Makes a work request of it. If something in it is wrong, one that fails.
void shca_mlx5_wqe_parse(const struct shca_mlx5_queue *queue, const char *bytes,
                         struct shca_wqe *wqe);
void shca_mlx5_wqe_refuse(struct shca_wqe *wqe);
uint64_t shca_mlx5_wqe_sum(const char *bytes, uint32_t blocks);

// mlx5_queue.c: takes the queue pair; its ring, of so many blocks, and its record are there
int shca_mlx5_queue_place(struct ibv_qp *qp, const struct shca_mlx5_memory *memory, uint32_t blocks,
                          void *doorbell);
void shca_mlx5_mac_of(const unsigned char gid[16], unsigned char mac[6]); // on Ethernet

// mlx5_far.c: the engine's thread only. Statuses, of which any but success is for good.
int shca_mlx5_records_fetch(struct shca_mlx5_queue *queue); // and that of its completion queue
int shca_mlx5_blocks_fetch(struct shca_mlx5_queue *queue, uint64_t end); // what the record covers
// Blocks that were written to since they were fetched, among those not compared so far: the first
// one, or `end`.
uint64_t shca_mlx5_blocks_compare(struct shca_mlx5_queue *queue, uint64_t end);
int shca_mlx5_cq_record_fetch(struct shca_mlx5_cq *cq);
// Entry `number` of the ring.
int shca_mlx5_cqe_store(struct shca_mlx5_cq *cq, uint64_t number, const struct mlx5_cqe64 *cqe);

// mlx5_cqe.c
int shca_mlx5_cq_place(struct ibv_cq *cq, const struct shca_mlx5_memory *memory, uint32_t entries);
int shca_mlx5_cq_describe(struct ibv_cq *cq, struct mlx5dv_cq *out); // takes it; an errno

#endif
