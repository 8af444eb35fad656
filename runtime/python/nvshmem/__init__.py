# SPDX-License-Identifier: BSD-3-Clause
"""A stand-in for NVSHMEM's Python bindings over gpushmem, for frameworks that import nvshmem.core. It is in a wheel only if asked for
(docs/python.md), and takes the place of the bindings themselves: install one or the other."""
from . import bindings, core

__all__ = ["bindings", "core"]
