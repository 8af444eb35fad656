# SPDX-License-Identifier: BSD-3-Clause
"""Atomics on one symmetric element: of int32, int64, uint32 and uint64; fetch, set and swap also of float32 and float64."""
from __future__ import annotations

import ctypes
from typing import Any, Optional

from . import _dtypes, errors
from ._library import call, lib
from ._operand import index
from ._rma import Context, context, word
from ._types import Number, Symmetric

_C = {"int32": ctypes.c_int32, "int64": ctypes.c_int64, "uint32": ctypes.c_uint32, "uint64": ctypes.c_uint64,
      "float": ctypes.c_float, "double": ctypes.c_double}


def _function(operation, target, value, status):
    def name(dtype):
        return "ctx_%s_%s%s" % (dtype.amo, operation, status)

    try:
        function = getattr(lib, name(target.dtype))
    except AttributeError:
        those = [dtype.name for dtype in _dtypes.BY_NAME.values() if hasattr(lib, name(dtype))]
        raise errors.DtypeError("%s: there is none of type %s; there are %s" % (
            operation, target.dtype.name, " ".join(those))) from None
    # ctypes would cut a number that is too large
    for one in value:
        target.dtype.pack(one)
    return function


def _update(operation, dest, value, pe, ctx):
    target = word(dest, operation)
    call(_function(operation, target, value, ""), context(ctx), target.address, *value, index(pe, operation, "pe"))


def _fetch(operation, dest, value, pe, ctx):
    target = word(dest, operation)
    function = _function(operation, target, value, "_status")
    before = _C[target.dtype.amo]()
    call(function, context(ctx), target.address, *value, index(pe, operation, "pe"), ctypes.byref(before))
    return before.value


def atomic_fetch(source: Symmetric, pe: int, *, ctx: Optional[Context] = None) -> Any:
    """The value of the element on `pe`."""
    return _fetch("atomic_fetch", source, (), pe, ctx)


def atomic_set(dest: Symmetric, value: Number, pe: int, *, ctx: Optional[Context] = None) -> None:
    """Sets it."""
    _update("atomic_set", dest, (value,), pe, ctx)


def atomic_swap(dest: Symmetric, value: Number, pe: int, *, ctx: Optional[Context] = None) -> Any:
    """Sets it, and returns what it was."""
    return _fetch("atomic_swap", dest, (value,), pe, ctx)


def atomic_compare_swap(dest: Symmetric, cond: Number, value: Number, pe: int, *, ctx: Optional[Context] = None) -> Any:
    """Sets it if it equals `cond`, and returns what it was."""
    return _fetch("atomic_compare_swap", dest, (cond, value), pe, ctx)


def atomic_inc(dest: Symmetric, pe: int, *, ctx: Optional[Context] = None) -> None:
    """Adds one."""
    _update("atomic_inc", dest, (), pe, ctx)


def atomic_fetch_inc(dest: Symmetric, pe: int, *, ctx: Optional[Context] = None) -> Any:
    """Adds one, and returns what it was."""
    return _fetch("atomic_fetch_inc", dest, (), pe, ctx)


def atomic_add(dest: Symmetric, value: Number, pe: int, *, ctx: Optional[Context] = None) -> None:
    """Adds `value`. Integers wrap."""
    _update("atomic_add", dest, (value,), pe, ctx)


def atomic_fetch_add(dest: Symmetric, value: Number, pe: int, *, ctx: Optional[Context] = None) -> Any:
    """Adds `value`, and returns what it was."""
    return _fetch("atomic_fetch_add", dest, (value,), pe, ctx)


def atomic_and(dest: Symmetric, value: Number, pe: int, *, ctx: Optional[Context] = None) -> None:
    """Bitwise and."""
    _update("atomic_and", dest, (value,), pe, ctx)


def atomic_or(dest: Symmetric, value: Number, pe: int, *, ctx: Optional[Context] = None) -> None:
    """Bitwise or."""
    _update("atomic_or", dest, (value,), pe, ctx)


def atomic_xor(dest: Symmetric, value: Number, pe: int, *, ctx: Optional[Context] = None) -> None:
    """Bitwise exclusive or."""
    _update("atomic_xor", dest, (value,), pe, ctx)


def atomic_fetch_and(dest: Symmetric, value: Number, pe: int, *, ctx: Optional[Context] = None) -> Any:
    """Bitwise and, and returns what it was."""
    return _fetch("atomic_fetch_and", dest, (value,), pe, ctx)


def atomic_fetch_or(dest: Symmetric, value: Number, pe: int, *, ctx: Optional[Context] = None) -> Any:
    """Bitwise or, and returns what it was."""
    return _fetch("atomic_fetch_or", dest, (value,), pe, ctx)


def atomic_fetch_xor(dest: Symmetric, value: Number, pe: int, *, ctx: Optional[Context] = None) -> Any:
    """Bitwise exclusive or, and returns what it was."""
    return _fetch("atomic_fetch_xor", dest, (value,), pe, ctx)
