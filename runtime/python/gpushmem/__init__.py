# SPDX-License-Identifier: BSD-3-Clause
"""gpushmem: one-sided communication between the processing elements (PEs) of a parallel job.

    import gpushmem as shm

    with shm.init() as job:                          # under `gpushmem run -n 4 python3 ring.py`
        inbox, flag = shm.zeros(4, "float64"), shm.zeros(1, "uint64")
        right = (job.my_pe + 1) % job.n_pes
        shm.put_signal(inbox, inbox.numpy() + job.my_pe, flag[0], 1, right)
        shm.signal_wait(flag[0], ">=", 1)            # the left neighbour's data is here

Failures are exceptions (Error) with the library's sentence. Contracts are those of gpushmem/gpushmem.h; docs/python.md has
examples. Calls release the GIL while they wait."""
from ._array import Array, array, empty, free, tensor, zeros
from ._atomics import (atomic_add, atomic_and, atomic_compare_swap, atomic_fetch, atomic_fetch_add, atomic_fetch_and,
                       atomic_fetch_inc, atomic_fetch_or, atomic_fetch_xor, atomic_inc, atomic_or, atomic_set, atomic_swap,
                       atomic_xor)
from ._coll import alltoall, barrier, broadcast, collect, exscan, fcollect, inscan, reduce, reducescatter, sync
from ._job import (Job, failed_pes, finalize, get_unique_id, global_exit, heap_info, init, initialized, my_pe, n_pes, node_my_pe,
                   node_n_pes, version)
from ._lock import Lock
from ._rma import Context, SignalOp, fence, g, get, p, put, put_signal, quiet, register, signal, unregister
from ._team import NODE, SAME_RANK, SHARED, WORLD, Team
from ._wait import (Cmp, signal_fetch, signal_wait, test, test_all, test_any, test_some, wait_until, wait_until_all,
                    wait_until_any, wait_until_some)
from .errors import (AddressError, AlignmentError, AsymmetryError, BootstrapError, CudaError, DtypeError, Error, InvalidError,
                     NoMemoryError, PEError, PEFailedError, PeerDataError, RingError, SettingError, StateError, SystemCallError,
                     TransportError, UnreachableError, UnsupportedError, WaitTimeoutError)

__version__ = "0.1.0"
__all__ = sorted(name for name in dir() if not name.startswith("_") and name != "errors")
