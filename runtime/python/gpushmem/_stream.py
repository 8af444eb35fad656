# SPDX-License-Identifier: BSD-3-Clause
"""CUDA streams, however a library names them."""
from __future__ import annotations

import operator

from . import errors
from ._types import Stream


def handle(stream: Stream) -> int:
    """cudaStream_t of a number, a torch.cuda.Stream, a cupy stream, or anything with __cuda_stream__. 0 is the default stream."""
    for name in ("cuda_stream", "ptr"):
        if hasattr(stream, name):
            return getattr(stream, name)
    if hasattr(stream, "__cuda_stream__"):
        return stream.__cuda_stream__()[1]
    try:
        return operator.index(stream)
    except TypeError:
        raise errors.InvalidError("a %s is no stream: a number, or an object with cuda_stream, ptr or __cuda_stream__ is"
                                  % type(stream).__name__) from None
