#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The library's and the program's C sources are legal with musl's C library: musl-gcc looks at each. Nothing is linked, since PMIx,
# hwloc and rdma-core are here for glibc only; their headers do, and the kernel's, which are put into a folder of their own so
# that none of glibc's comes with them. usage: musl.sh SOURCE BUILD. 77: without musl-gcc (tests/setup.sh long).
set -euo pipefail
source=$1 build=$2
if ! command -v musl-gcc >/dev/null; then
    echo "musl: skipped: no musl-gcc (package musl-tools)"
    exit 77
fi
cd "$source"
here=$(cc -print-multiarch)
others=$(mktemp -d)
trap 'rm -rf "$others"' EXIT
ln -s /usr/include/{infiniband,rdma,linux,asm-generic,hwloc.h} "/usr/include/$here/asm" "$others"
mkdir -p "$others/hwloc/autogen"
ln -s /usr/include/hwloc/*.h "$others/hwloc"
ln -s "/usr/include/$here/hwloc/autogen"/* "$others/hwloc/autogen"
flags=(-std=c11 -O1 -fsyntax-only -Wall -Werror -Iinclude -I. -Iruntime "-I$build/runtime" -Iruntime/cli -Itransports
    -Itransports/verbs -isystem "$others" -isystem "/usr/lib/$here/pmix2/include")

# Whether it is another C library, and says so if something is wrong.
printf '#include <features.h>\n#ifdef __GLIBC__\n#error the headers are those of glibc\n#endif\n' | musl-gcc "${flags[@]}" -xc -
if printf 'int x = sizeof(struct none);\n' | musl-gcc "${flags[@]}" -xc - 2>/dev/null; then
    echo "musl: the compiler accepts what is no C"
    exit 1
fi
mapfile -t files < <(find runtime transports -name '*.c' ! -path '*/python/*' | sort)
[ ${#files[@]} -gt 150 ] || { echo "musl: only ${#files[@]} sources were found"; exit 1; }
printf '%s\n' "${files[@]}" | xargs -P 2 -n 40 musl-gcc "${flags[@]}"
echo "musl: ok: ${#files[@]} sources"
