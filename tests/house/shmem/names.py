#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Every function of OpenSHMEM 1.6 (standard.txt) has its signature in shmem.h, in C11 and in C++17, in line and declared, and is
exported by libshmem as shmem_X and pshmem_X.

usage: names.py INCLUDE LIBSHMEM CC CXX"""
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
INCLUDE, LIBRARY, CC, CXX = sys.argv[1:5]
sys.path.insert(0, HERE + "/../../../runtime/nvshmem/device")
sys.dont_write_bytecode = True
from prototypes import AMO, BITWISE, SYNC, expanded, rows, signature  # noqa: E402

# The tables of types in chapter 9.
SMALL = ("short=short ushort=unsigned_short uchar=unsigned_char int8=int8_t int16=int16_t uint8=uint8_t uint16=uint16_t")
OLD_BITS = "short=short int=int long=long longlong=long_long"
FAMILIES = {
    "RMA": "float=float double=double longdouble=long_double char=char schar=signed_char " + SMALL + " " + AMO,
    "EXTENDED": "float=float double=double " + AMO,
    "AMO": AMO,
    "BITWISE": BITWISE,
    "SYNC": SYNC,
    "REDUCE_BITS": " ".join(word for word in (SMALL + " " + AMO).split()
                            if not re.match("short|int=|long=|longlong=|ptrdiff", word)),
    "COMPLEX": "complexf=COMPLEXF complexd=COMPLEXD",
    "OLD_BITS": OLD_BITS,
    "OLD_ORDER": "float=float double=double longdouble=long_double " + OLD_BITS,
}


def prototypes():
    for family, prototype, *contexts in rows(HERE + "/standard.txt"):
        for text in expanded(family, prototype, FAMILIES):
            result, name, parameters = signature(text)
            yield result, name, parameters
            if contexts:
                yield result, name.replace("shmem_", "shmem_ctx_", 1), "shmem_ctx_t, " + parameters


def program(names):
    lines = ["#include <shmem.h>", "#include <pshmem.h>", "#ifdef __cplusplus", "#include <complex>",
             "typedef std::complex<float> COMPLEXF;", "typedef std::complex<double> COMPLEXD;", "#else",
             "typedef float _Complex COMPLEXF;", "typedef double _Complex COMPLEXD;", "#endif"]
    for i, (result, name, parameters) in enumerate(names):
        for letter, function in (("f", name), ("p", "p" + name)):
            lines.append("extern %s(*const %s%d)(%s);" % (result, letter, i, parameters))
            lines.append("%s(*const %s%d)(%s) = %s;" % (result, letter, i, parameters, function))
    return "\n".join(lines) + "\n"


def compiled(command, text):
    run = subprocess.run(command + ["-fsyntax-only", "-Werror", "-I" + INCLUDE + "/gpushmem/compat", "-I" + INCLUDE, "-"],
                         input=text, capture_output=True, text=True)
    if run.returncode:
        print(" ".join(command), "refuses:\n" + "\n".join(run.stderr.splitlines()[:20]))
    return run.returncode == 0


def main():
    names = list(prototypes())
    text = program(names)
    fine = compiled([CC, "-std=c11", "-xc", "-DSHMEM_NO_INLINE"], text)
    fine = compiled([CC, "-std=c11", "-xc"], text) and fine
    fine = compiled([CXX, "-std=c++17", "-xc++"], text) and fine
    out = subprocess.run(["nm", "-D", "--defined-only", LIBRARY], capture_output=True, text=True, check=True).stdout
    exported = {line.split()[2].split("@")[0] for line in out.splitlines() if line.split()[1] == "T"}
    wanted = {prefix + name for _, name, _ in names for prefix in ("", "p")}
    for name in sorted(wanted - exported)[:20]:
        print("libshmem does not export", name)
    own = r"p?(shmem_|start_pes$|_my_pe$|_num_pes$|sh\w*alloc$|shfree$|shmemalign$)"
    foreign = sorted(name for name in exported if not re.match(own, name))
    if foreign:
        print("libshmem exports what is not OpenSHMEM's:", " ".join(foreign[:20]))
    if len(names) < 1500:
        print("only %d functions were read: does this test still see them?" % len(names))
    fine = fine and wanted <= exported and not foreign and len(names) >= 1500
    print("names: ok: %d functions" % len(names) if fine else "names: failed")
    return 0 if fine else 1


sys.exit(main())
