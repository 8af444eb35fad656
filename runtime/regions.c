// SPDX-License-Identifier: BSD-3-Clause
#include "regions.h"

#include <string.h>

#include "core.h"
#include "symmetric.h"

static struct gpsh_symmetric regions[GPSH_REGIONS] = {{.fd = -1}, {.fd = -1}};

int gpsh_regions_create(void)
{
    const struct gpsh_settings *s = &gpsh.settings;
    if (s->heap_kind == GPSH_HEAP_DEVICE)
        return gpsh_fail(GPUSHMEM_ERR_UNSUPPORTED, "GPUSHMEM_HEAP_KIND=device: no GPU can be used here; set it to auto or host");
    int status = gpsh_symmetric_create(&regions[GPSH_HEAP], s->heap_size, s->huge_pages, gpsh.boot.node_n_pes);
    if (!status)
        status = gpsh_symmetric_create(&regions[GPSH_CONTROL], sizeof(struct gpsh_control), GPSH_PAGES_OFF,
                                       gpsh.boot.node_n_pes);
    if (status) {
        gpsh_regions_destroy();
        return status;
    }
    gpsh.heap = regions[GPSH_HEAP].base;
    gpsh.heap_bytes = regions[GPSH_HEAP].bytes;
    gpsh.control = (struct gpsh_control *)regions[GPSH_CONTROL].base;
    gpsh.control_bytes = regions[GPSH_CONTROL].bytes;
    GPSH_LOG(INFO, "heap", "%llu bytes of host memory, %s", (unsigned long long)gpsh.heap_bytes, regions[GPSH_HEAP].pages);
    return 0;
}

void gpsh_regions_destroy(void)
{
    for (int r = 0; r < GPSH_REGIONS; r++)
        gpsh_symmetric_destroy(&regions[r]);
    gpsh.heap = NULL;
    gpsh.heap_bytes = 0;
    gpsh.control = NULL;
}

struct gpsh_region gpsh_regions_get(int region)
{
    return (struct gpsh_region){.base = regions[region].base, .bytes = regions[region].bytes, .kind = GPSH_MEMORY_HOST,
                                .dmabuf_fd = -1};
}

struct gpsh_fd_set gpsh_regions_fds(void)
{
    return (struct gpsh_fd_set){.fds = {regions[GPSH_HEAP].fd, regions[GPSH_CONTROL].fd}, .count = GPSH_REGIONS};
}

int gpsh_regions_map_self(void)
{
    for (int r = 0; r < GPSH_REGIONS; r++)
        gpsh.mapped[r][gpsh.my_pe] = regions[r].base;
    return 0;
}

int gpsh_regions_map_peer(int pe, const struct gpsh_fd_set *fds)
{
    for (int r = 0; r < GPSH_REGIONS; r++) {
        int status = gpsh_symmetric_map(fds->fds[r], regions[r].bytes, pe, &gpsh.mapped[r][pe]);
        if (status)
            return status;
    }
    return 0;
}

void gpsh_regions_unmap_peers(void)
{
    for (int r = 0; r < GPSH_REGIONS; r++)
        for (int pe = 0; pe < gpsh.n_pes && gpsh.mapped[r]; pe++) {
            if (pe != gpsh.my_pe)
                gpsh_symmetric_unmap(gpsh.mapped[r][pe], regions[r].bytes);
            gpsh.mapped[r][pe] = NULL;
        }
}

int gpsh_regions_copy(void *to, const void *from, size_t bytes)
{
    memcpy(to, from, bytes);
    return 0;
}

const char *gpsh_regions_pages(void)
{
    return regions[GPSH_HEAP].pages;
}
