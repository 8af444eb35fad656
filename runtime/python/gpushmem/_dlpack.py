# SPDX-License-Identifier: BSD-3-Clause
"""Hands memory to other libraries without a copy, by DLPack.

The description is one block of malloc, and free is its deleter: nothing of Python is called when another library lets go of it,
whatever the thread. It does not keep the memory alive, which only the collective gpushmem.free, or finalize, gives back."""
import ctypes

_libc = ctypes.CDLL(None)
_libc.malloc.restype = ctypes.c_void_p
_libc.malloc.argtypes = [ctypes.c_size_t]
_libc.free.restype = None
_libc.free.argtypes = [ctypes.c_void_p]
_CPU, _CUDA = 1, 2


class _Device(ctypes.Structure):
    _fields_ = [("kind", ctypes.c_int), ("number", ctypes.c_int)]


class _Dtype(ctypes.Structure):
    _fields_ = [("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16)]


class _Tensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device", _Device), ("ndim", ctypes.c_int), ("dtype", _Dtype),
                ("shape", ctypes.c_void_p), ("strides", ctypes.c_void_p), ("byte_offset", ctypes.c_uint64)]


class _Managed(ctypes.Structure):
    _fields_ = [("tensor", _Tensor), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]


_api = ctypes.pythonapi
_api.PyCapsule_New.restype = ctypes.py_object
_api.PyCapsule_New.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
_api.PyCapsule_IsValid.restype = ctypes.c_int
_api.PyCapsule_IsValid.argtypes = [ctypes.c_void_p, ctypes.c_char_p]
_api.PyCapsule_GetPointer.restype = ctypes.c_void_p
_api.PyCapsule_GetPointer.argtypes = [ctypes.c_void_p, ctypes.c_char_p]
_NAME = b"dltensor"


# A capsule that nobody took: who takes one renames it.
@ctypes.PYFUNCTYPE(None, ctypes.c_void_p)
def _drop(capsule):
    if _api.PyCapsule_IsValid(capsule, _NAME):
        _libc.free(_api.PyCapsule_GetPointer(capsule, _NAME))


def device(kind):
    """DLPack's device: type and number. The heap is on the GPU that was current at init."""
    if kind == "cpu":
        return _CPU, 0
    from . import _job
    return _CUDA, _job.gpu()


def capsule(operand):
    ndim = len(operand.shape)
    block = _libc.malloc(ctypes.sizeof(_Managed) + 16 * ndim)
    if not block:
        raise MemoryError
    managed = _Managed.from_address(block)
    extents = (ctypes.c_int64 * (2 * ndim)).from_address(block + ctypes.sizeof(_Managed))
    extents[:] = list(operand.shape) + list(operand.strides)
    code, bits = operand.dtype.dlpack
    at = ctypes.addressof(extents)
    managed.tensor = _Tensor(operand.address, _Device(*device(operand.device)), ndim, _Dtype(code, bits, 1), at, at + 8 * ndim, 0)
    managed.context = None
    managed.deleter = ctypes.cast(_libc.free, ctypes.c_void_p)
    return _api.PyCapsule_New(block, _NAME, ctypes.cast(_drop, ctypes.c_void_p))
