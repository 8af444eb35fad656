# SPDX-License-Identifier: BSD-3-Clause
"""Collectives, of the host and in CUDA streams: all members of the team call the same ones in the same order."""
from __future__ import annotations

from typing import Optional

from . import _job, errors
from ._library import call, lib
from ._operand import index
from ._rma import matched, symmetric
from ._stream import handle
from ._team import WORLD, Team
from ._types import Stream, Symmetric


def barrier(team: Optional[Team] = None, *, stream: Optional[Stream] = None) -> None:
    """quiet, and all members have come here: after it everyone sees what everyone has put."""
    _synchronise("barrier", "barrier_all", team, stream)


def sync(team: Optional[Team] = None, *, stream: Optional[Stream] = None) -> None:
    """All members have come here; completes nothing."""
    _synchronise("team_sync", "sync_all", team, stream)


def _synchronise(of_team, of_all, team, stream):
    _job.check()
    name = of_all if team is None else of_team
    members = () if team is None else (team.handle,)
    if stream is None:
        call(getattr(lib, name), *members)
    else:
        call(getattr(lib, name + "_on_stream"), *members, handle(stream))


def _pair(dest, source, what):
    """Both as operands: symmetric, contiguous, of one type."""
    pair = symmetric(dest, what, name="dest"), symmetric(source, what, False, "source")
    for name, one in zip(("dest", "source"), pair):
        if one.count and (one.layout is None or one.layout[0] != 1):
            raise errors.InvalidError("%s: %s of shape %s with strides %s is not contiguous; copy it first"
                                      % (what, name, list(one.shape), list(one.strides)))
    if pair[0].dtype != pair[1].dtype:
        raise errors.DtypeError("%s: dest is %s, source is %s; they must be alike"
                                % (what, pair[0].dtype.name, pair[1].dtype.name))
    return pair


def _start(name, team, stream, *rest):
    if stream is None:
        call(getattr(lib, name), team.handle, *rest)
    else:
        call(getattr(lib, name + "_on_stream"), team.handle, *rest, handle(stream))


def _times(many, few, n, what, sentence):
    if many != n * few:
        raise errors.InvalidError("%s: %s, %d of %d members; there are %d" % (what, sentence, few, n, many))


def broadcast(dest: Symmetric, source: Symmetric, root: int = 0, *, team: Team = WORLD, stream: Optional[Stream] = None) -> None:
    """`source` of the member with rank `root` to `dest` of all."""
    there, here = _pair(dest, source, "broadcast")
    matched(there, here, "broadcast")
    _start("broadcastmem", team, stream, there.address, here.address, here.count * here.dtype.itemsize, index(root, "broadcast", "root"))


def fcollect(dest: Symmetric, source: Symmetric, *, team: Team = WORLD, stream: Optional[Stream] = None) -> None:
    """The sources of all members, one after another, to `dest` of all."""
    there, here = _pair(dest, source, "fcollect")
    _times(there.count, here.count, team.n_pes, "fcollect", "dest holds the elements of source")
    _start("fcollectmem", team, stream, there.address, here.address, here.count * here.dtype.itemsize)


def collect(dest: Symmetric, source: Symmetric, *, team: Team = WORLD, stream: Optional[Stream] = None) -> None:
    """The same where members have sources of different sizes. The library does not know where dest ends on each PE: it must have
    room for all."""
    there, here = _pair(dest, source, "collect")
    if there.count < here.count:
        raise errors.InvalidError("collect: dest has %d elements, less than this PE's source, %d" % (there.count, here.count))
    _start("collectmem", team, stream, there.address, here.address, here.count * here.dtype.itemsize)


def alltoall(dest: Symmetric, source: Symmetric, *, team: Team = WORLD, stream: Optional[Stream] = None) -> None:
    """Part r of `source` goes to rank r; part r of `dest` comes from it."""
    there, here = _pair(dest, source, "alltoall")
    matched(there, here, "alltoall")
    n = max(1, team.n_pes)
    if here.count % n:
        raise errors.InvalidError("alltoall: %d elements are no %d equal parts" % (here.count, n))
    _start("alltoallmem", team, stream, there.address, here.address, here.count // n * here.dtype.itemsize)


_FOLDS = ("sum", "prod", "min", "max", "and", "or", "xor")


def _fold(operation, op, there, here, count, team, stream):
    def name(fold):
        return "%s_%s_%s" % (here.dtype.coll, fold, operation)

    if not hasattr(lib, name(op)):
        there_are = [fold for fold in _FOLDS if hasattr(lib, name(fold))]
        raise errors.DtypeError("%s: there is no %s of type %s; there %s" % (
            operation, op, here.dtype.name, "are " + " ".join(there_are) if there_are else "is none of that type"))
    _start(name(op), team, stream, there.address, here.address, count)


def reduce(dest: Symmetric, source: Symmetric, op: str = "sum", *, team: Team = WORLD, stream: Optional[Stream] = None) -> None:
    """The sources folded element by element, in the order of the ranks, to `dest` of all: the same bits everywhere. op: sum, prod,
    min, max, and, or, xor. In place if dest is source."""
    there, here = _pair(dest, source, "reduce")
    matched(there, here, "reduce")
    _fold("reduce", op, there, here, here.count, team, stream)


def reducescatter(dest: Symmetric, source: Symmetric, op: str = "sum", *, team: Team = WORLD,
                  stream: Optional[Stream] = None) -> None:
    """The fold of all parts r of the sources to `dest` of rank r."""
    there, here = _pair(dest, source, "reducescatter")
    _times(here.count, there.count, team.n_pes, "reducescatter", "source has a part for each member")
    _fold("reducescatter", op, there, here, there.count, team, stream)


def inscan(dest: Symmetric, source: Symmetric, *, team: Team = WORLD, stream: Optional[Stream] = None) -> None:
    """To `dest` of rank r the sum of the sources 0 .. r."""
    there, here = _pair(dest, source, "inscan")
    matched(there, here, "inscan")
    _fold("inscan", "sum", there, here, here.count, team, stream)


def exscan(dest: Symmetric, source: Symmetric, *, team: Team = WORLD, stream: Optional[Stream] = None) -> None:
    """To `dest` of rank r the sum of the sources 0 .. r-1, and 0 on rank 0."""
    there, here = _pair(dest, source, "exscan")
    matched(there, here, "exscan")
    _fold("exscan", "sum", there, here, here.count, team, stream)
