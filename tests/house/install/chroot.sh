#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Installs the Debian packages in a fresh Debian 12 and builds and runs a client there. usage: chroot.sh BUILD CPACK [TREE]
# TREE: a Debian 12 with gcc, libc6-dev and pkg-config that is there already, and is changed. Else mmdebstrap makes one, which
# takes root, a mirror and minutes. Exit code 77: not possible here.
set -euo pipefail
build=$1 cpack=$2 tree=${3-}
here=$(cd "$(dirname "$0")" && pwd)

skip() {
    echo "chroot: skipped: $*"
    exit 77
}

[ "$(id -u)" = 0 ] || skip "not root"
unshare -m true 2>/dev/null || skip "no mount namespaces"
command -v dpkg-shlibdeps >/dev/null || skip "no dpkg-shlibdeps (package dpkg-dev)"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
if [ -z "$tree" ]; then
    command -v mmdebstrap >/dev/null || skip "no mmdebstrap (package of that name)"
    tree=$work/tree
    mmdebstrap --variant=minbase --include=gcc,libc6-dev,pkg-config,ca-certificates bookworm "$tree" 2>"$work/log" ||
        skip "mmdebstrap: $(tail -n 1 "$work/log")"
fi
"$cpack" --config "$build/CPackConfig.cmake" -G DEB -B "$work/packages" -D CPACK_PACKAGING_INSTALL_PREFIX=/usr \
    -D CPACK_COMPONENTS_ALL="gpushmem;gpushmem_development;gpushmem_programs" >"$work/log" 2>&1 ||
    { cat "$work/log" && exit 1; }
mkdir -p "$tree/packages"
cp "$work/packages"/*.deb "$here/client.c" "$tree/packages"
cp /etc/resolv.conf "$tree/etc/"
# Mounts end with the namespace. apt finds what the packages depend on.
# shellcheck disable=SC2016 # the shells inside expand it
TREE=$tree unshare -m sh -ec '
    mount -t proc proc "$TREE/proc"
    mount --rbind /dev "$TREE/dev"
    exec chroot "$TREE" sh -ec "
        export PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive
        cd /packages
        apt-get -qq update
        apt-get -qq install -y --reinstall --no-install-recommends ./*.deb >log 2>&1 || { cat log; exit 1; }
        cc -Wall -Werror client.c -o client \$(pkg-config --cflags --libs gpushmem)
        gpushmem version
        gpushmem run -n 2 ./client
        gpushmem doctor settings
    "
' | tee "$work/said"
grep -q '^PE 0 of 2 got 2$' "$work/said" && grep -q '^PE 1 of 2 got 1$' "$work/said"
