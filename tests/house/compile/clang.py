#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Checks that clang accepts, without a warning, every C source of the library and of the program `gpushmem`.

    clang.py SOURCE BUILD    BUILD has compile_commands.json

Each source gets the flags that the build gives it, and is only parsed. Exit code 77: there is no clang.
"""
import concurrent.futures
import json
import os
import shlex
import shutil
import subprocess
import sys

FLAGS = ["-fsyntax-only", "-Werror", "-Wno-unknown-warning-option"]


def sources(source, build):
    """(folder, file, flags) of each C file of runtime/ and transports/, once."""
    with open(os.path.join(build, "compile_commands.json"), encoding="utf-8") as database:
        entries = json.load(database)
    found = {}
    for entry in entries:
        path = os.path.relpath(entry["file"], source)
        if path.startswith(("runtime/", "transports/")) and path.endswith(".c"):
            words = shlex.split(entry["command"])
            kept = [word for word in words if word.startswith(("-I", "-D", "-W", "-std="))]
            for flag in ("-isystem", "-include"):
                kept += [part for i, word in enumerate(words) if word == flag for part in (flag, words[i + 1])]
            found.setdefault(path, (entry["directory"], entry["file"], kept))
    return [found[path] for path in sorted(found)]


def parse(job):
    folder, path, flags = job
    done = subprocess.run(["clang", *FLAGS, *flags, path], cwd=folder, capture_output=True, text=True)
    return done.returncode, done.stderr


def main():
    if len(sys.argv) != 3:
        sys.exit("usage: clang.py SOURCE BUILD")
    if not shutil.which("clang"):
        print("clang.py: there is no clang here; tests/setup.sh test installs it")
        sys.exit(77)
    jobs = sources(os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2]))
    if not jobs:
        sys.exit("clang.py: no source of runtime/ or transports/ in %s/compile_commands.json" % sys.argv[2])
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        results = list(pool.map(parse, jobs))
    failed = [text for status, text in results if status]
    print("".join(failed) + "%d of %d sources refused" % (len(failed), len(jobs)))
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
