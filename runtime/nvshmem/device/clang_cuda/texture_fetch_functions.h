// SPDX-License-Identifier: BSD-3-Clause
// clang up to 19 includes this header of CUDA, which CUDA 13 no longer has. Nothing of it is used.
