#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Calls that fail and cannot return it, under each value of GPUSHMEM_ON_ERROR.
# usage: void_calls.sh GPUSHMEM PROGRAM PREFIX
set -u
gpushmem=$1
program=$2
prefix=$3
failures=0
export GPUSHMEM_TRANSPORTS=p2p GPUSHMEM_HEAP_SIZE=16M
# shellcheck source=tests/pes/trouble/cases.sh
. "${BASH_SOURCE[0]%/*}/cases.sh"

# fails WAY VALUE [NAME=VALUE...]
fails() {
    attempt env GPUSHMEM_ON_ERROR="$2" "${@:3}" "$gpushmem" run -n 2 "$program" "$1"
}

# lines COUNT PATTERN: so many lines of the output are like that.
lines() {
    local n
    n=$(grep -Ec -- "$2" <<<"$output")
    [ "$n" = "$1" ] || {
        echo "$n lines like '$2', not $1"
        false
    }
}

first() {
    lines 10 " WARN ($prefix|api): " && lines 1 "WARN $prefix: ${prefix}_int_p: there is no PE 99;" &&
        lines 1 "WARN $prefix: ${prefix}_int_p: there is no PE 98;" && lines 1 "WARN .*_int_p: there is no PE -1;" &&
        lines 1 "WARN $prefix: ${prefix}_int_atomic_inc: " && lines 1 "WARN $prefix: ${prefix}_int_put: .*not in the symmetric" &&
        lines 1 "WARN $prefix: ${prefix}_int_g: " && lines 1 "WARN $prefix: ${prefix}_int_atomic_fetch: " &&
        lines 1 "WARN api: a call failed that could not return it: gpushmem_int_atomic_fetch: there is no PE 97" &&
        lines 1 "WARN api: .*: gpushmem_signal_fetch: " && lines 1 "WARN api: .*: gpushmem_int_test_any: "
}

fails all warn
[ $code = 0 ] && first && lines 0 ' ERROR ' && lines 2 '^went on'
verdict "the first of each kind and PE" "ten warnings"
lines 1 ' more calls? failed' &&
    lines 1 "WARN finalize: 12 more calls failed that could not return it: 3 of \"${prefix}_int_put: # is not in the symmetric heap\""
verdict "the others" "their number at finalize"

attempt "$gpushmem" run -n 2 "$program" all
[ $code = 0 ] && first
verdict "without the setting" "warnings"

fails twice warn
[ $code = 0 ] && first && lines 2 ' more calls failed' && lines 1 'finalize: 12 more' && lines 1 'finalize: 22 more'
verdict "a second job of the process" "counts of its own"

fails threads warn
[ $code = 0 ] && lines 1 "WARN $prefix: " && lines 1 "finalize: 7999 more calls failed that could not return it: 7999 of \"${prefix}_int_p: there is no PE 96\""
verdict "8 threads at once" "one warning and 7999 counted"

fails threads warn GPUSHMEM_LOG_LEVEL=error
[ $code = 0 ] && lines 0 gpushmem
verdict "without warnings in the log" "silence"

for way in all twice threads returned; do
    fails $way ignore
    [ $code = 0 ] && lines 0 ' WARN ' && { [ $way = returned ] || lines 0 ' ERROR '; } && lines 2 '^went on'
    verdict "ignored: $way" "silence"
done

fails all abort
[ $code = 1 ] && lines 1 " ERROR $prefix: ${prefix}_int_p: there is no PE 99;.*; the job ends \(GPUSHMEM_ON_ERROR=abort\)" &&
    lines 0 ' WARN ' && lines 0 '^went on'
verdict "the job ends" "status 1 and the sentence"
fails own abort
[ $code = 1 ] && lines 1 ' ERROR api: gpushmem_int_atomic_fetch: there is no PE 97;.*the job ends' && lines 0 '^went on'
verdict "the job ends, by the library's own names" "status 1 and the sentence"
fails threads abort
[ $code = 1 ] && lines 1 ' ERROR .*the job ends' && lines 0 '^went on'
verdict "the job ends, 8 threads" "status 1 and one sentence"
fails threads abort GPUSHMEM_ON_PE_FAILURE=notify
[ $code = 1 ] && lines 1 ' ERROR .*the job ends' && lines 0 '^went on'
verdict "the job ends, also one that outlives PEs" "status 1 and one sentence"
for way in returned none; do
    fails $way abort
    [ $code = 0 ] && lines 2 '^went on' && lines 0 'the job ends'
    verdict "failures that the program is told: $way" "the job goes on"
done
for bad in GPUSHMEM_HEAP_SIZE=lots "${prefix^^}_SYMMETRIC_SIZE=lots" GPUSHMEM_LOG_FILE=/nowhere/log GPUSHMEM_SETTINGS_FILE=/nowhere; do
    fails start abort "$bad"
    [ $code = 1 ] && has 'the job ends (GPUSHMEM_ON_ERROR=abort)' && lines 0 '^went on'
    verdict "init that returns nothing, $bad" "the job ends"
    fails refused abort "$bad"
    [ $code = 0 ] && lines 2 '^went on' && has ' ERROR '
    verdict "init that returns a status, $bad" "the program goes on"
    fails start warn "$bad"
    [ $code = 0 ] && lines 2 '^went on' && lines 0 'WARN .*gpushmem_barrier_all' &&
        lines 1 "WARN $prefix: ${prefix}_barrier_all was called before ${prefix}_init or after"
    verdict "the first call after init failed, $bad" "one warning"
done
fails waits warn GPUSHMEM_HANG_REPORT=1
[ $code = 0 ] && lines 1 "WARN wait: in ${prefix}_int_wait_until for 1 s" &&
    grep -Eq "gpushmem run: PE 0 is in ${prefix}_int_wait_until, waiting for the word" <<<"$output"
verdict "a wait that lasts" "the call's name in the program"
fails full ignore
[ $code = 0 ] &&
    grep -q "ERROR $prefix: ${prefix}_malloc: no block .*raise ${prefix^^}_SYMMETRIC_SIZE, GPUSHMEM_HEAP_SIZE or" <<<"$output"
verdict "an allocation that finds no room" "the variables by both names"
fails child abort
[ $code = 0 ] && lines 2 '^went on' && lines 1 "WARN $prefix: ${prefix}_int_p.*forked"
verdict "a child of a fork" "the job goes on, and one warning"

fails none often
[ $code != 0 ] && has "GPUSHMEM_ON_ERROR"
verdict "another value" "it is refused"
[ $failures -eq 0 ]
