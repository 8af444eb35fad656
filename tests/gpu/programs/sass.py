#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A call by NVSHMEM's name is the same machine code as ours: kernels that differ in that name only, compiled for sm_90, have the
same instructions in the same number.

usage: sass.py NVCC INCLUDE...     cuobjdump: beside nvcc, in PATH, or that of the Python packages nvidia-cuda-cuobjdump and
                                   nvidia-cuda-nvdisasm. Exit code 77: there is none"""
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter

# parameters | the call with {} for its name | our name | NVSHMEM's
CALLS = {
    "p": ("int *a, int pe", "{}(a, 7, pe)", "gpushmem_dev_int_p", "nvshmem_int_p"),
    "put_nbi_block": ("void *a, const void *b, size_t n, int pe", "{}(a, b, n, pe)", "gpushmem_dev_putmem_nbi_block",
                      "nvshmemx_putmem_nbi_block"),
    "put_signal": ("void *a, const void *b, size_t n, uint64_t *s, int pe", "{}(a, b, n, s, 1, GPUSHMEM_SIGNAL_SET, pe)",
                   "gpushmem_dev_putmem_signal", "nvshmem_putmem_signal"),
    "signal_op": ("uint64_t *s, int pe", "{}(s, 1, GPUSHMEM_SIGNAL_ADD, pe)", "gpushmem_dev_signal_op", "nvshmemx_signal_op"),
    "fetch_add": ("uint64_t *a, uint64_t *out, int pe", "*out = {}(a, 3, pe)", "gpushmem_dev_uint64_atomic_fetch_add",
                  "nvshmem_uint64_atomic_fetch_add"),
    "signal_wait": ("uint64_t *s, uint64_t *out", "*out = {}(s, GPUSHMEM_CMP_GE, 4)", "gpushmem_dev_signal_wait_until",
                    "nvshmem_signal_wait_until"),
    "quiet": ("void", "{}()", "gpushmem_dev_quiet", "nvshmem_quiet"),
}
SIDES = ("ours", "nv")
OPCODE = re.compile(r"^\s+/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P[\dT]+\s+)?([A-Z][A-Z0-9_.]*)", re.M)


def find_cuobjdump(nvcc):
    places = [os.path.join(os.path.dirname(os.path.realpath(shutil.which(nvcc) or nvcc)), "cuobjdump"),
              shutil.which("cuobjdump") or "cuobjdump"]
    for folder in sys.path:
        places += glob.glob(os.path.join(glob.escape(folder or "."), "nvidia", "cu*", "bin", "cuobjdump"))
    return next((place for place in places if os.access(place, os.X_OK)), None)


def kernels():
    lines = ["#include <gpushmem/device.cuh>", "#include <nvshmem.h>", "#include <nvshmemx.h>"]
    for name, (parameters, call, *names) in CALLS.items():
        lines += ['extern "C" __global__ void %s_%s(%s) { %s; }' % (side, name, parameters, call.format(function))
                  for side, function in zip(SIDES, names)]
    return "\n".join(lines) + "\n"


def instructions(nvcc, cuobjdump, includes):
    """Of each kernel, how many there are of each."""
    environment = dict(os.environ, PATH=os.path.dirname(cuobjdump) + os.pathsep + os.environ.get("PATH", ""))  # for nvdisasm
    with tempfile.TemporaryDirectory() as folder:
        program, cubin = os.path.join(folder, "kernels.cu"), os.path.join(folder, "kernels.cubin")
        with open(program, "w", encoding="utf-8") as out:
            out.write(kernels())
        subprocess.run([nvcc, "-std=c++17", "-O3", "-arch=sm_90", "-cubin", "-o", cubin, program,
                        *["-I" + one for one in includes]], check=True)
        text = subprocess.run([cuobjdump, "-sass", cubin], check=True, stdout=subprocess.PIPE, universal_newlines=True,
                              env=environment).stdout
    parts = re.split(r"^\s*Function : (\w+)$", text, flags=re.M)
    return {name: Counter(OPCODE.findall(code)) for name, code in zip(parts[1::2], parts[2::2])}


def main(nvcc, *includes):
    cuobjdump = find_cuobjdump(nvcc)
    if not cuobjdump:
        print("sass: skipped: there is no cuobjdump beside nvcc, in PATH, or in a Python package")
        return 77
    found, differ = instructions(nvcc, cuobjdump, includes), 0
    for name in CALLS:
        ours, theirs = (found.get("%s_%s" % (side, name), Counter()) for side in SIDES)
        same = ours == theirs and sum(ours.values()) > 5
        differ += not same
        print("%-14s %5d %5d  %s" % (name, sum(ours.values()), sum(theirs.values()), "same" if same else
                                     "differ: %s" % ((ours - theirs) + (theirs - ours))))
    return 1 if differ else 0


sys.exit(main(*sys.argv[1:]))
