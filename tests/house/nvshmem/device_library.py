#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A kernel that only declares NVSHMEM's functions is linked with libnvshmem_device.ltoir by nvJitLink, as programs for the
driver's API do, and with libnvshmem_device.bc by clang, as Triton does; the cubin has the global that nvshmemx_cumodule_init
looks for. And two units with relocatable device code and libnvshmem_device.a make one program.

usage: device_library.py NVCC CLANG|- LIBRARIES INCLUDE...
Exit code 77: the libraries are not built (ninja nvshmem_device_ltoir nvshmem_device_bc).
"""
import ctypes
import glob
import os
import re
import subprocess
import sys
import tempfile

NVCC, CLANG, LIBRARIES = sys.argv[1:4]
INCLUDES = ["-I" + folder for folder in sys.argv[4:]]
TOOLKIT = os.path.dirname(os.path.dirname(os.path.realpath(NVCC)))
KERNEL = """
extern "C" __device__ int nvshmem_my_pe(void);
extern "C" __device__ void nvshmemx_putmem_block(void *, const void *, size_t, int);
extern "C" __device__ int nvshmem_int_g(const int *, int);
extern "C" __global__ void user(int *p)
{
    nvshmemx_putmem_block(p, p + 4, 16, nvshmem_my_pe() ^ 1);
    p[9] = nvshmem_int_g(p, 0);
}
"""
UNITS = ["""#include <nvshmem.h>
__global__ void one(int *p) { nvshmem_int_p(p, 1, nvshmem_my_pe()); }
void other_unit();
int main() { one<<<1, 1>>>(0); other_unit(); }
""", """#include <nvshmem.h>
#include <nvshmemx.h>
__global__ void two(int *p) { nvshmemx_int_put_block(p, p, 3, nvshmem_n_pes() - 1); }
void other_unit() { two<<<1, 1>>>(0); }
"""]


def run(*words):
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode:
        sys.exit("device_library.py: %s\n%s" % (" ".join(words), (done.stdout + done.stderr)[:3000]))
    return done.stdout


def write(path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    return path


def expect_state(cubin):
    with open(cubin, "rb") as file:
        bytes_of = file.read()
    for name in (b"nvshmemi_device_state_d", b"nvshmemi_device_lib_version_d", b"user"):
        if name not in bytes_of:
            sys.exit("device_library.py: %s has no %s" % (cubin, name.decode()))


def expect_triton_takes(bitcode):
    """Without Triton: what its LLVM aborts on, or does not link with its own module."""
    ir = run(CLANG, "-x", "ir", "--target=nvptx64-nvidia-cuda", "-nogpulib", "-Wno-unknown-cuda-version", "-O0", "-S", "-Xclang",
             "-disable-llvm-passes", "-emit-llvm", bitcode, "-o", "-")
    if "nvvm-reflect-ftz" in ir:
        sys.exit("device_library.py: %s has the module flag nvvm-reflect-ftz, which conflicts with Triton's" % bitcode)
    by_value = re.findall(r"^define internal [^@\n]*@([\w.$]+)\([^\n]*byval\(", ir, re.M)
    if by_value:
        sys.exit("device_library.py: Triton's LLVM aborts on structs by value, as %s has them" % by_value[0])
    if "gpsh_dev_" not in ir:
        sys.exit("device_library.py: %s has none of our functions" % bitcode)


def jit_link(inputs, out):
    """LTO IR, by nvJitLink as it is loaded by name."""
    library = ctypes.CDLL(sorted(glob.glob(TOOLKIT + "/lib*/libnvJitLink.so.*"))[0])
    version = os.path.basename(library._name).split(".so.")[1].split(".")[0]

    def call(name, *arguments):
        status = getattr(library, "__nvJitLink%s_%s_0" % (name, version))(*arguments)
        if status:
            sys.exit("device_library.py: nvJitLink%s returns %d" % (name, status))

    handle, size = ctypes.c_void_p(), ctypes.c_size_t()
    call("Create", ctypes.byref(handle), 2, (ctypes.c_char_p * 2)(b"-arch=sm_90", b"-lto"))
    for path in inputs:
        with open(path, "rb") as file:
            text = file.read()
        call("AddData", handle, 3, text, ctypes.c_size_t(len(text)), path.encode())
    call("Complete", handle)
    call("GetLinkedCubinSize", handle, ctypes.byref(size))
    cubin = ctypes.create_string_buffer(size.value)
    call("GetLinkedCubin", handle, cubin)
    with open(out, "wb") as file:
        file.write(cubin.raw)


def main():
    ltoir, bitcode = LIBRARIES + "/libnvshmem_device.ltoir", LIBRARIES + "/libnvshmem_device.bc"
    if not os.path.exists(ltoir):
        print("device_library.py: there is no libnvshmem_device.ltoir; ninja nvshmem_device_ltoir nvshmem_device_bc")
        sys.exit(77)
    with tempfile.TemporaryDirectory() as folder:
        kernel = write(folder + "/user.cu", KERNEL)
        run(NVCC, "-rdc=true", "-dlto", "-arch=sm_90", "-ltoir", kernel, "-o", folder + "/user.ltoir")
        jit_link([folder + "/user.ltoir", ltoir], folder + "/jit.cubin")
        expect_state(folder + "/jit.cubin")
        print("ltoir: linked")
        if CLANG != "-" and os.path.exists(bitcode):
            here = os.path.dirname(os.path.abspath(__file__)) + "/../../../runtime/nvshmem/device/clang_cuda"
            run(CLANG, "-x", "cuda", "--cuda-device-only", "--cuda-gpu-arch=sm_80", "--cuda-path=" + TOOLKIT, "-O2", "-S",
                "-Wno-unknown-cuda-version", "-I" + here, "-Xclang", "-mlink-builtin-bitcode", "-Xclang", bitcode, kernel, "-o",
                folder + "/bc.ptx")
            run(NVCC, "-cubin", "-arch=sm_80", folder + "/bc.ptx", "-o", folder + "/bc.cubin")
            with open(folder + "/bc.ptx", encoding="utf-8") as ptx:
                if ".extern .func" in ptx.read():
                    sys.exit("device_library.py: the bitcode leaves functions open")
            expect_triton_takes(bitcode)
            print("bitcode: linked")
        units = [write("%s/unit%d.cu" % (folder, i), text) for i, text in enumerate(UNITS)]
        run(NVCC, "-std=c++17", "-arch=sm_80", "-rdc=true", *INCLUDES, *units, "-o", folder + "/program", "-L" + LIBRARIES,
            "-lnvshmem_device", "-lgpushmem")
        print("archive: linked")


main()
