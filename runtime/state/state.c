// SPDX-License-Identifier: BSD-3-Clause
#include "state/state.h"

struct gpsh_core gpsh = {.failed_pe = -1};

int gpsh_check_initialised(const char *function)
{
    if (GPSH_LIKELY(gpsh.n_pes > 0))
        return 0;
    if (gpsh.forked_from)
        return gpsh_fail(GPUSHMEM_ERR_STATE,
                         "gpushmem_%s was called in a process that PE process %d forked while it "
                         "was in the job: that process is the PE, this one is none; let it call "
                         "exec or _exit, or fork before gpushmem_init",
                         function, gpsh.forked_from);
    return gpsh_fail(GPUSHMEM_ERR_STATE,
                     "gpushmem_%s was called before gpushmem_init or after gpushmem_finalize",
                     function);
}
