# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
# For tests of the program gpushmem, which source it: sets failed=1, and goes on, where something is not as expected.
failed=0

# expect STATUS PATTERN COMMAND...: exit code and a line of output that matches.
expect() {
    local status=$1 pattern=$2 text got
    shift 2
    text=$("$@" 2>&1)
    got=$?
    if [ "$got" != "$status" ] || ! grep -Eq "$pattern" <<<"$text"; then
        printf '%s\n' "$*: exit code $got (wanted $status), no line matches '$pattern':" "$text"
        # shellcheck disable=SC2034 # whoever sources this exits with it
        failed=1
    fi
}
