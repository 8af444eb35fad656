#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Draws the pictures of docs/concepts.md. usage: draw.py [FOLDER]; without FOLDER into the one where this file is."""
import os
import sys

STYLE = """<style>
text{font:14px system-ui,"DejaVu Sans",sans-serif;fill:#1c2128}.s{font-size:12px;fill:#59636e}.b{font-weight:700}
.m{text-anchor:middle}.e{text-anchor:end}.box{fill:#f5f7f9;stroke:#8c959f}.line{fill:none;stroke:#59636e;stroke-width:1.5}
.a{fill:#c9ebe6;stroke:#0f766e}.w{fill:#fbe7b8;stroke:#9a6700}.g{fill:#dfe4ea;stroke:#8c959f}
.go{fill:none;stroke:#0f766e;stroke-width:2.5}.wait{stroke:#9a6700;stroke-width:6;fill:none}.tip{fill:#0f766e}.dim{fill:#59636e}
@media(prefers-color-scheme:dark){text{fill:#dbe1e8}.s{fill:#97a3af}.box{fill:#1c2229;stroke:#6b7682}.line{stroke:#97a3af}
.a{fill:#134e49;stroke:#5fc9bd}
.w{fill:#4d3b0c;stroke:#d7a935}.g{fill:#313942;stroke:#6b7682}.go{stroke:#5fc9bd}.wait{stroke:#d7a935}
.tip{fill:#5fc9bd}.dim{fill:#97a3af}}
</style>
<defs><marker id="t" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" markerUnits="userSpaceOnUse"
orient="auto"><path class="dim" d="M0 0 8 4 0 8z"/></marker><marker id="u" viewBox="0 0 8 8" refX="7" refY="4"
markerWidth="11" markerHeight="11" markerUnits="userSpaceOnUse"
orient="auto"><path class="tip" d="M0 0 8 4 0 8z"/></marker></defs>"""


def text(x, y, words, kind=""):
    return '<text x="%g" y="%g" class="%s">%s</text>' % (x, y, kind, words)


def box(x, y, width, height, words="", kind="box", below=""):
    lines = ['<rect x="%g" y="%g" width="%g" height="%g" rx="5" class="%s"/>' % (x, y, width, height, kind)]
    if words:
        lines.append(text(x + width / 2, y + height / 2 + (-2 if below else 5), words, "m"))
    if below:
        lines.append(text(x + width / 2, y + height / 2 + 15, below, "m s"))
    return "".join(lines)


def arrow(path, strong=False):
    return '<path d="%s" class="%s" marker-end="url(#%s)"/>' % (path, "go" if strong else "line", "u" if strong else "t")


def heap():
    parts = []
    for pe in range(3):
        x = 110 + 220 * pe
        parts += [text(x + 70, 26, "PE %d" % pe, "m b"), box(x, 40, 140, 190), box(x, 85, 140, 34, "x", "a"),
                  box(x, 160, 140, 24, "y", "g")]
    parts += [text(96, 46, "base", "e s"), text(96, 106, "base + offset", "e s"), text(96, 228, "base + size", "e s")]
    parts += ['<path d="M100 85H690" class="line" stroke-dasharray="3 4"/>',
              arrow("M180 119C230 150 560 150 618 121", True),
              text(360, 262, "gpushmem_long_put(x, data, n, 2): the same offset in the heap of PE 2", "m s")]
    return 720, 280, parts


def ways():
    parts = [text(20, 56, "host", "b"), box(110, 30, 150, 44, "gpushmem.h"), text(20, 146, "kernel", "b"),
             box(110, 120, 150, 44, "device.cuh"),
             box(590, 75, 170, 44, "heap of a peer", "a", "mapped: this node"),
             box(590, 250, 170, 44, "heap of a peer", "a", "other node"),
             arrow("M260 52C400 52 480 80 586 92", True), arrow("M260 142C400 142 480 115 586 102", True),
             text(420, 40, "store", "m s"), text(480, 138, "store", "m s"),
             box(110, 250, 110, 44, "ring", "w", "host memory"), box(260, 250, 120, 44, "proxy thread", "w"),
             box(420, 250, 110, 44, "NIC", "g"),
             arrow("M165 164V246", True), text(176, 212, "command of 64 bytes", "s"),
             arrow("M220 272H256", True), arrow("M380 272H416", True),
             arrow("M530 272H586", True), arrow("M250 74C330 150 430 180 470 246"),
             text(462, 200, "work request of a host put", "s")]
    return 790, 315, parts


def ring():
    names = ["consumed", "consumed", "ready", "ready", "ready", "half written", "free", "free"]
    kinds = ["g", "g", "a", "a", "a", "w", "box", "box"]
    parts = [text(20, 84, "ring", "b")]
    for at, (name, kind) in enumerate(zip(names, kinds)):
        parts += [box(70 + 88 * at, 50, 82, 56, name, kind)]
    for place, words in ((2, "completed"), (2.95, "consumed: the proxy reads here"), (6, "head: the next command")):
        x = 67 + 88 * place if place != 2.95 else 67 + 88 * 2
        if place == 2:
            parts += [arrow("M111 20V46"), text(122, 26, "completed", "s")]
        else:
            parts += [arrow("M%g 20V46" % (x + 44)), text(x + 55, 26, words, "s")]
    parts += [text(70, 140, "A word with this lap's bit has arrived; the others are stale, and need not be cleared.", "s")]
    for at in range(8):
        parts.append(box(70 + 44 * at, 158, 38, 26, "1" if at not in (2, 5) else "0", "w" if at in (2, 5) else "a"))
    parts.append(text(432, 176, "eight words of the half written command", "s"))
    return 830, 200, parts


def proxy():
    steps = [("read commands", "up to 64 of a ring"), ("post", "one doorbell"),
             ("poll", "completions"), ("publish", "consumed, completed")]
    parts = []
    for at, (words, below) in enumerate(steps):
        parts.append(box(30 + 190 * at, 40, 150, 56, words, "a" if at % 2 else "w", below))
        if at:
            parts.append(arrow("M%g 68H%g" % (190 * at - 10, 190 * at + 26), True))
    parts += [arrow("M675 96V140H105V100", True), text(390, 160, "the next pass: no step waits", "m s"),
              text(30, 26, "proxy thread", "b")]
    return 790, 175, parts


def order():
    parts = []
    for at, (name, waits) in enumerate((("fence", False), ("quiet", True))):
        y = 46 + 160 * at
        parts += [text(20, y + 5, "sender", ""), text(20, y + 85, "target", ""), text(330, y - 20, name, "b m"),
                  arrow("M90 %g H760" % y), arrow("M90 %g H760" % (y + 80))]
        for x, words in ((130, "put a"), (220, "put b")):
            parts += [text(x, y - 8, words, "m s"),
                      arrow("M%g %gL%g %g" % (x, y, x + 150 + 40 * (x < 200), y + 76), True)]
        after = 560 if waits else 400
        if waits:
            parts += ['<path d="M330 %gH540" class="wait"/>' % y, arrow("M375 %gL538 %g" % (y + 78, y + 6)),
                      text(435, y - 12, "waits until both are there", "m s")]
        else:
            parts += ['<path d="M330 %gv20" class="line"/>' % (y - 10)]
        parts += [text(after, y - 8, "put c", "m s"), arrow("M%g %gL%g %g" % (after, y, after + 150, y + 76), True)]
        parts += [text(320, y + 100, "a, b: in any order", "m s"),
                  text(after + 150, y + 100, "c: after a and b", "m s")]
    return 790, 320, parts


def main():
    folder = sys.argv[1] if len(sys.argv) > 1 else os.path.dirname(os.path.abspath(__file__))
    for draw in (heap, ways, ring, proxy, order):
        width, height, parts = draw()
        head = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img">' % (width, height, width, height)
        with open("%s/%s.svg" % (folder, draw.__name__), "w") as file:
            file.write("\n".join([head, STYLE] + parts + ["</svg>\n"]))


main()
