#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Registers of kernels without __launch_bounds__ that make one call of the library. A multiprocessor has 65,536, so 64 for each
thread of a block of 1,024, and 128 for 512. Compiled for sm_90 as programs are: in one piece, where the kernel and what it
calls share their registers, and with relocatable device code, where nvlink gives the kernel those of the greediest function
that it may call. Each with and without -DGPUSHMEM_DEVICE_NIC=1.

usage: registers.py NVCC INCLUDE..."""
import glob
import os
import re
import subprocess
import sys
import tempfile

MOST = 64
BLOCK = "void *a, const void *b, size_t n, int pe"
DATA = "float *a, const float *b, size_t n"
# parameters | the call | the most with the NIC's lane: what was reached, so that more is noticed
CALLS = {
    "p": ("uint64_t *a, int pe", "gpushmem_dev_uint64_p(a, 7, pe)", 48),
    "p_loop": ("uint64_t *a, int n, int pe",
               "for (int i = 0; i < n; i++) gpushmem_dev_uint64_p(a, i, pe); if (!threadIdx.x) gpushmem_dev_quiet()", MOST),
    "g": ("uint64_t *a, uint64_t *out, int pe", "*out = gpushmem_dev_uint64_g(a, pe)", MOST),
    "put": (BLOCK, "gpushmem_dev_putmem(a, b, n, pe)", MOST),
    "put_nbi": (BLOCK, "gpushmem_dev_putmem_nbi(a, b, n, pe)", MOST),
    "get": (BLOCK, "gpushmem_dev_getmem(a, b, n, pe)", 56),
    "put_signal": ("void *a, const void *b, size_t n, uint64_t *s, int pe",
                   "gpushmem_dev_putmem_signal_nbi(a, b, n, s, 1, GPUSHMEM_SIGNAL_SET, pe)", MOST),
    "inc": ("uint64_t *a, int pe", "gpushmem_dev_uint64_atomic_inc(a, pe)", 52),
    "fetch_add": ("uint64_t *a, uint64_t *out, int pe", "*out = gpushmem_dev_uint64_atomic_fetch_add(a, 3, pe)", MOST),
    "quiet": ("", "gpushmem_dev_quiet()", 58),
    "fence": ("", "gpushmem_dev_fence()", MOST),
    "put_block": (BLOCK, "gpushmem_dev_putmem_block(a, b, n, pe)", MOST),
    "get_block": (BLOCK, "gpushmem_dev_getmem_block(a, b, n, pe)", MOST),
    "signal_block": ("void *a, const void *b, size_t n, uint64_t *s, int pe",
                     "gpushmem_dev_putmem_signal_block(a, b, n, s, 1, GPUSHMEM_SIGNAL_ADD, pe)", MOST),
    "barrier": ("", "gpushmem_dev_barrier(GPUSHMEM_TEAM_WORLD)", 80),
    "barrier_block": ("", "gpushmem_dev_barrier_block(GPUSHMEM_TEAM_WORLD)", 80),
    "sync_block": ("", "gpushmem_dev_team_sync_block(GPUSHMEM_TEAM_WORLD)", 80),
}
# Linked alone: as many functions as these call take long to compile for each kernel by itself.
LINKED = {
    "reduce": (DATA, "gpushmem_dev_float_sum_reduce(GPUSHMEM_TEAM_WORLD, a, b, n)"),
    "reduce_warp": (DATA, "gpushmem_dev_float_sum_reduce_warp(GPUSHMEM_TEAM_WORLD, a, b, n)"),
    "reduce_block": (DATA, "gpushmem_dev_float_sum_reduce_block(GPUSHMEM_TEAM_WORLD, a, b, n)"),
    "fcollect_block": (DATA, "gpushmem_dev_float_fcollect_block(GPUSHMEM_TEAM_WORLD, a, b, n)"),
    "alltoall_block": (DATA, "gpushmem_dev_float_alltoall_block(GPUSHMEM_TEAM_WORLD, a, b, n)"),
    "bcast_block": (DATA, "gpushmem_dev_float_broadcast_block(GPUSHMEM_TEAM_WORLD, a, b, n, 0)"),
}


def compiled(folder, nvcc, includes, calls, *options):
    """A cubin, and what ptxas says."""
    program, cubin = os.path.join(folder, "kernels.cu"), os.path.join(folder, "kernels.cubin")
    with open(program, "w", encoding="utf-8") as out:
        out.write("#include <gpushmem/device.cuh>\n")
        for name, (parameters, call, *_) in calls.items():
            out.write('extern "C" __global__ void %s(%s) { %s; }\n' % (name, parameters, call))
    said = subprocess.run([nvcc, "-std=c++17", "-O3", "-arch=sm_90", "-cubin", "-Xptxas", "-v", *options, "-o", cubin, program,
                           *["-I" + one for one in includes]], check=True, stderr=subprocess.PIPE, universal_newlines=True)
    return cubin, said.stderr


def registers(nvcc, includes, *options):
    """Of each kernel."""
    with tempfile.TemporaryDirectory() as folder:
        _, text = compiled(folder, nvcc, includes, CALLS, *options)
    return {name: int(used) for name, used in
            re.findall(r"Compiling entry function '(\w+)'.*?Used (\d+) registers", text, flags=re.S)}


def linked(nvcc, includes, *options):
    """The same with relocatable device code."""
    with tempfile.TemporaryDirectory() as folder:
        cubin, _ = compiled(folder, nvcc, includes, {**CALLS, **LINKED}, "-rdc=true", *options)
        text = subprocess.run([nvcc, "-arch=sm_90", "-dlink", "-cubin", "-Xnvlink", "-v", cubin, "-o", cubin + ".linked"],
                              check=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True).stdout
    return {name: int(used) for name, used in
            re.findall(r"Function properties for '(\w+)':\s*nvlink info\s*: used (\d+) registers", text)}


def unbounded(includes):
    """Functions of the headers that are not inlined and say nothing of their registers: others than those above."""
    for header in [path for one in includes for path in glob.glob(one + "/gpushmem/device/*.cuh")]:
        with open(header, encoding="utf-8") as text:
            for name in re.findall(r"^GPSH_DEV_CALL[^;{]*?(\w+)\([^;{]*\)\n\{\n(?!    GPSH_DEV_BOUNDS\(\);)", text.read(), flags=re.M):
                yield "%s: %s does not begin with GPSH_DEV_BOUNDS" % (header, name)


def main(nvcc, *includes):
    lane = ["-DGPUSHMEM_DEVICE_NIC=1"]
    columns = [of(nvcc, includes, *options) for of in (registers, linked) for options in ([], lane)]
    failures = 0
    for complaint in unbounded(includes):
        print(complaint)
        failures += 1
    print("%-14s %8s %8s %8s %8s" % ("kernel", "plain", "NIC", "linked", "with NIC"))
    for name, row in {**CALLS, **LINKED}.items():
        limits = [MOST, row[2], MOST, MOST] if name in CALLS else [None, None, MOST, MOST]
        used = [column.get(name) for column in columns]
        good = all(most is None or (n is not None and n <= most) for n, most in zip(used, limits))
        failures += not good
        print("%-14s %8s %8s %8s %8s%s" % (name, *["" if n is None else n for n in used], "" if good else "  too many"))
    return 1 if failures else 0


sys.exit(main(*sys.argv[1:]))
