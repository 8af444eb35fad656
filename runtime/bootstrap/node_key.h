// SPDX-License-Identifier: BSD-3-Clause
// What tells nodes apart when no launcher does.
#ifndef GPSH_NODE_KEY_H
#define GPSH_NODE_KEY_H

#include <stdint.h>

struct gpsh_node_key {
    uint8_t bytes[16];
};

// Equal for processes that can hand each other memory: one running kernel, one user namespace, the
// same root directory and the same /tmp (where their sockets meet), which containers do not share;
// host names count for nothing. `name` (GPUSHMEM_TEST_BOOTSTRAP_NODE) makes further differences.
struct gpsh_node_key gpsh_node_key(const char *name);

#endif
