# SPDX-License-Identifier: BSD-3-Clause
"""Moving data, by the name that programs call it by: nvshmem.core.rma.put."""
from . import fence, get, put, put_signal, quiet, signal_op, signal_wait

__all__ = ["fence", "get", "put", "put_signal", "quiet", "signal_op", "signal_wait"]
