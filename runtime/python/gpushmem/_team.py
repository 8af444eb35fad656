# SPDX-License-Identifier: BSD-3-Clause
"""Teams: groups of PEs that call collective functions together."""
import ctypes
import operator
from typing import Optional, Sequence, Tuple

from . import _job, errors
from ._library import call, lib

_INVALID = -1


class Team:
    """A team. A PE that is not in it after a split gets None instead. As a context manager it is destroyed at the end of the
    block, unless the block raised."""

    def __init__(self, handle: int):
        self._handle = handle

    @property
    def handle(self) -> int:
        """The library's number of the team. InvalidError if the team was destroyed."""
        if self._handle == _INVALID:
            raise errors.InvalidError("the team was destroyed: take one that split or survivors has made since")
        return self._handle

    @property
    def my_pe(self) -> int:
        """This PE's rank in the team; -1 if the team was destroyed or this PE is outside."""
        return lib.team_my_pe(self._handle)

    @property
    def n_pes(self) -> int:
        """The number of members; -1 if the team was destroyed."""
        return lib.team_n_pes(self._handle)

    def translate(self, pe: int, to: Optional["Team"] = None) -> int:
        """The rank in `to` (all PEs) of the member with rank `pe`; -1 if it has none."""
        return lib.team_translate_pe(self.handle, operator.index(pe), (to or WORLD).handle)

    def split_strided(self, start: int, stride: int, size: int) -> Optional["Team"]:
        """The ranks start, start + stride, ..., `size` of them. Collective over this team."""
        made = ctypes.c_int32()
        call(lib.team_split_strided, self.handle, start, stride, size, None, 0, ctypes.byref(made))
        return _team(made)

    def split_2d(self, xrange: int) -> Tuple["Team", "Team"]:
        """Rank r is at x = r % xrange, y = r // xrange: the team of this PE's row, and that of its column."""
        x, y = ctypes.c_int32(), ctypes.c_int32()
        call(lib.team_split_2d, self.handle, xrange, None, 0, ctypes.byref(x), None, 0, ctypes.byref(y))
        return _team(x), _team(y)

    def split(self, ranks: Sequence[int]) -> Optional["Team"]:
        """These ranks, in this order. Every member of this team passes the same ones."""
        ranks = list(ranks)
        made = ctypes.c_int32()
        call(lib.team_split_list, self.handle, (ctypes.c_int * max(1, len(ranks)))(*ranks), len(ranks), None, 0,
             ctypes.byref(made))
        return _team(made)

    def survivors(self) -> Optional["Team"]:
        """The members that live, after others were lost (GPUSHMEM_ON_PE_FAILURE=notify)."""
        made = ctypes.c_int32()
        call(lib.team_survivors, self.handle, None, 0, ctypes.byref(made))
        return _team(made)

    def sync(self) -> None:
        """All members have come here; completes nothing."""
        _job.check()
        call(lib.team_sync, self.handle)

    def connect(self) -> None:
        """Connects this PE with all members now, not at the first operation to each. Local."""
        call(lib.connect, self.handle)

    def barrier(self) -> None:
        """quiet, then sync."""
        _job.check()
        call(lib.barrier, self.handle)

    def destroy(self) -> None:
        """Ends the team. Collective over it. A second time does nothing."""
        if self._handle != _INVALID:
            handle, self._handle = self._handle, _INVALID if self._handle > 3 else self._handle
            call(lib.team_destroy, handle)

    def __enter__(self) -> "Team":
        return self

    def __exit__(self, kind, value, traceback) -> None:
        if kind is None and lib.initialized():
            self.destroy()

    def __repr__(self) -> str:
        return "<gpushmem.Team %d>" % self._handle


def _team(made):
    return None if made.value == _INVALID else Team(made.value)


WORLD = Team(0)
"""All PEs."""
SHARED = Team(1)
"""Those of this node whose heaps this PE loads and stores."""
NODE = Team(2)
"""Those of this node."""
SAME_RANK = Team(3)
"""Those with this PE's number on their nodes."""
