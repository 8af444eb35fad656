# SPDX-License-Identifier: BSD-3-Clause
"""What arguments may be, for those who check types: by what numpy, torch and cupy give, so that none of them has to be there."""
from typing import TYPE_CHECKING, Any, Dict, Protocol, Tuple, Union

if TYPE_CHECKING:
    from ._array import Array
    from ._dtypes import Dtype


class HasArrayInterface(Protocol):
    """numpy.ndarray."""
    @property
    def __array_interface__(self) -> Dict[str, Any]: ...


class HasCudaArrayInterface(Protocol):
    """cupy.ndarray, and arrays of numba on a GPU."""
    @property
    def __cuda_array_interface__(self) -> Dict[str, Any]: ...


class HasDataPointer(Protocol):
    """torch.Tensor."""
    def data_ptr(self) -> int: ...


class HasName(Protocol):
    """numpy.dtype."""
    @property
    def name(self) -> str: ...


class IsTorchDtype(Protocol):
    """torch.dtype."""
    @property
    def is_floating_point(self) -> bool: ...


class HasCudaStream(Protocol):
    """torch.cuda.Stream."""
    @property
    def cuda_stream(self) -> int: ...


class HasStreamPointer(Protocol):
    """cupy.cuda.Stream."""
    @property
    def ptr(self) -> int: ...


class HasCudaStreamMethod(Protocol):
    """Streams of cuda.core."""
    def __cuda_stream__(self) -> Tuple[int, int]: ...


Symmetric = Union["Array", HasArrayInterface, HasCudaArrayInterface, HasDataPointer]
"""An array of gpushmem.zeros and its kin, or what its numpy() or torch() gave."""
Local = Union[Symmetric, bytes, bytearray, memoryview]
"""Any memory: numpy arrays, tensors, buffers; symmetric arrays, too."""
DtypeLike = Union[str, type, "Dtype", HasName, IsTorchDtype]
"""A name, a dtype of numpy or torch, or int, float, complex, bool."""
Number = Union[int, float, complex]
Stream = Union[int, HasCudaStream, HasStreamPointer, HasCudaStreamMethod]
"""A CUDA stream, however a library names it."""
