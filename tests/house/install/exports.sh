#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# shellcheck disable=SC2086 # words are split on purpose
# The shared library exports gpushmem_*, each function also as pgpushmem_* (gpushmem/profile.h), and nothing else; and
# everything that the headers declare. usage: exports.sh LIBRARY
set -eu
library=$1
include=$(cd "$(dirname "$0")/../../../include" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
nm -D --defined-only "$library" | awk '$2 != "A" {sub(/@.*/, "", $3); print $3}' | sort -u >"$work/exported"
if grep -vE '^p?gpushmem_' "$work/exported"; then
    echo "these names must not leave the library"
    exit 1
fi
grep '^gpushmem_' "$work/exported" >"$work/first"
sed -n 's/^p//p' "$work/exported" | sort >"$work/second"
if ! cmp -s "$work/first" "$work/second"; then
    echo "these have one of their two names only: $(comm -3 "$work/first" "$work/second" | tr -s '\t\n' ' ')"
    exit 1
fi
# Functions that the headers define call one that they declare.
echo '#include "gpushmem/gpushmem.h"' | ${CC:-cc} -std=c11 -E -P -I "$include" -xc - |
    sed -E 's/static inline int gpushmem_[a-z0-9_]+\(//' | grep -oE '\bgpushmem_[a-z0-9_]+ ?\(' |
    tr -d ' (' | sort -u | grep -v '^gpushmem_no_function_for_this_type' >"$work/declared"
missing=$(comm -13 "$work/first" "$work/declared")
if [ -n "$missing" ]; then
    echo "declared, but not in the library:" $missing
    exit 1
fi
count=$(wc -l <"$work/declared")
[ "$count" -gt 1200 ] || { echo "only $count declarations were found: does this test still see them?"; exit 1; }
echo "exports: ok: $count functions"
