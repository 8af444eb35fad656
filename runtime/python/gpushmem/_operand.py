# SPDX-License-Identifier: BSD-3-Clause
"""What a call is given, whatever its kind: symmetric arrays, numpy arrays, torch tensors, anything with an array interface, and
buffers of Python."""
import ctypes
import operator
from typing import Any, NamedTuple, Tuple

from . import _dtypes, errors


class Operand(NamedTuple):
    address: int
    dtype: _dtypes.Dtype
    shape: Tuple[int, ...]
    strides: Tuple[int, ...]  # in elements
    device: str               # "cpu" or "cuda"
    keep: Any                 # what has to live while the address is used

    @property
    def count(self) -> int:
        return _product(self.shape)

    @property
    def layout(self):
        """Blocks, elements of each, and the distance between their beginnings; None if it takes more to say."""
        dims = _collapsed(self.shape, self.strides)
        if not dims:
            return 1, 1, 1
        if len(dims) == 1:
            count, stride = dims[0]
            return (1, count, count) if stride == 1 else (count, 1, stride)
        (blocks, distance), (size, stride) = dims[-2:]
        return (blocks, size, distance) if len(dims) == 2 and stride == 1 else None


def _product(shape):
    count = 1
    for extent in shape:
        count *= extent
    return count


def packed_strides(shape):
    strides, step = [], 1
    for extent in reversed(shape):
        strides.append(step)
        step *= extent
    return tuple(reversed(strides))


def _collapsed(shape, strides):
    """(extent, stride) of each dimension that is one: neighbours that continue each other are merged."""
    dims = []
    for extent, stride in zip(shape, strides):
        if extent == 1:
            continue
        if dims and dims[-1][1] == stride * extent:
            dims[-1] = (dims[-1][0] * extent, stride)
        else:
            dims.append((extent, stride))
    return dims


def is_tensor(thing) -> bool:
    return type(thing).__module__.startswith("torch") and hasattr(thing, "data_ptr")


def _of_tensor(tensor):
    if not tensor.device.type in ("cpu", "cuda"):
        raise errors.InvalidError("a tensor of device %s: only those of cpu and cuda can be moved" % tensor.device)
    return Operand(tensor.data_ptr(), _dtypes.of(tensor.dtype), tuple(tensor.shape), tuple(tensor.stride()),
                   tensor.device.type, tensor)


def _of_interface(interface, device, keep):
    dtype = _dtypes.of_typestr(interface["typestr"])
    shape = tuple(interface["shape"])
    steps = interface.get("strides")
    if steps is not None and any(step % dtype.itemsize for step in steps):
        raise errors.InvalidError("the strides %s are no multiples of the element's %d bytes; copy it first"
                                  % (steps, dtype.itemsize))
    strides = packed_strides(shape) if steps is None else tuple(step // dtype.itemsize for step in steps)
    return Operand(interface["data"][0] or 0, dtype, shape, strides, device, keep)


def _of_buffer(thing, writable):
    view = memoryview(thing)
    if not view.c_contiguous:
        raise errors.InvalidError("a buffer that is not contiguous; copy it first")
    if writable and view.readonly:
        raise errors.InvalidError("a %s cannot be written to" % type(thing).__name__)
    if view.readonly:
        keep = (ctypes.c_char * view.nbytes).from_buffer_copy(view)
    else:
        keep = (ctypes.c_char * view.nbytes).from_buffer(view) if view.nbytes else None
    dtype = _dtypes.of_format(view.format)
    return Operand(ctypes.addressof(keep) if keep is not None else 0, dtype, tuple(view.shape or (1,)),
                   packed_strides(view.shape or (1,)), "cpu", (keep, view))


def index(value, what: str, name: str) -> int:
    """An argument that is an integer, like a PE."""
    try:
        return operator.index(value)
    except TypeError:
        raise TypeError("%s: %s is %r; it wants an integer" % (what, name, value)) from None


def operand(thing, writable=False) -> Operand:
    """`writable`: a call writes to it."""
    own = getattr(thing, "_operand", None)
    if own is not None:
        return own()
    if is_tensor(thing):
        return _of_tensor(thing)
    interface = getattr(thing, "__cuda_array_interface__", None)
    if interface is not None:
        return _of_interface(interface, "cuda", thing)
    interface = getattr(thing, "__array_interface__", None)
    if interface is not None:
        if writable and interface["data"][1]:
            raise errors.InvalidError("a read-only array cannot be written to")
        return _of_interface(interface, "cpu", thing)
    try:
        return _of_buffer(thing, writable)
    except TypeError:
        hint = "; numpy.asarray makes one of it" if isinstance(thing, (list, tuple, int, float)) else ""
        raise errors.InvalidError("a %s is no array: symmetric arrays, numpy arrays, torch tensors and buffers are%s"
                                  % (type(thing).__name__, hint)) from None
