# SPDX-License-Identifier: BSD-3-Clause
"""The calls of nvshmem.core that frameworks make, over gpushmem: names and arguments as in its public documentation and in
programs that call it. Arrays and tensors are where the symmetric heap is. `stream` may be left out: then the host does it, after
what CUDA's default stream has still to do with tensors on a GPU."""
import ctypes
import enum
from typing import Any, Optional

import gpushmem as _shm
from gpushmem import _array, _dtypes
from gpushmem import Error as NvshmemError
from gpushmem import InvalidError as NvshmemInvalid
from gpushmem._library import call_for_pointer as _call_for_pointer
from gpushmem._library import lib as _lib
from gpushmem._operand import Operand as _Operand
from gpushmem._operand import operand as _operand
from gpushmem._operand import packed_strides as _packed

__version__ = _shm.__version__

Teams = enum.IntEnum("Teams", {"TEAM_INVALID": -1, "TEAM_WORLD": 0, "TEAM_SHARED": 1, "TEAM_NODE": 2})
SignalOp = enum.IntEnum("SignalOp", {"SIGNAL_SET": 9, "SIGNAL_ADD": 10})
ComparisonType = enum.IntEnum("ComparisonType",
                              {"CMP_EQ": 0, "CMP_NE": 1, "CMP_GT": 2, "CMP_LE": 3, "CMP_LT": 4, "CMP_GE": 5})
InitStatus = enum.IntEnum("InitStatus", {"STATUS_NOT_INITIALIZED": 0, "STATUS_IS_BOOTSTRAPPED": 1, "STATUS_IS_INITIALIZED": 2})


# ---- starting ----

class UniqueID:
    """128 bytes as `_data`, a numpy array that programs broadcast as they like."""

    def __init__(self, data: bytes = bytes(128)):
        import numpy
        self._data = numpy.frombuffer(data, dtype="V128").copy()

    def __bytes__(self) -> bytes:
        return self._data.tobytes()


def get_unique_id(empty: bool = False) -> UniqueID:
    """An id for init; with `empty` one that has to be overwritten with another process's."""
    return UniqueID() if empty else UniqueID(_shm.get_unique_id())


def init(device: Any = None, uid: Optional[UniqueID] = None, rank: Optional[int] = None, nranks: Optional[int] = None,
         mpi_comm: Any = None, initializer_method: str = "", **unused: Any) -> None:
    """Joins the job. `device` is current already, as everywhere; the library takes the current one."""
    if initializer_method == "uid" or (not initializer_method and uid is not None):
        _shm.init(uid=None if uid is None else bytes(uid), rank=rank, n_pes=nranks)
    elif initializer_method in ("mpi", "emulated_mpi") or (not initializer_method and mpi_comm is not None):
        if mpi_comm is None:
            raise NvshmemInvalid("init: initializer_method %r wants mpi_comm" % initializer_method)
        _shm.init(mpi=mpi_comm)
    elif initializer_method:
        raise NvshmemInvalid("init: initializer_method %r; there are uid, mpi and emulated_mpi" % initializer_method)
    else:
        _shm.init()


def finalize() -> None:
    """Leaves the job. Collective."""
    _peers.clear()
    _array._tensors.update((address, made.memory) for address, made in _kept.items()) # nobody is warned of these
    _shm.finalize()
    _kept.clear()


def init_status() -> InitStatus:
    return InitStatus.STATUS_IS_INITIALIZED if _shm.initialized() else InitStatus.STATUS_NOT_INITIALIZED


def my_pe() -> int:
    return _shm.my_pe()


def n_pes() -> int:
    return _shm.n_pes()


def team_my_pe(team: int) -> int:
    return _team(team).my_pe


def team_n_pes(team: int) -> int:
    return _team(team).n_pes


def _team(team):
    return _shm.Team(int(team))


# ---- memory ----

# What is given out is named by its address and lives until it is freed.
_kept: dict = {}


def _keep(made, given):
    _kept[made.address] = made
    return given


def _drop(thing):
    address = _operand(thing).address
    made = _kept.pop(address, None)
    if made is not None:
        made.free()
    elif not any(one.address <= address < one.address + max(1, one.nbytes) for one in _peers.values()):
        raise NvshmemInvalid("no symmetric memory begins at 0x%x, or it was freed before" % address)


def tensor(shape: Any, dtype: Any = None, **unused: Any):
    """A torch tensor in symmetric memory. Collective. Free it with free_tensor."""
    made = _shm.empty(shape, "float32" if dtype is None else dtype)
    return _keep(made, made.torch())


def bytetensor(shape: Any, dtype: Any = None, **unused: Any):
    """A torch tensor of bytes, of this shape."""
    return tensor(shape, "uint8")


def free_tensor(given: Any) -> None:
    """Collective. What get_peer_tensor gave is its owner's, and nothing happens to it."""
    _drop(given)


def array(shape: Any, dtype: Any = "float32", **unused: Any):
    """The same as an array: of numpy where the heap is host memory, else of cupy."""
    made = _shm.empty(shape, dtype)
    return _keep(made, _as_array(made))


def bytearray(shape: Any, dtype: Any = None, **unused: Any): # noqa: A001: the name is given
    return array(shape, "uint8")


def free_array(given: Any) -> None:
    _drop(given)


def buffer(size: int, **unused: Any) -> _array.Array:
    """`size` bytes. Free them with free."""
    made = _shm.empty(int(size), "uint8")
    return _keep(made, made)


def free(given: Any) -> None:
    _drop(given)


def _as_array(made):
    if made.device == "cpu":
        return made.numpy()
    import cupy
    return cupy.from_dlpack(made)


_peers: dict = {}


def _peer(given, pe):
    own = _operand(given)
    address = _call_for_pointer(_lib.ptr, own.address, int(pe))
    if address is None:
        raise _shm.UnreachableError("PE %d's heap is not mapped here: use get and put" % pe)
    memory = _array.Memory(address, own.count * own.dtype.itemsize, own.device, owned=False)
    made = _array.Array(memory, address, own.shape, own.strides, own.dtype)
    if int(pe) != my_pe():
        _peers[address] = memory
    return made


def get_peer_tensor(given: Any, peer_pe: int):
    """The same tensor of another PE, for loads and stores."""
    return given if int(peer_pe) == my_pe() else _peer(given, peer_pe).torch()


def get_peer_array(given: Any, peer_pe: int):
    return given if int(peer_pe) == my_pe() else _as_array(_peer(given, peer_pe))


def get_peer_buffer(given: Any, peer_pe: int):
    return given if int(peer_pe) == my_pe() else _peer(given, peer_pe)


def get_multicast_tensor(team: int, given: Any):
    raise _shm.UnsupportedError("there are no multicast addresses; write to each peer's tensor")


# ---- moving data ----

_driver: list = []


def _settle(stream, *operands):
    """Without a stream the host moves the data, and what fills it may be under way in the default stream."""
    if stream is not None or all(_operand(one).device == "cpu" for one in operands):
        return
    if not _driver:
        _driver.append(ctypes.CDLL("libcuda.so.1"))
    _driver[0].cuStreamSynchronize(None) # an error of an earlier kernel is told by the program's next call


class _Word:
    """The first 8 bytes of what a program takes for a signal, whatever its type."""

    def __init__(self, given):
        given = _operand(given)
        if given.count * given.dtype.itemsize < 8:
            raise NvshmemInvalid("a signal has 8 bytes, not %d" % (given.count * given.dtype.itemsize))
        self.given = given

    def _operand(self):
        return _Operand(self.given.address, _dtypes.BY_NAME["uint64"], (), (), self.given.device, self.given)


class _Bytes:
    """A tensor as its bytes, where types differ in name only."""

    def __init__(self, given):
        self.given = given

    def _operand(self):
        count = self.given.count * self.given.dtype.itemsize
        return _Operand(self.given.address, _dtypes.BY_NAME["uint8"], (count,), _packed((count,)), self.given.device, self.given)


def _pair(dst, src):
    to, source = _operand(dst), _operand(src)
    if to.dtype != source.dtype and all(one.layout and one.layout[0] == 1 for one in (to, source)):
        return _Bytes(to), _Bytes(source)
    return dst, src


def put(dst: Any, src: Any, remote_pe: int = -1, stream: Any = None) -> None:
    """src to the symmetric dst of remote_pe."""
    to, source = _pair(dst, src)
    _settle(stream, to, source)
    _shm.put(to, source, int(remote_pe), stream=stream)


def get(dst: Any, src: Any, remote_pe: int = -1, stream: Any = None) -> None:
    """The symmetric src of remote_pe to dst."""
    to, source = _pair(dst, src)
    _settle(stream, to, source)
    _shm.get(to, source, int(remote_pe), stream=stream)


def put_signal(dst: Any, src: Any, signal_var: Any, signal_val: int, signal_op: int, remote_pe: int = -1,
               stream: Any = None) -> None:
    to, source = _pair(dst, src)
    _settle(stream, to, source)
    _shm.put_signal(to, source, _Word(signal_var), signal_val, int(remote_pe), op=int(signal_op), stream=stream)


def signal_op(signal_var: Any, signal_val: int, signal_op: int, remote_pe: int = -1, stream: Any = None) -> None:
    _shm.signal(_Word(signal_var), signal_val, int(remote_pe), op=int(signal_op), stream=stream)


def signal_wait(signal_var: Any, signal_val: int, signal_op: int = ComparisonType.CMP_EQ, stream: Any = None) -> None:
    """Until the word compares so (ComparisonType, the third argument) with signal_val."""
    _shm.signal_wait(_Word(signal_var), int(signal_op), signal_val, stream=stream)


def quiet(stream: Any = None) -> None:
    _shm.quiet(stream=stream)


def fence() -> None:
    _shm.fence()


# ---- collectives ----

def barrier(team: int, stream: Any = None) -> None:
    _shm.barrier(_team(team), stream=stream)


def barrier_all(stream: Any = None) -> None:
    _shm.barrier(stream=stream)


def sync(team: int, stream: Any = None) -> None:
    _shm.sync(_team(team), stream=stream)


def sync_all(stream: Any = None) -> None:
    _shm.sync(stream=stream)


def reduce(team: int, dst: Any, src: Any, op: str, stream: Any = None) -> None:
    _settle(stream, dst, src)
    _shm.reduce(dst, src, op, team=_team(team), stream=stream)


def reducescatter(team: int, dst: Any, src: Any, op: str, stream: Any = None) -> None:
    _settle(stream, dst, src)
    _shm.reducescatter(dst, src, op, team=_team(team), stream=stream)


def broadcast(team: int, dst: Any, src: Any, root: int = 0, stream: Any = None) -> None:
    _settle(stream, dst, src)
    _shm.broadcast(dst, src, root, team=_team(team), stream=stream)


def fcollect(team: int, dst: Any, src: Any, stream: Any = None) -> None:
    _settle(stream, dst, src)
    _shm.fcollect(dst, src, team=_team(team), stream=stream)


def alltoall(team: int, dst: Any, src: Any, stream: Any = None) -> None:
    _settle(stream, dst, src)
    _shm.alltoall(dst, src, team=_team(team), stream=stream)


# The same calls by the modules that NVSHMEM's bindings have them in; these import from here.
from . import collective, direct, memory, rma  # noqa: E402, F401


def __getattr__(name: str):
    raise AttributeError("nvshmem.core.%s: gpushmem's stand-in has not that call; docs/python.md lists those that it has" % name)
