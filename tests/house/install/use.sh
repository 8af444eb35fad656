#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Installs into a fresh prefix, moves it, and builds and runs a C and a C++ program against it, once by find_package and
# once by pkg-config, and a program with a kernel; OpenSHMEM programs by oshcc and oshrun. Then installs from a build that has
# no programs.
# usage: use.sh BUILD_DIR CMAKE BINDIR LIBDIR CC CXX
set -eu
build=$1 cmake=$2 bindir=$3 libdir=$4 cc=$5 cxx=$6
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$cmake" --install "$build" --prefix "$work/first" >/dev/null
mv "$work/first" "$work/prefix" # nothing installed may remember where it was

export GPUSHMEM_TRANSPORTS=p2p GPUSHMEM_HEAP_SIZE=4M
run() {
    local output
    output=$(LD_LIBRARY_PATH=$work/prefix/$libdir "$work/prefix/$bindir/gpushmem" run -n 2 "$1")
    [ "$(grep -c '^ring: ok$' <<<"$output")" = 2 ] || { echo "$1 did not say 'ring: ok' twice: $output"; exit 1; }
}

"$cmake" -S "$here/consumer" -B "$work/consumer" -DCMAKE_PREFIX_PATH="$work/prefix" -DCMAKE_C_COMPILER="$cc" \
    -DCMAKE_CXX_COMPILER="$cxx" >"$work/log" 2>&1 && "$cmake" --build "$work/consumer" >>"$work/log" 2>&1 ||
        { cat "$work/log"; exit 1; }
run "$work/consumer/consumer_c"
run "$work/consumer/consumer_cpp"
run "$work/consumer/consumer_kernel"
run "$work/consumer/consumer_shmem"

export PKG_CONFIG_PATH=$work/prefix/$libdir/pkgconfig
[ "$(pkg-config --modversion gpushmem)" = "$(sed -n 's/^set(PACKAGE_VERSION "\(.*\)")/\1/p' \
    "$work/prefix/$libdir/cmake/gpushmem/gpushmem-config-version.cmake")" ] || { echo "versions differ"; exit 1; }
# shellcheck disable=SC2046
"$cc" -std=c11 -Wall -Wextra -Werror "$here/consumer/ring.c" -o "$work/by_pc_c" $(pkg-config --cflags --libs gpushmem)
# shellcheck disable=SC2046
"$cxx" -std=c++17 -Wall -Wextra -Werror "$here/consumer/ring.cpp" -o "$work/by_pc_cpp" $(pkg-config --cflags --libs gpushmem)
run "$work/by_pc_c"
run "$work/by_pc_cpp"

# OpenSHMEM, by its own names: compiled in line, and linked with libshmem alone.
programs=$here/../shmem/programs
bin=$work/prefix/$bindir
shmem_run() {
    "$bin/oshrun" -np 2 "$work/$1" || { echo "oshrun: $1 failed: $?"; exit 1; }
}
for called in "oshcc OSHCC_CC" "oshc++ OSHCXX_CXX" "oshcxx OSHCXX_CXX"; do
    env "${called#* }=echo compiled by" "$bin/${called% *}" -c x | grep -q '^compiled by .* -c x$' ||
        { echo "${called% *} does not obey ${called#* }"; exit 1; }
done
OSHCC_CC=$cc "$bin/oshcc" -std=c11 -Wall -Wextra -Werror "$programs/ring.c" -o "$work/osh_ring"
OSHCC_CC=$cc "$bin/oshcc" -std=c11 -DSHMEM_NO_INLINE -c "$programs/dot_product.c" -o "$work/dot_product.o"
OSHCC_CC=$cc "$bin/oshcc" "$work/dot_product.o" -o "$work/osh_linked"
OSHCXX_CXX=$cxx "$bin/oshc++" -std=c++17 -Wall -Wextra -Werror "$programs/lock_counter.cpp" -o "$work/osh_cpp"
# shellcheck disable=SC2046
"$cc" -std=c11 "$programs/server.c" -o "$work/osh_by_pc" $(pkg-config --cflags --libs openshmem) -Wl,-rpath,"$work/prefix/$libdir"
for program in osh_ring osh_linked osh_cpp osh_by_pc; do
    shmem_run $program
done
ldd "$work/osh_linked" | grep -q libshmem || { echo "osh_linked does not use libshmem"; exit 1; }
[ "$(pkg-config --modversion shmem)" = 1.6 ] || { echo "shmem.pc has no version 1.6"; exit 1; }
# What the wrappers say of themselves, as builds ask for it, is enough to compile and to link.
for dashes in - --; do
    # shellcheck disable=SC2046
    "$cc" -std=c11 -DSHMEM_NO_INLINE -c "$programs/server.c" -o "$work/shown.o" $("$bin/oshcc" ${dashes}showme:compile)
    # shellcheck disable=SC2046
    "$cc" "$work/shown.o" -o "$work/osh_shown" $("$bin/oshcc" ${dashes}showme:link)
    shmem_run osh_shown
done
[ "$(OSHCC_CC=mine "$bin/oshcc" --showme:command) $("$bin/oshcc" -showme:libs)" = "mine shmem gpushmem" ] ||
    { echo "oshcc --showme:command or -showme:libs is wrong"; exit 1; }
! "$bin/oshcc" 2>"$work/log" && grep -q '^usage: oshcc SOURCE' "$work/log" || { echo "oshcc alone does not say its usage"; exit 1; }
! "$bin/oshcc" --showme:nothing 2>/dev/null || { echo "oshcc takes --showme:nothing"; exit 1; }
"$bin/shmem_info" | grep -q '^gpushmem .*, OpenSHMEM 1.6$' || { echo "shmem_info does not say what it is"; exit 1; }
"$bin/shmem_info" --json | grep -q '"origin": "alias"' || { echo "shmem_info does not show OpenSHMEM's heap"; exit 1; }
! "$bin/oshfort" x.f90 2>"$work/log" && grep -q 'oshcc --showme:link' "$work/log" || { echo "oshfort does not say what to do"; exit 1; }
# Under the old names of both headers, and what they say they are.
printf '%s\n' '#include <mpp/shmem.h>' '#include <mpp/shmemx.h>' \
    '_Static_assert(SHMEM_VERSION_MAJOR == 1 && SHMEM_VERSION_MINOR == 6 && GPUSHMEM_SHMEM_NUMVERSION >= 100, "");' \
    'int main(void) { shmem_init(); shmem_finalize(); return 0; }' >"$work/mpp.c"
OSHCC_CC=$cc "$bin/oshcc" -std=c11 -Wall -Werror "$work/mpp.c" -o "$work/osh_mpp"
shmem_run osh_mpp
# A buffer that the program has not written to is no fault of the header's.
printf '%s\n' '#include <shmem.h>' 'static long to[4];' 'void f(void) { long from[4]; shmem_long_put(to, from, 4, 0); }' \
    >"$work/unset.c"
OSHCC_CC=$cc "$bin/oshcc" -std=c11 -O2 -Wall -Wextra -Werror -c "$work/unset.c" -o "$work/unset.o"

# NVSHMEM, as its builds find it: by find_package, by -lnvshmem below NVSHMEM_HOME, by pkg-config, by name in a wheel's folder.
NVSHMEM_HOME=$work/site/nvidia/nvshmem
mkdir -p "$work/site/nvidia"
ln -s "$work/prefix" "$NVSHMEM_HOME"
"$cmake" -S "$here/consumer_nvshmem" -B "$work/consumer_nvshmem" -DNVSHMEM_ROOT="$NVSHMEM_HOME" \
    -DCMAKE_PREFIX_PATH="$work/prefix" -DCMAKE_C_COMPILER="$cc" -DCMAKE_CXX_COMPILER="$cxx" >"$work/log" 2>&1 &&
        "$cmake" --build "$work/consumer_nvshmem" >>"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
object=$(find "$work/consumer_nvshmem" -name ring.c.o)
"$cc" "$object" -o "$work/nv_home" -L"$NVSHMEM_HOME/$libdir" -lnvshmem
"$cc" "$object" "$NVSHMEM_HOME/$libdir/libnvshmem.a" -o "$work/nv_archive"
"$cc" "$object" "$NVSHMEM_HOME/$libdir/libnvshmem.a" -o "$work/nv_twice" -L"$NVSHMEM_HOME/$libdir" -lnvshmem_host
"$cc" "$object" -o "$work/nv_both" -L"$NVSHMEM_HOME/$libdir" -lnvshmem_host -lnvshmem_device
# shellcheck disable=SC2046
"$cc" -O0 $(pkg-config --cflags nvshmem) "$here/consumer_nvshmem/ring.c" -o "$work/nv_by_pc" $(pkg-config --libs nvshmem)
for program in consumer_nvshmem/{by_both,by_parts,kernel_on_threads} nv_home nv_archive nv_twice nv_both nv_by_pc; do
    run "$work/$program"
done
# Without the library the program that has the archive says what to do; NVSHMEM_HOME alone finds it.
status=0
(unset NVSHMEM_HOME && LD_LIBRARY_PATH='' exec "$work/nv_archive") >"$work/log" 2>&1 || status=$?
[ $status = 127 ] && grep -q '^libnvshmem.a: libnvshmem_host.so.3: .*: put the folder of .* into LD_LIBRARY_PATH' "$work/log" ||
    { echo "nv_archive without its library ended with $status: $(cat "$work/log")"; exit 1; }
[ "$libdir" != lib ] || NVSHMEM_HOME=$NVSHMEM_HOME LD_LIBRARY_PATH='' "$bin/gpushmem" run -n 2 "$work/nv_archive" >"$work/log" 2>&1 ||
    { echo "NVSHMEM_HOME does not find libnvshmem_host: $(cat "$work/log")"; exit 1; }
[ ! -x "$build/bin/nvshmem_by_name" ] ||
    GPUSHMEM_BOOTSTRAP_INTERFACE=lo "$build/bin/nvshmem_by_name" "$NVSHMEM_HOME/$libdir/libnvshmem_host.so.3" >"$work/log" 2>&1 ||
        { cat "$work/log"; exit 1; }

# Copies what the library's own targets leave in a build, and the install scripts, which name the build by its full path.
mkdir "$work/partial"
(cd "$build" && find . \( -name cmake_install.cmake -o -path '*/CMakeFiles/Export/*' -o -name 'gpushmem*.cmake' \
    -o -name '*.pc' -o -path './runtime/shmem/bin/*' -o -name 'libgpushmem.so*' \) -exec cp -a --parents {} "$work/partial" \;)
find "$work/partial" -name cmake_install.cmake -exec sed -i "s|$build|$work/partial|g" {} +
"$cmake" --install "$work/partial" --prefix "$work/alone" >"$work/log"
grep -q "Not installed: NVSHMEM's names, because .*libnvshmem_host.* was not built. The targets gpushmem_nvshmem" "$work/log" ||
    { echo "nothing is said of libnvshmem_host: $(cat "$work/log")"; exit 1; }
left=$(find "$work/alone" -iname '*nvshmem*' ! -path "*/include/gpushmem/*")
[ -z "$left" ] || { echo "installed without libnvshmem_host: $left"; exit 1; }
for file in "$libdir/libgpushmem.so" include/gpushmem/gpushmem.h "$libdir/cmake/gpushmem/gpushmem-config.cmake"; do
    [ -e "$work/alone/$file" ] || { echo "the library alone installs no $file"; exit 1; }
done
OSHCC_CC=$cc "$work/alone/$bindir/oshcc" -std=c11 "$programs/ring.c" -o "$work/osh_alone"
shmem_run osh_alone
[ ! -e "$work/alone/$libdir/pkgconfig/openshmem.pc" ] || { echo "openshmem.pc is installed without libshmem"; exit 1; }
"$cmake" --install "$build" --prefix "$work/component" --component gpushmem >/dev/null
[ "$(find "$work/component" -type f | wc -l)" = 1 ] || { echo "the component gpushmem is not one library"; exit 1; }
echo "install: ok: C and C++ by find_package and by pkg-config, OpenSHMEM by oshcc, NVSHMEM by its package"
