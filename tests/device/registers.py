#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Registers of kernels that post to a NIC themselves: a kernel of a block of 1,024 threads has 64 of them, so one call of the
library may not take more, whatever its waits need. Compiled for sm_90 as programs are, with and without -DGPUSHMEM_DEVICE_NIC=1.

usage: registers.py NVCC INCLUDE..."""
import os
import re
import subprocess
import sys
import tempfile

MOST = 64  # 65,536 of a multiprocessor for 1,024 threads
# parameters | the call | the most with the NIC's lane: what was reached, so that more is noticed
CALLS = {
    "p": ("uint64_t *a, int pe", "gpushmem_dev_uint64_p(a, 7, pe)", 48),
    "p_loop": ("uint64_t *a, int n, int pe",
               "for (int i = 0; i < n; i++) gpushmem_dev_uint64_p(a, i, pe); if (!threadIdx.x) gpushmem_dev_quiet()", MOST),
    "g": ("uint64_t *a, uint64_t *out, int pe", "*out = gpushmem_dev_uint64_g(a, pe)", MOST),
    "put": ("void *a, const void *b, size_t n, int pe", "gpushmem_dev_putmem(a, b, n, pe)", MOST),
    "put_nbi": ("void *a, const void *b, size_t n, int pe", "gpushmem_dev_putmem_nbi(a, b, n, pe)", MOST),
    "get": ("void *a, const void *b, size_t n, int pe", "gpushmem_dev_getmem(a, b, n, pe)", 56),
    "put_signal": ("void *a, const void *b, size_t n, uint64_t *s, int pe",
                   "gpushmem_dev_putmem_signal_nbi(a, b, n, s, 1, GPUSHMEM_SIGNAL_SET, pe)", 60),
    "inc": ("uint64_t *a, int pe", "gpushmem_dev_uint64_atomic_inc(a, pe)", 52),
    "fetch_add": ("uint64_t *a, uint64_t *out, int pe", "*out = gpushmem_dev_uint64_atomic_fetch_add(a, 3, pe)", MOST),
    "quiet": ("", "gpushmem_dev_quiet()", 58),
}


def registers(nvcc, includes, *options):
    """Of each kernel."""
    with tempfile.TemporaryDirectory() as folder:
        program = os.path.join(folder, "kernels.cu")
        with open(program, "w", encoding="utf-8") as out:
            out.write("#include <gpushmem/device.cuh>\n")
            for name, (parameters, call, _) in CALLS.items():
                out.write('extern "C" __global__ void %s(%s) { %s; }\n' % (name, parameters, call))
        text = subprocess.run([nvcc, "-std=c++17", "-O3", "-arch=sm_90", "-cubin", "-Xptxas", "-v", *options, "-o",
                               os.path.join(folder, "kernels.cubin"), program, *["-I" + one for one in includes]],
                              check=True, stderr=subprocess.PIPE, universal_newlines=True).stderr
    return {name: int(used) for name, used in
            re.findall(r"Compiling entry function '(\w+)'.*?Used (\d+) registers", text, flags=re.S)}


def main(nvcc, *includes):
    plain, posts = (registers(nvcc, includes, *options) for options in ([], ["-DGPUSHMEM_DEVICE_NIC=1"]))
    failures = 0
    print("%-12s %8s %8s %8s" % ("kernel", "without", "with", "at most"))
    for name, (_, _, most) in CALLS.items():
        good = name in plain and name in posts and plain[name] <= MOST and posts[name] <= most
        failures += not good
        print("%-12s %8s %8s %8d%s" % (name, plain.get(name), posts.get(name), most, "" if good else "  too many"))
    return 1 if failures else 0


sys.exit(main(*sys.argv[1:]))
