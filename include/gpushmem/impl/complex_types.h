// SPDX-License-Identifier: BSD-3-Clause
// Complex numbers as C and C++ name them: real part, then imaginary part.
#ifndef GPUSHMEM_IMPL_COMPLEX_TYPES_H
#define GPUSHMEM_IMPL_COMPLEX_TYPES_H

#ifdef __cplusplus
#include <complex>
typedef std::complex<float> gpushmem_complexf;
typedef std::complex<double> gpushmem_complexd;
#else
typedef float _Complex gpushmem_complexf;
typedef double _Complex gpushmem_complexd;
#endif

#endif
