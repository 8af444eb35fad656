#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Runs a program of a job in which the heap of PE 1 is staged, and no other.
[ "$PMIX_RANK" != 1 ] || export GPUSHMEM_GPUDIRECT=never
exec "$@"
