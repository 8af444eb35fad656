#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# run_again_test.sh TESTS_DIR: tests/run.sh over a cmake and a ctest that only print. A test that passes when it is run again is
# named, and failed with --strict; one that fails twice is failed.
set -u
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/bin" "$work/tests"
cp "$1/run.sh" "$work/tests"
printf '#!/bin/sh\n' | tee "$work/tests/setup.sh" "$work/bin/cmake" >/dev/null
cat >"$work/bin/ctest" <<'END'
#!/bin/sh
case "$*" in
*' -R ^a[.]once$'*) echo '1/1 Test  #2: a.once ....   Passed    0.10 sec' ;;
*' -R '*) echo '1/1 Test  #4: a.twice ....***Timeout   0.10 sec' ;;
*)
    echo '1/4 Test  #1: a.fine ....   Passed    0.10 sec'
    echo '2/4 Test  #2: a.once ....***Failed    0.10 sec'
    echo '3/4 Test  #3: a.skip ....***Skipped   0.10 sec'
    [ -z "$TWICE" ] || echo '4/4 Test  #4: a.twice ....***Exception: SegFault  0.10 sec'
    ;;
esac
END
chmod +x "$work"/bin/* "$work/tests/setup.sh"

# expect EXIT_CODE LAST_LINE NAMED OPTION...: NAMED is the line about those that passed at last, or empty.
expect() {
    local code=$1 last=$2 named=$3 output got
    shift 3
    output=$(PATH=$work/bin:$PATH "$work/tests/run.sh" --preset dev "$@" 2>&1)
    got=$?
    [ $got = "$code" ] && [ "$(tail -n 1 <<<"$output")" = "$last" ] && [ "$(grep '^!!' <<<"$output")" = "$named" ] && return
    echo "run.sh --preset dev $*: not exit code $code, '$last' and '$named', but $got and:"
    echo "$output"
    exit 1
}
again='!! 1 passed only when run again alone: dev a.once'
export TWICE=''
expect 0 '2 passed, 0 failed' "$again"
expect 1 '1 passed, 1 failed' '' --strict
TWICE=1
expect 1 '2 passed, 1 failed' "$again"
expect 1 '1 passed, 2 failed' '' --strict
