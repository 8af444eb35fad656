# SPDX-License-Identifier: BSD-3-Clause
"""Tracebacks of PEs that share a terminal: each in one piece, under the number of its PE.

Python writes a traceback line by line, so those of PEs that fail together come mixed. Here it is one write, and PEs of one node
write one after another."""
import fcntl
import os
import sys
import time
import traceback

from ._library import lib

_PATIENCE_S = 2 # another PE may be stopped while it writes
_me = ""


def _write(text: bytes) -> None:
    while text:
        text = text[os.write(2, text):]


def _in_turn(text: bytes) -> None:
    lock, end = None, time.monotonic() + _PATIENCE_S
    try:
        lock = os.open(__file__, os.O_RDONLY | os.O_CLOEXEC)
        while time.monotonic() < end:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                time.sleep(0.01)
    except OSError: # no such file, or a file system without locks: out of turn
        pass
    try:
        _write(text)
    except OSError: # nobody reads
        pass
    if lock is not None:
        os.close(lock)


def _print(kind, value, trace) -> None:
    if sys.__stderr__ is None or sys.stderr is not sys.__stderr__: # somebody collects it
        sys.__excepthook__(kind, value, trace)
        return
    sys.__stderr__.flush()
    _in_turn((_me + "".join(traceback.format_exception(kind, value, trace))).encode(errors="backslashreplace"))


def install() -> None:
    """After init. A program that has a hook of its own keeps it, and so does a job of one PE."""
    global _me
    _me = "PE %d of %d: " % (lib.my_pe(), lib.n_pes())
    if lib.n_pes() > 1 and sys.excepthook is sys.__excepthook__:
        sys.excepthook = _print
