# SPDX-License-Identifier: BSD-3-Clause
"""The programs that a wheel of the whole project carries, as commands of the environment."""
import os
import sys


def _run(name: str) -> None:
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin", name)
    try:
        os.execv(path, [path] + sys.argv[1:])
    except OSError as error:
        sys.exit("%s: %s: %s; install the wheel of the whole project again" % (name, path, error.strerror))


def gpushmem() -> None:
    _run("gpushmem")


def oshcc() -> None:
    _run("oshcc")


def oshrun() -> None:
    _run("oshrun")
