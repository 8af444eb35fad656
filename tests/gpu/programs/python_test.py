#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The Python module where the heap is GPU memory: symmetric torch tensors, torch's streams, and errors as exceptions.

usage: gpushmem run -n 2 python_test.py            PYTHONPATH: runtime/python and tests/python; GPUSHMEM_HOME: the build
       torchrun --nproc-per-node 2 python_test.py  the same, started by torch.distributed
Exit code 77: this Python has no torch, or torch sees no GPU."""
import os
import sys

try:
    import torch
except ImportError:
    print("python_test: skipped: this Python has no torch")
    sys.exit(77)
if not torch.cuda.is_available():
    print("python_test: skipped: torch sees no GPU")
    sys.exit(77)

import gpushmem as shm

DTYPES = (torch.float32, torch.bfloat16, torch.float16, torch.int64, torch.int8)


def raises(kind, word, call, *arguments):
    try:
        call(*arguments)
    except kind as error:
        assert word in str(error), (word, str(error))
        return
    raise AssertionError("%s was not raised by %s" % (kind.__name__, call))


def filled(shape, value, dtype):
    return torch.full(shape, value, dtype=dtype, device="cuda")


def memory():
    """One memory under several names, never a copy."""
    made = shm.zeros((5, 3), "float32")
    assert made.device == "cuda"
    view = made.torch()
    assert view.is_cuda and view.data_ptr() == made.address and torch.from_dlpack(made).data_ptr() == made.address
    assert torch.as_tensor(made, device="cuda").data_ptr() == made.address
    view[2, 1] = 5
    torch.cuda.synchronize()
    assert made[2, 1].item() == 5 and made[4, 2].item() == 0 and shm.g(made[2, 1], shm.my_pe()) == 5
    raises(shm.InvalidError, "GPU memory", made.numpy)
    made.fill(3)
    assert view.sum().item() == 45
    made[1:, 0] = [1, 2, 3, 4]
    assert view[:, 0].tolist() == [3, 1, 2, 3, 4] and view[:, 1].tolist() == [3] * 5
    copied = shm.array(view[:2])
    assert copied.torch().tolist() == [[3, 3, 3], [1, 3, 3]]
    shm.free(copied)
    shm.free(made)


def moves(me, n):
    right, left = (me + 1) % n, (me - 1) % n
    for dtype in DTYPES:
        dest = shm.tensor((4, 6), dtype)
        dest.zero_()
        sent = filled((2, 6), me + 1, dtype)
        torch.cuda.synchronize()
        shm.barrier()
        shm.put(dest[1:3], sent, right)              # from torch's own memory
        shm.put(dest[:, 5], torch.full((4,), 9).to(dtype), right)  # from the host's, a column
        shm.barrier()
        want = filled((4, 6), 0, dtype)
        want[1:3], want[:, 5] = left + 1, 9
        assert torch.equal(dest, want), dtype
        got = torch.empty_like(dest)
        shm.get(got, dest, right)
        want[1:3, :5] = me + 1
        assert torch.equal(got, want), dtype
        shm.barrier()  # both neighbours have compared
        shm.p(dest[0, 0], 4, right)
        shm.barrier()
        assert shm.g(dest[0, 0], right) == 4 and dest[0, 0].item() == 4
        shm.barrier()
        shm.free(dest)


def signals(me, n):
    right, left = (me + 1) % n, (me - 1) % n
    data, flag, counter = shm.tensor(1000, torch.float32), shm.zeros(1, "uint64"), shm.zeros(1, "int64")
    sent = filled((1000,), me + 0.5, torch.float32)
    torch.cuda.synchronize()
    shm.barrier()
    shm.put_signal(data, sent, flag, 1, right)
    shm.signal_wait(flag, ">=", 1)
    assert torch.equal(data, filled((1000,), left + 0.5, torch.float32))
    assert 0 <= shm.atomic_fetch_add(counter, 1, 0) < n
    if me == 0:
        shm.wait_until(counter, "==", n)
    shm.barrier()
    for one in (counter, flag, data):
        shm.free(one)


def on_streams(me, n):
    """Between torch's kernels, the host waiting for nothing."""
    right, left = (me + 1) % n, (me - 1) % n
    stream = torch.cuda.Stream()
    a, b, flag = shm.tensor(5000, torch.float32), shm.tensor(5000, torch.float32), shm.zeros(1, "uint64")
    total = shm.tensor(5000, torch.float32)
    seen = []
    with torch.cuda.stream(stream):
        for i in range(1, 6):
            a.fill_(10 * i + me)
            shm.put_signal(b, a, flag, i, right, stream=stream)
            shm.signal_wait(flag, ">=", i, stream=stream)
            seen.append(b.clone())
            shm.reduce(total, a, "sum", stream=stream)
            seen.append(total.clone())
            shm.barrier(stream=stream)
    stream.synchronize()
    for i in range(1, 6):
        assert torch.equal(seen[2 * i - 2], filled((5000,), 10 * i + left, torch.float32)), "put_signal %d" % i
        assert seen[2 * i - 1][77].item() == sum(10 * i + pe for pe in range(n)), "reduce %d" % i
    shm.barrier()
    for one in (total, flag, b, a):
        shm.free(one)


def collectives(me, n):
    parts = filled((n, 4), me, torch.bfloat16)
    source, dest, one = shm.tensor((n, 4), torch.bfloat16), shm.tensor((n, 4), torch.bfloat16), shm.tensor(4, torch.bfloat16)
    source.copy_(parts)
    one.fill_(me + 1)
    torch.cuda.synchronize()
    shm.fcollect(dest, one)
    assert [row[3].item() for row in dest] == list(range(1, n + 1))
    shm.alltoall(dest, source)
    assert [row[0].item() for row in dest] == list(range(n))
    shm.reduce(source, source, "max")
    assert torch.equal(source, torch.full_like(source, n - 1))
    with shm.WORLD.split(range(n - 1, -1, -1)) as back:
        shm.broadcast(dest, source, root=0, team=back)
    assert dest[0, 0].item() == n - 1
    for made in (one, dest, source):
        shm.free(made)


def mistakes(me, n):
    here = shm.tensor(8, torch.float32)
    own = torch.zeros(8, device="cuda")
    raises(shm.AddressError, "symmetric", shm.put, own, own, me)
    raises(shm.DtypeError, "alike", shm.put, here, own.to(torch.int32), me)
    raises(shm.InvalidError, "cpu", shm.put, torch.zeros(8), own, me)
    raises(shm.PEError, str(n), shm.put, here, own, n)
    shm.free(here)
    raises(shm.AddressError, "freed before", shm.free, here)


def stand_in(me, n):
    """nvshmem.core's calls, as frameworks make them."""
    try:
        from starts import shim_calls
    except ImportError as error:
        return print("python_test: without nvshmem.core: %s" % error)
    import nvshmem.core as core
    shim_calls(core, me, n, core.tensor, core.free_tensor, core.get_peer_tensor, core.bytetensor, torch.float32)


def warm_up():
    """torch's pool is filled, and its kernels are loaded, before any waits for another PE: that would wait for them."""
    held = [torch.empty(1 << 20, device="cuda") for _ in range(40)]
    for dtype in DTYPES:
        sums = filled((64,), 1, dtype)
        sums.copy_(filled((64,), 2, dtype))
        assert not torch.equal(sums, filled((64,), 1, dtype)) and sums.sum().item() == 128
    held[0].fill_(1).clone()
    torch.cuda.synchronize()


def run(job):
    me, n = job.my_pe, job.n_pes
    memory()
    for part in (moves, signals, collectives, on_streams, mistakes, stand_in):
        part(me, n)
    shm.barrier()


def main():
    rank = int(os.environ.get("LOCAL_RANK", os.environ.get("GPUSHMEM_RUN_PE", "0")))
    torch.cuda.set_device(rank % torch.cuda.device_count())
    warm_up()
    if "LOCAL_RANK" in os.environ:
        import torch.distributed as dist
        dist.init_process_group("gloo")
        for begun in range(2):  # and again after finalize
            print("python_test: PE %d: job %d" % (rank, begun), flush=True)
            with shm.init(process_group=True) as job:
                assert (job.my_pe, job.n_pes) == (dist.get_rank(), dist.get_world_size())
                run(job)
        dist.destroy_process_group()
    else:
        with shm.init() as job:
            run(job)
    assert int(torch.ones(10, device="cuda").sum()) == 10  # torch goes on without us
    print("python_test: PE %d: ok, torch %s" % (rank, torch.__version__))


if __name__ == "__main__":
    main()
