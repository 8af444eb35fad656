#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What Python's users read: sentences name functions of Python, parameters have types, and a checker of types knows right from
wrong (mypy, where it is there).

usage: python3 words.py"""
import functools
import importlib.util
import inspect
import os
import subprocess
import sys
import tempfile

import gpushmem
from gpushmem import _declarations, _words

# Functions of C that no function of this module calls, or that cannot fail.
UNNAMED = {"clear_error", "last_error", "last_error_code", "strerror", "set_wait_hook", "version_string", "query_thread",
           "pe_accessible", "buffer_register_symmetric", "buffer_unregister_symmetric", "team_my_pe", "team_n_pes",
           "team_translate_pe", "team_ptr"}


def functions_have_names_of_python():
    for name in _declarations.PROTOTYPES:
        ours = _words.function(name.replace("_sized", ""))
        assert ours or name in UNNAMED, "nothing of Python is said for gpushmem_" + name
        if ours:
            functools.reduce(getattr, ours.split("."), gpushmem) # exists
    assert _words.of_python("gpushmem_ctx_int64_atomic_fetch_add: no") == "gpushmem.atomic_fetch_add: no"
    assert _words.of_python("gpushmem_double_sum_reduce_on_stream: no") == "gpushmem.reduce: no"
    assert _words.of_python("gpushmem_strange: no") == "gpushmem_strange: no"


def parameters_have_types():
    for name in gpushmem.__all__:
        thing = getattr(gpushmem, name)
        if not inspect.isfunction(thing):
            continue
        for parameter in inspect.signature(thing).parameters.values():
            text = str(parameter.annotation)
            assert parameter.annotation is not inspect.Parameter.empty and text not in ("Any", "Optional[Any]"), "%s(%s: %s)" % (
                name, parameter.name, text)


RIGHT = """import gpushmem as shm
a = shm.zeros((2, 3), "float32")
shm.put(a, b"1234", 0)
shm.put(a, a.numpy(), 0)
shm.atomic_add(a[0], 1, 0)
shm.wait_until(a[0], ">=", 1)
shm.barrier(stream=7)
"""
WRONG = ("shm.put(a, [1, 2], 0)", "shm.put(7, a, 0)", "shm.atomic_add(a, 'one', 0)", "shm.barrier(stream='default')",
         "shm.zeros(4, 3.5)", "shm.init(uid=7)")


def a_checker_knows():
    if importlib.util.find_spec("mypy") is None:
        print("words: no mypy: types are not checked by it")
        return
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "program.py")
        with open(path, "w") as file:
            file.write(RIGHT + "".join(line + "\n" for line in WRONG))
        done = subprocess.run([sys.executable, "-m", "mypy", "--no-error-summary", "--cache-dir", folder, path],
                              capture_output=True, text=True)
        said = [line for line in done.stdout.splitlines() if "error:" in line]
        first = RIGHT.count("\n") + 1
        wanted = list(range(first, first + len(WRONG)))
        assert sorted({int(line.split(":")[1]) for line in said}) == wanted, done.stdout + done.stderr


if __name__ == "__main__":
    functions_have_names_of_python()
    parameters_have_types()
    a_checker_knows()
    print("words: ok")
