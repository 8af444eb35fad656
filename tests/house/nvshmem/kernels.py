#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""NVSHMEM's API of kernels: every function of runtime/nvshmem/device/kernels.txt has its signature where kernels are compiled,
and so has every function of the host's side (api.txt), many of which have a row in both tables.

usage: kernels.py emulated CXX INCLUDE...        by a C++ compiler, for CPU threads
       kernels.py toolkit CXX CUDA INCLUDE...    with CUDA's 16-bit types, from its headers in CUDA
       kernels.py cuda NVCC INCLUDE...           by nvcc; five calls have the instructions of ours, too
Each reads that the names of used_in_kernels.txt are among them.
"""
import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../../../runtime/nvshmem/device"))
sys.dont_write_bytecode = True
from library import prototypes  # noqa: E402  the table of the functions is there
from prototypes import NVSHMEM, expanded, rows, signature, words  # noqa: E402

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


def all_prototypes(cuda):
    """Of both sides. On CPU threads collective launches (family CUDA) take the kernel itself, and are templates."""
    found = set(prototypes())
    for family, prototype in rows(os.path.join(HERE, "api.txt")):
        if cuda or family != "CUDA":
            found.update(signature(text) for text in expanded(family, prototype, NVSHMEM))
    used = words(os.path.join(HERE, "used_in_kernels.txt"))
    unknown = sorted(used - {name for _, name, _ in prototypes()})
    if unknown or len(used) < 250:
        sys.exit("kernels.py: of %d names that kernels use, kernels.txt has not: %s" % (len(used), ", ".join(unknown)))
    if len(found) < 3600:
        sys.exit("kernels.py: only %d functions were read: does this test still see them?" % len(found))
    return sorted(found)


def checks(cuda):
    lines = ["#include <nvshmem.h>", "#include <nvshmemx.h>", "#include <type_traits>", "#define HALF gpsh_nvshmem_half",
             "#define BFLOAT16 gpsh_nvshmem_bfloat16"]
    for result, name, parameters in all_prototypes(cuda):
        lines.append('static_assert(std::is_same<decltype(&%s), %s(*)(%s)>::value, "%s");' % (name, result, parameters, name))
    return lines


# A program for CPU threads uses CUDA's 16-bit types, which it includes before our headers, or after them.
HALVES = ["#include <cuda_fp16.h>", "#include <cuda_bf16.h>"]
USE_OF_HALVES = """
    static_assert(std::is_same<gpushmem_half, __half>::value && std::is_same<gpushmem_bfloat16, __nv_bfloat16>::value, "");
    __global__ void halves(__half *h, __nv_bfloat16 *b, float4 *f, int pe)
    {
        nvshmem_half_p(h, __float2half(__half2float(nvshmem_half_g(h, pe)) + 1), pe);
        nvshmem_bfloat16_p(b, nvshmem_bfloat16_g(b, pe), pe);
        gpushmem_dev_half_put(h + 1, h, 1, pe);
        gpushmem_dev_put(b + 1, b, 1, pe);
        *f = make_float4(1, 2, 3, (float)blockDim.x);
    }"""


def toolkit(compiler, cuda, includes):
    flags = ["-xc++", "-DGPUSHMEM_EMULATION", "-Wall", "-Wextra", "-Werror", "-isystem", cuda, "-fsyntax-only"]
    compile_text(compiler, flags, includes, HALVES + checks(False)[:3] + ["#include <gpushmem/device.cuh>", USE_OF_HALVES])
    late = ["#include <gpushmem/device.cuh>", *HALVES, "float value(__half h) { return __half2float(h); }"]
    compile_text(compiler, flags, includes, late)


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
        if not os.path.exists(out):
            return ""
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
    count = len(all_prototypes(mode == "cuda"))
    if mode == "emulated":
        compile_text(arguments[0], ["-xc++", "-DGPUSHMEM_EMULATION", "-Wall", "-Wextra", "-Werror", "-S"], arguments[1:],
                     checks(False))
        print("%d functions" % count)
        return
    if mode == "toolkit":
        toolkit(arguments[0], arguments[1], arguments[2:])
        return
    pairs = ['#include "gpushmem/device.cuh"', 'extern "C" {']
    for pair, (theirs, ours) in PAIRS.items():
        pairs += [kernel("nv_" + pair, theirs), kernel("own_" + pair, ours)]
    ptx = compile_text(arguments[0], ["-ptx", "-arch=compute_80"], arguments[1:], checks(True) + pairs + ["}"])
    print("%d functions" % count)
    compare(ptx)


main()
