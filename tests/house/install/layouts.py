#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Where the compiler has put the fields of the host's public structs, as libabigail reads it from the library's debugging
information, beside where they were when layouts.txt was written: what abi.txt, which is text, cannot see (alignment, options,
types behind other names). Structs that are new may be there. usage: layouts.py LIBRARY SOURCE [--write]; 77: without abidw, or
the library has no debugging information."""
import os
import re
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

LIBRARY, SOURCE = sys.argv[1:3]
RECORD = os.path.join(os.path.dirname(os.path.abspath(__file__)), "layouts.txt")
# What kernels and host share is compiled again with each program, and compared at init.
NOT_OURS = re.compile(r"/(impl|device_abi\.h|device_host\.h)(?!.*nvshmem)")


def read():
    """A line for each field: "struct NAME of BITS bits: OFFSET FIELD"."""
    lines = set()
    with tempfile.NamedTemporaryFile(suffix=".xml") as file:
        subprocess.run(["abidw", "--headers-dir", SOURCE + "/include", "--out-file", file.name, LIBRARY], check=True)
        for struct in xml.etree.ElementTree.parse(file.name).getroot().iter("class-decl"):
            path, size = struct.get("filepath") or "", struct.get("size-in-bits")
            if "include/gpushmem/" not in path or not size or NOT_OURS.search(path) or struct.get("is-anonymous"):
                continue
            for field in struct.findall("data-member"):
                name = field.find("var-decl").get("name")
                lines.add("struct %s of %s bits: %4s %s" % (struct.get("name"), size, field.get("layout-offset-in-bits"), name))
    return lines


def main():
    if not shutil.which("abidw"):
        print("skipped: there is no abidw (tests/setup.sh long)")
        return 77
    lines = read()
    if not lines:
        print("skipped: %s has no debugging information" % LIBRARY)
        return 77
    if "--write" in sys.argv:
        with open(RECORD, "w", encoding="utf-8") as file:
            file.write("# Made by layouts.py --write: where fields of public structs are, for 64-bit machines.\n")
            file.writelines(line + "\n" for line in sorted(lines))
        return 0
    with open(RECORD, encoding="utf-8") as file:
        recorded = {line.rstrip("\n") for line in file if not line.startswith("#")}
    lost = sorted(recorded - lines)
    for line in lost:
        print("this is not so any more, and programs that were compiled with it break: " + line)
    names = {line.split(":")[0].split(" ")[1] for line in recorded}
    print("%d structs, %d fields, %d of them elsewhere" % (len(names), len(recorded), len(lost)))
    return 1 if lost else 0


sys.exit(main())
