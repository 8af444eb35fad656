// SPDX-License-Identifier: BSD-3-Clause
// Data Direct: some NICs have a second PCIe function next to the GPU, which reads and writes its
// memory without a detour through the processor. rdma-core has it since version 54, in the NIC's
// own library only (mlx5dv_reg_dmabuf_mr(3)), so it is looked up in the library that libibverbs has
// loaded for the NIC, if it has.
#define _GNU_SOURCE // RTLD_NOLOAD
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <string.h>

#include "transports/verbs/setup/verbs_setup.h"

enum { ACCESS_DATA_DIRECT = 1 }; // MLX5DV_REG_DMABUF_ACCESS_DATA_DIRECT

static struct {
    int (*path)(struct ibv_context *context, char *path, size_t bytes);
    struct ibv_mr *(*register_dmabuf)(struct ibv_pd *pd, uint64_t offset, size_t bytes,
                                      uint64_t iova, int fd, int access, int mlx5_access);
} mlx5;

static void look_up(void)
{
    void *library = dlopen("libmlx5.so.1", RTLD_NOW | RTLD_NOLOAD);
    void *path = library ? dlsym(library, "mlx5dv_get_data_direct_sysfs_path") : NULL;
    void *function = library ? dlsym(library, "mlx5dv_reg_dmabuf_mr") : NULL;
    memcpy(&mlx5.path, &path, sizeof path);
    memcpy(&mlx5.register_dmabuf, &function, sizeof function);
}

struct ibv_mr *gpsh_verbs_register_direct(struct verbs_rail *rail, const struct gpsh_region *region,
                                          uint64_t offset, int access)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    char where[PATH_MAX];
    pthread_once(&once, look_up);
    errno =
        mlx5.path && mlx5.register_dmabuf ? mlx5.path(rail->context, where, sizeof where) : ENOSYS;
    if (errno)
        return NULL;
    int fd = region->dmabuf_pcie_fd >= 0 ? region->dmabuf_pcie_fd : region->dmabuf_fd;
    return mlx5.register_dmabuf(rail->pd, offset, region->bytes, (uintptr_t)region->base, fd,
                                access, ACCESS_DATA_DIRECT);
}
