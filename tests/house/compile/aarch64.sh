#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The library's and the program's C sources are legal for aarch64: clang looks at each with the C library's headers of that machine.
# Nothing is linked, since PMIx, hwloc and rdma-core are here for this machine only; their headers do. Generated headers come from
# the build. usage: aarch64.sh SOURCE BUILD. 77: without clang, or without Debian's libc6-dev-arm64-cross.
set -euo pipefail
source=$1 build=$2 libc=/usr/aarch64-linux-gnu/include
if ! command -v clang >/dev/null || [ ! -e "$libc/stdio.h" ]; then
    echo "aarch64: skipped: no clang, or no $libc (package libc6-dev-arm64-cross)"
    exit 77
fi
cd "$source"
here=$(cc -print-multiarch)
flags=(--target=aarch64-linux-gnu -std=c11 -fsyntax-only -Wall -Werror -nostdlibinc -isystem "$libc" -Iinclude -I. -Iruntime
    "-I$build/runtime" -Iruntime/cli -Itransports -Itransports/verbs -idirafter /usr/include -idirafter "/usr/include/$here"
    -idirafter "/usr/lib/$here/pmix2/include")

# Whether it is another machine's compiler, and says so if something is wrong.
printf '#ifndef __aarch64__\n#error not for aarch64\n#endif\n' | clang "${flags[@]}" -xc -
if printf 'int x = sizeof(struct none);\n' | clang "${flags[@]}" -xc - 2>/dev/null; then
    echo "aarch64: clang accepts what is no C"
    exit 1
fi
mapfile -t files < <(find runtime transports -name '*.c' ! -path '*/python/*' | sort)
[ ${#files[@]} -gt 150 ] || { echo "aarch64: only ${#files[@]} sources were found"; exit 1; }
printf '%s\n' "${files[@]}" | xargs -P 2 -n 40 clang "${flags[@]}"
echo "aarch64: ok: ${#files[@]} sources"
