# SPDX-License-Identifier: BSD-3-Clause
"""Failures as exceptions: one class for each code of the library, all derived from Error."""


class Error(RuntimeError):
    """A call failed. str() is the library's sentence, `code` its GPUSHMEM_ERR_* number."""

    code = 0

    def __init__(self, sentence: str, code: int = 0):
        super().__init__(sentence)
        if code:
            self.code = code

    def __reduce__(self):
        return type(self), (str(self), self.code)


class InvalidError(Error, ValueError):
    """An argument outside what its contract allows."""
    code = -1


class DtypeError(InvalidError, TypeError):
    """Element types that do not match, or that the operation does not have."""


class StateError(Error):
    """Called before init, after finalize, or in the wrong order."""
    code = -2


class PEError(Error, IndexError):
    """A PE number outside 0 .. n_pes-1."""
    code = -3


class AddressError(Error):
    """Not inside the symmetric heap, or freed."""
    code = -4


class AlignmentError(Error):
    """The address of an atomic is not a multiple of the operand's size."""
    code = -5


class NoMemoryError(Error, MemoryError):
    """Heap, host memory, GPU memory or memlock exhausted."""
    code = -6


class SettingError(Error):
    """A malformed or out-of-range GPUSHMEM_* setting."""
    code = -7


class BootstrapError(Error):
    """Launcher, or the process that made the unique id, failed or is unreachable."""
    code = -8


class PeerDataError(Error):
    """A peer published data that this version cannot use."""
    code = -9


class TransportError(Error):
    """A transport failed, or a required one is not available."""
    code = -10


class UnreachableError(Error):
    """No transport reaches the PE."""
    code = -11


class PEFailedError(Error):
    """A PE died or stopped answering."""
    code = -12


class WaitTimeoutError(Error):
    """GPUSHMEM_WAIT_TIMEOUT_MS, or another time limit, ran out."""
    code = -13


class RingError(Error):
    """A command ring held what is no command."""
    code = -14


class AsymmetryError(Error):
    """PEs made different collective calls, or passed different arguments."""
    code = -15


class UnsupportedError(Error):
    """Not possible with this build, machine or transport."""
    code = -16


class SystemCallError(Error):
    """An operating system call failed."""
    code = -17


class CudaError(Error):
    """A CUDA call failed."""
    code = -18


BY_CODE = {kind.code: kind for kind in list(globals().values())
           if isinstance(kind, type) and issubclass(kind, Error) and kind not in (Error, DtypeError)}


def of(code: int, sentence: str) -> Error:
    """The exception for a code. A code of a newer library is a plain Error."""
    return BY_CODE.get(code, Error)(sentence, code)
