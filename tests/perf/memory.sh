#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# memory.sh GPUSHMEM_PERF: with a heap in GPU memory, -d puts each end where it says, the rows tell so, and what cannot be
# measured there is told in a sentence. With a heap in host memory there is no GPU memory to measure.
set -u
perf=$1
failed=0

problem() {
    echo "$*"
    failed=1
}

# memories LOCAL REMOTE TEST...: each row says so.
memories() {
    local d="$1 $2" text
    text=$("$perf" -d "$1" "$2" "${@:3}" --issuer host --sizes 4K -r 3 --json - 2>&1) || problem "-d $d failed: $text"
    [ "$(grep -c '"latency_us_p50"' <<<"$text")" = "$(grep -c "\"memory\": \"$d\"" <<<"$text")" ] || problem "-d $d: $text"
    grep -q '"memory"' <<<"$text" || problem "-d $d has no row: $text"
}

memories D D put-lat
memories H D put-lat get-bw
memories D H get-lat
memories H H put-bw
text=$("$perf" -d D H put-lat amo --issuer both --sizes 8 -r 3 2>&1) || problem "failed: $text"
for sentence in 'put-lat, issued by kernels, is left out: kernels and streams reach the heap only' \
    'amo, issued by the host, is left out: its buffers are always in the heap'; do
    [ "$(grep -c "$sentence" <<<"$text")" = 1 ] || problem "no '$sentence' in: $text"
done
text=$("$perf" -d D H amo --issuer host 2>&1) && problem "a run without rows succeeded: $text"
text=$(GPUSHMEM_HEAP_KIND=host "$perf" -d H D put-lat 2>&1) && problem "-d H D succeeded without GPU memory: $text"
grep -q 'perf: -d H D needs a heap in GPU memory' <<<"$text" || problem "-d H D: $text"
exit $failed
