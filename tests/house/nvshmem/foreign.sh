#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# A program that was linked to another libnvshmem_host.so.3, as those of NVIDIA's are, loads ours, binding at once, and its init
# fails with a sentence; our program with that library is refused by the loader, which names our version.
# usage: foreign.sh CC INCLUDE LIBNVSHMEM_HOST
set -eu
cc=$1 include=$2 ours=$3
unset LD_PRELOAD GPUSHMEM_LOG
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
cat >other.c <<'END'
int nvshmem_my_pe(void) { return 7; }
void *nvshmem_malloc(unsigned long bytes) { return bytes ? (void *)0 : (void *)1; }
int nvshmemid_init_status(void) { return 2; }
int nvshmemid_hostlib_init_attr(void) { return 0; }
void nvshmemid_hostlib_finalize(void) {}
int nvshmem_selected_device_transport;
END
echo 'NVSHMEM { global: nvshmem*; local: *; };' >other.map
"$cc" -shared -fPIC -Wl,-soname,libnvshmem_host.so.3 -Wl,--version-script=other.map other.c -o libnvshmem_host.so.3
cat >foreign.c <<'END'
#include <stdio.h>
int nvshmem_my_pe(void);
void *nvshmem_malloc(unsigned long bytes);
int nvshmemid_init_status(void);
extern int nvshmem_selected_device_transport;
int *at(void) { return &nvshmem_selected_device_transport; }
int nvshmemid_hostlib_init_attr(unsigned flags, void *attr, int version);
void nvshmemid_hostlib_finalize(void);
int main(int count, char **arguments)
{
    (void)arguments;
    int init = nvshmemid_hostlib_init_attr(0, 0, 3);
    printf("init %d, status %d\n", init, nvshmemid_init_status());
    if (count > 1)
        printf("%p %d\n", nvshmem_malloc(1), nvshmem_my_pe());
    nvshmemid_hostlib_finalize();
    return 0;
}
END
"$cc" foreign.c -Wl,-z,now libnvshmem_host.so.3 -o foreign
cat >mine.c <<'END'
#include <nvshmem.h>
#include <stdio.h>
int main(void)
{
    printf("%d\n", nvshmem_my_pe());
    return 0;
}
END
"$cc" -DGPSH_NVSHMEM_NO_CUDA -I "$include/gpushmem/compat" -I "$include" mine.c "$ours" -o mine

expect() { # WHAT PATTERN FILE
    grep -qE "$2" "$3" || { printf '%s: nothing like "%s" in:\n' "$1" "$2" && cat "$3" && exit 1; }
}
LD_LIBRARY_PATH=. ./foreign >out 2>&1
expect "the other library" '^init 0, status 2$' out
LD_LIBRARY_PATH=$(dirname "$ours") ./foreign >out 2>&1
expect "ours" '^init 3, status 0$' out
expect "ours" "nvshmemid_hostlib_init_attr: .* compiled with NVIDIA's NVSHMEM.*compile it again" out
LD_LIBRARY_PATH=. LD_PRELOAD=$ours ./foreign >out 2>&1
expect "ours, preloaded" '^init 3, status 0$' out
if LD_LIBRARY_PATH=. ./mine >out 2>&1; then
    echo "our program runs with another library" && exit 1
fi
expect "our program" "version .GPUSHMEM_0. not found" out
echo "foreign: ok"
