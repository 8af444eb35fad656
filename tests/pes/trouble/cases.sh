# SPDX-License-Identifier: BSD-3-Clause
# Cases of bad conditions, for the scripts beside this one, which set `failures` to 0 first; `unwanted` is what no output may
# have.
# shellcheck shell=bash
: "${unwanted:=}"

# clean OUTPUT
clean() {
    [ -z "$unwanted" ] || ! grep -qF -- "$unwanted" <<<"$1"
}

# attempt COMMAND...: runs it for a minute at most; sets `code` and `output`.
attempt() {
    output=$(timeout 60 "$@" 2>&1 </dev/null)
    code=$?
}

# verdict CASE EXPECTED: whether what was tried last is as expected ($? of the command before); says so.
verdict() {
    if [ $? -eq 0 ] && clean "$output"; then
        echo "ok: $1"
    else
        echo "FAILED: $1: exit code $code, expected $2, got:" "$output"
        failures=$((failures + 1))
    fi
}

has() {
    grep -qF -- "$1" <<<"$output"
}

# says CASE WORDS COMMAND...: the command fails within a minute and its output has the words.
says() {
    attempt "${@:3}"
    [ "$code" -ne 0 ] && [ "$code" -ne 124 ] && has "$2"
    verdict "$1" "a failure that says '$2'"
}

# works CASE WORDS COMMAND...: the command succeeds and its output has the words.
works() {
    attempt "${@:3}"
    [ "$code" -eq 0 ] && has "$2"
    verdict "$1" "success and '$2'"
}

# works_without CASE WORDS COMMAND...: the command succeeds and its output does not have the words.
works_without() {
    attempt "${@:3}"
    [ "$code" -eq 0 ] && ! has "$2"
    verdict "$1" "success and nothing of '$2'"
}
