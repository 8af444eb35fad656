#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""docs/transports.md says of libfabric what the source asks for: the constants in the first column of its table are those that
transports/ofi/ofi_fabric.c hands to fi_getinfo or looks at in what comes back. usage: transports.py SOURCE"""
import os
import re
import sys

SOURCE = sys.argv[1]
CONSTANT = r"\bFI_(?:[A-Z0-9]+_)*[A-Z0-9]+\b"
# Formats, calls and errors, of which a user sees nothing; what one atomic or another is; words of one mode's other end.
NOT_ASKED = re.compile(r"FI_(VERSION|MAJOR|MINOR|E[A-Z]+|SOCKADDR.*|AV_.*|UINT\d+|SUM|B?(AND|OR|XOR)|BAND|BOR|BXOR|CSWAP|ATOMIC_(READ|WRITE)"
                       r"|FETCH_ATOMIC|COMPARE_ATOMIC)$")


def text_of(path):
    with open(os.path.join(SOURCE, path), encoding="utf-8") as file:
        return file.read()


def main():
    code = re.sub(r"//.*", "", text_of("transports/ofi/ofi_fabric.c") + text_of("transports/ofi/ofi_wire.c"))
    asked = {word for word in re.findall(CONSTANT, code) if not NOT_ASKED.match(word)}
    asked -= {"FI_TRANSMIT", "FI_RECV", "FI_CQ_FORMAT_MSG", "FI_WAIT_NONE", "FI_GETWAIT", "FI_ADDR_UNSPEC"}
    table = text_of("docs/transports.md").split("| of libfabric |")[1].split("\n\n")[0]
    told = set()
    for row in table.splitlines()[2:]:
        told.update(re.findall(CONSTANT, row.split("|")[1]))
    for word in sorted(asked - told):
        print("docs/transports.md does not say that %s is asked for" % word)
    for word in sorted(told - asked):
        print("docs/transports.md says that %s is asked for, and ofi_fabric.c and ofi_wire.c do not" % word)
    return 1 if asked != told else 0


sys.exit(main())
