#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The ways to start without gpushmem's launcher. Exit status 77 where python3 has not what one needs.

usage: starts.py uid|torch|nvshmem PES       starts that many processes of itself
       mpirun -n PES starts.py mpi"""
import os
import subprocess
import sys
import tempfile
import time

import gpushmem as shm
from calls import raises


def work(job):
    """Everyone hears from everyone."""
    seen, mine = shm.zeros(job.n_pes, "int64"), shm.zeros(1, "int64")
    mine[0] = job.my_pe + 1
    shm.fcollect(seen, mine)
    assert [one.item() for one in seen] == list(range(1, job.n_pes + 1))
    shm.free(mine)
    shm.free(seen)


def by_uid(folder, rank, n):
    path = os.path.join(folder, "id")
    if rank == 0:
        with open(path + ".new", "wb") as out:
            out.write(shm.get_unique_id())
        os.rename(path + ".new", path)
    while not os.path.exists(path):
        time.sleep(0.005)
    with open(path, "rb") as given:
        uid = given.read()
    with shm.init(uid=uid, rank=rank, n_pes=n) as job:
        assert (job.my_pe, job.n_pes) == (rank, n)
        work(job)


def by_torch(folder, rank, n):
    import torch
    import torch.distributed as dist
    dist.init_process_group("gloo", init_method="file://%s/store" % folder, rank=rank, world_size=n)
    with shm.init(process_group=True) as job:
        assert (job.my_pe, job.n_pes) == (rank, n)
        work(job)
        tensors(job, torch)
    pair = dist.new_group([n - 1, 0]) if n > 1 else None
    if pair is not None and rank in (0, n - 1):
        with shm.init(process_group=pair) as job:
            assert job.n_pes == 2
            work(job)
    dist.barrier()
    dist.destroy_process_group()


def tensors(job, torch):
    right, left = (job.my_pe + 1) % job.n_pes, (job.my_pe - 1) % job.n_pes
    for dtype in (torch.float32, torch.bfloat16, torch.int64, torch.bool, torch.float16):
        dest = shm.tensor((4, 3), dtype)
        assert dest.dtype == dtype and dest.is_contiguous() and dest.device.type == "cpu"
        dest.zero_()
        shm.barrier()
        shm.put(dest[1:3], torch.ones(2, 3, dtype=dtype), right)
        shm.put(dest[:, 0], torch.ones(4, dtype=dtype), right) # strided
        shm.barrier()
        assert dest.sum().item() in (8, True) and dest[1].tolist() == [1, 1, 1] and dest[0].tolist() == [1, 0, 0]
        raises(shm.DtypeError, "alike", shm.put, dest, torch.ones(4, 3, dtype=torch.int8), right)
        shm.free(dest)
        raises(shm.AddressError, "freed before", shm.free, dest)
    a, flag = shm.zeros(6, "bfloat16"), shm.zeros(1, "uint64")
    view = a.torch()
    view.fill_(job.my_pe + 1)
    assert view.data_ptr() == a.address and a[2].item() == job.my_pe + 1
    shm.reduce(view, view, "sum")
    assert view[0].item() == sum(range(1, job.n_pes + 1))
    shm.barrier()
    shm.put_signal(a, torch.full((6,), float(job.my_pe), dtype=torch.bfloat16), flag, 1, right)
    shm.signal_wait(flag, "==", 1)
    assert view[5].item() == left
    raises(shm.DtypeError, "torch", a.numpy)
    shm.barrier()
    shm.free(flag)
    shm.free(a)


def by_nvshmem(folder, rank, n):
    """The stand-in for NVSHMEM's bindings, called as frameworks call those: ids as numpy arrays, tensors if there is torch."""
    import numpy as np
    import nvshmem.core as core
    try:
        import torch
    except ImportError:
        torch = None
    uid = core.get_unique_id(empty=(rank != 0))
    path = os.path.join(folder, "id")
    if rank == 0:
        uid._data.view(np.uint8).tofile(path + ".new")
        os.rename(path + ".new", path)
    while not os.path.exists(path):
        time.sleep(0.005)
    uid._data[:] = np.fromfile(path, np.uint8).view(uid._data.dtype)
    assert core.init_status() == core.InitStatus.STATUS_NOT_INITIALIZED
    core.init(device=None, uid=uid, rank=rank, nranks=n, initializer_method="uid")
    assert core.init_status() == core.InitStatus.STATUS_IS_INITIALIZED and (core.my_pe(), core.n_pes()) == (rank, n)
    assert core.team_n_pes(core.Teams.TEAM_NODE) == n and core.team_my_pe(core.Teams.TEAM_WORLD) == rank
    kinds = [(core.array, core.free_array, core.get_peer_array, core.bytearray, "float32")]
    if torch:
        kinds.append((core.tensor, core.free_tensor, core.get_peer_tensor, core.bytetensor, torch.float32))
    for make, free, of_peer, make_bytes, dtype in kinds:
        shim_calls(core, rank, n, make, free, of_peer, make_bytes, dtype)
    room, sent = core.buffer(64), core.buffer(64)
    sent.fill(rank)
    core.put(room, sent, remote_pe=(rank + 1) % n)
    core.barrier_all()
    assert room[63].item() == (rank - 1) % n
    core.free(sent)
    core.free(room)
    raises(core.NvshmemInvalid, "freed before", core.free, np.zeros(4))
    # by their modules, too
    assert core.direct.init_status() >= 2 and core.direct.my_pe() == rank and core.memory.free is core.free
    there, here = core.array((n,), dtype="int32"), core.array((n,), dtype="int32")
    here[:] = rank
    core.rma.quiet()
    core.collective.alltoall(core.Teams.TEAM_WORLD, there, here)
    core.collective.barrier(core.Teams.TEAM_WORLD)
    assert [int(one) for one in there] == list(range(n))
    core.free_array(here)
    core.free_array(there)
    raises(shm.UnsupportedError, "multicast", core.get_multicast_tensor, core.Teams.TEAM_NODE, None)
    raises(AttributeError, "stand-in", lambda: core.collective_on_buffer)
    raises(core.NvshmemInvalid, "mpi_comm", core.init, initializer_method="mpi")
    raises(core.NvshmemInvalid, "there are uid", core.init, initializer_method="magic")
    core.finalize()


def shim_calls(core, rank, n, make, free, of_peer, make_bytes, dtype):
    world, right, left = core.Teams.TEAM_WORLD, (rank + 1) % n, (rank - 1) % n
    a, b, flag = make((n, 2), dtype=dtype), make((n, 2), dtype=dtype), make_bytes((8,))
    a[:], b[:], flag[:] = rank + 1, 0, 0
    if getattr(a, "is_cuda", False): # torch's own kernels: no barrier of the host waits for them
        sys.modules["torch"].cuda.synchronize()
    core.barrier_all()
    core.put_signal(b, a, flag, 5, core.SignalOp.SIGNAL_SET, remote_pe=right, stream=0)
    core.signal_wait(flag, 5, core.ComparisonType.CMP_GE, stream=0) # the neighbour may have added 2 already
    assert (b == left + 1).all()
    core.signal_op(flag, 2, core.SignalOp.SIGNAL_ADD, right)
    core.signal_wait(flag, 7, core.ComparisonType.CMP_GE)
    core.quiet(stream=0)
    core.barrier(world, stream=0)
    core.put(b[0], a[0], right)
    core.barrier_all(stream=0)
    last = min(1, n - 1)
    if n > 1:
        core.get(b[1], a[1], right, stream=0)
    assert (b[0] == left + 1).all() and (b[last] == right + 1).all()
    core.reduce(world, b, a, "sum")
    assert (b == sum(range(1, n + 1))).all()
    core.reducescatter(world, b[0], a, "max")
    core.broadcast(world, b[1:2] if n > 1 else b, a[1:2] if n > 1 else a, root=n - 1, stream=0)
    assert (b[0] == n).all() and (b[last] == n).all()
    core.fcollect(world, b, a[0])
    assert [float(row[0]) for row in b] == list(range(1, n + 1))
    core.alltoall(world, b, a)
    assert [float(row[1]) for row in b] == list(range(1, n + 1))
    core.sync_all()
    assert of_peer(a, rank) is a
    if os.environ.get("GPUSHMEM_P2P", "1") == "0" and right != rank:
        raises(shm.UnreachableError, "get and put", of_peer, a, right)
    else:
        assert (of_peer(a, right) == right + 1).all()
        core.sync(world)
        if right != rank:
            free(of_peer(a, right)) # its owner's: nothing happens
    core.sync(world)
    for one in (flag, b, a):
        free(one)


def by_mpi():
    try:
        from mpi4py import MPI
    except ImportError:
        return 77
    world = MPI.COMM_WORLD
    with shm.init(mpi=world) as job:
        assert (job.my_pe, job.n_pes) == (world.Get_rank(), world.Get_size())
        work(job)
    half = world.Split(world.Get_rank() % 2)
    with shm.init(mpi=half) as job:
        assert job.n_pes == half.Get_size()
        work(job)
    half.Free()
    return 0


def main(way, *arguments):
    if way == "mpi":
        return by_mpi()
    if way == "torch":
        try:
            import torch.distributed as dist
        except ImportError:
            return 77
        if not dist.is_available() or not dist.is_gloo_available():
            return 77
    if len(arguments) == 1:
        n = int(arguments[0])
        with tempfile.TemporaryDirectory() as folder:
            all = [subprocess.Popen([sys.executable, "-B", "-W", "error", __file__, way, folder, str(rank), str(n)])
                   for rank in range(n)]
            return max(one.wait() for one in all)
    folder, rank, n = arguments
    {"uid": by_uid, "torch": by_torch, "nvshmem": by_nvshmem}[way](folder, int(rank), int(n))
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
