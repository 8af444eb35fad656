// SPDX-License-Identifier: BSD-3-Clause
// Profiling: each function gpushmem_X of the library can also be called as pgpushmem_X. A program,
// or a library that is loaded before this one (LD_PRELOAD), may define some gpushmem_X itself, to
// count, time or log; all calls of the program then come to it, and it calls pgpushmem_X.
//
//   #include <gpushmem/gpushmem.h>
//   #include <gpushmem/profile.h>
//   GPUSHMEM_PROFILED(putmem);
//
//   int gpushmem_putmem(void *dest, const void *source, size_t bytes, int pe)
//   {
//       puts_seen++;
//       return pgpushmem_putmem(dest, source, bytes, pe);
//   }
//
// Both names are the same code at the same address: without such a definition nothing is slower.
// Calls that the library makes itself are not seen: a barrier's quiet, or the put of a stream
// operation. What headers define in line calls what the library has: the type-generic names the
// typed ones, gpushmem_peer_info gpushmem_peer_info_sized. Calls in kernels have no second name.
#ifndef GPUSHMEM_PROFILE_H
#define GPUSHMEM_PROFILE_H

// Declares pgpushmem_NAME like gpushmem_NAME. NAME is without the prefix. signal_op, signal_set and
// signal_add have a form without a context and one with it under one name: in C that is a macro, so
// define the function with its name in parentheses, int (gpushmem_signal_op)(...); in C++, where
// the name has overloads, declare the second name by hand.
#ifdef __cplusplus
#define GPUSHMEM_PROFILED(NAME) extern "C" decltype(gpushmem_##NAME) pgpushmem_##NAME
#else
#define GPUSHMEM_PROFILED(NAME) extern __typeof__(gpushmem_##NAME) pgpushmem_##NAME
#endif

#endif
