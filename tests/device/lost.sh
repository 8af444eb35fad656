#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# usage: lost.sh BIN_DIR [PROGRAM [ARGUMENT]]: a PE dies in the middle of kernels; every survivor must say that it lives on.
# LOST_NODES: on so many nodes, 1 if it is not set.
set -u
nodes=${LOST_NODES:-1}
output=$("$1/gpushmem" run -n 3 --nodes "$nodes" --on-failure continue --timeout 60 "$1/${2:-device_lost}" "${@:3}" 2>&1)
echo "$output"
[ "$(grep -c 'lives on: 0 failures' <<<"$output")" = 2 ]
