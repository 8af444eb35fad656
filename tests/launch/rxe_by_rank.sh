#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Inside the Soft-RoCE guest: even PEs use rxe0 and odd ones rxe1, so that what they send each other crosses the cable.
GPUSHMEM_VERBS_DEVICES=rxe$((${PMIX_RANK:-$GPUSHMEM_RUN_PE} % 2)) exec "$@"
