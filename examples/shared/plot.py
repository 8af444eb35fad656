#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""plot.py KIND FILE.csv OUT.svg [--title T] [--x T] [--y T]: a picture of what an example wrote with --csv.

KIND  lines   first column x, the others a line each; both axes logarithmic
      bars    first column a name, the others a bar each
      points  x, y, group: a dot each, coloured by group; groups below 0 are crosses

Needs nothing but Python.
"""
import argparse
import csv
import math

WIDTH, HEIGHT, LEFT, TOP, RIGHT, BOTTOM = 640, 400, 70, 40, 120, 50
COLOURS = ["#2166ac", "#d6604d", "#4d9221", "#762a83", "#e08214", "#35978f", "#c51b7d", "#5a5a5a"]


def text(x, y, words, anchor="middle", more=""):
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" {more}>{words}</text>'


class Axis:
    """From values to pixels, with round numbers for ticks."""

    def __init__(self, values, begin, end, log=False, zero=False):
        low, high = min(values), max(values)
        self.log = log
        if log:
            first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
            last = max(last, first + 1)
            self.ticks = [10.0**power for power in range(first, last + 1)]
        else:
            low = min(low, 0) if zero else low
            step = 10.0 ** math.floor(math.log10((high - low) or 1))
            while (high - low) / step < 4:
                step /= 2
            first, last = math.floor(low / step), math.ceil(high / step)
            self.ticks = [step * i for i in range(first, last + 1)]
        self.begin, self.scale = begin, (end - begin) / (self.place(self.ticks[-1]) - self.place(self.ticks[0]))

    def place(self, value):
        return math.log10(value) if self.log else value

    def at(self, value):
        return self.begin + (self.place(value) - self.place(self.ticks[0])) * self.scale


def frame(x, y, args):
    parts = []
    for tick in y.ticks:
        parts.append(f'<path d="M{LEFT} {y.at(tick):.1f}H{WIDTH - RIGHT}" stroke="#ddd"/>')
        parts.append(text(LEFT - 6, y.at(tick) + 4, f"{tick:g}", "end"))
    for tick in x.ticks if x else []:
        parts.append(f'<path d="M{x.at(tick):.1f} {TOP}V{HEIGHT - BOTTOM}" stroke="#eee"/>')
        parts.append(text(x.at(tick), HEIGHT - BOTTOM + 16, f"{tick:g}"))
    middle = (TOP + HEIGHT - BOTTOM) / 2
    parts.append(text((LEFT + WIDTH - RIGHT) / 2, 22, args.title, more='font-size="15"'))
    parts.append(text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 12, args.x))
    parts.append(text(16, middle, args.y, more=f'transform="rotate(-90 16 {middle})"'))
    return parts


def legend(names):
    for i, name in enumerate(names):
        y = TOP + 10 + 18 * i
        yield f'<rect x="{WIDTH - RIGHT + 12}" y="{y - 9}" width="10" height="10" fill="{COLOURS[i % len(COLOURS)]}"/>'
        yield text(WIDTH - RIGHT + 28, y, name, "start")


def lines(head, rows, args):
    x = Axis([float(row[0]) for row in rows], LEFT, WIDTH - RIGHT, log=True)
    y = Axis([float(v) for row in rows for v in row[1:]], HEIGHT - BOTTOM, TOP, log=True)
    parts = frame(x, y, args) + list(legend(head[1:]))
    for i in range(1, len(head)):
        way = " ".join(f"{x.at(float(row[0])):.1f},{y.at(float(row[i])):.1f}" for row in rows)
        parts.append(f'<polyline points="{way}" fill="none" stroke="{COLOURS[i - 1]}" stroke-width="2"/>')
    return parts


def bars(head, rows, args):
    y = Axis([float(v) for row in rows for v in row[1:]], HEIGHT - BOTTOM, TOP, zero=True)
    parts = frame(None, y, args) + list(legend(head[1:]))
    group = (WIDTH - RIGHT - LEFT) / len(rows)
    bar = 0.8 * group / (len(head) - 1)
    for g, row in enumerate(rows):
        parts.append(text(LEFT + (g + 0.5) * group, HEIGHT - BOTTOM + 16, row[0]))
        for i, value in enumerate(row[1:]):
            left, top = LEFT + (g + 0.1) * group + i * bar, y.at(float(value))
            parts.append(f'<rect x="{left:.1f}" y="{top:.1f}" width="{bar:.1f}" '
                         f'height="{y.at(0) - top:.1f}" fill="{COLOURS[i]}"/>')
    return parts


def points(_, rows, args):
    x = Axis([float(row[0]) for row in rows], LEFT, WIDTH - RIGHT)
    y = Axis([float(row[1]) for row in rows], HEIGHT - BOTTOM, TOP)
    parts = frame(x, y, args)
    for row in rows:
        across, down, group = x.at(float(row[0])), y.at(float(row[1])), int(row[2])
        if group < 0:
            parts.append(f'<path d="M{across - 6:.1f} {down - 6:.1f}l12 12m0-12l-12 12" stroke="#000" stroke-width="3"/>')
        else:
            parts.append(f'<circle cx="{across:.1f}" cy="{down:.1f}" r="1.6" fill="{COLOURS[group % len(COLOURS)]}"/>')
    return parts


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kind", choices=["lines", "bars", "points"])
    parser.add_argument("csv")
    parser.add_argument("svg")
    for name in "title", "x", "y":
        parser.add_argument(f"--{name}", default="")
    args = parser.parse_args()
    with open(args.csv, encoding="utf-8") as file:
        head, *rows = csv.reader(file)
    if not rows:
        parser.error(f"{args.csv} has a head line and no rows")
    parts = {"lines": lines, "bars": bars, "points": points}[args.kind](head, rows, args)
    with open(args.svg, "w", encoding="utf-8") as file:
        file.write(f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" '
                   f'font-family="sans-serif" font-size="12">\n<rect width="100%" height="100%" fill="#fff"/>\n')
        file.write("\n".join(parts) + "\n</svg>\n")


main()
