// SPDX-License-Identifier: BSD-3-Clause
#include <nvshmem.h>
#include <nvshmemx.h>

int main(void)
{
    nvshmem_init();
    int me = nvshmem_my_pe(), n = nvshmem_n_pes();
    int *inbox = nvshmem_malloc(sizeof *inbox);
    nvshmem_int_p(inbox, me, (me + 1) % n);
    nvshmemx_barrier_all_on_stream(0);
    puts(*inbox == (me + n - 1) % n ? "ring: ok" : "ring: wrong");
    nvshmem_free(inbox);
    nvshmem_finalize();
    return 0;
}
