#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What the public headers of the host declare, beside what they declared when abi.txt was written: nothing of that may be gone or
different; what is new may be there. usage: abi.py SOURCE [--write]"""
import os
import re
import sys

SOURCE = sys.argv[1]
RECORD = os.path.join(os.path.dirname(os.path.abspath(__file__)), "abi.txt")
sys.path.insert(0, SOURCE + "/docs/site")
sys.dont_write_bytecode = True
import headers  # noqa: E402


def declared():
    """A line each: prototypes (of a family one, with TYPE), fields of structs, numbers of enums, and handles."""
    lines = set()
    for header in headers.read(SOURCE):
        if header.name.endswith(".h") and header.name != "mpi.h":
            for entry in header.entries:
                for declaration in entry.declarations:
                    lines.update(lines_of(declaration))
    return lines


def lines_of(declaration):
    text = re.sub(r"\s+", " ", re.sub(r"//[^\n]*", "", declaration)).strip()
    body = re.match(r"((?:struct|enum) \w+) \{ ?(.*?) ?\};$", text)
    if body:
        # The order of fields is their place: each line has its number.
        fields = [field.strip() for field in re.split("[;,]" if text.startswith("enum") else ";", body[2]) if field.strip()]
        numbers = [""] * len(fields) if text.startswith("enum") else ["%d " % number for number in range(len(fields))]
        return ["%s: %s%s" % (body[1], number, field) for number, field in zip(numbers, fields)]
    family = re.match(r"#define (GPUSHMEM_\w+_(?:TYPES|SIZES))\(X\)(.*)", text)
    if family:
        return ["%s: %s" % (family[1], member) for member in re.findall(r"\w+\([^)]*\)", family[2])]
    return [] if text.startswith("#define GPUSHMEM_VERSION") else [text]


def check():
    # Whether this test can see what it is for.
    sample = "struct gpushmem_x { int a; // one\n long b; };"
    assert lines_of(sample) == ["struct gpushmem_x: 0 int a", "struct gpushmem_x: 1 long b"], lines_of(sample)
    now, recorded = declared(), set(open(RECORD, encoding="utf-8").read().split("\n")[1:]) - {""}
    gone = sorted(recorded - now)
    for line in gone:
        print("abi: gone or different: %s" % line)
    if gone:
        print("abi: programs rely on these (docs/install.md). If that is meant, the version's second number changes, too; then: "
              "tests/house/install/abi.py . --write")
    if len(recorded) < 300:
        print("abi: only %d lines in abi.txt: does this test still see the headers?" % len(recorded))
    elif not gone:
        print("abi: ok: %d as recorded, %d new" % (len(recorded), len(now - recorded)))
    return bool(gone) or len(recorded) < 300


def main():
    if "--write" not in sys.argv:
        return check()
    with open(RECORD, "w", encoding="utf-8") as file:
        file.write("# Made by abi.py --write: what programs rely on.\n" + "\n".join(sorted(declared())) + "\n")
    return 0


sys.exit(main())
