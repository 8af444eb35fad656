// SPDX-License-Identifier: BSD-3-Clause
// gpushmem_barrier_all and gpushmem_sync_all.
#include "comm/sync.h"

#include "api/argument.h"

int gpushmem_sync_all(void)
{
    int status = gpsh_check_ready(__func__);
    return status < 0 ? status : gpsh_sync_as(GPSH_CALL_SYNC_ALL, 0, 0, __func__);
}

int gpushmem_barrier_all(void)
{
    int status = gpsh_check_ready(__func__);
    return status < 0 ? status : gpsh_barrier_as(GPSH_CALL_BARRIER_ALL, 0, 0, __func__);
}
