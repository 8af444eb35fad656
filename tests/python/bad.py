#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What is refused, with one sentence and the right exception; and what is only warned about.

usage: gpushmem run -n PES python3 bad.py"""
import gc
import os
import pickle
import sys
import warnings

import numpy as np

import gpushmem as shm
from gpushmem._library import lib
from calls import raises


def without_a_job():
    for call in (shm.my_pe, shm.n_pes, shm.barrier, shm.quiet, shm.fence, shm.finalize, shm.failed_pes,
                 lambda: shm.zeros(4), lambda: shm.put(np.zeros(1), np.zeros(1), 0), lambda: shm.free(np.zeros(1))):
        try:
            call()
            raise AssertionError("%s was not refused" % call)
        except (shm.StateError, shm.AddressError) as error:
            assert str(error), call
    assert not shm.initialized() and "finalized" in repr(shm.Job())


def starts():
    raises(shm.InvalidError, "128 bytes", shm.init, uid=b"x", rank=0, n_pes=1)
    raises(shm.InvalidError, "rank and n_pes", shm.init, uid=bytes(128))
    raises(shm.InvalidError, "belong to uid", shm.init, rank=0, n_pes=1)
    raises(shm.InvalidError, "exclude", shm.init, uid=bytes(128), mpi=object())
    raises(shm.InvalidError, "there are single", shm.init, thread_level="many")
    raises(shm.InvalidError, "unique id", shm.init, uid=bytes(128), rank=0, n_pes=1)
    assert not shm.initialized()


def arguments_of_moves(me, n):
    a, flag = shm.zeros((4, 4), "float32"), shm.zeros(2, "uint64")
    ours = np.zeros((4, 4), "float32")
    error = raises(shm.PEError, "PE", shm.put, a, ours, n)
    assert error.code == -3 and isinstance(error, IndexError)
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is shm.PEError and str(again) == str(error) and again.code == -3
    raises(shm.PEError, "-1", shm.atomic_inc, flag[0], -1)
    raises(TypeError, "put: pe is 0.5; it wants an integer", shm.put, a, ours, 0.5)
    raises(TypeError, "atomic_add: pe is '1'", shm.atomic_add, flag[0], 1, "1")
    raises(TypeError, "an index of [0, 2]", lambda: a[[0, 2]])
    raises(shm.InvalidError, "put: source: a list is no array", shm.put, a, [1.0], me)
    raises(shm.DtypeError, "float64", shm.put, a, np.zeros((4, 4)), 0)
    raises(shm.InvalidError, "16 elements", shm.put, a, ours[:2], 0)
    raises(shm.AddressError, "symmetric", shm.put, ours.copy(), ours, me)
    scattered = np.zeros((8, 4, 8), "float32")[::2, 0, ::2]
    raises(shm.InvalidError, "copy it first", shm.put, a, scattered, me)
    raises(shm.InvalidError, "blocking form", shm.put, a[:, 0], ours[:, 0], me, nbi=True)
    raises(shm.InvalidError, "no array", shm.put, a, object(), me)
    raises(shm.InvalidError, "cannot be written", shm.get, bytes(4), a[0, 0], me)
    frozen = np.zeros((4, 4), "float32")
    frozen.flags.writeable = False
    raises(shm.InvalidError, "read-only", shm.get, frozen, a, me)
    raises(shm.InvalidError, "one element", shm.p, a, 1, me)
    raises(shm.DtypeError, "no value", shm.p, flag[0], "seven", me)
    assert str(raises(shm.PEError, "there is no PE", shm.p, flag[0], 7, n)).startswith("gpushmem.p: ")
    assert str(raises(shm.PEError, "there is no PE", shm.g, flag[0], n)).startswith("gpushmem.g: ")
    team = shm.WORLD.split_strided(0, 1, n)
    team.destroy()
    team.destroy()
    assert team.n_pes == -1 and "-1" in repr(team)
    for use in (team.sync, team.barrier, lambda: team.split_2d(1), lambda: team.translate(0), lambda: shm.Context(team),
                lambda: shm.reduce(flag, flag, "sum", team=team)):
        raises(shm.InvalidError, "the team was destroyed", use)
    raises(shm.InvalidError, "one element", a.item)
    raises(shm.DtypeError, "uint64", shm.put_signal, a, ours, a[0, 0], 1, me)
    raises(shm.InvalidError, "no signal operation 'multiply'", shm.put_signal, a, ours, flag[0], 1, me, op="multiply")
    raises(shm.InvalidError, "2**64", shm.signal, flag[0], -1, me)
    raises(shm.InvalidError, "no stream", shm.put, a, ours, me, stream="default")
    ctx = shm.Context()
    ctx.destroy()
    ctx.destroy()
    raises(shm.InvalidError, "destroyed", shm.put, a, ours, me, ctx=ctx)
    shm.free(flag)
    shm.free(a)


def arguments_of_waits_and_arrays(me, n):
    a, flag = shm.zeros((4, 4), "float32"), shm.zeros(2, "uint64")
    raises(shm.InvalidError, "wait_until: there is no comparison '=>'; there are ==", shm.wait_until, flag[0], "=>", 1)
    column = np.ones((2, 2), "float32")
    raises(shm.InvalidError, "put: dest has shape [4], source has [2, 2], and one", shm.put, a[:, 0], column, me)
    shm.put(a[:, 0], np.ones((4, 1), "float32"), me) # an extent of 1 is no difference
    shm.put(a[0], column, me) # both are contiguous
    raises(shm.InvalidError, "one word", shm.wait_until, flag, "==", 1)
    raises(shm.DtypeError, "of type float32; there are int16 int32", shm.test, a[0, 0], "==", 1)
    raises(shm.DtypeError, "no value", shm.test, flag[0], "==", -1)
    raises(shm.InvalidError, "skip", shm.test_all, flag, "==", 0, skip=[1])
    raises(shm.DtypeError, "no element type", shm.empty, 4, "float80")
    raises(shm.InvalidError, "not negative", shm.empty, (2, -1))
    raises(shm.NoMemoryError, "gpushmem.empty: no block of", shm.empty, 1 << 50)
    raises(shm.NoMemoryError, "gpushmem.zeros: no block of", shm.zeros, 1 << 50)
    raises(IndexError, "dimension of 4", lambda: a[4])
    raises(IndexError, "3 indices", lambda: a[0, 0, 0])
    raises(shm.InvalidError, "step", lambda: a[::-1])
    raises(shm.InvalidError, "16 elements", a.reshape, 5, 3)
    raises(shm.DtypeError, "one size", a.view, "float64")
    raises(shm.InvalidError, "contiguous", shm.broadcast, a[:, 0], a[:, 1])
    raises(shm.InvalidError, "root", shm.broadcast, a[0], a[1], n)
    raises(shm.InvalidError, "members", shm.reducescatter, a, a[0])
    raises(shm.DtypeError, "no xor of type float32; there are sum prod min max", shm.reduce, a[0], a[1], "xor")
    raises(shm.DtypeError, "uint64", shm.reduce, a[0, :2], flag)
    raises(shm.InvalidError, "no array", shm.register, 17)
    shm.free(flag)
    shm.free(a)


def shapes_that_differ(me, n):
    if n > 1:
        raises(shm.AsymmetryError, "called gpushmem.zeros with a shape of [%d] and type float64" % (4 + me), shm.zeros, 4 + me)
        raises(shm.AsymmetryError, "PE 1 calls for an array of 40 bytes, aligned to 256", shm.zeros, 4 + me)


def lifetimes(me, n):
    a = shm.zeros(4)
    part, ours = a[1:], a.numpy()
    raises(shm.AddressError, "view", part.free)
    raises(shm.AddressError, "no symmetric array", shm.free, np.zeros(1))
    shm.free(ours) # a numpy array of the whole names it, too
    assert "freed" in repr(a)
    for use in (a.free, a.numpy, part.item, lambda: shm.put(a, np.zeros(4), me), lambda: a.on(me), a.__dlpack__,
                lambda: a.fill(1), lambda: shm.free(a)):
        raises(shm.AddressError, "was freed", use)
    raises(shm.AddressError, "put: dest: this array (32 bytes at 0x", shm.put, a, np.zeros(4), me)
    c = shm.zeros(4)
    ours, mine, theirs = c.numpy(), c.on(me), c.on((me + 1) % n)
    del mine # by another name what ours is of
    gc.collect()
    shm.free(ours)
    raises(shm.AddressError, "was freed", theirs.numpy)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        b = shm.zeros(8)
        kept = b.address
        del b
        gc.collect()
        assert len(seen) == 1 and "was dropped" in str(seen[0].message) and "64 bytes" in str(seen[0].message)
    assert shm.heap_info()["allocations"] == 1 and kept


def forks(me, n):
    """A child is no PE: everything is refused there, and nothing happens to the job."""
    a = shm.zeros(4)
    child = os.fork()
    if child == 0:
        status = 1
        try:
            assert not shm.initialized()
            for call in (shm.my_pe, shm.init, shm.finalize, shm.barrier, lambda: shm.zeros(4)):
                raises(shm.StateError, "forked", call)
            del a
            status = 0
        finally:
            os._exit(status)
    assert os.waitpid(child, 0)[1] == 0
    shm.barrier()
    shm.free(a)


def finalize_that_fails():
    """It has left the job: its arrays are refused, and do not end the process."""
    shm.init()
    a = shm.zeros(4, "int64")
    real = lib.finalize
    lib.finalize = lambda: real() or -13
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        raises(shm.WaitTimeoutError, "", shm.finalize)
    lib.finalize = real
    raises(shm.StateError, "finalized", a.numpy)
    raises(shm.StateError, "finalized", lambda: int(a[0]))


def left_open(me):
    """What the block of `with` raises is not hidden by a finalize that waits for others; arrays of a job that is over are
    refused."""
    shm.init()
    a = shm.zeros(4)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        shm.finalize()
        assert any("still referenced" in str(one.message) for one in seen)
    raises(shm.StateError, "finalized", a.numpy)
    raises(shm.StateError, "init", shm.finalize)
    job = shm.init()
    raises(ZeroDivisionError, "", lambda: failing(job))
    assert shm.initialized()
    raises(shm.StateError, "finalized", a.free)
    shm.finalize()


def failing(job):
    with job:
        return 1 / 0


def main():
    without_a_job()
    starts()
    with shm.init() as job:
        me, n = job.my_pe, job.n_pes
        for part in (arguments_of_moves, arguments_of_waits_and_arrays, shapes_that_differ, lifetimes, forks):
            part(me, n)
    without_a_job()
    finalize_that_fails()
    left_open(me)
    without_a_job()
    sys.stdout.write("PE %d: bad: ok\n" % me)


if __name__ == "__main__":
    sys.exit(main())
