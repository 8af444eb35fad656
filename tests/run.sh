#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# run.sh: installs what is missing, builds, and runs every test; the last line is "N passed, N failed".
#
#   run.sh [--preset P] [--label ROOM] [--quick] [--long]
#     --preset P      only this preset: dev, asan, tsan or nocuda
#     --label ROOM    only the tests of this room, which is a folder of tests/ (in dev, unless --preset says otherwise)
#     --quick         only dev, without the guest, launchers, faults and benchmarks
#     --long          also what takes minutes and finds little that the rest does not: most of what runs in the guest
#
# By default: all tests in dev; those that sanitizers are good for in asan and tsan; in nocuda what differs there.
# The exit code is 0 if at least one test ran and none failed. A build that fails counts as a failed test.
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cd "$here/.." || exit 1

# Which labels each preset runs; "." is every test. Labels are rooms; a preset's own name is the label of tests that it takes
# from other rooms.
declare -A labels=(
    [dev]=.
    [asan]='^(unit|pes|device|gpu|asan)$'
    [tsan]='^tsan$'
    [nocuda]='^nocuda$'
)
# What they leave out: the guest is covered by dev; under a sanitizer it would take minutes and find what pes finds.
declare -A excluded=([dev]='^long$' [asan]='^(guest|dev|long)$' [tsan]='^(guest|dev|long)$' [nocuda]='^(guest|dev|long)$')
heavy='^(guest|dev|long|launch|fault|perf)$' # and with --quick
presets=(dev asan tsan nocuda)
jobs=$(($(nproc) + 1)) # many tests wait for something most of the time
shown=25               # of the slowest tests
passed=0 failed=0 skipped=0

die() {
    echo "run.sh: $*" >&2
    exit 1
}

usage() {
    sed -n '3,/^set -/{/^set -/d;s/^# \{0,1\}//;p}' "${BASH_SOURCE[0]}"
}

parse_options() {
    local label='' preset=''
    while [ $# -gt 0 ]; do
        case $1 in
        --help | -h) usage && exit 0 ;;
        --long) excluded[dev]='' && shift && continue ;;
        --quick) preset=${preset:-dev} excluded[dev]=$heavy && shift && continue ;;
        --label | --preset) [ $# -ge 2 ] || die "$1 needs a value (run.sh --help)" ;;
        *) die "unknown option $1 (run.sh --help)" ;;
        esac
        [ "$1" = --label ] && label=$2 || preset=$2
        shift 2
    done
    [ -z "$label" ] || preset=${preset:-dev}
    if [ -n "$preset" ]; then
        [ -n "${labels[$preset]:-}" ] || die "no preset '$preset': dev, asan, tsan, nocuda"
        presets=("$preset")
    fi
    [ -z "$label" ] || labels[${presets[0]}]="^$label\$" excluded[${presets[0]}]=''
}

# run_logged LOG COMMAND...: quiet unless it fails, or seen live on a terminal.
run_logged() {
    local log=$1
    shift
    if [ -t 1 ]; then
        "$@" 2>&1 | tee "$log"
        return "${PIPESTATUS[0]}"
    fi
    "$@" >"$log" 2>&1 || { tail -n 60 "$log" && return 1; }
}

# Everything in dev; in the other presets what their tests need (cmake/GpushmemTests.cmake).
build() {
    local preset=$1 dir=build/$1 begin=$SECONDS
    local -a targets=(all) programs=()
    mkdir -p "$dir"
    if [ "$preset" != dev ]; then
        read -r -a targets <<<"$(tr -d '^()$' <<<"${labels[$preset]}" | tr '|' ' ')"
        targets=("${targets[@]/#/tests_}")
    fi
    echo "== $preset: configure and build"
    # Where no GPU will run the programs, PTX has all that a compiler objects to; the assembler would take longer than all else.
    [ -e /dev/nvidiactl ] || programs=(-DCMAKE_CUDA_ARCHITECTURES=90-virtual)
    run_logged "$dir/configure.log" cmake --preset "$preset" -G Ninja -Wno-dev "${programs[@]}" &&
        run_logged "$dir/build.log" cmake --build "$dir" -j "$(nproc)" --target "${targets[@]}" &&
        echo "   built in $((SECONDS - begin)) s"
}

# Adds up ctest's line per test: "3/40 Test #3: name ....   Passed    0.10 sec". What is disabled counts nowhere.
count() {
    local -a counts
    read -r -a counts < <(awk '
        $1 ~ /^[0-9]+\/[0-9]+$/ && / Test +#[0-9]+: / {
            if (/ Passed +[0-9.]+ sec$/) passed++
            else if (/\*\*\*Skipped/) skipped++
            else if (!/\(Disabled\)/) failed++
        }
        END {print passed + 0, failed + 0, skipped + 0}' "$1")
    passed=$((passed + counts[0])) failed=$((failed + counts[1])) skipped=$((skipped + counts[2]))
}

run_tests() {
    local preset=$1 log=build/$1/tests.log
    echo "== $preset: tests"
    ctest --test-dir "build/$preset" -j "$jobs" --output-on-failure -L "${labels[$preset]}" \
        ${excluded[$preset]:+-LE "${excluded[$preset]}"} 2>&1 | tee "$log" | readable
    count "$log"
    slowest "$log"
}

# The tests that took longest.
slowest() {
    echo "   slowest:"
    awk '$1 ~ /^[0-9]+\/[0-9]+$/ && / sec$/ {
            sub(/.*Test +#[0-9]+: /, "")
            printf "   %8.1f s %s\n", $(NF - 1), $1
        }' "$1" | sort -rn | head -n "$shown"
}

# Without ctest's start lines, and with its times by label as a table, the longest first: label, seconds of all its tests
# together, their number.
readable() {
    awk '/^Label Time Summary/ {summary = 1; next}
        /^Total Test time/ {summary = 0}
        summary && NF {
            line[++lines] = $0
            next
        }
        summary || / Start +[0-9]+: / || /^Internal ctest/ || /^Test project/ || /^$/ {next}
        {print; fflush()}
        END {
            for (i = 1; i <= lines; i++) {
                split(line[i], half, "=")
                split(half[2], word, " ")
                split(half[1], label, " ")
                printf "   %-12s %8.1f s %5d\n", label[1], word[1], substr(word[3], 2) | "sort -k2,2 -rn"
            }
        }'
}

main() {
    local preset begin=$SECONDS
    parse_options "$@"
    # Settings of the caller's shell must not change what is tested.
    for name in $(compgen -e GPUSHMEM_); do
        unset "$name"
    done
    export LSAN_OPTIONS=suppressions=$here/lsan.supp:print_suppressions=0
    "$here/setup.sh" || die "setting up failed (see above)"
    for preset in "${presets[@]}"; do
        if build "$preset"; then
            run_tests "$preset"
        else
            echo "run.sh: preset $preset does not build (build/$preset/configure.log, build.log)"
            failed=$((failed + 1))
        fi
    done
    echo "== $((SECONDS - begin)) s, $skipped skipped"
    echo "$passed passed, $failed failed"
    [ "$failed" = 0 ] && [ "$passed" -gt 0 ]
}

main "$@"
