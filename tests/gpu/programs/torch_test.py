#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""PyTorch and gpushmem in one process: torch's CUDA context, its streams, and the symmetric heap as torch tensors.

usage: gpushmem run -n 2 torch_test.py LIBGPUSHMEM.SO   (exit code 77: this Python has no torch, or no GPU)
"""
import ctypes
import os
import sys

try:
    import torch
except ImportError:
    print("torch_test: skipped: this Python has no torch")
    sys.exit(77)
if not torch.cuda.is_available():
    print("torch_test: skipped: torch sees no GPU")
    sys.exit(77)

N = 100003
POINTER, SIZE, INT = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int


def load(path):
    lib = ctypes.CDLL(path)
    lib.gpushmem_last_error.restype = ctypes.c_char_p
    lib.gpushmem_calloc.restype = POINTER
    lib.gpushmem_calloc.argtypes = [SIZE, SIZE]
    lib.gpushmem_free.argtypes = [POINTER]
    lib.gpushmem_putmem_on_stream.argtypes = [POINTER, POINTER, SIZE, INT, POINTER]
    lib.gpushmem_getmem_on_stream.argtypes = [POINTER, POINTER, SIZE, INT, POINTER]
    lib.gpushmem_barrier_all_on_stream.argtypes = [POINTER]
    return lib


class Symmetric:
    """Memory of the heap in the form that torch, CuPy and Numba understand."""

    def __init__(self, lib, count):
        self.address = lib.gpushmem_calloc(count, 4)
        if not self.address:
            raise RuntimeError(lib.gpushmem_last_error().decode())
        self.__cuda_array_interface__ = {"shape": (count,), "typestr": "<i4", "data": (self.address, False), "version": 3}
        self.tensor = torch.as_tensor(self, device="cuda")
        assert self.tensor.data_ptr() == self.address, "torch made a copy"


class Job:
    def __init__(self, path):
        self.lib = load(path)
        self.check(self.lib.gpushmem_init())
        self.me, self.n = self.lib.gpushmem_my_pe(), self.lib.gpushmem_n_pes()
        self.right, self.left = (self.me + 1) % self.n, (self.me + self.n - 1) % self.n
        self.inbox, self.outbox = Symmetric(self.lib, N), Symmetric(self.lib, N)
        self.ramp = torch.arange(N, dtype=torch.int32, device="cuda")

    def check(self, status):
        if status:
            raise RuntimeError(f"{status}: {self.lib.gpushmem_last_error().decode()}")

    def put(self, source):
        self.check(self.lib.gpushmem_putmem_on_stream(self.inbox.address, source, 4 * N, self.right, stream()))

    def barrier(self):
        self.check(self.lib.gpushmem_barrier_all_on_stream(stream()))


def stream():
    return torch.cuda.current_stream().cuda_stream


def warm_up(job):
    """Every kernel of torch once, and its pool filled: cudaMalloc and the loading of a kernel may wait for kernels that run, which
    wait for other PEs or, with GPUSHMEM_P2P=0, for a proxy that needs the driver as well."""
    torch.cuda.synchronize()
    held = [torch.empty(N, dtype=torch.int32, device="cuda") for _ in range(100)]
    held[0].copy_(job.ramp + 1)
    held[1].copy_(job.ramp * 2 + 3)
    held[0].add_(10)
    torch.equal(held[0].clone(), torch.zeros_like(held[1]))
    torch.cuda.synchronize()


def rounds(job, count):
    """torch's kernels before and behind ours; the host does not wait in between."""
    warm_up(job)
    got = []
    for i in range(count):
        job.outbox.tensor.copy_(job.ramp + (1000 * i + job.me))
        job.put(job.outbox.address)
        job.barrier()
        got.append(job.inbox.tensor.clone())
        job.barrier()
        own = job.ramp * 2 + (1000 * i + job.me)  # a source that is torch's own
        job.put(own.data_ptr())
        job.barrier()
        got.append(job.inbox.tensor.clone())
        fetched = torch.empty_like(job.ramp)
        job.check(job.lib.gpushmem_getmem_on_stream(fetched.data_ptr(), job.outbox.address, 4 * N, job.left, stream()))
        got.append(fetched)
        job.barrier()
    for i in range(count):
        expected = 1000 * i + job.left
        assert torch.equal(got[3 * i], job.ramp + expected), f"round {i}: put from the heap"
        assert torch.equal(got[3 * i + 1], job.ramp * 2 + expected), f"round {i}: put from torch's memory"
        assert torch.equal(got[3 * i + 2], job.ramp + expected), f"round {i}: get into torch's memory"


def graph(job):
    """The same in a graph that torch captures and replays."""
    result = torch.zeros_like(job.ramp)
    job.outbox.tensor.copy_(job.ramp + job.me)
    job.barrier()
    torch.cuda.synchronize()
    captured = torch.cuda.CUDAGraph()
    with torch.cuda.graph(captured):
        job.outbox.tensor.add_(10)
        job.put(job.outbox.address)
        job.barrier()
        result.copy_(job.inbox.tensor)
        job.barrier()
    for i in range(1, 21):
        captured.replay()
        assert torch.equal(result, job.ramp + job.left + 10 * i), f"replay {i}"


def main():
    rank = int(os.environ.get("GPUSHMEM_RUN_PE", "0"))
    torch.cuda.set_device(rank % torch.cuda.device_count())
    before = torch.arange(1000, device="cuda") * 3  # torch's context is there first
    job = Job(sys.argv[1])
    device = torch.cuda.current_device()
    assert job.inbox.tensor.device.index == device, "the heap is on another GPU than torch's tensors"
    rounds(job, 5)
    with torch.cuda.stream(torch.cuda.Stream()):
        rounds(job, 5)
    torch.cuda.synchronize()
    graph(job)
    torch.cuda.synchronize()
    job.check(job.lib.gpushmem_device_error())
    assert torch.equal(before, torch.arange(1000, device="cuda") * 3)
    for memory in (job.outbox, job.inbox):
        memory.tensor = None
        job.check(job.lib.gpushmem_free(memory.address))
    job.check(job.lib.gpushmem_finalize())
    assert int(torch.ones(10, device="cuda").sum()) == 10  # torch goes on without us
    print(f"torch_test: PE {rank}: ok, torch {torch.__version__}")


if __name__ == "__main__":
    main()
