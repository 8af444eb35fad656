#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# swept.sh COMMAND...: a test on the software HCA. Processes that are killed leave device files, which go away with this, before
# and after. The command ends if this is killed.
sweep() {
    [ ! -e "$GPUSHMEM_SOFTHCA_DIR" ] || rm -rf "$GPUSHMEM_SOFTHCA_DIR"
}

for library in $(echo "$LD_PRELOAD" | tr : ' '); do
    [ -e "$library" ] || { echo "swept.sh: $library is not built" >&2 && exit 1; }
done
sweep
setpriv --pdeathsig TERM "$@"
status=$?
sweep
exit $status
