# SPDX-License-Identifier: BSD-3-Clause
"""Element types: how numpy, torch, DLPack, Python and the C functions name them."""
import struct
from typing import NamedTuple, Optional

from . import errors


class Dtype(NamedTuple):
    name: str               # as numpy and torch name it
    itemsize: int
    typestr: Optional[str]  # of __array_interface__; None: that has no such type
    dlpack: tuple           # code and bits
    coll: Optional[str]     # in names of reductions
    word: Optional[str]     # in names of wait_until and test
    amo: Optional[str]      # in names of atomics
    format: Optional[str]   # of struct

    def pack(self, value) -> bytes:
        """The bytes of one value."""
        try:
            if self.name == "bfloat16":
                return _bfloat16_bytes(value)
            if self.name.startswith("complex"):
                value = complex(value)
                return struct.pack(self.format, value.real, value.imag)
            return struct.pack(self.format, value)
        except (struct.error, OverflowError, TypeError):
            raise errors.DtypeError("%r is no value of type %s%s" % (value, self.name, self._range())) from None

    def _range(self):
        if "int" not in self.name:
            return ""
        bits, signed = 8 * self.itemsize, self.name[0] == "i"
        return ": that has whole numbers from %d to %d" % (-(1 << bits - 1) if signed else 0, (1 << bits - signed) - 1)

    def unpack(self, data):
        """One value from its bytes."""
        if self.name == "bfloat16":
            return struct.unpack("<f", b"\0\0" + bytes(data))[0]
        parts = struct.unpack(self.format, data)
        return complex(*parts) if len(parts) == 2 else parts[0]


def _bfloat16_bytes(value):
    bits = struct.unpack("<I", struct.pack("<f", value))[0]
    if value != value:
        return struct.pack("<H", bits >> 16 | 0x40)
    # to nearest, ties to even
    return struct.pack("<H", min(bits + 0x7FFF + (bits >> 16 & 1), 0xFFFFFFFF) >> 16)


_INT, _UINT, _FLOAT, _BFLOAT, _COMPLEX, _BOOL = 0, 1, 2, 4, 5, 6
BY_NAME = {row[0]: Dtype(*row) for row in (
    ("bool", 1, "|b1", (_BOOL, 8), None, None, None, "<?"),
    ("int8", 1, "|i1", (_INT, 8), "int8", None, None, "<b"),
    ("int16", 2, "<i2", (_INT, 16), "int16", "short", None, "<h"),
    ("int32", 4, "<i4", (_INT, 32), "int32", "int32", "int32", "<i"),
    ("int64", 8, "<i8", (_INT, 64), "int64", "int64", "int64", "<q"),
    ("uint8", 1, "|u1", (_UINT, 8), "uint8", None, None, "<B"),
    ("uint16", 2, "<u2", (_UINT, 16), "uint16", "ushort", None, "<H"),
    ("uint32", 4, "<u4", (_UINT, 32), "uint32", "uint32", "uint32", "<I"),
    ("uint64", 8, "<u8", (_UINT, 64), "uint64", "uint64", "uint64", "<Q"),
    ("float16", 2, "<f2", (_FLOAT, 16), "half", None, None, "<e"),
    ("bfloat16", 2, None, (_BFLOAT, 16), "bfloat16", None, None, None),
    ("float32", 4, "<f4", (_FLOAT, 32), "float", None, "float", "<f"),
    ("float64", 8, "<f8", (_FLOAT, 64), "double", None, "double", "<d"),
    ("complex64", 8, "<c8", (_COMPLEX, 64), "complexf", None, None, "<ff"),
    ("complex128", 16, "<c16", (_COMPLEX, 128), "complexd", None, None, "<dd"),
)}
_BY_TYPESTR = {dtype.typestr: dtype for dtype in BY_NAME.values() if dtype.typestr}
_BY_FORMAT = {dtype.format[1:]: dtype for dtype in BY_NAME.values() if dtype.format and len(dtype.format) == 2}
_OF_PYTHON = {int: "int64", float: "float64", complex: "complex128", bool: "bool"}


def of(kind) -> Dtype:
    """The type that a name, a numpy or torch dtype, a numpy scalar class, or int, float, complex or bool means."""
    if isinstance(kind, Dtype):
        return kind
    try:
        name = _OF_PYTHON.get(kind)
    except TypeError:
        name = None
    # str: "float32" of numpy, "torch.float32"; __name__: numpy.float32
    name = name or getattr(kind, "name", None) or getattr(kind, "__name__", None) or str(kind).replace("torch.", "")
    if name not in BY_NAME:
        raise errors.DtypeError("%s is no element type; there are %s" % (kind, ", ".join(BY_NAME)))
    return BY_NAME[name]


def of_typestr(typestr) -> Dtype:
    if typestr not in _BY_TYPESTR:
        raise errors.DtypeError("elements of type %r have no counterpart here; there are %s" % (typestr, ", ".join(BY_NAME)))
    return _BY_TYPESTR[typestr]


def of_format(text) -> Dtype:
    """Of a memoryview's format."""
    if text in ("c", "l", "L"):
        text = {"c": "B", "l": "q", "L": "Q"}[text]
    if text not in _BY_FORMAT:
        raise errors.DtypeError("a buffer of format %r has no counterpart here" % text)
    return _BY_FORMAT[text]
