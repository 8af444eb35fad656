#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# heat_input.sh HEAT: pictures and options that heat must refuse, with one sentence; and P2, comments and 16 bits, which it reads.
set -u
heat=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
failed=0
export GPUSHMEM_TRANSPORTS=p2p GPUSHMEM_HEAP_SIZE=4M

# refused STATUS WORDS ARGUMENT...: exit code and words of the message.
refused() {
    local status=$1 words=$2 text got
    shift 2
    text=$("$heat" "$@" 2>&1)
    got=$?
    if [ "$got" != "$status" ] || [[ "$text" != *"$words"* ]]; then
        echo "heat $*: exit code $got (wanted $status), said: $text"
        failed=1
    fi
}

printf '\x89PNG\r\n\x1a\n' >a.png
printf 'P5\n4 4\n255\n123' >short.pgm
printf 'P5\n0 4\n255\n' >flat.pgm
printf 'P5\n99999 4\n255\n' >wide.pgm
printf 'P2\n2 1\n7\n3 8\n' >bright.pgm
refused 1 "No such file" --image missing.pgm
refused 1 "is no PGM picture" --image a.png
refused 1 "ends too early" --image short.pgm
refused 1 "damaged header" --image flat.pgm
refused 1 "damaged header" --image wide.pgm
refused 1 "above its maximum" --image bright.pgm
refused 2 "usage: heat" --steps 5
refused 2 "usage: heat" --image short.pgm --steps many
refused 2 "usage: heat" --image short.pgm --steps -1

printf 'P2\n# a comment # with two marks\n2 2\n15\n0 15 15 0\n' >text.pgm
printf 'P5\n2 2\n65535\n\0\0\xff\xff\xff\xff\0\0' >deep.pgm
for picture in text deep; do
    "$heat" --image $picture.pgm --steps 0 --out $picture.out >/dev/null || failed=1
done
[ "$(tail -c 4 text.out | od -An -tx1)" = " 00 ff ff 00" ] || { echo "P2 was read wrongly" && failed=1; }
cmp text.out deep.out || failed=1
exit $failed
