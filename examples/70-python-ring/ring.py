#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Each PE passes its numbers on to the right, by put with signal, until everyone has seen all of them.

usage: gpushmem run -n 3 python3 ring.py [ELEMENTS]"""
import sys

import numpy as np

import gpushmem as shm


def main(elements):
    with shm.init() as job:
        me, n = job.my_pe, job.n_pes
        # a place for each step, so that no neighbour overwrites what is still being read
        inbox, arrived = shm.zeros((n, elements), "float64"), shm.zeros(n, "uint64")
        seen = inbox.numpy()
        seen[0] = np.arange(elements) + 100 * me
        for step in range(1, n):
            shm.put_signal(inbox[step], inbox[step - 1], arrived[step], 1, (me + 1) % n)
            shm.signal_wait(arrived[step], ">=", 1)
        expected = np.arange(elements) * n + 100 * sum(range(n))
        right = bool((seen.sum(axis=0) == expected).all())
        print("PE %d of %d: saw the numbers of all PEs, those of PE %d last: %s"
              % (me, n, (me + 1) % n, "right" if right else "WRONG"))
        shm.barrier()
        shm.free(arrived)
        shm.free(inbox)
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 1000))
