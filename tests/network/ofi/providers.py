#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""docs/transports.md says of each provider of libfabric what `gpushmem info --providers` says here; and one that claims less
(humble.c) is shown as it claims. Exits with 77 where libfabric is not the one of that page.
usage: providers.py SOURCE GPUSHMEM HUMBLE"""
import os
import re
import subprocess
import sys

SOURCE, GPUSHMEM, HUMBLE = sys.argv[1:]
HEADING = ["provider", "progress", "atomics by", "messages", "GPU memory"]


def run(*arguments, **environment):
    return subprocess.run([GPUSHMEM, *arguments], env={**os.environ, **environment}, stdout=subprocess.PIPE, check=True,
                          text=True).stdout


def shown(**environment):
    """The rows that the command prints, by provider."""
    rows = [re.split(r"  +", line.rstrip()) for line in run("info", "--providers", **environment).splitlines()]
    assert rows[0] == HEADING, rows[0]
    return {row[0]: row[1:] for row in rows[1:]}


def told():
    """Those of the page."""
    with open(os.path.join(SOURCE, "docs/transports.md"), encoding="utf-8") as file:
        text = file.read()
    lines = text.split("| " + " | ".join(HEADING) + " |\n")[1].split("\n\n")[0].splitlines()[1:]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return {row[0]: row[1:] for row in rows}


def compare(here, page):
    wrong = 0
    for provider, row in here.items():
        if page.get(provider) != row:
            print("%s: the command says %s, docs/transports.md %s" % (provider, row, page.get(provider)))
            wrong = 1
    return wrong


def main():
    here, page = shown(), told()
    if not re.search(r"libfabric\s+1\.17\s", run("doctor", "libfabric")):
        print("libfabric is another one than that of the page")
        return 77
    wrong = compare(here, page)
    humble = shown(LD_PRELOAD=HUMBLE, GPUSHMEM_HUMBLE="virt,local,unordered")
    wrong |= compare({"tcp;ofi_rxm": humble["tcp;ofi_rxm"]},
                     {"tcp;ofi_rxm": page["tcp;ofi_rxm"][:2] + ["keep no order"] + page["tcp;ofi_rxm"][3:]})
    humble = shown(LD_PRELOAD=HUMBLE, GPUSHMEM_HUMBLE="endpoint,auto")
    wrong |= compare({"tcp;ofi_rxm": humble["tcp;ofi_rxm"]},
                     {"tcp;ofi_rxm": page["sockets"][:2] + page["tcp;ofi_rxm"][2:]})
    return wrong


sys.exit(main())
