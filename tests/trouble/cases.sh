# SPDX-License-Identifier: BSD-3-Clause
# Cases of bad conditions, for the scripts beside this one, which set `failures` to 0 first; `unwanted` is what no output may
# have.
# shellcheck shell=bash
: "${unwanted:=}"

# clean OUTPUT
clean() {
    [ -z "$unwanted" ] || ! grep -qF -- "$unwanted" <<<"$1"
}

# says CASE WORDS COMMAND...: the command fails within a minute and its output has the words.
says() {
    local name=$1 words=$2 output code
    shift 2
    output=$(timeout 60 "$@" 2>&1 </dev/null)
    code=$?
    if [ $code -ne 0 ] && [ $code -ne 124 ] && grep -qF -- "$words" <<<"$output" && clean "$output"; then
        echo "ok: $name"
    else
        echo "FAILED: $name: exit code $code, expected a failure that says '$words', got:" "$output"
        failures=$((failures + 1))
    fi
}

# works CASE WORDS COMMAND...: the command succeeds and its output has the words.
works() {
    local name=$1 words=$2 output code
    shift 2
    output=$(timeout 60 "$@" 2>&1 </dev/null)
    code=$?
    if [ $code -eq 0 ] && grep -qF -- "$words" <<<"$output" && clean "$output"; then
        echo "ok: $name"
    else
        echo "FAILED: $name: exit code $code, expected success and '$words', got:" "$output"
        failures=$((failures + 1))
    fi
}

# works_without CASE WORDS COMMAND...: the command succeeds and its output does not have the words.
works_without() {
    local name=$1 words=$2 output code
    shift 2
    output=$(timeout 60 "$@" 2>&1 </dev/null)
    code=$?
    if [ $code -eq 0 ] && ! grep -qF -- "$words" <<<"$output" && clean "$output"; then
        echo "ok: $name"
    else
        echo "FAILED: $name: exit code $code, expected success and nothing of '$words', got:" "$output"
        failures=$((failures + 1))
    fi
}
