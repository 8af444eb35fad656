# SPDX-License-Identifier: BSD-3-Clause
"""Collectives, by the name that programs call them by: nvshmem.core.collective.alltoall."""
from . import alltoall, barrier, barrier_all, broadcast, fcollect, reduce, reducescatter, sync, sync_all

__all__ = ["alltoall", "barrier", "barrier_all", "broadcast", "fcollect", "reduce", "reducescatter", "sync", "sync_all"]
