#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Makes the Debian packages and the archive of what was built, looks at what is in them, and builds and runs a program with them,
# unpacked where they are not meant to be. usage: packages.sh BUILD SOURCE CPACK CC
set -euo pipefail
build=$1 source=$2 cpack=$3 cc=$4
here=$(cd "$(dirname "$0")" && pwd)
if ! command -v dpkg-shlibdeps >/dev/null; then
    echo "packages: skipped: no dpkg-shlibdeps (package dpkg-dev)"
    exit 77
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

die() {
    echo "packages: $*"
    exit 1
}

pack() {
    "$cpack" --config "$build/CPackConfig.cmake" -D "CPACK_PACKAGE_CONTACT=A builder <builder@debian.org>" -G "$1" -B "$work/$1" >"$work/log" 2>&1 ||
        { cat "$work/log" && die "cpack -G $1 failed"; }
}

# One file of each kind that belongs there, and what does not.
contents() {
    local package=$1 have file
    have=$(dpkg-deb -c "$work/DEB/${package}_"*.deb | awk '{print $6}')
    shift
    for file in "$@"; do
        case $file in
        !*) ! grep -qE "^\./usr/${file#!}" <<<"$have" || die "$package contains ${file#!}" ;;
        *) grep -qE "^\./usr/$file\$" <<<"$have" || die "$package does not contain $file" ;;
        esac
    done
    ! grep -qvE '^\./(usr/((bin|lib|libexec|include|share)/.*)?)?$' <<<"$have" || die "$package has files outside /usr"
}

# field PACKAGE FIELD PATTERN...: the field of the package names all of them.
field() {
    local package=$1 name=$2 value pattern
    value=$(dpkg-deb -f "$work/DEB/${package}_"*.deb "$name")
    shift 2
    for pattern in "$@"; do
        grep -qE "(^|, )$pattern" <<<"$value" || die "$name of $package lacks $pattern: $value"
    done
}

pack DEB
[ "$(find "$work/DEB" -maxdepth 1 -name '*.deb' | wc -l)" = 5 ] || die "there are not five packages: $(ls "$work/DEB")"
contents libgpushmem0 'lib.*/libgpushmem\.so\.0' '!bin' '!include' '!lib.*/libgpushmem\.so$'
contents libgpushmem-dev 'lib.*/libgpushmem\.so' include/gpushmem/gpushmem.h include/gpushmem/device/launch.cuh \
    'lib.*/pkgconfig/gpushmem\.pc' 'lib.*/cmake/gpushmem/gpushmem-config\.cmake' 'share/man/man3/gpushmem_put\.3\.gz' \
    'share/man/man3/gpushmem_long_put\.3\.gz' 'share/man/man3/shmem_put\.3\.gz' share/doc/gpushmem/api-index.md '!bin'
contents gpushmem-tools bin/gpushmem 'share/man/man1/gpushmem-run\.1\.gz' share/bash-completion/completions/gpushmem \
    share/doc/gpushmem/examples/settings.conf \
    '!bin/osh' '!share/man/man1/osh' '!include'
contents gpushmem-openshmem bin/oshcc bin/oshrun 'share/man/man1/oshcc\.1\.gz' 'share/man/man1/oshrun\.1\.gz' \
    'lib.*/libshmem\.so\.0' '!include'
contents gpushmem-nvshmem include/nvshmem.h
# What says its options is another program, and must be built before the page is made of them.
for file in man/man1/gpushmem-perf.1.gz bash-completion/completions/gpushmem; do
    dpkg-deb --fsys-tarfile "$work"/DEB/gpushmem-tools_*.deb | tar -xO "./usr/share/$file" | gzip -dcf |
        sed 's/\\-/-/g' >"$work/page"
    grep -q -- '--bidirectional' "$work/page" || die "$file does not have the options of gpushmem perf"
done
# Debian's own judge. Without the prefix /usr libraries are in lib, where it wants the folder of the architecture.
if command -v lintian >/dev/null; then
    ! lintian --allow-root --fail-on error,warning --suppress-tags pkg-config-unavailable-for-cross-compilation \
        "$work"/DEB/*.deb 2>/dev/null | grep . || die "lintian objects"
else
    echo "packages: no lintian: nobody looks at Debian's policy"
fi
field libgpushmem0 Depends 'libc6 ' 'libpmix2 ' 'libhwloc15 '
field libgpushmem-dev Depends 'libgpushmem0 \(= '
field gpushmem-tools Depends 'libgpushmem0 \(= ' 'libpmix2 '
field gpushmem-openshmem Conflicts openmpi-bin

for package in "$work"/DEB/*.deb; do
    dpkg-deb -x "$package" "$work/root"
done
# Archives are not stripped: what they have for debuggers names the sources.
if grep -rlF --exclude='*.a' -e "$build" -e "$source" "$work/root"; then
    die "these files know where they were built"
fi
lib=$(dirname "$(find "$work/root/usr" -name libgpushmem.so)")
# shellcheck disable=SC2046
PKG_CONFIG_PATH=$lib/pkgconfig "$cc" -std=c11 "$here/consumer/ring.c" -o "$work/ring" \
    $(PKG_CONFIG_PATH=$lib/pkgconfig pkg-config --cflags --libs gpushmem)
export GPUSHMEM_TRANSPORTS=p2p GPUSHMEM_HEAP_SIZE=4M
LD_LIBRARY_PATH=$lib "$work/root/usr/bin/gpushmem" run -n 2 "$work/ring" >"$work/said" ||
    die "the packages' program failed: $(cat "$work/said")"
[ "$(grep -c '^ring: ok$' "$work/said")" = 2 ] || die "the program said: $(cat "$work/said")"

pack TGZ
tar -tzf "$work"/TGZ/*.tar.gz >"$work/list"
for file in bin/gpushmem 'lib.*/libgpushmem\.so\.0' include/gpushmem/gpushmem.h share/man/man3/gpushmem_put.3; do
    grep -qE "^gpushmem-[^/]*/$file\$" "$work/list" || die "the archive does not contain $file"
done
echo "packages: ok"
