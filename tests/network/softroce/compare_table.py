#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""compare_table.py DIR: medians and ratios of what compare.sh measured; see there for the conventions.

DIR holds, for each round R, ours-R-RUN.json (the rows of gpushmem perf) and theirs-R-RUN.log (perftest's table).
"""
import glob
import json
import os
import statistics
import sys

MIB = float(1 << 20)

# name, unit, our run, its row: test, field and size; factor to the unit, their run
ROWS = [
    ("put-lat-8", "us", "put-lat-8", "put-lat", "latency_us_p50", 8, 1.0, "put-lat-8"),
    ("get-lat-8", "us", "get-lat-8", "get-lat", "latency_us_p50", 8, 1.0, "get-lat-8"),
    ("amo-lat", "us", "amo", "fetch-add", "latency_us_p50", 8, 1.0, "amo-lat"),
    ("put-bw-65536", "MB/s", "put-bw", "put-bw", "bandwidth_gb_s", 65536, 1e3, "put-bw-65536"),
    ("put-bw-1048576", "MB/s", "put-bw", "put-bw", "bandwidth_gb_s", 1048576, 1e3, "put-bw-1048576"),
    ("get-bw-65536", "MB/s", "get-bw", "get-bw", "bandwidth_gb_s", 65536, 1e3, "get-bw-65536"),
    ("get-bw-1048576", "MB/s", "get-bw", "get-bw", "bandwidth_gb_s", 1048576, 1e3, "get-bw-1048576"),
    ("amo-rate", "k/s", "amo", "fetch-add-rate", "rate_m_s", 8, 1e3, "amo-rate"),
    ("put-lat-8-device", "us", "put-lat-8-device", "put-lat", "latency_us_p50", 8, 1.0, None),
]


def fail(sentence):
    sys.exit("compare_table.py: " + sentence)


def rounds_of(directory, side, run, suffix):
    paths = sorted(glob.glob(os.path.join(directory, f"{side}-*-{run}.{suffix}")))
    paths = [p for p in paths if os.path.basename(p).split("-", 2)[2] == f"{run}.{suffix}"]
    return paths or fail(f"{directory} has no {side}-*-{run}.{suffix}")


def our_value(path, test, field, size):
    with open(path, encoding="utf-8") as file:
        rows = json.load(file)["rows"]
    values = [row[field] for row in rows if (row["test"], row["size_bytes"]) == (test, size) and row.get(field)]
    return values[0] if len(values) == 1 else fail(f"{path} has no row {test} with {field} for {size} bytes")


def their_table(path):
    """perftest prints one line of numbers under its heading: size, iterations, then what the heading says."""
    with open(path, encoding="utf-8") as file:
        lines = file.read().splitlines()
    for heading, numbers in zip(lines, lines[1:]):
        if heading.lstrip().startswith("#bytes"):
            return heading, numbers.split()
    return fail(f"{path} holds no table of perftest's")


def their_value(path, unit):
    heading, numbers = their_table(path)
    if unit == "us":
        column, known, factor = 4, "t_typical[usec]", 1.0
    elif unit == "MB/s":
        column, known, factor = 3, "BW average[MB/sec]", MIB / 1e6
    else:
        column, known, factor = 4, "MsgRate[Mpps]", 1e3
    if known not in heading:
        fail(f"{path}: perftest's heading has no {known}: {heading}")
    return float(numbers[column]) * factor


def spread(values):
    return (max(values) - min(values)) / statistics.median(values) * 100


def main(directory):
    ratios, host = [], {}
    print(f"{'':18}{'gpushmem':>10}{'perftest':>10} {'':5}{'ratio':>7}  spread of the rounds")
    for name, unit, run, test, field, size, factor, their_run in ROWS:
        ours = [our_value(p, test, field, size) * factor for p in rounds_of(directory, "ours", run, "json")]
        host[name] = ours
        if their_run:
            theirs = [their_value(p, unit) for p in rounds_of(directory, "theirs", their_run, "log")]
        else:
            theirs = host["put-lat-8"]
        ratio = statistics.median(ours) / statistics.median(theirs)
        ratios.append((name, ratio))
        print(f"{name:18}{statistics.median(ours):10.2f}{statistics.median(theirs):10.2f} {unit:5}{ratio:7.3f}"
              f"  {spread(ours):.0f} % and {spread(theirs):.0f} %")
    for name, ratio in ratios:
        print(f"ratio {name} {ratio:.3f}")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
