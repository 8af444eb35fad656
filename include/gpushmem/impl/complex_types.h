// SPDX-License-Identifier: BSD-3-Clause
// Complex numbers as C and C++ name them: real part, then imaginary part.
#ifndef GPUSHMEM_IMPL_COMPLEX_TYPES_H
#define GPUSHMEM_IMPL_COMPLEX_TYPES_H

#ifdef __cplusplus
// Only pointers to them are in signatures, and <complex> costs more than all of gpushmem.h: a
// declaration does, where it is known what the library's own looks like.
#include <cstddef>
#if defined(__GLIBCXX__) && !_GLIBCXX_INLINE_VERSION
namespace std
{
template <typename T> struct complex;
}
#else
#include <complex>
#endif
typedef std::complex<float> gpushmem_complexf;
typedef std::complex<double> gpushmem_complexd;
#else
typedef float _Complex gpushmem_complexf;
typedef double _Complex gpushmem_complexd;
#endif

#endif
