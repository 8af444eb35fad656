#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Runs a program of a job whose PE 0 is told to use its GID of index 1, link-local, and PE 1 that of 3, IPv4.
[ "$GPUSHMEM_RUN_PE" = 0 ] && index=1 || index=3
export GPUSHMEM_VERBS_GID_INDEX="$index"
exec "$@"
