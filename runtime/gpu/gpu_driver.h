// SPDX-License-Identifier: BSD-3-Clause
// The part of the CUDA driver API that this library uses, declared by itself and found at run time:
// the library is built without the CUDA toolkit and starts on machines without a driver.
// tests/house/compile compares the declarations with cuda.h. Names and values: "CUDA Driver API"
// reference manual, NVIDIA.
#ifndef GPSH_GPU_DRIVER_H
#define GPSH_GPU_DRIVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef int gpsh_cu_result;
typedef int gpsh_cu_device;
typedef unsigned long long gpsh_cu_ptr;
typedef unsigned long long gpsh_cu_allocation;
typedef struct gpsh_cu_context_opaque *gpsh_cu_context;
typedef struct CUstream_st *gpsh_cu_stream; // the public gpushmem_stream_t
typedef struct gpsh_cu_module_opaque *gpsh_cu_module;
typedef struct gpsh_cu_function_opaque *gpsh_cu_function;
typedef struct gpsh_cu_library_opaque *gpsh_cu_library;

enum gpsh_cu_result_code {
    GPSH_CU_SUCCESS = 0,
    GPSH_CU_INVALID_VALUE = 1,
    GPSH_CU_OUT_OF_MEMORY = 2,
    GPSH_CU_NOT_INITIALIZED = 3,
    GPSH_CU_NO_DEVICE = 100,
    GPSH_CU_NOT_READY = 600,
    GPSH_CU_ALREADY_REGISTERED = 712,
    GPSH_CU_NOT_SUPPORTED = 801,
    GPSH_CU_SYSTEM_DRIVER_MISMATCH = 803,
};

enum { GPSH_CU_LOADING_LAZY = 2 };

enum gpsh_cu_device_attribute {
    GPSH_CU_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 75,
    GPSH_CU_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 76,
    GPSH_CU_ATTRIBUTE_PAGEABLE_ACCESS = 88,
    GPSH_CU_ATTRIBUTE_VMM = 102,
    GPSH_CU_ATTRIBUTE_POSIX_FD = 103,
    GPSH_CU_ATTRIBUTE_RDMA_WITH_VMM = 110,
    GPSH_CU_ATTRIBUTE_RDMA = 116,
    GPSH_CU_ATTRIBUTE_RDMA_FLUSH_OPTIONS = 117,
    GPSH_CU_ATTRIBUTE_RDMA_WRITES_ORDERING = 118,
    GPSH_CU_ATTRIBUTE_DMA_BUF = 124,
    GPSH_CU_ATTRIBUTE_ATOMIC_REDUCTION = 148, // CUDA 13.1
};

enum {
    GPSH_CU_CONTEXT_SYNC_MEMOPS = 0x80, // CUDA 12.1
    GPSH_CU_STREAM_NON_BLOCKING = 1,
    GPSH_CU_HOST_PORTABLE = 1,
    GPSH_CU_HOST_DEVICEMAP = 2,
    GPSH_CU_HOST_IOMEMORY = 4,
    GPSH_CU_ALLOCATION_PINNED = 1,
    GPSH_CU_HANDLE_POSIX_FD = 1,
    GPSH_CU_LOCATION_DEVICE = 1,
    GPSH_CU_ACCESS_READWRITE = 3,
    GPSH_CU_RANGE_DMA_BUF_FD = 1,
    GPSH_CU_RANGE_MAPPING_PCIE = 1,
    GPSH_CU_WRITES_ORDERED_TO_OWNER = 100,
    GPSH_CU_FLUSH_OPTION_HOST = 1,
    GPSH_CU_FLUSH_CURRENT_CONTEXT = 0,
    GPSH_CU_FLUSH_TO_OWNER = 100,
    GPSH_CU_IPC_LAZY_PEER_ACCESS = 1,
    GPSH_CU_POINTER_MEMORY_TYPE = 2,
    GPSH_CU_POINTER_ORDINAL = 9,
    GPSH_CU_POINTER_RANGE_START = 11,
    GPSH_CU_POINTER_RANGE_SIZE = 12,
    GPSH_CU_MEMORY_DEVICE = 2,
    GPSH_CU_GRANULARITY_RECOMMENDED = 1,
    GPSH_CU_WAIT_GEQ = 0,
    GPSH_CU_CAPTURE_NONE = 0,
    GPSH_CU_CAPTURE_MODE_RELAXED = 2,
    GPSH_CU_FUNCTION_PTX_VERSION = 5,
    GPSH_CU_LAUNCH_EARLY = 6,
    GPSH_CU_MEMORY_STORE_32 = 2,
    GPSH_CU_MEMORY_STORE_64 = 5,
    GPSH_CU_MEMORY_REDUCE = 8, // CUDA 13.1, as are the five below
    GPSH_CU_REDUCE_ADD = 0,
    GPSH_CU_REDUCE_AND = 5,
    GPSH_CU_REDUCE_OR = 6,
    GPSH_CU_REDUCE_U32 = 14,
    GPSH_CU_REDUCE_U64 = 22,
};

struct gpsh_cu_location {
    int type;
    int id;
};

struct gpsh_cu_allocation_properties {
    int type;
    int handle_types;
    struct gpsh_cu_location location;
    void *unused_on_linux;
    struct {
        unsigned char compression;
        unsigned char rdma_capable;
        unsigned short usage;
        unsigned char reserved[4];
    } flags;
};

struct gpsh_cu_access {
    struct gpsh_cu_location location;
    int flags;
};

struct gpsh_cu_ipc_handle {
    char bytes[64];
};

struct gpsh_cu_uuid {
    char bytes[16];
};

struct gpsh_cu_launch_attribute {
    int id;
    char padding[4];
    union {
        int on;
        char bytes[64];
    } value;
};

struct gpsh_cu_launch_config {
    unsigned grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes;
    gpsh_cu_stream stream;
    struct gpsh_cu_launch_attribute *attributes;
    unsigned n_attributes;
};

// An operation on one word that the front end of a stream carries out, without a kernel.
union gpsh_cu_memory_op {
    struct {
        uint32_t kind, padding; // GPSH_CU_MEMORY_STORE_32 or _64
        gpsh_cu_ptr to;
        uint64_t value;
        uint32_t flags;
        gpsh_cu_ptr alias;
    } store;
    struct {
        uint32_t kind, flags; // GPSH_CU_MEMORY_REDUCE
        uint32_t how, type;
        gpsh_cu_ptr to;
        uint64_t value;
        gpsh_cu_ptr alias;
    } reduce;
    uint64_t all[6];
};

// X(field, symbol in libcuda, parameters). Symbols with a _v2 are the ones cuda.h maps the plain
// names to.
#define GPSH_CU_FUNCTIONS(X)                                                                       \
    X(init, cuInit, (unsigned flags))                                                              \
    X(driver_version, cuDriverGetVersion, (int *version))                                          \
    X(error_name, cuGetErrorName, (gpsh_cu_result code, const char **name))                        \
    X(error_string, cuGetErrorString, (gpsh_cu_result code, const char **text))                    \
    X(device_count, cuDeviceGetCount, (int *count))                                                \
    X(device_get, cuDeviceGet, (gpsh_cu_device * device, int ordinal))                             \
    X(device_name, cuDeviceGetName, (char *name, int bytes, gpsh_cu_device device))                \
    X(device_attribute, cuDeviceGetAttribute, (int *value, int attribute, gpsh_cu_device device))  \
    X(device_pci, cuDeviceGetPCIBusId, (char *text, int bytes, gpsh_cu_device device))             \
    X(device_uuid, cuDeviceGetUuid_v2, (struct gpsh_cu_uuid * uuid, gpsh_cu_device device))        \
    X(primary_retain, cuDevicePrimaryCtxRetain,                                                    \
      (gpsh_cu_context * context, gpsh_cu_device device))                                          \
    X(context_current, cuCtxGetCurrent, (gpsh_cu_context * context))                               \
    X(context_set, cuCtxSetCurrent, (gpsh_cu_context context))                                     \
    X(context_device, cuCtxGetDevice, (gpsh_cu_device * device))                                   \
    X(context_push, cuCtxPushCurrent_v2, (gpsh_cu_context context))                                \
    X(context_pop, cuCtxPopCurrent_v2, (gpsh_cu_context * context))                                \
    X(memory_info, cuMemGetInfo_v2, (size_t * free, size_t * total))                               \
    X(memory_alloc, cuMemAlloc_v2, (gpsh_cu_ptr * memory, size_t bytes))                           \
    X(memory_free, cuMemFree_v2, (gpsh_cu_ptr memory))                                             \
    X(host_alloc, cuMemHostAlloc, (void **memory, size_t bytes, unsigned flags))                   \
    X(host_free, cuMemFreeHost, (void *memory))                                                    \
    X(pointer_attribute, cuPointerGetAttribute, (void *value, int attribute, gpsh_cu_ptr pointer)) \
    X(address_range, cuMemGetAddressRange_v2,                                                      \
      (gpsh_cu_ptr * base, size_t * bytes, gpsh_cu_ptr pointer))                                   \
    X(vmm_granularity, cuMemGetAllocationGranularity,                                              \
      (size_t * bytes, const struct gpsh_cu_allocation_properties *properties, int option))        \
    X(vmm_create, cuMemCreate,                                                                     \
      (gpsh_cu_allocation * handle, size_t bytes,                                                  \
       const struct gpsh_cu_allocation_properties *properties, unsigned long long flags))          \
    X(vmm_release, cuMemRelease, (gpsh_cu_allocation handle))                                      \
    X(vmm_reserve, cuMemAddressReserve,                                                            \
      (gpsh_cu_ptr * base, size_t bytes, size_t alignment, gpsh_cu_ptr wish,                       \
       unsigned long long flags))                                                                  \
    X(vmm_unreserve, cuMemAddressFree, (gpsh_cu_ptr base, size_t bytes))                           \
    X(vmm_map, cuMemMap,                                                                           \
      (gpsh_cu_ptr base, size_t bytes, size_t offset, gpsh_cu_allocation handle,                   \
       unsigned long long flags))                                                                  \
    X(vmm_unmap, cuMemUnmap, (gpsh_cu_ptr base, size_t bytes))                                     \
    X(vmm_access, cuMemSetAccess,                                                                  \
      (gpsh_cu_ptr base, size_t bytes, const struct gpsh_cu_access *access, size_t count))         \
    X(vmm_export, cuMemExportToShareableHandle,                                                    \
      (void *handle, gpsh_cu_allocation allocation, int type, unsigned long long flags))           \
    X(vmm_import, cuMemImportFromShareableHandle,                                                  \
      (gpsh_cu_allocation * allocation, void *handle, int type))                                   \
    X(ipc_get, cuIpcGetMemHandle, (struct gpsh_cu_ipc_handle * handle, gpsh_cu_ptr memory))        \
    X(ipc_open, cuIpcOpenMemHandle_v2,                                                             \
      (gpsh_cu_ptr * memory, struct gpsh_cu_ipc_handle handle, unsigned flags))                    \
    X(ipc_close, cuIpcCloseMemHandle, (gpsh_cu_ptr memory))                                        \
    X(stream_create, cuStreamCreate, (gpsh_cu_stream * stream, unsigned flags))                    \
    X(stream_destroy, cuStreamDestroy_v2, (gpsh_cu_stream stream))                                 \
    X(stream_sync, cuStreamSynchronize, (gpsh_cu_stream stream))                                   \
    X(stream_query, cuStreamQuery, (gpsh_cu_stream stream))                                        \
    X(stream_capturing, cuStreamIsCapturing, (gpsh_cu_stream stream, int *status))                 \
    X(capture_mode, cuThreadExchangeStreamCaptureMode, (int *mode))                                \
    X(stream_write64, cuStreamWriteValue64_v2,                                                     \
      (gpsh_cu_stream stream, gpsh_cu_ptr to, uint64_t value, unsigned flags))                     \
    X(copy_any, cuMemcpyAsync,                                                                     \
      (gpsh_cu_ptr to, gpsh_cu_ptr from, size_t bytes, gpsh_cu_stream stream))                     \
    X(copy_from_host, cuMemcpyHtoDAsync_v2,                                                        \
      (gpsh_cu_ptr to, const void *from, size_t bytes, gpsh_cu_stream stream))                     \
    X(copy_to_host, cuMemcpyDtoHAsync_v2,                                                          \
      (void *to, gpsh_cu_ptr from, size_t bytes, gpsh_cu_stream stream))                           \
    X(fill8, cuMemsetD8Async,                                                                      \
      (gpsh_cu_ptr to, unsigned char value, size_t bytes, gpsh_cu_stream stream))                  \
    X(module_load, cuModuleLoadData, (gpsh_cu_module * module, const void *image))                 \
    X(module_unload, cuModuleUnload, (gpsh_cu_module module))                                      \
    X(module_function, cuModuleGetFunction,                                                        \
      (gpsh_cu_function * function, gpsh_cu_module module, const char *name))                      \
    X(launch, cuLaunchKernel,                                                                      \
      (gpsh_cu_function function, unsigned grid_x, unsigned grid_y, unsigned grid_z,               \
       unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,                \
       gpsh_cu_stream stream, void **parameters, void **extra))

// The same for what older drivers lack: NULL there.
#define GPSH_CU_OPTIONAL_FUNCTIONS(X)                                                              \
    X(host_register, cuMemHostRegister_v2, (void *memory, size_t bytes, unsigned flags))           \
    X(host_unregister, cuMemHostUnregister, (void *memory))                                        \
    X(vmm_retain, cuMemRetainAllocationHandle, (gpsh_cu_allocation * handle, void *mapped))        \
    X(range_handle, cuMemGetHandleForAddressRange,                                                 \
      (void *handle, gpsh_cu_ptr base, size_t bytes, int type, unsigned long long flags))          \
    X(flush_writes, cuFlushGPUDirectRDMAWrites, (int target, int scope))                           \
    X(module_global, cuModuleGetGlobal_v2,                                                         \
      (gpsh_cu_ptr * variable, size_t * bytes, gpsh_cu_module module, const char *name))           \
    X(library_global, cuLibraryGetGlobal,                                                          \
      (gpsh_cu_ptr * variable, size_t * bytes, gpsh_cu_library library, const char *name))         \
    X(memory_ops, cuStreamBatchMemOp_v2,                                                           \
      (gpsh_cu_stream stream, unsigned count, union gpsh_cu_memory_op *operations,                 \
       unsigned flags))                                                                            \
    X(function_attribute, cuFuncGetAttribute,                                                      \
      (int *value, int attribute, gpsh_cu_function function))                                      \
    X(launch_with, cuLaunchKernelEx,                                                               \
      (const struct gpsh_cu_launch_config *config, gpsh_cu_function function, void **parameters,   \
       void **extra))                                                                              \
    X(loading_mode, cuModuleGetLoadingMode, (int *mode))                                           \
    X(function_module, cuFuncGetModule, (gpsh_cu_module * module, gpsh_cu_function function))      \
    X(function_count, cuModuleGetFunctionCount, (unsigned *count, gpsh_cu_module module))          \
    X(functions, cuModuleEnumerateFunctions,                                                       \
      (gpsh_cu_function * functions, unsigned count, gpsh_cu_module module))                       \
    X(function_load, cuFuncLoad, (gpsh_cu_function function))                                      \
    X(context_flags, cuCtxGetFlags, (unsigned *flags))                                             \
    X(context_set_flags, cuCtxSetFlags, (unsigned flags))

struct gpsh_cu_functions {
#define GPSH_CU_FIELD(field, symbol, parameters) gpsh_cu_result(*field) parameters;
    GPSH_CU_FUNCTIONS(GPSH_CU_FIELD)
    GPSH_CU_OPTIONAL_FUNCTIONS(GPSH_CU_FIELD)
#undef GPSH_CU_FIELD
};

extern struct gpsh_cu_functions gpsh_cu;

// Loads libcuda.so.1 and initialises it, once. GPUSHMEM_ERR_UNSUPPORTED with a sentence that says
// why there is no usable driver.
int gpsh_gpu_load_driver(void);
int gpsh_gpu_driver_version(void); // 13000 is 13.0; 0 before loading

// GPUSHMEM_ERR_CUDA (or _NO_MEMORY) with a sentence: what was tried, CUDA's name for the error, and
// its text.
int gpsh_gpu_fail(gpsh_cu_result code, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
