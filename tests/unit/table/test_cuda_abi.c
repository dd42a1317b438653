// SPDX-License-Identifier: Apache-2.0
//
// table: our declarations against NVIDIA's headers, where those exist.
//
// Nearly everything here is decided by the compiler: that this file compiles
// is the test. Both headers stand in one file, which also shows that they may.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "table/cuda_table.h"
#include "table/nvjitlink_table.h"
#include "table/nvml_table.h"
#include "table/nvrtc_table.h"
#include "table/nvvm_table.h"

#if defined(TEST_HAVE_CUDA_H)
#include <cuda.h>
#include <cudaTypedefs.h>
#endif
#if defined(TEST_HAVE_NVRTC_H)
#include <nvrtc.h>
#endif
#if defined(TEST_HAVE_NVVM_H)
#include <nvvm.h>
#endif
#if defined(TEST_HAVE_NVJITLINK_H)
#include <nvJitLink.h>
#endif
#if defined(TEST_HAVE_NVML_H)
#define NVML_NO_UNVERSIONED_FUNC_DEFS 1
#include <nvml.h>
// The header says no more than the major version: of 13, rows as new as 13.0
// are compared, of 12 those as new as 12.0.
#define TEST_NVML_VERSION (NVML_API_VERSION * 1000)
// A row may be one that NVIDIA would rather see replaced.
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
#endif

#define SAME_TYPE(ours, theirs)                              \
  _Static_assert(__builtin_types_compatible_p(ours, theirs), \
                 #ours " is not " #theirs)
#define SAME_VALUE(ours, theirs) \
  _Static_assert((long long)(ours) == (long long)(theirs), #ours)
#define SAME_FIELD(ours, field, theirs, their_field)                \
  SAME_VALUE(offsetof(ours, field), offsetof(theirs, their_field)); \
  SAME_VALUE(sizeof(((ours*)0)->field), sizeof(((theirs*)0)->their_field))

#include "abi_check_gen.inc"

#if defined(TEST_HAVE_CUDA_H)

SAME_TYPE(kiln_cu_context_t, CUcontext);
SAME_TYPE(kiln_cu_stream_t, CUstream);
SAME_TYPE(kiln_cu_event_t, CUevent);
SAME_TYPE(kiln_cu_module_t, CUmodule);
SAME_TYPE(kiln_cu_function_t, CUfunction);
SAME_TYPE(kiln_cu_link_state_t, CUlinkState);
SAME_TYPE(kiln_cu_jit_input_t, CUjitInputType);
SAME_TYPE(kiln_cu_mempool_t, CUmemoryPool);
SAME_TYPE(kiln_cu_device_t, CUdevice);
SAME_TYPE(kiln_cu_deviceptr_t, CUdeviceptr);
SAME_TYPE(kiln_cu_result_t, CUresult);
SAME_TYPE(kiln_cu_host_fn_t, CUhostFn);
SAME_TYPE(kiln_cu_occupancy_fn_t, CUoccupancyB2DSize);
SAME_TYPE(kiln_cu_capture_mode_t, CUstreamCaptureMode);
#if CUDA_VERSION >= 12000
SAME_TYPE(kiln_cu_library_t, CUlibrary);
SAME_TYPE(kiln_cu_kernel_t, CUkernel);
SAME_TYPE(kiln_cu_library_option_t, CUlibraryOption);
#endif

// Graphs.
#if CUDA_VERSION >= 12000
SAME_VALUE(sizeof(kiln_cu_kernel_node_t), sizeof(CUDA_KERNEL_NODE_PARAMS_v2));
SAME_VALUE(_Alignof(kiln_cu_kernel_node_t),
           _Alignof(CUDA_KERNEL_NODE_PARAMS_v2));
SAME_FIELD(kiln_cu_kernel_node_t, function, CUDA_KERNEL_NODE_PARAMS_v2, func);
SAME_FIELD(kiln_cu_kernel_node_t, grid_x, CUDA_KERNEL_NODE_PARAMS_v2, gridDimX);
SAME_FIELD(kiln_cu_kernel_node_t, block_z, CUDA_KERNEL_NODE_PARAMS_v2,
           blockDimZ);
SAME_FIELD(kiln_cu_kernel_node_t, shared_bytes, CUDA_KERNEL_NODE_PARAMS_v2,
           sharedMemBytes);
SAME_FIELD(kiln_cu_kernel_node_t, params, CUDA_KERNEL_NODE_PARAMS_v2,
           kernelParams);
SAME_FIELD(kiln_cu_kernel_node_t, extra, CUDA_KERNEL_NODE_PARAMS_v2, extra);
SAME_FIELD(kiln_cu_kernel_node_t, kernel, CUDA_KERNEL_NODE_PARAMS_v2, kern);
SAME_FIELD(kiln_cu_kernel_node_t, context, CUDA_KERNEL_NODE_PARAMS_v2, ctx);
SAME_VALUE(sizeof(kiln_cu_memset_node_t), sizeof(CUDA_MEMSET_NODE_PARAMS));
SAME_VALUE(_Alignof(kiln_cu_memset_node_t), _Alignof(CUDA_MEMSET_NODE_PARAMS));
SAME_FIELD(kiln_cu_memset_node_t, to, CUDA_MEMSET_NODE_PARAMS, dst);
SAME_FIELD(kiln_cu_memset_node_t, row_bytes, CUDA_MEMSET_NODE_PARAMS, pitch);
SAME_FIELD(kiln_cu_memset_node_t, value, CUDA_MEMSET_NODE_PARAMS, value);
SAME_FIELD(kiln_cu_memset_node_t, element_bytes, CUDA_MEMSET_NODE_PARAMS,
           elementSize);
SAME_FIELD(kiln_cu_memset_node_t, width, CUDA_MEMSET_NODE_PARAMS, width);
SAME_FIELD(kiln_cu_memset_node_t, height, CUDA_MEMSET_NODE_PARAMS, height);
SAME_VALUE(sizeof(kiln_cu_host_node_t), sizeof(CUDA_HOST_NODE_PARAMS));
SAME_VALUE(_Alignof(kiln_cu_host_node_t), _Alignof(CUDA_HOST_NODE_PARAMS));
SAME_FIELD(kiln_cu_host_node_t, fn, CUDA_HOST_NODE_PARAMS, fn);
SAME_FIELD(kiln_cu_host_node_t, user, CUDA_HOST_NODE_PARAMS, userData);
SAME_VALUE(sizeof(kiln_cu_alloc_node_t), sizeof(CUDA_MEM_ALLOC_NODE_PARAMS_v1));
SAME_VALUE(_Alignof(kiln_cu_alloc_node_t),
           _Alignof(CUDA_MEM_ALLOC_NODE_PARAMS_v1));
SAME_FIELD(kiln_cu_alloc_node_t, pool, CUDA_MEM_ALLOC_NODE_PARAMS_v1,
           poolProps);
SAME_FIELD(kiln_cu_alloc_node_t, access, CUDA_MEM_ALLOC_NODE_PARAMS_v1,
           accessDescs);
SAME_FIELD(kiln_cu_alloc_node_t, access_count, CUDA_MEM_ALLOC_NODE_PARAMS_v1,
           accessDescCount);
SAME_FIELD(kiln_cu_alloc_node_t, bytes, CUDA_MEM_ALLOC_NODE_PARAMS_v1,
           bytesize);
SAME_FIELD(kiln_cu_alloc_node_t, address, CUDA_MEM_ALLOC_NODE_PARAMS_v1, dptr);
SAME_VALUE(sizeof(kiln_cu_mem_op_t), sizeof(CUstreamBatchMemOpParams));
SAME_VALUE(_Alignof(kiln_cu_mem_op_t), _Alignof(CUstreamBatchMemOpParams));
SAME_FIELD(kiln_cu_mem_op_t, value.address, CUstreamBatchMemOpParams,
           waitValue.address);
SAME_FIELD(kiln_cu_mem_op_t, value.value, CUstreamBatchMemOpParams,
           writeValue.value64);
SAME_FIELD(kiln_cu_mem_op_t, value.flags, CUstreamBatchMemOpParams,
           waitValue.flags);
SAME_FIELD(kiln_cu_mem_op_t, value.alias, CUstreamBatchMemOpParams,
           writeValue.alias);
SAME_FIELD(kiln_cu_mem_op_t, barrier.flags, CUstreamBatchMemOpParams,
           memoryBarrier.flags);
SAME_VALUE(sizeof(kiln_cu_mem_op_node_t),
           sizeof(CUDA_BATCH_MEM_OP_NODE_PARAMS_v1));
SAME_VALUE(_Alignof(kiln_cu_mem_op_node_t),
           _Alignof(CUDA_BATCH_MEM_OP_NODE_PARAMS_v1));
SAME_FIELD(kiln_cu_mem_op_node_t, context, CUDA_BATCH_MEM_OP_NODE_PARAMS_v1,
           ctx);
SAME_FIELD(kiln_cu_mem_op_node_t, count, CUDA_BATCH_MEM_OP_NODE_PARAMS_v1,
           count);
SAME_FIELD(kiln_cu_mem_op_node_t, operations, CUDA_BATCH_MEM_OP_NODE_PARAMS_v1,
           paramArray);
SAME_FIELD(kiln_cu_mem_op_node_t, flags, CUDA_BATCH_MEM_OP_NODE_PARAMS_v1,
           flags);
SAME_VALUE(sizeof(kiln_cu_semaphore_desc_t),
           sizeof(CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC));
SAME_VALUE(_Alignof(kiln_cu_semaphore_desc_t),
           _Alignof(CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC));
SAME_FIELD(kiln_cu_semaphore_desc_t, of, CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC,
           handle);
SAME_FIELD(kiln_cu_semaphore_desc_t, flags, CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC,
           flags);
SAME_FIELD(kiln_cu_semaphore_desc_t, reserved,
           CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC, reserved);
SAME_VALUE(sizeof(kiln_cu_semaphore_signal_t),
           sizeof(CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS));
SAME_VALUE(_Alignof(kiln_cu_semaphore_signal_t),
           _Alignof(CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS));
SAME_FIELD(kiln_cu_semaphore_signal_t, value,
           CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS, params.fence.value);
SAME_FIELD(kiln_cu_semaphore_signal_t, key,
           CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS, params.keyedMutex.key);
SAME_FIELD(kiln_cu_semaphore_signal_t, flags,
           CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS, flags);
SAME_VALUE(sizeof(kiln_cu_semaphore_wait_t),
           sizeof(CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS));
SAME_VALUE(_Alignof(kiln_cu_semaphore_wait_t),
           _Alignof(CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS));
SAME_FIELD(kiln_cu_semaphore_wait_t, value, CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS,
           params.fence.value);
SAME_FIELD(kiln_cu_semaphore_wait_t, timeout_ms,
           CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS, params.keyedMutex.timeoutMs);
SAME_FIELD(kiln_cu_semaphore_wait_t, flags, CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS,
           flags);
SAME_VALUE(sizeof(kiln_cu_semaphore_signal_node_t),
           sizeof(CUDA_EXT_SEM_SIGNAL_NODE_PARAMS));
SAME_VALUE(_Alignof(kiln_cu_semaphore_signal_node_t),
           _Alignof(CUDA_EXT_SEM_SIGNAL_NODE_PARAMS));
SAME_FIELD(kiln_cu_semaphore_signal_node_t, semaphores,
           CUDA_EXT_SEM_SIGNAL_NODE_PARAMS, extSemArray);
SAME_FIELD(kiln_cu_semaphore_signal_node_t, params,
           CUDA_EXT_SEM_SIGNAL_NODE_PARAMS, paramsArray);
SAME_FIELD(kiln_cu_semaphore_signal_node_t, count,
           CUDA_EXT_SEM_SIGNAL_NODE_PARAMS, numExtSems);
SAME_VALUE(sizeof(kiln_cu_semaphore_wait_node_t),
           sizeof(CUDA_EXT_SEM_WAIT_NODE_PARAMS));
SAME_VALUE(_Alignof(kiln_cu_semaphore_wait_node_t),
           _Alignof(CUDA_EXT_SEM_WAIT_NODE_PARAMS));
SAME_FIELD(kiln_cu_semaphore_wait_node_t, semaphores,
           CUDA_EXT_SEM_WAIT_NODE_PARAMS, extSemArray);
SAME_FIELD(kiln_cu_semaphore_wait_node_t, params, CUDA_EXT_SEM_WAIT_NODE_PARAMS,
           paramsArray);
SAME_FIELD(kiln_cu_semaphore_wait_node_t, count, CUDA_EXT_SEM_WAIT_NODE_PARAMS,
           numExtSems);
SAME_VALUE(sizeof(kiln_cu_graph_instantiate_t),
           sizeof(CUDA_GRAPH_INSTANTIATE_PARAMS));
SAME_VALUE(_Alignof(kiln_cu_graph_instantiate_t),
           _Alignof(CUDA_GRAPH_INSTANTIATE_PARAMS));
SAME_FIELD(kiln_cu_graph_instantiate_t, flags, CUDA_GRAPH_INSTANTIATE_PARAMS,
           flags);
SAME_FIELD(kiln_cu_graph_instantiate_t, upload, CUDA_GRAPH_INSTANTIATE_PARAMS,
           hUploadStream);
SAME_FIELD(kiln_cu_graph_instantiate_t, node, CUDA_GRAPH_INSTANTIATE_PARAMS,
           hErrNode_out);
SAME_FIELD(kiln_cu_graph_instantiate_t, result, CUDA_GRAPH_INSTANTIATE_PARAMS,
           result_out);
SAME_VALUE(sizeof(kiln_cu_graph_update_t), sizeof(CUgraphExecUpdateResultInfo));
SAME_VALUE(_Alignof(kiln_cu_graph_update_t),
           _Alignof(CUgraphExecUpdateResultInfo));
SAME_FIELD(kiln_cu_graph_update_t, result, CUgraphExecUpdateResultInfo, result);
SAME_FIELD(kiln_cu_graph_update_t, node, CUgraphExecUpdateResultInfo,
           errorNode);
SAME_FIELD(kiln_cu_graph_update_t, from, CUgraphExecUpdateResultInfo,
           errorFromNode);
#endif
#if CUDA_VERSION >= 12030
SAME_VALUE(sizeof(kiln_cu_graph_edge_t), sizeof(CUgraphEdgeData));
SAME_VALUE(_Alignof(kiln_cu_graph_edge_t), _Alignof(CUgraphEdgeData));
SAME_FIELD(kiln_cu_graph_edge_t, from_port, CUgraphEdgeData, from_port);
SAME_FIELD(kiln_cu_graph_edge_t, to_port, CUgraphEdgeData, to_port);
SAME_FIELD(kiln_cu_graph_edge_t, type, CUgraphEdgeData, type);
SAME_FIELD(kiln_cu_graph_edge_t, reserved, CUgraphEdgeData, reserved);
SAME_VALUE(sizeof(kiln_cu_memcpy_node_t), sizeof(CUDA_MEMCPY_NODE_PARAMS));
SAME_VALUE(_Alignof(kiln_cu_memcpy_node_t), _Alignof(CUDA_MEMCPY_NODE_PARAMS));
SAME_FIELD(kiln_cu_memcpy_node_t, flags, CUDA_MEMCPY_NODE_PARAMS, flags);
SAME_FIELD(kiln_cu_memcpy_node_t, context, CUDA_MEMCPY_NODE_PARAMS, copyCtx);
SAME_FIELD(kiln_cu_memcpy_node_t, copy, CUDA_MEMCPY_NODE_PARAMS, copyParams);
SAME_VALUE(sizeof(kiln_cu_conditional_node_t),
           sizeof(CUDA_CONDITIONAL_NODE_PARAMS));
SAME_VALUE(_Alignof(kiln_cu_conditional_node_t),
           _Alignof(CUDA_CONDITIONAL_NODE_PARAMS));
SAME_FIELD(kiln_cu_conditional_node_t, handle, CUDA_CONDITIONAL_NODE_PARAMS,
           handle);
SAME_FIELD(kiln_cu_conditional_node_t, type, CUDA_CONDITIONAL_NODE_PARAMS,
           type);
SAME_FIELD(kiln_cu_conditional_node_t, count, CUDA_CONDITIONAL_NODE_PARAMS,
           size);
SAME_FIELD(kiln_cu_conditional_node_t, graphs, CUDA_CONDITIONAL_NODE_PARAMS,
           phGraph_out);
SAME_VALUE(sizeof(kiln_cu_graph_node_params_t), sizeof(CUgraphNodeParams));
SAME_VALUE(_Alignof(kiln_cu_graph_node_params_t), _Alignof(CUgraphNodeParams));
SAME_FIELD(kiln_cu_graph_node_params_t, type, CUgraphNodeParams, type);
SAME_FIELD(kiln_cu_graph_node_params_t, of, CUgraphNodeParams, reserved1);
SAME_FIELD(kiln_cu_graph_node_params_t, of.kernel, CUgraphNodeParams, kernel);
SAME_FIELD(kiln_cu_graph_node_params_t, of.memcpy, CUgraphNodeParams, memcpy);
SAME_FIELD(kiln_cu_graph_node_params_t, of.memset.context, CUgraphNodeParams,
           memset.ctx);
SAME_FIELD(kiln_cu_graph_node_params_t, of.conditional.type, CUgraphNodeParams,
           conditional.type);
SAME_FIELD(kiln_cu_graph_node_params_t, of.alloc.address, CUgraphNodeParams,
           alloc.dptr);
SAME_FIELD(kiln_cu_graph_node_params_t, of.free, CUgraphNodeParams, free);
SAME_FIELD(kiln_cu_graph_node_params_t, of.operations, CUgraphNodeParams,
           memOp);
SAME_FIELD(kiln_cu_graph_node_params_t, of.signal.count, CUgraphNodeParams,
           extSemSignal.numExtSems);
SAME_FIELD(kiln_cu_graph_node_params_t, reserved1, CUgraphNodeParams,
           reserved2);
#endif
#if CUDA_VERSION >= 13000
SAME_FIELD(kiln_cu_conditional_node_t, context, CUDA_CONDITIONAL_NODE_PARAMS,
           ctx);
SAME_FIELD(kiln_cu_child_node_t, ownership, CUDA_CHILD_GRAPH_NODE_PARAMS,
           ownership);
#endif
SAME_VALUE(KILN_CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH,
           CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH);
SAME_VALUE(KILN_CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD,
           CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD);
SAME_VALUE(KILN_CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH,
           CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH);
SAME_VALUE(KILN_CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY,
           CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY);
SAME_VALUE(KILN_CUDA_GRAPH_INSTANTIATE_SUCCESS, CUDA_GRAPH_INSTANTIATE_SUCCESS);
SAME_VALUE(KILN_CUDA_GRAPH_INSTANTIATE_ERROR, CUDA_GRAPH_INSTANTIATE_ERROR);
SAME_VALUE(KILN_CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE,
           CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE);
SAME_VALUE(KILN_CUDA_GRAPH_INSTANTIATE_NODE_OPERATION_NOT_SUPPORTED,
           CUDA_GRAPH_INSTANTIATE_NODE_OPERATION_NOT_SUPPORTED);
SAME_VALUE(KILN_CUDA_GRAPH_INSTANTIATE_MULTIPLE_CTXS_NOT_SUPPORTED,
           CUDA_GRAPH_INSTANTIATE_MULTIPLE_CTXS_NOT_SUPPORTED);
#if CUDA_VERSION >= 12080
SAME_VALUE(KILN_CUDA_GRAPH_INSTANTIATE_CONDITIONAL_HANDLE_UNUSED,
           CUDA_GRAPH_INSTANTIATE_CONDITIONAL_HANDLE_UNUSED);
#endif
#if CUDA_VERSION >= 12030
SAME_VALUE(KILN_CU_GRAPH_COND_ASSIGN_DEFAULT, CU_GRAPH_COND_ASSIGN_DEFAULT);
#endif
SAME_TYPE(kiln_cu_graph_t, CUgraph);
SAME_TYPE(kiln_cu_graph_node_t, CUgraphNode);
SAME_TYPE(kiln_cu_graph_exec_t, CUgraphExec);
SAME_TYPE(kiln_cu_user_object_t, CUuserObject);
SAME_TYPE(kiln_cu_semaphore_t, CUexternalSemaphore);

SAME_VALUE(sizeof(kiln_cu_uuid_t), sizeof(CUuuid));
SAME_TYPE(kiln_cu_mem_handle_t, CUmemGenericAllocationHandle);
SAME_VALUE(sizeof(kiln_cu_mem_allocation_prop_t), sizeof(CUmemAllocationProp));
SAME_FIELD(kiln_cu_mem_allocation_prop_t, type, CUmemAllocationProp, type);
SAME_FIELD(kiln_cu_mem_allocation_prop_t, handle_types, CUmemAllocationProp,
           requestedHandleTypes);
SAME_FIELD(kiln_cu_mem_allocation_prop_t, location, CUmemAllocationProp,
           location);
SAME_FIELD(kiln_cu_mem_allocation_prop_t, security, CUmemAllocationProp,
           win32HandleMetaData);
SAME_FIELD(kiln_cu_mem_allocation_prop_t, compression, CUmemAllocationProp,
           allocFlags.compressionType);
SAME_FIELD(kiln_cu_mem_allocation_prop_t, gpu_direct, CUmemAllocationProp,
           allocFlags.gpuDirectRDMACapable);
SAME_FIELD(kiln_cu_mem_allocation_prop_t, usage, CUmemAllocationProp,
           allocFlags.usage);
SAME_VALUE(sizeof(kiln_cu_mem_location_t), sizeof(CUmemLocation));
SAME_FIELD(kiln_cu_mem_location_t, type, CUmemLocation, type);
SAME_FIELD(kiln_cu_mem_location_t, id, CUmemLocation, id);
#if CUDA_VERSION >= 12080
SAME_VALUE(sizeof(kiln_cu_copy_attributes_t), sizeof(CUmemcpyAttributes));
SAME_FIELD(kiln_cu_copy_attributes_t, order, CUmemcpyAttributes,
           srcAccessOrder);
SAME_FIELD(kiln_cu_copy_attributes_t, from_hint, CUmemcpyAttributes,
           srcLocHint);
SAME_FIELD(kiln_cu_copy_attributes_t, to_hint, CUmemcpyAttributes, dstLocHint);
SAME_FIELD(kiln_cu_copy_attributes_t, flags, CUmemcpyAttributes, flags);
SAME_VALUE(KILN_CU_COPY_ORDER_ANY, CU_MEMCPY_SRC_ACCESS_ORDER_ANY);
#endif
SAME_VALUE(KILN_CU_MEM_ADVISE_UNSET_ACCESSED_BY,
           CU_MEM_ADVISE_UNSET_ACCESSED_BY);
SAME_VALUE(KILN_CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION,
           CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION);
SAME_VALUE(KILN_CU_P2P_ATTRIBUTE_ARRAY_ACCESS_SUPPORTED,
           CU_DEVICE_P2P_ATTRIBUTE_CUDA_ARRAY_ACCESS_SUPPORTED);
SAME_VALUE(sizeof(kiln_cu_mem_access_desc_t), sizeof(CUmemAccessDesc));
SAME_FIELD(kiln_cu_mem_access_desc_t, location, CUmemAccessDesc, location);
SAME_FIELD(kiln_cu_mem_access_desc_t, flags, CUmemAccessDesc, flags);
SAME_VALUE(sizeof(kiln_cu_mempool_props_t), sizeof(CUmemPoolProps));
SAME_VALUE(_Alignof(kiln_cu_mempool_props_t), _Alignof(CUmemPoolProps));
SAME_FIELD(kiln_cu_mempool_props_t, allocation, CUmemPoolProps, allocType);
SAME_FIELD(kiln_cu_mempool_props_t, handle_types, CUmemPoolProps, handleTypes);
SAME_FIELD(kiln_cu_mempool_props_t, location, CUmemPoolProps, location);
SAME_FIELD(kiln_cu_mempool_props_t, security, CUmemPoolProps,
           win32SecurityAttributes);
#if CUDA_VERSION >= 13000
SAME_FIELD(kiln_cu_mempool_props_t, max_bytes, CUmemPoolProps, maxSize);
SAME_FIELD(kiln_cu_mempool_props_t, usage, CUmemPoolProps, usage);
#endif
SAME_VALUE(sizeof(kiln_cu_ipc_event_handle_t), sizeof(CUipcEventHandle));
SAME_VALUE(sizeof(kiln_cu_ipc_mem_handle_t), sizeof(CUipcMemHandle));
SAME_VALUE(sizeof(kiln_cu_mempool_export_t), sizeof(CUmemPoolPtrExportData));
SAME_VALUE(KILN_CU_STREAM_CAPTURE_MODE_GLOBAL, CU_STREAM_CAPTURE_MODE_GLOBAL);
SAME_VALUE(KILN_CU_STREAM_CAPTURE_MODE_THREAD_LOCAL,
           CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
SAME_VALUE(KILN_CU_STREAM_CAPTURE_MODE_RELAXED, CU_STREAM_CAPTURE_MODE_RELAXED);
SAME_VALUE(sizeof(CU_STREAM_LEGACY), sizeof(KILN_CU_STREAM_LEGACY));
SAME_VALUE(sizeof(kiln_cu_launch_attribute_value_t),
           sizeof(CUlaunchAttributeValue));
SAME_VALUE(sizeof(kiln_cu_launch_attribute_t), sizeof(CUlaunchAttribute));
SAME_VALUE(sizeof(kiln_cu_launch_config_t), sizeof(CUlaunchConfig));
SAME_VALUE(_Alignof(kiln_cu_launch_config_t), _Alignof(CUlaunchConfig));
SAME_VALUE(_Alignof(kiln_cu_launch_attribute_t), _Alignof(CUlaunchAttribute));
SAME_FIELD(kiln_cu_launch_attribute_t, id, CUlaunchAttribute, id);
SAME_FIELD(kiln_cu_launch_attribute_t, value, CUlaunchAttribute, value);
SAME_FIELD(kiln_cu_launch_config_t, grid_x, CUlaunchConfig, gridDimX);
SAME_FIELD(kiln_cu_launch_config_t, grid_y, CUlaunchConfig, gridDimY);
SAME_FIELD(kiln_cu_launch_config_t, grid_z, CUlaunchConfig, gridDimZ);
SAME_FIELD(kiln_cu_launch_config_t, block_x, CUlaunchConfig, blockDimX);
SAME_FIELD(kiln_cu_launch_config_t, block_y, CUlaunchConfig, blockDimY);
SAME_FIELD(kiln_cu_launch_config_t, block_z, CUlaunchConfig, blockDimZ);
SAME_FIELD(kiln_cu_launch_config_t, shared_bytes, CUlaunchConfig,
           sharedMemBytes);
SAME_FIELD(kiln_cu_launch_config_t, stream, CUlaunchConfig, hStream);
SAME_FIELD(kiln_cu_launch_config_t, attributes, CUlaunchConfig, attrs);
SAME_FIELD(kiln_cu_launch_config_t, attribute_count, CUlaunchConfig, numAttrs);
SAME_FIELD(kiln_cu_launch_attribute_value_t, cluster.y, CUlaunchAttributeValue,
           clusterDim.y);
SAME_FIELD(kiln_cu_launch_attribute_value_t, cluster.z, CUlaunchAttributeValue,
           clusterDim.z);
SAME_FIELD(kiln_cu_launch_attribute_value_t, cooperative,
           CUlaunchAttributeValue, cooperative);
SAME_FIELD(kiln_cu_launch_attribute_value_t, priority, CUlaunchAttributeValue,
           priority);
SAME_FIELD(kiln_cu_launch_attribute_value_t,
           programmatic_event.trigger_at_block_start, CUlaunchAttributeValue,
           programmaticEvent.triggerAtBlockStart);
SAME_VALUE(KILN_CU_LAUNCH_ATTRIBUTE_IGNORE, CU_LAUNCH_ATTRIBUTE_IGNORE);
SAME_VALUE(KILN_CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW,
           CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW);
SAME_VALUE(KILN_CU_LAUNCH_ATTRIBUTE_COOPERATIVE,
           CU_LAUNCH_ATTRIBUTE_COOPERATIVE);
SAME_VALUE(KILN_CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY,
           CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY);
SAME_VALUE(KILN_CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION,
           CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION);
SAME_VALUE(KILN_CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE,
           CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE);
SAME_VALUE(KILN_CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION,
           CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION);
SAME_VALUE(KILN_CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT,
           CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT);
SAME_VALUE(KILN_CU_LAUNCH_ATTRIBUTE_PRIORITY, CU_LAUNCH_ATTRIBUTE_PRIORITY);
SAME_VALUE(KILN_CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP,
           CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP);
SAME_VALUE(KILN_CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN,
           CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN);
SAME_FIELD(kiln_cu_launch_attribute_value_t, window.address,
           CUlaunchAttributeValue, accessPolicyWindow.base_ptr);
SAME_FIELD(kiln_cu_launch_attribute_value_t, window.bytes,
           CUlaunchAttributeValue, accessPolicyWindow.num_bytes);
SAME_FIELD(kiln_cu_launch_attribute_value_t, window.hit_ratio,
           CUlaunchAttributeValue, accessPolicyWindow.hitRatio);
SAME_FIELD(kiln_cu_launch_attribute_value_t, window.hit, CUlaunchAttributeValue,
           accessPolicyWindow.hitProp);
SAME_FIELD(kiln_cu_launch_attribute_value_t, window.miss,
           CUlaunchAttributeValue, accessPolicyWindow.missProp);
SAME_FIELD(kiln_cu_launch_attribute_value_t, programmatic_event.event,
           CUlaunchAttributeValue, programmaticEvent.event);
SAME_FIELD(kiln_cu_launch_attribute_value_t, programmatic_event.flags,
           CUlaunchAttributeValue, programmaticEvent.flags);
SAME_FIELD(kiln_cu_launch_attribute_value_t, sync_map.normal,
           CUlaunchAttributeValue, memSyncDomainMap.default_);
SAME_FIELD(kiln_cu_launch_attribute_value_t, sync_map.remote,
           CUlaunchAttributeValue, memSyncDomainMap.remote);
SAME_FIELD(kiln_cu_launch_attribute_value_t, sync_domain,
           CUlaunchAttributeValue, memSyncDomain);
SAME_VALUE(KILN_CU_ACCESS_PROPERTY_NORMAL, CU_ACCESS_PROPERTY_NORMAL);
SAME_VALUE(KILN_CU_ACCESS_PROPERTY_STREAMING, CU_ACCESS_PROPERTY_STREAMING);
SAME_VALUE(KILN_CU_ACCESS_PROPERTY_PERSISTING, CU_ACCESS_PROPERTY_PERSISTING);
SAME_VALUE(KILN_CU_LAUNCH_MEM_SYNC_DOMAIN_DEFAULT,
           CU_LAUNCH_MEM_SYNC_DOMAIN_DEFAULT);
SAME_VALUE(KILN_CU_LAUNCH_MEM_SYNC_DOMAIN_REMOTE,
           CU_LAUNCH_MEM_SYNC_DOMAIN_REMOTE);
#if CUDA_VERSION >= 12030
SAME_VALUE(KILN_CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT,
           CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT);
SAME_FIELD(kiln_cu_launch_attribute_value_t, completion_event.event,
           CUlaunchAttributeValue, launchCompletionEvent.event);
SAME_FIELD(kiln_cu_launch_attribute_value_t, completion_event.flags,
           CUlaunchAttributeValue, launchCompletionEvent.flags);
#endif
#if CUDA_VERSION >= 12040
SAME_VALUE(KILN_CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE,
           CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE);
#endif
#if CUDA_VERSION >= 12050
SAME_VALUE(KILN_CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT,
           CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT);
SAME_FIELD(kiln_cu_launch_attribute_value_t, carveout, CUlaunchAttributeValue,
           sharedMemCarveout);
#endif
#if CUDA_VERSION >= 12080
SAME_VALUE(KILN_CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION,
           CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION);
SAME_FIELD(kiln_cu_launch_attribute_value_t, preferred_cluster.x,
           CUlaunchAttributeValue, preferredClusterDim.x);
SAME_FIELD(kiln_cu_launch_attribute_value_t, preferred_cluster.y,
           CUlaunchAttributeValue, preferredClusterDim.y);
SAME_FIELD(kiln_cu_launch_attribute_value_t, preferred_cluster.z,
           CUlaunchAttributeValue, preferredClusterDim.z);
#endif
#if CUDA_VERSION >= 13000
SAME_VALUE(KILN_CU_LAUNCH_ATTRIBUTE_NVLINK_UTIL_CENTRIC_SCHEDULING,
           CU_LAUNCH_ATTRIBUTE_NVLINK_UTIL_CENTRIC_SCHEDULING);
SAME_FIELD(kiln_cu_launch_attribute_value_t, nvlink_centric,
           CUlaunchAttributeValue, nvlinkUtilCentricScheduling);
#endif
#if CUDA_VERSION >= 13020
SAME_VALUE(KILN_CU_LAUNCH_ATTRIBUTE_PORTABLE_CLUSTER_SIZE_MODE,
           CU_LAUNCH_ATTRIBUTE_PORTABLE_CLUSTER_SIZE_MODE);
SAME_VALUE(KILN_CU_LAUNCH_ATTRIBUTE_SHARED_MEMORY_MODE,
           CU_LAUNCH_ATTRIBUTE_SHARED_MEMORY_MODE);
SAME_FIELD(kiln_cu_launch_attribute_value_t, cluster_size_mode,
           CUlaunchAttributeValue, portableClusterSizeMode);
SAME_FIELD(kiln_cu_launch_attribute_value_t, shared_mode,
           CUlaunchAttributeValue, sharedMemoryMode);
#endif

#if CUDA_VERSION >= 12000
SAME_VALUE(sizeof(kiln_cu_tensor_map_t), sizeof(CUtensorMap));
SAME_VALUE(CU_TENSOR_MAP_DATA_TYPE_TFLOAT32_FTZ, 12);
SAME_VALUE(CU_TENSOR_MAP_SWIZZLE_128B, 3);
SAME_VALUE(CU_TENSOR_MAP_L2_PROMOTION_L2_256B, 3);
SAME_VALUE(CU_TENSOR_MAP_INTERLEAVE_32B, 2);
SAME_VALUE(CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA, 1);
#endif
#if CUDA_VERSION >= 12080
SAME_VALUE(CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN8B, 13);
SAME_VALUE(CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN16B, 14);
SAME_VALUE(CU_TENSOR_MAP_DATA_TYPE_16U6_ALIGN16B, 15);
SAME_VALUE(CU_TENSOR_MAP_SWIZZLE_128B_ATOM_32B, 4);
SAME_VALUE(CU_TENSOR_MAP_SWIZZLE_128B_ATOM_32B_FLIP_8B, 5);
SAME_VALUE(CU_TENSOR_MAP_SWIZZLE_128B_ATOM_64B, 6);
SAME_VALUE(CU_TENSOR_MAP_IM2COL_WIDE_MODE_W, 0);
SAME_VALUE(CU_TENSOR_MAP_IM2COL_WIDE_MODE_W128, 1);
#endif
SAME_TYPE(kiln_cu_array_t, CUarray);
SAME_TYPE(kiln_cu_mipmapped_array_t, CUmipmappedArray);
SAME_TYPE(kiln_cu_texture_t, CUtexObject);
SAME_TYPE(kiln_cu_surface_t, CUsurfObject);
SAME_VALUE(sizeof(kiln_cu_array_desc_t), sizeof(CUDA_ARRAY3D_DESCRIPTOR));
SAME_FIELD(kiln_cu_array_desc_t, width, CUDA_ARRAY3D_DESCRIPTOR, Width);
SAME_FIELD(kiln_cu_array_desc_t, height, CUDA_ARRAY3D_DESCRIPTOR, Height);
SAME_FIELD(kiln_cu_array_desc_t, depth, CUDA_ARRAY3D_DESCRIPTOR, Depth);
SAME_FIELD(kiln_cu_array_desc_t, format, CUDA_ARRAY3D_DESCRIPTOR, Format);
SAME_FIELD(kiln_cu_array_desc_t, channels, CUDA_ARRAY3D_DESCRIPTOR,
           NumChannels);
SAME_FIELD(kiln_cu_array_desc_t, flags, CUDA_ARRAY3D_DESCRIPTOR, Flags);
SAME_VALUE(sizeof(kiln_cu_copy_3d_t), sizeof(CUDA_MEMCPY3D));
SAME_FIELD(kiln_cu_copy_3d_t, from.x_bytes, CUDA_MEMCPY3D, srcXInBytes);
SAME_FIELD(kiln_cu_copy_3d_t, from.y, CUDA_MEMCPY3D, srcY);
SAME_FIELD(kiln_cu_copy_3d_t, from.z, CUDA_MEMCPY3D, srcZ);
SAME_FIELD(kiln_cu_copy_3d_t, from.level, CUDA_MEMCPY3D, srcLOD);
SAME_FIELD(kiln_cu_copy_3d_t, from.type, CUDA_MEMCPY3D, srcMemoryType);
SAME_FIELD(kiln_cu_copy_3d_t, from.host, CUDA_MEMCPY3D, srcHost);
SAME_FIELD(kiln_cu_copy_3d_t, from.device, CUDA_MEMCPY3D, srcDevice);
SAME_FIELD(kiln_cu_copy_3d_t, from.array, CUDA_MEMCPY3D, srcArray);
SAME_FIELD(kiln_cu_copy_3d_t, from.row_bytes, CUDA_MEMCPY3D, srcPitch);
SAME_FIELD(kiln_cu_copy_3d_t, from.rows, CUDA_MEMCPY3D, srcHeight);
SAME_FIELD(kiln_cu_copy_3d_t, to.x_bytes, CUDA_MEMCPY3D, dstXInBytes);
SAME_FIELD(kiln_cu_copy_3d_t, to.y, CUDA_MEMCPY3D, dstY);
SAME_FIELD(kiln_cu_copy_3d_t, to.z, CUDA_MEMCPY3D, dstZ);
SAME_FIELD(kiln_cu_copy_3d_t, to.level, CUDA_MEMCPY3D, dstLOD);
SAME_FIELD(kiln_cu_copy_3d_t, to.type, CUDA_MEMCPY3D, dstMemoryType);
SAME_FIELD(kiln_cu_copy_3d_t, to.host, CUDA_MEMCPY3D, dstHost);
SAME_FIELD(kiln_cu_copy_3d_t, to.device, CUDA_MEMCPY3D, dstDevice);
SAME_FIELD(kiln_cu_copy_3d_t, to.array, CUDA_MEMCPY3D, dstArray);
SAME_FIELD(kiln_cu_copy_3d_t, to.row_bytes, CUDA_MEMCPY3D, dstPitch);
SAME_FIELD(kiln_cu_copy_3d_t, to.rows, CUDA_MEMCPY3D, dstHeight);
SAME_FIELD(kiln_cu_copy_3d_t, width_bytes, CUDA_MEMCPY3D, WidthInBytes);
SAME_FIELD(kiln_cu_copy_3d_t, height, CUDA_MEMCPY3D, Height);
SAME_FIELD(kiln_cu_copy_3d_t, depth, CUDA_MEMCPY3D, Depth);
SAME_VALUE(sizeof(kiln_cu_texels_t), sizeof(CUDA_RESOURCE_DESC));
SAME_FIELD(kiln_cu_texels_t, type, CUDA_RESOURCE_DESC, resType);
SAME_FIELD(kiln_cu_texels_t, of.array, CUDA_RESOURCE_DESC, res.array.hArray);
SAME_FIELD(kiln_cu_texels_t, of.linear.address, CUDA_RESOURCE_DESC,
           res.linear.devPtr);
SAME_FIELD(kiln_cu_texels_t, of.linear.format, CUDA_RESOURCE_DESC,
           res.linear.format);
SAME_FIELD(kiln_cu_texels_t, of.linear.channels, CUDA_RESOURCE_DESC,
           res.linear.numChannels);
SAME_FIELD(kiln_cu_texels_t, of.linear.bytes, CUDA_RESOURCE_DESC,
           res.linear.sizeInBytes);
SAME_FIELD(kiln_cu_texels_t, of.pitched.address, CUDA_RESOURCE_DESC,
           res.pitch2D.devPtr);
SAME_FIELD(kiln_cu_texels_t, of.pitched.width, CUDA_RESOURCE_DESC,
           res.pitch2D.width);
SAME_FIELD(kiln_cu_texels_t, of.pitched.height, CUDA_RESOURCE_DESC,
           res.pitch2D.height);
SAME_FIELD(kiln_cu_texels_t, of.pitched.row_bytes, CUDA_RESOURCE_DESC,
           res.pitch2D.pitchInBytes);
SAME_FIELD(kiln_cu_texels_t, flags, CUDA_RESOURCE_DESC, flags);
SAME_VALUE(sizeof(kiln_cu_sampler_t), sizeof(CUDA_TEXTURE_DESC));
SAME_FIELD(kiln_cu_sampler_t, address, CUDA_TEXTURE_DESC, addressMode);
SAME_FIELD(kiln_cu_sampler_t, filter, CUDA_TEXTURE_DESC, filterMode);
SAME_FIELD(kiln_cu_sampler_t, flags, CUDA_TEXTURE_DESC, flags);
SAME_FIELD(kiln_cu_sampler_t, anisotropy, CUDA_TEXTURE_DESC, maxAnisotropy);
SAME_FIELD(kiln_cu_sampler_t, level_filter, CUDA_TEXTURE_DESC,
           mipmapFilterMode);
SAME_FIELD(kiln_cu_sampler_t, level_bias, CUDA_TEXTURE_DESC, mipmapLevelBias);
SAME_FIELD(kiln_cu_sampler_t, level_least, CUDA_TEXTURE_DESC,
           minMipmapLevelClamp);
SAME_FIELD(kiln_cu_sampler_t, level_most, CUDA_TEXTURE_DESC,
           maxMipmapLevelClamp);
SAME_FIELD(kiln_cu_sampler_t, border, CUDA_TEXTURE_DESC, borderColor);
SAME_VALUE(KILN_CU_AD_FORMAT_UNSIGNED_INT8, CU_AD_FORMAT_UNSIGNED_INT8);
SAME_VALUE(KILN_CU_AD_FORMAT_UNSIGNED_INT16, CU_AD_FORMAT_UNSIGNED_INT16);
SAME_VALUE(KILN_CU_AD_FORMAT_UNSIGNED_INT32, CU_AD_FORMAT_UNSIGNED_INT32);
SAME_VALUE(KILN_CU_AD_FORMAT_SIGNED_INT8, CU_AD_FORMAT_SIGNED_INT8);
SAME_VALUE(KILN_CU_AD_FORMAT_SIGNED_INT16, CU_AD_FORMAT_SIGNED_INT16);
SAME_VALUE(KILN_CU_AD_FORMAT_SIGNED_INT32, CU_AD_FORMAT_SIGNED_INT32);
SAME_VALUE(KILN_CU_AD_FORMAT_HALF, CU_AD_FORMAT_HALF);
SAME_VALUE(KILN_CU_AD_FORMAT_FLOAT, CU_AD_FORMAT_FLOAT);
SAME_VALUE(KILN_CU_RESOURCE_TYPE_ARRAY, CU_RESOURCE_TYPE_ARRAY);
SAME_VALUE(KILN_CU_RESOURCE_TYPE_MIPMAPPED_ARRAY,
           CU_RESOURCE_TYPE_MIPMAPPED_ARRAY);
SAME_VALUE(KILN_CU_RESOURCE_TYPE_LINEAR, CU_RESOURCE_TYPE_LINEAR);
SAME_VALUE(KILN_CU_RESOURCE_TYPE_PITCH2D, CU_RESOURCE_TYPE_PITCH2D);
SAME_VALUE(KILN_CU_TR_ADDRESS_MODE_WRAP, CU_TR_ADDRESS_MODE_WRAP);
SAME_VALUE(KILN_CU_TR_ADDRESS_MODE_CLAMP, CU_TR_ADDRESS_MODE_CLAMP);
SAME_VALUE(KILN_CU_TR_ADDRESS_MODE_MIRROR, CU_TR_ADDRESS_MODE_MIRROR);
SAME_VALUE(KILN_CU_TR_ADDRESS_MODE_BORDER, CU_TR_ADDRESS_MODE_BORDER);
SAME_VALUE(KILN_CU_TR_FILTER_MODE_POINT, CU_TR_FILTER_MODE_POINT);
SAME_VALUE(KILN_CU_TR_FILTER_MODE_LINEAR, CU_TR_FILTER_MODE_LINEAR);
SAME_VALUE(KILN_CU_TRSF_READ_AS_INTEGER, CU_TRSF_READ_AS_INTEGER);
SAME_VALUE(KILN_CU_TRSF_NORMALIZED_COORDINATES, CU_TRSF_NORMALIZED_COORDINATES);
SAME_VALUE(KILN_CU_TRSF_SRGB, CU_TRSF_SRGB);
SAME_VALUE(KILN_CU_TRSF_SEAMLESS_CUBEMAP, CU_TRSF_SEAMLESS_CUBEMAP);
SAME_VALUE(KILN_CUDA_ARRAY3D_SURFACE_LDST, CUDA_ARRAY3D_SURFACE_LDST);
SAME_VALUE(KILN_CUDA_ARRAY3D_LAYERED, CUDA_ARRAY3D_LAYERED);
SAME_VALUE(KILN_CUDA_ARRAY3D_CUBEMAP, CUDA_ARRAY3D_CUBEMAP);
SAME_VALUE(KILN_CUDA_ARRAY3D_TEXTURE_GATHER, CUDA_ARRAY3D_TEXTURE_GATHER);
#if CUDA_VERSION >= 11030
SAME_VALUE(KILN_CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION,
           CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION);
#endif
#if CUDA_VERSION >= 12040
SAME_TYPE(kiln_cu_green_context_t, CUgreenCtx);
SAME_TYPE(kiln_cu_resource_desc_t, CUdevResourceDesc);
SAME_TYPE(kiln_cu_resource_kind_t, CUdevResourceType);
SAME_VALUE(sizeof(kiln_cu_dev_resource_t), sizeof(CUdevResource));
SAME_FIELD(kiln_cu_dev_resource_t, kind, CUdevResource, type);
SAME_FIELD(kiln_cu_dev_resource_t, of.sm.count, CUdevResource, sm.smCount);
SAME_VALUE(KILN_CU_DEV_RESOURCE_TYPE_SM, CU_DEV_RESOURCE_TYPE_SM);
SAME_VALUE(KILN_CU_GREEN_CTX_DEFAULT_STREAM, CU_GREEN_CTX_DEFAULT_STREAM);
#endif
#if CUDA_VERSION >= 13000
SAME_FIELD(kiln_cu_dev_resource_t, of.sm.least, CUdevResource,
           sm.minSmPartitionSize);
SAME_FIELD(kiln_cu_dev_resource_t, of.sm.step, CUdevResource,
           sm.smCoscheduledAlignment);
SAME_VALUE(KILN_CU_DEV_SM_RESOURCE_SPLIT_IGNORE_SM_COSCHEDULING,
           CU_DEV_SM_RESOURCE_SPLIT_IGNORE_SM_COSCHEDULING);
SAME_VALUE(KILN_CU_DEV_SM_RESOURCE_SPLIT_MAX_POTENTIAL_CLUSTER_SIZE,
           CU_DEV_SM_RESOURCE_SPLIT_MAX_POTENTIAL_CLUSTER_SIZE);
#endif
#if CUDA_VERSION >= 13010
SAME_VALUE(_Alignof(kiln_cu_dev_resource_t), _Alignof(CUdevResource));
SAME_FIELD(kiln_cu_dev_resource_t, of.sm.flags, CUdevResource, sm.flags);
SAME_FIELD(kiln_cu_dev_resource_t, next, CUdevResource, nextResource);
#endif

#if CUDA_VERSION >= 13000
#define KILNI_CUDA_RESULT(name, number, status, sticky, fix) \
  SAME_VALUE(KILN_CU_ERROR_##name, CUDA_ERROR_##name);
#include "table/cuda_results.inc"
#undef KILNI_CUDA_RESULT
#define KILNI_CUDA_ATTRIBUTES_UNTIL CUDA_VERSION
#define KILNI_CUDA_ATTRIBUTE(name, number, since, unit) \
  SAME_VALUE(KILN_CU_DEVICE_ATTRIBUTE_##name, CU_DEVICE_ATTRIBUTE_##name);
#include "table/cuda_attributes.inc"
#undef KILNI_CUDA_ATTRIBUTE
#if CUDA_VERSION < 13010
SAME_VALUE(CU_DEVICE_ATTRIBUTE_MAX, 148);
#endif
#endif

#define SAME(name) SAME_VALUE(KILN_##name, name)
SAME(CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
SAME(CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES);
SAME(CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES);
SAME(CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES);
SAME(CU_FUNC_ATTRIBUTE_NUM_REGS);
SAME(CU_FUNC_ATTRIBUTE_PTX_VERSION);
SAME(CU_FUNC_ATTRIBUTE_BINARY_VERSION);
SAME(CU_FUNC_ATTRIBUTE_CACHE_MODE_CA);
SAME(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
SAME(CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT);
SAME(CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET);
SAME(CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH);
SAME(CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT);
SAME(CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH);
SAME(CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED);
SAME(CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE);
SAME(CU_POINTER_ATTRIBUTE_CONTEXT);
SAME(CU_POINTER_ATTRIBUTE_MEMORY_TYPE);
SAME(CU_POINTER_ATTRIBUTE_DEVICE_POINTER);
SAME(CU_POINTER_ATTRIBUTE_HOST_POINTER);
SAME(CU_POINTER_ATTRIBUTE_P2P_TOKENS);
SAME(CU_POINTER_ATTRIBUTE_SYNC_MEMOPS);
SAME(CU_POINTER_ATTRIBUTE_BUFFER_ID);
SAME(CU_POINTER_ATTRIBUTE_IS_MANAGED);
SAME(CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL);
SAME(CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE);
SAME(CU_POINTER_ATTRIBUTE_RANGE_START_ADDR);
SAME(CU_POINTER_ATTRIBUTE_RANGE_SIZE);
SAME(CU_POINTER_ATTRIBUTE_MAPPED);
SAME(CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES);
SAME(CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE);
SAME(CU_POINTER_ATTRIBUTE_ACCESS_FLAGS);
SAME(CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE);
SAME(CU_POINTER_ATTRIBUTE_MAPPING_SIZE);
SAME(CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR);
SAME(CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID);
SAME(CU_MEMORYTYPE_HOST);
SAME(CU_MEMORYTYPE_DEVICE);
SAME(CU_MEMORYTYPE_ARRAY);
SAME(CU_MEMORYTYPE_UNIFIED);
SAME(CU_LIMIT_STACK_SIZE);
SAME(CU_LIMIT_PRINTF_FIFO_SIZE);
SAME(CU_LIMIT_MALLOC_HEAP_SIZE);
SAME(CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH);
SAME(CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT);
SAME(CU_LIMIT_MAX_L2_FETCH_GRANULARITY);
SAME(CU_LIMIT_PERSISTING_L2_CACHE_SIZE);
SAME(CU_JIT_MAX_REGISTERS);
SAME(CU_JIT_THREADS_PER_BLOCK);
SAME(CU_JIT_WALL_TIME);
SAME(CU_JIT_INFO_LOG_BUFFER);
SAME(CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES);
SAME(CU_JIT_ERROR_LOG_BUFFER);
SAME(CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES);
SAME(CU_JIT_OPTIMIZATION_LEVEL);
SAME(CU_JIT_TARGET_FROM_CUCONTEXT);
SAME(CU_JIT_TARGET);
SAME(CU_JIT_FALLBACK_STRATEGY);
SAME(CU_JIT_GENERATE_DEBUG_INFO);
SAME(CU_JIT_LOG_VERBOSE);
SAME(CU_JIT_GENERATE_LINE_INFO);
SAME(CU_JIT_CACHE_MODE);
SAME(CU_JIT_FAST_COMPILE);
SAME(CU_JIT_POSITION_INDEPENDENT_CODE);
SAME(CU_JIT_GLOBAL_SYMBOL_NAMES);
SAME(CU_JIT_GLOBAL_SYMBOL_ADDRESSES);
SAME(CU_JIT_GLOBAL_SYMBOL_COUNT);
SAME(CU_JIT_LTO);
SAME(CU_JIT_CACHE_OPTION_NONE);
SAME(CU_JIT_CACHE_OPTION_CG);
SAME(CU_JIT_CACHE_OPTION_CA);
SAME(CU_JIT_INPUT_CUBIN);
SAME(CU_JIT_INPUT_PTX);
SAME(CU_JIT_INPUT_FATBINARY);
SAME(CU_JIT_INPUT_OBJECT);
SAME(CU_JIT_INPUT_LIBRARY);
SAME(CU_JIT_INPUT_NVVM);
SAME(CU_LIBRARY_HOST_UNIVERSAL_FUNCTION_AND_DATA_TABLE);
SAME(CU_LIBRARY_BINARY_IS_PRESERVED);
SAME(CU_CTX_SCHED_AUTO);
SAME(CU_CTX_SCHED_SPIN);
SAME(CU_CTX_SCHED_YIELD);
SAME(CU_CTX_SCHED_BLOCKING_SYNC);
SAME(CU_CTX_SCHED_MASK);
SAME(CU_CTX_MAP_HOST);
SAME(CU_CTX_LMEM_RESIZE_TO_MAX);
SAME(CU_STREAM_DEFAULT);
SAME(CU_STREAM_NON_BLOCKING);
SAME(CU_EVENT_DEFAULT);
SAME(CU_EVENT_BLOCKING_SYNC);
SAME(CU_EVENT_DISABLE_TIMING);
SAME(CU_EVENT_INTERPROCESS);
SAME(CU_MEMHOSTALLOC_PORTABLE);
SAME(CU_MEMHOSTALLOC_DEVICEMAP);
SAME(CU_MEMHOSTALLOC_WRITECOMBINED);
SAME(CU_MEMHOSTREGISTER_PORTABLE);
SAME(CU_MEMHOSTREGISTER_DEVICEMAP);
SAME(CU_MEMHOSTREGISTER_IOMEMORY);
SAME(CU_MEMHOSTREGISTER_READ_ONLY);
SAME(CU_GET_PROC_ADDRESS_DEFAULT);
SAME(CU_GET_PROC_ADDRESS_LEGACY_STREAM);
SAME(CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM);
SAME(CU_GET_PROC_ADDRESS_SUCCESS);
SAME(CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
SAME(CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
SAME(CU_STREAM_CAPTURE_STATUS_NONE);
SAME(CU_STREAM_CAPTURE_STATUS_ACTIVE);
SAME(CU_STREAM_CAPTURE_STATUS_INVALIDATED);
SAME(CU_MEM_ATTACH_GLOBAL);
SAME(CU_MEM_ATTACH_HOST);
SAME(CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES);
SAME(CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC);
SAME(CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES);
SAME(CU_MEMPOOL_ATTR_RELEASE_THRESHOLD);
SAME(CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT);
SAME(CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH);
SAME(CU_MEMPOOL_ATTR_USED_MEM_CURRENT);
SAME(CU_MEMPOOL_ATTR_USED_MEM_HIGH);
SAME(CU_MEM_ALLOCATION_TYPE_PINNED);
SAME(CU_MEM_HANDLE_TYPE_NONE);
SAME(CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
SAME(CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
SAME(CU_MEM_LOCATION_TYPE_DEVICE);
SAME(CU_MEM_ALLOC_GRANULARITY_MINIMUM);
SAME(CU_MEM_ALLOC_GRANULARITY_RECOMMENDED);
SAME(CU_MEM_ACCESS_FLAGS_PROT_NONE);
SAME(CU_MEM_ACCESS_FLAGS_PROT_READ);
SAME(CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
#if CUDA_VERSION >= 13000
SAME(CU_MEM_ALLOCATION_TYPE_MANAGED);
SAME(CU_MEM_LOCATION_TYPE_NONE);
SAME(CU_MEM_LOCATION_TYPE_HOST);
SAME(CU_MEM_LOCATION_TYPE_HOST_NUMA);
#endif
SAME(CU_LAUNCH_ATTRIBUTE_IGNORE);
SAME(CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW);
SAME(CU_LAUNCH_ATTRIBUTE_COOPERATIVE);
SAME(CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY);
SAME(CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION);
SAME(CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE);
SAME(CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION);
SAME(CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT);
SAME(CU_LAUNCH_ATTRIBUTE_PRIORITY);

#endif  // TEST_HAVE_CUDA_H

#if defined(TEST_HAVE_NVRTC_H)
SAME_TYPE(kiln_nvrtc_program_t, nvrtcProgram);
SAME_TYPE(kiln_nvrtc_result_t, nvrtcResult);
#if TEST_NVRTC_VERSION >= 13000
#define KILNI_NVRTC_RESULT(name, number, status, fix) \
  SAME_VALUE(KILN_NVRTC_ERROR_##name, NVRTC_ERROR_##name);
#include "table/nvrtc_results.inc"
#undef KILNI_NVRTC_RESULT
#endif
#endif  // TEST_HAVE_NVRTC_H

#if defined(TEST_HAVE_NVVM_H)
SAME_TYPE(kiln_nvvm_program_t, nvvmProgram);
SAME_TYPE(kiln_nvvm_result_t, nvvmResult);
#define KILNI_NVVM_RESULT(name, number, status, fix) \
  SAME_VALUE(KILN_NVVM_ERROR_##name, NVVM_ERROR_##name);
#if TEST_NVVM_VERSION >= 13000
#include "table/nvvm_results.inc"
#endif
#undef KILNI_NVVM_RESULT
#endif  // TEST_HAVE_NVVM_H

#if defined(TEST_HAVE_NVJITLINK_H)
SAME_TYPE(kiln_nvjitlink_handle_t, nvJitLinkHandle);
SAME_TYPE(kiln_nvjitlink_result_t, nvJitLinkResult);
SAME_TYPE(kiln_nvjitlink_input_t, nvJitLinkInputType);
#define KILNI_NVJITLINK_RESULT(name, number, status, fix) \
  SAME_VALUE(KILN_NVJITLINK_ERROR_##name, NVJITLINK_ERROR_##name);
#define SAME_INPUT(name) \
  SAME_VALUE(KILN_NVJITLINK_INPUT_##name, NVJITLINK_INPUT_##name)
#if TEST_NVJITLINK_VERSION >= 13000
#include "table/nvjitlink_results.inc"
SAME_INPUT(NONE);
SAME_INPUT(CUBIN);
SAME_INPUT(PTX);
SAME_INPUT(LTOIR);
SAME_INPUT(FATBIN);
SAME_INPUT(OBJECT);
SAME_INPUT(LIBRARY);
SAME_INPUT(INDEX);
SAME_INPUT(ANY);
#endif
#undef SAME_INPUT
#undef KILNI_NVJITLINK_RESULT
#endif  // TEST_HAVE_NVJITLINK_H

#if defined(TEST_HAVE_NVML_H)
SAME_TYPE(kiln_nvml_device_t, nvmlDevice_t);
SAME_TYPE(kiln_nvml_result_t, nvmlReturn_t);
#define SAME_SIZE(ours, theirs)             \
  SAME_VALUE(sizeof(ours), sizeof(theirs)); \
  SAME_VALUE(_Alignof(ours), _Alignof(theirs))
SAME_SIZE(kiln_nvml_pci_t, nvmlPciInfo_t);
SAME_FIELD(kiln_nvml_pci_t, legacy_address, nvmlPciInfo_t, busIdLegacy);
SAME_FIELD(kiln_nvml_pci_t, domain, nvmlPciInfo_t, domain);
SAME_FIELD(kiln_nvml_pci_t, device_id, nvmlPciInfo_t, pciDeviceId);
SAME_FIELD(kiln_nvml_pci_t, subsystem_id, nvmlPciInfo_t, pciSubSystemId);
SAME_FIELD(kiln_nvml_pci_t, address, nvmlPciInfo_t, busId);
SAME_SIZE(kiln_nvml_memory_t, nvmlMemory_t);
SAME_FIELD(kiln_nvml_memory_t, free, nvmlMemory_t, free);
SAME_FIELD(kiln_nvml_memory_t, used, nvmlMemory_t, used);
SAME_SIZE(kiln_nvml_memory_v2_t, nvmlMemory_v2_t);
SAME_FIELD(kiln_nvml_memory_v2_t, reserved, nvmlMemory_v2_t, reserved);
SAME_FIELD(kiln_nvml_memory_v2_t, free, nvmlMemory_v2_t, free);
SAME_FIELD(kiln_nvml_memory_v2_t, used, nvmlMemory_v2_t, used);
SAME_VALUE(KILN_NVML_MEMORY_V2, nvmlMemory_v2);
SAME_SIZE(kiln_nvml_bar1_t, nvmlBAR1Memory_t);
SAME_FIELD(kiln_nvml_bar1_t, free, nvmlBAR1Memory_t, bar1Free);
SAME_FIELD(kiln_nvml_bar1_t, used, nvmlBAR1Memory_t, bar1Used);
SAME_SIZE(kiln_nvml_utilization_t, nvmlUtilization_t);
SAME_FIELD(kiln_nvml_utilization_t, memory, nvmlUtilization_t, memory);
SAME_SIZE(kiln_nvml_process_t, nvmlProcessInfo_t);
SAME_FIELD(kiln_nvml_process_t, used_bytes, nvmlProcessInfo_t, usedGpuMemory);
SAME_FIELD(kiln_nvml_process_t, gpu_instance, nvmlProcessInfo_t, gpuInstanceId);
SAME_SIZE(kiln_nvml_process_sample_t, nvmlProcessUtilizationSample_t);
SAME_FIELD(kiln_nvml_process_sample_t, timestamp,
           nvmlProcessUtilizationSample_t, timeStamp);
SAME_FIELD(kiln_nvml_process_sample_t, sm, nvmlProcessUtilizationSample_t,
           smUtil);
SAME_FIELD(kiln_nvml_process_sample_t, decoder, nvmlProcessUtilizationSample_t,
           decUtil);
SAME_SIZE(kiln_nvml_attributes_t, nvmlDeviceAttributes_t);
SAME_FIELD(kiln_nvml_attributes_t, gpu_slices, nvmlDeviceAttributes_t,
           gpuInstanceSliceCount);
SAME_FIELD(kiln_nvml_attributes_t, memory_mib, nvmlDeviceAttributes_t,
           memorySizeMB);
SAME_SIZE(kiln_nvml_field_t, nvmlFieldValue_t);
SAME_FIELD(kiln_nvml_field_t, scope, nvmlFieldValue_t, scopeId);
SAME_FIELD(kiln_nvml_field_t, timestamp, nvmlFieldValue_t, timestamp);
SAME_FIELD(kiln_nvml_field_t, latency, nvmlFieldValue_t, latencyUsec);
SAME_FIELD(kiln_nvml_field_t, type, nvmlFieldValue_t, valueType);
SAME_FIELD(kiln_nvml_field_t, result, nvmlFieldValue_t, nvmlReturn);
SAME_FIELD(kiln_nvml_field_t, value, nvmlFieldValue_t, value);
#define KILNI_NVML_RESULT(name, number, status, fix) \
  SAME_VALUE(KILN_NVML_ERROR_##name, NVML_ERROR_##name);
#if TEST_NVML_VERSION >= 13000
SAME_SIZE(kiln_nvml_temperature_t, nvmlTemperature_t);
SAME_FIELD(kiln_nvml_temperature_t, sensor, nvmlTemperature_t, sensorType);
SAME_FIELD(kiln_nvml_temperature_t, celsius, nvmlTemperature_t, temperature);
SAME_VALUE(KILN_NVML_TEMPERATURE_V1, nvmlTemperature_v1);
#include "table/nvml_results.inc"
#endif
#undef KILNI_NVML_RESULT
#define SAME_NVML(name) SAME_VALUE(KILN_NVML_##name, NVML_##name)
SAME_NVML(TEMPERATURE_GPU);
SAME_NVML(TEMPERATURE_THRESHOLD_SHUTDOWN);
SAME_NVML(TEMPERATURE_THRESHOLD_SLOWDOWN);
SAME_NVML(CLOCK_GRAPHICS);
SAME_NVML(CLOCK_SM);
SAME_NVML(CLOCK_MEM);
SAME_NVML(CLOCK_VIDEO);
SAME_NVML(PCIE_UTIL_TX_BYTES);
SAME_NVML(PCIE_UTIL_RX_BYTES);
SAME_NVML(NVLINK_CAP_P2P_SUPPORTED);
SAME_NVML(NVLINK_DEVICE_TYPE_GPU);
SAME_NVML(NVLINK_DEVICE_TYPE_SWITCH);
SAME_VALUE(KILN_NVML_P2P_CAPS_READ, NVML_P2P_CAPS_INDEX_READ);
SAME_NVML(P2P_STATUS_OK);
SAME_NVML(TOPOLOGY_INTERNAL);
SAME_NVML(TOPOLOGY_SINGLE);
SAME_NVML(TOPOLOGY_MULTIPLE);
SAME_NVML(TOPOLOGY_HOSTBRIDGE);
SAME_NVML(TOPOLOGY_NODE);
SAME_NVML(TOPOLOGY_SYSTEM);
SAME_NVML(MEMORY_ERROR_TYPE_CORRECTED);
SAME_NVML(MEMORY_ERROR_TYPE_UNCORRECTED);
SAME_NVML(VOLATILE_ECC);
SAME_NVML(AGGREGATE_ECC);
SAME_NVML(COMPUTEMODE_DEFAULT);
SAME_NVML(COMPUTEMODE_PROHIBITED);
SAME_NVML(COMPUTEMODE_EXCLUSIVE_PROCESS);
#define SAME_REASON(ours, theirs) \
  SAME_VALUE(KILN_NVML_CLOCKS_##ours, nvmlClocksThrottleReason##theirs)
SAME_REASON(GPU_IDLE, GpuIdle);
SAME_REASON(APPLICATION_SETTING, ApplicationsClocksSetting);
SAME_REASON(SW_POWER_CAP, SwPowerCap);
SAME_REASON(HW_SLOWDOWN, HwSlowdown);
SAME_REASON(SYNC_BOOST, SyncBoost);
SAME_REASON(SW_THERMAL_SLOWDOWN, SwThermalSlowdown);
SAME_REASON(HW_THERMAL_SLOWDOWN, HwThermalSlowdown);
SAME_REASON(HW_POWER_BRAKE_SLOWDOWN, HwPowerBrakeSlowdown);
SAME_REASON(DISPLAY_SETTING, DisplayClockSetting);
#endif  // TEST_HAVE_NVML_H

static void signatures_values_and_sizes_are_those_of_cuda_h(void** state) {
  (void)state;
#if defined(TEST_HAVE_CUDA_H)
  // What is a pointer cannot be compared by the compiler.
  assert_ptr_equal(KILN_CU_STREAM_LEGACY, CU_STREAM_LEGACY);
  assert_ptr_equal(KILN_CU_STREAM_PER_THREAD, CU_STREAM_PER_THREAD);
  assert_ptr_equal(KILN_CU_LAUNCH_PARAM_END, CU_LAUNCH_PARAM_END);
  assert_ptr_equal(KILN_CU_LAUNCH_PARAM_BUFFER_POINTER,
                   CU_LAUNCH_PARAM_BUFFER_POINTER);
  assert_ptr_equal(KILN_CU_LAUNCH_PARAM_BUFFER_SIZE,
                   CU_LAUNCH_PARAM_BUFFER_SIZE);
#else
  print_message("no cuda.h in CUDA_PATH, CUDA_HOME or /usr/local/cuda\n");
  skip();
#endif
}

static void signatures_and_values_are_those_of_nvrtc_h(void** state) {
  (void)state;
#if !defined(TEST_HAVE_NVRTC_H)
  print_message("no nvrtc.h in CUDA_PATH, CUDA_HOME or /usr/local/cuda\n");
  skip();
#endif
}

static void signatures_and_values_are_those_of_nvvm_h(void** state) {
  (void)state;
#if !defined(TEST_HAVE_NVVM_H)
  print_message("no nvvm.h in CUDA_PATH, CUDA_HOME or /usr/local/cuda\n");
  skip();
#endif
}

static void signatures_and_values_are_those_of_nvjitlink_h(void** state) {
  (void)state;
#if !defined(TEST_HAVE_NVJITLINK_H)
  print_message("no nvJitLink.h in CUDA_PATH, CUDA_HOME or /usr/local/cuda\n");
  skip();
#endif
}

static void signatures_and_values_are_those_of_nvml_h(void** state) {
  (void)state;
#if !defined(TEST_HAVE_NVML_H)
  print_message("no nvml.h in CUDA_PATH, CUDA_HOME or /usr/local/cuda\n");
  skip();
#endif
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(signatures_values_and_sizes_are_those_of_cuda_h),
      cmocka_unit_test(signatures_and_values_are_those_of_nvrtc_h),
      cmocka_unit_test(signatures_and_values_are_those_of_nvvm_h),
      cmocka_unit_test(signatures_and_values_are_those_of_nvjitlink_h),
      cmocka_unit_test(signatures_and_values_are_those_of_nvml_h),
  };
#if !defined(TEST_HAVE_CUDA_H) && !defined(TEST_HAVE_NVRTC_H) &&     \
    !defined(TEST_HAVE_NVVM_H) && !defined(TEST_HAVE_NVJITLINK_H) && \
    !defined(TEST_HAVE_NVML_H)
  cmocka_run_group_tests(tests, NULL, NULL);
  return 77;
#else
  return cmocka_run_group_tests(tests, NULL, NULL);
#endif
}
