# SPDX-License-Identifier: BSD-3-Clause
"""Finds libgpushmem, and calls it: `call` for what returns a status."""
import ctypes
import os
import re

from . import _declarations, _interrupt, _words, errors

NAME = "libgpushmem.so.0"


def _folders():
    home = os.environ.get("GPUSHMEM_HOME")
    if home:
        # who names a place wants that library and no other
        return [os.path.join(home, "lib"), os.path.join(home, "lib64"), os.path.join(home, "lib", "x86_64-linux-gnu")]
    return [os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib")]


def _load():
    for folder in _folders():
        path = os.path.join(folder, NAME)
        if os.path.exists(path):
            return ctypes.CDLL(path)
    if os.environ.get("GPUSHMEM_HOME"):
        raise ImportError("GPUSHMEM_HOME=%s: there is no %s in its lib folder" % (os.environ["GPUSHMEM_HOME"], NAME))
    try:
        return ctypes.CDLL(NAME)
    except OSError as error:
        raise ImportError("%s: not in this wheel and not found by the loader; set GPUSHMEM_HOME to the prefix where gpushmem "
                          "is installed (%s)" % (NAME, error)) from None


class Library:
    """The functions by their names without the prefix, bound at their first use."""

    def __init__(self):
        self._handle = _load()

    def __getattr__(self, name):
        if name not in _declarations.PROTOTYPES:
            raise AttributeError(name)
        function = getattr(self._handle, "gpushmem_" + name)
        function.restype, function.argtypes = _declarations.signature(name)
        setattr(self, name, function)
        return function


lib = Library()


def raise_last(code, name=None):
    """The library's own sentence about this thread's last failure. `name`: what the program has called, where that is not what the
    function of C is called."""
    sentence = lib.last_error().decode(errors="replace")
    if name:
        sentence = re.sub(r"^gpushmem_\w+:", lambda _: "gpushmem." + name + ":", sentence)
    raise errors.of(code, _words.of_python(sentence) or lib.strerror(code).decode())


def call(function, *arguments, name=None):
    """Calls what returns a status or, if not negative, a number. `name`: as for raise_last."""
    status = function(*arguments)
    if _interrupt.pending(): # also after a success: the wait may have ended as Ctrl-C came
        _interrupt.raise_pending()
    if status < 0:
        raise_last(status, name)
    return status


def call_for_pointer(function, *arguments, name=None):
    """Calls what returns NULL on failure. None without a failure is passed on."""
    lib.clear_error()
    pointer = function(*arguments)
    if pointer is None and lib.last_error_code():
        _interrupt.raise_pending()
        raise_last(lib.last_error_code(), name)
    return pointer
