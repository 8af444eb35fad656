// SPDX-License-Identifier: BSD-3-Clause
#include "mlx5_umem.h"

#include <errno.h>
#include <sys/mman.h>

enum { PAGE = 4096, FIRST_UMEM = 0x40 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct shca_umem *umems;
static struct shca_uar *uars;
static uint32_t last_umem = FIRST_UMEM, last_page;

static struct mlx5dv_devx_umem *umem_new(char *base, size_t bytes, enum shca_umem_kind kind)
{
    struct shca_umem *umem = calloc(1, sizeof *umem);
    if (!umem)
        return NULL;
    umem->base = base;
    umem->bytes = bytes;
    umem->kind = kind;
    pthread_mutex_lock(&lock);
    umem->ibv.umem_id = ++last_umem;
    umem->next = umems;
    umems = umem;
    pthread_mutex_unlock(&lock);
    return &umem->ibv;
}

SHCA_EXPORT struct mlx5dv_devx_umem *gpushmem_softhca_umem_reg(struct ibv_context *context,
                                                               struct mlx5dv_devx_umem_in *in);
SHCA_EXPORT int gpushmem_softhca_umem_dereg(struct mlx5dv_devx_umem *ibv);
SHCA_EXPORT struct mlx5dv_devx_uar *gpushmem_softhca_uar_alloc(struct ibv_context *context,
                                                               uint32_t flags);
SHCA_EXPORT void gpushmem_softhca_uar_free(struct mlx5dv_devx_uar *ibv);

static struct mlx5dv_devx_umem *umem_on_gpu(struct ibv_context *context, char *base, size_t bytes)
{
    if (!shca_gpu_owns(base, 1) || !shca_gpu_owns(base + bytes - 1, 1))
        return shca_devx_refuse(EFAULT);
    if (shca_gpu_use(shca_device_of(context), (uintptr_t)base))
        return shca_devx_refuse(EIO);
    return umem_new(base, bytes, SHCA_UMEM_OF_GPU);
}

struct mlx5dv_devx_umem *gpushmem_softhca_umem_reg(struct ibv_context *context,
                                                   struct mlx5dv_devx_umem_in *in)
{
    if (!shca_settings.devx || (in->comp_mask & ~(uint64_t)MLX5DV_UMEM_MASK_DMABUF))
        return shca_devx_refuse(EOPNOTSUPP);
    if (!in->size || !(in->access & IBV_ACCESS_LOCAL_WRITE))
        return shca_devx_refuse(EINVAL);
    if (!(in->comp_mask & MLX5DV_UMEM_MASK_DMABUF))
        return shca_gpu_owns(in->addr, 1) ? umem_on_gpu(context, in->addr, in->size)
                                          : umem_new(in->addr, in->size, SHCA_UMEM_OF_PROGRAM);
    if (!shca_settings.dmabuf)
        return shca_devx_refuse(EOPNOTSUPP);
    // of a dma-buf the address is where in it the memory begins
    char *pointer = shca_dmabuf_pointer(in->dmabuf_fd, (uintptr_t)in->addr);
    if (pointer)
        return umem_on_gpu(context, pointer, in->size);
    void *at = mmap(NULL, in->size, PROT_READ | PROT_WRITE, MAP_SHARED, in->dmabuf_fd,
                    (off_t)(uintptr_t)in->addr);
    if (at == MAP_FAILED && !shca_settings.quiet)
        shca_say("a dma-buf is neither of registered GPU memory nor can it be mapped (%s)",
                 strerror(errno));
    return at == MAP_FAILED ? shca_devx_refuse(EINVAL) : umem_new(at, in->size, SHCA_UMEM_OF_FILE);
}

int gpushmem_softhca_umem_dereg(struct mlx5dv_devx_umem *ibv)
{
    struct shca_umem *umem = (struct shca_umem *)ibv;
    pthread_mutex_lock(&lock);
    bool used = umem->users;
    struct shca_umem **at = &umems;
    while (!used && *at != umem)
        at = &(*at)->next;
    if (!used)
        *at = umem->next;
    pthread_mutex_unlock(&lock);
    if (used)
        return EBUSY;
    if (umem->kind == SHCA_UMEM_OF_FILE)
        munmap(umem->base, umem->bytes);
    free(umem);
    return 0;
}

struct mlx5dv_devx_uar *gpushmem_softhca_uar_alloc(struct ibv_context *context, uint32_t flags)
{
    (void)context;
    if (!shca_settings.devx || flags > MLX5DV_UAR_ALLOC_TYPE_NC)
        return shca_devx_refuse(EOPNOTSUPP);
    struct shca_uar *uar = calloc(1, sizeof *uar);
    void *slot = uar ? shca_mlx5_slot_take(SHCA_MLX5_REGISTERS) : NULL;
    if (!slot) {
        free(uar);
        return shca_devx_refuse(ENOMEM);
    }
    uar->ibv.reg_addr = slot;
    uar->ibv.base_addr = (void *)((uintptr_t)slot & ~(uintptr_t)(PAGE - 1));
    pthread_mutex_lock(&lock);
    uar->ibv.page_id = ++last_page;
    uar->next = uars;
    uars = uar;
    pthread_mutex_unlock(&lock);
    return &uar->ibv;
}

void gpushmem_softhca_uar_free(struct mlx5dv_devx_uar *ibv)
{
    struct shca_uar *uar = (struct shca_uar *)ibv;
    pthread_mutex_lock(&lock);
    struct shca_uar **at = &uars;
    while (*at != uar)
        at = &(*at)->next;
    *at = uar->next;
    pthread_mutex_unlock(&lock);
    if (uar->users)
        shca_misuse(SHCA_MISUSE_DEVX_FIELD, 0, "UAR %u is freed while %u queues use it",
                    uar->ibv.page_id, uar->users);
    shca_mlx5_slot_give(SHCA_MLX5_REGISTERS, uar->ibv.reg_addr);
    free(uar);
}

void *shca_devx_refuse(int error)
{
    errno = error;
    return NULL;
}

struct shca_umem *shca_umem_numbered(uint64_t id)
{
    pthread_mutex_lock(&lock);
    struct shca_umem *umem = umems;
    while (umem && umem->ibv.umem_id != id)
        umem = umem->next;
    pthread_mutex_unlock(&lock);
    return umem;
}

struct shca_uar *shca_uar_numbered(uint64_t page)
{
    pthread_mutex_lock(&lock);
    struct shca_uar *uar = uars;
    while (uar && uar->ibv.page_id != page)
        uar = uar->next;
    pthread_mutex_unlock(&lock);
    return uar;
}

void shca_umem_use(struct shca_umem *umem, int more)
{
    pthread_mutex_lock(&lock);
    umem->users += (uint32_t)more;
    pthread_mutex_unlock(&lock);
}

void shca_uar_use(struct shca_uar *uar, int more)
{
    pthread_mutex_lock(&lock);
    uar->users += (uint32_t)more;
    pthread_mutex_unlock(&lock);
}
