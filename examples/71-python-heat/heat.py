#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Heat in a plate that the PEs share by rows: each step needs the neighbours' border rows, which come by put with signal.

usage: gpushmem run -n 3 python3 heat.py [ROWS [COLUMNS [STEPS]]]
PE 0 draws the plate in letters, and compares it with one that it computes alone."""
import sys

import numpy as np

import gpushmem as shm


def step(old, new):
    """One step of all inner points; the outermost rows and columns are what they are given."""
    new[1:-1, 1:-1] = old[1:-1, 1:-1] + 0.2 * (old[:-2, 1:-1] + old[2:, 1:-1] + old[1:-1, :-2] + old[1:-1, 2:]
                                               - 4 * old[1:-1, 1:-1])


def hot_plate(rows, columns):
    plate = np.zeros((rows + 2, columns + 2))
    plate[0] = 1.0 # the upper edge is hot
    return plate


def exchange(plate, arrived, count, me, n, rows):
    """My first and last row to the neighbours' borders; then theirs are here."""
    mine = plate.numpy()
    if me > 0:
        shm.put_signal(plate[rows + 1], mine[1], arrived[1], count, me - 1)
    if me < n - 1:
        shm.put_signal(plate[0], mine[rows], arrived[0], count, me + 1)
    if me > 0:
        shm.signal_wait(arrived[0], ">=", count)
    if me < n - 1:
        shm.signal_wait(arrived[1], ">=", count)


def compute(me, n, rows, columns, steps):
    """This PE's rows after so many steps."""
    # the borders of even and odd steps are different memory: a neighbour may be one step ahead, not two
    plates, arrived = [shm.zeros((rows + 2, columns + 2)) for _ in range(2)], shm.zeros(2, "uint64")
    for plate in plates:
        plate.numpy()[...] = hot_plate(rows, columns) if me == 0 else 0.0
    shm.barrier()
    for count in range(1, steps + 1):
        old, new = plates[count % 2], plates[1 - count % 2]
        exchange(old, arrived, count, me, n, rows)
        step(old.numpy(), new.numpy())
    result = plates[1 - steps % 2].numpy()[1:rows + 1, 1:-1].copy()
    for one in (arrived, *plates):
        shm.free(one)
    return result


def gathered(part, n):
    """The rows of all PEs, on each."""
    source, whole = shm.array(part), shm.zeros((n * part.shape[0], part.shape[1]))
    shm.fcollect(whole, source)
    result = whole.numpy().copy()
    shm.free(whole)
    shm.free(source)
    return result


def alone(rows, columns, steps):
    old, new = hot_plate(rows, columns), hot_plate(rows, columns)
    for _ in range(steps):
        step(old, new)
        old, new = new, old
    return old[1:-1, 1:-1]


def draw(plate):
    shades = " .:-=+*#%@"
    for row in plate[::max(1, len(plate) // 12)]:
        print("".join(shades[min(9, int(10 * value))] for value in row[::max(1, len(row) // 60)]))


def main(rows=8, columns=40, steps=200):
    with shm.init() as job:
        me, n = job.my_pe, job.n_pes
        whole = gathered(compute(me, n, rows, columns, steps), n)
        if me != 0:
            return 0
        draw(whole)
        right = np.array_equal(whole, alone(n * rows, columns, steps))
        print("%d x %d points on %d PEs, %d steps: %s" % (n * rows, columns, n, steps, "right" if right else "WRONG"))
        return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
