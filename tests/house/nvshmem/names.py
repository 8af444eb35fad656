#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Every function of NVSHMEM's host API (api.txt) has its signature in nvshmem.h, in C11 and in C++17, in line and declared, and
is exported by libnvshmem_host, whose other names are gpushmem's. No header of compat/ defines a macro that is neither public nor
named as ours: programs have NVSHMEM_CHECK and the like of their own.

Every name of NVSHMEM 3.8 (names_3.8.txt) is exported, or there in kernels, but for those that the list says are lacking.

usage: names.py INCLUDE LIBNVSHMEM_HOST CC CXX     the names of used_by_programs.txt have to be in api.txt as well"""
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
INCLUDE, LIBRARY, CC, CXX = sys.argv[1:5]
sys.path.insert(0, HERE + "/../../../runtime/nvshmem/device")
sys.dont_write_bytecode = True
from library import prototypes as kernel_prototypes  # noqa: E402
from prototypes import NVSHMEM, expanded, rows, signature, words  # noqa: E402


def prototypes():
    """Result, name, parameters, and whether CUDA's headers are needed."""
    for family, prototype in rows(HERE + "/api.txt"):
        for text in expanded(family, prototype, NVSHMEM):
            yield *signature(text), family == "CUDA"


# Public macros, and the guards of headers; MACRO_CHECK and the like are programs' own.
PUBLIC = re.compile(r"GPSHM?_\w+|GPUSHMEM_\w+|P?SHMEMX?_H|MPP_SHMEM_H|shmem_\w+|nvshmemi_device_state_d|NVSHMEMI_ERROR_PRINT"
                    r"|_?SHMEM_(\w+_SIZE|CMP_\w\w|SYNC_VALUE|(MAJOR|MINOR)_VERSION|VERSION_(MAJOR|MINOR)|VENDOR_STRING|MAX_NAME_LEN)"
                    r"|SHMEM_(THREAD|CTX|TEAM|SIGNAL|MALLOC)_\w+|NVSHMEMX?_\w+_INITIALIZER|_NVSHMEM_DEVICELIB_SUPPORTED"
                    r"|NVSHMEM_(VENDOR_)?(MAJOR|MINOR|PATCH|PACKAGE)_VERSION|NVSHMEM_VENDOR_(VERSION|STRING)"
                    r"|NVSHMEM_(MAX_NAME_LEN|TEAM_NUM_CONTEXTS|TEAM_CONFIG_MASK_\w+)|_CG_LIMIT_INCLUDED_DEPENDENCIES")


def macros_of_programs():
    """What headers define or take away though it may be a program's."""
    for folder, _, files in os.walk(INCLUDE + "/gpushmem/compat"):
        for name in files:
            with open(os.path.join(folder, name)) as header:
                for macro in re.findall(r"^ *# *(?:define|undef) +(\w+)", header.read(), re.M):
                    if not PUBLIC.fullmatch(macro):
                        yield "%s: %s may be a program's own" % (name, macro)


def listed():
    """(version, side, name) of all that names_3.8.txt has, and (side, name) of what it says is lacking."""
    with open(HERE + "/names_3.8.txt", encoding="utf-8") as file:
        lines = [line for line in re.sub(r"\n +", " ", file.read()).splitlines() if not line.startswith("#")]
    types, lacking, names = {"-": [""]}, set(), []
    for line in lines:
        head, _, rest = line.partition(": ")
        columns = head.split()
        if columns[0] == "types":
            types[columns[1]] = columns[2:]
        elif columns[0] == "lacks":
            lacking.add((columns[1], columns[2]))
        else:
            version, side, kind, forms = columns
            for form in forms.split(","):
                prefix, suffix = ("nvshmemx_", form[1:]) if form.startswith("x") else ("nvshmem_", "")
                names += [(version, side, prefix + name.replace("@", one) + suffix) for name in rest.split() for one in types[kind]]
    return names, lacking


def check_listed(exported):
    """What is lacking is what the list says; tells for each version how many names it brought."""
    names, lacking = listed()
    kernels = {name for _, name, _ in kernel_prototypes()}
    with open(INCLUDE + "/gpushmem/compat/nvshmem.h", encoding="utf-8") as header:
        kernels.update(re.findall(r"(?:GPSH_DEV|GPUSHMEM_HOST_DEVICE) \w+ (nvshmemx_\w+_smem)\(", header.read()))
    there = {"host": exported, "kernel": kernels}
    missing = {(side, name) for _, side, name in names if name not in there[side]}
    for version in sorted({version for version, _, _ in names}):
        own = [(side, name) for first, side, name in names if first == version]
        print("names of %s: %d, lacking: %s" % (version, len(own), " ".join(sorted(
            "%s (%s)" % (name, side) for side, name in own if (side, name) in missing)) or "none"))
    if missing != lacking or len(names) < 4200:
        print("of %d names these are lacking, and names_3.8.txt says otherwise:" % len(names), sorted(missing ^ lacking)[:20])
    return missing == lacking and len(names) >= 4200


def program(names):
    # the smaller headers first: none may need what another one brings
    lines = ["#define NVSHMEM_CHECK(call) kept_##call"]
    lines += ["#include <%s>" % header for header in
             ("device_host/nvshmem_types.h", "non_abi/nvshmem_version.h", "host/nvshmemx_api.h", "host/nvshmem_api.h",
              "nvshmem_host.h", "nvshmemx.h", "nvshmem.h")]
    lines += ["#ifdef GPSH_NVSHMEM_CUDA", "#ifdef __cplusplus", "typedef __half HALF;", "typedef __nv_bfloat16 BFLOAT16;",
              "#endif", "#endif", "#if !defined(GPSH_NVSHMEM_CUDA) || !defined(__cplusplus)",
              "typedef gpushmem_half HALF;", "typedef gpushmem_bfloat16 BFLOAT16;", "#endif"]
    lines.append("enum { kept_1 = 1 }; typedef char kept[NVSHMEM_CHECK(1)];")
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
    taken = sorted(set(macros_of_programs()))
    for line in taken[:20]:
        print(line)
    fine = not taken
    for flags in ([], ["-DNVSHMEM_HOSTLIB_ONLY", "-DGPSH_NVSHMEM_NO_CUDA"]):
        fine = compiled([CC, "-std=c11", "-xc"] + flags, text) and fine
    for flags in (["-DGPSH_NVSHMEM_NO_CUDA"], ["-DNVSHMEM_HOSTLIB_ONLY"]):
        fine = compiled([CXX, "-std=c++17", "-xc++"] + flags, text) and fine
    out = subprocess.run(["nm", "-D", "--defined-only", LIBRARY], capture_output=True, text=True, check=True).stdout
    exported = {line.split()[2].split("@")[0] for line in out.splitlines() if line.split()[1] == "T"}
    wanted = {name for _, name, _, _ in names}
    for name in sorted(wanted - exported)[:20]:
        print("libnvshmem_host does not export", name)
    # foreign.sh has those of programs compiled with NVIDIA's
    foreign = sorted(name for name in exported - wanted if not name.startswith(("gpushmem_", "nvshmemid_")))
    if foreign:
        print("libnvshmem_host exports what api.txt does not have:", " ".join(foreign[:20]))
    fine = check_listed(exported) and fine
    used = words(HERE + "/used_by_programs.txt")
    missing = sorted(used - wanted)
    if missing:
        print("api.txt does not have:", " ".join(missing))
    if len(names) < 1400 or len(used) < 220:
        print("only %d functions were read, and %d used ones: does this test still see them?" % (len(names), len(used)))
    fine = fine and wanted <= exported and not foreign and not missing and len(names) >= 1400 and len(used) >= 220
    print("names: ok: %d functions, %d of them used by programs" % (len(names), len(used)) if fine else "names: failed")
    return 0 if fine else 1


sys.exit(main())
