#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What the headers cost a compiler: processor time in ms, the least of some runs, and lines and KiB after the preprocessor.

usage: compile_time.py SOURCE_DIR BUILD_DIR CXX [NVCC] [RUNS]

Each program is compiled beside one that has what CUDA itself brings. Fails if one does not compile, or has more lines or KiB
than CASES says: a row of a table of functions is one line, however long, so that the lines alone do not show it.
"""
import os
import resource
import subprocess
import sys
import tempfile

SOURCE, BUILD, CXX = sys.argv[1:4]
NVCC = sys.argv[4] if len(sys.argv) > 4 and sys.argv[4] != "-" else None
RUNS = int(sys.argv[5]) if len(sys.argv) > 5 else 1
INCLUDES = ["-I%s/include/gpushmem/compat" % SOURCE, "-I%s/include" % SOURCE, "-I%s/include" % BUILD]
CUDA = ["-I" + os.path.join(os.path.dirname(os.path.dirname(os.path.realpath(NVCC))), "include")] if NVCC else []
HALVES = "#include <cuda_fp16.h>\n#include <cuda_bf16.h>\n"
KERNEL = "__global__ void kernel(int *d, int pe) { %s; }\n"
HOST, DEVICE = [CXX, "-std=c++17", "-fsyntax-only"], [NVCC, "-std=c++17", "-arch=sm_90", "-c", "-o", os.devnull]

# (name, command, text, most lines, most KiB)
CASES = [("gpushmem.h and device.cuh on CPU threads", HOST + ["-DGPUSHMEM_EMULATION"],
          "#include <gpushmem/gpushmem.h>\n#include <gpushmem/device.cuh>\n", 40000, 3800)]
if NVCC:
    CASES += [
        ("CUDA's types alone, by the host's compiler", HOST + CUDA, HALVES + "#include <cuda_runtime.h>\n", None, None),
        ("nvshmem.h, by the host's compiler", HOST + CUDA,
         "#include <nvshmem.h>\nint main() { return nvshmem_my_pe(); }\n", 30000, 1150),
        ("an empty kernel with CUDA's types, by nvcc", DEVICE, HALVES + KERNEL % "*d = pe", None, None),
        ("a kernel with nvshmem_int_p, by nvcc", DEVICE,
         "#include <nvshmem.h>\n" + KERNEL % "nvshmem_int_p(d, 1, pe)", 70000, 4200)]


def run(command):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, capture_output=True, text=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        sys.exit("%s:\n%s" % (" ".join(command), done.stderr[:4000]))
    return 1000 * (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime), done.stdout


def main():
    failed = False
    with tempfile.TemporaryDirectory() as folder:
        print("| program | ms | lines | KiB |\n|---|---|---|---|")
        for name, command, text, *most in CASES:
            source = os.path.join(folder, "program" + (".cu" if command[0] == NVCC else ".cpp"))
            with open(source, "w", encoding="utf-8") as file:
                file.write(text)
            time = min(run(command + INCLUDES + [source])[0] for _ in range(RUNS))
            kept = [word for word in command if word not in ("-fsyntax-only", "-c", "-o", os.devnull)]
            expanded = run(kept + INCLUDES + ["-E", source])[1]
            sizes = [expanded.count("\n"), len(expanded) // 1024]
            print("| %s | %.0f | %d | %d |" % (name, time, *sizes))
            for size, limit, unit in zip(sizes, most, ("lines", "KiB")):
                if limit and size > limit:
                    print("%s: %d %s are more than %d" % (name, size, unit, limit))
                    failed = True
    sys.exit(failed)


main()
