#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# forward.sh NM LIBGPUSHMEM OUTPUT: each gpushmem_X of the library as a jump to its second name, pgpushmem_X. What is in line in
# nvshmem.h calls gpushmem_X; so a program that links libnvshmem_host alone, as builds for NVSHMEM do, finds all it needs.
set -eu
{
    cat <<'HEAD'
// Made by forward.sh.
#if defined(__x86_64__)
#define JUMP(name) "endbr64\n jmp p" #name "@PLT\n"
#elif defined(__aarch64__)
#define JUMP(name) "hint 34\n b p" #name "\n"
#else
#error "runtime/nvshmem/forward.sh knows x86-64 and AArch64"
#endif
#define FORWARD(name) \
    __asm__(".text\n.p2align 4\n.globl " #name "\n.type " #name ", %function\n" \
            #name ":\n" JUMP(name) ".size " #name ", . - " #name "\n");
HEAD
    "$1" -D --defined-only "$2" | sed -n 's/.* T p\(gpushmem_[a-z0-9A-Z_]*\)\(@.*\)\{0,1\}$/FORWARD(\1)/p'
} >"$3"
