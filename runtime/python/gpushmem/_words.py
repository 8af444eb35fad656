# SPDX-License-Identifier: BSD-3-Clause
"""The library's sentences name functions of C: here they get the names that Python's programs call."""
import re

from . import _dtypes

_TYPES = {name for dtype in _dtypes.BY_NAME.values() for name in (dtype.coll, dtype.word, dtype.amo) if name}
_TYPED = re.compile(r"^(?:%s)_" % "|".join(sorted(_TYPES, key=len, reverse=True)))
_OTHERWISE = {
    "malloc": "empty", "calloc": "zeros", "align": "empty", "ptr": "Array.on", "init_attr": "init",
    "get_uniqueid": "get_unique_id",
    "barrier_all": "barrier", "sync_all": "sync", "team_sync": "sync", "signal_op": "signal", "signal_wait_until": "signal_wait",
    "set_lock": "Lock.acquire", "test_lock": "Lock.acquire", "clear_lock": "Lock.release", "buffer_register": "register",
    "buffer_unregister": "unregister", "ctx_create": "Context", "team_create_ctx": "Context", "ctx_destroy": "Context.destroy",
    "ctx_fence": "fence", "ctx_quiet": "quiet", "team_split_strided": "Team.split_strided", "team_split_2d": "Team.split_2d",
    "team_split_list": "Team.split", "team_survivors": "Team.survivors", "team_destroy": "Team.destroy",
    "connect": "Team.connect",
}
_PHRASES = (
    ("an address from gpushmem.empty, or a global or static variable of the program",
     "an array of gpushmem.zeros or gpushmem.empty"),
    ("GPUSHMEM_SIGNAL_SET (9) nor GPUSHMEM_SIGNAL_ADD (10)", "\"set\" nor \"add\""),
    ("pass NULL to have it done at once", "leave `stream` out to have it done at once"),
)


def function(name: str) -> str:
    """What Python calls the function gpushmem_NAME of C; an empty text if nothing of Python calls it."""
    import gpushmem
    if name in _OTHERWISE:
        return _OTHERWISE[name]
    name = _TYPED.sub("", re.sub(r"^ctx_", "", name))
    name = re.sub(r"(_status|_on_stream|_nbi)+$", "", name)
    name = re.sub(r"^(?:sum|prod|min|max|and|or|xor)_(?=reduce|inscan|exscan)", "", name)
    name = re.sub(r"^i?b?(put|get)(?:\d+|mem)", r"\1", name)
    name = re.sub(r"mem$", "", name)
    name = _OTHERWISE.get(name, name)
    return name if name in gpushmem.__all__ or "." in name else ""


def of_python(sentence: str) -> str:
    def named(found):
        name = function(found[1])
        return "gpushmem." + name if name else found[0]

    sentence = re.sub(r"\bgpushmem_(\w+)", named, sentence)
    sentence = re.sub(r"\bGPUSHMEM_TEAM_(WORLD|SHARED|NODE|SAME_RANK)\b", r"gpushmem.\1", sentence)
    for of_c, ours in _PHRASES:
        sentence = sentence.replace(of_c, ours)
    return sentence
