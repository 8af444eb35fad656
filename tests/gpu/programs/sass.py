#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A call by NVSHMEM's name is the same machine code as ours: kernels that differ in that name only, compiled for sm_90, have the
same instructions in the same number.

usage: sass.py NVCC CUOBJDUMP SOURCE BUILD     exit code 77: there is no cuobjdump"""
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter

# parameters | the call with {} for what begins its name | ours | NVSHMEM's
CALLS = {
    "p": ("int *a, int pe", "{}(a, 7, pe)", "gpushmem_dev_int_p", "nvshmem_int_p"),
    "put_nbi_block": ("void *a, const void *b, size_t n, int pe", "{}(a, b, n, pe)", "gpushmem_dev_putmem_nbi_block",
                      "nvshmemx_putmem_nbi_block"),
    "put_signal": ("void *a, const void *b, size_t n, uint64_t *s, int pe", "{}(a, b, n, s, 1, GPUSHMEM_SIGNAL_SET, pe)", "gpushmem_dev_putmem_signal",
                   "nvshmem_putmem_signal"),
    "fetch_add": ("uint64_t *a, uint64_t *out, int pe", "*out = {}(a, 3, pe)", "gpushmem_dev_uint64_atomic_fetch_add",
                  "nvshmem_uint64_atomic_fetch_add"),
    "signal_wait": ("uint64_t *s, uint64_t *out", "*out = {}(s, GPUSHMEM_CMP_GE, 4)", "gpushmem_dev_signal_wait_until",
                    "nvshmem_signal_wait_until"),
    "quiet": ("void", "{}()", "gpushmem_dev_quiet", "nvshmem_quiet"),
}
OPCODE = re.compile(r"^\s+/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P[\dT]+\s+)?([A-Z][A-Z0-9_.]*)", re.M)


def write(path, side):
    with open(path, "w") as out:
        out.write("#define GPUSHMEM_DEVICE_CHECKS 0\n#include <gpushmem/device.cuh>\n#include <nvshmem.h>\n#include <nvshmemx.h>\n")
        for name, (parameters, call, *names) in CALLS.items():
            out.write('extern "C" __global__ void %s(%s) { %s; }\n' % (name, parameters, call.format(names[side])))


def instructions(folder, side, nvcc, cuobjdump, source, build):
    program, cubin = (os.path.join(folder, "%d.%s" % (side, kind)) for kind in ("cu", "cubin"))
    write(program, side)
    includes = ["-I" + one for one in (source + "/include", source + "/include/gpushmem/compat", build + "/include")]
    subprocess.run([nvcc, "-std=c++17", "-O3", "-arch=sm_90", "-cubin", "-o", cubin, program, *includes], check=True)
    text = subprocess.run([cuobjdump, "-sass", cubin], check=True, stdout=subprocess.PIPE, universal_newlines=True).stdout
    parts = re.split(r"^\s*Function : (\w+)$", text, flags=re.M)
    return {name: Counter(OPCODE.findall(code)) for name, code in zip(parts[1::2], parts[2::2])}


def main(nvcc, cuobjdump, source, build):
    if not shutil.which(cuobjdump):
        print("sass: skipped: there is no " + cuobjdump)
        return 77
    with tempfile.TemporaryDirectory() as folder:
        ours, theirs = (instructions(folder, side, nvcc, cuobjdump, source, build) for side in (0, 1))
    differ = 0
    for name in CALLS:
        assert sum(ours[name].values()) > 5, "no instructions of %s: %s" % (name, ours[name])
        same = ours[name] == theirs[name]
        differ += not same
        print("%-14s %5d %5d  %s" % (name, sum(ours[name].values()), sum(theirs[name].values()), "same" if same else
                                     "differ: %s" % ((ours[name] - theirs[name]) + (theirs[name] - ours[name]))))
    return 1 if differ else 0


sys.exit(main(*sys.argv[1:]))
