#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""docs/benchmarks.md keeps its books: each of its tables of figures is in the list of where they come from, and each ratio follows
from the times beside it, within what they were rounded by. usage: figures.py SOURCE"""
import re
import sys

LEDGER = "Where each table comes from"
NO_MEASUREMENT = {"In short", LEDGER, "Aims", "Floors"}


def tables(text):
    """(heading, rows) of each table; a row is the list of its cells."""
    heading, rows = "", []
    for line in text.split("\n") + [""]:
        if line.startswith("|"):
            rows.append([cell.strip() for cell in line.strip()[1:-1].split("|")])
            continue
        if rows:
            yield heading, rows
        rows = []
        if line.startswith("#"):
            heading = line.lstrip("#").strip()


def anchor(heading):
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def span(cell):
    """Between which values a printed one lies, or None: 0.96 is from 0.955 to 0.965; its unit does not count."""
    match = re.fullmatch(r"\(?(\d+(?:\.(\d+))?)(?: \S+?)?\)?", cell)
    if not match:
        return None
    half = 0.5 * 10 ** -len(match.group(2) or "")
    return float(match.group(1)) - half, float(match.group(1)) + half


def wrong_ratios(text):
    for heading, (head, _, *rows) in tables(text):
        for column in (k for k, name in enumerate(head) if name == "ratio"):
            for row in rows:
                ours, theirs, ratio = (span(cell) for cell in row[column - 2 : column + 1])
                if ratio and not (ours and theirs):
                    yield f"{heading}: {row[0]}: a ratio of no two figures"
                elif ratio and (ratio[1] < ours[0] / theirs[1] or ratio[0] > ours[1] / theirs[0]):
                    yield f"{heading}: {row[0]}: {row[column - 2]} by {row[column - 1]} is not {row[column]}"


def without_source(text):
    ledger = " ".join(cell for heading, rows in tables(text) if heading == LEDGER for row in rows for cell in row)
    known = set(re.findall(r"\(#([^)]*)\)", ledger))
    headings = {heading for heading, _ in tables(text)} - NO_MEASUREMENT
    yield from (f"{heading}: not in the table under '{LEDGER}'" for heading in sorted(headings) if anchor(heading) not in known)


def complaints(text):
    return [*wrong_ratios(text), *without_source(text)]


def self_test():
    good = f"## {LEDGER}\n\n| a |\n|---|\n| [x](#x-y) |\n\n## X, y\n\n| | us | NCCL | ratio |\n|---|---|---|---|\n| r | 5.2 | 3.6 us | 1.42 |\n"
    assert complaints(good) == [], complaints(good)
    assert complaints(good.replace("1.42", "1.30")) == ["X, y: r: 5.2 by 3.6 us is not 1.30"]
    assert complaints(good.replace("## X, y", "## Z")) == [f"Z: not in the table under '{LEDGER}'"]
    assert complaints(good.replace("3.6 us", "")) == ["X, y: r: a ratio of no two figures"]


if __name__ == "__main__":
    self_test()
    wrong = complaints(open(f"{sys.argv[1]}/docs/benchmarks.md", encoding="utf-8").read())
    print("\n".join(f"docs/benchmarks.md: {one}" for one in wrong) or "docs: ok: figures")
    sys.exit(bool(wrong))
