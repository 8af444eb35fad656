#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# bereaved.sh BIN_DIR NODES CASE: three PEs run tests/fault/bereaved.c. Both survivors must say that they are, and remove what
# the software HCA of the dead PE has left.
set -u
output=$("$1/gpushmem" run -n 3 --nodes "$2" --on-failure continue --timeout 20 "$1/bereaved" "$3" 2>&1)
echo "$output"
[ "$(grep -c 'survives:' <<<"$output")" = 2 ] && [ ! -e "${GPUSHMEM_SOFTHCA_DIR:-/nowhere}" ]
