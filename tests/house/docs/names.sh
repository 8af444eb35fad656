#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# names.sh SOURCE CXX DEVICE_INCLUDE: what the Markdown files name exists: functions, GPUSHMEM_* variables, macros and options of
# CMake, command line options, and source files.
set -euo pipefail
source=$1 cxx=$2 device_include=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$source"

mapfile -t pages < <(find . \( -path ./build -o -path ./.git \) -prune -o -name '*.md' ! -name CHANGELOG.md -print)
mapfile -t sources < <(find CMakeLists.txt CMakePresets.json cmake device examples include runtime tests transports -type f \
    ! -name '*.md' ! -name '*.png' ! -name '*.pgm' ! -name names.sh)

# missing PATTERN KNOWN: the names of that pattern in the pages that the file of known ones lacks.
missing() {
    grep -ohE "$1" "${pages[@]}" | sed 's/^[^A-Za-z-]//' | sort -u | comm -23 - "$2" |
        sed 's/.*/& is named in the documentation, but exists nowhere/'
}

# Most functions are made by macros, so the preprocessor has to say which there are. The rest is as written: variables, CMake.
printf '#include "gpushmem/gpushmem.h"\n#include "gpushmem/coll_grid.cuh"\n' |
    "$cxx" -std=c++17 -E -P -xc++ -Iinclude -I"$device_include" - >"$work/headers"
grep -ohE '\b[A-Za-z_][A-Za-z0-9_]*\b' "$work/headers" "${sources[@]}" | sort -u >"$work/words"
{
    cat "$work/words"
    grep -ohE '\bGPUSHMEM_[A-Z0-9_]+' docs/settings.md # which is made of the tables of settings
    # constants that tests move, and what they were called as settings
    sed -nE 's/.*\bTEST, [a-z_0-9]+, ([A-Z_0-9]+),.*/GPUSHMEM_\1\nGPUSHMEM_TEST_\1/p' runtime/core/settings.def transports/*/settings.def
    # "GPUSHMEM_STAGE_*", "gpushmem_dev_*": what others begin with
    sed -n 's/_[^_]*$/_/p' "$work/words"
    sed -n 's/_[^_]*_[^_]*$/_/p' "$work/words"
    sed -n 's/^\(GPUSHMEM_[A-Z]*_\).*/\1/p; s/^\(gpushmem_[a-z]*_\).*/\1/p' "$work/words" <(grep -ohE 'GPUSHMEM_[A-Z0-9_]+' docs/settings.md)
    printf '%s\n' GPUSHMEM_ gpushmem_ gpushmem_TYPE_put gpushmem_noun_verb gpushmem_X gpushmem_dev_X gpushmem_dev_ctx_X
} | sort -u >"$work/known"
# Options are written "name" where a program parses them, and --name where one is called. The last ones are of others' programs.
{
    grep -ohE -- '--[a-z][a-z-]+' "${sources[@]}"
    grep -ohE '"[a-z][a-z-]+"' "${sources[@]}" | tr -d '"' | sed 's/^/--/'
    printf '%s\n' --bind-to --ipc --map-by --no-python --nproc-per-node --ntasks-per-node --test-dir
} | sort -u >"$work/options"
{
    printf '%s\n' "${sources[@]##*/}" app.cu my-test.sh stdio.h
    grep -ohE '`(greet|relay|ring)\.(cu|c)`' "${pages[@]}" | tr -d '`' # programs that the pages print
} | sort -u >"$work/files"

failed=0
{
    missing '\b(GPUSHMEM|gpushmem)_[A-Za-z0-9_]+' "$work/known"
    missing '(^|[ `(])--[a-z][a-z-]+' "$work/options"
    missing '\b[a-z][A-Za-z0-9_-]+\.(c|h|cuh|hpp|cu|def|sh|cmake)\b' "$work/files"
} >"$work/report"
cat "$work/report"
[ ! -s "$work/report" ] || failed=1
exit $failed
