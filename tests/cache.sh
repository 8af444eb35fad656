# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# cache.sh (to be sourced): where downloads that outlive a build folder are kept.

gpushmem_cache_dir() {
    local base=${XDG_CACHE_HOME:-${HOME:+$HOME/.cache}}
    [ -n "$base" ] || base=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)/build/cache
    echo "$base/gpushmem"
}
