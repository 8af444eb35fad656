#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# second_names.sh NM ARCHIVE OUTPUT [PATTERN]: a linker script that gives each public function gpushmem_X of the archive, or each
# that the pattern matches, the second name pgpushmem_X (include/gpushmem/profile.h).
set -eu
"$1" --defined-only --extern-only "$2" | awk -v pattern="${4:-^gpushmem_}" '$2 == "T" && $3 ~ pattern { print "p" $3 " = " $3 ";" }' | sort -u >"$3.new"
[ -s "$3.new" ] || { echo "second_names.sh: $2 has no public function" >&2; exit 1; }
mv "$3.new" "$3"
