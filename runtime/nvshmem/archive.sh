#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# archive.sh NM LIBNVSHMEM_HOST PREFIX OUTPUT: each function of libnvshmem_host whose name begins so as a jump through a slot,
# which archive.c fills when the program starts. These are what a host program finds in libnvshmem.a.
set -eu
names=$("$1" -D --defined-only "$2" | sed -n "s/.* T \($3[a-z0-9A-Z_]*\)\(@.*\)\{0,1\}\$/\1/p")
[ -n "$names" ] || { echo "archive.sh: $2 has no function $3..." >&2; exit 1; }
count=$(printf '%s\n' "$names" | wc -l)
{
    cat <<HEAD
// Made by archive.sh.
#include "archive.h"
static void *slots[$count] __attribute__((used));
#if defined(__x86_64__)
#define JUMP(slot) "endbr64\n jmp *slots+" slot "(%rip)\n"
#elif defined(__aarch64__)
#define JUMP(slot) \\
    "hint 34\n adrp x16, slots+" slot "\n ldr x16, [x16, :lo12:slots+" slot "]\n br x16\n"
#else
#error "runtime/nvshmem/archive.sh knows x86-64 and AArch64"
#endif
// Hidden: only the program jumps here. Weak: a program may define such a name itself.
#define THROUGH(name, slot) \\
    __asm__(".text\n.p2align 4\n.weak " #name "\n.hidden " #name "\n.type " #name ", %function\n" \\
            #name ":\n" JUMP(#slot) ".size " #name ", . - " #name "\n");
HEAD
    printf '%s\n' "$names" | awk '{printf "THROUGH(%s, %d)\n", $1, 8 * (NR - 1)}'
    printf '%s\n' '#pragma GCC diagnostic ignored "-Woverlength-strings"' 'static const char names[] ='
    printf '%s\n' "$names" | sed 's/.*/    "&\\0"/'
    cat <<'TAIL'
    ;
// Before constructors without a number, which may call NVSHMEM.
__attribute__((constructor(101))) static void fill(void)
{
    gpsh_nvshmem_archive_fill(slots, names, sizeof slots / sizeof *slots);
}
TAIL
} >"$4"
