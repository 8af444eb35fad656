#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs the examples of docs/python.md, one after another in one program.

usage: gpushmem run -n PES python3 docs.py docs/python.md"""
import re
import sys


def main(path):
    with open(path) as page:
        text = page.read()
    known, count = {"__name__": "example"}, 0
    for block in re.finditer(r"^```python\n(.*?)^```", text, re.M | re.S):
        line = text[:block.start(1)].count("\n")
        exec(compile("\n" * line + block[1], path, "exec"), known)
        count += 1
    assert count >= 5, count
    assert not known["shm"].initialized()


main(sys.argv[1])
