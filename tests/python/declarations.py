#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The declarations of the Python module are those of the headers: a C program of assertions is made of them, and compiled.

usage: declarations.py SOURCE CC"""
import ctypes
import importlib.util
import os
import subprocess
import sys

SOURCE, CC = sys.argv[1:3]


def loaded(name):
    path = os.path.join(SOURCE, "runtime", "python", "gpushmem", name + ".py")
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def program(table):
    lines = ["#include <stddef.h>", '#include "gpushmem/gpushmem.h"', "#define IS(WHAT) _Static_assert(WHAT, #WHAT)"]
    for name, prototype in table.PROTOTYPES.items():
        # declaring it once more is an error, unless it is the same
        lines += [prototype + ";", "IS(sizeof gpushmem_%s);" % name]
    lines += ["IS(%s == %d);" % one for one in table.CONSTANTS.items()]
    for struct in table.STRUCTS:
        lines.append("IS(sizeof(%s) == %d);" % (struct.C_NAME, ctypes.sizeof(struct)))
        lines += ["IS(offsetof(%s, %s) == %d);" % (struct.C_NAME, field[0], getattr(struct, field[0]).offset)
                  for field in struct._fields_]
    for c_name, python in table._PLAIN.items():
        lines.append("IS(sizeof(%s) == %d);" % (c_name, ctypes.sizeof(python)))
    return "\n".join(lines) + "\n"


def compiled(text):
    run = subprocess.run([CC, "-std=gnu11", "-fsyntax-only", "-Werror", "-I" + os.path.join(SOURCE, "include"), "-xc", "-"],
                         input=text, capture_output=True, text=True)
    return "" if run.returncode == 0 else "\n".join(run.stderr.splitlines()[:20])


def main():
    table = loaded("_declarations")
    errors = loaded("errors")
    complaint = compiled(program(table))
    if complaint:
        sys.exit("the headers say otherwise:\n" + complaint)
    # the test sees what is wrong
    for name, wrong in (("quiet_on_stream", "int gpushmem_quiet_on_stream(int stream)"), ("my_pe", "long gpushmem_my_pe(void)")):
        right, table.PROTOTYPES[name] = table.PROTOTYPES[name], wrong
        if not compiled(program(table)):
            sys.exit("a wrong declaration of %s was accepted" % name)
        table.PROTOTYPES[name] = right
    for name in table.PROTOTYPES:
        table.signature(name)
    codes = {value for name, value in table.CONSTANTS.items() if "_ERR_" in name}
    if codes != set(errors.BY_CODE):
        sys.exit("errors.py has no class for %s" % sorted(codes ^ set(errors.BY_CODE)))
    print("declarations: ok: %d functions" % len(table.PROTOTYPES))


main()
