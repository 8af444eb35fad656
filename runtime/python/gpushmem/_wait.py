# SPDX-License-Identifier: BSD-3-Clause
"""Waiting for words of this PE's heap that other PEs update."""
from __future__ import annotations

import ctypes
import enum
from typing import List, Optional, Sequence, Union

from . import _dtypes, errors
from ._library import call, lib
from ._operand import index
from ._rma import symmetric, unsigned, word
from ._stream import handle
from ._types import Number, Stream, Symmetric


class Cmp(enum.IntEnum):
    """Comparisons: the word on the left, the value on the right."""
    EQ = 0
    NE = 1
    GT = 2
    LE = 3
    LT = 4
    GE = 5


_SIGNS = {"==": Cmp.EQ, "!=": Cmp.NE, ">": Cmp.GT, "<=": Cmp.LE, "<": Cmp.LT, ">=": Cmp.GE}
Comparison = Union[Cmp, str, int]


def comparison(cmp: Comparison, what: str) -> int:
    if isinstance(cmp, str):
        found = _SIGNS.get(cmp, Cmp.__members__.get(cmp.upper()))
        if found is None:
            raise errors.InvalidError("%s: there is no comparison %r; there are %s" % (what, cmp, " ".join(_SIGNS)))
        return found
    return index(cmp, what, "cmp")


def _words(things, what):
    given = symmetric(things, what, False)
    if given.dtype.word is None:
        words = [dtype.name for dtype in _dtypes.BY_NAME.values() if dtype.word]
        raise errors.DtypeError("%s: there is none of type %s; there are %s" % (what, given.dtype.name, " ".join(words)))
    if given.count and (given.layout is None or given.layout[0] != 1):
        raise errors.InvalidError("%s: the words are not contiguous" % what)
    return given


def _one(verb, var, cmp, value):
    given = _words(var, verb)
    if given.count != 1:
        raise errors.InvalidError("%s: wants one word, not %d; name one, as array[0], or use %s_all" % (verb, given.count, verb))
    given.dtype.pack(value)
    return call(getattr(lib, "%s_%s" % (given.dtype.word, verb)), given.address, comparison(cmp, verb), value)


def wait_until(var: Symmetric, cmp: Comparison, value: Number) -> None:
    """Waits until the word compares so with `value`: what was ordered before that update is visible then."""
    _one("wait_until", var, cmp, value)


def test(var: Symmetric, cmp: Comparison, value: Number) -> bool:
    """Whether it does now."""
    return bool(_one("test", var, cmp, value))


def _mask(skip, count, what):
    if skip is None:
        return None
    if len(skip) != count:
        raise errors.InvalidError("%s: `skip` has %d elements for %d words" % (what, len(skip), count))
    return (ctypes.c_int * count)(*(1 if one else 0 for one in skip))


def _set(form, things, cmp, value, skip):
    given = _words(things, form)
    given.dtype.pack(value)
    suffix = "" if form.endswith("_all") else "_status"
    function = getattr(lib, "%s_%s%s" % (given.dtype.word, form, suffix))
    return function, given, (_mask(skip, given.count, form), comparison(cmp, form), value)


_NONE = ctypes.c_size_t(-1).value


def _any(form, things, cmp, value, skip):
    function, given, rest = _set(form, things, cmp, value, skip)
    index = ctypes.c_size_t()
    call(function, given.address, given.count, *rest, ctypes.byref(index))
    return None if index.value == _NONE else index.value


def _some(form, things, cmp, value, skip):
    function, given, rest = _set(form, things, cmp, value, skip)
    indices, count = (ctypes.c_size_t * max(1, given.count))(), ctypes.c_size_t()
    call(function, given.address, given.count, indices, *rest, ctypes.byref(count))
    return list(indices[:count.value])


def wait_until_all(vars: Symmetric, cmp: Comparison, value: Number, skip: Optional[Sequence] = None) -> None:
    """Waits until all words compare so. skip: those that are true in it are left out."""
    function, given, rest = _set("wait_until_all", vars, cmp, value, skip)
    call(function, given.address, given.count, *rest)


def wait_until_any(vars: Symmetric, cmp: Comparison, value: Number, skip: Optional[Sequence] = None) -> Optional[int]:
    """Waits until one does, and returns its index (of the flattened array); None if no word is left."""
    return _any("wait_until_any", vars, cmp, value, skip)


def wait_until_some(vars: Symmetric, cmp: Comparison, value: Number, skip: Optional[Sequence] = None) -> List[int]:
    """Waits until at least one does, and returns the indices of all that do."""
    return _some("wait_until_some", vars, cmp, value, skip)


def test_all(vars: Symmetric, cmp: Comparison, value: Number, skip: Optional[Sequence] = None) -> bool:
    """Whether all words compare so now."""
    function, given, rest = _set("test_all", vars, cmp, value, skip)
    return bool(call(function, given.address, given.count, *rest))


def test_any(vars: Symmetric, cmp: Comparison, value: Number, skip: Optional[Sequence] = None) -> Optional[int]:
    """The index of one that does now, or None."""
    return _any("test_any", vars, cmp, value, skip)


def test_some(vars: Symmetric, cmp: Comparison, value: Number, skip: Optional[Sequence] = None) -> List[int]:
    """The indices of those that do now."""
    return _some("test_some", vars, cmp, value, skip)


def signal_wait(signal: Symmetric, cmp: Comparison, value: int, *, stream: Optional[Stream] = None) -> Optional[int]:
    """Waits until the uint64 word compares so, and returns what ended the wait. stream: the stream waits, and the call does not."""
    given = word(signal, "signal_wait", "uint64")
    if stream is not None:
        call(lib.signal_wait_until_on_stream, given.address, comparison(cmp, "signal_wait"), unsigned(value), handle(stream))
        return None
    seen = ctypes.c_uint64()
    call(lib.signal_wait_until_status, given.address, comparison(cmp, "signal_wait"), unsigned(value), ctypes.byref(seen))
    return seen.value


def signal_fetch(signal: Symmetric) -> int:
    """This PE's own signal word."""
    seen = ctypes.c_uint64()
    call(lib.signal_fetch_status, word(signal, "signal_fetch", "uint64").address, ctypes.byref(seen))
    return seen.value
