#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Every function of NVSHMEM's host API (api.txt) has its signature in nvshmem.h, in C11 and in C++17, in line and declared, and
is exported by libnvshmem_host, whose other names are gpushmem's.

usage: names.py INCLUDE LIBNVSHMEM_HOST CC CXX [NAME...]     the further names have to be in api.txt as well"""
import os
import re
import subprocess
import sys

INCLUDE, LIBRARY, CC, CXX = sys.argv[1:5]

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
    "STREAM_WORDS": "uint64=uint64_t ulong=unsigned_long ulonglong=unsigned_long_long size=size_t",
}
SIZES = {"SIZES": (8, 16, 32, 64, 128), "FORMS": (8, 16, 32, 64, 128, "mem")}


def operators(text):
    match = re.search(r"OPS\{([\w,]+)\}", text)
    return [text[:match.start()] + op + text[match.end():] for op in match[1].split(",")] if match else [text]


def expanded(family, text):
    if family in SIZES:
        return [one.replace("SIZE", str(bits)) for bits in SIZES[family] for one in operators(text)]
    if family in ("-", "CUDA"):
        return operators(text)
    kinds = [word.split("=") for word in FAMILIES[family].split()]
    return [re.sub(r"\bTYPE\b", kind.replace("_t", "@t").replace("_", " ").replace("@", "_"), one.replace("NAME", name))
            for name, kind in kinds for one in operators(text)]


def prototypes():
    """Result, name, parameters, and whether CUDA's headers are needed."""
    for line in open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "api.txt")):
        if line.startswith("#") or "|" not in line:
            continue
        family, prototype = [part.strip() for part in line.split("|")]
        for text in expanded(family, prototype):
            result, name, parameters = re.match(r"(.*?[ *])(\w+)\((.*)\)$", text).groups()
            yield result, name, parameters, family == "CUDA"


def program(names):
    # the smaller headers first: none may need what another one brings
    lines = ["#include <%s>" % header for header in
             ("device_host/nvshmem_types.h", "non_abi/nvshmem_version.h", "host/nvshmemx_api.h", "host/nvshmem_api.h",
              "nvshmem_host.h", "nvshmemx.h", "nvshmem.h")]
    lines += ["#ifdef GPSH_NVSHMEM_CUDA", "#ifdef __cplusplus", "typedef __half HALF;", "typedef __nv_bfloat16 BFLOAT16;",
              "#endif", "#endif", "#if !defined(GPSH_NVSHMEM_CUDA) || !defined(__cplusplus)",
              "typedef gpushmem_half HALF;", "typedef gpushmem_bfloat16 BFLOAT16;", "#endif"]
    for i, (result, name, parameters, cuda) in enumerate(names):
        lines.append("%sextern %s(*const f%d)(%s);" % ("#ifdef GPSH_NVSHMEM_CUDA\n" if cuda else "", result, i, parameters))
        lines.append("%s(*const f%d)(%s) = %s;%s" % (result, i, parameters, name, "\n#endif" if cuda else ""))
    return "\n".join(lines) + "\n"


def compiled(command, text):
    run = subprocess.run(command + ["-fsyntax-only", "-Wall", "-Wextra", "-Werror", "-I" + INCLUDE + "/gpushmem/compat",
                                    "-I" + INCLUDE, "-"], input=text, capture_output=True, text=True)
    if run.returncode:
        print(" ".join(command), "refuses:\n" + "\n".join(run.stderr.splitlines()[:20]))
    return run.returncode == 0


def main():
    names = list(prototypes())
    text = program(names)
    fine = True
    for flags in ([], ["-DNVSHMEM_HOSTLIB_ONLY", "-DGPSH_NVSHMEM_NO_CUDA"]):
        fine = compiled([CC, "-std=c11", "-xc"] + flags, text) and fine
    for flags in (["-DGPSH_NVSHMEM_NO_CUDA"], ["-DNVSHMEM_HOSTLIB_ONLY"]):
        fine = compiled([CXX, "-std=c++17", "-xc++"] + flags, text) and fine
    out = subprocess.run(["nm", "-D", "--defined-only", LIBRARY], capture_output=True, text=True, check=True).stdout
    exported = {line.split()[2].split("@")[0] for line in out.splitlines() if line.split()[1] == "T"}
    wanted = {name for _, name, _, _ in names}
    for name in sorted(wanted - exported)[:20]:
        print("libnvshmem_host does not export", name)
    foreign = sorted(name for name in exported - wanted if not name.startswith("gpushmem_"))
    if foreign:
        print("libnvshmem_host exports what api.txt does not have:", " ".join(foreign[:20]))
    missing = sorted(set(sys.argv[5:]) - wanted)
    if missing:
        print("api.txt does not have:", " ".join(missing))
    if len(names) < 1400:
        print("only %d functions were read: does this test still see them?" % len(names))
    fine = fine and wanted <= exported and not foreign and not missing and len(names) >= 1400
    print("names: ok: %d functions" % len(names) if fine else "names: failed")
    return 0 if fine else 1


sys.exit(main())
