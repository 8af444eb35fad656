#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Runs a test whose PEs are killed: those leave device files, which go away with this, before and after.
rm -rf "$GPUSHMEM_SOFTHCA_DIR"
"$@"
status=$?
rm -rf "$GPUSHMEM_SOFTHCA_DIR"
exit $status
