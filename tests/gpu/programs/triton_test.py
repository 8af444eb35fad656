#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Kernels of Triton that call libnvshmem_device.bc, as frameworks do it: external functions by name, and the module is given its
handle before the first launch.

usage: gpushmem run -n 2 triton_test.py LIBNVSHMEM_DEVICE.BC LIBNVSHMEM_HOST.SO
PYTHONPATH: runtime/python; GPUSHMEM_HOME: the build. Exit code 77: no Triton, or no GPU."""
import ctypes
import os
import sys

try:
    import torch
    import triton
    import triton.language as tl
    from triton.language import core
except ImportError as error:
    print("triton_test: skipped: %s" % error)
    sys.exit(77)
if not torch.cuda.is_available():
    print("triton_test: skipped: torch sees no GPU")
    sys.exit(77)

import gpushmem as shm

N = 3000
SET, GE = tl.constexpr(9), tl.constexpr(5)  # NVSHMEM_SIGNAL_SET, NVSHMEM_CMP_GE
I32, I64 = core.dtype("int32"), core.dtype("int64")


@core.extern
def my_pe(_semantic=None):
    return core.extern_elementwise("", "", [], {(): ("nvshmem_my_pe", I32)}, is_pure=False, _semantic=_semantic)


@core.extern
def n_pes(_semantic=None):
    return core.extern_elementwise("", "", [], {(): ("nvshmem_n_pes", I32)}, is_pure=False, _semantic=_semantic)


@core.extern
def put_block(dest, source, nbytes, pe, _semantic=None):
    return core.extern_elementwise("", "", [dest, source, nbytes, pe], {(I64, I64, I64, I32): ("nvshmemx_putmem_block", I32)},
                                   is_pure=False, _semantic=_semantic)


@core.extern
def get_block(dest, source, nbytes, pe, _semantic=None):
    return core.extern_elementwise("", "", [dest, source, nbytes, pe], {(I64, I64, I64, I32): ("nvshmemx_getmem_block", I32)},
                                   is_pure=False, _semantic=_semantic)


@core.extern
def put_signal_block(dest, source, nbytes, sig, value, op, pe, _semantic=None):
    return core.extern_elementwise("", "", [dest, source, nbytes, sig, value, op, pe],
                                   {(I64, I64, I64, I64, I64, I32, I32): ("nvshmemx_putmem_signal_block", I32)},
                                   is_pure=False, _semantic=_semantic)


@core.extern
def signal_wait(sig, cmp, value, _semantic=None):
    return core.extern_elementwise("", "", [sig, cmp, value], {(I64, I32, I64): ("nvshmem_signal_wait_until", I64)},
                                   is_pure=False, _semantic=_semantic)


@core.extern
def barrier_block(_semantic=None):
    return core.extern_elementwise("", "", [], {(): ("nvshmemx_barrier_all_block", I32)}, is_pure=False, _semantic=_semantic)


@core.extern
def sum_block(team, dest, source, count, _semantic=None):
    return core.extern_elementwise("", "", [team, dest, source, count],
                                   {(I32, I64, I64, I64): ("nvshmemx_int32_sum_reduce_block", I32)}, is_pure=False,
                                   _semantic=_semantic)


@triton.jit
def tell_pes(out):
    tl.store(out, my_pe())
    tl.store(out + 1, n_pes())


@triton.jit
def put_to(dest, source, count, pe):
    put_block(dest.to(tl.int64), source.to(tl.int64), (count * 4).to(tl.int64), pe)
    barrier_block()


@triton.jit
def get_from(dest, source, count, pe):
    barrier_block()
    get_block(dest.to(tl.int64), source.to(tl.int64), (count * 4).to(tl.int64), pe)
    barrier_block()


@triton.jit(do_not_specialize=["value"])
def pass_on(dest, source, out, sig, value, pe, count, BLOCK: tl.constexpr):
    """What comes from the left is changed and stored, once its signal is here."""
    put_signal_block(dest.to(tl.int64), source.to(tl.int64), (count * 4).to(tl.int64), sig.to(tl.int64), value.to(tl.int64),
                     SET, pe)
    signal_wait(sig.to(tl.int64), GE, value.to(tl.int64))
    tl.debug_barrier()
    for begin in range(0, count, BLOCK):
        at = begin + tl.arange(0, BLOCK)
        got = tl.load(dest + at, mask=at < count, volatile=True)
        tl.store(out + at, got + 1, mask=at < count)
    barrier_block()


@triton.jit
def add_up(dest, source, count):
    barrier_block()
    sum_block(0, dest.to(tl.int64), source.to(tl.int64), count.to(tl.int64))


class Library:
    def __init__(self, bitcode, host):
        self.extern = {"libnvshmem_device": bitcode}
        self.host = ctypes.CDLL(host)
        self.host.nvshmemx_cumodule_init.argtypes = [ctypes.c_void_p]
        self.known = set()

    def launch(self, kernel, *arguments, **meta):
        compiled = kernel.warmup(*arguments, grid=(1,), extern_libs=self.extern, **meta)
        compiled._init_handles()
        if compiled.module not in self.known:
            status = self.host.nvshmemx_cumodule_init(compiled.module)
            assert status == 0, "nvshmemx_cumodule_init: %d" % status
            self.known.add(compiled.module)
        kernel[(1,)](*arguments, extern_libs=self.extern, **meta)


def run(library, me, n):
    right, left = (me + 1) % n, (me - 1) % n
    dest, source, result = (shm.tensor(N, torch.int32) for _ in range(3))
    sig = shm.tensor(1, torch.int64)
    ramp = torch.arange(N, dtype=torch.int32, device="cuda")
    for one in (dest, result, sig):
        one.zero_()
    source.copy_(ramp + 10000 * me)
    out = torch.zeros(N, dtype=torch.int32, device="cuda")
    torch.cuda.synchronize()
    shm.barrier()
    library.launch(tell_pes, out)
    assert out[:2].tolist() == [me, n]
    library.launch(put_to, dest, source, N, right)
    assert torch.equal(dest, ramp + 10000 * left), "putmem_block"
    library.launch(get_from, out, source, N, left)
    assert torch.equal(out, ramp + 10000 * left), "getmem_block"
    for value in range(1, 6):
        source.copy_(ramp * value + me)
        library.launch(pass_on, dest, source, out, sig, value, right, N, BLOCK=1024)
        assert torch.equal(out, ramp * value + left + 1), "putmem_signal_block and signal_wait_until, %d" % value
    library.launch(add_up, result, source, N)
    assert torch.equal(result, ramp * 5 * n + sum(range(n))), "int32_sum_reduce_block"
    torch.cuda.synchronize()
    shm.barrier()
    for one in (sig, result, source, dest):
        shm.free(one)


def main():
    rank = int(os.environ.get("GPUSHMEM_RUN_PE", "0"))
    torch.cuda.set_device(rank % torch.cuda.device_count())
    warm = torch.arange(N, dtype=torch.int32, device="cuda")
    assert torch.equal(warm * 2 + 1, (warm + warm).add(1)) and not torch.equal(warm, torch.zeros_like(warm).copy_(warm + 3))
    with shm.init() as job:
        run(Library(*sys.argv[1:]), job.my_pe, job.n_pes)
    print("triton_test: PE %d: ok, Triton %s" % (rank, triton.__version__))


if __name__ == "__main__":
    main()
