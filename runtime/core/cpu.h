// SPDX-License-Identifier: BSD-3-Clause
// What the compiler and the processor are told.
#ifndef GPSH_CPU_H
#define GPSH_CPU_H

#define GPSH_LIKELY(x)   __builtin_expect(!!(x), 1)
#define GPSH_UNLIKELY(x) __builtin_expect(!!(x), 0)

// For what each operation passes, whatever the compiler takes for large.
#define GPSH_ALWAYS_INLINE static inline __attribute__((always_inline))

enum { GPSH_CACHE_LINE = 64 };

static inline void gpsh_cpu_relax(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

#endif
