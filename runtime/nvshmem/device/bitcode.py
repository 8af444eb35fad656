#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Makes LLVM IR of libnvshmem_device.bc such that Triton's LLVM takes it; it is to be optimised afterwards.

usage: bitcode.py < clang's unoptimised IR > IR

Triton compiles with 32-bit pointers to shared and local memory, where its LLVM aborts on functions that have structs as
arguments by value. So our own functions take pointers and make the copy themselves; exported ones keep their interface.
And the flag of denormals, which has no meaning to us, conflicts with Triton's.
"""
import re
import sys

BY_VALUE = re.compile(r"byval\((%[^()]+)\) ")
OWN = re.compile(r"define internal [^@\n]*@([\w.$]+)\(")
CALLED = re.compile(r"\bcall [^@\n]*@([\w.$]+)\(")
PARAMETER = re.compile(BY_VALUE.pattern + r"align (\d+) (%[\w.]+)")
FLAG = re.compile(r'^(!\d+) = !\{i32 \d+, !"nvvm-reflect-ftz", i32 \d+\}\n', re.M)


def without_flag(text):
    found = FLAG.search(text)
    if not found:
        return text
    text = text.replace(found.group(0), found.group(1) + " = !{}\n")
    flags = re.search(r"^!llvm\.module\.flags = !\{.*\}$", text, re.M).group(0)
    kept = [one for one in re.findall(r"!\d+", flags) if one != found.group(1)]
    return text.replace(flags, "!llvm.module.flags = !{%s}" % ", ".join(kept))


def copies(parameters):
    """The first instructions of a function that has lost the copies its callers made."""
    for kind, align, name in parameters:
        size = "ptrtoint (ptr getelementptr (%s, ptr null, i32 1) to i64)" % kind
        yield "  %%copy.%s = alloca %s, align %s" % (name[1:], kind, align)
        yield "  call void @llvm.memcpy.p0.p0.i64(ptr align %s %%copy.%s, ptr align %s %s, i64 %s, i1 false)" % (
            align, name[1:], align, name, size)


def renamed(line, parameters):
    for _, _, name in parameters:
        line = re.sub(re.escape(name) + r"(?![\w.])", "%copy." + name[1:], line)
    return line


def by_pointer(text):
    own = set(OWN.findall(text))
    lines, parameters = [], []
    for line in text.split("\n"):
        define, call = OWN.match(line), CALLED.search(line)
        if define:
            parameters = PARAMETER.findall(line)
            lines += [BY_VALUE.sub("", line), *copies(parameters)]
            continue
        if line == "}":
            parameters = []
        if call and call.group(1) in own:
            line = BY_VALUE.sub("", line)
        lines.append(renamed(line, parameters) if parameters else line)
    return "\n".join(lines)


sys.stdout.write(by_pointer(without_flag(sys.stdin.read())))
