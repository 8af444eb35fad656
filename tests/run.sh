#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# run.sh: installs what is missing, builds, and runs every test; the last line is "N passed, N failed".
#
#   run.sh [--preset P] [--label ROOM] [--quick] [--long] [--strict]
#     --preset P      only this preset: dev, asan, tsan or nocuda
#     --label ROOM    only the tests of this room, which is a folder of tests/ (in dev, unless --preset says otherwise)
#     --quick         only dev, without the guest, launchers, faults and benchmarks
#     --long          also what takes minutes and finds little that the rest does not: most of what runs in the guest
#     --strict        a test that failed at first is failed
#
# By default: all tests in dev; those that sanitizers are good for in asan and tsan; in nocuda what differs there.
# A test that fails is run once more at the end, alone; the last line but one names those that passed only then.
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
chance=10              # more failures than these are not run again
passed=0 failed=0 skipped=0 strict='' long=''
failures=() lucky=() # "PRESET TEST"

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
        --long) long=1 excluded[dev]='' && shift && continue ;;
        --strict) strict=1 && shift && continue ;;
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

# nvcc's for code that nobody will run, where it knows one (CUDA 13 does).
fast_flag() {
    local nvcc
    nvcc=$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)
    "$nvcc" --help 2>/dev/null | grep -- --Ofast-compile >/dev/null && echo --Ofast-compile=max
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
    # Where no GPU will run the programs, PTX has all that a compiler objects to, and one file tells it of many programs.
    [ -e /dev/nvidiactl ] || programs=(-DCMAKE_CUDA_ARCHITECTURES=90-virtual -DCMAKE_CUDA_FLAGS_RELWITHDEBINFO=-O0
        "-DCMAKE_CUDA_FLAGS=$(fast_flag)" -DGPUSHMEM_CUDA_TOGETHER=ON)
    # Nobody will debug these programs; the device headers are optimised fully in device_unchecked alone. In nocuda one source
    # of the library is another one, and has no code; dev has made errors of the others' warnings, some of which are wrong
    # without an optimiser.
    case $preset in
    dev) programs+=("-DCMAKE_C_FLAGS_RELWITHDEBINFO=-O2 -g1" "-DCMAKE_CXX_FLAGS_RELWITHDEBINFO=-O1 -g1") ;;
    nocuda) programs+=(-DCMAKE_C_FLAGS_RELWITHDEBINFO=-O0 -DCMAKE_CXX_FLAGS_RELWITHDEBINFO=-O0 -DGPUSHMEM_WERROR=OFF) ;;
    esac
    run_logged "$dir/configure.log" cmake --preset "$preset" -G Ninja -Wno-dev "${programs[@]}" &&
        run_logged "$dir/build.log" cmake --build "$dir" -j "$(nproc)" --target "${targets[@]}" &&
        echo "   built in $((SECONDS - begin)) s"
}

# "passed NAME", "skipped NAME" or "failed NAME" for each of ctest's lines: "3/40 Test #3: name ....   Passed    0.10 sec".
# What is disabled counts nowhere.
results() {
    awk '$1 ~ /^[0-9]+\/[0-9]+$/ && / Test +#[0-9]+: / {
            result = / Passed +[0-9.]+ sec$/ ? "passed" : /\*\*\*Skipped/ ? "skipped" : /\(Disabled\)/ ? "" : "failed"
            sub(/.*Test +#[0-9]+: /, "")
            if (result) print result, $1
        }' "$1"
}

count() {
    local preset=$1 result name
    while read -r result name; do
        case $result in
        passed) passed=$((passed + 1)) ;;
        skipped) skipped=$((skipped + 1)) ;;
        failed) failures+=("$preset $name") ;;
        esac
    done < <(results "build/$preset/tests.log")
}

# The tests that failed once more, one by one.
run_again() {
    local failure preset name log
    for failure in "${failures[@]}"; do
        read -r preset name <<<"$failure"
        log=build/$preset/again.log
        echo "== $preset: $name again, alone"
        ctest --test-dir "build/$preset" --output-on-failure -R "^${name//./[.]}\$" >"$log" 2>&1
        readable <"$log"
        if results "$log" | grep -qxF "passed $name"; then
            lucky+=("$failure")
        else
            failed=$((failed + 1))
        fi
    done
}

# Counts what failed, after a second try where chance may have a part in it.
settle() {
    if [ -n "$strict" ] || [ ${#failures[@]} -gt "$chance" ]; then
        failed=$((failed + ${#failures[@]}))
    else
        run_again
    fi
    passed=$((passed + ${#lucky[@]}))
}

run_tests() {
    local preset=$1 log=build/$1/tests.log
    echo "== $preset: tests"
    ctest --test-dir "build/$preset" -j "$jobs" --output-on-failure -L "${labels[$preset]}" \
        ${excluded[$preset]:+-LE "${excluded[$preset]}"} 2>&1 | tee "$log" | readable
    count "$preset"
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
    { "$here/setup.sh" && { [ -z "$long" ] || "$here/setup.sh" long; }; } || die "setting up failed (see above)"
    for preset in "${presets[@]}"; do
        if build "$preset"; then
            run_tests "$preset"
        else
            echo "run.sh: preset $preset does not build (build/$preset/configure.log, build.log)"
            failed=$((failed + 1))
        fi
    done
    settle
    echo "== $((SECONDS - begin)) s, $skipped skipped"
    [ ${#lucky[@]} = 0 ] ||
        echo "!! ${#lucky[@]} passed only when run again alone:$(printf ' %s,' "${lucky[@]}" | sed 's/,$//')"
    echo "$passed passed, $failed failed"
    [ "$failed" = 0 ] && [ "$passed" -gt 0 ]
}

main "$@"
