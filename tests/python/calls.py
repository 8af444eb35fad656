#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Every call of the module, with data that is looked at, on any number of PEs.

usage: gpushmem run -n PES python3 calls.py"""
import os
import signal
import sys
import threading
import time

import numpy as np

import gpushmem as shm
from gpushmem import _interrupt

TYPES = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64",
         "complex64", "complex128"]


def raises(kind, word, call, *arguments, **named):
    """Calls what has to fail with this exception and this word in its sentence."""
    try:
        call(*arguments, **named)
    except kind as error:
        assert word in str(error), (word, str(error))
        assert "gpushmem_" not in str(error), "a function of C: " + str(error)
        return error
    raise AssertionError("%s was not raised by %s" % (kind.__name__, call))


def arrays(me, n):
    a = shm.zeros((3, 4), "float32")
    assert a.shape == (3, 4) and a.size == 12 and a.nbytes == 48 and a.ndim == 2 and len(a) == 3 and a.is_contiguous()
    a.numpy()[...] = np.arange(12).reshape(3, 4)
    assert a[1, 2].item() == 6 and float(a[-1, -1]) == 11 and int(a[2][0]) == 8
    assert a[1].shape == (4,) and a[:, 1].shape == (3,) and not a[:, 1].is_contiguous() and a[..., 3].strides == (4,)
    assert (a[1:, ::2].numpy() == [[4, 6], [8, 10]]).all()
    assert a.reshape(-1).shape == (12,) and a.reshape(4, 3)[1, 0].item() == 3
    assert a.numpy().ctypes.data == a.address and np.from_dlpack(a).ctypes.data == a.address
    a[0] = 7
    a[:, 3] = [1, 2, 3]
    assert a.numpy()[0].tolist() == [7, 7, 7, 1] and a.view("int32").dtype.name == "int32"
    assert len(a.memoryview()) == 48 and [row[0].item() for row in a] == [7, 4, 8]
    b = shm.array(np.arange(6, dtype="int16").reshape(2, 3).T)
    assert b.shape == (3, 2) and b.numpy().tolist() == [[0, 3], [1, 4], [2, 5]]
    c = shm.array([1.5, 2.5])
    assert c.dtype.name == "float64" and c.on(me)[1].item() == 2.5
    empty = shm.empty((0, 3), "uint8")
    shm.put(empty, empty, me)
    for one in (empty, c, b, a):
        one.free()
    assert shm.heap_info()["allocations"] == 0


def moves_of_each_type(me, n):
    right = (me + 1) % n
    for name in TYPES + ["bfloat16", "bool"]:
        dest, source = shm.zeros(8, name), shm.zeros(8, name)
        source[0] = 1
        shm.put(dest[:4], source[:4], right)
        shm.p(dest[5], 1, right)
        shm.barrier()
        assert dest[0].item() == 1 and dest[1].item() == 0 and dest[5].item() == 1, name
        assert shm.g(dest[5], right) == 1 and shm.g(dest[6], right) == 0
        shm.free(source)
        shm.free(dest)


def moves_of_views(me, n):
    right, left = (me + 1) % n, (me - 1) % n
    dest, mine = shm.zeros((6, 6), "int64"), np.arange(36).reshape(6, 6) + 100 * me
    theirs = np.arange(36).reshape(6, 6) + 100 * left
    for part in ((slice(None), 2), (slice(1, 4), slice(2, 5)), (slice(None, None, 2), 0), (3,)):
        dest.fill(0)
        shm.barrier()
        shm.put(dest[part], mine[part], right)
        shm.barrier()
        expected = np.zeros((6, 6), "int64")
        expected[part] = theirs[part]
        assert (dest.numpy() == expected).all(), part
        back = np.zeros((6, 6), "int64")
        shm.get(back[part], dest[part], right)
        assert (back[part] == mine[part]).all() and back.sum() == mine[part].sum(), part
        shm.barrier()
    shm.free(dest)


def moves_without_waiting(me, n):
    right, left = (me + 1) % n, (me - 1) % n
    dest, mine = shm.zeros((6, 6), "int64"), np.arange(36).reshape(6, 6) + 100 * me
    got = np.zeros(6, "int64")
    with shm.Context() as ctx:
        shm.put(dest[0], mine[1], right, nbi=True, ctx=ctx)
        shm.fence(ctx=ctx)
        shm.quiet(ctx=ctx)
        shm.get(got, dest[0], right, nbi=True)
        shm.quiet()
        assert (got == mine[1]).all()
    shm.barrier()
    outbox = bytearray(48)
    shm.register(outbox)
    shm.put(dest[1], memoryview(outbox).cast("q"), right)
    shm.unregister(outbox)
    shm.put(dest[2].view("uint64"), np.arange(6, dtype="uint64"), right, stream=0)
    shm.quiet(stream=0)
    shm.barrier(stream=0)
    shm.barrier()
    assert dest.numpy()[1].sum() == 0 and dest.numpy()[2].tolist() == list(range(6))
    mapped = dest.on(right)
    if mapped is not None:
        mapped.numpy()[5, 5] = me + 1
        shm.barrier()
        assert dest[5, 5].item() == left + 1
    shm.free(dest)


def atomics(me, n):
    for name in ("int32", "int64", "uint32", "uint64"):
        word = shm.zeros(2, name)
        shm.atomic_add(word[0], 2, 0)
        shm.atomic_inc(word[0], 0)
        before = shm.atomic_fetch_add(word[0], 3, 0), shm.atomic_fetch_inc(word[0], 0)
        assert all(0 <= one < 7 * n for one in before)
        shm.barrier()
        assert shm.atomic_fetch(word[0], 0) == 7 * n
        mine = word[1]
        shm.atomic_set(mine, 0b1100, me)
        assert shm.atomic_fetch_and(mine, 0b0110, me) == 0b1100 and shm.atomic_fetch_or(mine, 1, me) == 0b0100
        assert shm.atomic_fetch_xor(mine, 0b1111, me) == 0b0101
        shm.atomic_and(mine, 0b1000, me)
        shm.atomic_or(mine, 0b0011, me)
        shm.atomic_xor(mine, 0b0001, me)
        assert shm.atomic_swap(mine, 5, me) == 0b1010
        assert shm.atomic_compare_swap(mine, 4, 9, me) == 5 and shm.atomic_compare_swap(mine, 5, 9, me) == 5
        assert mine.item() == 9
        shm.free(word)
    real = shm.zeros(1, "float32")
    shm.atomic_set(real, 1.5, me)
    assert shm.atomic_swap(real, 2.5, me) == 1.5 and shm.atomic_fetch(real, me) == 2.5
    raises(shm.DtypeError, "float32; there are int32 int64 uint32 uint64", shm.atomic_add, real, 1, me)
    shm.free(real)
    word = shm.zeros((), "int32")
    raises(shm.DtypeError, "int32", shm.atomic_set, word, 1 << 31, me)
    shm.free(word)
    lock, total = shm.Lock(), shm.zeros(1, "int64")
    for _ in range(5):
        with lock:
            shm.p(total, shm.g(total, 0) + 1, 0)
    shm.barrier()
    assert shm.g(total, 0) == 5 * n
    shm.barrier()
    shm.free(total)
    lock.free()


def signals(me, n):
    right = (me + 1) % n
    data, flags = shm.zeros(4, "float64"), shm.zeros(5, "uint64")
    shm.put_signal(data, np.full(4, me + 1.0), flags[0], 3, right)
    assert shm.signal_wait(flags[0], "==", 3) == 3 and data[3].item() == (me - 1) % n + 1
    shm.barrier()
    shm.put_signal(data, np.zeros(4), flags[0], 4, right, op="add", nbi=True)
    shm.quiet()
    shm.wait_until(flags[0], ">=", 7)
    assert shm.signal_fetch(flags[0]) == 7 and shm.test(flags[0], shm.Cmp.EQ, 7) and not shm.test(flags[0], "<", 7)
    shm.barrier()
    for i in range(1, 5):
        shm.signal(flags[i], i, right, op=shm.SignalOp.SET)
    shm.wait_until_all(flags[1:], ">", 0)
    assert shm.wait_until_any(flags, "==", 4) == 4 and shm.wait_until_some(flags, "<", 3) == [1, 2]
    assert shm.wait_until_any(flags, ">", 0, skip=[1] * 5) is None
    assert shm.test_all(flags, ">", 0) and not shm.test_all(flags, ">", 2) and shm.test_all(flags, ">", 2, skip=[0, 1, 1, 0, 0])
    assert shm.test_any(flags, ">", 9) is None and shm.test_some(flags, ">=", 4) == [0, 4]
    shm.barrier()
    shm.put_signal(data, np.ones(4), flags[1], 50, right, stream=0)
    shm.signal_wait(flags[1], "==", 50, stream=0)
    shm.signal(flags[2], 51, right, stream=0)
    shm.wait_until(flags[2], "==", 51)
    shm.barrier()
    for one in (flags, data):
        shm.free(one)


def folded(op, values):
    return {"sum": sum, "prod": lambda v: np.prod(v), "min": min, "max": max, "and": np.bitwise_and.reduce,
            "or": np.bitwise_or.reduce, "xor": np.bitwise_xor.reduce}[op](values)


def collectives(team, stream):
    rank, n = team.my_pe, team.n_pes
    options = {"team": team, "stream": stream}
    for name in TYPES:
        dest, source = shm.zeros(2 * n, name), shm.zeros(2 * n, name)
        source.numpy()[...] = [rank + 1, 2] * n
        shm.broadcast(dest[:2], source[:2], n - 1, **options)
        assert dest.numpy()[:2].tolist() == [n, 2]
        shm.fcollect(dest, source[:2], **options)
        assert dest.numpy()[::2].tolist() == list(range(1, n + 1))
        shm.collect(dest, source[:1 if rank else 2], **options)
        assert dest.numpy()[n].item() == (n if n > 1 else 2)
        shm.alltoall(dest, source, **options)
        assert dest.numpy()[::2].tolist() == list(range(1, n + 1))
        whole = "int" in name
        for op in ["sum", "prod"] + ["min", "max"] * (not name.startswith("complex")) + ["and", "or", "xor"] * whole:
            shm.reduce(dest, source, op, **options)
            assert dest[0].item() == folded(op, list(range(1, n + 1))), (name, op)
            shm.reducescatter(dest[:2], source, op, **options)
            assert dest[1].item() == folded(op, [2] * n), (name, op)
        shm.inscan(dest, source, **options)
        assert dest[0].item() == (rank + 1) * (rank + 2) / 2 and dest[1].item() == 2 * (rank + 1)
        shm.exscan(dest, source, **options)
        assert dest[0].item() == rank * (rank + 1) / 2 and dest[1].item() == 2 * rank
        team.sync()
        shm.reduce(source, source, "sum", **options)
        assert source[1].item() == 2 * n
        shm.barrier(team, stream=stream)
        shm.sync(team, stream=stream)
        shm.free(source)
        shm.free(dest)


def teams(me, n):
    assert shm.WORLD.my_pe == me and shm.WORLD.n_pes == n and shm.NODE.n_pes == shm.node_n_pes()
    collectives(shm.WORLD, None)
    with shm.WORLD.split(range(n - 1, -1, -1)) as back:
        assert back.my_pe == n - 1 - me and back.translate(0) == n - 1 and back.translate(0, back) == 0
        collectives(back, 0)
        word = shm.zeros(1, "int32")
        with shm.Context(back) as ctx:
            shm.p(word, me + 1, n - 1, ctx=ctx)
            shm.quiet(ctx=ctx)
        shm.barrier()
        assert me or 1 <= word.item() <= n
        shm.free(word)
    assert back.my_pe == -1
    back.destroy()
    few = shm.WORLD.split_strided(0, 1, max(1, n - 1))
    assert (few is None) == (n > 1 and me == n - 1)
    if few is not None:
        few.barrier()
        few.destroy()
    row, column = shm.WORLD.split_2d(2)
    assert row.n_pes <= 2 and row.my_pe == me % 2 and column.my_pe == me // 2
    row.destroy()
    column.destroy()
    raises(shm.InvalidError, "ranks are 0 to", shm.WORLD.split, [n])
    raises(shm.InvalidError, "predefined", shm.NODE.destroy)


def threads(me, n):
    """One thread waits, and the others go on: the GIL is free while the library waits."""
    flag, counted = shm.zeros(2, "uint64"), []

    def wait():
        counted.append(shm.signal_wait(flag[0], "==", 1))

    waiting = threading.Thread(target=wait)
    waiting.start()
    total = sum(range(20000))
    shm.signal(flag[0], 1, me)
    waiting.join()
    assert counted == [1] and total
    shm.barrier()
    shm.free(flag)


class Alarm(Exception):
    pass


def interrupt_at_the_end_of_a_wait(flag, me):
    """What a handler has raised as a wait ended well is raised by that call, not by one that fails later."""
    _interrupt._raised = KeyboardInterrupt()
    raises(KeyboardInterrupt, "", shm.signal_wait, flag, "==", 0)
    _interrupt._raised = KeyboardInterrupt()
    other = threading.Thread(target=shm.p, args=(flag[0], 0, me)) # is none of its business
    other.start()
    other.join()
    raises(KeyboardInterrupt, "", shm.quiet)
    shm.quiet()


def interrupts(me, n):
    flag = shm.zeros(1, "uint64")
    interrupt_at_the_end_of_a_wait(flag, me)

    def alarm(number, frame):
        raise Alarm

    signal.signal(signal.SIGALRM, alarm)
    for wait in (lambda: shm.signal_wait(flag, "==", 1), lambda: shm.wait_until_all(flag, "==", 1)):
        signal.setitimer(signal.ITIMER_REAL, 0.02)
        raises(Alarm, "", wait)
        # Ctrl-C, from a thread that sleeps: which it can only because the waiting one has let go of the GIL
        killer = threading.Thread(target=lambda: (time.sleep(0.02), os.kill(os.getpid(), signal.SIGINT)))
        killer.start()
        raises(KeyboardInterrupt, "", lambda: (wait(), killer.join()))
        killer.join()
    seen = []
    signal.signal(signal.SIGALRM, lambda *unused: seen.append(1))
    signal.setitimer(signal.ITIMER_REAL, 0.01)
    waker = threading.Thread(target=lambda: (until(seen), shm.signal(flag, 1, me)))
    waker.start()
    assert shm.signal_wait(flag, "==", 1) == 1 and seen
    waker.join()
    shm.barrier()
    shm.free(flag)


def until(what):
    while not what:
        time.sleep(0.001)


def main():
    with shm.init() as job:
        me, n = job.my_pe, job.n_pes
        assert shm.initialized() and shm.my_pe() == me and shm.n_pes() == n and shm.failed_pes() == []
        with shm.init():
            pass
        assert shm.initialized()
        for part in (arrays, moves_of_each_type, moves_of_views, moves_without_waiting, atomics, signals, teams, threads,
                     interrupts):
            part(me, n)
    assert not shm.initialized()
    with shm.init(): # a second job
        assert shm.my_pe() == me
        arrays(me, n)
    sys.stdout.write("PE %d: calls: ok\n" % me)


if __name__ == "__main__":
    sys.exit(main())
