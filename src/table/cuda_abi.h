// SPDX-License-Identifier: Apache-2.0
//
// table: the binary interface of the CUDA driver, in our own declarations.
//
// A build needs no CUDA toolkit: these declarations are all that Kiln knows of
// the driver, and a test compiled only where cuda.h exists compares every
// value, size, offset and signature with it. Both headers may be included in
// one file: the names here are ours, and the handles are pointers to the same
// incomplete structs, so that a host program's own CUstream needs no cast.
//
// Enumerations of the driver are fixed-size integers here: an enumeration from
// outside may have a value that this header has no name for.
#ifndef KILN_SRC_TABLE_CUDA_ABI_H_
#define KILN_SRC_TABLE_CUDA_ABI_H_

#include <stddef.h>
#include <stdint.h>

// Handles. Owned by the driver. thread-safe
typedef struct CUctx_st* kiln_cu_context_t;
typedef struct CUstream_st* kiln_cu_stream_t;
typedef struct CUevent_st* kiln_cu_event_t;
typedef struct CUmod_st* kiln_cu_module_t;
typedef struct CUfunc_st* kiln_cu_function_t;
typedef struct CUlib_st* kiln_cu_library_t;
typedef struct CUkern_st* kiln_cu_kernel_t;
typedef struct CUlinkState_st* kiln_cu_link_state_t;
typedef struct CUmemPoolHandle_st* kiln_cu_mempool_t;
typedef struct CUarray_st* kiln_cu_array_t;
typedef struct CUmipmappedArray_st* kiln_cu_mipmapped_array_t;
typedef struct CUgreenCtx_st* kiln_cu_green_context_t;
typedef struct CUdevResourceDesc_st* kiln_cu_resource_desc_t;
typedef struct CUgraph_st* kiln_cu_graph_t;
typedef struct CUgraphNode_st* kiln_cu_graph_node_t;
typedef struct CUgraphExec_st* kiln_cu_graph_exec_t;
typedef struct CUuserObject_st* kiln_cu_user_object_t;
typedef struct CUextSemaphore_st* kiln_cu_semaphore_t;
typedef int kiln_cu_device_t;
typedef unsigned long long kiln_cu_deviceptr_t;

// Enumerations, in the driver's own width. thread-safe
typedef unsigned int kiln_cu_result_t;
typedef unsigned int kiln_cu_device_attribute_t;
typedef unsigned int kiln_cu_function_attribute_t;
typedef unsigned int kiln_cu_pointer_attribute_t;
typedef unsigned int kiln_cu_limit_t;
typedef unsigned int kiln_cu_jit_option_t;
typedef unsigned int kiln_cu_jit_input_t;
typedef unsigned int kiln_cu_library_option_t;
typedef unsigned int kiln_cu_memory_type_t;
typedef unsigned int kiln_cu_proc_address_query_t;
typedef unsigned int kiln_cu_launch_attribute_id_t;
typedef unsigned int kiln_cu_capture_mode_t;
typedef unsigned int kiln_cu_capture_status_t;
typedef unsigned int kiln_cu_mempool_attribute_t;
typedef unsigned int kiln_cu_mem_access_t;
typedef unsigned int kiln_cu_p2p_attribute_t;
typedef unsigned int kiln_cu_mem_advice_t;
typedef unsigned int kiln_cu_mem_range_attribute_t;
typedef unsigned int kiln_cu_copy_order_t;
typedef unsigned int kiln_cu_mem_location_type_t;
typedef unsigned int kiln_cu_mem_allocation_type_t;
typedef unsigned int kiln_cu_mem_handle_type_t;
typedef unsigned int kiln_cu_mem_granularity_t;
typedef unsigned long long kiln_cu_mem_handle_t;
typedef unsigned int kiln_cu_resource_kind_t;
typedef unsigned long long kiln_cu_texture_t;
typedef unsigned long long kiln_cu_surface_t;
typedef unsigned int kiln_cu_graph_node_type_t;
typedef unsigned int kiln_cu_graph_mem_attribute_t;
typedef unsigned int kiln_cu_graph_instantiate_result_t;
typedef unsigned int kiln_cu_graph_update_result_t;
typedef uint64_t kiln_cu_graph_condition_t;

// Callbacks of the driver. They must not call the driver. thread-safe
typedef void (*kiln_cu_host_fn_t)(void* user);
typedef size_t (*kiln_cu_occupancy_fn_t)(int block_size);

// The identity of a device. thread-compatible
typedef struct kiln_cu_uuid_t {
  char bytes[16];
} kiln_cu_uuid_t;

// What an event is opened with in another process. thread-compatible
typedef struct kiln_cu_ipc_event_handle_t {
  char reserved[64];
} kiln_cu_ipc_event_handle_t;

// What an array is made of. thread-compatible
typedef struct kiln_cu_array_desc_t {
  size_t width;   // texels
  size_t height;  // 0: of one dimension
  size_t depth;   // 0: of two
  unsigned int format;
  unsigned int channels;
  unsigned int flags;
} kiln_cu_array_desc_t;

// One side of a copy of boxes. thread-compatible
typedef struct kiln_cu_copy_side_t {
  size_t x_bytes;
  size_t y;
  size_t z;
  size_t level;
  kiln_cu_memory_type_t type;
  const void* host;
  kiln_cu_deviceptr_t device;
  kiln_cu_array_t array;
  void* reserved;
  size_t row_bytes;
  size_t rows;  // of a slice
} kiln_cu_copy_side_t;

// A copy of a box. thread-compatible
typedef struct kiln_cu_copy_3d_t {
  kiln_cu_copy_side_t from;
  kiln_cu_copy_side_t to;
  size_t width_bytes;
  size_t height;
  size_t depth;
} kiln_cu_copy_3d_t;

// What a texture or surface is over. thread-compatible
typedef struct kiln_cu_texels_t {
  unsigned int type;  // KILN_CU_RESOURCE_TYPE_*
  union {
    kiln_cu_array_t array;
    kiln_cu_mipmapped_array_t mipmapped;
    struct {
      kiln_cu_deviceptr_t address;
      unsigned int format;
      unsigned int channels;
      size_t bytes;
    } linear;
    struct {
      kiln_cu_deviceptr_t address;
      unsigned int format;
      unsigned int channels;
      size_t width;
      size_t height;
      size_t row_bytes;
    } pitched;
    int reserved[32];
  } of;
  unsigned int flags;
} kiln_cu_texels_t;

// How a texture is read. thread-compatible
typedef struct kiln_cu_sampler_t {
  unsigned int address[3];
  unsigned int filter;
  unsigned int flags;
  unsigned int anisotropy;
  unsigned int level_filter;
  float level_bias;
  float level_least;
  float level_most;
  float border[4];
  int reserved[12];
} kiln_cu_sampler_t;

// Other formats and levels of an array: never used here. thread-compatible
typedef struct CUDA_RESOURCE_VIEW_DESC_st kiln_cu_texel_view_t;

enum {
  KILN_CU_AD_FORMAT_UNSIGNED_INT8 = 0x01,
  KILN_CU_AD_FORMAT_UNSIGNED_INT16 = 0x02,
  KILN_CU_AD_FORMAT_UNSIGNED_INT32 = 0x03,
  KILN_CU_AD_FORMAT_SIGNED_INT8 = 0x08,
  KILN_CU_AD_FORMAT_SIGNED_INT16 = 0x09,
  KILN_CU_AD_FORMAT_SIGNED_INT32 = 0x0a,
  KILN_CU_AD_FORMAT_HALF = 0x10,
  KILN_CU_AD_FORMAT_FLOAT = 0x20,

  KILN_CU_RESOURCE_TYPE_ARRAY = 0,
  KILN_CU_RESOURCE_TYPE_MIPMAPPED_ARRAY = 1,
  KILN_CU_RESOURCE_TYPE_LINEAR = 2,
  KILN_CU_RESOURCE_TYPE_PITCH2D = 3,

  KILN_CU_TR_ADDRESS_MODE_WRAP = 0,
  KILN_CU_TR_ADDRESS_MODE_CLAMP = 1,
  KILN_CU_TR_ADDRESS_MODE_MIRROR = 2,
  KILN_CU_TR_ADDRESS_MODE_BORDER = 3,
  KILN_CU_TR_FILTER_MODE_POINT = 0,
  KILN_CU_TR_FILTER_MODE_LINEAR = 1,
};
#define KILN_CUDA_ARRAY3D_LAYERED                   0x01
#define KILN_CUDA_ARRAY3D_SURFACE_LDST              0x02
#define KILN_CUDA_ARRAY3D_CUBEMAP                   0x04
#define KILN_CUDA_ARRAY3D_TEXTURE_GATHER            0x08
#define KILN_CU_TRSF_READ_AS_INTEGER                0x01
#define KILN_CU_TRSF_NORMALIZED_COORDINATES         0x02
#define KILN_CU_TRSF_SRGB                           0x10
#define KILN_CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION 0x20
#define KILN_CU_TRSF_SEAMLESS_CUBEMAP               0x40

// A tensor map, aligned as the strictest cuda.h has it. thread-compatible
typedef struct kiln_cu_tensor_map_t {
  _Alignas(128) uint64_t words[16];
} kiln_cu_tensor_map_t;

// Multiprocessors of a device. thread-compatible
typedef struct kiln_cu_sm_resource_t {
  unsigned int count;
  unsigned int least;  // of a part; 0 from a driver that does not report it
  unsigned int step;   // what a part's number is a multiple of; the same
  unsigned int flags;  // 13.1
} kiln_cu_sm_resource_t;

// Resources that a context may be made of. thread-compatible
//
// A driver before 13.1 has nothing at the end, and no more of `sm` than its
// first member before 13.0; the size has always been this.
typedef struct kiln_cu_dev_resource_t {
  kiln_cu_resource_kind_t kind;
  unsigned char inside[92];
  union {
    kiln_cu_sm_resource_t sm;
    unsigned char bytes[40];
  } of;
  struct kiln_cu_dev_resource_t* next;
} kiln_cu_dev_resource_t;

enum { KILN_CU_DEV_RESOURCE_TYPE_SM = 1 };

// Flags of cuGreenCtxCreate and of cuDevSmResourceSplitByCount.
enum {
  KILN_CU_GREEN_CTX_DEFAULT_STREAM = 1,
  KILN_CU_DEV_SM_RESOURCE_SPLIT_IGNORE_SM_COSCHEDULING = 1,
  KILN_CU_DEV_SM_RESOURCE_SPLIT_MAX_POTENTIAL_CLUSTER_SIZE = 2,
};

// Memory of another process, of cuMemAlloc. thread-compatible
typedef struct kiln_cu_ipc_mem_handle_t {
  char reserved[64];
} kiln_cu_ipc_mem_handle_t;

// The same, of a pool. thread-compatible
typedef struct kiln_cu_mempool_export_t {
  unsigned char reserved[64];
} kiln_cu_mempool_export_t;

// KILN_CU_SUCCESS and KILN_CU_ERROR_* (cuda_results.inc).
enum {
  KILN_CU_SUCCESS = 0,
#define KILNI_CUDA_RESULT(name, number, status, sticky, fix) \
  KILN_CU_ERROR_##name = number,
#include "table/cuda_results.inc"
#undef KILNI_CUDA_RESULT
};

// KILN_CU_DEVICE_ATTRIBUTE_* (cuda_attributes.inc).
enum {
#define KILNI_CUDA_ATTRIBUTE(name, number, since, unit) \
  KILN_CU_DEVICE_ATTRIBUTE_##name = number,
#include "table/cuda_attributes.inc"
#undef KILNI_CUDA_ATTRIBUTE
};

enum {
  KILN_CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK = 0,
  KILN_CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES = 1,
  KILN_CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES = 2,
  KILN_CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES = 3,
  KILN_CU_FUNC_ATTRIBUTE_NUM_REGS = 4,
  KILN_CU_FUNC_ATTRIBUTE_PTX_VERSION = 5,
  KILN_CU_FUNC_ATTRIBUTE_BINARY_VERSION = 6,
  KILN_CU_FUNC_ATTRIBUTE_CACHE_MODE_CA = 7,
  KILN_CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES = 8,
  KILN_CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT = 9,
  KILN_CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET = 10,
  KILN_CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH = 11,
  KILN_CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT = 12,
  KILN_CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH = 13,
  KILN_CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED = 14,
  KILN_CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE = 15,
};

enum {
  KILN_CU_POINTER_ATTRIBUTE_CONTEXT = 1,
  KILN_CU_POINTER_ATTRIBUTE_MEMORY_TYPE = 2,
  KILN_CU_POINTER_ATTRIBUTE_DEVICE_POINTER = 3,
  KILN_CU_POINTER_ATTRIBUTE_HOST_POINTER = 4,
  KILN_CU_POINTER_ATTRIBUTE_P2P_TOKENS = 5,
  KILN_CU_POINTER_ATTRIBUTE_SYNC_MEMOPS = 6,
  KILN_CU_POINTER_ATTRIBUTE_BUFFER_ID = 7,
  KILN_CU_POINTER_ATTRIBUTE_IS_MANAGED = 8,
  KILN_CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL = 9,
  KILN_CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE = 10,
  KILN_CU_POINTER_ATTRIBUTE_RANGE_START_ADDR = 11,
  KILN_CU_POINTER_ATTRIBUTE_RANGE_SIZE = 12,
  KILN_CU_POINTER_ATTRIBUTE_MAPPED = 13,
  KILN_CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES = 14,
  KILN_CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE = 15,
  KILN_CU_POINTER_ATTRIBUTE_ACCESS_FLAGS = 16,
  KILN_CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE = 17,
  KILN_CU_POINTER_ATTRIBUTE_MAPPING_SIZE = 18,
  KILN_CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR = 19,
  KILN_CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID = 20,
};

enum {
  KILN_CU_MEMORYTYPE_HOST = 1,
  KILN_CU_MEMORYTYPE_DEVICE = 2,
  KILN_CU_MEMORYTYPE_ARRAY = 3,
  KILN_CU_MEMORYTYPE_UNIFIED = 4,
};

enum {
  KILN_CU_LIMIT_STACK_SIZE = 0,
  KILN_CU_LIMIT_PRINTF_FIFO_SIZE = 1,
  KILN_CU_LIMIT_MALLOC_HEAP_SIZE = 2,
  KILN_CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH = 3,
  KILN_CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT = 4,
  KILN_CU_LIMIT_MAX_L2_FETCH_GRANULARITY = 5,
  KILN_CU_LIMIT_PERSISTING_L2_CACHE_SIZE = 6,
};

enum {
  KILN_CU_JIT_MAX_REGISTERS = 0,
  KILN_CU_JIT_THREADS_PER_BLOCK = 1,
  KILN_CU_JIT_WALL_TIME = 2,
  KILN_CU_JIT_INFO_LOG_BUFFER = 3,
  KILN_CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES = 4,
  KILN_CU_JIT_ERROR_LOG_BUFFER = 5,
  KILN_CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES = 6,
  KILN_CU_JIT_OPTIMIZATION_LEVEL = 7,
  KILN_CU_JIT_TARGET_FROM_CUCONTEXT = 8,
  KILN_CU_JIT_TARGET = 9,
  KILN_CU_JIT_FALLBACK_STRATEGY = 10,
  KILN_CU_JIT_GENERATE_DEBUG_INFO = 11,
  KILN_CU_JIT_LOG_VERBOSE = 12,
  KILN_CU_JIT_GENERATE_LINE_INFO = 13,
  KILN_CU_JIT_CACHE_MODE = 14,
  KILN_CU_JIT_FAST_COMPILE = 16,
  KILN_CU_JIT_GLOBAL_SYMBOL_NAMES = 17,
  KILN_CU_JIT_GLOBAL_SYMBOL_ADDRESSES = 18,
  KILN_CU_JIT_GLOBAL_SYMBOL_COUNT = 19,
  KILN_CU_JIT_LTO = 20,
  KILN_CU_JIT_POSITION_INDEPENDENT_CODE = 30,
};

// Values of KILN_CU_JIT_CACHE_MODE.
enum {
  KILN_CU_JIT_CACHE_OPTION_NONE = 0,
  KILN_CU_JIT_CACHE_OPTION_CG = 1,
  KILN_CU_JIT_CACHE_OPTION_CA = 2,
};

// What a link takes.
enum {
  KILN_CU_JIT_INPUT_CUBIN = 0,
  KILN_CU_JIT_INPUT_PTX = 1,
  KILN_CU_JIT_INPUT_FATBINARY = 2,
  KILN_CU_JIT_INPUT_OBJECT = 3,
  KILN_CU_JIT_INPUT_LIBRARY = 4,
  KILN_CU_JIT_INPUT_NVVM = 5,
};

enum {
  KILN_CU_LIBRARY_HOST_UNIVERSAL_FUNCTION_AND_DATA_TABLE = 0,
  KILN_CU_LIBRARY_BINARY_IS_PRESERVED = 1,
};

// Flags of cuDevicePrimaryCtxSetFlags, cuStreamCreate, cuEventCreate,
// cuMemHostAlloc, cuMemHostRegister and cuGetProcAddress.
enum {
  KILN_CU_CTX_SCHED_AUTO = 0x00,
  KILN_CU_CTX_SCHED_SPIN = 0x01,
  KILN_CU_CTX_SCHED_YIELD = 0x02,
  KILN_CU_CTX_SCHED_BLOCKING_SYNC = 0x04,
  KILN_CU_CTX_SCHED_MASK = 0x07,
  KILN_CU_CTX_MAP_HOST = 0x08,
  KILN_CU_CTX_LMEM_RESIZE_TO_MAX = 0x10,

  KILN_CU_STREAM_DEFAULT = 0,
  KILN_CU_STREAM_NON_BLOCKING = 1,

  KILN_CU_EVENT_DEFAULT = 0,
  KILN_CU_EVENT_BLOCKING_SYNC = 1,
  KILN_CU_EVENT_DISABLE_TIMING = 2,
  KILN_CU_EVENT_INTERPROCESS = 4,

  KILN_CU_EVENT_WAIT_DEFAULT = 0,
  KILN_CU_EVENT_WAIT_EXTERNAL = 1,  // of a stream that is captured

  KILN_CU_MEMHOSTALLOC_PORTABLE = 1,
  KILN_CU_MEMHOSTALLOC_DEVICEMAP = 2,
  KILN_CU_MEMHOSTALLOC_WRITECOMBINED = 4,
  KILN_CU_MEMHOSTREGISTER_PORTABLE = 1,
  KILN_CU_MEMHOSTREGISTER_DEVICEMAP = 2,
  KILN_CU_MEMHOSTREGISTER_IOMEMORY = 4,
  KILN_CU_MEMHOSTREGISTER_READ_ONLY = 8,

  KILN_CU_GET_PROC_ADDRESS_DEFAULT = 0,
  KILN_CU_GET_PROC_ADDRESS_LEGACY_STREAM = 1,
  KILN_CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM = 2,
  KILN_CU_GET_PROC_ADDRESS_SUCCESS = 0,
  KILN_CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND = 1,
  KILN_CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT = 2,
};

// How a thread lives with captures: what it may not call while one is going on.
enum {
  KILN_CU_STREAM_CAPTURE_MODE_GLOBAL = 0,
  KILN_CU_STREAM_CAPTURE_MODE_THREAD_LOCAL = 1,
  KILN_CU_STREAM_CAPTURE_MODE_RELAXED = 2,
};

// The two default streams, as handles.
#define KILN_CU_STREAM_LEGACY     ((kiln_cu_stream_t)(uintptr_t)1)
#define KILN_CU_STREAM_PER_THREAD ((kiln_cu_stream_t)(uintptr_t)2)

// The words of the `extra` list of cuLaunchKernel.
#define KILN_CU_LAUNCH_PARAM_END            ((void*)(uintptr_t)0)
#define KILN_CU_LAUNCH_PARAM_BUFFER_POINTER ((void*)(uintptr_t)1)
#define KILN_CU_LAUNCH_PARAM_BUFFER_SIZE    ((void*)(uintptr_t)2)

enum {
  KILN_CU_LAUNCH_ATTRIBUTE_IGNORE = 0,
  KILN_CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW = 1,
  KILN_CU_LAUNCH_ATTRIBUTE_COOPERATIVE = 2,
  KILN_CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY = 3,
  KILN_CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION = 4,
  KILN_CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE = 5,
  KILN_CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION = 6,
  KILN_CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT = 7,
  KILN_CU_LAUNCH_ATTRIBUTE_PRIORITY = 8,
  KILN_CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP = 9,                // 12.0
  KILN_CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN = 10,                   // 12.0
  KILN_CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION = 11,       // 12.8
  KILN_CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT = 12,           // 12.3
  KILN_CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE = 13,      // 12.4
  KILN_CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT = 14,  // 12.5
  KILN_CU_LAUNCH_ATTRIBUTE_NVLINK_UTIL_CENTRIC_SCHEDULING = 16,    // 13.0
  KILN_CU_LAUNCH_ATTRIBUTE_PORTABLE_CLUSTER_SIZE_MODE = 17,        // 13.2
  KILN_CU_LAUNCH_ATTRIBUTE_SHARED_MEMORY_MODE = 18,                // 13.2
};

// Of an access policy window.
enum {
  KILN_CU_ACCESS_PROPERTY_NORMAL = 0,
  KILN_CU_ACCESS_PROPERTY_STREAMING = 1,
  KILN_CU_ACCESS_PROPERTY_PERSISTING = 2,
};

// Of memory synchronization domains.
enum {
  KILN_CU_LAUNCH_MEM_SYNC_DOMAIN_DEFAULT = 0,
  KILN_CU_LAUNCH_MEM_SYNC_DOMAIN_REMOTE = 1,
};

// Whether a stream is captured: cuStreamIsCapturing.
enum {
  KILN_CU_STREAM_CAPTURE_STATUS_NONE = 0,
  KILN_CU_STREAM_CAPTURE_STATUS_ACTIVE = 1,
  KILN_CU_STREAM_CAPTURE_STATUS_INVALIDATED = 2,
};

// Flags of cuMemAllocManaged.
enum {
  KILN_CU_MEM_ATTACH_GLOBAL = 1,
  KILN_CU_MEM_ATTACH_HOST = 2,
};

// Of a pool: the first three are an int, the rest 64 bits.
enum {
  KILN_CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES = 1,
  KILN_CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC = 2,
  KILN_CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES = 3,
  KILN_CU_MEMPOOL_ATTR_RELEASE_THRESHOLD = 4,
  KILN_CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT = 5,
  KILN_CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH = 6,
  KILN_CU_MEMPOOL_ATTR_USED_MEM_CURRENT = 7,
  KILN_CU_MEMPOOL_ATTR_USED_MEM_HIGH = 8,
};

enum {
  KILN_CU_MEM_ALLOCATION_TYPE_PINNED = 1,
  KILN_CU_MEM_ALLOCATION_TYPE_MANAGED = 2,  // CUDA 13.0
};

enum {
  KILN_CU_MEM_HANDLE_TYPE_NONE = 0,
  KILN_CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR = 1,
};

enum { KILN_CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS = 1 };

enum {
  KILN_CU_MEM_LOCATION_TYPE_NONE = 0,
  KILN_CU_MEM_LOCATION_TYPE_DEVICE = 1,
  KILN_CU_MEM_LOCATION_TYPE_HOST = 2,       // of a pool: CUDA 13.0
  KILN_CU_MEM_LOCATION_TYPE_HOST_NUMA = 3,  // CUDA 12.2
};

enum {
  KILN_CU_MEM_ACCESS_FLAGS_PROT_NONE = 0,
  KILN_CU_MEM_ACCESS_FLAGS_PROT_READ = 1,
  KILN_CU_MEM_ACCESS_FLAGS_PROT_READWRITE = 3,
};

// What is queried of the path from one device to another.
enum {
  KILN_CU_P2P_ATTRIBUTE_PERFORMANCE_RANK = 1,
  KILN_CU_P2P_ATTRIBUTE_ACCESS_SUPPORTED = 2,
  KILN_CU_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED = 3,
  KILN_CU_P2P_ATTRIBUTE_ARRAY_ACCESS_SUPPORTED = 4,
  KILN_CU_P2P_ATTRIBUTE_ONLY_PARTIAL_NATIVE_ATOMIC_SUPPORTED = 5,
};

// Where memory is, or what uses it. thread-compatible
typedef struct kiln_cu_mem_location_t {
  kiln_cu_mem_location_type_t type;
  int id;
} kiln_cu_mem_location_t;

// What is set for managed memory, and queried.
enum {
  KILN_CU_MEM_ADVISE_SET_READ_MOSTLY = 1,
  KILN_CU_MEM_ADVISE_UNSET_READ_MOSTLY = 2,
  KILN_CU_MEM_ADVISE_SET_PREFERRED_LOCATION = 3,
  KILN_CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION = 4,
  KILN_CU_MEM_ADVISE_SET_ACCESSED_BY = 5,
  KILN_CU_MEM_ADVISE_UNSET_ACCESSED_BY = 6,
};
enum {
  KILN_CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY = 1,
  KILN_CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION = 2,
  KILN_CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY = 3,
  KILN_CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION = 4,
};
// Devices of an answer that are none.
enum { KILN_CU_DEVICE_CPU = -1, KILN_CU_DEVICE_INVALID = -2 };

// When a copy of a batch may read its source.
enum {
  KILN_CU_COPY_ORDER_STREAM = 1,
  KILN_CU_COPY_ORDER_DURING_CALL = 2,
  KILN_CU_COPY_ORDER_ANY = 3,
};

// How copies of a batch are made (CUDA 12.8). thread-compatible
typedef struct kiln_cu_copy_attributes_t {
  kiln_cu_copy_order_t order;
  kiln_cu_mem_location_t from_hint;
  kiln_cu_mem_location_t to_hint;
  unsigned int flags;
} kiln_cu_copy_attributes_t;

// Which device may access memory, and how. thread-compatible
typedef struct kiln_cu_mem_access_desc_t {
  kiln_cu_mem_location_t location;
  kiln_cu_mem_access_t flags;
} kiln_cu_mem_access_desc_t;

enum {
  KILN_CU_MEM_ALLOC_GRANULARITY_MINIMUM = 0,
  KILN_CU_MEM_ALLOC_GRANULARITY_RECOMMENDED = 1,
};

// What cuMemCreate takes. thread-compatible
typedef struct kiln_cu_mem_allocation_prop_t {
  kiln_cu_mem_allocation_type_t type;
  kiln_cu_mem_handle_type_t handle_types;
  kiln_cu_mem_location_t location;
  void* security;
  unsigned char compression;
  unsigned char gpu_direct;
  unsigned short usage;
  unsigned char reserved[4];
} kiln_cu_mem_allocation_prop_t;

// What cuMemPoolCreate takes. `max_bytes` (CUDA 12.2) and what follows were
// reserved before and had to be 0. thread-compatible
typedef struct kiln_cu_mempool_props_t {
  kiln_cu_mem_allocation_type_t allocation;
  kiln_cu_mem_handle_type_t handle_types;
  kiln_cu_mem_location_t location;
  void* security;
  size_t max_bytes;
  unsigned short usage;
  unsigned char reserved[54];
} kiln_cu_mempool_props_t;

// The value of a launch attribute: 64 bytes, whatever its type.
// thread-compatible
typedef union kiln_cu_launch_attribute_value_t {
  char pad[64];
  struct {
    void* address;
    size_t bytes;
    float hit_ratio;
    unsigned int hit;
    unsigned int miss;
  } window;
  int cooperative;
  struct {
    unsigned int x;
    unsigned int y;
    unsigned int z;
  } cluster;
  int cluster_policy;
  int programmatic_serialization;
  struct {
    kiln_cu_event_t event;
    int flags;
    int trigger_at_block_start;
  } programmatic_event;
  struct {
    kiln_cu_event_t event;
    int flags;
  } completion_event;
  int priority;
  struct {
    unsigned char normal;
    unsigned char remote;
  } sync_map;
  unsigned int sync_domain;
  struct {
    unsigned int x;
    unsigned int y;
    unsigned int z;
  } preferred_cluster;
  unsigned int carveout;
  unsigned int nvlink_centric;
  unsigned int cluster_size_mode;
  unsigned int shared_mode;
} kiln_cu_launch_attribute_value_t;

// One launch attribute. thread-compatible
typedef struct kiln_cu_launch_attribute_t {
  kiln_cu_launch_attribute_id_t id;
  char pad[4];
  kiln_cu_launch_attribute_value_t value;
} kiln_cu_launch_attribute_t;

// What cuLaunchKernelEx takes (CUDA 11.6). thread-compatible
typedef struct kiln_cu_launch_config_t {
  unsigned int grid_x;
  unsigned int grid_y;
  unsigned int grid_z;
  unsigned int block_x;
  unsigned int block_y;
  unsigned int block_z;
  unsigned int shared_bytes;
  kiln_cu_stream_t stream;
  kiln_cu_launch_attribute_t* attributes;
  unsigned int attribute_count;
} kiln_cu_launch_config_t;

// ---- Graphs ----

enum {
  KILN_CU_GRAPH_NODE_TYPE_KERNEL = 0,
  KILN_CU_GRAPH_NODE_TYPE_MEMCPY = 1,
  KILN_CU_GRAPH_NODE_TYPE_MEMSET = 2,
  KILN_CU_GRAPH_NODE_TYPE_HOST = 3,
  KILN_CU_GRAPH_NODE_TYPE_GRAPH = 4,
  KILN_CU_GRAPH_NODE_TYPE_EMPTY = 5,
  KILN_CU_GRAPH_NODE_TYPE_WAIT_EVENT = 6,
  KILN_CU_GRAPH_NODE_TYPE_EVENT_RECORD = 7,
  KILN_CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL = 8,
  KILN_CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT = 9,
  KILN_CU_GRAPH_NODE_TYPE_MEM_ALLOC = 10,
  KILN_CU_GRAPH_NODE_TYPE_MEM_FREE = 11,
  KILN_CU_GRAPH_NODE_TYPE_BATCH_MEM_OP = 12,
  KILN_CU_GRAPH_NODE_TYPE_CONDITIONAL = 13,  // 12.3
};

// Kinds of edges, and the ports of kernel nodes that they may leave by (12.3).
enum {
  KILN_CU_GRAPH_DEPENDENCY_TYPE_DEFAULT = 0,
  KILN_CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC = 1,

  KILN_CU_GRAPH_KERNEL_NODE_PORT_DEFAULT = 0,
  KILN_CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC = 1,
  KILN_CU_GRAPH_KERNEL_NODE_PORT_LAUNCH_ORDER = 2,
};

// Flags and results of cuGraphInstantiateWithParams.
enum {
  KILN_CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH = 1,
  KILN_CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD = 2,
  KILN_CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH = 4,
  KILN_CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY = 8,

  KILN_CUDA_GRAPH_INSTANTIATE_SUCCESS = 0,
  KILN_CUDA_GRAPH_INSTANTIATE_ERROR = 1,
  KILN_CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE = 2,
  KILN_CUDA_GRAPH_INSTANTIATE_NODE_OPERATION_NOT_SUPPORTED = 3,
  KILN_CUDA_GRAPH_INSTANTIATE_MULTIPLE_CTXS_NOT_SUPPORTED = 4,
  KILN_CUDA_GRAPH_INSTANTIATE_CONDITIONAL_HANDLE_UNUSED = 5,  // 12.8
};

// Results of cuGraphExecUpdate.
enum {
  KILN_CU_GRAPH_EXEC_UPDATE_SUCCESS = 0,
  KILN_CU_GRAPH_EXEC_UPDATE_ERROR = 1,
  KILN_CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED = 2,
  KILN_CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED = 3,
  KILN_CU_GRAPH_EXEC_UPDATE_ERROR_FUNCTION_CHANGED = 4,
  KILN_CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED = 5,
  KILN_CU_GRAPH_EXEC_UPDATE_ERROR_NOT_SUPPORTED = 6,
  KILN_CU_GRAPH_EXEC_UPDATE_ERROR_UNSUPPORTED_FUNCTION_CHANGE = 7,
  KILN_CU_GRAPH_EXEC_UPDATE_ERROR_ATTRIBUTES_CHANGED = 8,
};

enum {
  KILN_CU_GRAPH_COND_TYPE_IF = 0,
  KILN_CU_GRAPH_COND_TYPE_WHILE = 1,
  KILN_CU_GRAPH_COND_TYPE_SWITCH = 2,  // 12.8
};
#define KILN_CU_GRAPH_COND_ASSIGN_DEFAULT 0x1

// What cuGraphDebugDotPrint prints.
enum {
  KILN_CU_GRAPH_DEBUG_DOT_FLAGS_VERBOSE = 1 << 0,
  KILN_CU_GRAPH_DEBUG_DOT_FLAGS_RUNTIME_TYPES = 1 << 1,
  KILN_CU_GRAPH_DEBUG_DOT_FLAGS_KERNEL_NODE_PARAMS = 1 << 2,
  KILN_CU_GRAPH_DEBUG_DOT_FLAGS_MEMCPY_NODE_PARAMS = 1 << 3,
  KILN_CU_GRAPH_DEBUG_DOT_FLAGS_MEMSET_NODE_PARAMS = 1 << 4,
  KILN_CU_GRAPH_DEBUG_DOT_FLAGS_HOST_NODE_PARAMS = 1 << 5,
  KILN_CU_GRAPH_DEBUG_DOT_FLAGS_EVENT_NODE_PARAMS = 1 << 6,
  KILN_CU_GRAPH_DEBUG_DOT_FLAGS_EXT_SEMAS_SIGNAL_NODE_PARAMS = 1 << 7,
  KILN_CU_GRAPH_DEBUG_DOT_FLAGS_EXT_SEMAS_WAIT_NODE_PARAMS = 1 << 8,
  KILN_CU_GRAPH_DEBUG_DOT_FLAGS_KERNEL_NODE_ATTRIBUTES = 1 << 9,
  KILN_CU_GRAPH_DEBUG_DOT_FLAGS_HANDLES = 1 << 10,
  KILN_CU_GRAPH_DEBUG_DOT_FLAGS_MEM_ALLOC_NODE_PARAMS = 1 << 11,
  KILN_CU_GRAPH_DEBUG_DOT_FLAGS_MEM_FREE_NODE_PARAMS = 1 << 12,
  KILN_CU_GRAPH_DEBUG_DOT_FLAGS_BATCH_MEM_OP_NODE_PARAMS = 1 << 13,
  KILN_CU_GRAPH_DEBUG_DOT_FLAGS_EXTRA_TOPO_INFO = 1 << 14,
  KILN_CU_GRAPH_DEBUG_DOT_FLAGS_CONDITIONAL_NODE_PARAMS = 1 << 15,  // 12.3
};

// Of the memory of graphs on a device: 64 bits each. The two `HIGH` may be set
// to 0.
enum {
  KILN_CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT = 0,
  KILN_CU_GRAPH_MEM_ATTR_USED_MEM_HIGH = 1,
  KILN_CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT = 2,
  KILN_CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH = 3,
};

// Flags of user objects, of what an update of dependencies does, and what owns
// a child graph afterwards.
enum {
  KILN_CU_USER_OBJECT_NO_DESTRUCTOR_SYNC = 1,
  KILN_CU_GRAPH_USER_OBJECT_MOVE = 1,

  KILN_CU_STREAM_ADD_CAPTURE_DEPENDENCIES = 0,
  KILN_CU_STREAM_SET_CAPTURE_DEPENDENCIES = 1,

  KILN_CU_GRAPH_CHILD_GRAPH_OWNERSHIP_CLONE = 0,
  KILN_CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE = 1,  // 12.9
};

// Operations of a stream on values in memory, and how a wait compares.
enum {
  KILN_CU_STREAM_MEM_OP_WAIT_VALUE_32 = 1,
  KILN_CU_STREAM_MEM_OP_WRITE_VALUE_32 = 2,
  KILN_CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES = 3,
  KILN_CU_STREAM_MEM_OP_WAIT_VALUE_64 = 4,
  KILN_CU_STREAM_MEM_OP_WRITE_VALUE_64 = 5,
  KILN_CU_STREAM_MEM_OP_BARRIER = 6,

  KILN_CU_STREAM_WAIT_VALUE_GEQ = 0,
  KILN_CU_STREAM_WAIT_VALUE_EQ = 1,
  KILN_CU_STREAM_WAIT_VALUE_AND = 2,
  KILN_CU_STREAM_WAIT_VALUE_NOR = 3,
  KILN_CU_STREAM_WAIT_VALUE_FLUSH = 1 << 30,
  KILN_CU_STREAM_WRITE_VALUE_DEFAULT = 0,
  KILN_CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER = 1,
};

enum { KILN_CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD = 1 };

// What an edge is. All zero: all of one node before the other (12.3).
// thread-compatible
typedef struct kiln_cu_graph_edge_t {
  unsigned char from_port;
  unsigned char to_port;
  unsigned char type;
  unsigned char reserved[5];
} kiln_cu_graph_edge_t;

// A kernel. `kernel` and `context` only where `function` is NULL.
// thread-compatible
typedef struct kiln_cu_kernel_node_t {
  kiln_cu_function_t function;
  unsigned int grid_x;
  unsigned int grid_y;
  unsigned int grid_z;
  unsigned int block_x;
  unsigned int block_y;
  unsigned int block_z;
  unsigned int shared_bytes;
  void** params;
  void** extra;
  kiln_cu_kernel_t kernel;
  kiln_cu_context_t context;
} kiln_cu_kernel_node_t;

// A copy, as the generic nodes have it. thread-compatible
typedef struct kiln_cu_memcpy_node_t {
  int flags;
  int reserved;
  kiln_cu_context_t context;
  kiln_cu_copy_3d_t copy;
} kiln_cu_memcpy_node_t;

// A fill of rows. thread-compatible
typedef struct kiln_cu_memset_node_t {
  kiln_cu_deviceptr_t to;
  size_t row_bytes;  // from row to row; of no meaning with one row
  unsigned int value;
  unsigned int element_bytes;  // 1, 2 or 4
  size_t width;                // elements
  size_t height;
} kiln_cu_memset_node_t;

// A host function. thread-compatible
typedef struct kiln_cu_host_node_t {
  kiln_cu_host_fn_t fn;
  void* user;
} kiln_cu_host_node_t;

// A graph as a node. thread-compatible
typedef struct kiln_cu_child_node_t {
  kiln_cu_graph_t graph;
  unsigned int ownership;  // 12.9; reserved before, and 0
} kiln_cu_child_node_t;

// An allocation; `address` comes back. thread-compatible
typedef struct kiln_cu_alloc_node_t {
  kiln_cu_mempool_props_t pool;
  const kiln_cu_mem_access_desc_t* access;
  size_t access_count;
  size_t bytes;
  kiln_cu_deviceptr_t address;
} kiln_cu_alloc_node_t;

// One operation on a value in memory. thread-compatible
typedef union kiln_cu_mem_op_t {
  unsigned int operation;  // KILN_CU_STREAM_MEM_OP_*
  struct {
    unsigned int operation;
    kiln_cu_deviceptr_t address;
    uint64_t value;
    unsigned int flags;
    kiln_cu_deviceptr_t alias;
  } value;  // of a wait or a write
  struct {
    unsigned int operation;
    unsigned int flags;
  } barrier;  // and of a flush
  uint64_t pad[6];
} kiln_cu_mem_op_t;

// Operations on values in memory. thread-compatible
typedef struct kiln_cu_mem_op_node_t {
  kiln_cu_context_t context;
  unsigned int count;
  kiln_cu_mem_op_t* operations;
  unsigned int flags;
} kiln_cu_mem_op_node_t;

// How a foreign semaphore is opened. thread-compatible
typedef struct kiln_cu_semaphore_desc_t {
  unsigned int type;  // KILN_CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_*
  union {
    int fd;
    struct {
      void* handle;
      const void* name;
    } win32;
    const void* nvscisync;
  } of;
  unsigned int flags;
  unsigned int reserved[16];
} kiln_cu_semaphore_desc_t;

// What one semaphore is signalled with or waits for: the value of a fence, and
// nothing else of it is used here. thread-compatible
typedef struct kiln_cu_semaphore_signal_t {
  unsigned long long value;
  unsigned long long reserved0;
  unsigned long long key;
  unsigned int reserved1[12];
  unsigned int flags;
  unsigned int reserved[16];
} kiln_cu_semaphore_signal_t;

typedef struct kiln_cu_semaphore_wait_t {
  unsigned long long value;
  unsigned long long reserved0;
  unsigned long long key;
  unsigned int timeout_ms;
  unsigned int pad;
  unsigned int reserved1[10];
  unsigned int flags;
  unsigned int reserved[16];
} kiln_cu_semaphore_wait_t;

// Signals of semaphores, and waits for them. thread-compatible
typedef struct kiln_cu_semaphore_signal_node_t {
  kiln_cu_semaphore_t* semaphores;
  const kiln_cu_semaphore_signal_t* params;
  unsigned int count;
} kiln_cu_semaphore_signal_node_t;

typedef struct kiln_cu_semaphore_wait_node_t {
  kiln_cu_semaphore_t* semaphores;
  const kiln_cu_semaphore_wait_t* params;
  unsigned int count;
} kiln_cu_semaphore_wait_node_t;

// A node that runs its graphs or not (12.3). The driver gives `graphs`, as
// many as `count`; they are the node's. thread-compatible
typedef struct kiln_cu_conditional_node_t {
  kiln_cu_graph_condition_t handle;
  unsigned int type;  // KILN_CU_GRAPH_COND_TYPE_*
  unsigned int count;
  kiln_cu_graph_t* graphs;
  kiln_cu_context_t context;
} kiln_cu_conditional_node_t;

// Any node (12.2; conditional 12.3). What is reserved is 0: begin with all of
// it zero. thread-compatible
typedef struct kiln_cu_graph_node_params_t {
  kiln_cu_graph_node_type_t type;
  int reserved0[3];
  union {
    long long reserved[29];
    kiln_cu_kernel_node_t kernel;
    kiln_cu_memcpy_node_t memcpy;
    struct {
      kiln_cu_memset_node_t fill;
      kiln_cu_context_t context;
    } memset;
    kiln_cu_host_node_t host;
    kiln_cu_child_node_t child;
    kiln_cu_event_t event;  // recorded or waited for
    kiln_cu_semaphore_signal_node_t signal;
    kiln_cu_semaphore_wait_node_t wait;
    kiln_cu_alloc_node_t alloc;
    kiln_cu_deviceptr_t free;
    kiln_cu_mem_op_node_t operations;
    kiln_cu_conditional_node_t conditional;
  } of;
  long long reserved1;
} kiln_cu_graph_node_params_t;

// How a graph is made ready, and what came of it. thread-compatible
typedef struct kiln_cu_graph_instantiate_t {
  uint64_t flags;
  kiln_cu_stream_t upload;
  kiln_cu_graph_node_t node;  // that prevented the update
  kiln_cu_graph_instantiate_result_t result;
} kiln_cu_graph_instantiate_t;

// What came of an update (12.0). thread-compatible
typedef struct kiln_cu_graph_update_t {
  kiln_cu_graph_update_result_t result;
  kiln_cu_graph_node_t node;  // of the new graph that prevented the update
  kiln_cu_graph_node_t from;  // the other end of an edge that was
} kiln_cu_graph_update_t;

#endif  // KILN_SRC_TABLE_CUDA_ABI_H_
