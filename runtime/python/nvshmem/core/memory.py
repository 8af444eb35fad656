# SPDX-License-Identifier: BSD-3-Clause
"""Buffers, by the name that programs call them by: nvshmem.core.memory.buffer."""
from . import buffer, free, get_peer_buffer

__all__ = ["buffer", "free", "get_peer_buffer"]
