#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""NVSHMEM's functions of kernels as a library: libnvshmem_device.bc and .ltoir, for languages that have no headers.

usage: library.py > library.cu     to be compiled with -DGPUSHMEM_NVSHMEM_DEVICE_LIBRARY

Each function of kernels.txt, but those of queue pairs, is exported by its name and calls what nvshmem.h makes of the name.
"""
import os
import re

AMO = ("int=int long=long longlong=long_long uint=unsigned_int ulong=unsigned_long ulonglong=unsigned_long_long int32=int32_t "
       "int64=int64_t uint32=uint32_t uint64=uint64_t size=size_t ptrdiff=ptrdiff_t")
INTEGER = ("char=char schar=signed_char short=short uchar=unsigned_char ushort=unsigned_short int8=int8_t int16=int16_t "
           "uint8=uint8_t uint16=uint16_t " + AMO)
FLOAT = "float=float double=double "
FAMILIES = {
    "RMA": "half=HALF bfloat16=BFLOAT16 " + FLOAT + INTEGER,
    "INTEGER": INTEGER,
    "EXTENDED": FLOAT + AMO,
    "AMO": AMO,
    "BITWISE": " ".join(word for word in AMO.split() if not re.match("int=|long=|longlong=|size|ptrdiff", word)),
    "SYNC": "short=short ushort=unsigned_short " + AMO,
}
SIZES = {"SIZES": (8, 16, 32, 64, 128), "FORMS": (8, 16, 32, 64, 128, "mem")}
SCOPES = {"t": ("nvshmem_", ""), "x": ("nvshmemx_", ""), "w": ("nvshmemx_", "_warp"), "b": ("nvshmemx_", "_block")}


def operators(text):
    match = re.search(r"OPS\{([\w,]+)\}", text)
    return [text[:match.start()] + op + text[match.end():] for op in match[1].split(",")] if match else [text]


def expanded(family, text):
    if family in SIZES:
        return [text.replace("SIZE", str(bits)) for bits in SIZES[family]]
    if family == "-":
        return operators(text)
    kinds = [word.split("=") for word in FAMILIES[family].split()]
    return [re.sub(r"\bTYPE\b", kind.replace("_t", "@t").replace("_", " ").replace("@", "_"), one.replace("NAME", name))
            for name, kind in kinds for one in operators(text)]


def prototypes():
    """Result, name, parameters of each function."""
    for line in open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "kernels.txt"), encoding="utf-8"):
        if line.startswith("#") or "|" not in line:
            continue
        family, scopes, prototype = [part.strip() for part in line.split("|")]
        for text in expanded(family, prototype):
            result, name, parameters = re.match(r"(.*?[ *])(\w+)\((.*)\)$", text).groups()
            for scope in scopes:
                prefix, suffix = SCOPES[scope]
                yield result, prefix + name + suffix, parameters


def in_header(name):
    """What nvshmem_device.cuh calls the function: a name that the host has, too, has its device half there."""
    alone = re.match(r"nvshmemx_(\w+_(warp|block|warpgroup|signal)|flush)$|"
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
