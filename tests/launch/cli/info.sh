#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# info.sh GPUSHMEM: what `gpushmem info` says about build, settings, their origin, bad values and peers.
set -u
gpushmem=$1
. "$(dirname "${BASH_SOURCE[0]}")/expect.sh"
export GPUSHMEM_TRANSPORTS=p2p

version=$("$gpushmem" version)
expect 0 "^gpushmem +${version#gpushmem }$" "$gpushmem" info
expect 0 '^transports .* p2p \(maps heaps of its node\)( |$)' "$gpushmem" info
json='import json, sys; print(json.load(sys.stdin)["capabilities"]["p2p"])'
expect 0 "^\['maps heaps of its node'\]$" sh -c '"$0" info --json | python3 -c "$1"' "$gpushmem" "$json"
expect 0 '^PMIx +.*[0-9]+\.[0-9]+' "$gpushmem" info
expect 0 '^hwloc +API [0-9]+\.[0-9]+\.[0-9]+$' "$gpushmem" info
expect 0 '^libibverbs +([0-9]+(\.[0-9]+)*|unknown)$' "$gpushmem" info
expect 0 '^GPUSHMEM_HEAP_SIZE +256M +default ' "$gpushmem" info
expect 0 '^GPUSHMEM_HEAP_SIZE +1G +environment ' env GPUSHMEM_HEAP_SIZE=1024M "$gpushmem" info
expect 1 'GPUSHMEM_HEAP_SIZE=lots is not a size' env GPUSHMEM_HEAP_SIZE=lots "$gpushmem" info
expect 2 "unknown option '--everything'; see gpushmem info --help" "$gpushmem" info --everything
expect 2 "'everything' is one argument too many" "$gpushmem" info everything
expect 2 "'--peers' is one argument too many" "$gpushmem" info --settings-markdown --peers
expect 2 "option '--peers=2' takes no value" "$gpushmem" info --peers=2
expect 0 '^usage: gpushmem info' "$gpushmem" info --help
expect 0 '^NVSHMEM_SYMMETRIC_SIZE +size +GPUSHMEM_HEAP_SIZE +' "$gpushmem" info --compat
expect 0 '^SHMEM_SYMMETRIC_SIZE +size +GPUSHMEM_HEAP_SIZE +' "$gpushmem" info --compat
expect 0 '^PE 0 reaches PE 0 ' "$gpushmem" info --peers
expect 0 '^PE 2 on [^ ]*: 256 MiB in host memory; no NIC is open' "$gpushmem" run -n 3 "$gpushmem" info --peers
expect 0 '^PE 2 reaches PE 1 by p2p .*, kernels direct$' "$gpushmem" run -n 3 "$gpushmem" info --peers
expect 0 '^PE 0 reaches PE 1 by p2p .*, kernels by ring$' env GPUSHMEM_P2P=0 "$gpushmem" run -n 2 "$gpushmem" info --peers
json='import json, sys; a = json.load(sys.stdin)["pes"]; b = a[2]["reaches"][1]; print(len(a), len(a[2]["reaches"]), *b.values()); print(a[2]["has"])'
peers_json() { "$gpushmem" run -n 3 "$gpushmem" info --peers --json | python3 -c "$json"; }
expect 0 '^3 3 1 True p2p processor direct PE 1 by p2p ' peers_json
expect 0 '^PE 2 on [^ ]*: 256 MiB in host memory' peers_json
expect 2 "'--json' is one argument too many" "$gpushmem" info --compat --json
# Short: what a user should know, and what is set; all of it in lines that can be read.
expect 0 '^[0-9]+ more settings have their defaults; .gpushmem info --long. prints all' "$gpushmem" info
expect 0 '^GPUSHMEM_RINGS +7 +environment +command rings of each PE for the default context$' env GPUSHMEM_RINGS=7 "$gpushmem" info
! "$gpushmem" info | grep -q '^GPUSHMEM_RINGS' || { echo "info prints a setting for experts that nobody has set"; failed=1; }
[ "$("$gpushmem" info | grep '^GPUSHMEM_' | wc -L)" -le 120 ] || { echo "info prints long lines"; failed=1; }
expect 0 '^GPUSHMEM_RINGS = 4$' "$gpushmem" info --long
expect 0 '^    origin: default; allowed: 1 to 256$' "$gpushmem" info --long
expect 2 "'--json' is one argument too many" "$gpushmem" info --long --json
[ "$("$gpushmem" info --long | grep -c '^GPUSHMEM_.* = ')" = "$("$gpushmem" info --settings-markdown | grep -c '^| .GPUSHMEM_')" ] ||
    { echo "info --long does not print every setting"; failed=1; }
[ "$("$gpushmem" info --long | sed '1,/^GPUSHMEM/d' | wc -L)" -le 80 ] || { echo "info --long prints long lines"; failed=1; }
expect 1 'GPUSHMEM_HEAP_SIZE=lots is not a size' env GPUSHMEM_HEAP_SIZE=lots "$gpushmem" info --json
json='import json, sys; rows = {r["name"]: r for r in json.load(sys.stdin)["settings"]}; r = rows["GPUSHMEM_RINGS"]; print(*r.values())'
expect 0 '^GPUSHMEM_RINGS 7 environment 4 integer 1 to 256 command rings' \
    sh -c 'GPUSHMEM_RINGS=7 "$0" info --json | python3 -c "$1"' "$gpushmem" "$json"
# Halves of surrogate pairs, sequences that are too long, what is beyond U+10FFFF: none of it is UTF-8. The last one is.
odd=$(printf '\355\240\200/\340\200\200/\360\200\200\200/\364\220\200\200/\303\244')
json='import json, sys; rows = {r["name"]: r for r in json.load(sys.stdin)["settings"]}; print(ascii(rows["GPUSHMEM_TRACE"]["value"]))'
expect 0 '^.(\\ufffd){3}/(\\ufffd){3}/(\\ufffd){4}/(\\ufffd){4}/\\xe4.$' \
    sh -c 'GPUSHMEM_TRACE=$2 "$0" info --json | PYTHONUTF8=1 python3 -c "$1"' "$gpushmem" "$json" "$odd"
json='import json, sys; all = json.load(sys.stdin); print(*all["libraries"]); print(*all["libraries"].values(), sep="\n")
for r in all["compat"]: print(*r.values())'
shown() { "$gpushmem" info --json | python3 -c "$json"; }
expect 0 '^pmix hwloc libibverbs$' shown
expect 0 '^NVSHMEM_SYMMETRIC_SIZE size GPUSHMEM_HEAP_SIZE ' shown
expect 0 '^SHMEM_INFO obeyed None ' shown
[ "$(shown | grep -c SHMEM_)" = "$("$gpushmem" info --compat | grep -c '^N*V*SHMEM_')" ] ||
    { echo "info --json and info --compat have different numbers of variables"; failed=1; }
lines=$("$gpushmem" run -n 3 "$gpushmem" info --peers | wc -l)
[ "$lines" = 12 ] || { echo "info --peers on 3 PEs printed $lines lines, not 12"; failed=1; }
expect 0 '^PE 8 reaches PEs 0 to 8 by p2p, atomics by processor, kernels direct$' "$gpushmem" run -n 9 "$gpushmem" info --peers
exit $failed
