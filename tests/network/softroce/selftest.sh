#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# selftest.sh PART: what guest.sh promises, each promise once. PART is guest: what passes between host and guest, in one boot;
# or death: a guest that hangs, panics or does not come up, in four.
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
failed=0

# Fetches the kernel if need be, which talks.
"$here/kernel.sh" >/dev/null || exit 1

# check NAME COMMAND...: the command must succeed.
check() {
    local name=$1
    shift
    if "$@"; then
        echo "ok      $name"
    else
        echo "FAILED  $name: $*"
        failed=$((failed + 1))
    fi
}

work=$(mktemp -d /tmp/softroce-selftest.XXXXXX)
trap 'rm -rf "$work"' EXIT
mkdir "$work/tmp"
export TMPDIR=$work/tmp
cd "$work" || exit

# Below /tmp, which the guest has its own of: the current directory must be seen all the same.
guest() {
    cat >inside.sh <<'SCRIPT'
echo "to stdout in $(pwd)"
echo "to stderr, $MARK, $GPUSHMEM_MARK" >&2
ibv_devices | grep -c rxe >"$OUT/devices"
ulimit -l >"$OUT/memlock"
touch ./written 2>/dev/null && echo "the host's files are writable" >&2
ib_write_lat -d rxe1 -F -n 20 >"$OUT/server.log" 2>&1 &
until ss -ltn | grep -q :18515; do sleep 0.05; done
ib_write_lat -d rxe0 -F -n 20 10.1.0.2 >"$OUT/lat.log" 2>&1
echo $? >"$OUT/lat.rc"
wait
ib_write_lat -d rxe3 -F -n 20 >"$OUT/server2.log" 2>&1 &
until ss -ltn | grep -q :18515; do sleep 0.05; done
ib_write_lat -d rxe2 -F -n 20 10.2.0.2 >"$OUT/lat2.log" 2>&1
echo $? >"$OUT/lat2.rc"
wait
exit 7
SCRIPT
    GPUSHMEM_MARK=passed "$here/guest.sh" --timeout 120 --rails 2 --netem "delay 10us" --env "MARK=a 'b' \$c" \
        --out "$work/out" -- bash inside.sh >stdout 2>stderr
    check "exit code passes through" [ $? = 7 ]
    check "standard output passes" grep -qx "to stdout in $work" stdout
    check "standard error and settings pass" grep -qxF "to stderr, a 'b' \$c, passed" stderr
    sed -i '/^guest.sh: the guest is not up after/d' stderr # a busy machine
    check "nothing else is printed" [ "$(cat stdout stderr | wc -l)" = 2 ]
    check "files come back from \$OUT, four devices" [ "$(cat out/devices)" = 4 ]
    check "no limit on locked memory" [ "$(cat out/memlock)" = unlimited ]
    check "ib_write_lat from rxe0 to rxe1" grep -qx 0 out/lat.rc
    check "ib_write_lat from rxe2 to rxe3" grep -qx 0 out/lat2.rc
    cat out/*.log 2>/dev/null | grep -A 1 -e t_typical -e -i -e error
}

# A hang and a panic, at the same time: several guests may run at once.
death() {
    "$here/guest.sh" --timeout 3 -- bash -c 'echo before; sleep 1000' >hang.out 2>&1 &
    hang=$!
    "$here/guest.sh" --timeout 60 -- bash -c 'echo c >/proc/sysrq-trigger; sleep 5' >panic.out 2>&1
    check "a panic is 125" [ $? = 125 ]
    check "a panic is said" grep -q "^guest.sh: the guest died without an exit code" panic.out
    wait "$hang"
    check "a hang is 124" [ $? = 124 ]
    check "output before the hang is kept" grep -qx before hang.out
    "$here/guest.sh" --patience 0 -- bash -c 'exit 124' >own124.out 2>&1
    check "a command's own 124 is no hang" [ $? = 124 ]
    check "the second of two guests ran it" [ "$(cat own124.out)" = "guest.sh: the guest is not up after 0 s; starting another one" ]
    check "a hang is said" grep -q "^guest.sh: no end within 3 s" hang.out
}

case ${1:-} in
guest | death) "$1" ;;
*) echo "selftest.sh: which part? guest or death" >&2 && exit 1 ;;
esac
"$here/guest.sh" --rails 9 -- true >bad.out 2>&1
check "a bad option is 125 and said" grep -qx "guest.sh: --rails is 1 or 2, not '9'" bad.out
check "no temporary file is left" [ -z "$(ls "$TMPDIR")" ]
[ "$failed" = 0 ]
