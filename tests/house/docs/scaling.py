#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The tables of docs/scaling.md are what the programs print now. usage: scaling.py SOURCE PERF_BOOKS PERF_ROUNDS"""
import os
import re
import subprocess
import sys

from figures import tables

UNITS = {"B": 1, "KB": 1e3, "MB": 1e6, "KiB": 2**10, "MiB": 2**20, "us": 1e-6, "ms": 1e-3, "s": 1, "": 1}
# What memory is resident differs by pages from run to run: part of it, bytes of all together, and of one thing.
PART, PAGES, FEW_PAGES = 0.02, 128 << 10, 3 << 10
# Label of a row in the page: column that perf_books prints, its unit. A column of None is measured, and not compared.
BOOKS = {
    "queue pairs": ("QPs", ""),
    "verbs books": ("verbs_MiB", "MiB"),
    "peers' table": ("peers_MiB", "MiB"),
    "control region": ("control_MiB", "MiB"),
    "reserve in the heap": ("reserve_MiB", "MiB"),
    "own record": ("record", "B"),
    "records of all PEs": ("records_KB", "KB"),
    "with what else PEs say": ("all_said_KiB", "KiB"),
    "time to read and check that": (None, ""),
    "entries of a send queue": ("entries", ""),
    "books (and the NIC's own memory": ("KiB_a_peer", "KiB"),
}
CONNECTING = ("barrier", "neighbours", "team sync", "sum of ints", "max of doubles", "broadcast", "team split", "sum of doubles")
# Label: operations that perf_rounds prints, all of which must have these columns.
ROUNDS = {
    "barrier_all: rounds": (("barrier",), ("rounds",)),
    "team sync, broadcast, sum of ints, max of doubles: rounds":
        (("team sync", "broadcast", "sum of ints", "max of doubles"), ("rounds",)),
    "sum of doubles: rounds; bytes": (("sum of doubles",), ("rounds", "bytes")),
    "that, counted/sum of doubles: rounds; bytes": (("sum of doubles",), ("us",)),
    "alltoall: messages beside 2 meetings": (("alltoall",), ("messages",)),
    "that, counted/alltoall: messages beside 2 meetings": (("alltoall",), ("us",)),
    "PEs that it connects with for that alone": (("alltoall",), ("new",)),
    "team split, of all PEs, strided: rounds": (("team split",), ("rounds",)),
    "bytes of it": (("team split",), ("bytes",)),
    "tables that a split makes for a while": (("team split",), ("MiB",)),
    "PEs that all of these but alltoall": (CONNECTING, ("sum of new",)),
    "teams that init makes": (("teams of init",), ("MiB",)),
}


def values(cell, unit=""):
    """The figures of a cell as (least, most), by how they are rounded; a bracket says what was before. "60 to 70 KiB" is one."""
    cell = re.sub(r"\(.*?\)", "", cell).replace(",", "")
    for part in cell.split(";"):
        numbers = re.findall(r"\d+(?:\.\d+)?", part)
        name = re.search(r"\b(KiB|MiB|KB|MB|B|us|ms|s)\b", part)
        scale = UNITS[name.group(1) if name else unit]
        half = [0.5 * 10 ** -len(number.partition(".")[2]) for number in numbers]
        yield (float(numbers[0]) - half[0]) * scale, (float(numbers[-1]) + half[-1]) * scale


def printed(program):
    return subprocess.run([program], capture_output=True, text=True, check=True).stdout.splitlines()


def books(program):
    head, *rows = (line.split() for line in printed(program))
    return {int(row[0]): dict(zip(head, map(float, row))) for row in rows}


def rounds(program):
    found = {}
    for line in printed(program)[1:]:
        pes, name, rest = re.fullmatch(r" *(\d+) (\S.*?)  +(.*)", line).groups()
        figures = [float(figure) for figure in rest.split()]
        names = ["rounds", "messages", "bytes", "us", "new", "MiB"]
        found.setdefault(int(pes), {})[name] = dict(zip(names[-len(figures):], figures))
    return found


def differs(said, is_, slack=1e-12):
    least, most = said
    return not least - slack <= is_ <= most + slack


def check_books(head, rows, found):
    for label, *cells in rows:
        row = next((what for name, what in BOOKS.items() if label.startswith(name)), None)
        if row is None:
            yield f"'{label}': perf_books prints no such row"
            continue
        column, unit = row
        for pes, cell in zip(head, cells) if column else ():
            (said,), is_ = values(cell, unit), found[pes][column] * UNITS[unit]
            pages = {"KiB_a_peer": FEW_PAGES, "verbs_MiB": PAGES, "peers_MiB": PAGES, "all_said_KiB": PAGES}.get(column)
            if differs(said, is_, PART * is_ + pages if pages else 1e-12):
                yield f"'{label}' of {pes} PEs: {cell}, but perf_books prints {found[pes][column]:g} {unit}"


def is_now(operations, column, all_of):
    if column == "sum of new":
        return {sum(all_of[name]["new"] for name in operations)}
    scale = UNITS.get(column, 1)
    return {all_of[name][column] * scale for name in operations}


def check_rounds(head, rows, found):
    before = ""
    for label, *cells in rows:
        key = f"{label}/{before}" if label == "that, counted" else label
        row = next((what for name, what in ROUNDS.items() if key.startswith(name)), None)
        before = label
        if row is None:
            yield f"'{label}': perf_rounds prints no such row"
            continue
        for pes, cell in zip(head, cells):
            for said, column in zip(values(cell), row[1]):
                for is_ in is_now(row[0], column, found[pes]):
                    if differs(said, is_, PART * is_ + PAGES if column == "MiB" else 1e-12):
                        yield f"'{label}' of {pes} PEs: {cell}, but perf_rounds prints {is_:g}"


def complaints(text, of_books, of_rounds):
    seen = 0
    now = text[text.index("\nNow:\n"):]
    for _, (head, _, *rows) in tables(now):
        what = head[0].split(",")[0]
        sizes = [int(size.replace(",", "")) for size in head[1:] if re.fullmatch(r"[\d,]+", size)]
        if what in ("per PE", "then"):
            seen += 1
            yield from check_books(sizes, rows, of_books)
        elif what == "to other nodes":
            seen += 1
            yield from check_rounds(sizes, rows, of_rounds)
    if seen != 3:
        yield f"{seen} tables of what programs print, not 3: their first cells have changed"


def main():
    source, of_books, of_rounds = sys.argv[1:]
    for program in (of_books, of_rounds):
        if not os.path.exists(program):
            print(f"docs.scaling runs {program}, which is not built: build all")
            return 1
    with open(source + "/docs/scaling.md", encoding="utf-8") as file:
        found = list(complaints(file.read(), books(of_books), rounds(of_rounds)))
    print("\n".join(f"docs/scaling.md: {one}" for one in found) or "docs/scaling.md: as perf_books and perf_rounds print")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
