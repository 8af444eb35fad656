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

__attribute__((weak)) struct mlx5dv_devx_umem *
gpushmem_softhca_umem_reg(struct ibv_context *context, struct mlx5dv_devx_umem_in *in);
__attribute__((weak)) int gpushmem_softhca_umem_dereg(struct mlx5dv_devx_umem *umem);
__attribute__((weak)) struct mlx5dv_devx_uar *
gpushmem_softhca_uar_alloc(struct ibv_context *context, uint32_t flags);
__attribute__((weak)) void gpushmem_softhca_uar_free(struct mlx5dv_devx_uar *uar);
__attribute__((weak)) int gpushmem_softhca_query_eqn(struct ibv_context *context, uint32_t vector,
                                                     uint32_t *eqn);
__attribute__((weak)) struct mlx5dv_devx_obj *
gpushmem_softhca_obj_create(struct ibv_context *context, const void *in, size_t in_bytes, void *out,
                            size_t out_bytes);
__attribute__((weak)) int gpushmem_softhca_obj_modify(struct mlx5dv_devx_obj *object,
                                                      const void *in, size_t in_bytes, void *out,
                                                      size_t out_bytes);
__attribute__((weak)) int gpushmem_softhca_obj_destroy(struct mlx5dv_devx_obj *object);

static bool no_devx(void)
{
    errno = EOPNOTSUPP;
    return !gpushmem_softhca_obj_create;
}

EXPORT struct mlx5dv_devx_umem *mlx5dv_devx_umem_reg_ex(struct ibv_context *context,
                                                        struct mlx5dv_devx_umem_in *in)
{
    return no_devx() ? NULL : gpushmem_softhca_umem_reg(context, in);
}

EXPORT int mlx5dv_devx_umem_dereg(struct mlx5dv_devx_umem *umem)
{
    return gpushmem_softhca_umem_dereg(umem);
}

EXPORT struct mlx5dv_devx_uar *mlx5dv_devx_alloc_uar(struct ibv_context *context, uint32_t flags)
{
    return no_devx() ? NULL : gpushmem_softhca_uar_alloc(context, flags);
}

EXPORT void mlx5dv_devx_free_uar(struct mlx5dv_devx_uar *uar)
{
    gpushmem_softhca_uar_free(uar);
}

EXPORT int mlx5dv_devx_query_eqn(struct ibv_context *context, uint32_t vector, uint32_t *eqn)
{
    return no_devx() ? EOPNOTSUPP : gpushmem_softhca_query_eqn(context, vector, eqn);
}

EXPORT struct mlx5dv_devx_obj *mlx5dv_devx_obj_create(struct ibv_context *context, const void *in,
                                                      size_t inlen, void *out, size_t outlen)
{
    return no_devx() ? NULL : gpushmem_softhca_obj_create(context, in, inlen, out, outlen);
}

EXPORT int mlx5dv_devx_obj_modify(struct mlx5dv_devx_obj *obj, const void *in, size_t inlen,
                                  void *out, size_t outlen)
{
    return gpushmem_softhca_obj_modify(obj, in, inlen, out, outlen);
}

EXPORT int mlx5dv_devx_obj_destroy(struct mlx5dv_devx_obj *obj)
{
    return gpushmem_softhca_obj_destroy(obj);
}

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
