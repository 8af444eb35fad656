# SPDX-License-Identifier: BSD-3-Clause
"""Symmetric memory as arrays."""
from __future__ import annotations

import ctypes
import operator
import re
import warnings
import weakref
from typing import TYPE_CHECKING, Any, Optional, Sequence, Tuple, Union

from . import _dlpack, _dtypes, _job, errors
from ._library import call, call_for_pointer, lib
from ._operand import Operand, _collapsed, _product, index, operand, packed_strides
from ._types import DtypeLike, Local, Number, Symmetric

if TYPE_CHECKING:
    import numpy
    import torch

Shape = Union[int, Sequence[int]]


class Memory:
    """One allocation of the symmetric heap, or the part of another PE's that is mapped here."""

    def __init__(self, address: int, nbytes: int, device: str, owned: bool = True, of: Optional["Memory"] = None):
        self.address, self.nbytes, self.device, self.owned, self.of = address, nbytes, device, owned, of
        self.generation = _job.generation()
        self.freed = False
        if owned: # this PE's part by Array.on() is at the same address
            _alive[address] = self

    def check(self) -> None:
        if self.of is not None:
            self.of.check()
        if self.freed:
            raise errors.AddressError("this array (%d bytes at 0x%x) was freed, by gpushmem.free or its own free()"
                                      % (self.nbytes, self.address))
        if self.generation != _job.generation():
            raise errors.StateError("this array is of a job that has been finalized")

    def free(self) -> None:
        self.check()
        if not self.owned:
            raise errors.AddressError("this array is another PE's memory: its owner frees it")
        call(lib.free, self.address)
        self.freed = True
        _alive.pop(self.address, None)

    def __del__(self):
        if self.owned and not self.freed and _job.is_alive(self.generation):
            warnings.warn("symmetric memory of %d bytes was dropped, but not freed: gpushmem.free is collective, so nobody "
                          "else can do it; it stays allocated until finalize" % self.nbytes, ResourceWarning, source=self)


# By address: what free() of a tensor or a numpy array looks for.
_alive: "weakref.WeakValueDictionary[int, Memory]" = weakref.WeakValueDictionary()


def alive() -> list:
    """The allocations that are neither freed nor dropped."""
    return [memory for memory in _alive.values() if memory.owned and memory.generation == _job.generation()]


class Array:
    """An array in symmetric memory: the same shape and type on every PE, at the same place of its heap.

    Indexing gives views, also of one element (`flags[3]` names that word on any PE); `item()` gives its value. `numpy()`,
    `torch()` and `memoryview()` give this PE's own copy of it, without copying, for arithmetic; DLPack and the array interfaces
    do the same for other libraries. They are valid until the array is freed."""

    __slots__ = ("memory", "address", "shape", "strides", "dtype", "__weakref__")

    def __init__(self, memory: Memory, address: int, shape: Tuple[int, ...], strides: Tuple[int, ...], dtype: _dtypes.Dtype):
        self.memory, self.address, self.shape, self.strides, self.dtype = memory, address, shape, strides, dtype

    # ---- what it is ----

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return _product(self.shape)

    @property
    def itemsize(self) -> int:
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        return self.size * self.dtype.itemsize

    @property
    def device(self) -> str:
        """"cpu" or "cuda": where the heap is."""
        return self.memory.device

    def is_contiguous(self) -> bool:
        dims = _collapsed(self.shape, self.strides)
        return self.size == 0 or not dims or (len(dims) == 1 and dims[0][1] == 1)

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("an array of one element without dimensions has no length")
        return self.shape[0]

    def __repr__(self) -> str:
        state = ", freed" if self.memory.freed else ""
        return "<gpushmem.Array %s %s%s%s>" % (self.dtype.name, list(self.shape), "" if self.device == "cpu" else " cuda", state)

    def _operand(self) -> Operand:
        self.memory.check()
        return Operand(self.address, self.dtype, self.shape, self.strides, self.memory.device, self)

    # ---- views ----

    def __getitem__(self, key) -> "Array":
        offset, shape, strides = _indexed(self.shape, self.strides, key if isinstance(key, tuple) else (key,))
        return Array(self.memory, self.address + offset * self.itemsize, shape, strides, self.dtype)

    def __iter__(self):
        return (self[i] for i in range(len(self)))

    def reshape(self, *shape: int) -> "Array":
        """A view of another shape; -1 once for what is left."""
        wanted = list(shape[0] if len(shape) == 1 and not isinstance(shape[0], int) else shape)
        if not self.is_contiguous():
            raise errors.InvalidError("reshape: an array that is not contiguous")
        if wanted.count(-1) == 1:
            rest = -_product(wanted)
            wanted[wanted.index(-1)] = self.size // rest if rest else 0
        if _product(wanted) != self.size or any(extent < 0 for extent in wanted):
            raise errors.InvalidError("reshape: %d elements do not make %s" % (self.size, list(shape)))
        return Array(self.memory, self.address, tuple(wanted), packed_strides(wanted), self.dtype)

    def view(self, dtype: DtypeLike) -> "Array":
        """The same bytes as elements of another type of the same size."""
        other = _dtypes.of(dtype)
        if other.itemsize != self.itemsize:
            raise errors.DtypeError("view: %s and %s are not of one size" % (self.dtype.name, other.name))
        return Array(self.memory, self.address, self.shape, self.strides, other)

    # ---- this PE's own data ----

    @property
    def __array_interface__(self) -> dict:
        if self.device != "cpu":
            raise AttributeError("the heap is GPU memory")
        return self._interface()

    @property
    def __cuda_array_interface__(self) -> dict:
        if self.device == "cpu":
            raise AttributeError("the heap is host memory")
        return self._interface()

    def _interface(self):
        self.memory.check()
        if self.dtype.typestr is None:
            raise errors.DtypeError("numpy has no %s; torch() and DLPack do" % self.dtype.name)
        return {"shape": self.shape, "typestr": self.dtype.typestr, "data": (self.address, False), "version": 3,
                "strides": tuple(stride * self.itemsize for stride in self.strides)}

    def __dlpack__(self, stream: Optional[int] = None, **unused):
        self.memory.check()
        return _dlpack.capsule(self._operand())

    def __dlpack_device__(self) -> Tuple[int, int]:
        return _dlpack.device(self.device)

    def numpy(self) -> numpy.ndarray[Any, Any]:
        """A numpy array of the same memory."""
        import numpy
        if self.device != "cpu":
            raise errors.InvalidError("numpy: the heap is GPU memory; torch() and DLPack give it")
        return numpy.asarray(self)

    def torch(self) -> torch.Tensor:
        """A torch tensor of the same memory."""
        import torch
        return torch.utils.dlpack.from_dlpack(self)

    def memoryview(self) -> memoryview:
        """The bytes of the array, for those who have no numpy."""
        self.memory.check()
        if self.device != "cpu" or not self.is_contiguous():
            raise errors.InvalidError("memoryview: only of contiguous arrays in host memory")
        return memoryview((ctypes.c_ubyte * self.nbytes).from_address(self.address)).cast("B")

    def item(self):
        """The value of an array of one element."""
        self._one("item")
        if self.device != "cpu":
            return self.torch().item()
        return self.dtype.unpack(ctypes.string_at(self.address, self.itemsize))

    def fill(self, value: Number) -> None:
        """Sets every element on this PE."""
        self[...] = value

    def __setitem__(self, key, value) -> None:
        part = self[key]
        if part.device != "cpu":
            import torch
            part.torch().copy_(torch.as_tensor(value))
            _job.synchronize_gpu()
        elif part.is_contiguous() and isinstance(value, (int, float, complex, bool)):
            part.memory.check()
            part.memoryview()[:] = self.dtype.pack(value) * part.size
        elif self.dtype.typestr is None:
            part.torch().copy_(value)
        else:
            part.numpy()[...] = value

    def __int__(self) -> int:
        return int(self.item())

    def __float__(self) -> float:
        return float(self.item())

    def __index__(self) -> int:
        return operator.index(self.item())

    def _one(self, what):
        self.memory.check()
        if self.size != 1:
            raise errors.InvalidError("%s: wants one element, this array has %d; name one, as array[0]" % (what, self.size))

    # ---- other PEs ----

    def on(self, pe: int) -> Optional["Array"]:
        """The same array of another PE, for loads and stores, or None where that PE's heap is not mapped here."""
        self.memory.check()
        address = call_for_pointer(lib.ptr, self.address, index(pe, "Array.on", "pe"))
        if address is None:
            return None
        theirs = Memory(address, self.nbytes, self.device, owned=False, of=self.memory)
        return Array(theirs, address, self.shape, self.strides, self.dtype)

    def free(self) -> None:
        """Collective: all PEs free the same array. Views of it, numpy arrays and tensors are invalid afterwards."""
        if self.address != self.memory.address:
            raise errors.AddressError("free: this is a view; free the array that it is of")
        self.memory.free()


def _indexed(shape, strides, key):
    """Offset, shape and strides of a view, all in elements."""
    if Ellipsis in [one for one in key if one is Ellipsis]:
        at = [one is Ellipsis for one in key].index(True)
        key = key[:at] + (slice(None),) * (len(shape) - len(key) + 1) + key[at + 1:]
    if len(key) > len(shape):
        raise IndexError("%d indices for %d dimensions" % (len(key), len(shape)))
    offset, new_shape, new_strides = 0, [], []
    for extent, stride, one in zip(shape, strides, key + (slice(None),) * (len(shape) - len(key))):
        if isinstance(one, slice):
            first, last, step = one.indices(extent)
            if step < 1:
                raise errors.InvalidError("a slice with step %d: steps are at least 1" % step)
            count = max(0, (last - first + step - 1) // step)
            offset += first * stride if count else 0
            new_shape.append(count)
            new_strides.append(stride * step)
            continue
        try:
            index = operator.index(one)
        except TypeError:
            raise TypeError("an index of %r: a symmetric array takes integers and slices; numpy() and torch() give this PE's own "
                            "elements by lists and masks, too" % (one,)) from None
        if not -extent <= index < extent:
            raise IndexError("index %d of a dimension of %d" % (index, extent))
        offset += (index + extent if index < 0 else index) * stride
    return offset, tuple(new_shape), tuple(new_strides)


def _shape(shape: Shape) -> Tuple[int, ...]:
    try:
        extents = (operator.index(shape),)
    except TypeError:
        extents = tuple(operator.index(extent) for extent in shape)
    if any(extent < 0 for extent in extents):
        raise errors.InvalidError("a shape of %s: extents are not negative" % list(extents))
    return extents


def _make(name: str, shape: Shape, dtype: DtypeLike, alignment: int) -> Array:
    kind, extents = _dtypes.of(dtype), _shape(shape)
    _job.check()
    # an empty array has memory of its own, too, so that its address names something
    nbytes = max(_product(extents) * kind.itemsize, kind.itemsize)
    try:
        address = call_for_pointer(lib.align, alignment, nbytes, name=name)
    except errors.AsymmetryError as error: # it names alignments and bytes, and not what each PE has called
        sentence = re.sub(r"gpushmem\.empty\((\d+), (\d+)\)", r"for an array of \2 bytes, aligned to \1", str(error))
        raise errors.AsymmetryError("%s. This PE called gpushmem.%s with a shape of %s and type %s" % (
            sentence, name, list(extents), kind.name)) from None
    return Array(Memory(address, nbytes, _job.device()), address, extents, packed_strides(extents), kind)


def empty(shape: Shape, dtype: DtypeLike = "float64", alignment: int = 256) -> Array:
    """A symmetric array whose content is undefined. Collective: all PEs pass the same arguments. Ends with a barrier."""
    return _make("empty", shape, dtype, alignment)


def zeros(shape: Shape, dtype: DtypeLike = "float64", alignment: int = 256) -> Array:
    """The same, all zero on every PE."""
    made = _make("zeros", shape, dtype, alignment)
    if made.device == "cpu":
        ctypes.memset(made.address, 0, made.memory.nbytes)
    else:
        made.torch().zero_()
        _job.synchronize_gpu()
    call(lib.sync_all)
    return made


def array(data: Union[Local, Number, Sequence[Any]], dtype: Optional[DtypeLike] = None, alignment: int = 256) -> Array:
    """A symmetric array with this PE's `data` in it: a numpy array, a tensor, a buffer, or a list (by numpy). Collective: shape
    and type are the same on all PEs."""
    if isinstance(data, (list, tuple, int, float)):
        import numpy
        data = numpy.asarray(data, dtype=None if dtype is None else _dtypes.of(dtype).name)
    given = operand(data)
    made = _make("array", given.shape, given.dtype if dtype is None else dtype, alignment)
    if made.device != "cpu":
        made.torch().copy_(data)
        _job.synchronize_gpu()
    elif made.dtype == given.dtype and Array.is_contiguous(Array(made.memory, 0, given.shape, given.strides, given.dtype)):
        ctypes.memmove(made.address, given.address, made.nbytes)
    else:
        made.numpy()[...] = data
    call(lib.sync_all)
    return made


def tensor(shape: Shape, dtype: DtypeLike = "float32", alignment: int = 256) -> torch.Tensor:
    """A torch tensor in symmetric memory: on the GPU where the heap is, else on the CPU. Free it with gpushmem.free."""
    made = _make("tensor", shape, dtype, alignment)
    result = made.torch()
    _tensors[made.address] = made.memory # a tensor keeps nothing alive
    return result


# Memory that only tensors name: it is kept until free or finalize.
_tensors: dict = {}


def free(thing: Optional[Symmetric]) -> None:
    """Frees an array, or what tensor(), Array.numpy() or Array.torch() gave for the whole of one. Collective; begins with a
    barrier. None does nothing."""
    if thing is None:
        return
    if isinstance(thing, Array):
        thing.free()
    else:
        address = operand(thing).address
        memory = _alive.get(address)
        if memory is None or not memory.owned:
            raise errors.AddressError("free: no symmetric array begins at 0x%x, or it was freed before" % address)
        memory.free()
        _tensors.pop(address, None)


def at_finalize() -> None:
    """Called when the job is left: says what may no longer be used."""
    left = [memory for memory in alive() if memory.address not in _tensors]
    _tensors.clear()
    if left:
        warnings.warn("finalize: %d symmetric arrays are still referenced; reading numpy arrays or tensors of them now ends the "
                      "process" % len(left), ResourceWarning, stacklevel=3)
