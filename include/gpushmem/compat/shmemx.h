// SPDX-License-Identifier: BSD-3-Clause
// Programs for several OpenSHMEM libraries include this one too. There are no extensions here:
// whatever gpushmem has beside the standard is in gpushmem/gpushmem.h, which may be used as well.
#include "gpushmem/compat/shmem.h"
