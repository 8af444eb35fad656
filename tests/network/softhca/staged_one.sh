#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Runs a program of a job in which the heap of PE 1 is staged, and no other.
[ "$GPUSHMEM_RUN_PE" != 1 ] || export GPUSHMEM_GPUDIRECT=never
exec "$@"
