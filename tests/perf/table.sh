#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# table.sh: measures everything between two PEs of this machine and prints the tables of docs/benchmarks.md.
#
#   table.sh [--preset P] [--seconds S] [--update]
#     --preset P    the build to measure, build/P (default release)
#     --seconds S   time for each row (default 0.5)
#     --update      put the tables into docs/benchmarks.md, in place of those that are there
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
preset=release seconds=0.5 update=''

die() {
    echo "table.sh: $*" >&2
    exit 1
}

machine() {
    local model cores compiler
    model=$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)
    cores=$(nproc)
    compiler=$("$bin/gpushmem" info | sed -n 's/^compiler *//p')
    echo "Measured $(date -u +%F) at $(git -C "$root" rev-parse --short HEAD) on: ${model:-$(uname -m)}, $cores cores for this job,"
    echo "$(uname -s) $(uname -r), $compiler, preset $preset, load average before: $(cut -d ' ' -f 1 /proc/loadavg)."
}

# Makes the columns of a Markdown table as wide as their widest cell; figures are flush right.
align() {
    awk -F ' *[|] *' '
        { for (c = 2; c < NF; c++) { cell[NR, c] = $c; if (length($c) > wide[c]) wide[c] = length($c) } }
        END {
            for (r = 1; r <= NR; r++) {
                line = "|"
                for (c = 2; c < NF; c++) {
                    right = cell[2, c] ~ /:$/
                    if (r == 2) { text = sprintf("%*s", wide[c] + 1, ""); gsub(/ /, "-", text); text = text (right ? ":" : "-") }
                    else text = sprintf(right ? " %*s " : " %-*s ", wide[c], cell[r, c])
                    line = line text "|"
                }
                print line
            }
        }'
}

# Leaves out the columns that say the same in every row of these tables, and the rarest samples.
narrow() {
    awk -F ' *[|] *' '
        NR == 1 { for (c = 2; c < NF; c++) keep[c] = $c !~ /^(issuer|PEs|transport|memory|p99[.]9 us|max us)$/ }
        { line = "|"; for (c = 2; c < NF; c++) if (keep[c]) line = line " " $c " |"; print line }'
}

# section TITLE ARGUMENT...
section() {
    echo
    echo "### $1"
    echo
    shift
    echo "\`gpushmem perf $*\`"
    echo
    "$bin/gpushmem" perf "$@" --markdown --seconds "$seconds" --quiet | narrow | align
}

tables() {
    machine
    section "Two PEs, issued by the host" put-lat get-lat amo barrier put-bw get-bw --issuer host \
        --sizes 8,4096,65536,1048576
    section "Two PEs, issued by kernels on CPU threads" put-lat get-lat amo barrier --issuer device --sizes 8,65536
    section "The command ring, one PE" ring
}

replace_tables() {
    local doc=$root/docs/benchmarks.md
    grep -q '^<!-- tables -->$' "$doc" && grep -q '^<!-- end of tables -->$' "$doc" || die "$doc has lost its marks"
    {
        sed '/^<!-- tables -->$/q' "$doc"
        cat "$1"
        sed -n '/^<!-- end of tables -->$/,$p' "$doc"
    } >"$doc.new"
    mv "$doc.new" "$doc"
}

while [ $# -gt 0 ]; do
    case $1 in
    --help | -h) sed -n '3,/^set -/{/^set -/d;s/^# \{0,1\}//;p}' "${BASH_SOURCE[0]}" && exit 0 ;;
    --update) update=1 && shift && continue ;;
    --preset | --seconds) [ $# -ge 2 ] || die "$1 needs a value (table.sh --help)" ;;
    *) die "unknown option $1 (table.sh --help)" ;;
    esac
    [ "$1" = --preset ] && preset=$2 || seconds=$2
    shift 2
done
bin=$root/build/$preset/bin
[ -x "$bin/gpushmem" ] || die "$bin/gpushmem is missing: cmake --preset $preset -G Ninja && cmake --build build/$preset"
export GPUSHMEM_TRANSPORTS=p2p
if [ -n "$update" ]; then
    text=$(mktemp)
    trap 'rm -f "$text"' EXIT
    tables | tee "$text"
    replace_tables "$text"
else
    tables
fi
