// SPDX-License-Identifier: BSD-3-Clause
// What the program registers for queues that it makes by devx: memory (umem), and pages of doorbell
// registers (UAR). Any thread.
#ifndef SOFTHCA_MLX5_UMEM_H
#define SOFTHCA_MLX5_UMEM_H

#include "mlx5.h"

// Memory of the program's, a file that is mapped here, or GPU memory, which only copies reach.
enum shca_umem_kind { SHCA_UMEM_OF_PROGRAM, SHCA_UMEM_OF_FILE, SHCA_UMEM_OF_GPU };

struct shca_umem {
    struct mlx5dv_devx_umem ibv;
    struct shca_umem *next;
    char *base;
    size_t bytes;
    enum shca_umem_kind kind;
    uint32_t users; // rings and records in it: it is not given back while there is one
};

struct shca_uar {
    struct mlx5dv_devx_uar ibv;
    struct shca_uar *next;
    uint32_t users; // queues
};

// By the number that mailboxes name it by; NULL: there is none.
struct shca_umem *shca_umem_numbered(uint64_t id);
struct shca_uar *shca_uar_numbered(uint64_t page);
// One more user (1), or one less (-1).
void shca_umem_use(struct shca_umem *umem, int more);
void shca_uar_use(struct shca_uar *uar, int more);

// NULL, and errno: how the functions of devx refuse.
void *shca_devx_refuse(int error);

#endif
