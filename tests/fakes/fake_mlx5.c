// SPDX-License-Identifier: BSD-3-Clause
// libmlx5.so.1 as of rdma-core 54, for tests: it says that each NIC has a data-direct function, and
// registers with whoever plays libibverbs. FAKE_MLX5_REFUSES=1: the function is there, but does not
// take the memory. The queues of mlx5dv_init_obj are those of the software HCA, if it is there.
#define _DEFAULT_SOURCE // endian.h
#include <errno.h>
#include <infiniband/mlx5dv.h>
#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#define EXPORT __attribute__((visibility("default")))

EXPORT int mlx5dv_get_data_direct_sysfs_path(struct ibv_context *context, char *path, size_t bytes);
EXPORT struct ibv_mr *mlx5dv_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t bytes,
                                           uint64_t iova, int fd, int access, int mlx5_access);

__attribute__((weak)) bool gpushmem_softhca_is_mlx5(void);
__attribute__((weak)) int gpushmem_softhca_init_obj(struct mlx5dv_obj *object, uint64_t types);

EXPORT bool mlx5dv_is_supported(struct ibv_device *device)
{
    return gpushmem_softhca_is_mlx5 && gpushmem_softhca_is_mlx5();
}

EXPORT int mlx5dv_init_obj(struct mlx5dv_obj *object, uint64_t types)
{
    return gpushmem_softhca_init_obj ? gpushmem_softhca_init_obj(object, types) : EOPNOTSUPP;
}

int mlx5dv_get_data_direct_sysfs_path(struct ibv_context *context, char *path, size_t bytes)
{
    return snprintf(path, bytes, "devices/pci0000:00/0000:00:01.0") < (int)bytes ? 0 : ENOSPC;
}

struct ibv_mr *mlx5dv_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t bytes, uint64_t iova,
                                    int fd, int access, int mlx5_access)
{
    if (mlx5_access != 1 || getenv("FAKE_MLX5_REFUSES")) {
        errno = EOPNOTSUPP;
        return NULL;
    }
    return ibv_reg_dmabuf_mr(pd, offset, bytes, iova, fd, access);
}
