#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Tracebacks of PEs that fail at the same time come one after another, each under the number of its PE.

usage: python3 tracebacks.py GPUSHMEM"""
import re
import subprocess
import sys

PES, ROUNDS = 4, 5
PROGRAM = """import gpushmem
def deeper(levels):
    if not levels:
        raise ValueError("of PE %d" % me)
    first(levels) if levels % 2 else second(levels)
def first(levels):
    deeper(levels - 1)
def second(levels):
    deeper(levels - 1)
gpushmem.init()
me = gpushmem.my_pe()
gpushmem.barrier()
deeper(60)
"""


def main():
    for _ in range(ROUNDS):
        done = subprocess.run([sys.argv[1], "run", "-n", str(PES), sys.executable, "-B", "-c", PROGRAM], stderr=subprocess.PIPE,
                              text=True)
        assert done.returncode != 0
        text = re.sub(r"(?m)^gpushmem.*\n", "", done.stderr) # the launcher's own lines
        pieces = re.split(r"(?m)^(?=PE \d of \d: Traceback)", text)
        assert pieces[0] == "", pieces[0]
        # the launcher ends the others when the first one fails: those that said something said all of it
        for piece in pieces[1:]:
            me = re.match(r"PE (\d) of 4: Traceback \(most recent call last\):\n", piece)[1]
            lines = piece.splitlines()
            assert lines[-1] == "ValueError: of PE " + me, piece
            assert all(line.startswith("  ") for line in lines[1:-1]), piece
    print("tracebacks: ok")


if __name__ == "__main__":
    main()
