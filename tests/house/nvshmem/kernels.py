#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""NVSHMEM's API of kernels: every function of kernels.txt has its signature where kernels are compiled.

usage: kernels.py emulated CXX INCLUDE...        by a C++ compiler, for CPU threads
       kernels.py cuda NVCC INCLUDE...           by nvcc; five calls have the instructions of ours, too
       kernels.py names NAME...                  these names are in kernels.txt
"""
import os
import re
import subprocess
import sys
import tempfile

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

# The same kernel over both APIs, of which only these words differ: (NVSHMEM's, ours).
PAIRS = {
    "p": ("nvshmem_int_p(d, 5, pe)", "gpushmem_dev_int_p(d, 5, pe)"),
    "put_block": ("nvshmemx_int_put_nbi_block(d, s, n, pe)", "gpushmem_dev_int_put_nbi_block(d, s, n, pe)"),
    "put_signal": ("nvshmem_int_put_signal(d, s, n, w, 1, NVSHMEM_SIGNAL_SET, pe)",
                   "gpushmem_dev_int_put_signal(d, s, n, w, 1, GPUSHMEM_SIGNAL_SET, pe)"),
    "fetch_add": ("*d = nvshmem_int_atomic_fetch_add(d, 3, pe)", "*d = gpushmem_dev_int_atomic_fetch_add(d, 3, pe)"),
    "quiet": ("nvshmem_quiet()", "gpushmem_dev_quiet()"),
    "wait": ("*w = nvshmem_signal_wait_until(w, NVSHMEM_CMP_GE, 4)",
             "*w = gpushmem_dev_signal_wait_until(w, GPUSHMEM_CMP_GE, 4)"),
    "reduce": ("*d = nvshmemx_int_sum_reduce_warp(pe, d, s, n)", "*d = gpushmem_dev_int_sum_reduce_warp(pe, d, s, n)"),
}


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


def checks():
    lines = ["#include <nvshmem.h>", "#include <nvshmemx.h>", "#include <type_traits>", "#define HALF gpsh_nvshmem_half",
             "#define BFLOAT16 gpsh_nvshmem_bfloat16"]
    for result, name, parameters in prototypes():
        lines.append('static_assert(std::is_same<decltype(&%s), %s(*)(%s)>::value, "%s");' % (name, result, parameters, name))
    return lines


def compile_text(compiler, flags, includes, text):
    """What the compiler writes to its output."""
    with tempfile.TemporaryDirectory() as folder:
        source, out = os.path.join(folder, "kernels.cu"), os.path.join(folder, "out")
        with open(source, "w", encoding="utf-8") as file:
            file.write("\n".join(text) + "\n")
        done = subprocess.run([compiler, "-std=c++17", *["-I" + i for i in includes], *flags, source, "-o", out],
                              capture_output=True, text=True)
        if done.returncode:
            sys.exit("kernels.py: refused by %s:\n%s" % (compiler, done.stderr[:4000]))
        with open(out, encoding="utf-8", errors="replace") as file:
            return file.read()


def kernel(name, call):
    return "__global__ void %s(int *d, const int *s, size_t n, uint64_t *w, int pe) { %s; }" % (name, call)


def instructions(ptx, name):
    """The words of the instructions of an entry, without registers."""
    body = re.search(r"\.entry %s\(.*?\n\{(.*?)\n\}" % re.escape(name), ptx, re.S)
    if not body:
        sys.exit("kernels.py: there is no %s in the PTX" % name)
    words = re.findall(r"^\s*(?:@!?%p\d+\s+)?([a-z][\w.]*)[\s;]", body[1], re.M)
    return [word for word in words if word not in ("loc", "file")]


def compare(ptx):
    failed = False
    for pair in PAIRS:
        theirs, ours = [instructions(ptx, "%s_%s" % (side, pair)) for side in ("nv", "own")]
        print("%s: %d instructions, ours %d" % (pair, len(theirs), len(ours)))
        failed |= theirs != ours or len(ours) < 2
    sys.exit(failed)


def main():
    mode, arguments = sys.argv[1], sys.argv[2:]
    if mode == "names":
        known = {name for _, name, _ in prototypes()}
        unknown = [name for name in arguments if name not in known]
        sys.exit("kernels.py: not in kernels.txt: %s" % ", ".join(unknown) if unknown else 0)
    count = len(list(prototypes()))
    if mode == "emulated":
        compile_text(arguments[0], ["-xc++", "-DGPUSHMEM_EMULATION", "-Wall", "-Wextra", "-Werror", "-S"], arguments[1:],
                     checks())
        print("%d functions" % count)
        return
    pairs = ['#include "gpushmem/device.cuh"', 'extern "C" {']
    for pair, (theirs, ours) in PAIRS.items():
        pairs += [kernel("nv_" + pair, theirs), kernel("own_" + pair, ours)]
    ptx = compile_text(arguments[0], ["-ptx", "-arch=compute_80"], arguments[1:], checks() + pairs + ["}"])
    print("%d functions" % count)
    compare(ptx)


main()
