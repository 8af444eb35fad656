#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""NVSHMEM's functions of kernels as a library: libnvshmem_device.bc and .ltoir, for languages that have no headers.

usage: library.py > library.cu     to be compiled with -DGPUSHMEM_NVSHMEM_DEVICE_LIBRARY

Each function of kernels.txt, but those of queue pairs, is exported by its name and calls what nvshmem.h makes of the name.
"""
import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
sys.dont_write_bytecode = True
from prototypes import NVSHMEM, expanded, rows, signature  # noqa: E402

SCOPES = {"t": ("nvshmem_", ""), "x": ("nvshmemx_", ""), "w": ("nvshmemx_", "_warp"), "b": ("nvshmemx_", "_block")}


def prototypes():
    """Result, name, parameters of each function."""
    for family, scopes, prototype in rows(HERE + "/kernels.txt"):
        for text in expanded(family, prototype, NVSHMEM):
            result, name, parameters = signature(text)
            for scope in scopes:
                prefix, suffix = SCOPES[scope]
                yield result, prefix + name + suffix, parameters


def in_header(name):
    """What nvshmem_device.cuh calls the function: a name that the host has, too, has its device half there."""
    alone = re.match(r"nvshmemx_\w+_(warp|block|warpgroup|signal)$|"
                     r"nvshmem_(float|double)_atomic_(add|fetch_add|compare_swap)$", name)
    return "gpsh_own_" + name if alone else "gpsh_dev_" + name


def library():
    wanted = [prototype for prototype in prototypes() if "_qp_" not in prototype[1]]
    renamed = [name for _, name, _ in wanted if in_header(name).startswith("gpsh_own_")]
    lines = ["#define %s gpsh_own_%s" % (name, name) for name in renamed]
    lines += ['#include "gpushmem/compat/impl/nvshmem_device.cuh"'] + ["#undef " + name for name in renamed]
    lines += ["#define HALF gpsh_nvshmem_half", "#define BFLOAT16 gpsh_nvshmem_bfloat16", 'extern "C" {']
    for result, name, parameters in wanted:
        types = [] if parameters == "void" else [part.strip() for part in parameters.split(",")]
        lines.append("__device__ %s %s(%s) { return %s(%s); }" % (
            result, name, ", ".join("%s a%d" % (one, i) for i, one in enumerate(types)), in_header(name),
            ", ".join("a%d" % i for i in range(len(types)))))
    return lines + ["}"]


if __name__ == "__main__":
    print("\n".join(library()))
