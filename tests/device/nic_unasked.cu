// SPDX-License-Identifier: BSD-3-Clause
// Compiled without the means to post to a NIC: what it does goes through rings.
#define GPUSHMEM_DEVICE_NIC 0
#include "check.h"

__global__ void put(int *word)
{
    gpushmem_dev_int_p(word, gpushmem_dev_my_pe(), gpushmem_dev_my_pe());
    gpushmem_dev_quiet();
}

int main()
{
    check_begin();
    int *word = (int *)gpushmem_calloc(1, sizeof *word);
    RUN(put, 1, 1, word);
    gpushmem_free(word);
    return check_end("nic_unasked");
}
