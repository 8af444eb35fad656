#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The project as a newcomer installs it: the source archive, the wheel made of it with library, program and headers inside, in a
# fresh virtual environment. All offline: what builds wheels is there (tests/setup.sh wheel). usage: wheel.sh BUILD SOURCE CC CXX
set -euo pipefail
build=$1 source=$2 cc=$3 cxx=$4
here=$(cd "$(dirname "$0")" && pwd)
tools=$("$source/tests/setup.sh" --wheel-python)
if [ -z "$tools" ]; then
    echo "wheel: skipped: no Python with scikit-build-core (tests/setup.sh wheel)"
    exit 77
fi
export PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_INDEX=1
unset PYTHONPATH
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

die() {
    echo "wheel: $*"
    exit 1
}

has() {
    local list=$1 file
    shift
    for file in "$@"; do
        grep -qE "^$file\$" "$list" || die "$list has no $file"
    done
}

# The archive has what git has, and nothing of builds.
"$tools" -m build --sdist --no-isolation --outdir "$work" "$source" >"$work/log" 2>&1 || { cat "$work/log" && die "no archive"; }
tar -tzf "$work"/gpushmem-*.tar.gz | sed 's,^[^/]*/,,' >"$work/archive"
has "$work/archive" CMakeLists.txt LICENSE README.md runtime/gpushmem.map device/emu.hpp tests/run.sh PKG-INFO
! grep -q '^build' "$work/archive" || die "the archive has a build folder"
mkdir "$work/source" && tar -xzf "$work"/gpushmem-*.tar.gz -C "$work/source" --strip-components 1

# Kept below the build, so that what has not changed is not compiled again.
"$tools" -m pip wheel -q --no-build-isolation --no-deps -w "$work/dist" --config-settings "build-dir=$build/wheel" \
    --config-settings cmake.define.GPUSHMEM_CUDA=OFF "$work/source" >"$work/log" 2>&1 || { cat "$work/log" && die "no wheel"; }
"$tools" -m zipfile -l "$work"/dist/gpushmem-*.whl | awk '{print $1}' >"$work/wheel"
has "$work/wheel" gpushmem/__init__.py gpushmem/lib/libgpushmem.so.0 gpushmem/lib/libshmem.so.0 gpushmem/bin/gpushmem \
    gpushmem/bin/oshcc gpushmem/include/gpushmem/gpushmem.h gpushmem/include/gpushmem/device/launch.cuh
[ "$(grep -c 'libgpushmem\.so\.[0-9]' "$work/wheel")" = 1 ] || die "the library is in the wheel more than once"

"$tools" -m venv "$work/venv" 2>/dev/null || { echo "wheel: skipped: no virtual environments" && exit 77; }
"$work/venv/bin/pip" install -q --no-deps "$work"/dist/gpushmem-*.whl
cd "$work"
PATH=$work/venv/bin:$PATH
export GPUSHMEM_TRANSPORTS=p2p GPUSHMEM_HEAP_SIZE=4M
unset GPUSHMEM_HOME LD_LIBRARY_PATH
cat >pe.py <<'END'
import sys
import gpushmem
with gpushmem.init() as job:
    sys.stdout.write("PE %d of %d, %s\n" % (job.my_pe, job.n_pes, gpushmem.version())) # in one piece, also unbuffered
END
gpushmem run -n 2 python pe.py >said || { cat said && die "Python"; }
grep -q '^PE 1 of 2, ' said || { cat said && die "Python said that"; }
# shellcheck disable=SC2046
"$cc" -std=c11 "$here/consumer/ring.c" -o ring $(gpushmem info --cflags --libs)
gpushmem run -n 2 ./ring >said || { cat said && die "the program in C"; }
[ "$(grep -c '^ring: ok$' said)" = 2 ] || { cat said && die "the program in C said that"; }
cat >kernel.cu <<'END'
#include <gpushmem/gpushmem.h>
#include <gpushmem/device.cuh>
__global__ void add(long *sum) { gpushmem_dev_long_atomic_add(sum, 1, 0); }
int main() { return gpushmem_init() || GPUSHMEM_LAUNCH(add, 1, 2, NULL, (long *)gpushmem_malloc(8)) || gpushmem_finalize(); }
END
cmake -S "$here/consumer" -B found -G Ninja -DCMAKE_C_COMPILER="$cc" -DCMAKE_CXX_COMPILER="$cxx" \
    -Dgpushmem_ROOT="$(python -c 'import gpushmem; print(*gpushmem.__path__)')" >log 2>&1 &&
    cmake --build found --target consumer_c >>log 2>&1 || { cat log && die "the project that finds the CMake package"; }
gpushmem run -n 2 found/consumer_c >said || { cat said && die "the project in CMake"; }
# shellcheck disable=SC2046
"$cxx" -std=c++17 -xc++ kernel.cu -xnone -o kernel -pthread $(gpushmem info --cflags) $(gpushmem info --libs)
gpushmem run -n 2 ./kernel || die "the program with a kernel"
printf '#include <shmem.h>\nint main(void) { shmem_init(); shmem_finalize(); return 0; }\n' >osh.c
! oshcc 2>said && grep -q '^usage: oshcc' said || die "oshcc alone"
oshcc osh.c -o osh && oshrun -n 2 ./osh || die "the program of OpenSHMEM"
# A program that is not installed says so.
! "$build/bin/gpushmem" info --cflags 2>said || die "flags of a build"
grep -q 'cmake --install' said || die "no sentence: $(cat said)"
echo "wheel: ok"
