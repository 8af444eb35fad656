#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# kernel.sh: prints the directory with the guest's kernel (vmlinux) and modules; fetches Debian's kernel package once.
#
# The package is downloaded and unpacked, never installed, and only what the guest loads is kept (about 60 MB), in
# ${XDG_CACHE_HOME:-$HOME/.cache}/gpushmem/softroce. Once it is there, nothing here needs the network.
# SOFTROCE_KERNEL_DEB=FILE takes a kernel package that is already on the machine.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
. "$here/../../cache.sh"
cache=$(gpushmem_cache_dir)/softroce/kernel

# In the order to load them; modprobe adds what each depends on. rdma_rxe fails without crc32 and does not say so.
modules=(crc32_generic virtio_pci 9pnet_virtio 9p ib_uverbs rdma_rxe rdma_ucm veth dummy sch_netem)

die() {
    echo "kernel.sh: $*" >&2
    exit 1
}

# Debian's metapackage names the current 6.1 kernel; apt verifies what it downloads. Old package lists may name a
# version that is gone: then they are renewed once.
fetch_package() {
    local name attempt
    for attempt in 1 2; do
        name=$(apt-cache depends --important linux-image-amd64 2>/dev/null |
            sed -n 's/^ *Depends: \(linux-image-[0-9].*-amd64\)$/\1/p' | tail -n 1)
        if [ -n "$name" ]; then
            echo "kernel.sh: downloading $name (about 70 MB, once)" >&2
            ! (cd "$1" &&
                apt-get -q -o Acquire::Retries=3 -o APT::Sandbox::User=root download "$name" >download.log 2>&1) || break
        fi
        [ "$attempt" = 1 ] && "$here/../../setup.sh" --update >&2
    done || die "cannot download ${name:-linux-image-amd64} (set SOFTROCE_KERNEL_DEB=FILE to use a package you have)"
    ls "$1"/*.deb
}

# The bzImage holds an XZ stream; QEMU starts the ELF inside 2-3 s faster than the image that unpacks itself.
extract_vmlinux() {
    local offset
    offset=$(LC_ALL=C grep -aobUP '\xfd7zXZ\x00' "$1" | head -n 1 | cut -d: -f1)
    [ -n "$offset" ] || die "$1 holds no XZ stream: not a Debian kernel image?"
    tail -c "+$((offset + 1))" "$1" | xz -dc --single-stream 2>/dev/null >"$2" || true
    [ "$(head -c 4 "$2" | tail -c 3)" = ELF ] || die "$1 did not unpack to an ELF kernel"
}

# Copies each module and its dependencies to DIR, numbered in loading order.
collect_modules() {
    local tree=$1 version=$2 out=$3 module path n=100
    depmod -b "$tree" "$version"
    for module in "${modules[@]}"; do
        modprobe -d "$tree" -S "$version" --show-depends "$module"
    done | awk '$1 == "insmod" && !seen[$2]++ {print $2}' >"$out/order"
    while read -r path; do
        n=$((n + 1))
        cp "$path" "$out/$n-$(basename "$path")"
    done <"$out/order"
    rm "$out/order"
}

main() {
    local work deb version
    mkdir -p "$cache"
    exec 9>"$cache/.lock"
    flock 9
    if [ ! -e "$cache/ready/vmlinux" ]; then
        "$here/../../setup.sh" softroce >&2
        work=$(mktemp -d "$cache/unpack.XXXXXX")
        # shellcheck disable=SC2064 # a local variable: now is when it is known
        trap "rm -rf '$work'" EXIT
        deb=${SOFTROCE_KERNEL_DEB:-}
        [ -n "$deb" ] || deb=$(fetch_package "$work")
        dpkg-deb -x "$deb" "$work/tree"
        version=$(basename "$work"/tree/boot/vmlinuz-* | sed 's/^vmlinuz-//')
        mkdir -p "$work/ready/modules"
        [ -d "$work/tree/usr/lib/modules" ] && ln -sfn usr/lib "$work/tree/lib"
        extract_vmlinux "$work/tree/boot/vmlinuz-$version" "$work/ready/vmlinux"
        collect_modules "$work/tree" "$version" "$work/ready/modules"
        echo "$version" >"$work/ready/version"
        mv -T "$work/ready" "$cache/ready"
    fi
    echo "$cache/ready"
}

main
