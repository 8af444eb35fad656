// SPDX-License-Identifier: BSD-3-Clause
// PMI_process_mapping: how launchers with PMI-1 say which ranks share a node.
#ifndef GPSH_PMI_MAPPING_H
#define GPSH_PMI_MAPPING_H

#include <stdbool.h>

// "(vector,(0,2,4),(2,1,1))": blocks of (first node, nodes, ranks on each of them), which begin
// anew when they are used up. Sets node[n_pes]. False: any other text.
bool gpsh_pmi_mapping_read(const char *text, int n_pes, int *node);

#endif
