#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# programs.sh BUILD SOURCE CC CXX: the programs printed in README.md, docs/tutorial.md and docs/streams.md compile
# without a warning and do what
# the text says, on four PEs. A block that begins with ```c, ```cpp or ```cuda is a program.
set -euo pipefail
build=$1 source=$2 cc=$3 cxx=$4
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export GPUSHMEM_TRANSPORTS=p2p GPUSHMEM_HEAP_SIZE=4M LD_LIBRARY_PATH=$build/lib

# extract FILE LANGUAGE: the first block of that language.
extract() {
    awk -v mark="\`\`\`$2" '$0 == mark {inside = 1; next} inside && /^```/ {exit} inside' "$source/$1"
}

# runs PROGRAM LINE...: it must print exactly these lines, in any order.
runs() {
    local program=$1 got
    shift
    got=$("$build/bin/gpushmem" run -n 4 "$program" | sort)
    [ "$got" = "$(printf '%s\n' "$@" | sort)" ] || { printf '%s printed:\n%s\n' "${program##*/}" "$got" && exit 1; }
}

flags="-Wall -Wextra -Werror -I$source/include -I$build/include"
# What each program with kernels would compile again (docs/design/building.md); install.use has one without it.
kernels="-DGPSH_EMU_LINKED $flags"
emulation="-xnone -L$build/lib -lgpushmem_emu_operations -lgpushmem -pthread"
extract README.md cuda >"$work/readme.cu"
extract docs/tutorial.md c >"$work/ring.c"
extract docs/tutorial.md cuda >"$work/greet.cu"
extract docs/tutorial.md cpp >"$work/grid.cpp"
extract docs/streams.md cuda >"$work/relay.cu"
# A kernel without its program.
{
    printf '#include <gpushmem/gpushmem.h>\n#include <gpushmem/device.cuh>\n'
    extract docs/tutorial.md c++
} >"$work/tell.cu"
# shellcheck disable=SC2086
{
    "$cxx" -std=c++17 -xc++ $kernels -Wno-unused-function -fsyntax-only "$work/tell.cu"
    "$cxx" -std=c++17 -xc++ $kernels "$work/readme.cu" $emulation -o "$work/readme"
    "$cc" -std=c11 $flags "$work/ring.c" -L"$build/lib" -lgpushmem -o "$work/ring"
    "$cxx" -std=c++17 -xc++ $kernels "$work/greet.cu" $emulation -o "$work/greet"
    "$cxx" -std=c++17 $flags "$work/grid.cpp" -L"$build/lib" -lgpushmem -o "$work/grid"
    "$cxx" -std=c++17 -xc++ $kernels "$work/relay.cu" $emulation -o "$work/relay"
}
runs "$work/readme" "PE 0 was greeted by PE 3" "PE 1 was greeted by PE 0" "PE 2 was greeted by PE 1" "PE 3 was greeted by PE 2"
runs "$work/ring" "PE 0 of 4 got 103" "PE 1 of 4 got 100" "PE 2 of 4 got 101" "PE 3 of 4 got 102"
runs "$work/greet" "PE 0 got 103" "PE 1 got 100" "PE 2 got 101" "PE 3 got 102"
runs "$work/grid" "PE 0 is in column 0: the sum is 6" "PE 1 is in column 1: the sum is 6" \
    "PE 2 is in column 0: the sum is 6" "PE 3 is in column 1: the sum is 6"
GPUSHMEM_P2P=0 runs "$work/greet" "PE 0 got 103" "PE 1 got 100" "PE 2 got 101" "PE 3 got 102"
runs "$work/relay" "PE 0: 30" "PE 1: 0" "PE 2: 10" "PE 3: 20"
echo "docs: ok: the printed programs compile and run"
