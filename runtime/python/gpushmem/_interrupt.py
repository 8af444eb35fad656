# SPDX-License-Identifier: BSD-3-Clause
"""Ctrl-C while the library waits.

Python's signal handlers run between bytecodes, and a thread that waits in the library executes none. So the library calls
`_look` every 50 ms of a wait, handlers run as that function begins, and what one raises ends the wait and is raised after it.
ctypes hands such an exception to sys.unraisablehook: so that has to know this function. Frameworks replace that hook at times
(pytest does), so the default handler of SIGINT is also replaced by one that makes a note instead of raising there."""
import ctypes
import signal
import sys
import threading
from typing import Optional

_raised: Optional[BaseException] = None
_FUNCTION = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)


def _look(unused):
    global _raised
    try:
        return 1 if _raised is not None and threading.get_ident() == threading.main_thread().ident else 0
    except BaseException as error: # of a handler of the program's own
        _raised = error
        return 1


_hook = _FUNCTION(_look)


def _on_interrupt(number, frame):
    global _raised
    if _is_inside(frame):
        _raised = KeyboardInterrupt()
    else:
        signal.default_int_handler(number, frame)


def _is_inside(frame):
    """Whether the callback was interrupted, or what it calls."""
    for _ in range(4):
        if frame is None or frame.f_code is _look.__code__:
            break
        frame = frame.f_back
    return frame is not None and frame.f_code is _look.__code__


def pending() -> bool:
    """Whether a handler of a signal has raised while the library waited. Quick: each call asks it."""
    return _raised is not None


def raise_pending() -> None:
    """What it raised is raised here, in the main thread; a wait that it ended has failed."""
    global _raised
    if _raised is not None and threading.get_ident() == threading.main_thread().ident:
        error, _raised = _raised, None
        raise error


def _catch_unraisable():
    previous = sys.unraisablehook

    def caught(given):
        global _raised
        if given.object is _look:
            _raised = given.exc_value
        else:
            previous(given)
    sys.unraisablehook = caught


def install(lib) -> None:
    """Once, at the first init."""
    _catch_unraisable()
    lib.set_wait_hook(_hook, None)
    if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _on_interrupt)
