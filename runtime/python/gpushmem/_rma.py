# SPDX-License-Identifier: BSD-3-Clause
"""put, get, p, g, put_signal; contexts, fence and quiet; registered buffers."""
from __future__ import annotations

import ctypes
import enum
import operator
from typing import TYPE_CHECKING, Any, Optional, Union

from . import _job, errors
from ._library import call, lib
from ._operand import index, operand
from ._stream import handle
from ._types import Local, Number, Stream, Symmetric

if TYPE_CHECKING:
    from ._team import Team


class SignalOp(enum.IntEnum):
    """What a signal does to its word."""
    SET = 9
    ADD = 10


_DEFAULT = 1


class Context:
    """Orders and completes its own operations, independently of all others: the argument `ctx` of put, get and atomics. With a
    team, `pe` in calls on it is a rank of the team. A context manager: the end of the block completes everything and frees it."""

    def __init__(self, team: Optional[Team] = None, options: int = 0):
        made = ctypes.c_void_p()
        if team is None:
            call(lib.ctx_create, options, ctypes.byref(made))
        else:
            call(lib.team_create_ctx, team.handle, options, ctypes.byref(made))
        self.handle: Optional[int] = made.value

    def destroy(self) -> None:
        """Completes everything and frees the context. A second time does nothing."""
        if self.handle is not None:
            made, self.handle = self.handle, None
            call(lib.ctx_destroy, made)

    def __enter__(self) -> "Context":
        return self

    def __exit__(self, *unused) -> None:
        if lib.initialized():
            self.destroy()


def context(ctx: Optional[Context]) -> int:
    if ctx is None:
        return _DEFAULT
    if ctx.handle is None:
        raise errors.InvalidError("the context `ctx` was destroyed")
    return ctx.handle


def signal_op(op: Union[SignalOp, str, int]) -> int:
    if isinstance(op, str):
        if op.upper() not in SignalOp.__members__:
            raise errors.InvalidError("there is no signal operation %r; there are \"set\" and \"add\"" % op)
        return SignalOp[op.upper()]
    return operator.index(op)


def _named(thing, what, name, writable):
    """What is wrong with it is told with the call, and the argument's name if it has one."""
    try:
        return operand(thing, writable)
    except errors.Error as error:
        raise type(error)("%s: %s%s" % (what, name and name + ": ", error)) from None


def symmetric(thing: Symmetric, what: str, writable: bool = True, name: str = ""):
    """A symmetric array, or a tensor or numpy array of one. The library checks the address."""
    _job.check()
    given = _named(thing, what, name, writable)
    if given.device != _job.device():
        raise errors.InvalidError("%s: memory of %s, but the symmetric heap is on %s" % (what, given.device, _job.device()))
    return given


def local(thing: Local, what: str, writable: bool, name: str):
    given = _named(thing, what, name, writable)
    if given.device == "cuda" and _job.device() == "cpu":
        raise errors.InvalidError("%s: GPU memory, but the symmetric heap is host memory (GPUSHMEM_HEAP_KIND=device)" % what)
    return given


def word(thing: Symmetric, what: str, kind: Optional[str] = None):
    """One element of symmetric memory."""
    given = symmetric(thing, what)
    if given.count != 1:
        raise errors.InvalidError("%s: wants one element, not %d; name one, as array[0]" % (what, given.count))
    if kind and given.dtype.name != kind:
        raise errors.DtypeError("%s: wants a word of type %s, not %s" % (what, kind, given.dtype.name))
    return given


def matched(dest, source, what):
    if dest.dtype != source.dtype:
        raise errors.DtypeError("%s: dest is %s, source is %s; they must be alike" % (what, dest.dtype.name, source.dtype.name))
    if dest.count != source.count:
        raise errors.InvalidError("%s: dest has %d elements, source has %d" % (what, dest.count, source.count))


def _shapes_match(dest, source, verb):
    """Memory that goes on may be of any shape. Where one of the two has gaps, it is not seen which element would go where."""
    def longer(one):
        return [extent for extent in one.shape if extent != 1]

    if longer(dest) != longer(source) and not all(one.layout and one.layout[0] == 1 for one in (dest, source)):
        raise errors.InvalidError("%s: dest has shape %s, source has %s, and one of them is not contiguous; give them one shape"
                                  % (verb, list(dest.shape), list(source.shape)))


def _common_blocks(dest, source, what):
    """Blocks, elements of each, and the distances of their beginnings in dest and source."""
    there, here = dest.layout, source.layout
    if there and here:
        blocks, size = max(there[0], here[0]), min(there[1], here[1])
        far, near = (layout[2] if layout[0] == blocks else size for layout in (there, here))
        same = all(layout[:2] == (blocks, size) or layout[0] == 1 for layout in (there, here))
        # what is not contiguous may overlap itself, or stand still
        if same and (blocks == 1 or min(far, near) >= size):
            return blocks, size, far, near
    raise errors.InvalidError("%s: dest of shape %s with strides %s and source of shape %s with strides %s: only contiguous and evenly "
                              "strided elements, and rows of such, can be moved; copy it first"
                              % (what, list(dest.shape), list(dest.strides), list(source.shape), list(source.strides)))


def _move(verb, dest, source, pe, nbi, stream, ctx):
    matched(dest, source, verb)
    if dest.count:
        _shapes_match(dest, source, verb)
    bits, pe = dest.dtype.itemsize * 8, index(pe, verb, "pe")
    blocks, size, far, near = _common_blocks(dest, source, verb) if dest.count else (1, 0, 1, 1)
    if blocks == 1 and stream is not None:
        call(getattr(lib, "%s%d_on_stream" % (verb, bits)), dest.address, source.address, size, pe, handle(stream))
    elif blocks == 1:
        call(getattr(lib, "ctx_%s%d%s" % (verb, bits, "_nbi" if nbi else "")), context(ctx), dest.address, source.address,
             size, pe)
    elif stream is not None or nbi:
        raise errors.InvalidError("%s: strided elements, which only the blocking form of the host moves" % verb)
    elif size == 1:
        call(getattr(lib, "ctx_i%s%d" % (verb, bits)), context(ctx), dest.address, source.address, far, near, blocks, pe)
    else:
        call(getattr(lib, "ctx_ib%s%d" % (verb, bits)), context(ctx), dest.address, source.address, far, near, size, blocks, pe)


def put(dest: Symmetric, source: Local, pe: int, *, nbi: bool = False, stream: Optional[Stream] = None,
        ctx: Optional[Context] = None) -> None:
    """Copies `source` (any memory) to the symmetric `dest` on `pe`. Types and numbers of elements are equal; strided ones work.
    Returns when source may be reused; the data arrives later (fence, quiet). nbi: source must not change before quiet.
    stream: after what is in that CUDA stream, which the call does not wait for."""
    _move("put", symmetric(dest, "put", name="dest"), local(source, "put", False, "source"), pe, nbi, stream, ctx)


def get(dest: Local, source: Symmetric, pe: int, *, nbi: bool = False, stream: Optional[Stream] = None,
        ctx: Optional[Context] = None) -> None:
    """Copies the symmetric `source` of `pe` to `dest` (any memory). nbi: dest is there after quiet."""
    there = symmetric(source, "get", False, "source")
    _move("get", local(dest, "get", True, "dest"), there, pe, nbi, stream, ctx)


def _atleast(dest, source, what):
    for name, one in (("dest", dest), ("source", source)):
        if one.layout is None or one.layout[0] != 1:
            raise errors.InvalidError("%s: %s of shape %s with strides %s is not contiguous; copy it first"
                                      % (what, name, list(one.shape), list(one.strides)))


def put_signal(dest: Symmetric, source: Local, signal: Symmetric, value: int, pe: int, *,
               op: Union[SignalOp, str, int] = SignalOp.SET, nbi: bool = False,
               stream: Optional[Stream] = None, ctx: Optional[Context] = None) -> None:
    """put, then sets (op "set") the symmetric uint64 word `signal` of the same PE to `value`, or adds it ("add"). Who sees the
    signal sees this put's data."""
    there, here = symmetric(dest, "put_signal", name="dest"), local(source, "put_signal", False, "source")
    matched(there, here, "put_signal")
    if there.count:
        _atleast(there, here, "put_signal")
    sig, bits = word(signal, "put_signal", "uint64"), there.dtype.itemsize * 8
    rest = (there.address, here.address, there.count, sig.address, unsigned(value), signal_op(op), index(pe, "put_signal", "pe"))
    if stream is not None:
        call(getattr(lib, "put%d_signal_on_stream" % bits), *rest, handle(stream))
    else:
        call(getattr(lib, "ctx_put%d_signal%s" % (bits, "_nbi" if nbi else "")), context(ctx), *rest)


def unsigned(value) -> int:
    value = operator.index(value)
    if not 0 <= value < 1 << 64:
        raise errors.InvalidError("signal value %d: 0 to 2**64 - 1 are possible" % value)
    return value


def signal(signal: Symmetric, value: int, pe: int, *, op: Union[SignalOp, str, int] = SignalOp.SET,
           stream: Optional[Stream] = None, ctx: Optional[Context] = None) -> None:
    """Sends the signal alone."""
    rest = (word(signal, "signal", "uint64").address, unsigned(value), signal_op(op), index(pe, "signal", "pe"))
    if stream is not None:
        call(lib.signal_op_on_stream, *rest, handle(stream))
    else:
        call(lib.ctx_signal_op, context(ctx), *rest)


def p(dest: Symmetric, value: Number, pe: int, *, ctx: Optional[Context] = None) -> None:
    """Puts one value to the symmetric element `dest` of `pe`."""
    there = word(dest, "p")
    data = there.dtype.pack(value)
    call(getattr(lib, "ctx_put%d" % (8 * there.dtype.itemsize)), context(ctx), there.address, data, 1, index(pe, "p", "pe"),
         name="p")


def g(source: Symmetric, pe: int, *, ctx: Optional[Context] = None) -> Any:
    """The value of the symmetric element `source` of `pe`."""
    there = word(source, "g")
    data = ctypes.create_string_buffer(there.dtype.itemsize)
    call(getattr(lib, "ctx_get%d" % (8 * there.dtype.itemsize)), context(ctx), data, there.address, 1, index(pe, "g", "pe"),
         name="g")
    return there.dtype.unpack(data.raw)


def fence(*, ctx: Optional[Context] = None) -> None:
    """Puts, signals and atomics issued before it arrive at each PE before those issued after it."""
    _job.check()
    call(lib.ctx_fence, context(ctx))


def quiet(*, stream: Optional[Stream] = None, ctx: Optional[Context] = None) -> None:
    """Returns when everything issued before on the context is complete. stream: the stream goes on when what is before in it is."""
    _job.check()
    if stream is not None:
        call(lib.quiet_on_stream, handle(stream))
    else:
        call(lib.ctx_quiet, context(ctx))


_registered: dict = {}


def register(buffer: Local) -> None:
    """Registers local memory (an array, a tensor, a writable buffer) with every transport, so that transfers from and to it need no
    extra copy. It must stay as it is until unregister. Local."""
    given = operand(buffer, True)
    if given.layout is None or given.layout[0] != 1:
        raise errors.InvalidError("register: the array is not contiguous")
    call(lib.buffer_register, given.address, given.count * given.dtype.itemsize)
    _registered[given.address] = given.keep


def unregister(buffer: Local) -> None:
    """Ends that."""
    address = operand(buffer, True).address
    call(lib.buffer_unregister, address)
    _registered.pop(address, None)
