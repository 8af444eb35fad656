// SPDX-License-Identifier: BSD-3-Clause
// The declarations of the CUDA driver API in runtime/gpu_driver.h against the toolkit's own. That
// it compiles is the test.
#include <cuda.h>

#include "gpu/gpu_driver.h"

#define SAME(ours, theirs) _Static_assert((int)(ours) == (int)(theirs), #ours " is not " #theirs)
#define SIZE(ours, theirs)                                                                         \
    _Static_assert(sizeof(ours) == sizeof(theirs), #ours " has not the size of " #theirs)
#define FIELD(ours, a, theirs, b)                                                                  \
    _Static_assert(offsetof(ours, a) == offsetof(theirs, b),                                       \
                   #ours "." #a " lies elsewhere than " #theirs "." #b)

SAME(GPSH_CU_SUCCESS, CUDA_SUCCESS);
SAME(GPSH_CU_INVALID_VALUE, CUDA_ERROR_INVALID_VALUE);
SAME(GPSH_CU_OUT_OF_MEMORY, CUDA_ERROR_OUT_OF_MEMORY);
SAME(GPSH_CU_NOT_INITIALIZED, CUDA_ERROR_NOT_INITIALIZED);
SAME(GPSH_CU_NO_DEVICE, CUDA_ERROR_NO_DEVICE);
SAME(GPSH_CU_NOT_READY, CUDA_ERROR_NOT_READY);
SAME(GPSH_CU_NOT_SUPPORTED, CUDA_ERROR_NOT_SUPPORTED);
SAME(GPSH_CU_SYSTEM_DRIVER_MISMATCH, CUDA_ERROR_SYSTEM_DRIVER_MISMATCH);
SAME(GPSH_CU_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
SAME(GPSH_CU_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
SAME(GPSH_CU_ATTRIBUTE_VMM, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED);
SAME(GPSH_CU_ATTRIBUTE_POSIX_FD, CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED);
SAME(GPSH_CU_ATTRIBUTE_RDMA_WITH_VMM, CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED);
SAME(GPSH_CU_ATTRIBUTE_RDMA, CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED);
SAME(GPSH_CU_ATTRIBUTE_RDMA_WRITES_ORDERING, CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WRITES_ORDERING);
SAME(GPSH_CU_ATTRIBUTE_RDMA_FLUSH_OPTIONS,
     CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_FLUSH_WRITES_OPTIONS);
SAME(GPSH_CU_WRITES_ORDERED_TO_OWNER, CU_GPU_DIRECT_RDMA_WRITES_ORDERING_OWNER);
SAME(GPSH_CU_FLUSH_OPTION_HOST, CU_FLUSH_GPU_DIRECT_RDMA_WRITES_OPTION_HOST);
SAME(GPSH_CU_FLUSH_CURRENT_CONTEXT, CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TARGET_CURRENT_CTX);
SAME(GPSH_CU_FLUSH_TO_OWNER, CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TO_OWNER);
SAME(GPSH_CU_ATTRIBUTE_DMA_BUF, CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED);
SAME(GPSH_CU_STREAM_NON_BLOCKING, CU_STREAM_NON_BLOCKING);
SAME(GPSH_CU_HOST_PORTABLE, CU_MEMHOSTALLOC_PORTABLE);
SAME(GPSH_CU_HOST_DEVICEMAP, CU_MEMHOSTALLOC_DEVICEMAP);
SAME(GPSH_CU_ALLOCATION_PINNED, CU_MEM_ALLOCATION_TYPE_PINNED);
SAME(GPSH_CU_HANDLE_POSIX_FD, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
SAME(GPSH_CU_LOCATION_DEVICE, CU_MEM_LOCATION_TYPE_DEVICE);
SAME(GPSH_CU_ACCESS_READWRITE, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
SAME(GPSH_CU_RANGE_DMA_BUF_FD, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD);
#if CUDA_VERSION >= 12080
SAME(GPSH_CU_RANGE_MAPPING_PCIE, CU_MEM_RANGE_FLAG_DMA_BUF_MAPPING_TYPE_PCIE);
#endif
SAME(GPSH_CU_IPC_LAZY_PEER_ACCESS, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
SAME(GPSH_CU_POINTER_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_MEMORY_TYPE);
SAME(GPSH_CU_POINTER_ORDINAL, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL);
SAME(GPSH_CU_POINTER_RANGE_START, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR);
SAME(GPSH_CU_POINTER_RANGE_SIZE, CU_POINTER_ATTRIBUTE_RANGE_SIZE);
SAME(GPSH_CU_ATTRIBUTE_PAGEABLE_ACCESS, CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS);
SAME(GPSH_CU_MEMORY_DEVICE, CU_MEMORYTYPE_DEVICE);
SAME(GPSH_CU_GRANULARITY_RECOMMENDED, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED);
SAME(GPSH_CU_WAIT_GEQ, CU_STREAM_WAIT_VALUE_GEQ);
SAME(GPSH_CU_CAPTURE_NONE, CU_STREAM_CAPTURE_STATUS_NONE);
SAME(GPSH_CU_CAPTURE_MODE_RELAXED, CU_STREAM_CAPTURE_MODE_RELAXED);
SAME(GPSH_CU_LOADING_LAZY, CU_MODULE_LAZY_LOADING);
SAME(GPSH_CU_FUNCTION_PTX_VERSION, CU_FUNC_ATTRIBUTE_PTX_VERSION);
#if CUDA_VERSION >= 11080
SAME(GPSH_CU_LAUNCH_EARLY, CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION);
SIZE(struct gpsh_cu_launch_attribute, CUlaunchAttribute);
SIZE(struct gpsh_cu_launch_config, CUlaunchConfig);
FIELD(struct gpsh_cu_launch_attribute, value, CUlaunchAttribute, value);
FIELD(struct gpsh_cu_launch_config, shared_bytes, CUlaunchConfig, sharedMemBytes);
FIELD(struct gpsh_cu_launch_config, stream, CUlaunchConfig, hStream);
FIELD(struct gpsh_cu_launch_config, attributes, CUlaunchConfig, attrs);
FIELD(struct gpsh_cu_launch_config, n_attributes, CUlaunchConfig, numAttrs);
#endif

SIZE(gpsh_cu_result, CUresult);
SIZE(gpsh_cu_device, CUdevice);
SIZE(gpsh_cu_ptr, CUdeviceptr);
SIZE(gpsh_cu_allocation, CUmemGenericAllocationHandle);
SIZE(struct gpsh_cu_location, CUmemLocation);
SIZE(struct gpsh_cu_allocation_properties, CUmemAllocationProp);
SIZE(struct gpsh_cu_access, CUmemAccessDesc);
SIZE(struct gpsh_cu_ipc_handle, CUipcMemHandle);
SIZE(struct gpsh_cu_uuid, CUuuid);
_Static_assert(_Generic((gpsh_cu_stream)0, CUstream : 1, default : 0),
               "streams are of CUDA's own type");

FIELD(struct gpsh_cu_location, id, CUmemLocation, id);
FIELD(struct gpsh_cu_allocation_properties, handle_types, CUmemAllocationProp,
      requestedHandleTypes);
FIELD(struct gpsh_cu_allocation_properties, location, CUmemAllocationProp, location);
FIELD(struct gpsh_cu_allocation_properties, flags.rdma_capable, CUmemAllocationProp,
      allocFlags.gpuDirectRDMACapable);
FIELD(struct gpsh_cu_allocation_properties, flags.usage, CUmemAllocationProp, allocFlags.usage);
FIELD(struct gpsh_cu_access, flags, CUmemAccessDesc, flags);
SIZE(union gpsh_cu_memory_op, CUstreamBatchMemOpParams);
SAME(GPSH_CU_MEMORY_STORE_32, CU_STREAM_MEM_OP_WRITE_VALUE_32);
SAME(GPSH_CU_MEMORY_STORE_64, CU_STREAM_MEM_OP_WRITE_VALUE_64);
FIELD(union gpsh_cu_memory_op, store.to, CUstreamBatchMemOpParams, writeValue.address);
FIELD(union gpsh_cu_memory_op, store.value, CUstreamBatchMemOpParams, writeValue.value);
FIELD(union gpsh_cu_memory_op, store.flags, CUstreamBatchMemOpParams, writeValue.flags);
#if CUDA_VERSION >= 13010
SAME(GPSH_CU_ATTRIBUTE_ATOMIC_REDUCTION, CU_DEVICE_ATTRIBUTE_ATOMIC_REDUCTION_SUPPORTED);
SAME(GPSH_CU_MEMORY_REDUCE, CU_STREAM_MEM_OP_ATOMIC_REDUCTION);
SAME(GPSH_CU_REDUCE_ADD, CU_STREAM_ATOMIC_REDUCTION_OP_ADD);
SAME(GPSH_CU_REDUCE_AND, CU_STREAM_ATOMIC_REDUCTION_OP_AND);
SAME(GPSH_CU_REDUCE_OR, CU_STREAM_ATOMIC_REDUCTION_OP_OR);
SAME(GPSH_CU_REDUCE_U32, CU_STREAM_ATOMIC_REDUCTION_UNSIGNED_32);
SAME(GPSH_CU_REDUCE_U64, CU_STREAM_ATOMIC_REDUCTION_UNSIGNED_64);
FIELD(union gpsh_cu_memory_op, reduce.how, CUstreamBatchMemOpParams, atomicReduction.reductionOp);
FIELD(union gpsh_cu_memory_op, reduce.type, CUstreamBatchMemOpParams, atomicReduction.dataType);
FIELD(union gpsh_cu_memory_op, reduce.to, CUstreamBatchMemOpParams, atomicReduction.address);
FIELD(union gpsh_cu_memory_op, reduce.value, CUstreamBatchMemOpParams, atomicReduction.value);
#endif

extern int gpu_driver_types_agree;
