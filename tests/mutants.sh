#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# mutants.sh: whether the tests notice mistakes. Plants those of mutants.txt one by one into a copy of the last commit, builds
# what the tests named there need, and runs these.
#
#   mutants.sh [--dir DIR] [--commit C] [--cmake OPTION]... [NAME...]
#     --dir DIR      the copy, a worktree of git that is kept for the next call (else one in /tmp that goes at the end)
#     --commit C     instead of the last one
#     --cmake X      an option more for configuring
#     NAME           only these, or those of a room: verbs, verbs.fence (all)
#
# A line for each: NAME, found or MISSED (or "not there": the text has moved; "does not build"), the test that found it, seconds.
# At first the tests run without any fault: one that fails then is named and left out. The exit code is 0 if all were found.
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
top=$(git -C "$here" rev-parse --show-toplevel)
dir='' commit=HEAD names=() options=() bad=()

die() {
    echo "mutants.sh: $*" >&2
    exit 2
}

while [ $# -gt 0 ]; do
    case $1 in
    --help | -h) sed -n '3,/^set -/{/^set -/d;s/^# \{0,1\}//;p}' "$0" && exit 0 ;;
    --dir | --commit | --cmake)
        [ $# -ge 2 ] || die "$1 needs a value"
        case $1 in --dir) dir=$2 ;; --commit) commit=$2 ;; *) options+=("$2") ;; esac
        shift 2
        ;;
    -*) die "unknown option $1 (mutants.sh --help)" ;;
    *) names+=("$1") && shift ;;
    esac
done

copy_make() {
    if [ -z "$dir" ]; then
        dir=$(mktemp -d) && trap 'git -C "$top" worktree remove --force "$dir"' EXIT
    fi
    if [ -e "$dir/.git" ]; then
        git -C "$dir" checkout -q --force --detach "$(git -C "$top" rev-parse "$commit")"
    else
        git -C "$top" worktree add -q --force --detach "$dir" "$commit"
    fi || die "no copy in $dir"
    build=$dir/build/dev
    (cd "$dir" && cmake --preset dev -G Ninja -Wno-dev -DGPUSHMEM_WERROR=OFF -DCMAKE_CUDA_ARCHITECTURES=90-virtual ${options[@]+"${options[@]}"}) \
        >"$dir/mutants.log" 2>&1 && ninja -C "$build" >>"$dir/mutants.log" 2>&1 || die "the copy does not build: $dir/mutants.log"
}

# What the commands and the environments of the tests name in the build.
needed() {
    ctest --test-dir "$build" --show-only=json-v1 -R "$1" | grep -oE "$build/(bin|lib)/[A-Za-z0-9_./-]+" | sort -u |
        while read -r path; do [ ! -f "$path" ] || echo "${path#"$build/"}"; done
}

# run_tests REGEX [all]: prints the first test that failed, or all of them.
run_tests() {
    local leave='' stop=1
    [ "${2:-}" != all ] || stop=''
    [ ${#bad[@]} = 0 ] || leave="^($(IFS='|' && echo "${bad[*]//./[.]}"))\$"
    # A fault may hang a test: the limit is far above what any of them takes.
    ctest --test-dir "$build" -R "$1" ${leave:+-E "$leave"} -j "$(nproc)" --timeout 90 ${stop:+--stop-on-failure} 2>/dev/null |
        sed -nE 's/^ *[0-9]+\/[0-9]+ Test +#[0-9]+: ([^ ]+) .*(\*\*\*Failed|\*\*\*Timeout|\*\*\*Exception|\*\*\*Not Run|\(Failed\)).*/\1/p'
}

# plant FILE OLD NEW
plant() {
    OLD=$2 NEW=$3 perl -0pi -e 'BEGIN { $code = 1 } $n = () = /\Q$ENV{OLD}\E/g; if ($n == 1) { s/\Q$ENV{OLD}\E/$ENV{NEW}/; $code = 0 }
        END { $? = $code }' "$dir/$1" 2>/dev/null
}

one() {
    local name=$1 file=$2 old=$3 new=$4 tests=$5 begin=$SECONDS result by=''
    if ! plant "$file" "$old" "$new"; then
        result='not there'
    elif ! needed "$tests" | xargs ninja -C "$build" >"$dir/mutants.log" 2>&1; then
        result='does not build'
    else
        by=$(run_tests "$tests" | head -n 1)
        [ -n "$by" ] && result=found || result=MISSED
    fi
    git -C "$dir" checkout -q -- .
    printf '%-20s %-14s %-36s %4d s\n' "$name" "$result" "$by" $((SECONDS - begin))
    [ "$result" = found ]
}

is_wanted() {
    local name
    [ ${#names[@]} = 0 ] && return 0
    for name in "${names[@]}"; do
        [ "$1" = "$name" ] || [ "${1%%.*}" = "$name" ] && return 0
    done
    return 1
}

# each COMMAND: with what the table says of each fault that is wanted.
each() {
    local line name='' file old='' new='' status=0
    while IFS= read -r line <&3; do
        case $line in
        '- '*) old=${line#- } ;;
        '+ '*) new=${line#+ } ;;
        '? '*) ! is_wanted "$name" || "$@" "$name" "$file" "$old" "$new" "${line#\? }" || status=1 ;;
        '#'* | '') ;;
        *) read -r name file <<<"$line" ;;
        esac
    done 3<"$here/mutants.txt"
    return $status
}

regex() {
    printf '%s|' "$5"
}

copy_make
all=$(each regex)
mapfile -t bad < <(run_tests "${all%|}" all)
[ ${#bad[@]} = 0 ] || echo "without any fault: ${bad[*]}"
each one
