#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Checks that each room of the house uses only the rooms above it.

    layers.py [--build DIR] [--print] [SOURCE]

The rooms, their folders and their order come from the table "Rooms" of docs/architecture.md, so the table can't
drift from the code. Two things count as use: an #include, and (with --build) a symbol that one object refers to
and another one defines. Reported are arrows from a room to one that the table doesn't allow, files that no room
holds, circles between the files of runtime/ and transports/, and a room's state (gpsh_<x>_state) named outside of it. A room within another one's folder is a room of its
own. Exit code: 0 clean, 1 violations, 2 cannot check.
"""
import argparse
import json
import os
import re
import subprocess
import sys

INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.M)
SUFFIXES = (".c", ".h", ".cu", ".cuh", ".hpp", ".def")
ROOTS = ("include", "device", "runtime", "transports")
ACYCLIC = ("runtime/", "transports/")


def fail(text):
    print("layers: " + text, file=sys.stderr)
    sys.exit(2)


def read_rooms(source):
    """Rows `| room | folder | uses | holds |` below the heading "## Rooms": [(name, folder, names it may use)]."""
    with open(os.path.join(source, "docs/architecture.md"), encoding="utf-8") as file:
        section = re.search(r"^## Rooms\n(.*?)(?=^## |\Z)", file.read(), re.M | re.S)
    rooms = []
    for line in section.group(1).splitlines() if section else ():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if not line.startswith("|") or len(cells) != 4 or cells[0] == "room" or set(cells[0]) <= set("-: "):
            continue
        name, folder, uses = cells[0], cells[1].strip("`").rstrip("/"), cells[2]
        above = [room[0] for room in rooms]
        allowed = above if uses == "all above" else [use.strip() for use in uses.split(",") if use.strip()]
        unknown = [use for use in allowed if use not in above]
        if unknown:
            fail(f"docs/architecture.md: room {name} uses {unknown[0]}, which is not a room above it")
        rooms.append((name, folder, set(allowed) | {name}))
    if not rooms:
        fail('docs/architecture.md has no table below "## Rooms"')
    return rooms


def room_of(path, rooms):
    fitting = [room for room in rooms if path == room[1] or path.startswith(room[1] + "/")]
    return max(fitting, key=lambda room: len(room[1])) if fitting else None


def source_files(source):
    for root in ROOTS:
        for folder, _, names in os.walk(os.path.join(source, root)):
            for name in names:
                if name.endswith(SUFFIXES):
                    yield os.path.relpath(os.path.join(folder, name), source)


def include_arrows(source, files):
    """(from, to, "includes")"""
    for path in files:
        with open(os.path.join(source, path), encoding="utf-8") as file:
            text = file.read()
        for name in INCLUDE.findall(text):
            for base in ("runtime", "include", "device", os.path.dirname(path), ""):
                target = os.path.normpath(os.path.join(base, name))
                if target in files:
                    yield path, target, "includes it"
                    break


STATE = re.compile(r"\bgpsh_(\w+)_state\b")


def ownership(source, files):
    """Uses of a room's state, gpsh_<x>_state, outside of the room whose header declares it: others read it through gpsh_<x>()."""
    texts = {}
    for path in files:
        with open(os.path.join(source, path), encoding="utf-8") as file:
            texts[path] = file.read()
    owners = {}
    for path, text in texts.items():
        for name in re.findall(r"^extern struct \w+ gpsh_(\w+)_state\b", text, re.M):
            owners[name] = os.path.dirname(path)
    return [(path, name, owners[name]) for path, text in texts.items() for name in sorted(set(STATE.findall(text)))
            if name in owners and os.path.dirname(path) != owners[name]]


def objects(build, source, files):
    """{object: source file} of the library and the command-line program."""
    database = os.path.join(build, "compile_commands.json")
    if not os.path.exists(database):
        fail(f"{database} is missing; configure with CMAKE_EXPORT_COMPILE_COMMANDS=ON")
    with open(database, encoding="utf-8") as file:
        entries = json.load(file)
    found = {}
    for entry in entries:
        path = os.path.relpath(entry["file"], source)
        output = re.search(r" -o (\S+)", entry["command"])
        compiled = os.path.join(entry["directory"], output.group(1) if output else "")
        if path in files and path not in found.values() and os.path.isfile(compiled):
            found[compiled] = path
    return found


def symbol_arrows(build, source, files):
    compiled = objects(build, source, files)
    if not compiled:
        fail(f"no objects of runtime/ in {build}; build the target gpushmem_core first")
    defined, wanted = {}, []
    listing = subprocess.run(["nm", "-A", "--format=posix", *compiled], check=True, capture_output=True, text=True)
    for line in listing.stdout.splitlines():
        place, _, rest = line.partition(": ")
        symbol, kind = rest.split()[:2]
        if kind == "U":
            wanted.append((compiled[place], symbol))
        elif kind.isupper():
            defined[symbol] = compiled[place]
    for path, symbol in wanted:
        if defined.get(symbol, path) != path:
            yield path, defined[symbol], f"uses {symbol}"


def circles(edges):
    """Strongly connected components of more than one node (Tarjan)."""
    index, low, stack, result = {}, {}, [], []

    def visit(node):
        index[node] = low[node] = len(index)
        stack.append(node)
        for target in sorted(edges.get(node, ())):
            if target not in index:
                visit(target)
                low[node] = min(low[node], low[target])
            elif target in stack:
                low[node] = min(low[node], index[target])
        if low[node] == index[node]:
            component = [stack.pop()]
            while component[-1] != node:
                component.append(stack.pop())
            if len(component) > 1:
                result.append(sorted(component))

    for node in sorted(edges):
        if node not in index:
            visit(node)
    return result


def check(source, build, show):
    rooms = read_rooms(source)
    files = set(source_files(source))
    problems = [f"{path}: no room of docs/architecture.md holds it" for path in sorted(files) if not room_of(path, rooms)]
    problems += [f"docs/architecture.md: room {name} has no folder {folder}" for name, folder, _ in rooms
                 if not os.path.isdir(os.path.join(source, folder))]
    problems += [f"{path}: uses gpsh_{name}_state, which belongs to {owner}; others read it through gpsh_{name}()"
                 for path, name, owner in ownership(source, files)]
    arrows = list(include_arrows(source, files))
    if build:
        arrows += symbol_arrows(build, source, files)
    between_files, between_rooms = {}, {}
    for path, target, how in arrows:
        room, other = room_of(path, rooms), room_of(target, rooms)
        if not room or not other:
            continue
        between_rooms.setdefault((room[0], other[0]), []).append(how)
        if other[0] not in room[2]:
            problems.append(f"{path} ({room[0]}) {how}: {target} ({other[0]}), which is not above it")
        node, to = os.path.splitext(path)[0], os.path.splitext(target)[0]
        if node != to and node.startswith(ACYCLIC) and to.startswith(ACYCLIC):
            between_files.setdefault(node, set()).add(to)
    for circle in circles(between_files):
        problems.append("these files use each other in a circle: " + " ".join(circle))
        if show:
            for node in circle:
                print(node, "->", *(to for to in sorted(between_files[node]) if to in circle))
    if show:
        for (room, other), uses in sorted(between_rooms.items()):
            print(f"{room} -> {other}: {len(uses)}")
    return sorted(set(problems))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", help="build directory with compile_commands.json and compiled objects")
    parser.add_argument("--print", action="store_true", help="print how often each room uses each other one")
    parser.add_argument("source", nargs="?", default=".")
    options = parser.parse_args()
    problems = check(os.path.abspath(options.source), options.build, options.print)
    for problem in problems:
        print(problem)
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
