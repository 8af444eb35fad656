#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Called by conda build, in a copy of the project. The module finds the library beside the environment's own.
set -euo pipefail
cmake -S . -B build/conda -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_INSTALL_PREFIX="$PREFIX" -DCMAKE_PREFIX_PATH="$PREFIX" \
    -DCMAKE_INSTALL_LIBDIR=lib -DGPUSHMEM_TESTS=OFF -DGPUSHMEM_EXAMPLES=OFF -DGPUSHMEM_CUDA=OFF
cmake --build build/conda --target gpushmem gpushmem_cli gpushmem_shmem
cmake --install build/conda
"$PYTHON" -m pip install --no-deps --no-build-isolation runtime/python
