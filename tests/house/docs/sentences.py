#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Each sentence in the first column of docs/troubleshooting.md is one that the sources can say: its parts between "..." stand,
in this order, in one string of theirs. usage: sentences.py SOURCE [--print WORD]: also prints the strings with that word."""
import os
import re
import sys

SOURCE = sys.argv[1]


def strings():
    """All string literals, adjacent ones as one; what printf fills in (%d, PRIu64) ends a literal or stands as ..."""
    found = set()
    for room in ("runtime", "transports", "device", "include"):
        for folder, _, names in os.walk(os.path.join(SOURCE, room)):
            for name in names:
                if name.endswith((".c", ".h", ".cuh", ".hpp", ".def")):
                    found.update(strings_of(open(os.path.join(folder, name), encoding="utf-8").read()))
    return found


def strings_of(text):
    text = re.sub(r"^\s*//.*$|^\s*#.*$", "", text, flags=re.M)
    literal = r'"(?:[^"\\\n]|\\.)*"'
    for run in re.findall(r"%s(?:\s*(?:PRI[a-zA-Z0-9]+\s*)?%s)*" % (literal, literal), text):
        joined = "".join(one[1:-1] for one in re.findall(literal, run))
        yield re.sub(r"%[-+ 0#]*(?:\d+|\*)?(?:\.(?:\d+|\*))?(?:hh|h|ll|l|z|j|t)?[a-zA-Z%]?", "\0", joined).replace('\\"', '"')


def says(string, pieces):
    at = 0
    for piece in pieces:
        at = string.find(piece, at)
        if at < 0:
            return False
        at += len(piece)
    return True


def main():
    every = strings()
    if sys.argv[2:3] == ["--print"]:
        print("\n".join(sorted(one.replace("\0", "...") for one in every if sys.argv[3] in one)))
        return 0
    lines = open(SOURCE + "/docs/troubleshooting.md", encoding="utf-8").read().split("\n")
    rows = [match[1] for match in (re.match(r"\| `([^`]+)` \|", line) for line in lines) if match]
    stale = [row for row in rows if not any(says(string, [piece for piece in row.split("...") if piece]) for string in every)]
    short = [row for row in rows if max(map(len, row.split("..."))) < 10]
    nowhere = ["a sentence that no source has"]
    if says("there is a \0 here", ["here", "there is a "]) or any(says(string, nowhere) for string in every):
        stale.append("(this test finds what is not there)")
    if len(rows) < 20:
        stale.append("(only %d sentences were found in the page)" % len(rows))
    for row in stale:
        print("docs/troubleshooting.md explains a sentence that no source has: %s" % row)
    for row in short:
        print("docs/troubleshooting.md explains a sentence that is too short to be found by: %s" % row)
    if not stale and not short:
        print("sentences: ok: %d" % len(rows))
    return bool(stale or short)


sys.exit(main())
