# SPDX-License-Identifier: BSD-3-Clause
"""Locks of the whole job."""
from . import _array
from ._library import call, lib


class Lock:
    """A lock that one PE has at a time, in the order in which they asked. Made by all PEs together (collective), and freed so."""

    def __init__(self):
        self._word = _array.zeros((), "int64")

    def acquire(self, blocking: bool = True) -> bool:
        """Waits until this PE has it. blocking=False: whether it has got it."""
        self._word.memory.check()
        return not call(lib.set_lock if blocking else lib.test_lock, self._word.address)

    def release(self) -> None:
        """Completes what this PE has put, and passes the lock on."""
        self._word.memory.check()
        call(lib.clear_lock, self._word.address)

    def __enter__(self) -> "Lock":
        self.acquire()
        return self

    def __exit__(self, *unused) -> None:
        self.release()

    def free(self) -> None:
        """Collective."""
        self._word.free()
