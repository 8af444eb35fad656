// SPDX-License-Identifier: BSD-3-Clause
// The unique id, taken apart: what makes a set of processes a job when nobody launched it as one.
#ifndef GPSH_UNIQUEID_H
#define GPSH_UNIQUEID_H

#include "bootstrap/tcp_address.h"
#include "gpushmem/bootstrap.h"

enum { GPSH_ID_VERSION = 1, GPSH_ID_ADDRESSES = 4, GPSH_JOB_BYTES = 8, GPSH_SECRET_BYTES = 16 };

struct gpsh_uniqueid {
    uint8_t job[GPSH_JOB_BYTES];       // random; no secret
    uint8_t secret[GPSH_SECRET_BYTES]; // random; never sent
    int n_addresses;                   // at least 1
    struct gpsh_tcp_address address[GPSH_ID_ADDRESSES];
};

void gpsh_uniqueid_pack(const struct gpsh_uniqueid *id, struct gpushmem_uniqueid *packed);
// GPUSHMEM_ERR_INVALID with a sentence, if it is none, damaged, or of another version.
int gpsh_uniqueid_parse(const struct gpushmem_uniqueid *packed, struct gpsh_uniqueid *id);

#endif
