# SPDX-License-Identifier: BSD-3-Clause
"""Joining a job, and leaving it."""
from __future__ import annotations

import ctypes
import operator
import os
from typing import TYPE_CHECKING, Optional, Union

from . import _declarations, _interrupt, _traceback, errors
from ._library import call, lib

if TYPE_CHECKING:
    from mpi4py import MPI
    from torch.distributed import ProcessGroup

THREAD_LEVELS = {"single": 0, "funneled": 1, "serialized": 2, "multiple": 3}

_generation = 0     # counts jobs, so that arrays know whether theirs still is
_device = "cpu"
_forked = False
_abandoned = False # an exception ended the block of `with init()`


def _in_child():
    global _forked
    _forked = True


os.register_at_fork(after_in_child=_in_child)


def generation() -> int:
    return _generation


def is_alive(of: int) -> bool:
    """Whether the process is still in the job with this number."""
    return not _forked and not _abandoned and of == _generation and bool(lib.initialized())


def device() -> str:
    return _device


def gpu() -> int:
    """The number of the GPU that has the heap. Not tested on a GPU."""
    import torch
    return torch.cuda.current_device()


def synchronize_gpu() -> None:
    import torch
    torch.cuda.synchronize()


def check() -> None:
    if _forked:
        raise errors.StateError("this process was forked from a PE, and is none itself: start processes by spawn or exec")
    if not lib.initialized():
        raise errors.StateError("gpushmem.init() has not been called, or the job was finalized")


def get_unique_id() -> bytes:
    """A unique id of 128 bytes, for init(uid=...) on every PE. One process makes it and hands it to all; it must live until all
    have joined. Who can read it can join the job."""
    made = _declarations.UniqueId()
    call(lib.get_uniqueid, ctypes.byref(made))
    return bytes(made)


class Job:
    """What init() returns: this PE's place in the job. As a context manager it finalizes at the end of the block, but not if the
    block raised: the other PEs may never come to a finalize, and the process is to end with its traceback."""

    def __enter__(self) -> "Job":
        return self

    def __exit__(self, kind, value, traceback) -> None:
        global _abandoned
        _abandoned = kind is not None
        if kind is None and lib.initialized():
            finalize()

    @property
    def my_pe(self) -> int:
        return my_pe()

    @property
    def n_pes(self) -> int:
        return n_pes()

    def __repr__(self) -> str:
        return "<gpushmem.Job PE %d of %d>" % (lib.my_pe(), lib.n_pes()) if lib.initialized() else "<gpushmem.Job, finalized>"


def init(*, uid: Optional[bytes] = None, rank: Optional[int] = None, n_pes: Optional[int] = None,
         mpi: Optional[MPI.Comm] = None, process_group: Union[ProcessGroup, bool, None] = None,
         thread_level: str = "multiple") -> Job:
    """Joins the job. Collective. Without arguments the launcher says who is who (`gpushmem run`, mpirun, srun), and without a
    launcher it is a job of one PE. Else one of

    uid            a unique id (get_unique_id), with this process's `rank` and `n_pes`
    mpi            a communicator of mpi4py, whose ranks become the PEs
    process_group  one of torch.distributed, or True for the default one

    `thread_level` is single, funneled, serialized or multiple. Inits nest: as many finalizes end the job."""
    ways = [name for name, value in (("uid", uid), ("mpi", mpi), ("process_group", process_group)) if value is not None]
    if len(ways) > 1:
        raise errors.InvalidError("init: %s exclude each other" % " and ".join(ways))
    if thread_level not in THREAD_LEVELS:
        raise errors.InvalidError("init: thread_level %r; there are %s" % (thread_level, ", ".join(THREAD_LEVELS)))
    if _forked:
        check()
    if mpi is not None:
        uid, rank, n_pes = _from_mpi(mpi)
    elif process_group is not None:
        uid, rank, n_pes = _from_torch(process_group)
    _join(uid, rank, n_pes, THREAD_LEVELS[thread_level])
    return Job()


def _join(uid, rank, n_pes, level):
    global _generation, _device
    attr = _declarations.InitAttr(thread_level=level, tells_failures=1)
    if uid is not None:
        if rank is None or n_pes is None:
            raise errors.InvalidError("init: with uid the caller says rank and n_pes")
        if len(uid) != ctypes.sizeof(_declarations.UniqueId):
            raise errors.InvalidError("init: a unique id has 128 bytes, not %d" % len(uid))
        kept = _declarations.UniqueId.from_buffer_copy(bytes(uid))
        attr.uniqueid, attr.rank, attr.n_pes = ctypes.addressof(kept), operator.index(rank), operator.index(n_pes)
    elif rank is not None or n_pes is not None:
        raise errors.InvalidError("init: rank and n_pes belong to uid; without it the launcher says them")
    first = not lib.initialized()
    if _generation == 0:
        _interrupt.install(lib)
    call(lib.init_attr_sized, ctypes.byref(attr), ctypes.sizeof(attr))
    if first:
        _traceback.install()
        _generation += 1
        _device = "cuda" if heap_info()["kind"] == "device" else "cpu"


def _id_or_sentence():
    """What rank 0 hands out: if it fails, all have to know."""
    try:
        return get_unique_id()
    except errors.Error as error:
        return str(error)


def _checked(given, rank):
    if isinstance(given, str):
        raise errors.BootstrapError("rank 0 could not make a unique id: " + given if rank else given)
    return given


def _from_mpi(communicator):
    rank = communicator.Get_rank()
    given = communicator.bcast(_id_or_sentence() if rank == 0 else None, root=0)
    return _checked(given, rank), rank, communicator.Get_size()


def _from_torch(group):
    import torch.distributed as dist
    group = None if group is True else group
    rank, n = dist.get_rank(group), dist.get_world_size(group)
    box = [_id_or_sentence() if rank == 0 else None]
    first = 0
    if group is not None:
        # torch 2 has get_global_rank, 1.13 only a private form of it
        translate = getattr(dist, "get_global_rank", None) or dist.distributed_c10d._get_global_rank
        first = translate(group, 0)
    dist.broadcast_object_list(box, src=first, group=group)
    return _checked(box[0], rank), rank, n


def finalize() -> None:
    """Completes everything, waits for all PEs, frees the heap and leaves the job. Collective. Arrays, and numpy arrays and tensors
    of them, must not be used afterwards."""
    from . import _array
    check()
    generation = _generation
    try:
        call(lib.finalize)
    finally: # this process has left the job if that fails, too
        if not lib.initialized():
            _array.at_finalize()
            globals()["_generation"] = generation + 1


def initialized() -> bool:
    """Whether this process is in a job."""
    return not _forked and bool(lib.initialized())


def my_pe() -> int:
    """This PE's number, from 0."""
    check()
    return call(lib.my_pe)


def n_pes() -> int:
    """The number of PEs."""
    check()
    return call(lib.n_pes)


def node_my_pe() -> int:
    """This PE's number among those of its node."""
    check()
    return call(lib.node_my_pe)


def node_n_pes() -> int:
    """The number of PEs of this node."""
    check()
    return call(lib.node_n_pes)


def global_exit(status: int = 0) -> None:
    """Ends the whole job with this exit status, without waiting for anybody. Does not return."""
    lib.global_exit(status)


def failed_pes() -> list:
    """The PEs that were lost, as far as this one knows (GPUSHMEM_ON_PE_FAILURE=notify)."""
    most = n_pes()
    numbers = (ctypes.c_int * most)()
    return list(numbers[:call(lib.failed_pes, numbers, most)])


def heap_info() -> dict:
    """What is in this PE's heap: bytes, used_bytes, largest_free_bytes, allocations, kind, pages."""
    info = _declarations.HeapInfo()
    call(lib.heap_info_sized, ctypes.byref(info), ctypes.sizeof(info))
    text = {name: getattr(info, name) for name, _ in info._fields_}
    return {name: value.decode() if isinstance(value, bytes) else value for name, value in text.items()}


def version() -> str:
    """The library's version, which is the module's."""
    return lib.version_string().decode()
